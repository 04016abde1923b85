// What is chosen: a thing that the robot sees, or a place on the floor.
import { isSame, paintOf } from "/static/console/draw.js";
import { now } from "/static/console/now.js";
import words from "/static/console/console_en.js";
import { inOrder, nameOf, selectionWords } from "/static/console/summary.js";
import { shown } from "/static/keyboard.js";
import { $, draw, html, list, nothing, setText } from "/static/dom.js";
import { notice } from "/static/page.js";

export const changed = new Set(); // what is to be done when something else is chosen
let order = [];

export function things(objects) {
  if (now.selected) now.selected = objects.find((thing) => isSame(thing, now.selected)) ?? now.selected;
  const seen = inOrder(order, objects),
    box = $("#things");
  order = seen.map((one) => one.key);
  draw(
    box,
    list(
      seen,
      (one) => one.key,
      ({ key, name, thing }) =>
        html`<button
          type="button"
          class=${thing.reach === false ? "far" : nothing}
          title=${thing.reach === false ? words.reach : ""}
          aria-pressed=${String(isSame(thing, now.selected))}
          .style=${`--paint: ${paintOf(thing)}`}
          @click=${() => select(latest(key))}
        >${name}</button>`,
    ),
  );
  tell();
}
const latest = (key) => inOrder(order, now.state.scene.objects).find((one) => one.key === key)?.thing;

function tell() {
  const keys = Object.fromEntries(["p", "j", "l", "i", "k"].map((key) => [key, shown(key)]));
  $("#selection").classList.toggle("hidden", Boolean(now.selected));
  setText("#selection", selectionWords(now.selected, now.spot, now.state?.scene?.objects.length > 0, keys));
}

export function select(thing) {
  now.selected = thing ?? null;
  things(now.state?.scene?.objects ?? []);
  for (const act of changed) act();
}

export function goal(place) {
  now.spot = place;
  tell();
  for (const act of changed) act();
}

// Where whoever drives wants to go.
export function goalNow() {
  const { selected, spot } = now;
  if (selected) return { x_m: selected.x, y_m: selected.y, label: selected.label, colour: selected.colour };
  if (spot) return { x_m: spot.x, y_m: spot.y };
  notice(words.select_or_click);
  return null;
}
export const selectedName = () => (now.selected ? nameOf(now.selected) : "");

$("#map").addEventListener("click", (event) => {
  const svg = $("#map"),
    at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  select(null);
  goal({ x: -at.y, y: -at.x });
});
