// What was said, and what was done: two lists that only grow, at their end.
import words from "/static/console/console_en.js";
import { peopled } from "/static/console/summary.js";
import { $, follow, make } from "/static/dom.js";

const TALK = new Set(["said", "heard", "mark"]), // apart from what guard, seats and policies do
  MOST = 400;

const isTalk = (event) => TALK.has(event.kind);
export function tellStory(events) {
  write($("#story"), events.filter(isTalk));
  write(
    $("#events"),
    events.filter((event) => !isTalk(event)),
  );
}

function lineOf(event) {
  const line = make("p", event.kind),
    name = event.called ?? event.who,
    who = ["heard", "said", event.who].includes(event.kind) ? name : `${event.kind} · ${name}`;
  if (event.kind === "guard" || event.kind === "interrupt")
    line.dataset.bad = String(/^(e?stopped|stop)\b/.test(event.text));
  line.append(
    make("time", "", `${event.at_s.toFixed(1)} s`),
    make("span", "who", who),
    `: ${isTalk(event) ? event.text : peopled(event.text)}`,
  );
  if (event.person && event.kind === "said") line.append(make("kbd", "", words.by_person));
  return line;
}

function write(box, events) {
  if (!events.length) return;
  follow(box, () => {
    box.append(...events.map(lineOf));
    while (box.children.length > MOST) box.firstChild.remove();
  });
}
