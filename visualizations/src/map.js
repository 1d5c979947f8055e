// The map of memories on three canvases: links below, memories, and above them what is pointed at. Each is drawn when it changes;
// of the memories only those are drawn anew that look otherwise than before.

import { isThere, last } from "./data.js";
import { byId } from "./dom.js";
import { Flashes } from "./flashes.js";
import { Hits } from "./hits.js";
import { drawLabels } from "./labels.js";
import { drawLinks, drawLinksOf } from "./lines.js";
import { draw, palette } from "./signs.js";
import { View } from "./view.js";

const LEVELS = 15;
const [SHOWN, OUT, DIM, CONTRADICTED] = [1, 32, 64, 128];
const LINKS_EVERY_MS = 120;
const SMALLEST_PX = 1.3;
const REACH_PX = 14;
const EXTENT = 1.3; // of what is drawn of a memory, in its radius
const WIPED_FROM = 0.25; // below this scale neighbours touch

export class GraphMap {
  constructor(memories, state, matches) {
    Object.assign(this, { memories, state, matches });
    this.layers = ["edges", "nodes", "over"].map((id) => byId(id));
    this.pens = this.layers.map((canvas) => canvas.getContext("2d"));
    this.view = new View(memories.page.discs);
    this.hits = new Hits(memories.x, memories.y);
    this.flashes = new Flashes(memories);
    this.keys = new Uint8Array(memories.size);
    this.drawn = new Uint8Array(memories.size);
    this.sprites = new Map();
    this.hover = -1;
    this.linksDrawn = "";
    this.linksAt = 0;
    this.prepare();
    this.colours = palette();
    state.on("time", (_, how) => {
      if (how !== "jump") this.flashes.between(state.before, state.time, performance.now());
      this.ask();
    });
    state.on("matching", () => this.ask());
    state.on("selected", () => {
      const place = state.selected;
      if (place >= 0) this.view.reveal(memories.x[place], memories.y[place]);
      this.ask();
    });
    state.on("theme", () => {
      this.colours = palette();
      this.sprites.clear();
      this.view.version++;
      this.ask();
    });
    new ResizeObserver(() => this.resize()).observe(byId("canvas"));
    this.resize();
  }

  prepare() {
    const { memories } = this;
    this.radius = new Float32Array(memories.size);
    const hubs = new Set(memories.page.discs.map((disc) => disc[4]));
    for (let i = 0; i < memories.size; i++) {
      const told = memories.told(i, Infinity);
      this.radius[i] = memories.type[i] === 0 ? 4.6 : hubs.has(i) ? Math.min(10, 6 + 0.8 * Math.sqrt(told)) : 5.8;
    }
    const times = memories.evidence.map(([a, b]) => Math.max(memories.added[a], memories.added[b]));
    this.evidence = memories.evidence.map((pair, place) => [...pair, times[place]]).sort((a, b) => a[2] - b[2]);
    this.evidenceTimes = Float64Array.from(this.evidence, (one) => one[2]);
    this.linkTimes = Float64Array.from(memories.links.flatMap((link) => [link.time, link.end])).sort();
  }

  resize() {
    const box = byId("canvas");
    const [width, height] = [box.clientWidth, box.clientHeight];
    if (!width || !height) return;
    this.density = Math.min(3, devicePixelRatio || 1);
    for (const canvas of this.layers) {
      canvas.width = Math.round(width * this.density);
      canvas.height = Math.round(height * this.density);
    }
    for (const pen of this.pens) pen.setTransform(this.density, 0, 0, this.density, 0, 0);
    const buttons = byId("nearer").parentElement;
    this.reserved = [buttons.offsetLeft, buttons.offsetTop, buttons.offsetLeft + buttons.offsetWidth, buttons.offsetTop + buttons.offsetHeight];
    this.view.resize(width, height);
    this.ask();
  }

