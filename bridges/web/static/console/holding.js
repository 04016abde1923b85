// Keys, pointers, sliders and a gamepad as the hands of the dead-man's switch: what is held is sent again every 50 ms.
import { DeadMan, PERIOD_MS } from "/static/console/deadman.js";
import { hasKeys, keyOf } from "/static/keyboard.js";
import { awayFrom } from "/static/dom.js";

const KEYS = {
  w: "ahead",
  s: "back",
  a: "left",
  d: "right",
  r: "+lift",
  f: "-lift",
  e: "+arm",
  q: "-arm",
  x: "+wrist_yaw",
  z: "-wrist_yaw",
  o: "+gripper",
  c: "-gripper",
  "]": "+wrist_roll",
  "[": "-wrist_roll",
  j: "+head_pan",
  l: "-head_pan",
  i: "+head_tilt",
  k: "-head_tilt",
};
export const keyFor = (control) => Object.keys(KEYS).find((key) => KEYS[key] === control);
const HAND_KEYS = {
  w: "hand+ahead",
  s: "hand-ahead",
  a: "hand+left",
  d: "hand-left",
  r: "hand+up",
  f: "hand-up",
  e: "hand+pitch",
  q: "hand-pitch",
  x: "hand+yaw",
  z: "hand-yaw",
};
const ARROWS = { ArrowUp: "w", ArrowDown: "s", ArrowLeft: "a", ArrowRight: "d" }; // as these keys, whatever is chosen
const ASIDE_KEYS = { j: "aside-left", l: "aside-right" }; // of an omni base below no head
const GOALS = { g: "go", ",": "take", ".": "put" }; // comma and full stop are on every layout, without Shift
// Of a slider's keys, in hundredths of its range: by themselves, Firefox's arrows go by whole metres and radians.
const SLIDER_KEYS = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10 };
const STICK_DEAD = 0.12;
// The standard gamepad's buttons: nothing moves without the right shoulder button.
const PAD = { stop: 1, hand: 3, hold: 5, precise: 6, resume: 9, up: 12, down: 13, left: 14, right: 15 };

export class Holding {
  // mine(): whether this page drives; scale(): the speed preset; goal(): where "go there" goes; hooks: stop(), resume(), hand(on), isAside(), and
  // refused(), where somebody would drive who may not.
  constructor(link, mine, scale, goal, hooks) {
    this.link = link;
    this.mine = mine;
    this.scale = scale;
    this.goal = goal;
    this.hooks = hooks;
    this.man = new DeadMan();
    this.padBefore = {};
    setInterval(() => this.beat(), PERIOD_MS);
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("keyup", (event) => {
      if (event.key === "Shift") this.man.isPrecise = false;
      this.let(event.code);
    });
    addEventListener("contextmenu", () => this.release()); // a menu keeps the key-ups to itself
    addEventListener("freeze", () => this.release());
    addEventListener("gamepaddisconnected", () => this.beat());
  }

  attach(buttons, sliders) {
    for (const button of buttons) {
      const by = `pointer ${button.dataset.hold}`;
      button.onpointerdown = (event) => {
        button.setPointerCapture(event.pointerId);
        this.press(by, button.dataset.hold);
      };
      button.onpointerup = button.onpointercancel = button.onlostpointercapture = () => this.lift(by);
      button.onpointermove = (event) => {
        if (awayFrom(button, event) > 0) this.lift(by);
      };
      button.oncontextmenu = (event) => event.preventDefault();
      button.onkeydown = (event) => {
        if (event.key === "Enter" && !event.repeat) {
          event.preventDefault();
          this.press(by, button.dataset.hold);
        }
      };
      button.onkeyup = (event) => {
        if (event.key === "Enter") this.lift(by);
      };
      button.onblur = () => this.let(by);
    }
    for (const slider of sliders) {
      const joint = slider.dataset.joint,
        on = () => {
          if (!this.mine()) {
            this.hooks.refused();
            return;
          }
          this.man.goals.set(joint, Number(slider.value));
          this.beat();
        },
        off = () => {
          if (this.man.goals.delete(joint)) this.beat();
        };
      slider.onpointerdown = () => {
        slider.dataset.down = "1";
      };
      slider.oninput = on;
      slider.onkeydown = (event) => {
        const way = SLIDER_KEYS[event.key];
        if (!way || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        slider.value = String(Number(slider.value) + (way * (slider.max - slider.min)) / 100);
        on();
      };
      slider.onpointerup = slider.onpointercancel = slider.onblur = slider.onkeyup = off;
    }
  }

  isGoal(joint) {
    return this.man.goals.has(joint);
  }

  get isDoubted() {
    return this.man.isDoubted;
  }

  get isHand() {
    return this.man.isHand;
  }

  key(event) {
    if (["Meta", "Alt", "Control"].includes(event.key)) {
      this.release();
      return;
    } // systems swallow key-ups beside these
    const element = event.target,
      isField =
        element instanceof HTMLInputElement ||
        element instanceof HTMLTextAreaElement ||
        element instanceof HTMLSelectElement;
    const isArrow = event.code.startsWith("Arrow");
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      (isField && ((element.type !== "radio" && element.type !== "range") || isArrow)) ||
      (isArrow && element.id === "story")
    )
      return;
    if (event.key === "Shift") {
      this.man.isPrecise = true;
      return;
    }
    const key = ARROWS[event.key] ?? keyOf(event);
    if (!isArrow && !hasKeys()) return;
    if (key === "h" && this.mine() && !event.repeat) {
      this.setHand(!this.isHand);
      return;
    }
    const aside = this.hooks.isAside() && ASIDE_KEYS[key];
    const control = GOALS[key] ?? ((this.isHand && HAND_KEYS[key]) || aside || KEYS[key]);
    if (!control) return;
    if (!this.mine()) {
      if (!event.repeat) this.hooks.refused();
      return;
    }
    event.preventDefault();
    if (!event.repeat) this.hold(event.code, control);
  }

