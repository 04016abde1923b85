// What all pages share around their own matter: the cover and the notice, the stop's word, an address to hand out.
import { $, draw, html, nothing } from "/static/dom.js";
import { isText } from "/static/keyboard.js";

// Opens a dialog, without its stop button having the focus: Enter is to stop nothing by surprise.
export function opens(button, dialog, before = () => {}) {
  $(button).addEventListener("click", () => {
    before();
    $(dialog).showModal();
    $(dialog).focus();
  });
  $(`${dialog}-close`).addEventListener("click", () => $(dialog).close());
}

// An address to hand out: to read, to copy, and as a QR code for a phone.
export function handOut(place, url, code) {
  const copy = ({ target }) => {
    const field = target.parentElement.querySelector("input"),
      byHand = () => notice("It is selected: copy it by Ctrl+C."); // a page without TLS has no clipboard
    field.select();
    if (navigator.clipboard) navigator.clipboard.writeText(field.value).then(() => notice("copied"), byHand);
    else byHand();
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

// Enter that is held on a button presses it once: a second press may mean something else by then.
addEventListener(
  "keydown",
  (event) => {
    if (event.key === "Enter" && event.repeat && event.target instanceof HTMLButtonElement) event.preventDefault();
  },
  true,
);

addEventListener("keydown", ({ key, target }) => {
  if (key === "Escape" && isText(target)) /** @type {HTMLElement} */ (target).blur();
});
// With these two Firefox opens its quick find, which then has the keys: the space bar would stop nothing.
addEventListener("keydown", (event) => {
  if (["'", "/"].includes(event.key) && !isText(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey)
    event.preventDefault();
});
export const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
