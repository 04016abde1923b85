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
  assert.equal(say.seatWords("planner", seat({ by: "me", mine: true })), "Give back the planner's seat");
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
  assert.equal(say.stillWords(now("holding"), false, "Y"), "");
  assert.equal(say.stillWords(now("stopped"), false, "Y"), "it touches. Hold Y: resume.");
  assert.match(say.stillWords(now("stopped", ["arm"]), false, "Y"), /resume\. It first goes back slowly/);
  assert.match(say.stillWords(now("retreating"), false, "Y"), /^It goes back slowly/);
  assert.equal(say.stillWords(now("stopped", [], "the picture is old"), false, "Y"), "the picture is old");
  assert.match(say.stillWords(now("holding"), true, "Y"), /stood still/);
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
