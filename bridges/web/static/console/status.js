// The run as it is, ten times a second: header, seats, robot and drawings. What is as before is not touched.
import { ageOf, freeze } from "/static/console/cameras.js";
import { drawJoints, drawMap, drawRobot } from "/static/console/drawings.js";
import { now } from "/static/console/now.js";
import { shadows, wishes } from "/static/console/seats.js";
import { things } from "/static/console/selection.js";
import words from "/static/console/console_en.js";
import * as say from "/static/console/summary.js";
import { shown } from "/static/keyboard.js";
import { $, all, draw, html, list, setAttribute, setHidden, setText, toggle } from "/static/dom.js";
import { fill } from "/static/words.js";

const trail = [], // of the base
  MOST_TRAIL = 600,
  FIGURES_MS = 1000; // numbers that never stand still are read no faster
const drawn = {}; // what the drawings show
const isNew = (name, value) => {
  const text = JSON.stringify(value),
    was = drawn[name];
  drawn[name] = text;
  return was !== text;
};

export function showHeader(message) {
  const guard = say.guardWords(message.guard, message.robot),
    recording = say.recordingWords(message.recording);
  setAttribute("#guard", "data-mode", message.guard?.mode ?? "unknown");
  setText("#guard-mode", guard.mode);
  setText("#guard-reason", guard.reason);
  setAttribute("#guard", "title", guard.title);
  setText("#resume", guard.resume);
  setAttribute("#resume", "title", guard.resumeTitle);
  setAttribute("#recording", "data-on", String(recording.isOn));
  toggle("#recording", "late", recording.isLost);
  setText("#recording", recording.text);
  setAttribute("#recording", "title", recording.title);
  if (message.response) setText("#answer", say.answerWords(message.response));
  const battery = message.status?.battery_v;
  setHidden("#battery-box", battery == null);
  setText("#battery", battery == null ? words.none : `${battery} V${message.status.charging ? " ⚡" : ""}`);
}

// One button leads, whatever the state is.
function lead(message) {
  const seat = $("[role=tab][aria-selected=true] .holder").dataset.seat,
    found = say.leadOf(message, seat, Boolean(now.selected ?? now.spot)),
    leader = found ? $(found) : null;
  for (const one of all("header button, #seats button")) toggle(one, "main", one === leader);
}

export function showSeats(message) {
  const { seats } = message;
  lead(message);
  for (const holder of all(".holder")) {
    const seat = seats[holder.dataset.seat];
    setText(holder, say.holderWords(seat));
    toggle(holder, "person", seat.kind === "person");
    setAttribute(holder, "data-holder", seat.holder);
    setAttribute(holder, "title", seat.holder);
  }
  for (const button of all("button.seat")) {
    const name = button.dataset.seat,
      seat = seats[name];
    setAttribute(button, "aria-pressed", String(seat.mine));
    setText(button.querySelector("span"), say.seatWords(name, seat));
    setHidden(`[data-force=${name}]`, seat.mine || !seat.by);
  }
  for (const box of all(".wishes")) wishes(box, seats[box.dataset.seat], now.link);
  for (const line of all(".shadow")) shadows(line, seats[line.dataset.seat]);
}

export function showRobot(message) {
  const { robot, status } = message,
    effort = say.effortWords(robot, now.welcome.joints, status?.alerts ?? []);
  setText("#subtask", message.subtask?.text ?? words.none);
  setText("#action", message.action?.text ?? words.none);
  setText("#feedback", say.feedbackWords(message));
  setText("#contact", say.contactWords(robot));
  toggle("#contact", "late", Boolean(robot?.contact.length));
  setText("#effort", effort.text);
  toggle("#effort", "late", effort.isMuch);
  setText("#robot-mode", status ? [status.mode, status.why].filter(Boolean).join(": ") : words.none);
  setHidden("#score", !message.score);
  if (message.score) setText("#score", say.scoreWords(message.score));
  if (message.topics) topics(message.topics);
  if (robot) {
    showBody(message, robot);
    limits(robot);
    setText("#odometry", say.odometryWords(robot));
    sliders(robot);
  }
  things(message.scene?.objects ?? []);
  const isDriving = message.seats.policy.mine;
  setAttribute(document.body, "data-drives", String(isDriving));
  setText("#why-still", say.stillWords(message, now.holding.isDoubted, shown("y"), shown("p")));
  for (const control of all("#panel-policy [data-hold], #joints input"))
    setAttribute(control, "aria-disabled", String(!isDriving));
  for (const button of all("[data-hold].held")) toggle(button, "refused", Boolean(message.driving));
  setText("#height", say.heightWords(now.selected, robot));
  setText("#scene", (message.scene?.told ?? []).join("; "));
}

