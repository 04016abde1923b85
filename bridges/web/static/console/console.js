// The page: one socket, what it brings is drawn, what a person does is sent. All text goes in as text.
import { Link } from "/static/link.js";
import { Holding } from "/static/console/holding.js";
import {
  drawJoints,
  drawMap,
  drawRobot,
  paintOf,
  floorAt,
  overlay,
  overlayPath,
  pickAt,
} from "/static/console/draw.js";
import { found, grouped, recent } from "/static/console/deck.js";
import { People } from "/static/console/people.js";
import { Layout, save } from "/static/console/layout.js";
import { Library } from "/static/console/library.js";
import { RobotVoice } from "/static/console/robot_voice.js";
import { Drafts, shadows, wishes } from "/static/console/seats.js";
import { hasKeys, isText, keyBox, KeyHolder, keyOf, keysSwitch, shown, stopKeys } from "/static/keyboard.js";
import { $, all, LOST, make, notice, once, sendFrom, told, twice } from "/static/page.js";
import { chordOf, meantDigit } from "/static/shortcuts.js";
import { PushToTalk } from "/static/speech/push_to_talk.js";

let welcome = null;
let state = null;
let canned = []; // sentences that are said with one key
let selected = null; // a thing seen
let spot = null; // a place on the floor, to go to
let pending = null; // an action that waits for the VLM's seat
const depths = new Set(); // cameras whose depth is shown
const frames = {}; // camera -> {header, bitmap, at}
const rates = {}; // camera -> Hz when it was quickest of late
const trail = []; // of the base
const drawn = {}; // what the drawings show

/** @type {Link<import("/static/wire").FromConsole>} */
const link = new Link({
  welcome: (message) => {
    welcome = message;
    document.body.dataset.role = message.role;
    if (message.role === "participant") voices(["collaborator"]);
    build();
    watch();
    holding.met();
    talking.met();
  },
  state: (message) => {
    state = { ...state, ...message, at: performance.now() };
    if (message.robot === undefined) tell(message);
    else show(message);
  },
  lost: () => notice(LOST),
  told,
  frame: (header, bitmap) => {
    header.camera = header.camera.replace(" depth", "");
    frames[header.camera]?.bitmap.close();
    frames[header.camera] = { header, bitmap, at: performance.now() };
    paint(header.camera);
  },
  cover: (text) => {
    $("#cover-text").textContent = text;
    $("#cover").dataset.off = text ? "false" : "true";
    if (text) {
      holding.release();
      talking.lost();
    }
  },
});
function goalNow() {
  if (selected) return { x_m: selected.x, y_m: selected.y, label: selected.label, colour: selected.colour };
  if (spot) return { x_m: spot.x, y_m: spot.y };
  notice("select a thing, or click the floor");
  return null;
}
const holding = new Holding(
  link,
  () => state?.seats?.policy?.mine === true,
  () => Number($("input[name=speed]:checked").value),
  goalNow,
  {
    stop: (why) => stop(why),
    resume: () => resume(),
    way: () => $("input[name=way]:checked").value,
    letGo: () => library?.letGo(),
    holds: (control, now, scale) => library?.holds(control, now, scale) ?? null,
    gaze: () => library?.gaze() ?? null,
    clock: () => (state?.clock_ms ? state.clock_ms + performance.now() - state.at : 0),
    refused: () => notDriving(),
    camera: () => large,
    isAside: () => Boolean(welcome?.base_speed.is_omni) && !hasHead(),
    hand: (on) => {
      $("#keys-move").setAttribute("aria-pressed", String(on));
      $("#keys-move").firstChild.textContent = `Keys: ${on ? "hand" : "base"} `;
      document.body.dataset.keys = on ? "hand" : "base";
    },
  },
);
function hasHead() {
  return welcome.joints.some((joint) => joint.name === "head_pan");
}
const talking = new PushToTalk(link, () => welcome?.role === "operator");
$("#talk").append(talking.box);
let library = null;
new Layout({ library: () => library, large: (camera) => enlarge(camera), largeNow: () => large });
const voice = new RobotVoice(link);
const people = new People(link);
const drafts = {}; // seat -> its model's drafts
function review(begins) {
  const mine = (seat) => () => state?.seats?.[seat]?.mine === true;
  drafts.planner = new Drafts(link, "planner", mine("planner"), begins.planner ?? "write", {
    writes: (on) => {
      $("#plan").hidden = !on;
    },
    rescue: (text, sentence) => {
      const plan = $("#plan").elements;
      plan.text.value = text;
      plan.sentence.value = sentence;
      notice("The draft's time is up. What you typed stands under “write”.");
    },
  });
  drafts.vlm = new Drafts(link, "vlm", mine("vlm"), begins.vlm ?? "write", {
    writes: () => {},
    rescue: (_, sentence) => {
      $("#words").value = sentence;
      notice("The draft's time is up. What you typed stands in the field to say something.");
    },
  });
}

// --- once

