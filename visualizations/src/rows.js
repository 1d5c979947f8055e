// Memories as rows of a list, each a button that goes to its memory.

import { el, foreign } from "./dom.js";
import { sign } from "./icons.js";
import { withoutShared } from "./shared.js";
import { beginning, counted } from "./text.js";

const LONGEST = 240;

/** A list of memories; `note` says more of each in small letters, `words` what stands there instead of the memory's text. */
export function rows(places, { memories, state, dates, note = () => "", words = (i) => memories.text[i] }) {
  return el("ol", { class: "list" }, places.map((i) => row(i, { memories, state, dates, note: note(i), words: words(i) })));
}

/** Failures as rows: what failed, what of it is known, and how often it did. */
export function failureRows(failures, shown, { memories, state, dates }) {
  const words = withoutShared(shown.map((one) => failures.words(one, state.time)));
  return el("ol", { class: "list" }, shown.map((one, at) => {
    const i = failures.place(one, state.time);
    return el("li", {}, el("button", { type: "button", class: "row", "data-memory": memories.id(i), onclick: () => state.select(i) },
      sign(memories.type[i], memories.outcome[i]),
      el("span", {},
        el("span", { class: "words" }, one.title ? [el("b", {}, foreign(one.title)), " "] : null, foreign(beginning(words[at], LONGEST))),
        el("span", { class: "meta" }, [failures.count(one, state.time), ...since(i, { memories, state, dates })].join(" · ")))));
  }));
}

function row(i, { memories, state, dates, note, words }) {
  const isThere = memories.added[i] <= state.time;
  const ending = isThere ? memories.ending(i, state.time) : "";
  const meta = [
    isThere ? "" : "not yet,", dates.words(memories.added[i]), ...(ending ? [`· ${ending}`] : []), ...(note ? [`· ${note}`] : []),
    ...(isThere ? since(i, { memories, state, dates }).map((words) => `· ${words}`) : []),
  ].filter(Boolean);
  return el("li", {}, el("button", { type: "button", class: `row${isThere && !ending ? "" : " away"}`, "data-memory": memories.id(i), onclick: () => state.select(i) },
    sign(memories.type[i], memories.outcome[i], Boolean(ending)),
    el("span", {},
      el("bdi", { class: "words" }, beginning(words, LONGEST)),
      el("span", { class: "meta" }, meta.join(" ")))));
}

/** That the text on the page is of a later time than the one shown, where it is. */
export function since(i, { memories, state, dates }) {
  const at = memories.worded(i);
  return at > state.time ? [`in the words of ${dates.words(at)}`] : [];
}

/** How many builds had told a memory by a time. */
export function told(memories, i, time) {
  const many = memories.told(i, time);
  const unit = memories.page.undated ? "trial" : "build";
  return many > 1 ? `seen in ${counted(many, unit)}` : "";
}
