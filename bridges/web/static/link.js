// The socket: everything that arrives is acknowledged once it is drawn, what is pressed is acknowledged by the server, and a link
// that is gone, or only silent, comes back.
// This tab's way in: the code of an address, which leaves the address bar, and then the key that was given for it. A page that is
// opened from another one finds that one's key where it was left for it a moment ago.
const TOKEN = "token",
  PASS = "pass",
  PASS_MS = 20000;
function passed() {
  const [key, at] = JSON.parse(globalThis.localStorage?.getItem(PASS) ?? "[]");
  globalThis.localStorage?.removeItem(PASS);
  return key && Date.now() - at < PASS_MS ? key : "";
}
const keyNow = () => sessionStorage.getItem(TOKEN) ?? "";
const tokenNow = () => location.hash.slice(1) || keyNow();
function keep(token) {
  sessionStorage.setItem(TOKEN, token);
  history.replaceState(null, "", location.pathname);
}

// The other pages of the same address that this person may enter; each opens beside this one, which may be driving.
function pages(list) {
  const nav = /** @type {HTMLElement} */ (document.querySelector("#pages"));
  if (!nav) return;
  nav.hidden = !list.length;
  nav.replaceChildren(
    ...list.map((room) => {
      const link = document.createElement("a");
      link.textContent = room.title;
      link.href = room.path;
      if (room.here) link.setAttribute("aria-current", "page");
      else {
        link.target = "_blank";
        link.rel = "noopener";
        for (const way of ["pointerdown", "click", "contextmenu"])
          link.addEventListener(way, () => localStorage.setItem(PASS, JSON.stringify([keyNow(), Date.now()])));
      }
      return link;
    }),
  );
}

const ASKS_MS = 5000,
  LOOKS_MS = 250,
  STOOD_MS = 1500; // the page itself has stood still for longer: what came meanwhile is still to be read
export const SILENT_MS = 2000; // states come ten times a second
const OPENS_MS = 5000;
const STREAM = new Set(["hello", "seen", "watch", "drive", "talk", "sound", "talked", "seek"]); // said all the time, or good for a moment only
const STOPS = new Set(["stop", "estop"]);
// Half an emoji, as a text that was cut may end with, is no character that the server could take.
const whole = (_, value) => (typeof value === "string" ? (value.toWellFormed?.() ?? value) : value);

/** @template {{ t: string }} Message */
export class Link {
  // hooks: cover(text, kind), welcome(message), state(message), frame(header, bitmap), and where a page has them lost(message) for
  // what was pressed and never done, told(kind) for a stop: "sent", "told" once the guard says so, "nobody" without a guard.
  constructor(hooks) {
    this.hooks = hooks;
    this.pause = 500;
    this.decoder = new TextDecoder();
    this.page = String(Math.random()).slice(2); // this loading of the page
    this.count = Date.now();
    this.pending = new Map(); // number of a press -> [message, outcome], until the server says what became of it
    this.stopping = 0; // the press of a stop of which the guard has said nothing yet
    this.heardAt = this.lookedAt = performance.now();
    if (!tokenNow()) sessionStorage.setItem(TOKEN, passed());
    addEventListener("hashchange", () => location.reload()); // another address of this page was put in
    /** @type {any} */ (setInterval(() => this.look(performance.now()), LOOKS_MS)).unref?.(); // of node
    this.open();
  }

