// What moves the robot beside single joints, as pure functions: postures, looks, and motions that were recorded.
export const NEAR = 0.02,
  LAGS = 0.1,
  MOST_SAMPLES = 1200, // two minutes at ten a second
  MOST_KEPT = 24; // of each kind

const areNumbers = (values) => values.every(Number.isFinite);
const isPosture = (joints) => joints !== null && typeof joints === "object" && areNumbers(Object.values(joints));
const KINDS = {
  poses: (one) => isPosture(one.joints),
  places: (one) => areNumbers([one.x, one.y, one.heading]),
  motions: (one) =>
    Array.isArray(one.samples) &&
    one.samples.length > 1 &&
    one.samples.every((now) => now && areNumbers([now.t, now.v, now.w]) && isPosture(now.joints)),
};

// Postures, places and motions of a file that anybody may have written: what is none of them is left out.
export function libraryOf(given) {
  const fits = (kind) => (one) => typeof one?.name === "string" && one.name !== "" && KINDS[kind](one);
  return Object.fromEntries(
    Object.keys(KINDS).map((kind) => {
      const list = Array.isArray(given?.[kind]) ? given[kind] : [];
      return [kind, list.filter(fits(kind)).slice(-MOST_KEPT)];
    }),
  );
}

// The next goals on the way to a posture: what goes up goes up first, what goes down goes down last.
export function poseGoals(joints, here) {
  const { lift, ...others } = joints;
  if (lift === undefined || here.lift === undefined) return joints;
  if (lift > here.lift + NEAR) return { lift };
  const isThere = Object.entries(others).every(([name, value]) => Math.abs(value - (here[name] ?? value)) < NEAR);
  return isThere || lift >= here.lift - NEAR ? joints : others;
}

// Pan and tilt that look at a point of the base's frame; `camera` is where the axes cross.
export function gazeAt([ahead, left, up], camera) {
  const x = ahead - camera.x_m,
    y = left - camera.y_m;
  return { head_pan: Math.atan2(y, x), head_tilt: Math.atan2(up - camera.z_m, Math.hypot(x, y)) };
}

// A point of the odometry frame, seen from the base.
export function fromBase({ x, y, z }, robot) {
  const dx = x - robot.x,
    dy = y - robot.y,
    c = Math.cos(robot.heading),
    s = Math.sin(robot.heading);
  return [c * dx + s * dy, -s * dx + c * dy, z];
}

// A motion while it is recorded: postures with the time since the first, and how the base moved.
export class Recording {
  constructor() {
    this.samples = [];
    this.start = null;
  }

  add(now, joints, v, w) {
    if (this.samples.length >= MOST_SAMPLES) return false;
    this.start ??= now;
    this.samples.push({ t: Math.round(now - this.start), joints, v, w });
    return true;
  }
}

// Plays a motion while it is held: it waits for a robot that lags behind, and stands where it is let go.
export class Player {
  constructor(samples) {
    this.samples = samples;
    this.at = 0; // ms of the motion
    this.before = null;
  }

  get isOver() {
    return this.at >= (this.samples.at(-1)?.t ?? 0);
  }

  pause() {
    this.before = null;
  }

  // What to hold now; `here`: the joints as they are.
  next(now, here) {
    const target = this.sample(),
      isWith = Object.entries(target.joints).every(([name, value]) => Math.abs(value - (here[name] ?? value)) < LAGS);
    if (isWith && this.before !== null) this.at = Math.min(this.at + now - this.before, this.samples.at(-1).t);
    this.before = now;
    return isWith && !this.isOver ? target : { ...target, v: 0, w: 0 };
  }

  sample() {
    return this.samples.findLast((one) => one.t <= this.at) ?? this.samples[0];
  }
}
