// What is shown now. Whoever changes it says so; whoever draws it listens.

export class State {
  constructor(end) {
    this.time = end;
    this.selected = -1;
    this.isPlaying = false;
    this.speed = 1;
    this.listeners = new Map();
  }

  /** Call `tell(state, how)` when one of these has changed: time, selected, matching, playing, theme. */
  on(names, tell) {
    for (const name of names.split(" ")) {
      if (!this.listeners.has(name)) this.listeners.set(name, []);
      this.listeners.get(name).push(tell);
    }
  }

  changed(name, how) {
    for (const tell of this.listeners.get(name) ?? []) tell(this, how);
  }

  /** Go to a time; `how` is "play" while it runs, "step" for a single change, else a jump. */
  setTime(time, how = "jump") {
    this.before = this.time;
    this.time = time;
    this.changed("time", how);
  }

  select(place) {
    if (place === this.selected) return;
    this.selected = place;
    this.changed("selected");
  }
}