function build() {
  const keys = { lift: "fr", arm: "qe", wrist_yaw: "zx", gripper: "co", head_pan: "lj", head_tilt: "ki" };
  $("#joints").replaceChildren(
    ...welcome.joints.map((joint) => {
      const row = make("div", "joint"),
        name = make("span", "name"),
        label = joint.name.replace("_", " "),
        [down, up] = [...(keys[joint.name] ?? "")].map(keyBox);
      const value = make("output", "value", "–");
      name.append(make("span", "", label, down ? make("span", "keys", " (", down, "/", up, ")") : null), value);
      const less = make("button", "", "−"),
        more = make("button", "", "+"),
        slider = make("input");
      for (const [button, sign, word] of [
        [less, "-", "less"],
        [more, "+", "more"],
      ]) {
        button.type = "button";
        button.dataset.hold = `${sign}${joint.name}`;
        button.setAttribute("aria-label", `${label} ${word}`);
      }
      Object.assign(slider, { type: "range", min: joint.lowest, max: joint.highest, step: "any" });
      slider.setAttribute("aria-label", label);
      slider.dataset.joint = joint.name;
      row.append(name, less, slider, more);
      return row;
    }),
  );
  for (const button of all("[data-hold^=aside]")) {
    if (welcome.base_speed.is_omni) button.hidden = false;
    else button.remove();
    if (hasHead()) button.querySelector("kbd")?.remove(); // its keys turn the head
  }
  holding.attach(all("[data-hold]"), all("input[data-joint]"));
  library = new Library(
    welcome,
    () => state?.robot ?? null,
    () => selected,
    (buttons) => holding.attach(buttons, []),
  );
  $("#story").replaceChildren();
  $("#events").replaceChildren();
  words("#greeting p", welcome.participant?.greeting ?? "");
  words("#greeting .task", welcome.participant?.task ?? "");
  review(welcome.review);
  if (welcome.shown) only(welcome.shown);
}

// Beside a graph of any kind: what it has not is not there.
function only(shown) {
  const cameras = Object.keys(shown.cameras),
    has = [cameras.length && "cameras", shown.robot && "robot", shown.words && "words", shown.stop && "stop"];
  document.body.dataset.has = has.filter(Boolean).join(" ");
  document.body.dataset.cameras = String(cameras.length);
  document.title = `${shown.run}: Polyrhythm`;
  words("h1", shown.run);
  welcome.cameras = cameras;
  for (const figure of all("#views figure")) {
    const { camera } = figure.dataset;
    figure.hidden = !cameras.includes(camera);
    if (!figure.hidden) figure.querySelector("[data-large]").textContent = titled(shown.cameras[camera]);
  }
  if (cameras.length && !cameras.includes(large)) enlarge(cameras[0]);
  $("#topics").hidden = shown.robot;
  if (!welcome.head_camera) {
    $("#robot").setAttribute("aria-label", "The robot's joints, each in its range");
    $("#robot + figcaption").textContent = "Joints";
  }
}
const titled = (name) => name.charAt(0).toUpperCase() + name.slice(1);

function topics(list) {
  $("#topics").replaceChildren(
    ...list.flatMap((one) => [
      make("dt", "", one.topic),
      make("dd", "rate", one.hz ? `${one.hz.toFixed(1)} Hz` : ""),
      make("dd", "", one.text),
    ]),
  );
  if (!list.length) $("#topics").append(make("dt", "", "No message yet."));
}

let lately = []; // sentences said last
function sentences(list) {
  canned = list;
  deck();
}

function deck() {
  const typed = $("#find").value,
    hits = found(canned, typed);
  const box = (sentence) => {
    const button = make("button", sentence.as);
    button.type = "button";
    if (sentence.key) button.append(make("kbd", "", sentence.key));
    button.append(sentence.text);
    button.title = `${sentence.as}: ${sentence.text}`;
    button.addEventListener("click", () => speak(sentence));
    return button;
  };
  $("#canned").replaceChildren(
    ...grouped(hits, typed ? [] : lately).flatMap(([name, list]) => [
      ...(name ? [make("p", "group", name)] : []),
      ...list.map(box),
    ]),
  );
}

// A study may lock voices: what cannot be chosen is not there.
function voices(list) {
  for (const one of all("input[name=voice]")) {
    one.disabled = !list.includes(one.value);
    one.parentElement.hidden = one.disabled;
  }
  if (!list.includes($("input[name=voice]:checked").value)) $(`input[name=voice][value=${list[0]}]`).checked = true;
  $("#say").dataset.voice = $("input[name=voice]:checked").value;
}

function watch() {
  const shown =
    document.hidden || welcome?.role === "participant"
      ? []
      : (welcome?.cameras ?? []).map((camera) => (depths.has(camera) ? `${camera} depth` : camera));
  link.send({ t: "watch", cameras: shown });
}

// --- ten times a second

function answer(now) {
  if (!now) return;
  $("#answer").textContent =
    now.waiting_s !== null
      ? `waits ${now.waiting_s.toFixed(0)} s`
      : now.count
        ? `${now.last_s} s, ~${now.median_s}`
        : "–";
}

function recording(now) {
  const box = $("#recording"),
    isLost = now.mode === "stopped" || (now.mode === "none" && Boolean(now.file));
  box.dataset.on = String(now.mode === "recording");
  box.classList.toggle("late", isLost);
  box.textContent =
    now.mode === "recording"
      ? now.file
      : now.mode === "stopped"
        ? `stopped: ${now.why}`
        : isLost
          ? "recorder gone"
          : now.mode === "waiting"
            ? "ready"
            : "off";
  box.title =
    now.mode === "recording"
      ? [`recording to ${now.file}`, now.why].filter(Boolean).join("; ")
      : ["not recording", now.why, now.file && `the last file is ${now.file}`].filter(Boolean).join("; ");
}

