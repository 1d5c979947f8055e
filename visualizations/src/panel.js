// The panel beside the map: what was found, else the lessons with the most evidence; or one memory in full.

import { details } from "./details.js";
import { byId, el } from "./dom.js";
import { Failures } from "./failing.js";
import { failureRows, rows, told } from "./rows.js";
import { withoutShared } from "./shared.js";
import { count, counted, oneLine } from "./text.js";

const [MOST_FOUND, MOST_LESSONS, MOST_FAILING, MOST_GONE] = [50, 10, 20, 3];
const PAUSE_MS = 180;

export class Panel {
  constructor(context) {
    this.context = context;
    const { memories, state, matches } = context;
    this.results = byId("results");
    this.details = byId("details");
    this.failures = new Failures(context);
    this.whole = new Set(); // lists that are shown whole
    this.lessons = Array.from({ length: memories.size }, (_, i) => i).filter((i) => memories.type[i] === 1 || memories.type[i] === 2);
    this.lessons.sort((a, b) => this.weight(b) - this.weight(a) || memories.sure(b) - memories.sure(a) || memories.added[b] - memories.added[a]);
    byId("search").addEventListener("submit", (event) => event.preventDefault());
    byId("words").addEventListener("input", (event) => {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.search(event.target.value), PAUSE_MS);
    });
    state.on("selected", () => this.open());
    state.on("matching", () => this.list());
    state.on("time playing", () => this.follow());
    this.search = (words) => {
      clearTimeout(this.waiting);
      byId("words").value = words;
      state.select(-1);
      matches.set({ words });
    };
    this.list();
  }

  weight(i) {
    return this.context.memories.told(i, Infinity) + (this.context.memories.sources.get(i)?.length ?? 0) / 1000;
  }

  /** Bring the panel up to the time, not more often than anybody reads. */
  follow() {
    if (this.isLate) return;
    this.isLate = true;
    setTimeout(() => {
      this.isLate = false;
      if (this.context.state.selected >= 0) this.open(true);
      else this.list();
    }, this.context.state.isPlaying ? 300 : 60);
  }

  list() {
    const { memories, state, matches, dates } = this.context;
    const isAsked = matches.words.trim() || !matches.isAll;
    let heading, hint, places;
    if (isAsked) {
      const ranked = matches.ranked(state.time);
      places = ranked.slice(0, MOST_FOUND);
      heading = `${counted(ranked.length, "memory", "memories")} found`;
      hint = ranked.length > MOST_FOUND ? `The ${MOST_FOUND} most relevant are listed.` : ranked.length ? "Most relevant first." : "Try other words, or show all types and outcomes.";
    } else {
      const known = this.lessons.filter((i) => memories.isLive(i, state.time));
      places = (known.length ? known : matches.ranked(state.time).filter((i) => memories.isLive(i, state.time))).slice(0, MOST_LESSONS);
      heading = known.length ? "Best supported lessons" : "Most relevant memories";
      const when = state.time >= dates.end ? "at the end" : dates.on(state.time);
      hint = known.length ? `Of ${counted(known.length, "lesson")} ${when}` : when[0].toUpperCase() + when.slice(1);
    }
    const focused = this.results.contains(document.activeElement) ? document.activeElement.dataset.memory : null;
    const said = isAsked || !this.failures.isKnown ? [] : withoutShared(places.map((i) => oneLine(memories.text[i])));
    const words = (i) => said[places.indexOf(i)] ?? memories.text[i];
    const list = rows(places, { memories, state, dates, note: (i) => told(memories, i, state.time), words });
    const failing = !isAsked && this.failures.isKnown ? this.failing() : [];
    this.results.replaceChildren(...failing, el("h2", {}, heading), el("p", { class: "hint" }, hint), list);
    if (focused) this.results.querySelector(`[data-memory="${focused}"]`)?.focus({ preventScroll: true });
  }

  /** What still fails at the time shown, and what no longer does. */
  failing() {
    const { state } = this.context;
    const { still, gone, isAgain, isOfTasks } = this.failures.at(state.time);
    const period = this.failures.period(state.time);
    return [
      ...this.block("failing", isAgain ? "Still failing" : "Failing", still, MOST_FAILING, isOfTasks ? `${period}: the last attempt failed` : `${period}: failed then`),
      ...this.block("solved", isOfTasks ? "Solved since" : "Not failed since", gone, MOST_GONE, isOfTasks ? "Failed before, then solved" : "Failed before, but not then"),
    ];
  }

  block(name, heading, all, most, hint) {
    if (!all.length) return [];
    const told = all.filter((one) => this.failures.isTold(one, this.context.state.time));
    const shown = this.whole.has(name) ? told : told.slice(0, most);
    const list = failureRows(this.failures, shown, this.context);
    const rest = told.length - shown.length;
    const untold = all.length - told.length;
    const more = el("button", { type: "button", class: "more", onclick: () => {
      this.whole.add(name);
      this.list();
      this.results.querySelectorAll(`[data-list="${name}"] .row`)[most]?.focus();
    } }, `Show ${rest} more`);
    return [el("section", { class: "block", "data-list": name }, el("h2", {}, `${heading} (${all.length})`), el("p", { class: "hint" }, hint), list, rest ? more : null,
      untold ? el("p", { class: "hint" }, `No memory on this page describes ${count(untold)} of them.`) : null)];
  }

  open(isSame = false) {
    const { state } = this.context;
    const isOpen = state.selected >= 0;
    if (isSame) {
      this.refresh?.();
      return;
    }
    const isReading = byId("panel").contains(document.activeElement);
    this.details.hidden = !isOpen;
    this.results.hidden = isOpen;
    if (!isOpen) {
      this.details.replaceChildren();
      this.list();
      return;
    }
    const { element, refresh } = details(state.selected, { ...this.context, search: this.search, close: () => this.close() });
    this.refresh = refresh;
    this.details.replaceChildren(element);
    this.details.scrollTop = 0;
    if (isReading) element.querySelector("button").focus({ preventScroll: true });
    if (matchMedia("(max-width: 1020px)").matches) byId("panel").scrollIntoView({ block: "start" });
  }

  close() {
    const id = this.context.state.selected;
    this.context.state.select(-1);
    const row = this.results.querySelector(`[data-memory="${this.context.memories.id(id)}"]`);
    (row ?? byId("words")).focus({ preventScroll: true });
  }
}
