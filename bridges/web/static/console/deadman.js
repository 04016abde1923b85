// The dead-man's switch: what is held now, and the message that says so. No page and no clock of its own.
export const PERIOD_MS = 50,
  FROZEN_MS = 1000,
  PRECISE = 0.15;

export const STEP_MS = 250,
  CLICK_MS = 10000;

export class DeadMan {
  constructor() {
    this.held = new Map(); // what holds (a key, a pointer) -> control
    this.goals = new Map(); // joint -> value
    this.ends = new Map(); // what holds by itself -> until when
    this.isHand = false;
    this.isPrecise = false;
    this.wasSending = false;
    this.isNew = false; // the link: what was held before it is let go, and the console has not heard so
    this.beatAt = null;
    this.isDoubted = false; // the page stood still while something was held: it counts no more until it is pressed again
  }

  hold(by, control) {
    this.held.set(by, control);
    this.isDoubted = false;
  }

  let(by) {
    this.isDoubted = false;
    this.ends.delete(by);
    return this.held.delete(by);
  }

  // A press by hand: held until it is let go, for one step, or from click to click (and never for longer than that).
  press(by, control, way, now) {
    const wasOn = this.ends.has(by);
    for (const other of [...this.ends.keys()]) this.let(other);
    if (way === "click" && wasOn) return;
    this.hold(by, control);
    if (way !== "hold") this.ends.set(by, now + (way === "step" ? STEP_MS : CLICK_MS));
  }

  // The end of that press; a step and a click go on.
  lift(by) {
    return this.ends.has(by) ? false : this.let(by);
  }

  // Another link: nothing is held any more.
  met() {
    this.release();
    this.wasSending = false;
    this.isNew = true;
  }

  release() {
    this.held.clear();
    this.ends.clear();
    this.goals.clear();
    this.isPrecise = false;
    this.isDoubted = false;
  }

  get controls() {
    return new Set(this.held.values());
  }

  // What to send now, or null. `pad`: what a gamepad holds, or null; `goal()`: where "go there" goes, or null.
  // `holds(control)`: what a control of the library adds; `gaze()`: where the head looks meanwhile, or null;
  // `clock()`: the console's time, by which a message that comes late is refused.
  beat(
    now,
    {
      isMine,
      isHidden,
      scale,
      pad,
      goal,
      camera = "head",
      holds = (_control, _now, _scale) => null,
      gaze = () => null,
      clock = () => 0,
    },
  ) {
    if (this.beatAt !== null && now - this.beatAt > FROZEN_MS) {
      // the page stood still: nobody knows what is held
      const wasHeld = this.held.size > 0 || this.goals.size > 0;
      this.release();
      this.isDoubted = wasHeld;
    }
    this.beatAt = now;
    for (const [by, end] of this.ends) if (now >= end) this.let(by);
    const held = this.controls;
    const isHeld = isMine && !isHidden && (held.size > 0 || this.goals.size > 0 || pad !== null);
    if (!isHeld && !this.wasSending) return null;
    this.wasSending = isHeld; // the last one, with nothing held, brakes at once
    /** @type {import("/static/wire").Drive} */
    const drive = {
      t: "drive",
      scale: this.isPrecise || pad?.isPrecise ? Math.min(PRECISE, scale) : scale,
      ahead: 0,
      left: 0,
      jog: {},
      goals: {},
      hand: {},
      camera,
      at_ms: clock(),
    };
    if (!isHeld) return drive;
    if (this.isNew) {
      this.isNew = false;
      return drive;
    }
    drive.ahead = Number(held.has("ahead")) - Number(held.has("back")) || pad?.ahead || 0;
    drive.left = Number(held.has("left")) - Number(held.has("right")) || pad?.left || 0;
    const aside = Number(held.has("aside-left")) - Number(held.has("aside-right")) || pad?.aside || 0;
    if (aside) drive.aside = aside;
    for (const [joint, value] of Object.entries(pad?.jog ?? {})) if (value) drive.jog[joint] = value;
    for (const [way, value] of Object.entries(pad?.hand ?? {})) if (value) drive.hand[way] = value;
    for (const control of held) {
      const more = holds(control, now, drive.scale);
      if (more) {
        Object.assign(drive.goals, more.goals);
        drive.ahead ||= more.ahead ?? 0;
        drive.left ||= more.left ?? 0;
        if (more.to) drive.to = more.to;
      } else if (control.startsWith("hand")) drive.hand[control.slice(5)] = control[4] === "+" ? 1 : -1;
      else if (control[0] === "+" || control[0] === "-") drive.jog[control.slice(1)] = control[0] === "+" ? 1 : -1;
    }
    const act = /** @type {const} */ (["put", "take", "go"]).find((one) => held.has(one)),
      to = act && goal();
    if (to) {
      drive.to = to;
      drive.do = act;
    }
    Object.assign(drive.goals, Object.fromEntries(this.goals));
    const look = gaze();
    if (look && !Object.keys({ ...drive.goals, ...drive.jog }).some((name) => name.startsWith("head_")))
      Object.assign(drive.goals, look);
    return drive;
  }
}
