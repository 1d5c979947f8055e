// What part of the map is seen: how its units become pixels.

const [NEAREST, FARTHEST] = [8, 0.02];
const MOST_FITTED = 2.6;
const MARGIN = 26;

export class View {
  constructor(discs) {
    this.box = [-60, -60, 60, 60];
    if (discs.length) {
      this.box = [Infinity, Infinity, -Infinity, -Infinity];
      for (const [x, y, radius] of discs) {
        this.box = [
          Math.min(this.box[0], x - radius), Math.min(this.box[1], y - radius),
          Math.max(this.box[2], x + radius), Math.max(this.box[3], y + radius),
        ];
      }
    }
    this.scale = 1;
    this.left = this.top = 0;
    this.isWhole = true;
    this.version = 0;
  }

  resize(width, height) {
    [this.width, this.height] = [width, height];
    if (this.isWhole) this.whole();
    this.version++;
  }

  /** Show all of the map. */
  whole() {
    const [x0, y0, x1, y1] = this.box;
    const fitted = Math.min((this.width - 2 * MARGIN) / (x1 - x0 || 1), (this.height - 2 * MARGIN) / (y1 - y0 || 1));
    this.scale = Math.max(FARTHEST, Math.min(MOST_FITTED, fitted));
    this.left = this.width / 2 - (this.scale * (x0 + x1)) / 2;
    this.top = this.height / 2 - (this.scale * (y0 + y1)) / 2;
    this.isWhole = true;
    this.version++;
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const scale = Math.max(FARTHEST, Math.min(NEAREST, this.scale * factor));
    this.left = x - ((x - this.left) * scale) / this.scale;
    this.top = y - ((y - this.top) * scale) / this.scale;
    this.scale = scale;
    this.isWhole = false;
    this.version++;
  }

  move(dx, dy) {
    this.left += dx;
    this.top += dy;
    this.isWhole = false;
    this.version++;
  }

  /** Bring a place into sight, if it is not. */
  reveal(x, y) {
    const [px, py] = this.pixel(x, y);
    if (px > MARGIN && py > MARGIN && px < this.width - MARGIN && py < this.height - MARGIN) return;
    this.move(this.width / 2 - px, this.height / 2 - py);
  }

  pixel(x, y) {
    return [x * this.scale + this.left, y * this.scale + this.top];
  }

  unit(px, py) {
    return [(px - this.left) / this.scale, (py - this.top) / this.scale];
  }
}
