// SPDX-License-Identifier: MIT
// embedded_points.ts: the points of a counter in one tile, as src/server/tile_items.c makes them: one for each pixel
// in which the value changes, after the one that holds when the tile begins.
import { above, FAN, topOf, type Pyramid } from "./embedded_pyramids";
import type { Points } from "./protocol";

class PointWalk {
  private readonly out: { at: number; min: number; max: number; last: number }[] = [];
  // The point being merged.
  private any = false;
  private begin = 0;
  private min = 0;
  private max = 0;
  private pixel = 0;
  private last = 0; // index of its last row in the pyramid

  constructor(
    private readonly pyramid: Pyramid,
    private readonly value: Float64Array,
    private readonly from: number,
    private readonly to: number,
    private readonly pixelNs: number,
  ) {}

  points(): Points {
    this.putBefore();
    if (this.pyramid.levels) {
      const { at, count } = topOf(this.pyramid);
      this.nodes(this.pyramid.levels, at, 0, count);
    } else {
      this.rows(0, this.pyramid.count);
    }
    this.putMerged();
    return {
      count: this.out.length,
      at: Float64Array.from(this.out, (point) => point.at),
      min: Float64Array.from(this.out, (point) => point.min),
      max: Float64Array.from(this.out, (point) => point.max),
      last: Float64Array.from(this.out, (point) => point.last),
    };
  }

  private rowAt(place: number): number {
    return this.pyramid.table.order[this.pyramid.first + place];
  }

  private timeAt(place: number): number {
    return this.pyramid.table.spans.ts[this.rowAt(place)];
  }

  private putMerged(): void {
    const { any, begin: at, min, max } = this;
    if (any) this.out.push({ at, min, max, last: this.value[this.rowAt(this.last)] });
    this.any = false;
  }

  // NaN counts only where there is no number.
  private merge(begin: number, min: number, max: number, last: number): void {
    const pixel = Math.floor(begin / this.pixelNs);
    if (this.any && this.pixel === pixel) {
      if (!(this.min <= min) && min === min) this.min = min;
      if (!(this.max >= max) && max === max) this.max = max;
    } else {
      this.putMerged();
      this.begin = begin;
      this.min = min;
      this.max = max;
      this.pixel = pixel;
      this.any = true;
    }
    this.last = last;
  }

  private mergeRow(place: number): void {
    const value = this.value[this.rowAt(place)];
    this.merge(this.timeAt(place), value, value, place);
  }

  // Puts the last point before the tile, unmerged.
  private putBefore(): void {
    let low = 0;
    let high = this.pyramid.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.timeAt(middle) < this.from) low = middle + 1;
      else high = middle;
    }
    if (!low) return;
    this.mergeRow(low - 1);
    this.putMerged();
  }

  private rows(from: number, to: number): boolean {
    for (let i = from; i < to; i++) {
      if (this.timeAt(i) >= this.to) return false;
      if (this.timeAt(i) >= this.from) this.mergeRow(i);
    }
    return true;
  }

  private nodes(level: number, at: number, from: number, to: number): boolean {
    const { points } = this.pyramid.table;
    const span = FAN ** level;
    let below = this.pyramid.count;
    for (let i = 1; i < level; i++) below = above(below);
    for (let i = from; i < to; i++) {
      const node = at + i;
      const begin = points.begin[node];
      const end = points.end[node];
      if (begin >= this.to) return false;
      if (end < this.from) continue;
      if (begin >= this.from && end < this.to && end - begin < this.pixelNs) {
        this.merge(begin, points.min[node], points.max[node], Math.min((i + 1) * span, this.pyramid.count) - 1);
        continue;
      }
      const child = i * FAN;
      const childEnd = Math.min(child + FAN, below);
      const goesOn = level === 1 ? this.rows(child, childEnd) : this.nodes(level - 1, at - below, child, childEnd);
      if (!goesOn) return false;
    }
    return true;
  }
}

export function pointsOf(pyramid: Pyramid, value: Float64Array, from: number, to: number, pixelNs: number): Points {
  return new PointWalk(pyramid, value, from, to, pixelNs).points();
}
