// What single keys do on the operator's page; those that move the robot are in holding.js, those that stop it in keyboard.js.
import { act, mark, mistake, resume, toggleSeat } from "/static/console/acting.js";
import { isOperator, now } from "/static/console/now.js";
import { sentenceOf, speak } from "/static/console/speaking.js";
import { hasKeys, isText, KeyHolder, keyOf } from "/static/keyboard.js";
import { $, all } from "/static/dom.js";
import { notice } from "/static/page.js";
import { chordOf, meantDigit } from "/static/shortcuts.js";

const GESTURES = { n: "nod", b: "shake", u: "look", t: "point" };
const keys = new KeyHolder(notice);

const seatWish = (seat) => (seat?.mine ? "give driving back" : seat?.by ? "ask for the seat" : "take over driving");
const DOES = {
  p: (event) => keys.weigh(event, () => toggleSeat("policy"), seatWish(now.state?.seats?.policy)),
  y: (event) => keys.weigh(event, resume, "resume"),
  m: () => mark(), // at once, for its time; it moves and says nothing
  Delete: (event) => keys.hold(event, mistake, "mark a mistake"),
  "/": (event) => {
    event.preventDefault();
    $("#words").focus();
  },
};

function decide(event, key, drafts) {
  const open = all("[role=tab]").find((one) => one.getAttribute("aria-selected") === "true"),
    draft = drafts[open.id.slice(4)];
  if (key === "Enter" && event.target === document.body)
    keys.hold(event, () => draft?.decide("approve"), "approve the draft");
  else if (key === "Backspace" && now.state?.unsaid) now.link.send({ t: "unsay" });
  else if (key === "Backspace") draft?.decide("reject");
}

export function listen(drafts) {
  addEventListener(
    "keydown",
    (event) => {
      const isOurs = isOperator() && !event.repeat,
        chord = isOurs ? chordOf(event) : "",
        meant = chord && sentenceOf(chord);
      if (meant) {
        event.preventDefault();
        event.stopPropagation();
        speak(meant);
        return;
      }
      if (isText(event.target)) return;
      const digit = isOurs ? meantDigit(event) : "",
        atOnce = digit && sentenceOf(digit);
      if (atOnce) {
        event.preventDefault();
        speak(atOnce);
        return;
      }
      if (!isOurs || event.ctrlKey || event.metaKey || event.altKey) return;
      const key = keyOf(event),
        sentence = sentenceOf(key),
        skill = GESTURES[key];
      decide(event, key, drafts);
      if (!hasKeys()) return;
      if (sentence) keys.hold(event, () => speak(sentence), `say “${sentence.text}”`);
      else if (skill && now.state?.seats?.vlm?.mine) keys.hold(event, () => act(skill), skill);
      else if (skill) keys.weigh(event, () => act(skill), `${skill} in the VLM's place`);
      else DOES[key]?.(event);
    },
    true,
  );
}
