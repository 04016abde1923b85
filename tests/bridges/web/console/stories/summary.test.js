// What the console says of a state, and which places its lists keep.
import assert from "node:assert/strict";
import { test } from "node:test";
import { placed, recent } from "./deck.js";
import * as say from "./summary.js";

const cup = { label: "cup", colour: "red", x: 1, y: 0, z: 0.7, h: 0.1 },
  bowl = { label: "bowl", colour: "", x: 1, y: 1, z: 0.7, h: 0.1 };
const seat = (more) => ({ holder: "policy", by: "", mine: false, lost: false, ...more });

test("a seat's button says what it does now", () => {
  assert.equal(say.seatWords("policy", seat({})), "Take over driving");
  assert.equal(say.seatWords("vlm", seat({ by: "Ada" })), "Ask Ada");
  assert.equal(say.seatWords("planner", seat({ by: "me", mine: true })), "Give back planning");
  assert.equal(say.holderWords(seat({ by: "Ada", lost: true })), "Ada (gone)");
});

test("a recorder that stopped, or is gone, is told", () => {
  const told = (mode, file = "a.mcap") => say.recordingWords({ mode, file, why: "no space" });
  assert.deepEqual([told("recording").text, told("recording").isLost], ["a.mcap", false]);
  assert.deepEqual([told("stopped").text, told("stopped").isLost], ["stopped: no space", true]);
  assert.deepEqual([told("none").text, told("none", "").text], ["recorder gone", "off"]);
});

test("why nothing moves stands where the hand is, and what resuming will do first", () => {
  const now = (mode, contact = [], driving = "") => ({
    driving,
    guard: { mode, reason: "it touches", estop: "" },
    seats: { policy: { mine: true } },
    robot: { contact },
  });
  assert.equal(say.stillWords(now("holding"), false, "Y", "P"), "");
  assert.equal(say.stillWords(now("stopped"), false, "Y", "P"), "it touches. Hold Y: resume.");
  assert.match(say.stillWords(now("stopped", ["arm"]), false, "Y", "P"), /resume\. It first goes back slowly/);
  assert.match(say.stillWords(now("retreating"), false, "Y", "P"), /^It goes back slowly/);
  assert.equal(say.stillWords(now("stopped", [], "the picture is old"), false, "Y", "P"), "the picture is old");
  assert.match(say.stillWords(now("holding"), true, "Y", "P"), /stood still/);
});

test("what strains is told with its joint", () => {
  const joints = [{ name: "lift" }, { name: "gripper" }, { name: "wrist_yaw" }];
  assert.deepEqual(say.effortWords({ effort: [10, 90, -20] }, joints, ["hot"]), {
    text: "gripper 90 %, wrist yaw 20 %, hot",
    isMuch: false,
  });
  assert.ok(say.effortWords({ effort: [80, 0, 0] }, joints, []).isMuch);
  assert.equal(say.effortWords(null, joints, []).text, "–");
});

test("figures are read at a glance", () => {
  assert.deepEqual([null, 12.4, 12345].map(say.millisWords), ["–", "12 ms", "> 10 s"]);
  const robot = { x: 0, y: 0, heading: 0, hand: [1, 0, 1] };
  assert.equal(say.heightWords(cup, robot), "Fingers 0.25 m above the top of the red cup, 0.00 m aside");
  assert.equal(say.heightWords(null, robot), "");
});

test("things keep their places in whichever order they are seen", () => {
  const keys = (things) => things.map((one) => one.key),
    first = keys(say.inOrder([], [cup, bowl, cup]));
  assert.deepEqual(first, ["red cup 1", "bowl 1", "red cup 2"]);
  assert.deepEqual(keys(say.inOrder(first, [bowl, cup])), ["red cup 1", "bowl 1"]);
  assert.deepEqual(keys(say.inOrder(["bowl 1"], [cup, bowl])), ["bowl 1", "red cup 1"]);
});

test("a sentence that is said again stays under the hand that said it", () => {
  const said = (text) => ({ text }),
    [a, b, c, d, e, f] = [..."abcdef"].map(said);
  let lately = [],
    slots = [];
  const says = (one) => {
    lately = recent(lately, one);
    slots = placed(slots, lately);
    return slots.map(({ text }) => text).join("");
  };
  for (const one of [a, b, c, d, e]) says(one);
  assert.equal(says(b), "abcde");
  assert.equal(says(f), "fbcde", "the oldest gives its place to the new one");
});

test("one act leads, whatever the state is, and a mode without words says its name", () => {
  const now = (mode, seats = {}, reviews = {}) => ({
    guard: { mode },
    seats: { policy: {}, planner: {}, vlm: {}, ...seats },
    reviews,
  });
  const mine = { mine: true };
  assert.equal(say.leadOf(now("stopped", { policy: mine }), "policy", true), "#resume");
  assert.equal(say.leadOf(now("moving"), "vlm", false), "button.seat[data-seat=vlm]");
  assert.equal(say.leadOf(now("moving", { policy: mine }), "policy", false), "");
  assert.equal(say.leadOf(now("moving", { policy: mine }), "policy", true), "#go");
  const draft = { planner: { draft: { n: 1 } } };
  assert.match(say.leadOf(now("holding", { planner: mine }, draft), "planner", false), /decide=approve/);
  assert.deepEqual(["retreating", "dancing"].map(say.modeWords), ["backing off", "dancing"]);
});

test("resuming says before it is pressed that the robot backs off, and how far", () => {
  const guard = { mode: "stopped", estop: "", reason: "it touches", rejected: 0 };
  assert.equal(say.guardWords(guard, { contact: [] }).resume, "Resume");
  assert.equal(say.guardWords(guard, { contact: ["arm"] }).resume, "Resume, backs off");
  assert.match(say.guardWords(guard, { contact: ["arm"] }).resumeTitle, /last second of its way, for up to 4 s/);
  assert.equal(say.guardWords({ ...guard, estop: "x" }, { contact: ["arm"] }).resume, "Re-arm");
});

test("people read words, not the names of nodes", () => {
  const names = ["human_policy", "policy", "my_planner"];
  assert.deepEqual(names.map(say.nodeWords), ["a person", "model", "my planner"]);
});
