import assert from "node:assert/strict";
import test from "node:test";
import { DeadMan, FROZEN_MS, PERIOD_MS } from "./deadman.js";

const driving = { isMine: true, isHidden: false, scale: 0.5, pad: null, goal: () => null };

test("what is held is said again and again; let go, a last message brakes, and then nothing is said", () => {
  const man = new DeadMan();
  assert.equal(man.beat(0, driving), null);
  man.hold("KeyW", "ahead"); man.hold("KeyR", "+lift"); man.hold("p", "hand+up");
  for (const at of [50, 100]) assert.deepEqual([man.beat(at, driving)].map((one) => [one.ahead, one.jog, one.hand, one.scale]), [[1, { lift: 1 }, { up: 1 }, 0.5]]);
  for (const by of ["KeyW", "KeyR", "p"]) man.let(by);
  assert.deepEqual([man.beat(150, driving)].map((one) => [one.ahead, one.jog, one.hand]), [[0, {}, {}]]);
  assert.equal(man.beat(200, driving), null);
});

test("nothing is held by who does not drive, on a page that is hidden, or after the page stood still", () => {
  for (const lapse of [{ isMine: false }, { isHidden: true }]) {
    const man = new DeadMan();
    man.hold("KeyW", "ahead"); man.beat(0, driving);
    assert.equal(man.beat(PERIOD_MS, { ...driving, ...lapse }).ahead, 0);
    assert.equal(man.beat(2 * PERIOD_MS, { ...driving, ...lapse }), null);
  }
  const man = new DeadMan();
  man.hold("KeyW", "ahead"); man.goals.set("lift", 0.5);
  assert.equal(man.beat(0, driving).ahead, 1);
  const after = man.beat(FROZEN_MS + 1, driving);
  assert.deepEqual([after.ahead, after.goals], [0, {}]);
  assert.equal(man.beat(FROZEN_MS + 51, driving), null);      // the key is still down: it has to be pressed again
  assert.equal(man.isDoubted, true);                           // which the page says
  man.let("KeyW"); man.hold("KeyW", "ahead");
  assert.deepEqual([man.isDoubted, man.beat(FROZEN_MS + 101, driving).ahead], [false, 1]);
});

test("keys against each other stand, precise is slow, and a place is gone to while it is held", () => {
  const man = new DeadMan();
  man.hold("KeyW", "ahead"); man.hold("KeyS", "back"); man.isPrecise = true;
  assert.deepEqual([man.beat(0, driving)].map((one) => [one.ahead, one.scale]), [[0, 0.15]]);
  man.release(); man.hold("KeyG", "go");
  assert.deepEqual(man.beat(50, { ...driving, goal: () => ({ x_m: 1, y_m: 2 }) }).to, { x_m: 1, y_m: 2 });
  assert.equal("to" in man.beat(100, driving), false);
  man.release();
  assert.deepEqual([man.beat(150, { ...driving, pad: { isPrecise: true, ahead: 0.4, left: 0, jog: { arm: 1, lift: 0 } } })].map((one) => [one.ahead, one.jog, one.scale]), [[0.4, { arm: 1 }, 0.15]]);
});

test("an omni base is driven aside by a button, a key or a stick; both ways together stand", () => {
  const man = new DeadMan();
  man.hold("KeyJ", "aside-left");
  assert.equal(man.beat(0, driving).aside, 1);
  man.hold("KeyL", "aside-right");
  assert.equal("aside" in man.beat(50, driving), false);
  man.let("KeyJ");
  assert.equal(man.beat(100, driving).aside, -1);
  man.release();
  assert.equal(man.beat(150, { ...driving, pad: { aside: 0.5 } }).aside, 0.5);
  assert.equal("aside" in man.beat(200, driving), false);
});

test("to take a thing is held like any other control, and says where the thing is", () => {
  const man = new DeadMan();
  man.hold("Comma", "take");
  const at = { x_m: 1, y_m: 2, label: "cup" };
  assert.deepEqual([man.beat(0, { ...driving, goal: () => at })].map((one) => [one.to, one.do]), [[at, "take"]]);
  man.release(); man.hold("KeyG", "go");
  assert.equal(man.beat(50, { ...driving, goal: () => at }).do, "go");
});

test("a step ends by itself, a click with the next click, and neither goes on for ever", () => {
  const man = new DeadMan();
  man.press("pad", "ahead", "step", 0);
  assert.equal(man.lift("pad"), false);
  assert.equal(man.beat(0, driving).ahead, 1);
  assert.equal(man.beat(300, driving).ahead, 0);
  man.press("pad", "ahead", "click", 400);
  assert.equal(man.beat(400, driving).ahead, 1);
  man.press("pad", "ahead", "click", 500);
  assert.equal(man.beat(500, driving).ahead, 0);
  man.press("pad", "ahead", "click", 600);
  for (let now = 600; now < 10600; now += 500) assert.equal(man.beat(now, driving).ahead, 1);
  assert.equal(man.beat(10650, driving).ahead, 0);
  man.press("pad", "ahead", "click", 10700);
  man.press("other", "back", "click", 10750);
  assert.equal(man.beat(10750, driving).ahead, -1);
});

test("what is held says when, and the head follows the hand but where somebody turns it", () => {
  const man = new DeadMan(), more = { ...driving, clock: () => 77, gaze: () => ({ head_pan: 1, head_tilt: 0 }) };
  man.hold("KeyR", "+lift");
  assert.deepEqual([man.beat(0, more)].map((one) => [one.at_ms, one.goals]), [[77, { head_pan: 1, head_tilt: 0 }]]);
  man.hold("KeyJ", "+head_pan");
  assert.deepEqual(man.beat(50, more).goals, {});
  man.release();
  man.hold("pad", "pose High");
  const holds = (control) => (control === "pose High" ? { goals: { lift: 1 } } : null);
  assert.deepEqual(man.beat(100, { ...driving, holds }).goals, { lift: 1 });
});

test("over a new link the first thing told is that nothing is held, so that the next press counts", () => {
  const man = new DeadMan();
  man.hold("KeyW", "ahead");
  assert.equal(man.beat(0, driving).ahead, 1);
  man.met();
  assert.equal(man.beat(50, driving), null); // it may not drive any more
  man.hold("KeyW", "ahead");
  assert.equal(man.beat(100, { ...driving, isMine: false }), null);
  assert.deepEqual([150, 200].map((now) => man.beat(now, driving).ahead), [0, 1]);
});
