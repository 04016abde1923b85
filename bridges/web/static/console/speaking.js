// What is said: the deck of sentences, the field to write in, and whose voice it is.
import { did, gesture } from "/static/console/acting.js";
import { found, grouped, placed, recent } from "/static/console/deck.js";
import { now } from "/static/console/now.js";
import { selectedName } from "/static/console/selection.js";
import words from "/static/console/console_en.js";
import { $, all, draw, html, list, nothing, once, onSubmit } from "/static/dom.js";
import { notice, sendFrom } from "/static/page.js";
import { fill } from "/static/words.js";

let canned = [], // sentences that are said with one key
  lately = [], // those that were said last, the newest first
  slots = []; // the same, each where it was: none moves under the hand that just pressed it
// A sentence with a parameter other than the selected thing goes to the text field first, where that is filled in.
const OPEN = /\{\w+\}/;
const isOf = (key) => (one) => one.key && one.key === key;
export const sentenceOf = (key) => canned.find(isOf(key));
export function sentences(given) {
  canned = given;
  deck();
}

const box = (sentence) =>
  html`<button
    type="button"
    class=${sentence.as}
    title=${`${sentence.as}: ${sentence.text}`}
    @click=${once(() => speak(sentence))}
  >${sentence.key ? html`<kbd>${sentence.key}</kbd>` : nothing}${sentence.text}</button>`;
const boxes = (sentences) => list(sentences, (one) => `${one.as} ${one.text}`, box);

function deck() {
  draw("#recent", boxes(slots));
  draw(
    "#sentences",
    list(
      grouped(found(canned, $("#find").value)),
      ([name]) => name,
      ([name, group]) => html`${name ? html`<p class="group">${name}</p>` : nothing}${boxes(group)}`,
    ),
  );
}

export function speak(sentence) {
  const gestures = sentence.gesture ? sentence.gesture.split("+") : [],
    isAimed = gestures.some((one) => ["look", "point"].includes(one));
  if (!now.selected && sentence.text.includes("{object}")) {
    notice(words.names_it);
    return;
  }
  if (!now.selected && isAimed) {
    notice(words.gesture_to_it);
    return;
  }
  const text = filled(sentence.text);
  if (OPEN.test(text)) {
    edit(sentence);
    return;
  }
  const acts = gestures.map(gesture);
  if (acts.includes(null)) return;
  lately = recent(lately, sentence);
  slots = placed(slots, lately);
  deck();
  /** @type {import("/static/wire").Say} */
  const message = { t: "say", voice: sentence.as, text, ...(acts.length ? { acts } : {}) };
  did(message);
  now.link.send(message);
}
const filled = (text) => text.replaceAll("{object}", selectedName() || "{object}");

const voiceNow = () => /** @type {"robot" | "collaborator"} */ ($("input[name=voice]:checked").value);
const showVoice = () => {
  $("#say").dataset.voice = voiceNow();
};
// A study may lock voices: what cannot be chosen is not there.
export function voices(allowed) {
  for (const one of all("input[name=voice]")) {
    one.disabled = !allowed.includes(one.value);
    one.parentElement.hidden = one.disabled;
  }
  if (!allowed.includes(voiceNow())) $(`input[name=voice][value=${allowed[0]}]`).checked = true;
  showVoice();
}

function choose(act) {
  const [first] = $("#find").value.trim() ? found(canned, $("#find").value) : [];
  if (!first) {
    notice(words.no_sentence);
    return;
  }
  $("#find").value = "";
  deck();
  act(first);
}
function edit(sentence) {
  $(`input[name=voice][value=${sentence.as}]`).checked = true;
  showVoice();
  $("#words").value = filled(sentence.text);
  pickOpen();
}
function pickOpen() {
  const field = $("#words"),
    open = OPEN.exec(field.value);
  field.focus();
  if (open) field.setSelectionRange(open.index, open.index + open[0].length);
}

for (const one of all("input[name=voice]")) one.addEventListener("change", showVoice);
showVoice();
$("#recent").dataset.none = words.none_recent;
$("#recent").ariaLabel = words.recent;
$("#find").addEventListener("input", deck);
onSubmit("#deck", () => choose(speak));
$("#find").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.shiftKey) return;
  event.preventDefault();
  choose(edit);
});
onSubmit("#say", () => {
  const text = $("#words").value.trim(),
    open = OPEN.exec(text);
  if (!text) return;
  if (open) {
    pickOpen();
    notice(fill(words.fill_in, { what: open[0] }));
    return;
  }
  /** @type {import("/static/wire").Say} */
  const message = { t: "say", voice: voiceNow(), text };
  did(message);
  sendFrom(now.link, $("#words"), message);
});
