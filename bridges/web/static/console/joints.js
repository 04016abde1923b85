// A row for each joint: its name and keys, its value, less and more to hold, and a slider.
import { keyFor } from "/static/console/holding.js";
import { named } from "/static/console/summary.js";
import { draw, html, list, nothing } from "/static/dom.js";
import { keyBox } from "/static/keyboard.js";

function row(joint) {
  const label = named(joint.name),
    [down, up] = ["-", "+"]
      .map((sign) => keyFor(sign + joint.name))
      .filter(Boolean)
      .map(keyBox),
    keys = down ? html`<span class="keys"> (${down}/${up})</span>` : nothing,
    held = (sign, text, word) =>
      html`<button type="button" data-hold=${`${sign}${joint.name}`} aria-label=${`${label} ${word}`}>${text}</button>`;
  return html`<div class="joint">
    <span class="name"><span>${label}${keys}</span><output class="value">–</output></span>
    ${held("-", "−", "less")}
    <input type="range" min=${joint.lowest} max=${joint.highest} step="any" aria-label=${label} data-joint=${joint.name}>
    ${held("+", "+", "more")}
  </div>`;
}

export const showJoints = (joints) =>
  draw(
    "#joints",
    list(joints, (joint) => joint.name, row),
  );
