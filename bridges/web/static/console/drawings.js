// Drawings beside the pictures: the robot from behind, the joints of one that nobody drew, the floor from above.
import { paintOf } from "/static/console/draw.js";
import { draw, nothing, setAttribute, svg } from "/static/dom.js";

const strain = (percent) =>
  Math.abs(percent) > 70 ? "var(--bad)" : Math.abs(percent) > 40 ? "var(--person)" : "var(--accent)";
const line = (x1, y1, x2, y2, stroke, width) =>
  svg`<line x1=${x1} y1=${y1} x2=${x2} y2=${y2} stroke=${stroke} stroke-width=${width} stroke-linecap="round"></line>`;
const word = (x, y, size, text, anchor = "start") =>
  svg`<text x=${x} y=${y} font-size=${size} text-anchor=${anchor} fill="var(--soft)">${text}</text>`;

export function drawRobot(place, robot) {
  const [lift, arm, yaw, pitch, , gripper, pan, tilt] = robot.position,
    { effort } = robot,
    X = (m) => 62 + m * 150,
    Y = (m) => 186 - m * 122,
    z = 0.17 + lift,
    wrist = 0.16 + arm,
    out = Math.cos(pitch) * Math.cos(yaw) * 0.215,
    down = Math.sin(pitch) * 0.215,
    tip = { x: X(wrist + out), y: Y(z - 0.06 + down) },
    aside = { x: -Math.sin(pitch), y: pitch ? 0 : 1 },
    finger = (side) => {
      const wide = side * (2 + gripper * 75),
        [x, y] = [tip.x + wide * aside.x + out * 60, tip.y - wide * aside.y - down * 60];
      return line(tip.x, tip.y, x, y, robot.grasping ? "var(--good)" : "var(--text)", 3);
    },
    told = [`lift ${lift.toFixed(2)} m`, `arm ${arm.toFixed(2)} m`, `gripper ${(gripper * 100).toFixed(1)} cm`];
  draw(
    place,
    svg`
      ${line(0, 190, 200, 190, "var(--line)", 1)}
      <rect x=${X(-0.17)} y=${Y(0.13)} width="51" height="12.2" rx="4" fill="var(--chosen)"></rect>
      ${[-0.15, 0.15].map((m) => svg`<circle cx=${X(m)} cy=${Y(0.05) + 3} r="6" fill="var(--edge)"></circle>`)}
      ${line(X(-0.05), Y(0.12), X(-0.05), Y(1.3), "var(--edge)", 6)}
      ${line(X(-0.05), Y(z), X(wrist), Y(z), strain(effort[1]), 7)}
      <rect x=${X(-0.05) - 8} y=${Y(z) - 8} width="16" height="16" rx="3" fill=${strain(effort[0])}></rect>
      ${line(X(wrist), Y(z), X(wrist), Y(z - 0.06), "var(--text)", 4)}
      ${line(X(wrist), Y(z - 0.06), tip.x, tip.y, strain(effort[5]), 4)}
      ${[-1, 1].map(finger)}
      <g transform=${`translate(${X(-0.05)} ${Y(1.36)})`}>
        <rect x="-11" y="-8" width="22" height="15" rx="4" fill="var(--edge)"></rect>
        <circle cx=${Math.sin(-pan) * 7} cy=${-tilt * 5} r="3.5" fill="var(--person)"></circle>
      </g>
      ${told.map((text, row) => word(118, 14 + 12 * row, 9, text))}
      ${robot.contact.map((name, row) => word(118, 54 + 12 * row, 9, `⚠ ${name}`))}`,
  );
}

