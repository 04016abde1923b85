// What a person does beside driving: stops, takes seats, lets the robot act and speak, and marks.
import words from "/static/console/console_en.js";
import { hasHead, isOperator, now } from "/static/console/now.js";
import { shown } from "/static/keyboard.js";
import { $ } from "/static/dom.js";
import { notice, sendFrom } from "/static/page.js";
import { fill } from "/static/words.js";

const NEED_NOTHING = ["hold", "nod", "shake"],
  GESTURES = ["nod", "shake", "look", "point"],
  SEAT_MS = 2000;
let pending = null, // an action that waits for the VLM's seat
  lastDone = ""; // what this person did last, in words: a mistake is marked with it

export function stop(why = "stop button") {
  now.holding.release();
  now.link.send({ t: "stop", why });
}
// Lifts a stop; what is more than that (re-arming, arming) is only done by the button.
export function resume() {
  if (now.state?.guard?.mode === "stopped") now.link.send({ t: "resume" });
}

export function notDriving() {
  const seat = now.state?.seats?.policy;
  if (!isOperator() || !seat || seat.mine) return;
  notice(fill(seat.by ? words.drives : words.take_first, { by: seat.by, key: shown("p") }));
}

export function toggleSeat(seat) {
  const at = now.state?.seats?.[seat];
  if (!at) return;
  if (at.mine && seat === "policy") now.holding.release();
  now.link.send({ t: at.mine ? "give" : at.by ? "ask" : "take", seat });
  if (at.by && !at.mine) notice(fill(words.is_asked, at));
}

/** @returns {import("/static/wire").ActRequest | null} */
function aimed(skill) {
  if (NEED_NOTHING.includes(skill)) return { t: "act", skill };
  const thing = now.selected;
  if (thing) return { t: "act", skill, label: thing.label, colour: thing.colour, x_m: thing.x, y_m: thing.y };
  notice(words.select_first);
  return null;
}
const whoDrives = (seat) => (seat.mine ? words.you_drive : fill(words.they_drive, seat));
export function gesture(skill) {
  const driver = now.state?.seats?.policy;
  if (!driver?.mine && !driver?.by) return aimed(skill);
  notice(fill(words.no_gesture, { who: whoDrives(driver) }));
  return null;
}
export function act(skill) {
  const isGesture = GESTURES.includes(skill),
    message = isGesture ? gesture(skill) : aimed(skill),
    seats = now.state?.seats;
  if (!seats?.vlm || !message) return;
  if (seats.vlm.mine || (isGesture && !seats.vlm.by))
    send(message); // for a gesture the seat is lent
  else if (seats.vlm.by) notice(fill(words.vlm_taken, seats.vlm));
  else {
    pending = message; // one click: sit down, then do it; a seat that does not come at once is not waited for
    setTimeout(() => {
      if (pending !== message) return;
      pending = null;
      notice(words.no_seat);
    }, SEAT_MS);
    now.link.send({ t: "take", seat: "vlm" });
  }
  if (seats.policy.by) notice(fill(words.later, { who: whoDrives(seats.policy) }));
}
// The seat is there: what waited for it is done.
export function actPending() {
  if (!pending || !now.state.seats.vlm.mine) return;
  send(pending);
  pending = null;
}

export function did(message) {
  const parts = [message.skill, message.colour, message.label];
  lastDone =
    message.t === "say" ? fill(words.did_say, message) : fill(words.did, { what: parts.filter(Boolean).join(" ") });
}
function send(message) {
  did(message);
  now.link.send(message);
}

export function mark(label = "mark", note = "") {
  const said = [note, $("#note").value].filter(Boolean).join(": ");
  sendFrom(now.link, $("#note"), { t: "mark", label, note: said }, () =>
    notice(label === "mark" ? words.marked : fill(words.marked_mistake, { note })),
  );
}
export function mistake() {
  if (now.state?.unsaid) now.link.send({ t: "unsay" });
  mark("wizard mistake", lastDone);
}
export const isAside = () => Boolean(now.welcome?.base_speed.is_omni) && !hasHead();
