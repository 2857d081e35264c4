// SPDX-License-Identifier: MIT
// paint_counter.ts: draws a counter as an area under its value, with a line on top; a pixel in which the value went up
// and down shows its range.
import { ofName, STYLES } from "../colour";
import type { Points } from "../protocol";
import type { Piece } from "./items";
import type { Context, Stretch } from "./paint";
import type { Scene } from "./scene";
import type { Band } from "./tree";

export interface Bounds {
  min: number;
  max: number;
}

// Includes zero, so that areas can be compared.
export function boundsOf(track: { min?: number; max?: number }): Bounds {
  const min = Math.min(0, track.min ?? 0);
  const max = Math.max(0, track.max ?? 0);
  return max > min ? { min, max } : { min, max: min + 1 };
}

export function paintPoints(ctx: Context, scene: Scene, band: Band, on: Stretch, piece: Piece, y: number): void {
  const { points } = piece.tile;
  if (!points || points.count === 0) return;
  const { min, max } = scene.bounds(band.track);
  const height = Math.round(band.rowHeight * scene.dpr) - 1;
  const at = (value: number): number => y + Math.round(height * (1 - (value - min) / (max - min)));
  const colour = ofName(scene.trackName(band.track)) * STYLES;
  ctx.fillStyle = scene.palette.fills[colour + 1];
  each(points, scene, on, piece, (x0, x1, i) => {
    const top = Math.min(at(points.last[i]), at(0));
    ctx.fillRect(x0, top, x1 - x0, Math.max(1, Math.abs(at(points.last[i]) - at(0))));
  });
  ctx.fillStyle = scene.palette.lines[colour / STYLES];
  each(points, scene, on, piece, (x0, x1, i, isBegun) => {
    ctx.fillRect(x0, at(points.last[i]), x1 - x0, Math.max(1, Math.round(scene.dpr)));
    if (isBegun) return; // its range is at its own pixel, which is not here
    const high = at(points.max[i]);
    ctx.fillRect(x0, high, 1, Math.max(1, at(points.min[i]) - high));
  });
}

// Visits the pixels for which each point's value holds; isBegun: the point is left of them.
function each(
  points: Points,
  scene: Scene,
  on: Stretch,
  piece: Piece,
  draw: (x0: number, x1: number, i: number, isBegun: boolean) => void,
): void {
  const pixel = (ns: number): number => Math.round((ns - on.origin) / on.nsPerPx - on.x0);
  const least = Math.max(0, pixel(piece.from));
  const most = Math.min(on.width, pixel(Math.min(piece.to, scene.end)));
  for (let i = 0; i < points.count; i++) {
    const begin = pixel(points.at[i]);
    const next = i + 1 < points.count ? pixel(points.at[i + 1]) : most;
    const x0 = Math.max(least, begin);
    const x1 = Math.min(most, Math.max(next, begin + 1));
    if (x1 > x0) draw(x0, x1, i, begin < least);
  }
}
