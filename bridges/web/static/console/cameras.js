// The cameras' pictures: drawn as they come, covered when they stand still, and clicked to choose a thing or a place.
import { floorAt, overlay, overlayPath, pickAt } from "/static/console/draw.js";
import { save } from "/static/console/layout.js";
import { now } from "/static/console/now.js";
import { changed, goal, select } from "/static/console/selection.js";
import words from "/static/console/console_en.js";
import { $, all, make, setHidden, setText } from "/static/dom.js";
import { notice } from "/static/page.js";
import { fill } from "/static/words.js";

const SHARP_PX = 960; // a narrower picture is drawn in whole multiples of itself, so that what lies over it is sharp
const frames = {}, // camera -> {header, bitmap, at}
  rates = {}, // camera -> Hz when it was quickest of late
  depths = new Set(); // cameras whose depth is shown
const figureOf = (camera) => $(`#views [data-camera=${camera}]`);

export function take(header, bitmap) {
  header.camera = header.camera.replace(" depth", "");
  frames[header.camera]?.bitmap.close();
  frames[header.camera] = { header, bitmap, at: performance.now() };
  paint(header.camera);
}

export function watch() {
  const { welcome } = now,
    isBlind = document.hidden || welcome?.role === "participant",
    cameras = isBlind ? [] : (welcome?.cameras ?? []);
  now.link.send({ t: "watch", cameras: cameras.map((camera) => (depths.has(camera) ? `${camera} depth` : camera)) });
}

// The robot as it was when the picture was taken: what is drawn over it belongs there.
function poseOf(header) {
  if (!header.pose) return now.state?.robot ?? null;
  const [x, y, heading, pan, tilt] = header.pose,
    position = [];
  position[6] = pan;
  position[7] = tilt;
  return { x, y, heading, position };
}

export function paint(camera) {
  const frame = frames[camera];
  if (!frame) return;
  const { state, welcome, selected, spot } = now,
    { header, bitmap } = frame,
    canvas = figureOf(camera).querySelector("canvas"),
    scale = Math.max(1, Math.round(SHARP_PX / header.width));
  if (canvas.width !== header.width * scale) {
    canvas.width = header.width * scale;
    canvas.height = header.height * scale;
    if (camera === now.large) shape(canvas);
  }
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  if (camera !== "head" || !welcome.head_camera) return; // nobody knows here how that camera looks
  const robot = poseOf(header);
  if (robot && state?.scene)
    overlay(context, scale, header, robot, state.scene.objects, state.action?.target, selected, welcome.head_camera);
  if (robot && state)
    overlayPath(context, scale, header, robot, state.path, selected ? null : spot, welcome.head_camera);
}

export const ageOf = (camera) => {
  const frame = frames[camera];
  return frame ? frame.header.age_ms + (now.state?.link_ms ?? 0) / 2 + performance.now() - frame.at : null;
};

// A picture that stands still is covered; a slow camera's, once it misses more than two turns.
export function freeze() {
  for (const camera of Object.keys(frames)) {
    const hz = (rates[camera] = Math.max(now.state?.cameras?.[camera]?.hz ?? 0, 0.98 * (rates[camera] ?? 0))),
      age_ms = ageOf(camera),
      isLarge = camera === now.large,
      limit_ms = Math.max(now.welcome.oldest_picture_ms, isLarge ? 0 : 2500 / Math.max(0.2, hz)),
      box = figureOf(camera).querySelector(".frozen");
    setHidden(box, age_ms <= limit_ms);
    const told = fill(words.frozen, { seconds: Math.round(age_ms / 1000) }) + (isLarge ? words.frozen_drive : "");
    setText(box, box.hidden ? "" : told);
  }
}

// The large picture has the shape of its camera, and its size from the window alone: no tab and no line moves it.
const shape = ({ width, height }) => $("#views").style.setProperty("--ratio", String(width / height));

export function enlarge(camera) {
  now.large = camera;
  if (frames[camera]) shape(figureOf(camera).querySelector("canvas"));
  for (const figure of all("#views figure")) figure.classList.toggle("large", figure.dataset.camera === camera);
}

function pick(event) {
  const frame = frames.head;
  if (now.large !== "head" || !frame || !now.state?.scene || !now.state.robot || !now.welcome.head_camera) return;
  const box = event.target.getBoundingClientRect(),
    { width, height } = frame.header,
    fit = Math.min(box.width / width, box.height / height),
    u = (event.clientX - box.left - (box.width - width * fit) / 2) / fit,
    v = (event.clientY - box.top - (box.height - height * fit) / 2) / fit,
    pose = poseOf(frame.header),
    thing = pickAt(u, v, frame.header, pose, now.state.scene.objects, now.welcome.head_camera);
  if (thing) {
    now.spot = null;
    select(thing);
  } else {
    select(null);
    goal(floorAt(u, v, frame.header, pose, now.welcome.head_camera));
  }
}

function keep(camera) {
  const frame = frames[camera];
  if (!frame) return;
  const picture = make("canvas");
  Object.assign(picture, { width: frame.header.width, height: frame.header.height });
  picture.getContext("2d").drawImage(frame.bitmap, 0, 0);
  const name = `${camera}-${Math.round(frame.header.captured_ms)}.png`;
  picture.toBlob((blob) => blob && save(blob, name));
  now.link.send({ t: "mark", label: "still", note: name }, { done: () => notice(`marked: ${name}`) });
}

changed.add(() => paint("head"));
for (const figure of all("#views figure"))
  figure.addEventListener("click", () => {
    if (now.large !== figure.dataset.camera) enlarge(figure.dataset.camera);
  });
figureOf("head").querySelector("canvas").addEventListener("click", pick);
const onButtons = (name, act) => {
  for (const one of all(`[data-${name}]`))
    one.addEventListener("click", (event) => {
      event.stopPropagation();
      act(one.dataset[name], one);
    });
};
onButtons("large", (camera) => enlarge(camera === now.large ? "head" : camera));
onButtons("still", keep);
onButtons("depth", (camera, button) => {
  const isOn = !depths.delete(camera);
  if (isOn) depths.add(camera);
  button.setAttribute("aria-pressed", String(isOn));
  watch();
});