  begin(act) {
    if (!this.mine()) {
      this.hooks.refused();
      return;
    }
    act();
    this.mark();
    this.beat();
  }
  hold(by, control) {
    this.begin(() => this.man.hold(by, control));
  }
  press(by, control) {
    this.begin(() => this.man.press(by, control, this.hooks.way(), performance.now()));
  }
  lift(by) {
    if (this.man.lift(by)) this.changed();
  }
  let(by) {
    if (this.man.let(by)) this.changed();
  }
  changed() {
    if (!this.man.controls.size) this.hooks.letGo();
    this.mark();
    this.beat();
  }
  release() {
    this.man.release();
    this.changed();
  }
  met() {
    this.man.met();
    this.changed();
  }
  setHand(on) {
    this.release();
    this.man.isHand = on;
    this.hooks.hand(on);
  }

  mark() {
    const held = this.man.controls;
    for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-hold]")))
      if (button.classList.contains("held") !== held.has(button.dataset.hold)) button.classList.toggle("held");
  }

  pad() {
    const pad = [...(navigator.getGamepads?.() ?? [])].find((one) => one?.connected && one.mapping === "standard");
    const pressed = (name) => Boolean(pad?.buttons[PAD[name]]?.pressed);
    const isNew = (name) => pressed(name) && !this.padBefore[name];
    if (isNew("stop")) this.hooks.stop("gamepad");
    if (isNew("resume")) this.hooks.resume();
    if (isNew("hand") && this.mine()) this.setHand(!this.isHand);
    this.padBefore = { stop: pressed("stop"), hand: pressed("hand"), resume: pressed("resume") };
    if (!pressed("hold")) return null;
    const stick = (axis) => (Math.abs(pad.axes[axis]) < STICK_DEAD ? 0 : -pad.axes[axis]);
    const way = (more, less) => Number(pressed(more)) - Number(pressed(less));
    const jog = { gripper: way("right", "left") },
      isPrecise = pressed("precise");
    if (this.isHand)
      return {
        isPrecise,
        jog,
        hand: { ahead: stick(1), left: stick(0), up: stick(3), yaw: stick(2), pitch: way("up", "down") },
      };
    return {
      isPrecise,
      ahead: stick(1),
      left: stick(0),
      ...(this.hooks.isAside() ? { aside: stick(2) } : {}),
      jog: { ...jog, lift: stick(3), head_pan: this.hooks.isAside() ? 0 : stick(2), arm: way("up", "down") },
    };
  }

  beat() {
    const wasNew = this.man.isNew;
    const drive = this.man.beat(performance.now(), {
      isMine: this.mine(),
      isHidden: document.hidden,
      scale: this.scale(),
      pad: this.pad(),
      goal: this.goal,
      camera: this.hooks.camera(),
      holds: this.hooks.holds,
      gaze: this.hooks.gaze,
      clock: this.hooks.clock,
    });
    this.mark();
    if (drive) this.link.send(drive);
    if (wasNew && !this.man.isNew) this.beat(); // "nothing is held" came first; a short tap would end before the next
  }
}
