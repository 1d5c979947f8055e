// What the page is about, as `memgraph/viz/page_data.py` writes it: memories by number, times in seconds since the beginning.

const DAY = 86400;
const OUT = { suppressed: 1, archived: 2, invalidated: 4, deleted: 8 };
const BACK = { unsuppressed: 1, unarchived: 2, revalidated: 4, undeleted: 8 };
const MOST_STEPS = 50;

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
    this.floor = new Float32Array(this.size);
    this.anchor = new Float32Array(this.size).fill(1);
    this.isPinned = new Uint8Array(this.size);
    for (const [place, more] of Object.entries(page.more)) {
      if (more.floor) this.floor[place] = more.floor;
      if (more.anchor !== undefined) this.anchor[place] = more.anchor;
      if (more.pinned) this.isPinned[place] = 1;
    }
    this.uses = new Map(page.uses.map(([place, ...rest]) => [place, pairsOf(rest)]));
    this.changes = new Map();
    for (const [place, time, kind, other] of page.changes) {
      if (!this.changes.has(place)) this.changes.set(place, []);
      this.changes.get(place).push({ time, kind, other });
    }
    for (const list of this.changes.values()) list.sort((a, b) => a.time - b.time);
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
    this.links = []; // { relation, from, to, time }
    for (const [relation, flat] of Object.entries(links)) {
      if (relation === "EVIDENCE" || relation === "NEXT") continue;
      const width = relation === "SUPERSEDES" || relation === "CONTRADICTS" ? 3 : 2;
      for (let i = 0; i < flat.length; i += width) {
        const [from, to] = [flat[i], flat[i + 1]];
        this.links.push({ relation, from, to, time: width === 3 ? flat[i + 2] : Math.max(this.added[from], this.added[to]) });
      }
    }
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
    for (let i = 0; i < this.size; i++) {
      let was = false;
      for (const time of this.turns(i)) {
        const is = this.isLive(i, time);
        if (is !== was) steps.push([time, is ? 1 : -1]);
        was = is;
      }
    }
    steps.sort((a, b) => a[0] - b[0]);
    this.stepTimes = Float64Array.from(steps, (step) => step[0]);
    this.stepCounts = new Int32Array(steps.length);
    let live = 0;
    steps.forEach((step, place) => (this.stepCounts[place] = live += step[1]));
    const times = [...this.added, ...this.page.changes.map((change) => change[1]), ...[...this.uses.values()].flat().map(([time]) => time)];
    this.moments = Float64Array.from(new Set(times)).sort();
  }

  /** Times at which a memory's state may change: its own, and those of what replaces it. */
  turns(i) {
    const times = new Set([this.added[i]]);
    const waiting = [i];
    for (let steps = 0; waiting.length && steps < MOST_STEPS; steps++) {
      for (const change of this.changes.get(waiting.pop()) ?? []) {
        times.add(Math.max(change.time, this.added[i]));
        if (change.kind === "superseded" && change.other >= 0) waiting.push(change.other);
      }
    }
    return [...times].sort((a, b) => a - b);
  }

  /** What put a memory out by a time: bits of OUT, and by which memories it is replaced. */
  state(i, time) {
    let out = 0;
    const newer = new Set();
    for (const change of this.changes.get(i) ?? []) {
      if (change.time > time) break;
      if (OUT[change.kind]) out |= OUT[change.kind];
      else if (BACK[change.kind]) out &= ~BACK[change.kind];
      else if (change.kind === "superseded") newer.add(change.other);
      else if (change.kind === "unsuperseded") newer.delete(change.other);
    }
    return { out, newer };
  }

  /** Whether a memory is in force: there, and neither put out nor replaced by one that may be seen. */
  isLive(i, time) {
    if (this.added[i] > time) return false;
    if (!this.changes.has(i)) return true;
    const { out, newer } = this.state(i, time);
    return out === 0 && ![...newer].some((other) => this.leads(other, time));
  }

  leads(i, time, depth = 0) {
    if (i < 0 || depth > MOST_STEPS) return true; // not on this page: taken at its word
    if (this.added[i] > time) return false;
    const { out, newer } = this.state(i, time);
    return out === 0 || [...newer].some((other) => this.leads(other, time, depth + 1));
  }

  /** Why a memory is not in force, in a word; empty where it is. */
  ending(i, time) {
    const { out, newer } = this.state(i, time);
    for (const word of Object.keys(OUT)) if (out & OUT[word]) return word;
    return [...newer].some((other) => this.leads(other, time)) ? "superseded" : "";
  }

  isContradicted(i, time) {
    return (this.linksAt.get(i) ?? []).some((link) => link.relation === "CONTRADICTS" && link.time <= time);
  }

  /** Relevance at a time, as if the memory had been recorded when it happened: max(floor, anchor · exp(−rate · days)). */
  relevance(i, time) {
    if (this.isPinned[i]) return 1;
    let anchor = this.anchor[i];
    let since = this.added[i];
    for (const [at, after] of this.uses.get(i) ?? []) {
      if (at > time) break;
      anchor = after / 100;
      since = at;
    }
    const days = Math.max(0, time - since) / DAY;
    return Math.max(this.floor[i], anchor * Math.exp(-this.page.rates[this.type[i]] * days));
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
