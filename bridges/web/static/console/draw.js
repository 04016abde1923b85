// Drawings: overlays on the head camera's image, the robot from behind, the floor from above.
const NAMES = "http://www.w3.org/2000/svg";
const PAINT = {
  red: "#ff6b5e",
  orange: "#ffa24d",
  brown: "#b98055",
  yellow: "#ffe066",
  green: "#6fdc8c",
  teal: "#4fd1c5",
  blue: "#6ea8ff",
  purple: "#b794f6",
  pink: "#ff9ecb",
  white: "#f5f7fa",
  grey: "#a8b3c4",
  black: "#5b6675",
};
export const paintOf = (thing) => PAINT[thing.colour] ?? "#a8b3c4";
const draw = (tag, attributes) => {
  const one = document.createElementNS(NAMES, tag);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  return one;
};
const line = (x1, y1, x2, y2, stroke, width) =>
  draw("line", { x1, y1, x2, y2, stroke, "stroke-width": width, "stroke-linecap": "round" });

// Where a point of the odometry frame is in the head camera's image; null behind the camera.
export function project(thing, header, robot, camera) {
  const dx = thing.x - robot.x,
    dy = thing.y - robot.y,
    c = Math.cos(robot.heading),
    s = Math.sin(robot.heading);
  const a = c * dx + s * dy - camera.x_m,
    l = -s * dx + c * dy - camera.y_m,
    up = thing.z - camera.z_m;
  const pan = robot.position[6],
    tilt = robot.position[7];
  const a1 = Math.cos(pan) * a + Math.sin(pan) * l,
    l1 = -Math.sin(pan) * a + Math.cos(pan) * l;
  const ahead = a1 * Math.cos(tilt) + up * Math.sin(tilt) - camera.ahead_m,
    over = -a1 * Math.sin(tilt) + up * Math.cos(tilt);
  if (ahead < 0.1) return null;
  const f = header.focal;
  return {
    u: header.width / 2 - (f * l1) / ahead,
    v: header.height / 2 - (f * over) / ahead,
    w: Math.max(8, (f * thing.w) / ahead),
    h: Math.max(8, (f * thing.h) / ahead),
  };
}

// The point of the floor that a pixel of the head camera shows; null above the horizon.
export function floorAt(u, v, header, robot, camera) {
  const pan = robot.position[6],
    tilt = robot.position[7],
    c = Math.cos(robot.heading),
    s = Math.sin(robot.heading);
  const l1 = (header.width / 2 - u) / header.focal,
    over = (header.height / 2 - v) / header.focal; // per metre ahead
  const a1 = Math.cos(tilt) - over * Math.sin(tilt),
    up = Math.sin(tilt) + over * Math.cos(tilt);
  if (up > -0.05) return null;
  const from = { a: Math.cos(tilt) * camera.ahead_m, z: camera.z_m + Math.sin(tilt) * camera.ahead_m };
  const far = -from.z / up,
    ax = from.a + far * a1,
    ly = far * l1;
  const a = Math.cos(pan) * ax - Math.sin(pan) * ly + camera.x_m,
    l = Math.sin(pan) * ax + Math.cos(pan) * ly + camera.y_m;
  return { x: robot.x + c * a - s * l, y: robot.y + s * a + c * l };
}

// Where the robot is about to go, over the image: the base's way on the floor, the hand's through the air.
export function overlayPath(context, scale, header, robot, path, spot, camera) {
  const at = ([x, y, z = 0]) => project({ x, y, z, w: 0, h: 0 }, header, robot, camera);
  const trace = (points, colour) => {
    const seen = points.map(at).filter(Boolean);
    if (seen.length < 2) return;
    context.strokeStyle = colour;
    context.beginPath();
    context.moveTo(seen[0].u, seen[0].v);
    for (const one of seen.slice(1)) context.lineTo(one.u, one.v);
    context.stroke();
  };
  context.save();
  context.scale(scale, scale);
  context.lineWidth = 1.4;
  context.setLineDash([3, 2]);
  trace([[robot.x, robot.y], ...(path?.base ?? [])], "#6cd0ff");
  trace(path?.hand ?? [], "#ffc857");
  const place = spot && at([spot.x, spot.y]);
  if (place) {
    context.setLineDash([]);
    context.strokeStyle = "#ffc857";
    context.beginPath();
    context.ellipse(place.u, place.v, 8, 4, 0, 0, 7);
    context.moveTo(place.u - 3, place.v);
    context.lineTo(place.u + 3, place.v);
    context.stroke();
  }
  context.restore();
}

