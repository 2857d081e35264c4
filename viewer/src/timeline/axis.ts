// SPDX-License-Identifier: MIT
// axis.ts: converts between times and device pixels.
//
// Pixels are counted from `origin`, a time near the view, so that a double stays exact even at the far end of a long
// trace. While the scale stays the same, moving in time is a whole number of pixels (`offset`), so that what was drawn
// can be moved instead of redrawn (strips.ts). Origins lie a whole number of pixels apart, so that the same view always
// gives the same picture.
import { exact } from "../state";

const ORIGIN_PX = 2 ** 20; // pixels between origins

export const LEVEL_MAX = 46;

export class Axis {
  origin = 0;
  nsPerPx = 1;
  offset = 0; // pixel of the left edge
  width = 1; // pixels
  private span = 0; // ns
  scaled = 0; // counts the changes of the scale

  // Returns true if the scale has changed.
  set(from: number, to: number, width: number): boolean {
    const span = exact(to - from);
    const isSame = width === this.width && span === this.span;
    if (!isSame) {
      this.span = span;
      this.width = width;
      this.nsPerPx = span / width;
      this.origin = Math.floor(from / (ORIGIN_PX * this.nsPerPx)) * ORIGIN_PX * this.nsPerPx;
      this.scaled++;
    }
    this.offset = Math.round((from - this.origin) / this.nsPerPx);
    return !isSame;
  }

  // Pixels from the left edge.
  x(ns: number): number {
    return (ns - this.origin) / this.nsPerPx - this.offset;
  }

  time(x: number): number {
    return this.origin + (x + this.offset) * this.nsPerPx;
  }

  // The level of the tiles that fit this scale: their pixels are about as wide as those of the screen.
  get level(): number {
    return Math.min(LEVEL_MAX, Math.max(0, Math.round(Math.log2(this.nsPerPx))));
  }
}