  open() {
    const token = tokenNow();
    if (!token) {
      this.hooks.cover("This address lacks its token. Take the whole address that the run printed.", "token");
      return;
    }
    const socket = (this.socket = new WebSocket(
      `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${location.pathname.replace(/\/+$/, "")}/socket`,
    ));
    this.isIn = false;
    this.heardAt = performance.now();
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      const hello = { t: "hello", token, name: sessionStorage.getItem("name") ?? "", page: this.page, key: keyNow() };
      socket.send(JSON.stringify(hello));
    };
    socket.onmessage = (event) => {
      this.heardAt = performance.now();
      if (typeof event.data === "string") this.text(event.data);
      else this.binary(event.data);
    };
    socket.onclose = (event) => {
      if (event.code === 4303) {
        sessionStorage.setItem(TOKEN, token);
        location.replace(event.reason);
        return;
      } // the token is for another page here
      if (event.code === 4401) {
        this.hooks.cover(`Not let in: ${event.reason}`, "refused");
        this.settle(-1);
        return;
      }
      if (event.code === 4503) this.hooks.cover(`Not let in yet: ${event.reason}.`, "full");
      else this.hooks.cover(`The link is gone${event.reason ? ` (${event.reason})` : ""}. Trying again…`, "gone");
      setTimeout(() => this.again(), this.longer());
    };
  }

  // A link over which nothing comes is given up: half open, it would seem good for as long as a minute.
  look(now) {
    const hasStood = now - this.lookedAt > STOOD_MS;
    this.lookedAt = now;
    const isDead = now - this.heardAt > (this.isIn ? SILENT_MS : OPENS_MS);
    if (hasStood || !isDead || !this.socket || this.socket.readyState > 1) return;
    this.socket.onclose = this.socket.onmessage = this.socket.onopen = null;
    this.socket.close();
    this.socket = null;
    this.isIn = false;
    this.hooks.cover("Nothing comes over the link any more. Trying again…", "gone");
    this.again();
  }

  // Firefox holds each next try of a socket back for longer, up to a minute: so something small is asked for until it comes.
  async again() {
    try {
      await fetch("/static/icon.svg", { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(ASKS_MS) });
    } catch {
      setTimeout(() => this.again(), this.longer());
      return;
    }
    this.open();
  }

  longer() {
    const pause = this.pause;
    this.pause = Math.min(5000, pause * 1.6);
    return pause;
  }

  text(data) {
    const message = JSON.parse(data);
    if (message.t === "welcome") {
      this.pause = 500;
      this.isIn = true;
      this.hooks.cover("");
      pages(message.pages);
      keep(message.key ?? tokenNow());
      this.settle(message.heard ?? 0);
      this.hooks.welcome(message);
      return;
    }
    this.send({ t: "seen", n: message.n });
    for (const [press, why] of message.acks ?? []) {
      const [, outcome] = this.pending.get(press) ?? [];
      this.pending.delete(press);
      if (why) (outcome?.refused ?? outcome?.lost)?.(why);
      else outcome?.done?.();
    }
    this.isStopped(message.stopped ?? null);
    this.hooks.state(message);
  }

  // A link is there again: presses up to that number were done, a stop among the others is still meant, the rest is lost.
  settle(heard) {
    const late = [...this.pending];
    this.pending.clear();
    for (const [press, [message, outcome]] of late)
      if (press <= heard) outcome.done?.();
      else if (STOPS.has(message.t) && heard >= 0) this.waiting = this.waiting?.t === "estop" ? this.waiting : message;
      else this.lose(message, outcome);
    const message = this.waiting;
    this.waiting = null;
    if (message && heard >= 0) this.send(message);
  }

  lose(message, outcome) {
    outcome.lost?.();
    this.hooks.lost?.(message);
  }

  // The guard's word on a stop that was pressed here.
  isStopped(now) {
    if (!this.stopping || this.pending.has(this.stopping) || now === false) return;
    this.stopping = 0;
    this.hooks.told?.(now ? "told" : "nobody");
  }

  async binary(data) {
    const size = new DataView(data).getUint32(0),
      header = JSON.parse(this.decoder.decode(new Uint8Array(data, 4, size)));
    /** @type {import("/static/wire").FrameSeen} */
    const seen = { t: "seen", n: header.n, camera: header.camera }; // the page may rename it
    try {
      this.hooks.frame(
        header,
        await createImageBitmap(new Blob([new Uint8Array(data, 4 + size)], { type: "image/jpeg" })),
      );
    } finally {
      this.send(seen);
    }
  }

  // What a person does has a number and an outcome, { done(), refused(why), lost() }; the rest is sent and forgotten.
  /** @param {Message | import("/static/wire").FrameSeen} message @param {{ done?: () => void, refused?: (why: string) => void, lost?: () => void }} outcome */
  send(message, outcome = {}) {
    const isStop = STOPS.has(message.t);
    if (STREAM.has(message.t)) {
      if (this.isOpen) this.socket.send(JSON.stringify(message, whole));
      return this.isOpen;
    }
    if (this.isOpen) {
      const press = (this.count += 1);
      this.pending.set(press, [message, outcome]);
      if (isStop) this.stopping = press;
      this.socket.send(JSON.stringify({ ...message, press }, whole));
    } else if (isStop) {
      if (this.waiting?.t !== "estop") this.waiting = message;
    } else this.lose(message, outcome);
    if (isStop) this.hooks.told?.(this.isOpen ? "sent" : "late");
    return this.isOpen;
  }

  get isOpen() {
    return this.isIn && this.socket?.readyState === WebSocket.OPEN;
  }
}
