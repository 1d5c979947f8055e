// What has just happened lights up for a moment while the time runs: a memory comes, is used, or is made of others.

import { last } from "./data.js";

const LASTS_MS = 800;
const MOST = 300;

export class Flashes {
  constructor(memories) {
    this.memories = memories;
    this.now = [];
    const happened = [];
    for (let i = 0; i < memories.size; i++) {
      happened.push([memories.added[i], i, memories.sources.has(i) ? "made" : "came"]);
      for (const time of memories.uses(i)) happened.push([time, i, "used"]);
    }
    happened.sort((a, b) => a[0] - b[0]);
    this.happened = happened;
    this.times = Float64Array.from(happened, (one) => one[0]);
    this.isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  /** Light up what happened after one time and up to another. */
  between(before, time, clock) {
    if (this.isStill || time <= before) return;
    const [from, to] = [last(this.times, before) + 1, last(this.times, time)];
    for (let at = Math.max(from, to - MOST); at <= to; at++) {
      this.now.push({ place: this.happened[at][1], kind: this.happened[at][2], began: clock });
    }
    if (this.now.length > MOST) this.now.splice(0, this.now.length - MOST);
  }

  /** Draw them; tells whether there are any left. */
  draw(pen, view, colours, clock) {
    this.now = this.now.filter((flash) => clock - flash.began < LASTS_MS);
    const { x, y, sources } = this.memories;
    for (const { place, kind, began } of this.now) {
      const age = (clock - began) / LASTS_MS;
      const [px, py] = view.pixel(x[place], y[place]);
      pen.globalAlpha = 1 - age;
      pen.strokeStyle = kind === "used" ? colours.neutral : colours.accent;
      pen.lineWidth = kind === "made" ? 2 : 1.5;
      if (kind === "made") {
        pen.beginPath();
        for (const source of sources.get(place)) {
          pen.moveTo(...view.pixel(x[source], y[source]));
          pen.lineTo(px, py);
        }
        pen.stroke();
      }
      pen.beginPath();
      pen.arc(px, py, Math.max(4, 6 * view.scale) + 12 * age, 0, 7);
      pen.stroke();
    }
    pen.globalAlpha = 1;
    return this.now.length > 0;
  }
}
