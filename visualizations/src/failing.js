// Failures that come back: which of them still failed at a time, and which were solved, or not seen again.

import { last } from "./data.js";
import { withoutCommon } from "./shared.js";
import { counted, oneLine } from "./text.js";

export class Failures {
  constructor({ memories, dates }) {
    Object.assign(this, { memories, dates });
    const { failing } = memories.page;
    this.isKnown = Boolean(failing);
    if (!failing) return;
    this.bucket = failing.bucket;
    this.periods = failing.periods;
    this.begins = Float64Array.from(failing.periods, (period) => period[1]);
    const told = failing.failures.filter(([, places]) => places.length);
    const titles = new Map(withoutCommon(told.map(([title]) => oneLine(title))).map((title, at) => [told[at], title]));
    this.all = failing.failures.map((one) => {
      const [, places, failed, tried, solved] = one;
      return { title: titles.get(one) ?? "", places, failed, tried, solved };
    });
  }

  /** What failed by a time: still, and no more; the most frequent first. Some no memory that is there tells of: see `isTold`. */
  at(time) {
    const begin = this.begins[Math.max(0, last(this.begins, time))];
    const known = this.all.filter((one) => one.failed[0] <= time);
    const isStill = (one) => {
      const latest = one.failed[last(one.failed, time)];
      return one.tried.length ? !one.solved.some((at) => latest < at && at <= time) : latest >= begin;
    };
    const still = new Set(known.filter(isStill));
    const order = (list) => list.sort((a, b) => many(b.failed, time) - many(a.failed, time) || a.title.localeCompare(b.title, "en", { numeric: true }));
    return { still: order([...still]), gone: order(known.filter((one) => !still.has(one))), isAgain: known.some((one) => one.failed[0] < begin), isOfTasks: known.every((one) => one.tried.length > 0) };
  }

  /** Whether a memory that is there at a time tells of a failure. */
  isTold(one, time) {
    return this.place(one, time) >= 0;
  }

  /** When the bucket of a time is, in words. */
  period(time) {
    return this.dates.bucket(this.periods[Math.max(0, last(this.begins, time))][0], this.bucket);
  }

  /** The memory that told of a failure last, at a time; −1 if none has come. */
  place(one, time) {
    let [found, when] = [-1, -Infinity];
    for (const [place] of one.places) {
      const at = this.memories.toldLast(place, time);
      if (this.memories.added[place] <= time && at >= when) [found, when] = [place, at];
    }
    return found;
  }

  /** What a failure was, from where its text says so. */
  words(one, time) {
    const place = this.place(one, time);
    const [, from] = one.places.find(([other]) => other === place);
    return oneLine(this.memories.text[place].slice(from) || this.memories.text[place]);
  }

  /** How often it failed by a time, of how many attempts. */
  count(one, time) {
    const failed = many(one.failed, time);
    const solved = one.solved.find((at) => one.failed[failed - 1] < at && at <= time);
    const since = solved === undefined ? "" : `, solved ${this.dates.on(solved)}`;
    if (one.tried.length) return `failed ${failed} of ${counted(many(one.tried, time), "attempt")}${since}`;
    return `failed ${counted(failed, "time")}, last ${this.dates.on(one.failed[failed - 1])}`;
  }
}

const many = (times, time) => last(times, time) + 1;
