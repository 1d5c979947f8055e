// The page: reads what it is about, and puts the parts together.

import { charts } from "./charts.js";
import { Controls } from "./controls.js";
import { Memories, read } from "./data.js";
import { Dates } from "./dates.js";
import { byId, el } from "./dom.js";
import { filters } from "./filters.js";
import { GraphMap } from "./map.js";
import { Matches } from "./matches.js";
import { Panel } from "./panel.js";
import { pointing } from "./pointer.js";
import { State } from "./state.js";
import { oneLine } from "./text.js";

function themes(state) {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = byId("theme-button");
  let chosen = null;
  const show = () => {
    const theme = chosen ?? (system.matches ? "dark" : "light");
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
    state.changed("theme");
  };
  button.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    show();
  });
  system.addEventListener("change", show);
  show();
}

function keys({ controls, panel, state, zooms }) {
  const help = byId("keys");
  const button = byId("keys-button");
  const toggle = (isOpen) => {
    help.hidden = !isOpen;
    button.setAttribute("aria-expanded", isOpen);
  };
  button.addEventListener("click", () => toggle(help.hidden));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { target } = event;
    if (event.key === "Escape") {
      if (state.selected >= 0) panel.close();
      else if (target.id === "words" && target.value) panel.search("");
      else toggle(false);
      return;
    }
    const isWriting = target.matches("input[type=search], select");
    const isPressing = event.key === " " && target.matches("button, summary, input, a");
    if (isWriting || isPressing) return;
    if (event.key === "/") {
      byId("words").focus();
      byId("words").select();
    } else if (zooms[event.key]) zooms[event.key]();
    else if (!controls.key(event)) return;
    event.preventDefault();
  });
}

async function main() {
  const page = await read(byId("data"));
  byId("notes").append(...page.notes.map((note) => el("p", {}, note)));
  const memories = new Memories(page);
  const dates = new Dates(page);
  const state = new State(dates.end);
  const matches = new Matches(memories, state);
  themes(state);
  if (memories.size) show({ memories, dates, state, matches });
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.ready = Math.round(performance.now());
  }));
}

function show(context) {
  const { memories, state, matches } = context;
  filters(memories, matches);
  const map = new GraphMap(memories, state, matches);
  const zooms = pointing(map, context);
  const controls = new Controls(context);
  const panel = new Panel(context);
  charts(context);
  keys({ controls, panel, state, zooms });
}

main().catch((error) => {
  byId("failed").textContent = `This page could not be drawn: ${oneLine(error.message ?? error)}. Try a newer browser, or write the page again with memgraph viz page.`;
  byId("failed").hidden = false;
  for (const part of document.querySelectorAll("main, .charts")) part.hidden = true;
  throw error;
});