function show(message) {
  tell(message);
  const guard = message.guard;
  $("#guard").dataset.mode = guard?.mode ?? "unknown";
  $("#guard-mode").textContent = guard?.mode ?? "no guard";
  $("#guard-reason").textContent = guard ? guard.reason : "nothing is known of the robot";
  $("#guard").title = guard ? `${guard.mode}: ${guard.reason}; ${guard.rejected} commands refused` : "";
  $("#resume").textContent = guard?.estop ? "Re-arm" : guard?.mode === "disarmed" ? "Arm" : "Resume";
  figure("#link", message.link_ms, 150);
  figure("#robot-age", message.robot?.age_ms, 250);
  recording(message.recording);
  answer(message.response);
  people.show(message.people, message.invites);
  $("#subtask").textContent = message.subtask?.text ?? "–";
  $("#action").textContent = message.action?.text ?? "–";
  $("#feedback").textContent = message.feedback
    ? [message.feedback.status, message.feedback.why].filter(Boolean).join(": ")
    : message.action
      ? "not answered yet"
      : "–";
  const robot = message.robot,
    status = message.status;
  $("#contact").textContent = robot
    ? [
        robot.contact.length ? `touches: ${robot.contact.join(", ")}` : "nothing touched",
        robot.grasping ? "holds something" : "",
      ]
        .filter(Boolean)
        .join("; ")
    : "–";
  $("#contact").classList.toggle("late", Boolean(robot?.contact.length));
  const strained = robot
    ? welcome.joints
        .map((joint, place) => [Math.abs(robot.effort[place]), joint.name.replace("_", " ")])
        .sort((one, other) => other[0] - one[0])
        .slice(0, 2)
    : [];
  $("#effort").textContent =
    [...strained.map(([percent, name]) => `${name} ${percent} %`), ...(status?.alerts ?? [])].join(", ") || "–";
  $("#effort").classList.toggle(
    "late",
    strained.some(([percent, name]) => percent > 70 && name !== "gripper"),
  );
  for (const holder of all(".holder")) {
    const seat = message.seats[holder.dataset.seat];
    holder.textContent = seat.by
      ? (seat.mine ? "you" : seat.by) + (seat.lost ? " (gone)" : "")
      : seat.holder || "nobody";
    holder.classList.toggle("person", seat.kind === "person");
    holder.dataset.holder = seat.holder;
  }
  for (const button of all("button.seat")) {
    const seat = message.seats[button.dataset.seat],
      mine = String(seat.mine);
    if (button.getAttribute("aria-pressed") === mine && button.dataset.by === seat.by) continue;
    button.setAttribute("aria-pressed", mine);
    button.dataset.by = seat.by;
    const name = { policy: "driving", vlm: "the VLM's seat", planner: "the planner's seat" }[button.dataset.seat];
    const sit = { policy: "Take over driving", vlm: "Sit in for the VLM", planner: "Sit in for the planner" }[
      button.dataset.seat
    ];
    button.replaceChildren(seat.mine ? `Give back ${name}` : seat.by ? `Ask ${seat.by}` : sit);
    if (button.dataset.seat === "policy") button.append(keyBox("p"));
    $(`[data-force=${button.dataset.seat}]`).hidden = seat.mine || !seat.by;
  }
  for (const box of all(".wishes")) wishes(box, message.seats[box.dataset.seat], link);
  for (const line of all(".shadow")) shadows(line, message.seats[line.dataset.seat]);
  for (const [seat, one] of Object.entries(message.reviews ?? {})) drafts[seat]?.show(one);
  $("#unsaid").hidden = !message.unsaid;
  if (message.unsaid)
    words("#unsaid span", `In ${message.unsaid.left_s.toFixed(1)} s the robot says: “${message.unsaid.text}”`);
  if (pending && message.seats.vlm.mine) {
    link.send(pending);
    pending = null;
  }
  words("#robot-mode", status ? [status.mode, status.why].filter(Boolean).join(": ") : "–");
  $("#battery-box").hidden = status?.battery_v == null;
  $("#battery").textContent = status?.battery_v == null ? "–" : `${status.battery_v} V${status.charging ? " ⚡" : ""}`;
  for (const camera of welcome.cameras)
    $(`[data-camera=${camera}] .rate`).textContent = `${message.cameras[camera].hz} Hz`;
  score(message.score);
  voice.show(message);
  if (message.topics) topics(message.topics);
  if (robot) {
    library.show(robot);
    const last = trail.at(-1);
    if (!last || Math.hypot(robot.x - last[0], robot.y - last[1]) > 0.01) trail.push([robot.x, robot.y]);
    if (trail.length > 600) trail.shift();
    const body = JSON.stringify([
      robot.position.map((value) => value.toFixed(3)),
      robot.contact,
      robot.grasping,
      robot.effort.map((value) => Math.round(value / 10)),
    ]);
    if (body !== drawn.body) {
      drawn.body = body;
      if (welcome.head_camera) drawRobot($("#robot"), robot);
      else drawJoints($("#robot"), robot, welcome.joints);
    } // what stands still is not drawn again
    const floor = JSON.stringify([
      robot.x,
      robot.y,
      robot.heading.toFixed(2),
      robot.position[1].toFixed(2),
      message.scene?.objects.map((one) => [one.label, one.x.toFixed(2), one.y.toFixed(2)]),
      message.action?.target?.x,
      message.path?.base,
      spot,
    ]);
    if (floor !== drawn.floor) {
      drawn.floor = floor;
      drawMap(
        $("#map"),
        robot,
        message.scene?.objects ?? [],
        trail,
        message.action?.target,
        message.path,
        spot,
        welcome.head_camera ? robot.position[1] : null,
      );
    }
    limits(robot);
    $("#odometry").textContent =
      `x ${robot.x.toFixed(2)} m, y ${robot.y.toFixed(2)} m, ${Math.round((robot.heading * 180) / Math.PI)}°; ${robot.v.toFixed(2)} m/s`;
    for (const slider of all("input[data-joint]")) {
      const place = welcome.joints.findIndex((joint) => joint.name === slider.dataset.joint),
        value = robot.position[place];
      if (!holding.isGoal(slider.dataset.joint)) slider.value = value;
      slider.parentElement.querySelector(".value").textContent = `${value.toFixed(2)}`;
    }
  }
  document.body.dataset.drives = String(message.seats.policy.mine);
  things(message.scene?.objects ?? []);
  words("#why-still", whyStill(message));
  for (const button of all("[data-hold].held")) button.classList.toggle("refused", Boolean(message.driving));
  words("#height", heightOver(robot));
  const told = (message.scene?.told ?? []).join("; ");
  if ($("#scene").textContent !== told) $("#scene").textContent = told;
}

