// Times in words and as ticks of an axis: UTC; undated trials are counted, not dated.

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const DAY = 86400;
const STEPS = [60, 300, 900, 3600, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 14 * DAY]; // then months and years
const MONTH_STEPS = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1200];

/** Tells times of a page: seconds since its beginning. */
export class Dates {
  constructor(page) {
    this.start = page.start;
    this.end = page.end;
    this.isUndated = page.undated;
  }

  date(seconds) {
    return new Date(this.start + seconds * 1000);
  }

  iso(seconds) {
    return this.date(seconds).toISOString().slice(0, 10);
  }

  /** Seconds since the beginning, of an ISO date. */
  seconds(iso) {
    return (Date.parse(`${iso}T00:00:00Z`) - this.start) / 1000;
  }

  trial(seconds) {
    return Math.floor((this.start / 1000 + seconds - Date.UTC(2000, 0, 1) / 1000) / DAY);
  }

  /** The time in words; with the hour where the whole span is short. */
  words(seconds) {
    if (this.isUndated) return `Trial ${this.trial(seconds)}`;
    const at = this.date(seconds);
    const day = dayOf(at);
    return this.end < 4 * DAY ? `${day}, ${at.toISOString().slice(11, 16)}` : day;
  }

  /** An ISO time as a day in words, whatever the page's times stand for. */
  isoWords(iso) {
    return dayOf(new Date(iso));
  }

  /** The bucket of a series that begins on an ISO date, in words. */
  bucket(iso, bucket) {
    const seconds = this.seconds(iso);
    if (bucket === "day") return this.isUndated ? `Trial ${this.trial(seconds)}` : dayOf(this.date(seconds));
    const at = this.date(seconds);
    if (bucket === "week") return `Week from ${dayOf(at)}`;
    if (bucket === "month") return `${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
    return bucket === "year" ? `${at.getUTCFullYear()}` : `${at.getUTCFullYear()} on`;
  }

  /** The time in words, within a sentence. */
  on(seconds) {
    return this.isUndated ? `in trial ${this.trial(seconds)}` : `on ${this.words(seconds)}`;
  }

  /** Ticks of an axis that is the whole span wide: [seconds, words]. */
  ticks(most) {
    if (this.isUndated) {
      const step = Math.max(1, Math.ceil(this.end / DAY / most));
      return range(0, this.end, step * DAY).map((seconds) => [seconds, `${seconds === 0 ? "trial " : ""}${this.trial(seconds)}`]);
    }
    const step = STEPS.find((one) => this.end / one <= most);
    if (step) {
      const first = Math.ceil(this.start / 1000 / step) * step - this.start / 1000;
      return range(first, this.end, step).map((seconds) => [seconds, this.short(seconds, step)]);
    }
    const months = MONTH_STEPS.find((one) => this.end / DAY / 30.44 / one <= most) ?? 2400;
    const begin = this.date(0);
    const number = begin.getUTCFullYear() * 12 + begin.getUTCMonth();
    const found = [];
    for (let month = Math.ceil((number + (begin.getUTCDate() > 1 ? 1e-9 : 0)) / months) * months; ; month += months) {
      const seconds = (utc(Math.floor(month / 12), month % 12) - this.start) / 1000;
      if (seconds > this.end) return found;
      const year = Math.floor(month / 12);
      if (seconds >= 0) found.push([seconds, months >= 12 ? `${year}` : `${MONTHS[month % 12]} ${year}`]);
    }
  }

  short(seconds, step) {
    const at = this.date(seconds);
    return step < DAY && at.getUTCHours() + at.getUTCMinutes() > 0
      ? at.toISOString().slice(11, 16)
      : `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
  }
}

const dayOf = (at) => `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;

function utc(year, month) {
  const at = new Date(0);
  at.setUTCFullYear(year, month, 1);
  return at.getTime();
}

function range(from, to, step) {
  const found = [];
  for (let at = from; at <= to + 1e-6; at += step) found.push(at);
  return found;
}

/** Whole round numbers from 0 to at least `most`, some four of them. */
export function roundTicks(most) {
  const rough = Math.max(1, most / 4);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough - 1e-12);
  return range(0, Math.ceil(most / step - 1e-9) * step, step).map((value) => +value.toPrecision(12));
}
