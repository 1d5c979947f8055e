// Which memory is under the pointer: a grid over the map, so that no click looks at them all.

const CELL = 24;

export class Hits {
  constructor(x, y) {
    this.x = x;
    this.y = y;
    this.cells = new Map();
    for (let i = 0; i < x.length; i++) {
      const key = this.key(Math.floor(x[i] / CELL), Math.floor(y[i] / CELL));
      if (!this.cells.has(key)) this.cells.set(key, []);
      this.cells.get(key).push(i);
    }
  }

  key(column, row) {
    return column * 65536 + row;
  }

  /** The nearest memory within a reach that passes; −1 if there is none. */
  nearest(x, y, reach, passes) {
    const [column, row] = [Math.floor(x / CELL), Math.floor(y / CELL)];
    const cells = Math.min(40, Math.ceil(reach / CELL));
    let [best, least] = [-1, reach * reach];
    for (let c = column - cells; c <= column + cells; c++) {
      for (let r = row - cells; r <= row + cells; r++) {
        for (const i of this.cells.get(this.key(c, r)) ?? []) {
          const distance = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
          if (distance <= least && passes(i)) [best, least] = [i, distance];
        }
      }
    }
    return best;
  }
}