// A control is as its joint is: at the end of its range, or touching something.
const PADS = {
  "hand+up": ["lift", "+"],
  "hand-up": ["lift", "-"],
  "hand+left": ["arm", "-"],
  "hand-left": ["arm", "+"],
};
function limits(robot) {
  for (const [control, [name, sign]] of Object.entries(PADS)) {
    const place = welcome.joints.findIndex((joint) => joint.name === name);
    if (place < 0) continue;
    const { lowest, highest } = welcome.joints[place],
      slack = 0.01 * (highest - lowest),
      value = robot.position[place];
    const isEnd = sign === "+" ? value > highest - slack : value < lowest + slack;
    for (const button of all(`[data-hold='${control}']`)) {
      button.classList.toggle("limit", isEnd);
      button.classList.toggle("touches", robot.contact.includes(name));
    }
  }
  for (const button of all(".pad [data-hold]:not([data-hold^=hand])"))
    button.classList.toggle("touches", robot.contact.includes("base"));
  for (const button of all("#joints [data-hold]")) {
    const place = welcome.joints.findIndex((joint) => joint.name === button.dataset.hold.slice(1)),
      joint = welcome.joints[place],
      value = robot.position[place];
    const slack = 0.01 * (joint.highest - joint.lowest),
      isEnd = button.dataset.hold[0] === "+" ? value > joint.highest - slack : value < joint.lowest + slack;
    button.classList.toggle("limit", isEnd);
    button.title = isEnd ? "the end of its range" : "";
    button.parentElement.classList.toggle("touches", robot.contact.includes(joint.name));
  }
}
function words(selector, text) {
  const box = $(selector);
  if (box.textContent !== text) box.textContent = text;
}

function tell(message) {
  if (message.robot === undefined) {
    $("#guard-mode").textContent = "connected";
  }
  const said = message.events.filter((event) => TALK.has(event.kind));
  write($("#story"), said);
  write(
    $("#events"),
    message.events.filter((event) => !TALK.has(event.kind)),
  );
  if (message.voices) voices(message.voices);
  if (message.invited) people.invited(message.invited);
  if (message.canned) sentences(message.canned);
  if (message.locked) lock(message.locked);
  if (message.voice) talking.show(message.voice);
  if (message.notices.length) notice(message.notices.at(-1));
}

// What people and the robot say stands apart from what guard, seats and policies do.
const TALK = new Set(["said", "heard", "mark"]);
function write(box, events) {
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  for (const event of events) {
    const line = make("p", event.kind),
      name = event.called ?? event.who,
      who = ["heard", "said", event.who].includes(event.kind) ? name : `${event.kind} · ${name}`;
    if (event.kind === "guard" || event.kind === "interrupt")
      line.dataset.bad = String(/^(e?stopped|stop)\b/.test(event.text));
    line.append(make("time", "", `${event.at_s.toFixed(1)} s`), make("span", "who", who), `: ${event.text}`);
    if (event.person && event.kind === "said") line.append(make("kbd", "", "by a person"));
    box.append(line);
  }
  while (box.children.length > 400) box.firstChild.remove();
  if (atEnd && events.length) box.scrollTop = box.scrollHeight;
}

