import assert from "node:assert/strict";
import test from "node:test";
import { fromBase, gazeAt, libraryOf, MOST_KEPT, MOST_SAMPLES, Player, poseGoals, Recording } from "./moves.js";

test("what goes up goes up first, and what goes down goes down last", () => {
  const pose = { lift: 0.8, arm: 0.2 };
  assert.deepEqual(poseGoals(pose, { lift: 0.3, arm: 0.0 }), { lift: 0.8 });
  assert.deepEqual(poseGoals(pose, { lift: 0.79, arm: 0.0 }), pose);
  assert.deepEqual(poseGoals(pose, { lift: 1.0, arm: 0.0 }), { arm: 0.2 });
  assert.deepEqual(poseGoals(pose, { lift: 1.0, arm: 0.2 }), pose);
  assert.deepEqual(poseGoals({ head_pan: 1 }, { lift: 1.0 }), { head_pan: 1 });
});

test("the head looks at a point of the base's frame, and a thing stands there wherever the base is", () => {
  const camera = { x_m: 0, y_m: 0, z_m: 1 };
  const { head_pan, head_tilt } = gazeAt([0, -1, 0], camera);
  assert.deepEqual([head_pan, head_tilt].map((one) => one.toFixed(3)), [(-Math.PI / 2).toFixed(3), (-Math.PI / 4).toFixed(3)]);
  const seen = fromBase({ x: 1, y: 1, z: 0.5 }, { x: 1, y: 0, heading: Math.PI / 2 });
  assert.deepEqual(seen.map((one) => Number(one.toFixed(6))), [1, 0, 0.5]);
});

test("a motion is played as it was recorded, waits for a robot that lags, and stands where it is let go", () => {
  const recording = new Recording();
  for (const [now, lift] of [[5000, 0.1], [5100, 0.15], [5200, 0.2]]) recording.add(now, { lift }, 0.1, 0);
  const player = new Player(recording.samples);
  assert.deepEqual(player.next(0, { lift: 0.1 }), { t: 0, joints: { lift: 0.1 }, v: 0.1, w: 0 });
  player.next(100, { lift: 0.1 });
  assert.equal(player.sample().joints.lift, 0.15);
  const lagging = player.next(200, { lift: 0.6 });
  assert.deepEqual([lagging.joints.lift, lagging.v], [0.15, 0]);
  player.pause();
  player.next(9000, { lift: 0.15 });
  assert.equal(player.at, 100);
  player.next(9100, { lift: 0.15 });
  assert.equal(player.isOver, true);
  assert.equal(player.next(9200, { lift: 0.2 }).v, 0);
});

test("a recording ends by itself", () => {
  const recording = new Recording();
  for (let now = 0; now < MOST_SAMPLES; now++) assert.equal(recording.add(now, {}, 0, 0), true);
  assert.equal(recording.add(1e9, {}, 0, 0), false);
});

test("of a file that anybody may have written, what is no posture, place or motion is left out", () => {
  const pose = { name: "up", joints: { lift: 0.8 } }, place = { name: "door", x: 0, y: 1, heading: 0 };
  const motion = { name: "wave", samples: [{ t: 0, joints: {}, v: 0, w: 0 }, { t: 100, joints: { lift: 1 }, v: 0, w: 0 }] };
  const whole = { poses: [pose], places: [place], motions: [motion] };
  assert.deepEqual(libraryOf(whole), whole);
  for (const given of [null, 7, "x", [], { poses: 5, places: {}, motions: null }, {
    poses: [null, 1, {}, { name: "x" }, { name: "", joints: {} }, { name: "x", joints: { lift: "up" } }],
    places: [{ name: "x", x: 0, y: 0 }, { name: "x", x: NaN, y: 0, heading: 0 }],
    motions: [{ name: "x", samples: [] }, { name: "x", samples: [1, 2] }, { name: "x", samples: [motion.samples[0], { t: 1 }] }],
  }]) assert.deepEqual(libraryOf(given), { poses: [], places: [], motions: [] });
  assert.equal(libraryOf({ poses: Array.from({ length: 99 }, (_, place) => ({ ...pose, name: `${place}` })) }).poses.length, MOST_KEPT);
});
