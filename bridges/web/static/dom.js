// What all pages share of their elements: finding, making and changing them, lists by their keys, presses.
import { html, nothing, render, repeat, svg } from "/static/vendor/lit-html.js";
export { html, nothing, svg };

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
export const onClick = (selector, act) => {
  for (const one of all(selector))
    one.addEventListener(
      "click",
      once(() => act(one)),
    );
};
// What may not wait for the finger to be lifted; by the keyboard, too.
export function atOnce(one, act) {
  one.addEventListener("pointerdown", act);
  one.addEventListener("click", (event) => {
    if (event.detail === 0) act();
  });
}
export const onSubmit = (form, act) =>
  one(form).addEventListener("submit", (event) => {
    event.preventDefault();
    act(event.target.elements);
  });
// How far outside of an element a pointer is; px.
export function awayFrom(one, { clientX, clientY }) {
  const { left, right, top, bottom } = one.getBoundingClientRect(),
    away = (at, from, to) => Math.max(from - at, at - to, 0);
  return Math.hypot(away(clientX, left, right), away(clientY, top, bottom));
}
// Pressed twice, the second time within a while, it does it; `draw(isAsked)` says which press the next one is.
export const SURE_MS = 8000,
  READ_MS = 400;
export function twice(one, draw, act) {
  let timer = 0,
    askedAt = 0;
  const ask = (isAsked) => {
    askedAt = performance.now();
    clearTimeout(timer);
    one.dataset.sure = String(isAsked);
    draw(isAsked);
    if (isAsked) timer = setTimeout(() => ask(false), SURE_MS);
  };
  one.addEventListener(
    "click",
    once(({ detail }) => {
      const isSure = one.dataset.sure === "true";
      if (isSure && !detail && performance.now() - askedAt < READ_MS) return; // Enter twice is one press, too
      ask(!isSure);
      if (isSure) act();
    }),
  );
  return one;
}
export const button = (text, act, className = "") => {
  const one = make("button", className, text);
  one.type = "button";
  one.addEventListener("click", once(act));
  return one;
};

// What people choose one of: a radio button that lies over its words.
export const radio = (name, value, isChosen, act, words = String(value)) =>
  html`<label><input type="radio" name=${name} value=${value} .checked=${isChosen} @change=${act}><span>${words}</span></label>`;
// The values of a scale, and how they are written.
export const scaleValues = ({ low, high, step }) =>
  Array.from({ length: (high - low) / step + 1 }, (_, place) => low + place * step);
export const signed = (value) => String(value).replace("-", "−");
export const table = (heads, rows) =>
  html`<table class="small"><thead><tr>${heads.map((one) => html`<th scope="col">${one}</th>`)}</tr></thead><tbody>${rows}</tbody></table>`;

// A list that grows is followed by who has read to its end.
export function follow(box, act) {
  const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 50;
  act();
  if (isAtEnd) box.scrollTop = box.scrollHeight;
}
// A camera's picture, in its own size.
export function paint(canvas, bitmap) {
  const { width, height } = bitmap;
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
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