// How somebody who practises does: the simulator counts.
function score(now) {
  $("#score").hidden = !now;
  if (!now) return;
  const [minutes, seconds] = [Math.floor(now.elapsed_s / 60), Math.floor(now.elapsed_s % 60)];
  words(
    "#score",
    `Practice: ${now.done} of ${now.of}, ${now.task}; ${minutes}:${String(seconds).padStart(2, "0")}; ${now.stops} stops, ${now.dropped} dropped; ${now.points} points${now.is_over ? ". Done." : ""}`,
  );
}

// Parts that a study has locked are not there.
function lock(parts) {
  for (const one of all("[data-lock]")) one.dataset.locked = String(parts.includes(one.dataset.lock));
  document.body.dataset.locksDrive = String(parts.includes("drive"));
  const open = all("[role=tab]").find(
      (one) => one.getAttribute("aria-selected") === "true" && one.dataset.locked === "true",
    ),
    other = open && all("[role=tab]").find((one) => one.dataset.locked !== "true");
  if (other) tab(other.id.slice(4));
}

function figure(selector, value, worst) {
  const element = $(selector);
  element.textContent =
    value === null || value === undefined ? "–" : value < 10000 ? `${Math.max(0, Math.round(value))} ms` : "> 10 s";
  element.classList.toggle("late", value > worst);
}

function things(objects) {
  const names = objects.map((thing) => `${thing.colour} ${thing.label}`.trim());
  const box = $("#things");
  if (box.dataset.names !== names.join("|")) {
    box.dataset.names = names.join("|");
    box.replaceChildren(
      ...names.map((name, place) => {
        const button = make("button", "", name);
        button.type = "button";
        button.dataset.place = place;
        button.style.setProperty("--paint", paintOf(objects[place]));
        button.addEventListener("click", () => select(state.scene.objects[place]));
        return button;
      }),
    );
  }
  if (!selected && !spot) $("#selection").textContent = objects.length ? CHOOSE : nothingSeen();
  if (selected) selected = objects.find((thing) => same(thing, selected)) ?? selected;
  for (const button of box.children) {
    const isFar = objects[Number(button.dataset.place)]?.reach === false;
    button.classList.toggle("far", isFar);
    button.title = isFar ? "out of the arm's reach from here" : "";
    button.setAttribute(
      "aria-pressed",
      String(Boolean(selected) && same(objects[Number(button.dataset.place)], selected)),
    );
  }
}

const CHOOSE = "Click a thing in the head camera's image, or choose one here.";
const nothingSeen = () =>
  `The robot sees nothing here that it knows. Turn its head: take over driving (hold ${shown("p")}), then hold ${shown("j")}, ${shown("l")}, ${shown("i")} or ${shown("k")}.`;
const same = (one, other) =>
  one &&
  other &&
  one.label === other.label &&
  one.colour === other.colour &&
  Math.hypot(one.x - other.x, one.y - other.y) < 0.15;

function select(thing) {
  selected = thing ?? null;
  $("#selection").classList.toggle("hidden", Boolean(thing));
  $("#selection").textContent = thing
    ? `Selected: ${thing.colour} ${thing.label}`
    : state?.scene?.objects.length
      ? CHOOSE
      : nothingSeen();
  paint("head");
}

// --- pictures

// The robot as it was when the picture was taken: what is drawn over it belongs there.
function poseOf(header) {
  if (!header.pose) return state?.robot ?? null;
  const [x, y, heading, pan, tilt] = header.pose,
    position = [];
  position[6] = pan;
  position[7] = tilt;
  return { x, y, heading, position };
}

function paint(camera) {
  const frame = frames[camera];
  if (!frame) return;
  const canvas = $(`[data-camera=${camera}] canvas`),
    { header, bitmap } = frame;
  const scale = Math.max(1, Math.round(960 / header.width));
  if (canvas.width !== header.width * scale) {
    canvas.width = header.width * scale;
    canvas.height = header.height * scale;
  }
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const robot = poseOf(header);
  if (!welcome.head_camera) return; // nobody knows here how that camera looks
  if (camera === "head" && robot && state?.scene)
    overlay(context, scale, header, robot, state.scene.objects, state.action?.target, selected, welcome.head_camera);
  if (camera === "head" && robot && state)
    overlayPath(context, scale, header, robot, state.path, selected ? null : spot, welcome.head_camera);
}

// A picture that stands still is covered; a slow camera's, once it misses more than two turns.
function freeze(camera, age_ms) {
  const hz = (rates[camera] = Math.max(state?.cameras?.[camera]?.hz ?? 0, 0.98 * (rates[camera] ?? 0)));
  const isOld = age_ms > Math.max(welcome.oldest_picture_ms, camera === large ? 0 : 2500 / Math.max(0.2, hz)),
    box = $(`[data-camera=${camera}] .frozen`);
  box.hidden = !isOld;
  const words = isOld
    ? `This picture is ${Math.round(age_ms / 1000)} s old: it stands still.${camera === large ? " Nobody drives by it." : ""}`
    : "";
  if (box.textContent !== words) box.textContent = words;
}

setInterval(() => {
  const ageOf = (frame) => frame.header.age_ms + (state?.link_ms ?? 0) / 2 + performance.now() - frame.at;
  figure("#image-age", frames.head ? ageOf(frames.head) : null, 500);
  if (welcome) for (const [camera, frame] of Object.entries(frames)) freeze(camera, ageOf(frame));
  if (state && performance.now() - state.at > 1000) {
    $("#link").textContent = "silent";
    $("#link").classList.add("late");
  }
}, 200);

