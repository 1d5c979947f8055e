// One memory in full: what it says, how it stands at the time shown, where it comes from, what was made of it.

import { curve } from "./curve.js";
import { el, foreign } from "./dom.js";
import { sign } from "./icons.js";
import { rows, since, told } from "./rows.js";
import { counted, oneLine, percent, readable } from "./text.js";

const TYPES = ["Episode", "Generalisation", "Procedure", "Fact"];
const OUTCOMES = ["went well", "went wrong", "neutral outcome"];
const MOST = 6;
const FADING = "Computed as if recorded when it happened (the store counts from the time of recording). " +
  "Ticks mark uses that raised it; below the dotted line the memory may be archived.";

/** What a memory is, and how it came out; where nobody says that, what kind of change it was, if it was one. */
const named = (type, outcome, kind) => [TYPES[type], OUTCOMES[outcome] ?? (kind === "other" ? "change" : kind)].filter(Boolean).join(", ");

export function details(i, context) {
  const { memories, close } = context;
  const states = el("p", {});
  const drawn = curve(i, context);
  const element = el("article", { "aria-label": "Memory", "data-memory": memories.id(i) },
    el("div", { class: "detail-head" },
      sign(memories.type[i], memories.outcome[i]),
      el("span", {}, named(memories.type[i], memories.outcome[i], memories.more(i).kind)),
      el("button", { type: "button", onclick: close, "aria-label": "Close" }, "Close")),
    el("p", { class: "content", dir: "auto" }, readable(memories.text[i])),
    memories.isShort[i] ? el("p", { class: "hint" }, `The rest: memgraph show ${memories.id(i)}`) : null,
    states,
    parts(i, memories),
    el("section", { class: "part" }, el("h3", {}, "Relevance"), drawn.element, el("p", { class: "hint" }, FADING, begun(i, context))),
    provenance(i, context),
    el("section", { class: "part" }, el("h3", {}, "Facts"), facts(i, context)));
  const refresh = () => {
    states.replaceChildren(...standing(i, context));
    drawn.refresh();
  };
  refresh();
  return { element, refresh };
}

/** That the curve does not begin with the memory, where it does not. */
function begun(i, { memories, dates }) {
  const leftOut = memories.curves.get(i)?.leftOut;
  return leftOut ? ` ${counted(leftOut, "earlier change")} of its relevance ${leftOut === 1 ? "is" : "are"} left out: the curve starts ${dates.on(memories.knownFrom(i))}.` : "";
}

function standing(i, { memories, state, dates }) {
  const { time } = state;
  const word = (text) => el("span", { class: "state" }, text);
  if (memories.added[i] > time) return [word(`added later, ${dates.on(memories.added[i])}`)];
  const ending = memories.ending(i, time);
  const { floor, isPinned } = memories.point(i, time);
  return [
    word(ending || "in force"),
    time < memories.knownFrom(i) ? null : word(`relevance ${percent(memories.relevance(i, time))}`),
    told(memories, i, time) ? word(told(memories, i, time)) : null,
    ...since(i, { memories, state, dates }).map(word),
    isPinned ? word("pinned") : null,
    floor ? word("landmark") : null,
    memories.isContradicted(i, time) ? word("contradicted") : null,
    memories.made.has(i) && memories.made.get(i).some((one) => memories.added[one] <= time) ? word("generalised") : null,
  ].filter(Boolean);
}

function parts(i, memories) {
  const more = memories.more(i);
  const line = (name, text) => (text ? el("p", { class: "more" }, el("b", {}, `${name} `), foreign(readable(text))) : null);
  return [
    line("When", more.trigger),
    more.steps ? el("ol", { class: "steps" }, more.steps.map((step) => el("li", {}, foreign(readable(step))))) : null,
    line("Right", more.right),
    line("Wrong", more.wrong),
  ];
}

function facts(i, { memories, dates, search }) {
  const more = memories.more(i);
  const go = (text, words = text) => el("button", { type: "button", class: "tag", onclick: () => search(words), title: "Search for this" }, foreign(oneLine(text)));
  const all = (names) => (names.length ? names.map((name) => go(name)) : null);
  const things = (more.things ?? []).map((place) => memories.page.things[place]);
  const build = memories.name("build", i);
  const known = [
    ["Happened", dates.words(memories.added[i])],
    ["Recorded", more.recorded],
    ["Valid until", more.holds ? dates.isoWords(more.holds) : null],
    ["Reason", oneLine(memories.name("reason", i))],
    ["Title", more.title ? foreign(oneLine(more.title)) : null],
    ["Tags", all(memories.names("tags", i))],
    ["Names", all(things)],
    ["Agents", all(memories.names("agents", i))],
    ["Project", memories.name("project", i) ? foreign(oneLine(memories.name("project", i))) : null],
    [memories.page.undated ? "Trial" : "Build", build ? go(build) : null],
    ["Commit", more.commit ? go(more.commit.slice(0, 12), more.commit) : null],
    ["Confidence", more.sure === undefined ? null : percent(more.sure)],
    ["Used", more.used ? counted(more.used, "time") : null],
    ["Privacy", more.tier],
    ["Id", memories.id(i)],
  ];
  const given = known.filter(([, value]) => value && value.length !== 0);
  return el("dl", { class: "facts" }, given.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function provenance(i, context) {
  const { memories } = context;
  const isKept = (link) => link.end === Infinity;
  const linked = (relation, is) => (memories.linksAt.get(i) ?? []).filter((link) => isKept(link) && link.relation === relation && link[is] === i).map((link) => (link.from === i ? link.to : link.from));
  const both = (relation) => [...linked(relation, "from"), ...linked(relation, "to")];
  return [
    part("Derived from", memories.sources.get(i) ?? [], context),
    part("Derived from it", memories.made.get(i) ?? [], context),
    part("Replaces", linked("SUPERSEDES", "from"), context),
    part("Replaced by", linked("SUPERSEDES", "to"), context),
    part("Contradicts", both("CONTRADICTS"), context),
    part("Related", [...both("RELATED_TO"), ...both("ELABORATES"), ...both("EXAMPLE_OF")], context),
    part("Previous", memories.preceding.get(i) ?? [], context),
    part("Next", memories.following.get(i) ?? [], context),
  ];
}

/** Memories that are linked in one way; archived ones and all beyond the first are shown when that is asked for. */
function part(title, places, context) {
  if (!places.length) return null;
  const { memories, dates, state } = context;
  const isPutAway = (one) => memories.ending(one, dates.end) === "archived";
  const kept = places.filter((one) => !isPutAway(one));
  const putAway = places.filter(isPutAway);
  const note = (one) => told(memories, one, state.time);
  const list = (shown) => rows(shown, { ...context, note });
  const section = el("section", { class: "part", "data-part": title },
    el("h3", {}, places.length > 1 ? `${title} (${places.length})` : title), list(kept.slice(0, MOST)));
  const more = (text, rest) => {
    if (!rest.length) return;
    const button = el("button", { type: "button", class: "more", onclick: () => {
      const added = list(rest);
      button.replaceWith(added);
      added.querySelector("button").focus();
    } }, text);
    section.append(button);
  };
  more(`Show ${kept.length - MOST} more`, kept.slice(MOST));
  more(`Show ${putAway.length} archived`, putAway);
  return section;
}
