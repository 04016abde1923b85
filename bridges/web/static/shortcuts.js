// Keys as state machines: no page, no clock of its own, so that they are tested without a browser.
export const ESCAPES_MS = 700,
  HOLD_MS = 500,
  QUICK_MS = 300; // what is typed without a field to go to is never held for so long

// What a key writes: by the layout, or by its place where the layout writes no Latin letter or digit there.
export function letterOf({ key, code, shiftKey = false }) {
  if (key.length !== 1) return key;
  if (/^[a-z0-9]$/i.test(key)) return key.toLowerCase();
  const place = /^(?:Key([A-Z])|Digit([0-9]))$/.exec(code ?? "");
  if (place?.[1] && /\p{L}/u.test(key)) return place[1].toLowerCase();
  if (place?.[2] && !shiftKey) return place[2];
  return key;
}

// A key with what is held beside it, as a file of sentences names it: "alt+y", "ctrl+shift+k", "F4"; "" for a plain key.
export function chordOf(event) {
  const key = letterOf(event).replace(/^[A-Z]$/, (one) => one.toLowerCase()),
    beside = [
      event.ctrlKey && "ctrl",
      event.altKey && "alt",
      event.shiftKey && "shift",
      event.metaKey && "meta",
    ].filter(Boolean);
  if (/^F\d+$/.test(key)) return [...beside, key].join("+");
  if (!beside.some((one) => one !== "shift") || key.length !== 1) return "";
  const place = /^(?:Key([A-Z])|Digit([0-9]))$/.exec(event.code ?? ""); // Alt writes other letters on some systems
  return [...beside, /^[a-z0-9]$/.test(key) ? key : (place?.[1]?.toLowerCase() ?? place?.[2] ?? key)].join("+");
}

// Escape twice in a short time.
export class EscapeTwice {
  constructor() {
    this.at = -Infinity;
  }

  press(now) {
    const isSecond = now - this.at <= ESCAPES_MS;
    this.at = isSecond ? -Infinity : now;
    return isSecond;
  }
}

// A key that does something only once it has been held: what is typed by accident never is.
export class HeldKey {
  constructor() {
    this.forget();
  }

  forget() {
    this.act = null;
    this.code = "";
    this.at = this.after = 0;
  }

  down(code, act, now, after = HOLD_MS) {
    this.code = code;
    this.act = act;
    this.at = now;
    this.after = after;
  }

  // Let go: true where it was too short.
  up(code) {
    if (!this.act || code !== this.code) return false;
    this.forget();
    return true;
  }

  // What is due, once.
  due(now) {
    if (!this.act || now - this.at < this.after) return null;
    const act = this.act;
    this.forget();
    return act;
  }
}

// A digit with Alt beside it is meant at once.
export const meantDigit = (event) =>
  event.altKey && !event.ctrlKey && !event.metaKey ? (/^Digit(\d)$/.exec(event.code ?? "")?.[1] ?? "") : "";

// What single keys do on a page, by the key that does it where nobody has chosen another.
const CONSOLE = {
  w: "Ahead",
  s: "Back",
  a: "Left",
  d: "Right",
  r: "Lift up",
  f: "Lift down",
  e: "Arm out",
  q: "Arm in",
  z: "Wrist right",
  x: "Wrist left",
  "[": "Wrist rolls left",
  "]": "Wrist rolls right",
  o: "Open the fingers",
  c: "Close the fingers",
  j: "Look left, or drive to the left",
  l: "Look right, or drive to the right",
  i: "Look up",
  k: "Look down",
  h: "Keys move hand or base",
  g: "Go there",
  ",": "Take it",
  ".": "Put it there",
  p: "Take or give back driving",
  y: "Resume",
  n: "Nod",
  b: "Shake the head",
  u: "Look at the selected thing",
  t: "Point at the selected thing",
  v: "Talk",
  m: "Mark",
  "/": "Go to the text field",
};
const STUDY = { t: "Start or end the trial", m: "Mark", n: "Write a note", v: "Talk" };
const RECORDINGS = { "[": "The line before", "]": "The next line", c: "The next camera" };
export const KEYS = { console: CONSOLE, study: STUDY, recordings: RECORDINGS };

const SINGLE = /^[^\s\p{N}]$/u;

// Which keys a person has chosen instead. Digits are the sentences' own, and the space bar stops.
export class ChosenKeys {
  constructor(keys = CONSOLE) {
    this.keys = keys;
    this.chosen = {};
  }

  // From a layout or its file: all of them, or none where two would share a key.
  use(chosen) {
    const isFine = ([known, key]) => Object.hasOwn(this.keys, known) && typeof key === "string" && SINGLE.test(key);
    this.chosen = Object.fromEntries(Object.entries(chosen ?? {}).filter(isFine));
    const keys = Object.keys(this.keys).map((known) => this.of(known));
    if (new Set(keys).size < keys.length) this.chosen = {};
  }

  // "" where it is so now, or else why not.
  choose(known, key) {
    if (!SINGLE.test(key)) return "One letter or sign, please: digits and the space bar have work of their own.";
    const other = Object.keys(this.keys).find((one) => one !== known && this.of(one) === key);
    if (other) return `${key.toUpperCase()} already is: ${this.keys[other]}.`;
    if (key === known) delete this.chosen[known];
    else this.chosen[known] = key;
    return "";
  }

  of(known) {
    return this.chosen[known] ?? known;
  }

  // The key that a press counts as; "" where its own work has moved to another key.
  meant(key) {
    const known = Object.keys(this.keys).find((one) => this.of(one) === key);
    return known ?? (Object.hasOwn(this.keys, key) ? "" : key);
  }
}
