// What all pages share: finding, making and changing elements, lists by their keys, the notice.
import { isText } from "/static/keyboard.js";
import { html, nothing, render, repeat } from "/static/vendor/lit-html.js";
export { html, isText, nothing };

export const $ = (selector) => document.querySelector(selector);
export const all = (selector) => [...document.querySelectorAll(selector)];
export const make = (tag, className, ...inside) => {
  const one = document.createElement(tag);
  if (className) one.className = className;
  one.append(...inside.filter((part) => part !== null && part !== undefined));
  return one;
};
const one = (place) => (typeof place === "string" ? $(place) : place);
// What changes on its own is set only where it differs: screen readers tell of each change, and focus and selection stay.
export function setText(place, text) {
  const box = one(place);
  if (box.textContent !== text) box.textContent = text;
}
export function setAttribute(place, name, value) {
  const box = one(place);
  if (box.getAttribute(name) !== value) box.setAttribute(name, value);
}
export function setHidden(place, isHidden) {
  const box = one(place);
  if (box.hidden !== isHidden) box.hidden = isHidden;
}
export function toggle(place, name, isOn) {
  const { classList } = one(place);
  if (classList.contains(name) !== isOn) classList.toggle(name, isOn);
}
// A list that changes: each of its elements stays the same one as long as its key is there.
export const list = repeat;
export const draw = (place, what) => render(what, one(place));
// A double click is one press: what a button has become by its second half is not meant.
export const once = (act) => (event) => {
  if (event.detail < 2) act(event);
};
// Pressed twice, the second time within a while, it does it; `draw(isAsked)` says which press the next one is.
export const SURE_MS = 8000;
export function twice(one, draw, act) {
  let timer = 0;
  const ask = (isAsked) => {
    clearTimeout(timer);
    one.dataset.sure = String(isAsked);
    draw(isAsked);
    if (isAsked) timer = setTimeout(() => ask(false), SURE_MS);
  };
  one.addEventListener(
    "click",
    once(() => {
      const isSure = one.dataset.sure === "true";
      ask(!isSure);
      if (isSure) act();
    }),
  );
  return one;
}
export const button = (text, act, className = "") => {
  const one = make("button", className, text);
  one.type = "button";
  one.addEventListener("click", act);
  return one;
};

// An address to hand out: to read, to copy, and as a QR code for a phone.
export function handOut(place, url, code) {
  const copy = ({ target }) => {
    const field = target.parentElement.querySelector("input");
    field.select();
    navigator.clipboard?.writeText(field.value);
    notice("copied");
  };
  const picture = code
    ? html`<svg role="img" aria-label="The address as a QR code" viewBox=${`0 0 ${code.width} ${code.width}`}><path d=${code.path}></path></svg>`
    : nothing;
  draw(
    place,
    html`<div class="row"><input readonly aria-label="The address" .value=${url}><button type="button" @click=${copy}>Copy</button></div>${picture}`,
  );
}

let timer = 0;
export function notice(text) {
  $("#notice").textContent = text;
  clearTimeout(timer);
  timer = setTimeout(() => {
    $("#notice").textContent = "";
  }, 6000);
}
// What stands in a field is sent, and stands there again where that was lost or refused.
export function sendFrom(link, field, message, done = () => {}, undone = () => {}) {
  const text = field.value,
    back = () => {
      field.value = [text, field.value].filter(Boolean).join(" ");
      undone();
    };
  field.value = "";
  link.send(message, { done, refused: back, lost: back });
}
export const LOST = "The link was lost before this was done: press again. Words are back in their field.";
export const TOLD = {
  sent: "The stop is being sent…",
  told: "The robot is told to stop.",
  nobody: "The stop was sent. No guard says anything here.",
  late: "There is no link now: the robot is told to stop as soon as it is back.",
};
// What became of a stop stands on its button.
export function told(kind, words = TOLD) {
  $("#stop").dataset.told = kind;
  notice(words[kind]);
}
export function cover(text) {
  $("#cover-text").textContent = text;
  $("#cover").dataset.off = text ? "false" : "true";
}
export function cameIn(message) {
  document.body.dataset.role = message.role;
}

// Calls `draw` only where the value differs from last time: what a person is typing into stays as it is.
const drawn = new Map();
export function whenNew(key, value, draw) {
  const text = JSON.stringify(value);
  if (drawn.get(key) === text) return;
  drawn.set(key, text);
  draw(value);
}

export const forget = (key) => drawn.delete(key);

// Enter that is held on a button presses it once: a second press may mean something else by then.
addEventListener(
  "keydown",
  (event) => {
    if (event.key === "Enter" && event.repeat && event.target instanceof HTMLButtonElement) event.preventDefault();
  },
  true,
);

// With these two Firefox opens its quick find, which then has the keys: the space bar would stop nothing.
addEventListener("keydown", (event) => {
  if (["'", "/"].includes(event.key) && !isText(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey)
    event.preventDefault();
});
export const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
