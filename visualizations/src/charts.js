// Charts of the series: how learning went over the whole span, each with its definition, all with a line at the time shown.

import { byId, el, svg } from "./dom.js";
import { roundTicks } from "./dates.js";
import { frame } from "./frame.js";
import { count, oneLine, percent } from "./text.js";

const SIZE = { width: 360, height: 150, left: 38, right: 8, top: 8, bottom: 20 };
const KINDS = {
  live_memories: "area", success_rate: "line", repeated_failures: "line", returning_failures: "line",
  compression_ratio: "line",
  churn: "bar", recalls_served: "line", recalls_helped: "line",
};
const OF_GROUP = { episodic: "episodic", generalisation: "generalisation", procedural: "procedural", fact: "other" };
const OTHERS = ["accent", "negative", "positive", "procedural", "neutral", "episodic", "other"];
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 3", "4 2", ""];
const MOST_DOTS = 45;
let groupWords = {};
const called = (name) => groupWords[name] ?? oneLine(name);

export function charts({ memories, state, dates }) {
  const { series } = memories.page;
  groupWords = memories.page.groups;
  const known = series.map((one) => prepared(one, dates)).filter(Boolean);
  const drawn = known.filter((chart) => chart.series.has_news);
  const titles = (list) => list.map((one) => one.title.toLowerCase()).join("; ");
  const still = known.filter((chart) => !chart.series.has_news).map((chart) => chart.series);
  const missing = series.filter((one) => !known.some((chart) => chart.series === one));
  const all = drawn.map((chart) => draw(chart, dates));
  byId("charts").append(...all.map((one) => one.element));
  const said = [
    still.length ? `Not drawn, because it shows no change (constant, or only from none to all): ${titles(still)}.` : "",
    missing.length ? `Not drawn, because this period has no data: ${titles(missing)}.` : "",
  ].filter(Boolean);
  if (said.length) byId("charts").after(el("p", { class: "hint more" }, said.join(" ")));
  if (!drawn.length) byId("charts").hidden = true;
  state.on("time", () => all.forEach((one) => one.now(state.time)));
  all.forEach((one) => one.now(state.time));
}

/** A series as its groups' points within the span; null where there are none. */
function prepared(series, dates) {
  const starts = [...new Set(series.points.map((point) => point.at))].sort();
  const at = starts.map((start) => dates.seconds(start));
  const width = at.length > 1 ? at[1] - at[0] : 7 * 86400;
  const groups = new Map();
  for (const point of series.points) {
    const place = starts.indexOf(point.at);
    const end = place + 1 < at.length ? at[place + 1] : at[place] + width;
    if (point.value === null || end < 0 || at[place] > dates.end) continue;
    if (!groups.has(point.group)) groups.set(point.group, []);
    groups.get(point.group).push({ ...point, place, start: at[place], end });
  }
  return groups.size ? { series, groups, isShare: series.unit === "share" } : null;
}

function draw({ series, groups, isShare }, dates) {
  const kind = KINDS[series.name];
  const names = [...groups.keys()];
  const colours = names.map((name, place) => `var(--${OF_GROUP[name] ?? OTHERS[place % OTHERS.length]})`);
  const most = isShare ? 1 : roundTicks(kind === "line" ? highest(groups) : stacked(groups)).at(-1);
  const ticks = isShare ? [0, 0.25, 0.5, 0.75, 1] : roundTicks(most);
  const drawing = frame({ ...SIZE, dates, most, ticks, words: isShare ? percent : short(most) });
  const place = (point) => (dates.isUndated ? point.start : kind === "area" ? point.end : (point.start + point.end) / 2);
  ({ line: lines, area: areas, bar: bars })[kind](drawing, { names, groups, colours, place, dates, isShare });
  drawing.element.setAttribute("role", "img");
  drawing.element.setAttribute("aria-label", `${series.title}: ${names.map((name) => told(name, groups.get(name).at(-1), isShare)).join(", ")} at the end`);
  const at = el("p", { class: "at" });
  const element = el("figure", { class: "chart", "data-series": series.name },
    el("h3", { title: series.definition }, series.title), at, drawing.element,
    el("details", {}, el("summary", {}, "How it is computed"), el("p", {}, series.definition)));
  const now = (time) => {
    drawing.now(time);
    const latest = Math.max(...[...groups.values()].flat().filter((one) => one.start <= time).map((one) => one.place));
    const shown = (name) => groups.get(name).find((one) => one.place === latest);
    const when = names.map(shown).find(Boolean)?.at;
    at.replaceChildren(when ? el("span", { class: "bucket" }, dates.bucket(when, series.bucket)) : "", ...names.flatMap((name, number) => {
      const point = shown(name);
      const value = point ? (isShare ? percent(point.value) : count(Math.round(100 * point.value) / 100)) : "–";
      return [el("span", {}, key(kind, colours[number], number), `${called(name)} `, el("b", {}, value)), " "];
    }));
  };
  return { element, now };
}

