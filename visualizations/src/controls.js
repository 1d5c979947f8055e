// Time: slider, play and pause, steps, keys; and what is to be read of it.

import { last } from "./data.js";
import { byId, svg } from "./dom.js";
import { paused, playing } from "./icons.js";
import { count, counted } from "./text.js";

const SPAN_MS = 24000; // what it takes to play all, at speed 1
const STEPS = 1000;
const KEY_STEPS = 10;
const CALM_MS = 900;
const BARS = 120;

export class Controls {
  constructor({ memories, state, matches, dates }) {
    Object.assign(this, { memories, state, matches, dates });
    this.slider = byId("slider");
    this.isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.slider.addEventListener("input", () => {
      this.pause();
      state.setTime(this.timeOf(Number(this.slider.value)));
    });
    byId("play").addEventListener("click", () => this.toggle());
    byId("before").addEventListener("click", () => this.step(-1));
    byId("after").addEventListener("click", () => this.step(1));
    byId("speed").addEventListener("change", (event) => (state.speed = Number(event.target.value)));
    state.on("time matching", () => this.tell());
    this.density();
    this.button();
    this.tell();
  }

  timeOf(value) {
    return value >= STEPS ? this.dates.end : Math.floor((this.dates.end * value) / STEPS);
  }

  /** Show what the time is and what is in force then, in words and for whoever reads the page by machine. */
  tell() {
    const { memories, state, matches, dates } = this;
    const live = memories.live(state.time);
    this.slider.value = Math.round((STEPS * state.time) / dates.end);
    const words = dates.words(state.time);
    this.slider.setAttribute("aria-valuetext", `${words}, ${counted(live, "memory", "memories")} in force`);
    byId("date").textContent = words;
    let matching = live;
    if (!matches.isAll) {
      matching = 0;
      for (let i = 0; i < memories.size; i++) matching += matches.mask[i] && memories.isLive(i, state.time) ? 1 : 0;
    }
    byId("live").textContent = `${counted(live, "memory", "memories")} in force${matches.isAll ? "" : `, ${count(matching)} of them match`}`;
    Object.assign(byId("time").dataset, { date: dates.date(state.time).toISOString(), live, matching });
  }

  /** Bars of how many memories came when. */
  density() {
    const { memories, dates } = this;
    const bars = new Array(BARS).fill(0);
    for (const time of memories.added) bars[Math.min(BARS - 1, Math.floor((BARS * time) / dates.end))]++;
    const most = Math.max(1, ...bars);
    const picture = byId("density");
    picture.setAttribute("viewBox", `0 0 ${BARS} 30`);
    picture.setAttribute("preserveAspectRatio", "none");
    bars.forEach((many, at) => {
      const high = many ? Math.max(2, 28 * Math.sqrt(many / most)) : 0;
      if (high) picture.append(svg("rect", { x: at + 0.12, width: 0.76, y: 30 - high, height: high, fill: "var(--edge)", opacity: 0.55 }));
    });
  }

  button() {
    byId("play").replaceChildren(this.state.isPlaying ? playing() : paused());
    byId("play").setAttribute("aria-label", this.state.isPlaying ? "Pause" : "Play");
  }

  toggle() {
    if (this.state.isPlaying) this.pause();
    else this.play();
  }

  play() {
    const { state, dates } = this;
    if (state.time >= dates.end) state.setTime(0);
    state.isPlaying = true;
    this.button();
    state.changed("playing");
    let before = performance.now();
    const go = (clock) => {
      if (!state.isPlaying) return;
      const passed = Math.max(0, clock - before);
      if (!this.isCalm || passed >= CALM_MS) {
        before = clock;
        const time = Math.min(dates.end, state.time + (dates.end * passed * state.speed) / SPAN_MS);
        state.setTime(time, "play");
        if (time >= dates.end) this.pause();
      }
      requestAnimationFrame(go);
    };
    requestAnimationFrame(go);
  }

  pause() {
    if (!this.state.isPlaying) return;
    this.state.isPlaying = false;
    this.button();
    this.state.changed("playing");
  }

  /** Go to the change before or after. */
  step(by) {
    this.pause();
    const { moments } = this.memories;
    const { state, dates } = this;
    const at = last(moments, state.time);
    const place = by > 0 ? at + 1 : moments[at] < state.time ? at : at - 1;
    const time = place < 0 ? 0 : place >= moments.length ? dates.end : Math.min(dates.end, moments[place]);
    state.setTime(time, "step");
  }

  /** Go on or back by one hundredth of the span. */
  move(by) {
    this.pause();
    const value = Math.round((STEPS * this.state.time) / this.dates.end) + by * KEY_STEPS;
    this.state.setTime(this.timeOf(Math.max(0, Math.min(STEPS, value))), "step");
  }

  /** Act on a key; tells whether it meant anything. */
  key(event) {
    const acts = {
      " ": () => this.toggle(),
      ArrowLeft: () => (event.shiftKey ? this.step(-1) : this.move(-1)),
      ArrowRight: () => (event.shiftKey ? this.step(1) : this.move(1)),
    };
    const act = acts[event.key];
    act?.();
    return Boolean(act);
  }
}