export function pickAt(u, v, header, robot, objects, camera) {
  let best = null,
    nearest = 1.3;
  for (const thing of objects) {
    const place = project(thing, header, robot, camera);
    if (!place) continue;
    const off = Math.max(Math.abs(u - place.u) / (place.w / 2 + 4), Math.abs(v - place.v) / (place.h / 2 + 4));
    if (off < nearest) {
      nearest = off;
      best = thing;
    }
  }
  return best;
}

export function overlay(context, scale, header, robot, objects, target, selected, camera) {
  const canvas = context.canvas,
    size = Math.min(6, (11 * header.width) / (canvas.clientWidth || canvas.width)),
    high = size + 2; // 11 px of the page
  context.save();
  context.scale(scale, scale);
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textBaseline = "bottom";
  const isSame = (one, other) =>
    other &&
    one.label === other.label &&
    one.colour === other.colour &&
    Math.hypot(one.x - other.x, one.y - other.y) < 0.2;
  const shown = objects
    .map((thing) => ({ thing, place: project(thing, header, robot, camera) }))
    .filter(({ place }) => place && place.u > 0 && place.u < header.width && place.v > 0 && place.v < header.height);
  // what is out of the picture has no label: those would pile up at its edge
  const boxes = shown.map(({ place }) => ({
    left: place.u - place.w / 2,
    right: place.u + place.w / 2,
    top: place.v - place.h / 2,
    bottom: place.v + place.h / 2,
  }));
  const labels = []; // none covers another, nor a thing where there is room beside it
  const covers = (one, others) =>
    others.some(
      (other) => one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top,
    );
  for (const [index, { thing, place }] of shown.entries()) {
    const isTarget = isSame(thing, target),
      isSelected = isSame(thing, selected),
      box = boxes[index],
      others = boxes.filter((_, other) => other !== index);
    context.lineWidth = isTarget || isSelected ? 1.6 : 0.8;
    context.strokeStyle = isSelected ? "#ffc857" : isTarget ? "#7be495" : paintOf(thing);
    context.setLineDash(thing.reach === false ? [2, 2] : []);
    context.strokeRect(box.left, box.top, place.w, place.h);
    context.setLineDash([]);
    const text = `${isTarget ? "▶ " : ""}${thing.colour} ${thing.label}`,
      width = context.measureText(text).width + 4;
    const left = Math.max(0, Math.min(header.width - width, box.left)),
      at = (top) => ({ left, right: left + width, top, bottom: top + high });
    const places = [0, 1, 2, 3]
      .flatMap((row) => [at(box.top - (row + 1) * high), at(box.bottom + row * high)])
      .filter((one) => one.top >= 0 && one.bottom <= header.height);
    const label =
      places.find((one) => !covers(one, labels) && !covers(one, others)) ??
      places.find((one) => !covers(one, labels)) ??
      at(box.top - high);
    labels.push({ ...label, text, paint: context.strokeStyle });
  }
  for (const label of labels) {
    context.fillStyle = "#000000b0";
    context.fillRect(label.left, label.top, label.right - label.left, high);
    context.fillStyle = label.paint;
    context.fillText(label.text, label.left + 2, label.bottom - 1);
  }
  if (target) {
    const place = project(target, header, robot, camera);
    if (place) {
      context.strokeStyle = "#7be495";
      context.lineWidth = 1;
      context.beginPath();
      context.arc(place.u, place.v, 5, 0, 7);
      context.moveTo(place.u - 8, place.v);
      context.lineTo(place.u + 8, place.v);
      context.moveTo(place.u, place.v - 8);
      context.lineTo(place.u, place.v + 8);
      context.stroke();
    }
  }
  context.restore();
}

