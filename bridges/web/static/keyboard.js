// The keyboard of a page: the space bar and Escape Escape stop, and a switch for single keys that is remembered.
import { draw, html } from "/static/dom.js";
import { ChosenKeys, EscapeTwice, HeldKey, HOLD_MS, KEYS, letterOf, QUICK_MS } from "/static/shortcuts.js";

const KEPT = "single keys";

const PAGE = document.documentElement.dataset.keys ?? "console";
export const chosenKeys = new ChosenKeys(KEYS[PAGE]); // those of the console stand in its layout
export const keyOf = (event) => chosenKeys.meant(letterOf(event));
export const shown = (known) => chosenKeys.of(known).toUpperCase();

// What tells a key on the page, and follows it.
export function keyBox(known) {
  const box = document.createElement("kbd");
  box.dataset.key = known;
  box.textContent = shown(known);
  return box;
}
export function showKeys() {
  for (const box of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("kbd[data-key]")))
    box.textContent = shown(box.dataset.key);
  for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[data-of]")))
    field.value = shown(field.dataset.of);
}

// A field for each single key of the page, in `box`: what is pressed in it is the key from then on.
/** @param {HTMLElement} box @param {() => void} changed */
export function keyFields(box, changed) {
  const told = box.querySelector("[role=status]");
  const press = (known, does) => (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isUndone = ["Delete", "Backspace"].includes(event.key);
    if (event.key.length !== 1 && !isUndone) return;
    event.preventDefault();
    told.textContent = chosenKeys.choose(known, isUndone ? known : letterOf(event)) || `${shown(known)}: ${does}.`;
    changed();
  };
  const field = ([known, does]) =>
    html`<label><input readonly size="2" data-of=${known} @keydown=${press(known, does)}> ${does}</label>`;
  draw(box.querySelector("div"), Object.entries(chosenKeys.keys).map(field));
  showKeys();
}

// The same on a page without layouts: what is chosen is kept in this browser.
export function ownKeys(box) {
  const kept = `keys of ${PAGE}`;
  try {
    chosenKeys.use(JSON.parse(localStorage.getItem(kept) ?? "{}"));
  } catch {
    chosenKeys.use({});
  }
  keyFields(box, () => {
    localStorage.setItem(kept, JSON.stringify(chosenKeys.chosen));
    showKeys();
  });
}

export const isText = (element) =>
  element instanceof HTMLTextAreaElement ||
  element instanceof HTMLSelectElement ||
  (element instanceof HTMLInputElement && !["radio", "range", "checkbox"].includes(element.type));

// Only in the middle of a text the space bar writes.
const NO_SPACES = ["number", "select-one", "file"];
const writes = (element) =>
  isText(element) && !element.readOnly && !NO_SPACES.includes(element.type) && element.value !== "";

// `isOn()`: whether this page has a robot to stop now.
/** @param {(why: string) => void} stop @param {() => boolean} isOn */
export function stopKeys(stop, isOn = () => true) {
  const escapes = new EscapeTwice();
  let isSwallowed = false;
  addEventListener(
    "keydown",
    (event) => {
      if (!isOn() || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape" && !event.repeat && escapes.press(performance.now())) {
        stop("Escape twice");
        return;
      }
      if (event.code !== "Space" || writes(event.target)) return;
      event.preventDefault();
      event.stopPropagation();
      isSwallowed = true;
      if (!event.repeat) stop("space bar");
    },
    true,
  );
  addEventListener(
    "keyup",
    (event) => {
      if (event.code !== "Space" || !isSwallowed) return;
      event.preventDefault();
      event.stopPropagation();
      isSwallowed = false; // buttons are pressed by its end
    },
    true,
  );
}

// Single keys that do something once do it when they have been held: for a moment, or for longer where it is of weight.
export class KeyHolder {
  constructor(tell) {
    this.tell = tell;
    this.key = new HeldKey();
    addEventListener("keyup", (event) => this.key.up(event.code));
    addEventListener("blur", () => this.key.forget());
    addEventListener("keydown", (event) => event.repeat || this.key.forget(), true); // another key: somebody types
  }

  hold(event, act, what, after = QUICK_MS) {
    this.key.down(event.code, act, performance.now(), after);
    this.tell(`hold ${letterOf(event).toUpperCase()} to ${what}`);
    setTimeout(() => {
      const due = this.key.due(performance.now());
      if (!due) return;
      this.tell("");
      due();
    }, after + 5);
  }

  weigh(event, act, what) {
    this.hold(event, act, what, HOLD_MS);
  }
}

// Whether single keys do anything; the stop keys always do.
export const hasKeys = () => localStorage.getItem(KEPT) !== "off";

export function keysSwitch(button) {
  const draw = () => {
    button.setAttribute("aria-checked", String(hasKeys()));
    document.body.dataset.singleKeys = hasKeys() ? "on" : "off";
  };
  button.addEventListener("click", () => {
    localStorage.setItem(KEPT, hasKeys() ? "off" : "on");
    draw();
  });
  addEventListener("storage", draw); // another page of this browser has switched
  draw();
}