function key(kind, colour, number) {
  if (kind !== "line") return svg("svg", { class: "key", viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, rx: 2, fill: colour, "fill-opacity": kind === "area" ? 0.75 : 1 }));
  return svg("svg", { class: "key", viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("line", { x1: 0, x2: 10, y1: 5, y2: 5, stroke: colour, "stroke-width": 3, "stroke-dasharray": number ? "3 2" : null }));
}

const told = (name, point, isShare) => `${called(name)} ${isShare ? percent(point.value) : count(Math.round(100 * point.value) / 100)}`;
const short = (most) => (value) => (most >= 10000 && value ? `${value / 1000}k` : count(value));
const highest = (groups) => Math.max(1, ...[...groups.values()].flat().map((point) => point.value));

function stacked(groups) {
  const sums = new Map();
  for (const point of [...groups.values()].flat()) sums.set(point.place, (sums.get(point.place) ?? 0) + point.value);
  return Math.max(1, ...sums.values());
}

function lines({ plot, x, y }, { names, groups, colours, place, dates, isShare }) {
  names.forEach((name, number) => {
    const points = groups.get(name);
    const look = { fill: "none", stroke: colours[number], "stroke-width": 2, "stroke-linejoin": "round", "stroke-dasharray": DASHES[number % DASHES.length] || null };
    let run = [];
    const flush = () => {
      if (run.length > 1) plot.append(svg("polyline", { points: run.join(" "), ...look }));
      run = [];
    };
    points.forEach((point, at) => {
      if (at && point.place !== points[at - 1].place + 1) flush(); // a share of nothing leaves a gap
      run.push(`${x(place(point)).toFixed(1)},${y(point.value).toFixed(1)}`);
    });
    flush();
    const isAlone = (at) => points[at - 1]?.place !== points[at].place - 1 && points[at + 1]?.place !== points[at].place + 1;
    points.forEach((point, at) => {
      if (points.length > MOST_DOTS && !isAlone(at)) return;
      plot.append(svg("circle", { cx: x(place(point)), cy: y(point.value), r: points.length > 20 ? 2 : 3, fill: colours[number] },
        svg("title", {}, `${dates.words(Math.max(0, point.start))}: ${told(name, point, isShare)}${isShare ? ` of ${count(point.count)}` : ""}`)));
    });
  });
}

function areas({ plot, x, y }, { names, groups, colours, place }) {
  const base = new Map();
  names.forEach((name, number) => {
    const points = groups.get(name);
    const upper = points.map((point) => [x(place(point)), y((base.get(point.place) ?? 0) + point.value)]);
    const lower = points.map((point) => [x(place(point)), y(base.get(point.place) ?? 0)]);
    const begin = points[0].start <= 0 && place(points[0]) > 0 ? [[x(0), y(0)]] : [];
    const words = (list) => list.map((one) => one.map((value) => value.toFixed(1)).join(",")).join(" ");
    plot.append(
      svg("polygon", { points: words([...begin, ...upper, ...lower.reverse()]), fill: colours[number], "fill-opacity": 0.55 }),
      svg("polyline", { points: words([...begin, ...upper]), fill: "none", stroke: colours[number], "stroke-width": 1.6, "stroke-linejoin": "round" }));
    for (const point of points) base.set(point.place, (base.get(point.place) ?? 0) + point.value);
  });
}

function bars({ plot, x, y }, { names, groups, colours, place, dates, isShare }) {
  const base = new Map();
  names.forEach((name, number) => {
    for (const point of groups.get(name)) {
      if (!point.value) continue;
      const from = base.get(point.place) ?? 0;
      const wide = Math.max(2, Math.min(18, (x(point.end) - x(point.start)) * 0.8));
      plot.append(svg("rect", { x: x(place(point)) - wide / 2, width: wide, y: y(from + point.value), height: y(from) - y(from + point.value), fill: colours[number] },
        svg("title", {}, `${dates.words(Math.max(0, point.start))}: ${told(name, point, isShare)}`)));
      base.set(point.place, from + point.value);
    }
  });
}
