// How a memory looks: its shape says the type, colour and mark both say the outcome.

export const COLOURS = ["positive", "negative", "neutral", "unknown"];
const MARKED_FROM = 3.2; // smaller, a mark is a dot

/** The shape of a type as a path around the origin. */
export function shape(pen, type, radius) {
  pen.beginPath();
  if (type === 0) pen.arc(0, 0, radius, 0, 7);
  else if (type === 1) polygon(pen, 6, radius * 1.12, Math.PI / 6);
  else if (type === 2) polygon(pen, 4, radius * 1.22, 0);
  else polygon(pen, 3, radius * 1.3, -Math.PI / 2);
}

function polygon(pen, corners, radius, turn) {
  for (let i = 0; i < corners; i++) {
    const angle = turn + (2 * Math.PI * i) / corners;
    pen[i ? "lineTo" : "moveTo"](radius * Math.cos(angle), radius * Math.sin(angle));
  }
  pen.closePath();
}

/** Draw a memory: positive is full, negative crossed, neutral barred, unknown hollow; what is out of force is an outline. */
export function draw(pen, { type, outcome, radius, colours, isOut = false }) {
  const colour = isOut ? colours.unknown : colours[COLOURS[outcome]];
  const line = Math.max(1, radius * 0.28);
  const isHollow = isOut || outcome === 3;
  shape(pen, type, isHollow ? radius - line / 2 : radius);
  pen.fillStyle = pen.strokeStyle = colour;
  pen.lineWidth = line;
  if (isHollow) {
    if (isOut) pen.setLineDash([line * 1.6, line * 1.2]);
    pen.stroke();
    pen.setLineDash([]);
    return;
  }
  pen.fill();
  pen.strokeStyle = pen.fillStyle = colours.mark;
  pen.lineWidth = Math.max(1, radius * 0.24);
  pen.lineCap = "round";
  const reach = radius * 0.4;
  pen.beginPath();
  if (outcome === 1 && radius >= MARKED_FROM) {
    pen.moveTo(-reach, -reach);
    pen.lineTo(reach, reach);
    pen.moveTo(-reach, reach);
    pen.lineTo(reach, -reach);
    pen.stroke();
  } else if (outcome === 2 && radius >= MARKED_FROM) {
    pen.moveTo(-reach * 1.2, 0);
    pen.lineTo(reach * 1.2, 0);
    pen.stroke();
  } else if (outcome === 1 || outcome === 2) {
    pen.arc(0, 0, radius * 0.35, 0, 7);
    pen.fill();
  }
}

/** Colours of the style sheet, for canvases. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const names = [...COLOURS, "mark", "edge", "ink", "soft", "card", "accent", "line", "episodic", "generalisation", "procedural"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}
