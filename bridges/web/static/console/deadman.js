// The dead-man's switch: what is held now, and the message that says so. No page and no clock of its own.
export const PERIOD_MS = 50,
  FROZEN_MS = 1000,
  PRECISE = 0.15;

export class DeadMan {
  constructor() {
    this.held = new Map(); // what holds (a key, a pointer) -> control
    this.goals = new Map(); // joint -> value
    this.isHand = false;
    this.isPrecise = false;
    this.wasSending = false;
    this.beatAt = null;
    this.isDoubted = false; // the page stood still while something was held: it counts no more until it is pressed again
  }

  hold(by, control) {
    this.held.set(by, control);
    this.isDoubted = false;
  }

  let(by) {
    this.isDoubted = false;
    return this.held.delete(by);
  }

  release() {
    this.held.clear();
    this.goals.clear();
    this.isPrecise = false;
    this.isDoubted = false;
  }

  get controls() {
    return new Set(this.held.values());
  }

  // What to send now, or null. `pad`: what a gamepad holds, or null; `goal()`: where "go there" goes, or null.
  beat(now, { isMine, isHidden, scale, pad, goal, camera = "head" }) {
    if (this.beatAt !== null && now - this.beatAt > FROZEN_MS) {
      // the page stood still: nobody knows what is held
      const wasHeld = this.held.size > 0 || this.goals.size > 0;
      this.release();
      this.isDoubted = wasHeld;
    }
    this.beatAt = now;
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
    };
    if (!isHeld) return drive;
    drive.ahead = Number(held.has("ahead")) - Number(held.has("back")) || pad?.ahead || 0;
    drive.left = Number(held.has("left")) - Number(held.has("right")) || pad?.left || 0;
    for (const [joint, value] of Object.entries(pad?.jog ?? {})) if (value) drive.jog[joint] = value;
    for (const [way, value] of Object.entries(pad?.hand ?? {})) if (value) drive.hand[way] = value;
    for (const control of held) {
      if (control.startsWith("hand")) drive.hand[control.slice(5)] = control[4] === "+" ? 1 : -1;
      else if (control[0] === "+" || control[0] === "-") drive.jog[control.slice(1)] = control[0] === "+" ? 1 : -1;
    }
    if (held.has("go") || held.has("grasp")) {
      const to = goal();
      if (to) {
        drive.to = to;
        drive.is_grasp = held.has("grasp");
      }
    }
    drive.goals = Object.fromEntries(this.goals);
    return drive;
  }
}