  /** Draw before the next frame. */
  ask() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame((clock) => this.frame(clock));
  }

  frame(clock) {
    this.isAsked = false;
    if (!this.density || !this.view.width) return;
    this.drawMemories();
    const isLate = this.drawLinks(clock);
    const isLit = this.drawOver(clock);
    if (isLit || isLate) this.ask();
    const { scale, left, top } = this.view;
    this.layers[2].dataset.view = [scale, left, top].map((value) => value.toFixed(4)).join(" ");
  }

  look(i, time) {
    const { memories } = this;
    if (memories.added[i] > time) return 0;
    const isLive = memories.isLive(i, time);
    if (!isLive && memories.ending(i, time) === "deleted") return 0;
    const level = isLive ? Math.round(Math.min(1, memories.relevance(i, time)) * LEVELS) : 0;
    return SHOWN + 2 * level + (isLive ? 0 : OUT) + (this.matches.mask[i] ? 0 : DIM) + (memories.isContradicted(i, time) ? CONTRADICTED : 0);
  }

  drawMemories() {
    const { memories, view, keys, drawn, state } = this;
    const pen = this.pens[1];
    let shown = 0;
    let changed = [];
    for (let i = 0; i < memories.size; i++) {
      keys[i] = this.look(i, state.time);
      if (keys[i]) shown++;
      if (keys[i] !== drawn[i]) changed.push(i);
    }
    const isAnew = view.version !== this.version || (changed.length > 0 && view.scale < WIPED_FROM);
    if (isAnew) {
      pen.clearRect(0, 0, view.width, view.height);
      changed = keys.keys();
      this.version = view.version;
    }
    if (!isAnew) this.wipe(pen, changed);
    for (const i of changed) if (keys[i]) this.put(pen, i, keys[i]);
    pen.globalAlpha = 1;
    drawn.set(keys);
    this.layers[1].dataset.shown = shown;
  }

  size(i) {
    return Math.max(SMALLEST_PX, this.radius[i] * this.view.scale);
  }

  /** Take memories off the canvas, and nothing beside them: the layout leaves room enough between them. */
  wipe(pen, places) {
    pen.beginPath();
    for (const i of places) {
      const [px, py] = this.view.pixel(this.memories.x[i], this.memories.y[i]);
      pen.moveTo(px, py);
      pen.arc(px, py, this.size(i) * EXTENT + 0.5, 0, 7);
    }
    pen.globalCompositeOperation = "destination-out";
    pen.globalAlpha = 1;
    pen.fill();
    pen.globalCompositeOperation = "source-over";
  }

  put(pen, i, key) {
    const { memories, view } = this;
    const [px, py] = view.pixel(memories.x[i], memories.y[i]);
    const radius = this.size(i);
    if (px < -radius || py < -radius || px > view.width + radius || py > view.height + radius) return;
    const isOut = (key & OUT) > 0;
    pen.globalAlpha = (isOut ? 0.45 : 0.55 + 0.45 * (((key >> 1) & LEVELS) / LEVELS)) * (key & DIM ? 0.13 : 1);
    const sprite = this.sprite(memories.type[i], memories.outcome[i], radius, isOut);
    const half = sprite.width / 2 / this.density;
    pen.drawImage(sprite, px - half, py - half, 2 * half, 2 * half);
    if (key & CONTRADICTED && !isOut) {
      pen.beginPath();
      pen.arc(px, py, radius * EXTENT - 0.5, 0, 7);
      pen.strokeStyle = this.colours.negative;
      pen.lineWidth = 1;
      pen.setLineDash([2, 2]);
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  sprite(type, outcome, exact, isOut) {
    const radius = Math.round(exact * 4) / 4;
    const key = `${type} ${outcome} ${radius} ${isOut}`;
    if (!this.sprites.has(key)) {
      if (this.sprites.size > 600) this.sprites.clear();
      const sprite = document.createElement("canvas");
      sprite.width = sprite.height = 2 * Math.ceil((radius * 1.25 + 1) * this.density);
      const pen = sprite.getContext("2d");
      pen.translate(sprite.width / 2, sprite.height / 2);
      pen.scale(this.density, this.density);
      draw(pen, { type, outcome, radius, colours: this.colours, isOut });
      this.sprites.set(key, sprite);
    }
    return this.sprites.get(key);
  }

  /** Draw the links, at most some eight times a second while time runs; tells whether that is still to be done. */
  drawLinks(clock) {
    const { memories, view, state } = this;
    const many = last(this.evidenceTimes, state.time) + 1;
    const wanted = [many, last(this.linkTimes, state.time), this.matches.version, view.version].join(" ");
    if (wanted === this.linksDrawn) return false;
    if (clock - this.linksAt < LINKS_EVERY_MS && state.isPlaying) return true;
    this.linksDrawn = wanted;
    this.linksAt = clock;
    const others = memories.links.filter((link) => isThere(link, state.time));
    drawLinks(this.pens[0], { memories, view, colours: this.colours, mask: this.matches.mask, radius: this.radius, evidence: this.evidence, many, others });
    return false;
  }

  drawOver(clock) {
    const { memories, view, state, colours } = this;
    const pen = this.pens[2];
    pen.clearRect(0, 0, view.width, view.height);
    const isLit = this.flashes.draw(pen, view, colours, clock);
    if (state.selected >= 0) {
      drawLinksOf(pen, state.selected, { memories, view, colours, time: state.time, size: (i) => this.size(i) });
      this.ring(pen, state.selected, 2.5, colours.ink);
    }
    drawLabels(pen, { discs: memories.page.discs, areas: memories.page.areas, view, colours, reserved: this.reserved, isShown: (disc) => this.isShown(disc) });
    if (this.hover >= 0 && this.hover !== state.selected) this.ring(pen, this.hover, 1.5, colours.ink);
    return isLit;
  }

  /** Whether a disc has a memory already. */
  isShown(disc) {
    return disc[5] <= this.state.time;
  }

  ring(pen, i, width, colour) {
    const [px, py] = this.view.pixel(this.memories.x[i], this.memories.y[i]);
    pen.beginPath();
    pen.arc(px, py, this.size(i) * 1.2 + 3, 0, 7);
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.stroke();
  }

  /** The memory at a pixel of the map; −1 if there is none. */
  at(px, py) {
    const [x, y] = this.view.unit(px, py);
    return this.hits.nearest(x, y, Math.max(REACH_PX / this.view.scale, 6), (i) => this.keys[i] > 0);
  }
}
