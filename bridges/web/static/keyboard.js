// The keyboard of a page: the space bar and Escape Escape stop, and a switch for single keys that is remembered.
import { ChosenKeys, EscapeTwice, letterOf, spaceStops } from "/static/shortcuts.js";

const KEPT = "single keys";

export const chosenKeys = new ChosenKeys(); // those of the layout
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
}

export const isText = (element) =>
  element instanceof HTMLTextAreaElement ||
  element instanceof HTMLSelectElement ||
  (element instanceof HTMLInputElement && !["radio", "range", "checkbox"].includes(element.type));

function fieldOf(element) {
  if (!isText(element)) return { kind: "", value: "" };
  return {
    kind: element instanceof HTMLSelectElement ? "choice" : element.type === "number" ? "number" : "text",
    value: element.value,
  };
}

// `stop(why)`; `isOn()`: whether this page has a robot to stop now; `spares(element)`: where the space bar presses what has the focus.
/** @param {(why: string) => void} stop @param {() => boolean} isOn @param {(element: any) => boolean} spares */
export function stopKeys(stop, isOn = () => true, spares = () => false) {
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
      if (event.code !== "Space" || spares(event.target) || !spaceStops(fieldOf(event.target))) return;
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