export function drawRobot(svg, robot) {
  const [lift, arm, yaw, pitch, , gripper, pan, tilt] = robot.position,
    effort = robot.effort;
  const X = (m) => 62 + m * 150,
    Y = (m) => 186 - m * 122,
    hue = (percent) =>
      Math.abs(percent) > 70 ? "var(--bad)" : Math.abs(percent) > 40 ? "var(--person)" : "var(--accent)";
  const z = 0.17 + lift,
    wrist = 0.16 + arm,
    out = Math.cos(pitch) * Math.cos(yaw) * 0.215,
    down = Math.sin(pitch) * 0.215;
  const parts = [
    draw("line", { x1: 0, y1: 190, x2: 200, y2: 190, stroke: "var(--line)", "stroke-width": 1 }),
    draw("rect", { x: X(-0.17), y: Y(0.13), width: 0.34 * 150, height: 0.1 * 122, rx: 4, fill: "var(--chosen)" }),
    draw("circle", { cx: X(-0.15), cy: Y(0.05) + 3, r: 6, fill: "var(--edge)" }),
    draw("circle", { cx: X(0.15), cy: Y(0.05) + 3, r: 6, fill: "var(--edge)" }),
    line(X(-0.05), Y(0.12), X(-0.05), Y(1.3), "var(--edge)", 6),
    line(X(-0.05), Y(z), X(wrist), Y(z), hue(effort[1]), 7),
    draw("rect", { x: X(-0.05) - 8, y: Y(z) - 8, width: 16, height: 16, rx: 3, fill: hue(effort[0]) }),
    line(X(wrist), Y(z), X(wrist), Y(z - 0.06), "var(--text)", 4),
    line(X(wrist), Y(z - 0.06), X(wrist + out), Y(z - 0.06 + down), hue(effort[5]), 4),
  ];
  const tipX = X(wrist + out),
    tipY = Y(z - 0.06 + down),
    wide = 2 + gripper * 75;
  const nx = -Math.sin(pitch),
    ny = Math.cos(pitch);
  for (const side of [-1, 1])
    parts.push(
      line(
        tipX,
        tipY,
        tipX + side * wide * nx + out * 60,
        tipY - side * wide * (nx ? 0 : ny) - down * 60,
        robot.grasping ? "var(--good)" : "var(--text)",
        3,
      ),
    );
  const head = draw("g", { transform: `translate(${X(-0.05)} ${Y(1.36)})` }),
    look = -pan;
  head.append(
    draw("rect", { x: -11, y: -8, width: 22, height: 15, rx: 4, fill: "var(--edge)" }),
    draw("circle", { cx: Math.sin(look) * 7, cy: -tilt * 5, r: 3.5, fill: "var(--person)" }),
  );
  parts.push(head);
  const label = (x, y, text) => {
    const one = draw("text", { x, y, fill: "var(--soft)", "font-size": 9, "font-family": "system-ui, sans-serif" });
    one.textContent = text;
    return one;
  };
  parts.push(
    label(118, 14, `lift ${lift.toFixed(2)} m`),
    label(118, 26, `arm ${arm.toFixed(2)} m`),
    label(118, 38, `gripper ${(gripper * 100).toFixed(1)} cm`),
  );
  for (const [place, name] of robot.contact.entries()) parts.push(label(118, 54 + 12 * place, `⚠ ${name}`));
  svg.replaceChildren(...parts);
}

// Of a robot that nobody drew: each joint in its range, redder where it strains.
export function drawJoints(svg, robot, joints) {
  const step = Math.min(22, 192 / joints.length),
    word = (x, y, text, anchor) => {
      const one = draw("text", {
        x,
        y,
        fill: "var(--soft)",
        "font-size": Math.min(10, step - 4),
        "font-family": "system-ui, sans-serif",
        "text-anchor": anchor,
      });
      one.textContent = text;
      return one;
    };
  svg.replaceChildren(
    ...joints.flatMap(({ name, lowest, highest }, place) => {
      const y = 6 + step * place + step / 2,
        value = robot.position[place],
        effort = Math.abs(robot.effort[place] ?? 0),
        hue = effort > 70 ? "var(--bad)" : effort > 40 ? "var(--person)" : "var(--accent)",
        parts = [
          word(4, y + 3, `${robot.contact.includes(name) ? "⚠ " : ""}${name.replaceAll("_", " ")}`, "start"),
          word(196, y + 3, value.toFixed(2), "end"),
        ];
      if (lowest === undefined) return parts;
      const at = (one) => 76 + (88 * (Math.min(Math.max(one, lowest), highest) - lowest)) / (highest - lowest),
        from = at(lowest <= 0 && highest >= 0 ? 0 : lowest);
      return [
        ...parts,
        line(76, y, 164, y, "var(--line)", 5),
        line(from, y, at(value), y, hue, 5),
        draw("circle", { cx: at(value), cy: y, r: 4, fill: hue }),
      ];
    }),
  );
}

