// The operator's page: one socket, what it brings is drawn, what a person does is sent. All text goes in as text.
import * as acting from "/static/console/acting.js";
import { enlarge, take, watch } from "/static/console/cameras.js";
import { Holding } from "/static/console/holding.js";
import { listen } from "/static/console/keys.js";
import { showJoints } from "/static/console/joints.js";
import { Layout } from "/static/console/layout.js";
import { Library } from "/static/console/library.js";
import words from "/static/console/console_en.js";
import { hasHead, isOperator, now } from "/static/console/now.js";
import { People } from "/static/console/people.js";
import { RobotVoice } from "/static/console/robot_voice.js";
import { Drafts } from "/static/console/seats.js";
import { goalNow } from "/static/console/selection.js";
import { sentences, voices } from "/static/console/speaking.js";
import { showHeader, showRobot, showSeats, showUnsaid } from "/static/console/status.js";
import { tellStory } from "/static/console/story.js";
import { keysSwitch, stopKeys } from "/static/keyboard.js";
import { Link } from "/static/link.js";
import { $, all, atOnce, onClick, onSubmit, setAttribute, setText, twice } from "/static/dom.js";
import { cover, LOST, notice, told } from "/static/page.js";
import { fill } from "/static/words.js";
import { PushToTalk } from "/static/speech/push_to_talk.js";

/** @type {Link<import("/static/wire").FromConsole>} */
const link = new Link({
  welcome: (message) => {
    now.welcome = message;
    document.body.dataset.role = message.role;
    if (message.role === "participant") voices(["collaborator"]);
    build(message);
    watch();
    now.holding.met();
    talking.met();
  },
  state: (message) => {
    now.state = { ...now.state, ...message, at: performance.now() };
    tell(message);
    if (message.robot !== undefined) show(message);
  },
  frame: take,
  lost: () => notice(LOST),
  told,
  cover: (text) => {
    cover(text);
    if (!text) return;
    now.holding.release();
    talking.lost();
  },
});
now.link = link;
now.holding = new Holding(
  link,
  () => now.state?.seats?.policy?.mine === true,
  () => Number($("input[name=speed]:checked").value),
  goalNow,
  {
    stop: acting.stop,
    resume: acting.resume,
    way: () => $("input[name=way]:checked").value,
    letGo: () => now.library?.letGo(),
    holds: (control, at, scale) => now.library?.holds(control, at, scale) ?? null,
    gaze: () => now.library?.gaze() ?? null,
    clock: () => (now.state?.clock_ms ? now.state.clock_ms + performance.now() - now.state.at : 0),
    refused: acting.notDriving,
    camera: () => now.large,
    isAside: acting.isAside,
    hand: (on) => {
      $("#keys-move").setAttribute("aria-pressed", String(on));
      $("#keys-move").firstChild.textContent = on ? words.keys_hand : words.keys_base;
      document.body.dataset.keys = on ? "hand" : "base";
    },
  },
);
const talking = new PushToTalk(link, isOperator);
$("#talk").append(talking.box);
new Layout({ library: () => now.library, large: enlarge, largeNow: () => now.large });
const voice = new RobotVoice(link),
  people = new People(link),
  drafts = {}; // seat -> its model's drafts

// --- once

function build(welcome) {
  showJoints(welcome.joints);
  for (const button of all("[data-hold^=aside]")) {
    if (welcome.base_speed.is_omni) button.hidden = false;
    else button.remove();
    if (hasHead()) button.querySelector("kbd")?.remove(); // its keys turn the head
  }
  now.holding.attach(all("[data-hold]"), all("input[data-joint]"));
  now.library = new Library(
    welcome,
    () => now.state?.robot ?? null,
    () => now.selected,
    (buttons) => now.holding.attach(buttons, []),
  );
  $("#story").replaceChildren();
  $("#events").replaceChildren();
  setText("#greeting p", welcome.participant?.greeting ?? "");
  setText("#greeting .task", welcome.participant?.task ?? "");
  review(welcome.review);
  if (welcome.shown) only(welcome.shown);
}

function review(begins) {
  if (drafts.planner) return; // after a link that was lost the way of working and what is typed are as they were
  const rescued = (where) => notice(fill(words.draft_over, { where }));
  const mine = (seat) => () => now.state?.seats?.[seat]?.mine === true;
  drafts.planner = new Drafts(link, "planner", mine("planner"), begins.planner ?? "write", {
    writes: (on) => {
      $("#plan").hidden = !on;
    },
    rescue: (text, sentence) => {
      const plan = $("#plan").elements;
      plan.text.value = text;
      plan.sentence.value = sentence;
      rescued(words.under_write);
    },
  });
  drafts.vlm = new Drafts(link, "vlm", mine("vlm"), begins.vlm ?? "write", {
    writes: () => {},
    rescue: (_, sentence) => {
      $("#words").value = sentence;
      rescued(words.in_say);
    },
  });
}

