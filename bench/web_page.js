// Notes for each picture when the page had it, drew it and showed it, and when the key for ahead went down.
globalThis.benchFrames = [];
globalThis.benchKeys = [];
const now = () => performance.timeOrigin + performance.now();
const headers = new WeakMap();     // of decoded pictures
let header = null;                 // of the message that is being handled

const Socket = globalThis.WebSocket;
globalThis.WebSocket = class extends Socket {
  constructor(...all) {
    super(...all);
    this.addEventListener("message", (event) => {
      if (typeof event.data === "string") return;
      const size = new DataView(event.data).getUint32(0);
      header = JSON.parse(new TextDecoder().decode(new Uint8Array(event.data, 4, size)));
      header.got = now();
    });
  }
};

const decode = globalThis.createImageBitmap;
globalThis.createImageBitmap = (...all) => {
  const mine = header;
  return decode(...all).then((made) => { headers.set(made, mine); return made; });
};

const draw = CanvasRenderingContext2D.prototype.drawImage;
CanvasRenderingContext2D.prototype.drawImage = function (source, ...all) {
  draw.call(this, source, ...all);
  const mine = headers.get(source);
  if (!mine || mine.drawn) return;
  mine.drawn = now();
  requestAnimationFrame(() => { mine.shown = now(); benchFrames.push(mine); });
};

addEventListener("keydown", (event) => { if (event.code === "KeyW" && !event.repeat) benchKeys.push(now()); }, true);