// `arm`: how far it reaches to the right, where it does; null for a robot of another shape.
export function drawMap(svg, robot, objects, trail, target, path, spot, arm) {
  const reach = Math.max(
    1.2,
    ...trail.map(([x, y]) => Math.max(Math.abs(x), Math.abs(y)) + 0.4),
    ...objects.map((one) => Math.max(Math.abs(one.x), Math.abs(one.y)) + 0.2),
  );
  const size = Math.min(reach, 8);
  svg.setAttribute("viewBox", `${-size} ${-size} ${2 * size} ${2 * size}`); // x ahead is up, y left is left
  const parts = [];
  for (let m = -Math.ceil(size); m <= size; m += 0.5) {
    const faint = { stroke: m === 0 ? "var(--edge)" : "var(--line)", "stroke-width": size / 150 };
    parts.push(
      draw("line", { x1: m, y1: -size, x2: m, y2: size, ...faint }),
      draw("line", { x1: -size, y1: m, x2: size, y2: m, ...faint }),
    );
  }
  parts.push(
    draw("polyline", {
      points: trail.map(([x, y]) => `${-y},${-x}`).join(" "),
      fill: "none",
      stroke: "var(--accent)",
      "stroke-opacity": 0.6,
      "stroke-width": size / 60,
    }),
  );
  for (const one of objects) {
    const w = Math.max(one.w, 0.06);
    const dot =
      one.label === "bin"
        ? draw("rect", {
            x: -one.y - w / 2,
            y: -one.x - w / 2,
            width: w,
            height: w,
            fill: "none",
            stroke: paintOf(one),
            "stroke-width": size / 50,
          })
        : draw("circle", { cx: -one.y, cy: -one.x, r: w / 2, fill: paintOf(one) });
    const title = draw("title", {});
    title.textContent = `${one.colour} ${one.label}`;
    dot.append(title);
    parts.push(dot);
  }
  if (path?.base.length)
    parts.push(
      draw("polyline", {
        class: "path",
        points: [[robot.x, robot.y], ...path.base].map(([x, y]) => `${-y},${-x}`).join(" "),
        fill: "none",
        stroke: "var(--person)",
        "stroke-dasharray": size / 25,
        "stroke-width": size / 50,
      }),
    );
  if (spot)
    parts.push(
      draw("circle", {
        cx: -spot.y,
        cy: -spot.x,
        r: size / 25,
        fill: "none",
        stroke: "var(--person)",
        "stroke-width": size / 60,
      }),
      draw("circle", { cx: -spot.y, cy: -spot.x, r: size / 80, fill: "var(--person)" }),
    );
  if (target)
    parts.push(
      draw("circle", {
        cx: -target.y,
        cy: -target.x,
        r: 0.1,
        fill: "none",
        stroke: "var(--good)",
        "stroke-width": size / 50,
      }),
    );
  const body = draw("g", {
    transform: `translate(${-robot.y} ${-robot.x}) rotate(${(-robot.heading * 180) / Math.PI})`,
  });
  body.append(
    draw("rect", {
      x: -0.17,
      y: -0.06,
      width: 0.34,
      height: 0.32,
      rx: 0.04,
      fill: "var(--chosen)",
      stroke: "var(--accent)",
      "stroke-width": size / 80,
    }),
    draw("path", { d: "M0 -0.2 L0.08 -0.07 L-0.08 -0.07 Z", fill: "var(--accent)" }),
  );
  if (arm !== null)
    body.append(draw("line", { x1: 0, y1: 0, x2: 0.16 + arm, y2: 0, stroke: "var(--person)", "stroke-width": 0.05 }));
  parts.push(body);
  svg.replaceChildren(...parts);
}