let large = "head"; // the camera by which somebody drives
function enlarge(camera) {
  large = camera;
  for (const figure of all("#views figure")) figure.classList.toggle("large", figure.dataset.camera === camera);
}
for (const figure of all("#views figure"))
  figure.addEventListener("click", () => {
    if (large !== figure.dataset.camera) enlarge(figure.dataset.camera);
  });
for (const button of all("[data-large]"))
  button.addEventListener("click", (event) => {
    event.stopPropagation();
    enlarge(button.dataset.large === large ? "head" : button.dataset.large);
  });
$("[data-camera=head] canvas").addEventListener("click", (event) => {
  if (large !== "head") return;
  const frame = frames.head;
  if (!frame || !state?.scene || !state.robot || !welcome.head_camera) return;
  const canvas = $("[data-camera=head] canvas"),
    box = canvas.getBoundingClientRect(),
    { width, height } = frame.header;
  const fit = Math.min(box.width / width, box.height / height);
  const u = (event.clientX - box.left - (box.width - width * fit) / 2) / fit,
    v = (event.clientY - box.top - (box.height - height * fit) / 2) / fit;
  const thing = pickAt(u, v, frame.header, poseOf(frame.header), state.scene.objects, welcome.head_camera);
  select(thing);
  if (thing) {
    spot = null;
  } else goal(floorAt(u, v, frame.header, poseOf(frame.header), welcome.head_camera));
});
$("#map").addEventListener("click", (event) => {
  const svg = $("#map"),
    at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  select(null);
  goal({ x: -at.y, y: -at.x });
});
function goal(place) {
  spot = place;
  if (place) $("#selection").classList.remove("hidden");
  if (place) $("#selection").textContent = `The floor at x ${place.x.toFixed(2)} m, y ${place.y.toFixed(2)} m`;
  paint("head");
}
for (const button of all("[data-depth]"))
  button.addEventListener("click", (event) => {
    const camera = button.dataset.depth,
      on = !depths.has(camera);
    event.stopPropagation();
    if (on) depths.add(camera);
    else depths.delete(camera);
    button.setAttribute("aria-pressed", String(on));
    watch();
  });

// --- what a person does

function stop(why = "stop button") {
  holding.release();
  link.send({ t: "stop", why });
}
// A sentence with a parameter other than the selected thing goes to the text field first, where that is filled in.
const OPEN = /\{\w+\}/;
function speak(sentence) {
  if (sentence.text.includes("{object}") && !selected) {
    notice("select a thing first: this sentence names it");
    return;
  }
  const gestures = sentence.gesture ? sentence.gesture.split("+") : [];
  if (gestures.some((one) => ["look", "point"].includes(one)) && !selected) {
    notice("select a thing first: this sentence comes with a gesture to it");
    return;
  }
  const text = filled(sentence.text);
  if (OPEN.test(text)) {
    edit(sentence);
    return;
  }
  const acts = gestures.map(gesture);
  if (acts.includes(null)) return;
  lately = recent(lately, sentence);
  deck();
  send({ t: "say", voice: sentence.as, text, ...(acts.length ? { acts } : {}) });
}
const filled = (text) =>
  text.replaceAll("{object}", selected ? `${selected.colour} ${selected.label}`.trim() : "{object}");
let lastDone = ""; // what this person did last, in words: a mistake is marked with it
const doneBy = (message) =>
  message.t === "say"
    ? `said “${message.text}”`
    : `did ${[message.skill, message.colour, message.label].filter(Boolean).join(" ")}`;
