// Which memories are meant: the words that are looked for, and the filters by type, outcome, project and agent.

export class Matches {
  constructor(memories, state) {
    Object.assign(this, { memories, state });
    this.words = "";
    this.types = new Set(memories.page.types.keys());
    this.outcomes = new Set(memories.page.outcomes.keys());
    this.project = -1;
    this.agent = -1;
    this.mask = new Uint8Array(memories.size).fill(1);
    this.many = memories.size;
    this.version = 0;
  }

  /** Change what is looked for, and say so. */
  set(wanted) {
    Object.assign(this, wanted);
    const { memories } = this;
    const { project, agents } = memories.page.memories;
    const words = this.words.toLowerCase().split(/\s+/).filter(Boolean);
    this.many = 0;
    for (let i = 0; i < memories.size; i++) {
      const fits = this.types.has(memories.type[i]) && this.outcomes.has(memories.outcome[i]) &&
        (this.project < 0 || project[i] === this.project) && (this.agent < 0 || agents[i].includes(this.agent)) &&
        words.every((word) => this.text(i).includes(word));
      this.mask[i] = fits ? 1 : 0;
      this.many += fits;
    }
    this.version++;
    this.state.changed("matching");
  }

  get isAll() {
    return this.many === this.memories.size;
  }

  /** All that is said of a memory, in small letters. */
  text(i) {
    this.texts ??= new Array(this.memories.size);
    if (this.texts[i] === undefined) {
      const { memories } = this;
      const more = memories.more(i);
      const things = (more.things ?? []).map((place) => memories.page.things[place]);
      const parts = [memories.text[i], more.title, more.commit, more.trigger, ...(more.steps ?? []), ...things,
        ...memories.names("tags", i), ...memories.names("agents", i), memories.name("build", i), memories.id(i)];
      this.texts[i] = parts.filter(Boolean).join("\n").toLowerCase();
    }
    return this.texts[i];
  }

  /** The memories that are meant, the most relevant at a time first. */
  ranked(time) {
    const { memories } = this;
    const found = [];
    for (let i = 0; i < memories.size; i++) if (this.mask[i]) found.push(i);
    const relevance = new Map(found.map((i) => [i, memories.isLive(i, time) ? memories.relevance(i, time) : -1]));
    return found.sort((a, b) => relevance.get(b) - relevance.get(a) || memories.added[b] - memories.added[a]);
  }
}
