// What the header and the lists say of a state, as pure functions of it.
import words from "/static/console/console_en.js";
import { fill } from "/static/words.js";

const say = (name, values = {}) => fill(words[name], values);
const joined = (parts, by = "; ") => parts.filter(Boolean).join(by);
export const named = (joint) => joint.replace("_", " ");
export const nameOf = (thing) => `${thing.colour} ${thing.label}`.trim();

// A person's node has a name; who reads is told of the person.
export const peopled = (text) => text.replace(/\bhuman_\w+/g, words.a_person);
// A mode that has no words here says its own name.
export const modeWords = (mode) => words[`mode_${mode}`] ?? mode;
// After a contact the robot goes back before it goes on: the button says so before it is pressed.
const isRetreatNext = (guard, robot) => guard?.mode === "stopped" && Boolean(robot?.contact.length);
export function guardWords(guard, robot) {
  const isBack = isRetreatNext(guard, robot),
    goesOn = isBack ? words.resume_back : words.resume;
  return {
    mode: guard ? modeWords(guard.mode) : words.no_guard,
    reason: guard ? peopled(guard.reason) : words.robot_unknown,
    title: guard ? joined([`${modeWords(guard.mode)}: ${peopled(guard.reason)}`, say("guard_title", guard)]) : "",
    resume: guard?.estop ? words.rearm : guard?.mode === "disarmed" ? words.arm : goesOn,
    resumeTitle: isBack ? words.resume_back_title : "",
  };
}

// The one act that a page leads to, as it is now: the selector of its button.
const WAITS = ["stopped", "estopped", "disarmed"];
export function leadOf({ guard, seats, reviews }, seat, hasGoal) {
  if (WAITS.includes(guard?.mode)) return "#resume";
  if (!seats[seat]?.mine) return `button.seat[data-seat=${seat}]`;
  if (reviews?.[seat]?.draft) return `.review[data-seat=${seat}] [data-decide=approve]`;
  if (seat === "planner") return "#plan [type=submit]";
  return hasGoal ? { policy: "#go", vlm: "[data-act=pick]" }[seat] : "";
}

// How long participants wait for an answer, or waited.
export function answerWords(now) {
  if (now.waiting_s !== null) return say("waits", { seconds: now.waiting_s.toFixed(0) });
  return now.count ? say("answered", now) : words.none;
}

export function recordingWords(now) {
  const isOn = now.mode === "recording",
    isLost = now.mode === "stopped" || (now.mode === "none" && Boolean(now.file));
  const told = isLost ? (now.mode === "stopped" ? say("rec_stopped", now) : words.rec_gone) : words.rec_off;
  return {
    isOn,
    isLost,
    text: isOn ? now.file : now.mode === "waiting" ? words.rec_ready : told,
    title: isOn
      ? joined([say("rec_to", now), now.why])
      : joined([words.not_recording, now.why, now.file && say("rec_last", now)]),
  };
}

export function feedbackWords({ feedback, action }) {
  if (feedback) return joined([feedback.status, feedback.why], ": ");
  return action ? words.not_answered : words.none;
}

export function contactWords(robot) {
  if (!robot) return words.none;
  const touched = robot.contact.length ? say("touches", { what: robot.contact.join(", ") }) : words.nothing_touched;
  return joined([touched, robot.grasping && words.holds]);
}

// The joints that work hardest, and whether that is much.
const MUCH = 70;
export function effortWords(robot, joints, alerts) {
  const strained = joints
    .map((joint, place) => [Math.abs(robot?.effort[place] ?? 0), named(joint.name)])
    .sort((one, other) => other[0] - one[0])
    .slice(0, robot ? 2 : 0);
  const told = [...strained.map(([percent, name]) => `${name} ${percent} %`), ...alerts];
  return {
    text: told.join(", ") || words.none,
    isMuch: strained.some(([percent, name]) => percent > MUCH && name !== "gripper"),
  };
}

// Words for people, not the names of nodes.
export const nodeWords = (node) =>
  node.startsWith("human_") ? words.a_person : (words[`node_${node}`] ?? node.replaceAll("_", " "));
export const holderWords = (seat) =>
  seat.by
    ? (seat.mine ? words.you : seat.by) + (seat.lost ? words.gone : "")
    : seat.holder
      ? nodeWords(seat.holder)
      : words.nobody;

// What the button of a seat does now.
export function seatWords(name, seat) {
  if (seat.mine) return say("give_back", { seat: words[`seat_${name}`] });
  return seat.by ? say("ask", seat) : words[`sit_${name}`];
}

// Where the fingers are, seen from the selected thing: in figures, since a picture hides it.
export function heightWords(thing, robot) {
  if (!thing || !robot?.hand || thing.z === undefined) return "";
  const [ahead, left, up] = robot.hand,
    cos = Math.cos(robot.heading),
    sin = Math.sin(robot.heading),
    aside = Math.hypot(robot.x + ahead * cos - left * sin - thing.x, robot.y + ahead * sin + left * cos - thing.y),
    over = up - thing.z - thing.h / 2;
  return say(over < 0 ? "fingers_below" : "fingers_above", {
    over: Math.abs(over).toFixed(2),
    thing: nameOf(thing),
    aside: aside.toFixed(2),
  });
}

// Why nothing moves stands where the hand is: what the console refuses, or else why the guard has stopped the robot, and what
// Resume will do first.
export function stillWords({ driving, guard, seats, robot }, isDoubted, resumeKey, driveKey) {
  if (isDoubted) return words.stood_still;
  if (!seats.policy.mine) return say("drive_first", { key: driveKey });
  if (guard?.mode === "retreating") return words.retreating;
  if (driving || !WAITS.includes(guard?.mode)) return driving || "";
  const next = guard.estop ? words.rearm_first : say("hold_to_resume", { key: resumeKey });
  return joined([`${guard.reason}.`, next, isRetreatNext(guard, robot) && words.backs_off], " ");
}

export const odometryWords = (robot) =>
  say("odometry", {
    x: robot.x.toFixed(2),
    y: robot.y.toFixed(2),
    degrees: Math.round((robot.heading * 180) / Math.PI),
    speed: robot.v.toFixed(2),
  });

export function scoreWords(now) {
  const seconds = String(Math.floor(now.elapsed_s % 60)).padStart(2, "0"),
    time = `${Math.floor(now.elapsed_s / 60)}:${seconds}`;
  return say("score", { ...now, time }) + (now.is_over ? words.score_over : "");
}

export function millisWords(value) {
  if (value === null || value === undefined) return words.none;
  return value < 10000 ? `${Math.max(0, Math.round(value))} ms` : "> 10 s";
}

export function selectionWords(thing, spot, sees, keys) {
  if (thing) return say("selected", { thing: nameOf(thing) });
  if (spot) return say("floor", { x: spot.x.toFixed(2), y: spot.y.toFixed(2) });
  return sees ? words.choose : say("sees_nothing", keys);
}

// Things keep their places while they are seen: nothing moves under a hand because another was seen first this time.
export function inOrder(before, things) {
  const counts = new Map(),
    keyed = things.map((thing, place) => {
      const name = nameOf(thing),
        count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      return { key: `${name} ${count}`, name, thing, place };
    }),
    known = before.map((key) => keyed.find((one) => one.key === key)).filter(Boolean);
  return [...known, ...keyed.filter((one) => !known.includes(one))];
}
