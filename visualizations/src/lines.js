// Links on the map: evidence as thin spokes, what replaces with an arrow, what contradicts dashed, the rest dotted.

import { isThere } from "./data.js";

const DASHES = { SUPERSEDES: [], CONTRADICTS: [5, 4], NEXT: [1, 4] };
const ARROW = 7;

export function drawLinks(pen, { memories, view, colours, mask, radius, evidence, many, others }) {
  pen.clearRect(0, 0, view.width, view.height);
  const { x, y } = memories;
  pen.beginPath();
  for (let at = 0; at < many; at++) {
    const [from, to] = evidence[at];
    if (!mask[from] || !mask[to]) continue;
    pen.moveTo(...view.pixel(x[from], y[from]));
    pen.lineTo(...view.pixel(x[to], y[to]));
  }
  pen.globalAlpha = 0.5;
  pen.strokeStyle = colours.edge;
  pen.lineWidth = Math.min(1.2, Math.max(0.4, view.scale));
  pen.stroke();
  pen.globalAlpha = 0.9;
  for (const link of others) {
    if (!mask[link.from] || !mask[link.to]) continue;
    drawLine(pen, view, memories, link, link.relation === "CONTRADICTS" ? colours.negative : colours.soft, (i) => radius[i] * view.scale);
  }
  pen.globalAlpha = 1;
}

/** Draw all links at one memory, as far as they are there at the time. */
export function drawLinksOf(pen, place, { memories, view, colours, time, size }) {
  const line = (from, to, relation, colour) => {
    if (Math.max(memories.added[from], memories.added[to]) <= time) drawLine(pen, view, memories, { from, to, relation }, colour, size);
  };
  for (const source of memories.sources.get(place) ?? []) line(source, place, "EVIDENCE", colours.accent);
  for (const made of memories.made.get(place) ?? []) line(place, made, "EVIDENCE", colours.accent);
  for (const other of memories.following.get(place) ?? []) line(place, other, "NEXT", colours.soft);
  for (const other of memories.preceding.get(place) ?? []) line(other, place, "NEXT", colours.soft);
  for (const link of memories.linksAt.get(place) ?? []) {
    if (isThere(link, time)) drawLine(pen, view, memories, link, link.relation === "CONTRADICTS" ? colours.negative : colours.ink, size);
  }
}

/** Draw a line from the edge of one memory to that of another. */
function drawLine(pen, view, { x, y }, { from, to, relation }, colour, size) {
  const [cx, cy] = view.pixel(x[from], y[from]);
  const [dx, dy] = view.pixel(x[to], y[to]);
  const angle = Math.atan2(dy - cy, dx - cx);
  const [ax, ay] = [cx + Math.cos(angle) * size(from), cy + Math.sin(angle) * size(from)];
  const [bx, by] = [dx - Math.cos(angle) * size(to), dy - Math.sin(angle) * size(to)];
  pen.beginPath();
  pen.setLineDash(relation === "EVIDENCE" ? [] : (DASHES[relation] ?? [2, 3]));
  pen.moveTo(ax, ay);
  pen.lineTo(bx, by);
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = 1.4;
  pen.stroke();
  pen.setLineDash([]);
  if (relation === "EVIDENCE" || relation === "CONTRADICTS") return;
  pen.beginPath();
  pen.moveTo(bx, by);
  for (const turn of [2.75, -2.75]) pen.lineTo(bx + ARROW * Math.cos(angle + turn), by + ARROW * Math.sin(angle + turn));
  pen.closePath();
  pen.fill();
}
