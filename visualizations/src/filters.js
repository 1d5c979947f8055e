// Filters that are a legend, too: each type and outcome with its sign and how many there are; projects and agents as lists.

import { byId, el } from "./dom.js";
import { line, sign } from "./icons.js";
import { beginning, count } from "./text.js";

const TYPES = ["episodes", "generalisations", "procedures", "facts"];
const LINES = [["EVIDENCE", "evidence"], ["SUPERSEDES", "replaces"], ["CONTRADICTS", "contradicts"]];
const OUTCOMES = ["went well", "went wrong", "neutral", "no outcome"];

export function filters(memories, matches) {
  const { page } = memories;
  const chips = (title, names, column, chosen, picture) => {
    const counts = names.map((_, code) => column.reduce((many, one) => many + (one === code), 0));
    const shown = names.map((name, code) => [name, code]).filter(([, code]) => counts[code]);
    const changed = (code) => (event) => {
      chosen[event.target.checked ? "add" : "delete"](code);
      matches.set({});
    };
    return el("fieldset", {}, el("legend", {}, title), shown.map(([name, code]) =>
      el("label", { class: "chip" },
        el("input", { type: "checkbox", checked: true, onchange: changed(code), "data-filter": `${title} ${code}` }),
        picture(code), el("span", {}, name), el("small", {}, count(counts[code])))));
  };
  byId("legend").append(
    chips("Show", TYPES, memories.type, matches.types, (code) => sign(code)),
    chips("that", OUTCOMES, memories.outcome, matches.outcomes, (code) => sign(0, code)));
  const kinds = new Set(memories.links.map((link) => link.relation));
  if (memories.evidence.length) kinds.add("EVIDENCE");
  const lines = LINES.filter(([relation]) => kinds.has(relation)).map(([relation, words]) => el("span", {}, line(relation), words));
  byId("legend").append(el("div", { class: "lines" }, lines, el("span", {}, "Paler means more faded")));
  choose("project", page.projects, "All projects", (project) => matches.set({ project }));
  choose("agent", page.agents, "All agents", (agent) => matches.set({ agent }));
}

function choose(kind, names, all, tell) {
  const select = byId(kind);
  byId(`of-${kind}`).hidden = names.length < 2;
  const order = names.map((name, place) => [name, place]).sort(([a], [b]) => a.localeCompare(b, "en"));
  select.append(el("option", { value: -1 }, all), ...order.map(([name, place]) => el("option", { value: place }, beginning(name, 60))));
  select.addEventListener("change", () => tell(Number(select.value)));
}