// Each joint in its range, redder where it strains.
export function drawJoints(place, robot, joints) {
  const step = Math.min(22, 192 / joints.length),
    size = Math.min(10, step - 4);
  draw(
    place,
    joints.map(({ name, lowest, highest }, row) => {
      const y = 6 + step * row + step / 2,
        value = robot.position[row],
        hue = strain(robot.effort[row] ?? 0),
        touches = robot.contact.includes(name) ? "⚠ " : "",
        at = (one) => 76 + (88 * (Math.min(Math.max(one, lowest), highest) - lowest)) / (highest - lowest),
        from = lowest <= 0 && highest >= 0 ? 0 : lowest;
      return svg`
        ${word(4, y + 3, size, `${touches}${name.replaceAll("_", " ")}`)}
        ${word(196, y + 3, size, value.toFixed(2), "end")}
        ${
          lowest === undefined
            ? nothing
            : svg`${line(76, y, 164, y, "var(--line)", 5)}${line(at(from), y, at(value), y, hue, 5)}
              <circle cx=${at(value)} cy=${y} r="4" fill=${hue}></circle>`
        }`;
    }),
  );
}

const FURTHEST_M = 8;
// `arm`: how far it reaches to the right, where it does; null for a robot of another shape.
export function drawMap(place, robot, objects, trail, target, path, spot, arm) {
  const reach = Math.max(
      1.2,
      ...trail.map(([x, y]) => Math.max(Math.abs(x), Math.abs(y)) + 0.4),
      ...objects.map((one) => Math.max(Math.abs(one.x), Math.abs(one.y)) + 0.2),
    ),
    size = Math.min(reach, FURTHEST_M),
    wide = size / 50,
    points = (way) => way.map(([x, y]) => `${-y},${-x}`).join(" "), // x ahead is up, y left is left
    metres = Array.from({ length: 4 * Math.ceil(size) + 1 }, (_, half) => half / 2 - Math.ceil(size)),
    grid = (m, isUp) => {
      const [x, y] = isUp ? [m, size] : [size, m];
      return line(isUp ? x : -x, isUp ? -y : y, x, y, m === 0 ? "var(--edge)" : "var(--line)", size / 150);
    },
    ring = (one, r, paint) =>
      svg`<circle cx=${-one.y} cy=${-one.x} r=${r} fill="none" stroke=${paint} stroke-width=${wide}></circle>`,
    thing = (one) => {
      const w = Math.max(one.w, 0.06),
        title = svg`<title>${one.colour} ${one.label}</title>`;
      if (one.label !== "bin")
        return svg`<circle cx=${-one.y} cy=${-one.x} r=${w / 2} fill=${paintOf(one)}>${title}</circle>`;
      return svg`<rect x=${-one.y - w / 2} y=${-one.x - w / 2} width=${w} height=${w} fill="none"
        stroke=${paintOf(one)} stroke-width=${wide}>${title}</rect>`;
    };
  setAttribute(place, "viewBox", `${-size} ${-size} ${2 * size} ${2 * size}`);
  draw(
    place,
    svg`
      ${metres.map((m) => [grid(m, true), grid(m, false)])}
      <polyline points=${points(trail)} fill="none" stroke="var(--accent)" stroke-opacity="0.6" stroke-width=${wide}>
      </polyline>
      ${objects.map(thing)}
      ${
        path?.base.length
          ? svg`<polyline class="path" points=${points([[robot.x, robot.y], ...path.base])} fill="none"
              stroke="var(--person)" stroke-dasharray=${size / 25} stroke-width=${wide}></polyline>`
          : nothing
      }
      ${spot ? [ring(spot, size / 25, "var(--person)"), ring(spot, size / 80, "var(--person)")] : nothing}
      ${target ? ring(target, 0.1, "var(--good)") : nothing}
      <g transform=${`translate(${-robot.y} ${-robot.x}) rotate(${(-robot.heading * 180) / Math.PI})`}>
        <rect x="-0.17" y="-0.06" width="0.34" height="0.32" rx="0.04" fill="var(--chosen)" stroke="var(--accent)"
          stroke-width=${wide / 2}></rect>
        <path d="M0 -0.2 L0.08 -0.07 L-0.08 -0.07 Z" fill="var(--accent)"></path>
        ${arm === null ? nothing : line(0, 0, 0.16 + arm, 0, "var(--person)", 0.05)}
      </g>`,
  );
}