// Beside a graph of any kind: what it has not is not there.
const titled = (name) => name.charAt(0).toUpperCase() + name.slice(1);
function only(shown) {
  const cameras = Object.keys(shown.cameras),
    has = [cameras.length && "cameras", shown.robot && "robot", shown.words && "words", shown.stop && "stop"];
  document.body.dataset.has = has.filter(Boolean).join(" ");
  document.body.dataset.cameras = String(cameras.length);
  document.title = `${shown.run}: Polyrhythm`;
  setText("h1", shown.run);
  now.welcome.cameras = cameras;
  for (const figure of all("#views figure")) {
    const { camera } = figure.dataset;
    figure.hidden = !cameras.includes(camera);
    if (!figure.hidden) figure.querySelector("[data-large]").textContent = titled(shown.cameras[camera]);
  }
  if (cameras.length && !cameras.includes(now.large)) enlarge(cameras[0]);
  $("#topics").hidden = shown.robot;
  if (now.welcome.head_camera) return;
  $("#robot").setAttribute("aria-label", "The robot's joints, each in its range");
  $("#robot + figcaption").textContent = "Joints";
}

// --- ten times a second

function tell(message) {
  if (message.robot === undefined) setText("#guard-mode", "connected");
  tellStory(message.events);
  if (message.voices) voices(message.voices);
  if (message.invited) people.invited(message.invited);
  if (message.canned) sentences(message.canned);
  if (message.locked) lock(message.locked);
  if (message.voice) talking.show(message.voice);
  if (message.notices.length) notice(message.notices.at(-1));
}

function show(message) {
  showHeader(message);
  people.show(message.people, message.invites);
  showSeats(message);
  for (const [seat, one] of Object.entries(message.reviews ?? {})) drafts[seat]?.show(one);
  showUnsaid(message.unsaid);
  acting.actPending();
  voice.show(message);
  if (message.robot) now.library.show(message.robot);
  showRobot(message);
}

// Parts that a study has locked are not there.
const isOpen = (one) => one.getAttribute("aria-selected") === "true";
function lock(parts) {
  for (const one of all("[data-lock]")) one.dataset.locked = String(parts.includes(one.dataset.lock));
  document.body.dataset.locksDrive = String(parts.includes("drive"));
  const tabs = all("[role=tab]"),
    other = tabs.find((one) => one.dataset.locked !== "true");
  if (other && tabs.some((one) => isOpen(one) && one.dataset.locked === "true")) tab(other.id.slice(4));
}

function tab(name) {
  for (const one of all("[role=tab]")) {
    const on = one.id === `tab-${name}`;
    one.setAttribute("aria-selected", String(on));
    one.tabIndex = on ? 0 : -1;
    $(`#${one.getAttribute("aria-controls")}`).hidden = !on;
  }
}

// --- what a person does

// A dialog covers the header, so each has a stop button of its own.
for (const one of all("#stop, dialog .stop")) atOnce(one, () => acting.stop());
onClick("#estop", () => {
  now.holding.release();
  link.send({ t: "estop" });
});
onClick("#unsaid button", () => link.send({ t: "unsay" }));
// After an emergency stop the same button re-arms first, and resumes then: two presses, and not one that is too quick.
onClick("#resume", () => link.send({ t: "resume" }));
onClick("button.seat", ({ dataset }) => acting.toggleSeat(dataset.seat));
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
onClick("[data-act]", ({ dataset }) => acting.act(dataset.act));
onClick("[data-force]", ({ dataset }) => link.send({ t: "take", seat: dataset.force, force: true }));
onClick("#keys-move", () => {
  if (now.state?.seats?.policy?.mine) now.holding.setHand(!now.holding.isHand);
  else acting.notDriving();
});
onSubmit("#plan", (fields) => {
  const text = (name) => fields[name].value.trim(),
    excluding = text("excluding").split(",");
  link.send({
    t: "plan",
    text: text("text"),
    verb: /** @type {"put" | "wait" | "done"} */ (text("verb")),
    what: text("what"),
    where: text("where"),
    excluding: excluding.map((word) => word.trim()).filter(Boolean),
    sentence: text("sentence"),
  });
});
onSubmit("#mark", () => acting.mark());
onClick("[data-shows]", (one) => {
  const { shows } = one.dataset;
  for (const other of all("[data-shows]")) setAttribute(other, "aria-pressed", String(other === one));
  $("#joints").hidden = shows !== "joints";
  $("#library").hidden = shows === "joints";
  $("#library").dataset.page = shows;
});
onClick("#mistake", acting.mistake);
for (const one of all("[data-service]")) {
  const { service } = one.dataset;
  twice(
    one,
    (isAsked) => {
      one.textContent = isAsked ? fill(words.sure, { service }) : titled(service);
    },
    () => link.send({ t: "service", verb: /** @type {"home" | "stow"} */ (service) }),
  );
}
stopKeys(acting.stop);
keysSwitch($("#single-keys"));
listen(drafts);
addEventListener("visibilitychange", () => {
  if (document.hidden) now.holding.release();
  watch();
});
addEventListener("blur", () => now.holding.release());
addEventListener("pagehide", () => now.holding.release());