function send(message) {
  lastDone = doneBy(message);
  link.send(message);
}
// Lifts a stop; what is more than that (re-arming, arming) is only done by the button.
function resume() {
  if (state?.guard?.mode === "stopped" && !state.guard.estop) link.send({ t: "resume" });
}
// Where the fingers are, seen from the selected thing: in figures, since a picture hides it.
function heightOver(robot) {
  if (!selected || !robot?.hand || selected.z === undefined) return "";
  const [ahead, left, up] = robot.hand,
    cos = Math.cos(robot.heading),
    sin = Math.sin(robot.heading);
  const aside = Math.hypot(
    robot.x + ahead * cos - left * sin - selected.x,
    robot.y + ahead * sin + left * cos - selected.y,
  );
  const over = up - selected.z - selected.h / 2;
  return `Fingers ${Math.abs(over).toFixed(2)} m ${over < 0 ? "below" : "above"} the top of the ${`${selected.colour} ${selected.label}`.trim()}, ${aside.toFixed(2)} m aside`;
}
// Why nothing moves stands where the hand is: what the console refuses, or else why the guard has stopped the robot.
function whyStill(message) {
  const guard = message.guard,
    isStopped = ["stopped", "estopped"].includes(guard?.mode);
  if (holding.isDoubted) return "This page stood still for a moment: let go, and press again.";
  return (
    message.driving ||
    (message.seats.policy.mine && isStopped
      ? `${guard.reason}. ${guard.estop ? "Re-arm it first." : `Hold ${shown("y")}: resume.`}`
      : "")
  );
}
function notDriving() {
  const now = state?.seats?.policy;
  if (welcome?.role !== "operator" || !now || now.mine) return;
  notice(
    now.by ? `${now.by} drives; hold ${shown("p")} to ask for the seat` : `take over driving first: hold ${shown("p")}`,
  );
}
function toggleSeat(seat) {
  const now = state?.seats?.[seat];
  if (!now) return;
  if (now.mine) {
    if (seat === "policy") holding.release();
    link.send({ t: "give", seat });
    return;
  }
  link.send({ t: now.by ? "ask" : "take", seat });
  if (now.by) notice(`${now.by} is asked for the seat`);
}
/** @returns {import("/static/wire").ActRequest | null} */
function aimed(skill) {
  if (["hold", "nod", "shake"].includes(skill)) return { t: "act", skill };
  if (!selected) {
    notice("select a thing first");
    return null;
  }
  return { t: "act", skill, label: selected.label, colour: selected.colour, x_m: selected.x, y_m: selected.y };
}
function gesture(skill) {
  const driver = state?.seats?.policy;
  if (!driver?.mine && !driver?.by) return aimed(skill);
  notice(
    `${driver.mine ? "you drive" : `${driver.by} drives`}: the robot makes no gesture before driving is given back`,
  );
  return null;
}
function act(skill) {
  const isGesture = ["nod", "shake", "look", "point"].includes(skill),
    message = isGesture ? gesture(skill) : aimed(skill),
    seat = state?.seats?.vlm;
  if (!seat || !message) return;
  const driver = state.seats.policy;
  if (seat.mine || (isGesture && !seat.by))
    send(message); // for a gesture the seat is lent
  else if (seat.by) notice(`${seat.by} sits on the VLM's seat; ask for it`);
  else {
    pending = message;
    link.send({ t: "take", seat: "vlm" });
  } // one click: sit down, then do it
  if (driver.mine) notice(`you drive: the robot does this by itself once you give driving back (hold ${shown("p")})`);
  else if (driver.by) notice(`${driver.by} drives: the robot does this by itself once they give driving back`);
}
function mark(label = "mark", note = "") {
  const words = [note, $("#note").value].filter(Boolean).join(": ");
  sendFrom(link, $("#note"), { t: "mark", label, note: words }, () =>
    notice(label === "mark" ? "marked" : `marked as a mistake${note ? `: ${note}` : ""}`),
  );
}
function mistake() {
  if (state?.unsaid) link.send({ t: "unsay" });
  mark("wizard mistake", lastDone);
}
function tab(name) {
  for (const one of all("[role=tab]")) {
    const on = one.id === `tab-${name}`;
    one.setAttribute("aria-selected", String(on));
    one.tabIndex = on ? 0 : -1;
    $(`#${one.getAttribute("aria-controls")}`).hidden = !on;
  }
}

// A dialog covers the header, so each has a stop button of its own.
for (const one of all("#stop, dialog .stop")) {
  one.addEventListener("pointerdown", () => stop());
  one.addEventListener("click", (event) => {
    if (event.detail === 0) stop();
  }); // by the keyboard
}
$("#estop").addEventListener("click", () => {
  holding.release();
  link.send({ t: "estop" });
});
$("#unsaid button").addEventListener("click", () => link.send({ t: "unsay" }));
// After an emergency stop the same button re-arms first, and resumes then: two presses, and not one that is too quick.
$("#resume").addEventListener(
  "click",
  once(() => link.send({ t: "resume" })),
);
for (const button of all("button.seat"))
  button.addEventListener(
    "click",
    once(() => toggleSeat(button.dataset.seat)),
  );
for (const one of all("[role=tab]")) {
  one.addEventListener("click", () => tab(one.id.slice(4)));
  one.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const tabs = all("[role=tab]"),
      next = tabs[(tabs.indexOf(one) + step + tabs.length) % tabs.length];
    tab(next.id.slice(4));
    next.focus();
    event.preventDefault();
    event.stopPropagation();
  });
}
for (const button of all("[data-act]")) button.addEventListener("click", () => act(button.dataset.act));
for (const button of all("[data-force]"))
  button.addEventListener("click", () => link.send({ t: "take", seat: button.dataset.force, force: true }));
$("#keys-move").addEventListener("click", () => {
  if (state?.seats?.policy?.mine) holding.setHand(!holding.isHand);
  else notice("take over driving first");
});
$("#plan").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = new FormData(event.target),
    text = (name) => String(form.get(name) ?? "").trim();
  link.send({
    t: "plan",
    text: text("text"),
    verb: /** @type {"put" | "wait" | "done"} */ (text("verb")),
    what: text("what"),
    where: text("where"),
    excluding: text("excluding")
      .split(",")
      .map((word) => word.trim())
      .filter(Boolean),
    sentence: text("sentence"),
  });
});
$("#mark").addEventListener("submit", (event) => {
  event.preventDefault();
  mark();
});
for (const one of all("[data-shows]"))
  one.addEventListener("click", () => {
    for (const other of all("[data-shows]")) other.setAttribute("aria-pressed", String(other === one));
    $("#joints").hidden = one.dataset.shows !== "joints";
    $("#library").hidden = one.dataset.shows === "joints";
    $("#library").dataset.page = one.dataset.shows;
  });
