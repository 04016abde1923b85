// Postures, looks, places and motions of the operator: each a button that is held; what is saved stays in this browser.
import { $, draw, html, list, once } from "/static/dom.js";
import { notice } from "/static/page.js";
import { fromBase, gazeAt, libraryOf, MOST_KEPT, Player, poseGoals, Recording } from "/static/console/moves.js";

const KEPT = "library";
const HEAD = (name) => name.startsWith("head_");

export function kept(key, empty) {
  try {
    return { ...empty, ...JSON.parse(localStorage.getItem(key) ?? "{}") };
  } catch {
    return empty;
  }
}

export class Library {
  // robot(): as it is now; thing(): what is selected; attach(buttons): makes them controls that are held.
  constructor(welcome, robot, thing, attach) {
    this.welcome = welcome;
    this.robot = robot;
    this.thing = thing;
    this.attach = attach;
    this.own = libraryOf(kept(KEPT, {}));
    this.isFollowing = false;
    this.recording = null;
    this.players = new Map();
    $("#follow").onclick = () => {
      this.isFollowing = !this.isFollowing;
      $("#follow").setAttribute("aria-checked", String(this.isFollowing));
    };
    $("#keep-pose").onclick = () =>
      this.keep("poses", (robot, name) => ({
        name,
        joints: Object.fromEntries(Object.entries(this.joints(robot)).filter(([one]) => !HEAD(one))),
      }));
    $("#keep-place").onclick = () =>
      this.keep("places", (robot, name) => ({ name, x: robot.x, y: robot.y, heading: robot.heading }));
    $("#record").onclick = () => this.record();
    this.draw();
  }

  joints(robot) {
    return Object.fromEntries(this.welcome.joints.map((joint, place) => [joint.name, robot.position[place]]));
  }

  get shipped() {
    return this.welcome.poses ?? [];
  }

  name(list) {
    const given = $("#library-name").value.trim().slice(0, 24);
    $("#library-name").value = "";
    return given || `${{ poses: "Posture", places: "Place", motions: "Motion" }[list]} ${this.own[list].length + 1}`;
  }

  keep(list, of) {
    const robot = this.robot();
    if (!robot) return;
    this.add(list, of(robot, this.name(list)));
  }

  add(list, one) {
    this.own[list] = [...this.own[list].filter((other) => other.name !== one.name), one].slice(-MOST_KEPT);
    this.save();
    notice(`“${one.name}” is kept in this browser.`);
  }

  forget(kind, name) {
    this.own[kind] = this.own[kind].filter((one) => one.name !== name);
    this.save();
  }

  save() {
    localStorage.setItem(KEPT, JSON.stringify(this.own));
    this.draw();
  }

  // All of it, to be written to a file and read from one.
  get document() {
    return this.own;
  }

  set document(given) {
    this.own = libraryOf(given);
    this.save();
  }

  record() {
    const before = this.recording;
    this.recording = before ? null : new Recording();
    $("#record").setAttribute("aria-pressed", String(!before));
    $("#record").textContent = before ? "Record" : "End";
    if (before?.samples.length > 1) this.add("motions", { name: this.name("motions"), samples: before.samples });
  }

  // Each state of the robot.
  show(robot) {
    if (!this.recording) return;
    if (!this.recording.add(performance.now(), this.joints(robot), robot.v, robot.w)) this.record();
  }

  draw() {
    const { own, shipped } = this,
      looks = shipped.filter((one) => Object.keys(one.joints).every(HEAD)),
      held = (control, name) => html`<button type="button" data-hold=${control}>${name}</button>`,
      poses = (these) =>
        list(
          these,
          (one) => one.name,
          (one) => held(`pose ${one.name}`, one.name),
        ),
      kept = (control, kind) =>
        list(
          own[kind],
          (one) => one.name,
          ({ name }) =>
            html`<span class="pair">${held(`${control} ${name}`, name)}<button type="button" class="away" aria-label=${`Forget ${name}`} @click=${once(() => this.forget(kind, name))}>×</button></span>`,
        );
    draw("#looks", html`${poses(looks)}${held("look hand", "Hand")}${held("look thing", "Selected")}`);
    draw("#poses", html`${poses(shipped.filter((one) => !looks.includes(one)))}${kept("pose", "poses")}`);
    draw("#places", kept("place", "places"));
    draw("#motions", kept("play", "motions"));
    this.attach([.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("#library [data-hold]"))]);
  }

  // What one of these controls adds to what is held now; null for other controls.
  holds(control, now, scale) {
    const robot = this.robot(),
      [kind, ...rest] = control.split(" "),
      name = rest.join(" ");
    if (!robot || !["pose", "look", "place", "play"].includes(kind)) return null;
    if (kind === "pose") {
      const pose = [...this.own.poses, ...this.shipped].find((one) => one.name === name);
      return pose ? { goals: poseGoals(pose.joints, this.joints(robot)) } : null;
    }
    if (kind === "look") {
      const thing = this.thing();
      if (name === "thing" && !thing) {
        notice("select a thing first");
        return null;
      }
      return { goals: gazeAt(name === "hand" ? robot.hand : fromBase(thing, robot), this.welcome.head_camera) };
    }
    if (kind === "place") {
      const place = this.own.places.find((one) => one.name === name);
      return place ? { to: { x_m: place.x, y_m: place.y, heading_rad: place.heading } } : null;
    }
    return this.plays(name, robot, now, scale);
  }

  plays(name, robot, now, scale) {
    const motion = this.own.motions.find((one) => one.name === name);
    if (!motion) return null;
    let player = this.players.get(name);
    if (!player) this.players.set(name, (player = new Player(motion.samples)));
    const { joints, v, w } = player.next(now, this.joints(robot)),
      most = this.welcome.base_speed,
      share = (value, top) => Math.max(-1, Math.min(1, top ? value / (top * scale) : 0));
    return { goals: joints, ahead: share(v, most.v_mps), left: share(w, most.w_radps) };
  }

  letGo() {
    for (const [name, player] of this.players) {
      if (player.isOver) this.players.delete(name);
      else player.pause();
    }
  }

  // While the hand is followed, the head looks at it as long as anything else is held.
  gaze() {
    const robot = this.robot();
    return this.isFollowing && robot?.hand ? gazeAt(robot.hand, this.welcome.head_camera) : null;
  }
}
