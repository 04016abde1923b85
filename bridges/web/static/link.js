// The socket: the token goes first, everything that arrives is acknowledged once it is drawn, lost links come back.
// The token of this tab: it comes in the address, and leaves the address bar once it has opened the page.
const TOKEN = "token";
const tokenNow = () => location.hash.slice(1) || (sessionStorage.getItem(TOKEN) ?? "");
const onPage = (path) => `${path}#${tokenNow()}`;
function keepToken() {
  sessionStorage.setItem(TOKEN, tokenNow());
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
      link.href = onPage(room.path);
      if (room.here) link.setAttribute("aria-current", "page");
      else {
        link.target = "_blank";
        link.rel = "noopener";
      }
      return link;
    }),
  );
}

const ASKS_MS = 5000;

/** @template {{ t: string }} Message */
export class Link {
  constructor(hooks) {
    this.hooks = hooks;
    this.pause = 500;
    this.decoder = new TextDecoder();
    addEventListener("hashchange", () => location.reload()); // another address of this page was put in
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
    socket.binaryType = "arraybuffer";
    socket.onopen = () =>
      socket.send(
        JSON.stringify({
          t: "hello",
          token,
          name: sessionStorage.getItem("name") ?? "",
          session: sessionStorage.getItem("session") ?? "",
        }),
      );
    socket.onmessage = (event) => (typeof event.data === "string" ? this.text(event.data) : this.binary(event.data));
    socket.onclose = (event) => {
      if (event.code === 4303) {
        location.replace(onPage(event.reason));
        return;
      } // the token is for another page here
      if (event.code === 4401) {
        this.hooks.cover(`Not let in: ${event.reason}`, "refused");
        return;
      }
      if (event.code === 4503) this.hooks.cover(`Not let in yet: ${event.reason}.`, "full");
      else this.hooks.cover(`The link is gone${event.reason ? ` (${event.reason})` : ""}. Trying again…`, "gone");
      setTimeout(() => this.again(), this.longer());
    };
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
      this.late();
      this.hooks.cover("");
      pages(message.pages);
      keepToken();
      this.hooks.welcome(message);
      return;
    }
    this.send({ t: "seen", n: message.n });
    this.hooks.state(message);
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

  // Whether it is on its way.
  /** @param {Message | import("/static/wire").FrameSeen} message */
  send(message) {
    if (this.isOpen) this.socket.send(JSON.stringify(message));
    else if (message.t === "estop" || (message.t === "stop" && this.waiting?.t !== "estop")) this.waiting = message;
    return this.isOpen;
  }

  // What to say to who has stopped the robot and does not see what it does.
  get isOpen() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  get stopWords() {
    return this.isOpen
      ? "The robot is told to stop."
      : "There is no link now: the robot is told to stop as soon as it is back.";
  }

  // A stop, and nothing else, that was pressed while there was no link is still meant when it is back.
  late() {
    const message = this.waiting;
    this.waiting = null;
    if (message) this.send(message);
  }
}
