// What the page is about, as `memgraph/viz/page_data.py` writes it: memories by number, times in seconds since the beginning.

const DAY = 86400;
const OUT = { suppressed: 1, archived: 2, invalidated: 4, deleted: 8 };
const BACK = { unsuppressed: 1, unarchived: 2, revalidated: 4, undeleted: 8 };
const [POINT, PINNED] = [4, -1];

/** The document in the page, unpacked if need be. */
export async function read(element) {
  const parsed = JSON.parse(element.textContent);
  if (element.dataset.packing !== "deflate") return parsed;
  const bytes = Uint8Array.from(atob(parsed), (character) => character.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(unpacked).text());
}

const digits = (text) => Uint8Array.from(text, Number);

/** Memories with their histories: what each was at any time. */
export class Memories {
  constructor(page) {
    const columns = page.memories;
    this.page = page;
    this.size = columns.text.length;
    this.type = digits(columns.type);
    this.outcome = digits(columns.outcome);
    this.isShort = digits(columns.short);
    this.text = columns.text;
    this.x = Float32Array.from(columns.x);
    this.y = Float32Array.from(columns.y);
    this.added = new Float64Array(this.size);
    let at = 0;
    for (let i = 0; i < this.size; i++) this.added[i] = at += columns.added[i];
    this.lives = new Map(page.lives.map(([place, ...turns]) => [place, turns]));
    this.curves = new Map(page.curves.map(([place, leftOut, ...flat]) => [place, { leftOut, points: pointsOf(flat) }]));
    this.changes = new Map();
    for (const [place, time, kind] of page.changes) {
      if (!this.changes.has(place)) this.changes.set(place, []);
      this.changes.get(place).push({ time, kind });
    }
    this.wordedTimes = new Map(page.worded);
    this.toldTimes = new Map(page.told.map(([place, ...times]) => [place, times]));
    this.readLinks(page.links);
    this.readLives();
  }

  readLinks(links) {
    this.evidence = pairsOf(links.EVIDENCE ?? []); // [memory, what was made of it]
    this.sources = lists(this.evidence, 1, 0);
    this.made = lists(this.evidence, 0, 1);
    const next = pairsOf(links.NEXT ?? []);
    this.following = lists(next, 0, 1);
    this.preceding = lists(next, 1, 0);
    this.links = []; // { relation, from, to, time, end }
    for (const [relation, flat] of Object.entries(links)) {
      if (relation === "EVIDENCE" || relation === "NEXT") continue;
      for (let i = 0; i < flat.length; i += 4) {
        const [from, to, time, end] = flat.slice(i, i + 4);
        this.links.push({ relation, from, to, time, end: end < 0 ? Infinity : end });
      }
    }
    this.disputed = new Set(this.links.filter((link) => link.relation === "CONTRADICTS").flatMap((link) => [link.from, link.to]));
    this.linksAt = new Map();
    for (const link of this.links) {
      for (const end of [link.from, link.to]) {
        if (!this.linksAt.has(end)) this.linksAt.set(end, []);
        this.linksAt.get(end).push(link);
      }
    }
  }

  /** Every time at which a memory came into force or went out of it, and how many were in force from then on. */
  readLives() {
    const steps = [];
    for (let i = 0; i < this.size; i++) this.turns(i).forEach((time, place) => steps.push([time, place % 2 ? -1 : 1]));
    steps.sort((a, b) => a[0] - b[0]);
    this.stepTimes = Float64Array.from(steps, (step) => step[0]);
    this.stepCounts = new Int32Array(steps.length);
    let live = 0;
    steps.forEach((step, place) => (this.stepCounts[place] = live += step[1]));
    const points = [...this.curves.values()].flatMap((curve) => curve.points);
    const times = [...this.added, ...this.stepTimes, ...points.map((point) => point.time)];
    this.moments = Float64Array.from(new Set(times)).sort();
  }

  /** When a memory came into force, went out of it, came back, … */
  turns(i) {
    return this.lives.get(i) ?? [this.added[i]];
  }

  /** Whether a memory is in force: there, and neither put away nor replaced. */
  isLive(i, time) {
    const turns = this.lives.get(i);
    return turns ? last(turns, time) % 2 === 0 : this.added[i] <= time;
  }

