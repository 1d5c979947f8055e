// Memories as rows of a list, each a button that goes to its memory.

import { el } from "./dom.js";
import { sign } from "./icons.js";
import { beginning, counted } from "./text.js";

const LONGEST = 240;

/** A list of memories; `note` says more of each in small letters. */
export function rows(places, { memories, state, dates, note = () => "" }) {
  return el("ol", { class: "list" }, places.map((i) => row(i, { memories, state, dates, note: note(i) })));
}

function row(i, { memories, state, dates, note }) {
  const isThere = memories.added[i] <= state.time;
  const ending = isThere ? memories.ending(i, state.time) : "";
  const meta = [
    isThere ? "" : "not yet,", dates.words(memories.added[i]), ...(ending ? [`· ${ending}`] : []), ...(note ? [`· ${note}`] : []),
  ].filter(Boolean);
  return el("li", {}, el("button", { type: "button", class: `row${isThere && !ending ? "" : " away"}`, "data-memory": memories.id(i), onclick: () => state.select(i) },
    sign(memories.type[i], memories.outcome[i], Boolean(ending)),
    el("span", {},
      el("bdi", { class: "words" }, beginning(memories.text[i], LONGEST)),
      el("span", { class: "meta" }, meta.join(" ")))));
}

/** How many builds told a memory. */
export function told(memories, i) {
  const many = memories.page.memories.told[i];
  const unit = memories.page.undated ? "trial" : "build";
  return many > 1 ? `seen in ${counted(many, unit)}` : "";
}
