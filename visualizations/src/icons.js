// Signs of memories and buttons as small pictures in the text.

import { svg } from "./dom.js";
import { COLOURS } from "./signs.js";

const NS = { viewBox: "-10 -10 20 20", "aria-hidden": "true", focusable: "false" };

function outline(type, attributes) {
  if (type === 0) return svg("circle", { r: 7.5, ...attributes });
  const [corners, radius, turn] = { 1: [6, 8.5, Math.PI / 6], 2: [4, 9, 0], 3: [3, 9.5, -Math.PI / 2] }[type];
  const points = Array.from({ length: corners }, (_, i) => {
    const angle = turn + (2 * Math.PI * i) / corners;
    return `${(radius * Math.cos(angle)).toFixed(2)},${(radius * Math.sin(angle)).toFixed(2)}`;
  });
  return svg("polygon", { points: points.join(" "), ...attributes });
}

/** The sign of a memory; without an outcome, of its type alone. */
export function sign(type, outcome, isOut = false) {
  if (outcome === undefined) return svg("svg", NS, outline(type, { fill: "var(--soft)" }));
  const colour = isOut ? "var(--unknown)" : `var(--${COLOURS[outcome]})`;
  if (isOut || outcome === 3) {
    return svg("svg", NS, outline(type, { fill: "none", stroke: colour, "stroke-width": 2.4, "stroke-dasharray": isOut ? "3 2" : null }));
  }
  const mark = { stroke: "var(--mark)", "stroke-width": 2.2, "stroke-linecap": "round" };
  const marks = [[], ["M-3,-3L3,3M-3,3L3,-3"], ["M-3.6,0L3.6,0"]][outcome];
  return svg("svg", NS, outline(type, { fill: colour }), ...marks.map((d) => svg("path", { d, ...mark })));
}

/** The line of a kind of link. */
export function line(relation) {
  const [colour, dash] = { EVIDENCE: ["var(--edge)", null], SUPERSEDES: ["var(--soft)", null], CONTRADICTS: ["var(--negative)", "5 3"] }[relation];
  return svg("svg", { viewBox: "0 0 24 10", "aria-hidden": "true", focusable: "false" },
    svg("line", { x1: 1, x2: relation === "SUPERSEDES" ? 17 : 23, y1: 5, y2: 5, stroke: colour, "stroke-width": 1.8, "stroke-dasharray": dash }),
    relation === "SUPERSEDES" ? svg("path", { d: "M23 5l-7-4v8z", fill: colour }) : null);
}

export const playing = () => svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: "M3 2h4v12H3zM9 2h4v12H9z" }));
export const paused = () => svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: "M4 2l10 6-10 6z" }));
