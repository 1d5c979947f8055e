// Names of projects, and what the discs are about: the largest first, none over another or over the buttons.

import { oneLine, whole } from "./text.js";

const [LEAST_RADIUS_PX, MOST] = [20, 48];
const [SMALLEST_PX, FEW] = [6, 8]; // on a small map that many groups have names, too
const [SIZE, GAP] = [11.5, 3];
const WIDE_ENOUGH_PX = 130;
const EDGE = 4;

const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const AREA_SIZE = 14;

export function drawLabels(pen, { discs, areas, view, colours, reserved, isShown }) {
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  pen.lineJoin = "round";
  const taken = [reserved];
  drawAreas(pen, { areas, view, colours, taken });
  pen.font = `600 ${SIZE}px ${FAMILY}`;
  let named = 0;
  const order = [...discs].sort((a, b) => b[2] - a[2]);
  for (const disc of order) {
    const radius = disc[2] * view.scale;
    if (radius < (named < FEW ? SMALLEST_PX : LEAST_RADIUS_PX) || taken.length >= MOST) break;
    if (!disc[3] || !isShown(disc)) continue;
    const text = fitted(pen, oneLine(disc[3]), Math.max(WIDE_ENOUGH_PX, 2 * radius));
    const width = pen.measureText(text).width;
    const [px, below] = view.pixel(disc[0], disc[1] + disc[2]);
    const x = Math.min(view.width - width / 2 - 4, Math.max(width / 2 + 4, px));
    if (px < -radius || px > view.width + radius) continue;
    const y = below + SIZE * 0.7;
    const box = [x - width / 2 - GAP, y - SIZE, x + width / 2 + GAP, y + GAP];
    if (y > view.height - 2 || y < SIZE || taken.some((other) => meet(box, other))) continue;
    taken.push(box);
    named++;
    put(pen, text, x, y, colours.soft, colours.card);
  }
}

/** Names of projects, above them, as wide as these or as the map lets them be. */
function drawAreas(pen, { areas, view, colours, taken }) {
  pen.font = `650 ${AREA_SIZE}px ${FAMILY}`;
  for (const [x, top, name, wide] of areas) {
    const [px, py] = view.pixel(x, top);
    const reach = (wide * view.scale) / 2;
    if (px + reach < 0 || px - reach > view.width) continue;
    const text = fitted(pen, oneLine(name), Math.min(view.width - 2 * EDGE, Math.max(WIDE_ENOUGH_PX, 2 * reach)));
    const half = pen.measureText(text).width / 2 + GAP;
    const middle = Math.min(view.width - half - EDGE, Math.max(half + EDGE, px));
    const y = Math.max(AREA_SIZE + EDGE, py - 2);
    const box = [middle - half, y - AREA_SIZE, middle + half, y + GAP];
    if (y > view.height - 2 || taken.some((other) => meet(box, other))) continue;
    taken.push(box);
    put(pen, text, middle, y, colours.ink, colours.card);
  }
}

function put(pen, text, x, y, colour, halo) {
  pen.strokeStyle = halo;
  pen.lineWidth = 4;
  pen.strokeText(text, x, y);
  pen.fillStyle = colour;
  pen.fillText(text, x, y);
}

function meet(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}

function fitted(pen, text, most) {
  if (pen.measureText(text).width <= most) return text;
  const characters = Array.from(text);
  while (characters.length > 3 && pen.measureText(`${characters.join("")}…`).width > most) characters.pop();
  return `${whole(characters.join(""))}…`;
}
