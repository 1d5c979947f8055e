// The frame of a chart: axes, ticks, and the line at the time shown.

import { svg } from "./dom.js";

const PAD = 6;
const CHARACTER_PX = 6.2;

/** Returns the element, the scales x (seconds) and y (values), a group to draw in, and `now`, which moves the line. */
export function frame({ width, height, left, right, top, bottom, dates, most, ticks, words }) {
  const inner = width - left - right - 2 * PAD;
  const x = (seconds) => left + PAD + inner * Math.min(1, Math.max(0, seconds / dates.end));
  const y = (value) => height - bottom - ((height - top - bottom) * value) / (most || 1);
  const plot = svg("g");
  const line = svg("line", { class: "now-line", y1: top, y2: height - bottom });
  const element = svg("svg", { viewBox: `0 0 ${width} ${height}` },
    ticks.map((value) => [
      svg("line", { class: "grid-line", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, words(value)),
    ]),
    labels(dates.ticks(6), x, left, width - right).map(([at, text, anchor]) => svg("text", { x: at, y: height - 4, "text-anchor": anchor }, text)),
    plot, line);
  const now = (seconds) => {
    line.setAttribute("x1", x(seconds));
    line.setAttribute("x2", x(seconds));
  };
  return { element, plot, x, y, now };
}

/** Ticks that neither leave the frame nor touch each other. */
function labels(ticks, x, low, high) {
  const found = [];
  let end = -Infinity;
  for (const [seconds, text] of ticks) {
    const half = (text.length * CHARACTER_PX) / 2;
    const at = Math.max(low + half, Math.min(high - half, x(seconds)));
    if (at - half < end + 6) continue;
    found.push([at.toFixed(1), text, "middle"]);
    end = at + half;
  }
  return found;
}
