// Over the head camera's image: things and their labels, the way ahead; and what a click in it means.
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

// The same thing, seen again.
export const isSame = (one, other) =>
  Boolean(one && other) &&
  one.label === other.label &&
  one.colour === other.colour &&
  Math.hypot(one.x - other.x, one.y - other.y) < 0.15;

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