$("#mistake").addEventListener("click", mistake);
for (const one of all("[data-service]")) {
  const { service } = one.dataset;
  twice(
    one,
    (isAsked) => {
      one.textContent = isAsked ? `Sure? ${service}` : titled(service);
    },
    () => link.send({ t: "service", verb: /** @type {"home" | "stow"} */ (service) }),
  );
}
for (const one of all("[data-still]"))
  one.addEventListener("click", (event) => {
    event.stopPropagation();
    const camera = one.dataset.still,
      frame = frames[camera];
    if (!frame) return;
    const picture = make("canvas");
    Object.assign(picture, { width: frame.header.width, height: frame.header.height });
    picture.getContext("2d").drawImage(frame.bitmap, 0, 0);
    const name = `${camera}-${Math.round(frame.header.captured_ms)}.png`;
    picture.toBlob((blob) => blob && save(blob, name));
    link.send({ t: "mark", label: "still", note: name }, { done: () => notice(`marked: ${name}`) });
  });
$("#say").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("#words").value.trim();
  if (!text) return;
  if (OPEN.test(text)) {
    pickOpen();
    notice(`fill in ${OPEN.exec(text)[0]} first`);
    return;
  }
  const voice = /** @type {"robot" | "collaborator"} */ ($("input[name=voice]:checked").value);
  lastDone = doneBy({ t: "say", voice, text });
  sendFrom(link, $("#words"), { t: "say", voice, text });
});
for (const one of all("input[name=voice]"))
  one.addEventListener("change", () => {
    $("#say").dataset.voice = $("input[name=voice]:checked").value;
  });
$("#say").dataset.voice = $("input[name=voice]:checked").value;

$("#find").addEventListener("input", deck);
$("#deck").addEventListener("submit", (event) => {
  event.preventDefault();
  choose(speak);
});
$("#find").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.shiftKey) {
    event.preventDefault();
    choose(edit);
  }
});
function choose(act) {
  const [first] = $("#find").value.trim() ? found(canned, $("#find").value) : [];
  if (!first) {
    notice("no sentence begins like that");
    return;
  }
  $("#find").value = "";
  deck();
  act(first);
}
function edit(sentence) {
  $(`input[name=voice][value=${sentence.as}]`).checked = true;
  $("#say").dataset.voice = sentence.as;
  $("#words").value = filled(sentence.text);
  $("#words").focus();
  pickOpen();
}
function pickOpen() {
  const field = $("#words"),
    open = OPEN.exec(field.value);
  field.focus();
  if (open) field.setSelectionRange(open.index, open.index + open[0].length);
}

const GESTURES = { n: "nod", b: "shake", u: "look", t: "point" };
const keys = new KeyHolder(notice);
stopKeys((why) => stop(why));
keysSwitch($("#single-keys"));
addEventListener(
  "keydown",
  (event) => {
    const chord = welcome?.role === "operator" && !event.repeat ? chordOf(event) : "",
      chorded = chord && canned.find((one) => one.key === chord);
    if (chorded) {
      event.preventDefault();
      event.stopPropagation();
      speak(chorded);
      return;
    }
    if (isText(event.target)) {
      if (event.key === "Escape") /** @type {HTMLElement} */ (event.target).blur();
      return;
    }
    const digit = meantDigit(event),
      meant = welcome?.role === "operator" && !event.repeat && digit && canned.find((one) => one.key === digit);
    if (meant) {
      event.preventDefault();
      speak(meant);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || welcome?.role !== "operator") return;
    const key = keyOf(event),
      seats = state?.seats;
    const open = all("[role=tab]")
      .find((one) => one.getAttribute("aria-selected") === "true")
      .id.slice(4);
    if (key === "Enter" && event.target === document.body)
      keys.hold(event, () => drafts[open]?.decide("approve"), "approve the draft");
    else if (key === "Backspace" && state?.unsaid) link.send({ t: "unsay" });
    else if (key === "Backspace") drafts[open]?.decide("reject");
    if (!hasKeys()) return;
    const sentence = canned.find((one) => one.key && one.key === key);
    if (sentence) keys.hold(event, () => speak(sentence), `say “${sentence.text}”`);
    else if (key === "p")
      keys.weigh(
        event,
        () => toggleSeat("policy"),
        seats?.policy?.mine ? "give driving back" : seats?.policy?.by ? "ask for the seat" : "take over driving",
      );
    else if (GESTURES[key] && seats?.vlm?.mine) keys.hold(event, () => act(GESTURES[key]), GESTURES[key]);
    else if (GESTURES[key]) keys.weigh(event, () => act(GESTURES[key]), `${GESTURES[key]} in the VLM's place`);
    else if (key === "y") keys.weigh(event, resume, "resume");
    else if (key === "Delete") keys.hold(event, mistake, "mark a mistake");
    else if (key === "m")
      mark(); // at once, for its time; it moves and says nothing
    else if (key === "/") {
      event.preventDefault();
      $("#words").focus();
    }
  },
  true,
);
addEventListener("visibilitychange", () => {
  if (document.hidden) holding.release();
  watch();
});
addEventListener("blur", () => holding.release());
addEventListener("pagehide", () => holding.release());
