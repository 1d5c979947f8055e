// The relevance of one memory over the span: how it fades, what its uses did, where the time shown is.

import { svg } from "./dom.js";
import { frame } from "./frame.js";
import { counted } from "./text.js";

const SIZE = { width: 340, height: 108, left: 42, right: 10, top: 8, bottom: 20 };
const STEPS = 160;

export function curve(i, { memories, state, dates }) {
  const most = memories.page.most;
  const drawing = frame({ ...SIZE, dates, most, ticks: most > 1 ? [0, most] : [0, 0.5, 1], words: (value) => (most > 1 ? `${value}` : `${100 * value} %`) });
  const { x, y } = drawing;
  const [uses, begin] = [memories.uses(i), memories.knownFrom(i)];
  const times = new Set([begin, dates.end]);
  for (let step = 0; step <= STEPS; step++) times.add((dates.end * step) / STEPS);
  for (const { time } of memories.curves.get(i)?.points ?? []) times.add(time - 1e-3).add(time);
  const points = [...times].filter((time) => time >= begin && time <= dates.end).sort((a, b) => a - b);
  const line = points.map((time) => `${x(time).toFixed(1)},${y(memories.relevance(i, time)).toFixed(1)}`);
  const threshold = memories.page.threshold;
  drawing.plot.append(
    svg("line", { x1: SIZE.left, x2: SIZE.width - SIZE.right, y1: y(threshold), y2: y(threshold), stroke: "var(--negative)", "stroke-dasharray": "2 3", opacity: 0.7 },
      svg("title", {}, `Below ${threshold} it may be archived`)),
    svg("polyline", { points: line.join(" "), fill: "none", stroke: "var(--accent)", "stroke-width": 2, "stroke-linejoin": "round" }),
    svg("circle", { cx: x(begin), cy: y(memories.relevance(i, begin)), r: 2.6, fill: "var(--accent)" }),
    ...uses.map((time) => svg("line", { class: "use", x1: x(time), x2: x(time), y1: y(0), y2: y(0) - 7, stroke: "var(--ink)", "stroke-width": 1.5 },
      svg("title", {}, `Used on ${dates.words(time)}`))));
  drawing.element.setAttribute("class", "curve");
  drawing.element.setAttribute("role", "img");
  drawing.element.setAttribute("aria-label", `Relevance over time; ${counted(uses.length, "use")} marked`);
  return { element: drawing.element, refresh: () => drawing.now(state.time) };
}