function topics(found) {
  const row = (one) =>
    html`<dt>${one.topic}</dt><dd class="rate">${one.hz ? `${one.hz.toFixed(1)} Hz` : ""}</dd><dd>${one.text}</dd>`;
  draw("#topics", found.length ? list(found, (one) => one.topic, row) : html`<dt>${words.no_message}</dt>`);
}

// What stands still is not drawn again.
function showBody(message, robot) {
  const last = trail.at(-1);
  if (!last || Math.hypot(robot.x - last[0], robot.y - last[1]) > 0.01) trail.push([robot.x, robot.y]);
  if (trail.length > MOST_TRAIL) trail.shift();
  const posture = robot.position.map((value) => value.toFixed(2)),
    effort = robot.effort.map((value) => Math.round(value / 10)),
    isStretch = Boolean(now.welcome.head_camera),
    objects = message.scene?.objects ?? [],
    target = message.action?.target;
  if (isNew("body", [posture, robot.contact, robot.grasping, effort])) {
    if (isStretch) drawRobot($("#robot"), robot);
    else drawJoints($("#robot"), robot, now.welcome.joints);
  }
  const seen = objects.map((one) => [one.label, one.x.toFixed(2), one.y.toFixed(2)]),
    here = [robot.x.toFixed(2), robot.y.toFixed(2), robot.heading.toFixed(2), robot.position[1].toFixed(2)];
  if (isNew("floor", [here, seen, target?.x, message.path?.base, now.spot]))
    drawMap($("#map"), robot, objects, trail, target, message.path, now.spot, isStretch ? robot.position[1] : null);
}

function sliders(robot) {
  for (const slider of all("input[data-joint]")) {
    const place = now.welcome.joints.findIndex((joint) => joint.name === slider.dataset.joint),
      value = robot.position[place];
    if (!now.holding.isGoal(slider.dataset.joint)) slider.value = value;
    setText(slider.parentElement.querySelector(".value"), value.toFixed(2));
  }
}

// A control is as its joint is: at the end of its range, or touching something.
const PADS = {
  "hand+up": ["lift", "+"],
  "hand-up": ["lift", "-"],
  "hand+left": ["arm", "-"],
  "hand-left": ["arm", "+"],
};
function limits(robot) {
  const isEnd = (name, sign) => {
    const place = now.welcome.joints.findIndex((joint) => joint.name === name);
    if (place < 0) return false;
    const { lowest, highest } = now.welcome.joints[place],
      slack = 0.01 * (highest - lowest),
      value = robot.position[place];
    return sign === "+" ? value > highest - slack : value < lowest + slack;
  };
  for (const [control, [name, sign]] of Object.entries(PADS))
    for (const button of all(`[data-hold='${control}']`)) {
      toggle(button, "limit", isEnd(name, sign));
      toggle(button, "touches", robot.contact.includes(name));
    }
  for (const button of all(".pad [data-hold]:not([data-hold^=hand])"))
    toggle(button, "touches", robot.contact.includes("base"));
  for (const button of all("#joints [data-hold]")) {
    const name = button.dataset.hold.slice(1),
      isAtEnd = isEnd(name, button.dataset.hold[0]);
    toggle(button, "limit", isAtEnd);
    setAttribute(button, "title", isAtEnd ? words.end : "");
    toggle(button.parentElement, "touches", robot.contact.includes(name));
  }
}

function figure(selector, value, worst) {
  setText(selector, say.millisWords(value));
  toggle(selector, "late", value > worst);
}

let toldAt = 0;
setInterval(() => {
  const { state, welcome } = now,
    at = performance.now();
  if (welcome) freeze();
  if (!state || at - toldAt < FIGURES_MS) return;
  toldAt = at;
  figure("#image-age", ageOf("head"), 500);
  figure("#link", state.link_ms, 150);
  figure("#robot-age", state.robot && state.robot.age_ms + at - state.at, 250);
  for (const camera of welcome?.cameras ?? [])
    setText(`[data-camera=${camera}] .rate`, `${Math.round(state.cameras?.[camera]?.hz ?? 0)} Hz`);
  if (at - state.at <= FIGURES_MS) return;
  setText("#link", words.silent);
  toggle("#link", "late", true);
}, 200);

// What the robot is about to say, as long as it can be taken back.
export function showUnsaid(unsaid) {
  setHidden("#unsaid", !unsaid);
  if (unsaid) setText("#unsaid span", fill(words.takes_back, { ...unsaid, left_s: unsaid.left_s.toFixed(1) }));
}