  /** Why a memory is not in force, in a word; empty where it is. */
  ending(i, time) {
    if (this.isLive(i, time)) return "";
    let out = 0;
    for (const change of this.changes.get(i) ?? []) {
      if (change.time > time) break;
      if (OUT[change.kind]) out |= OUT[change.kind];
      else out &= ~BACK[change.kind];
    }
    return Object.keys(OUT).find((word) => out & OUT[word]) ?? "superseded";
  }

  /** Whether a memory is contradicted, and neither of the two has replaced the other. */
  isContradicted(i, time) {
    if (!this.disputed.has(i)) return false;
    const links = this.linksAt.get(i).filter((link) => isThere(link, time));
    const others = (relation) => links.filter((link) => link.relation === relation).map((link) => (link.from === i ? link.to : link.from));
    const replaced = others("SUPERSEDES");
    return others("CONTRADICTS").some((other) => !replaced.includes(other));
  }

  /** How many builds had told a memory by a time; of one that at most one tells, 1. */
  told(i, time) {
    const times = this.toldTimes.get(i);
    return times ? Math.max(1, last(times, time) + 1) : 1;
  }

  /** Since when a memory has the text that is on the page. */
  worded(i) {
    return this.wordedTimes.get(i) ?? this.added[i];
  }

  /** When a memory was told last by a time. */
  toldLast(i, time) {
    const times = this.toldTimes.get(i) ?? [];
    return times[last(times, time)] ?? this.added[i];
  }

  /** The point of its curve at which a memory is: when it was set, to what, and what holds it. */
  point(i, time) {
    const curve = this.curves.get(i);
    const before = curve?.points.findLast((point) => point.time <= time);
    if (before) return before;
    return curve?.leftOut ? { ...curve.points[0], time } : { time: this.added[i], value: 1, floor: 0, isPinned: false };
  }

  /** From when on a memory's relevance is known: of many changes only the latest are. */
  knownFrom(i) {
    const curve = this.curves.get(i);
    return curve?.leftOut ? curve.points[0].time : this.added[i];
  }

  /** When a memory was used, or told again. */
  uses(i) {
    return (this.curves.get(i)?.points ?? []).filter((point) => point.isUse).map((point) => point.time);
  }

  /** Relevance at a time, as if the memory had been recorded when it happened: max(floor, value · exp(−rate · days)). */
  relevance(i, time) {
    const point = this.point(i, time);
    if (point.isPinned) return 1;
    const days = Math.max(0, time - point.time) / DAY;
    return Math.max(point.floor, point.value * Math.exp(-this.page.rates[this.type[i]] * days));
  }

  /** How many memories are in force at a time. */
  live(time) {
    const place = last(this.stepTimes, time);
    return place < 0 ? 0 : this.stepCounts[place];
  }

  name(kind, i) {
    const place = this.page.memories[kind][i];
    return place < 0 ? "" : this.page[`${kind}s`][place];
  }

  names(kind, i) {
    return this.page.memories[kind][i].map((place) => this.page[kind][place]);
  }

  more(i) {
    return this.page.more[i] ?? {};
  }

  sure(i) {
    return this.more(i).sure ?? 1;
  }

  id(i) {
    return this.page.memories.id.slice(8 * i, 8 * i + 8);
  }
}

/** The last place of an ascending array that holds at most this value; −1 if there is none. */
export function last(ascending, value) {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Whether a link is there at a time. */
export const isThere = (link, time) => link.time <= time && time < link.end;

function pointsOf(flat) {
  const points = [];
  for (let i = 0; i < flat.length; i += POINT) {
    const [time, value, hold, isUse] = flat.slice(i, i + POINT);
    points.push({ time, value: value / 100, floor: Math.max(0, hold / 100), isPinned: hold === PINNED, isUse: isUse === 1 });
  }
  return points;
}

function pairsOf(flat) {
  const pairs = [];
  for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i], flat[i + 1]]);
  return pairs;
}

function lists(pairs, key, value) {
  const found = new Map();
  for (const pair of pairs) {
    if (!found.has(pair[key])) found.set(pair[key], []);
    found.get(pair[key]).push(pair[value]);
  }
  return found;
}
