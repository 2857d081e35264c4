// SPDX-License-Identifier: MIT
// paint.ts: draws a band: the items of its rows as rectangles with names, merged ones as density, instants as diamonds,
// those that never ended fading out. All in whole device pixels, so that edges are sharp.
//
// Items that reach over several tiles are in each of them and drawn in each, cut to the tile's time, so that nothing is
// drawn twice. A second walk over all tiles draws the names.
import { ITEM_INSTANT, ITEM_MERGED, ITEM_OPEN, type Items } from "../protocol";
import { Dense, NARROW } from "./dense";
import { paintPoints } from "./paint_counter";
import { pieces, rowsOf, tileNs, type Piece } from "./items";
import type { Scene } from "./scene";
import { OVERLAY, type Band } from "./tree";

export type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

// A part of the axis drawn to a context: pixel `x0` of the axis is the context's pixel 0.
export interface Stretch {
  origin: number;
  nsPerPx: number;
  level: number;
  x0: number;
  width: number;
}

const TEXT_LEAST = 22; // CSS pixels of a slice wide enough for a name
const DIAMOND = 4.5; // CSS pixels from its centre
const LABEL_MOST = 160; // CSS pixels that the name of an instant may reach to the right
const GAP_LEAST = 4; // pixels of a slice wide enough for a gap to the next

const timeAt = (on: Stretch, x: number): number => on.origin + (x + on.x0) * on.nsPerPx;
const pixelOf = (on: Stretch, ns: number): number => (ns - on.origin) / on.nsPerPx - on.x0;

export function paintBand(ctx: Context, scene: Scene, band: Band, on: Stretch, y: number): boolean {
  const { complete, list } = piecesOf(scene, band, on);
  if (band.kind === "counter") {
    for (const piece of list) paintPoints(ctx, scene, band, on, piece, y);
    return complete;
  }
  const dense = new Dense(on.width, band.rows);
  for (const piece of list) if (piece.tile.items) paintItems(ctx, scene, band, on, piece, y, dense);
  dense.draw(ctx, y, band.rowHeight * scene.dpr, heightIn(scene, band));
  for (const piece of list) paintInstants(ctx, scene, band, on, piece, y);
  if (band.rowHeight >= 14) {
    ctx.font = scene.font();
    ctx.textBaseline = "middle";
    for (const [i, piece] of list.entries()) paintNames(ctx, scene, band, on, piece, y, i === 0);
  }
  return complete;
}

function piecesOf(scene: Scene, band: Band, on: Stretch): { complete: boolean; list: Piece[] } {
  const size = tileNs(on.level);
  const last = Math.floor(timeAt(on, on.width + DIAMOND * scene.dpr) / size);
  const all: { complete: boolean; list: Piece[] } = { complete: true, list: [] };
  if (band.track === OVERLAY) {
    const tile = scene.tile(OVERLAY, 0, 0);
    if (tile) all.list.push({ tile, from: -Infinity, to: Infinity });
    return all;
  }
  const first = Math.floor(timeAt(on, -LABEL_MOST * scene.dpr) / size);
  for (let index = first; index <= last; index++) {
    const found = pieces(scene.tile, band.track, on.level, index);
    all.complete &&= found.exact && scene.isFresh(band.track, on.level, index);
    all.list.push(...found.list);
  }
  return all;
}

// Visits the items of a band's rows in a tile.
function within(items: Items, band: Band): [number, number] {
  const rows = rowsOf(items);
  const end = rows.length - 1;
  return [rows[Math.min(band.row, end)], rows[Math.min(band.row + band.rows, end)]];
}

// Rows are a pixel apart, unless they are thin.
const heightIn = (scene: Scene, band: Band): number =>
  Math.round(band.rowHeight * scene.dpr) - (band.rowHeight < 6 ? 0 : Math.round(scene.dpr));

function paintItems(
  ctx: Context,
  scene: Scene,
  band: Band,
  on: Stretch,
  piece: Piece,
  y: number,
  dense: Dense,
): void {
  const items = piece.tile.items as Items;
  const { begin, dur, name, row, fill, flags } = items;
  const [first, end] = within(items, band);
  const least = Math.max(0, Math.round(pixelOf(on, piece.from)));
  const most = Math.min(on.width, Math.round(pixelOf(on, piece.to)));
  const rowHeight = band.rowHeight * scene.dpr;
  const height = heightIn(scene, band);
  const { fills, packed } = scene.palette;
  const styles = scene.styles(band.kind);
  const scale = 1 / on.nsPerPx;
  const shift = on.origin + on.x0 * on.nsPerPx;
  let style = -1;
  for (let i = first; i < end; i++) {
    const x = (begin[i] - shift) * scale;
    if (x >= most || flags[i] & ITEM_INSTANT) continue;
    const right = x + dur[i] * scale;
    if (right < least) continue;
    // Merged items cover each pixel that they touch, so that busy stretches have no gaps.
    const isMerged = (flags[i] & ITEM_MERGED) !== 0;
    let x0 = isMerged ? Math.floor(x) : Math.round(x);
    let x1 = isMerged ? Math.ceil(right) : Math.round(right);
    if (x1 <= x0) x1 = x0 + 1;
    else if (x1 - x0 >= GAP_LEAST && !isMerged) x1 -= 1;
    if (x0 < least) x0 = least;
    if (x1 > most) x1 = most;
    if (x1 <= x0) continue;
    const wanted = styles.of(name[i], isMerged ? fill[i] : 255);
    if (x1 - x0 <= NARROW) {
      dense.put(row[i] - band.row, x0, x1, packed[wanted]);
      continue;
    }
    if (wanted !== style) ctx.fillStyle = fills[(style = wanted)];
    const top = y + Math.round((row[i] - band.row) * rowHeight);
    ctx.fillRect(x0, top, x1 - x0, height);
    if (flags[i] & ITEM_OPEN) {
      paintFade(ctx, scene, x0, x1, right, top, height);
      style = -1;
    }
  }
}

// Fades the end of an item that never ended into the background.
function paintFade(ctx: Context, scene: Scene, x0: number, x1: number, right: number, y: number, height: number): void {
  const long = Math.min(48 * scene.dpr, Math.max(0, right - x0) / 2);
  if (long < 4 || right - long > x1) return;
  const gradient = ctx.createLinearGradient(right - long, 0, right, 0);
  gradient.addColorStop(0, `${scene.palette.background}00`);
  gradient.addColorStop(1, scene.palette.background);
  ctx.fillStyle = gradient;
  ctx.fillRect(Math.round(right - long), y, Math.round(long) + 1, height);
}

// Drawn last: a diamond is wider than its time.
function paintInstants(ctx: Context, scene: Scene, band: Band, on: Stretch, { tile }: Piece, y: number): void {
  const { items } = tile;
  if (!items) return;
  const [first, end] = within(items, band);
  const wide = DIAMOND * scene.dpr + 1;
  const styles = scene.styles(band.kind);
  for (let i = first; i < end; i++) {
    if (!(items.flags[i] & ITEM_INSTANT)) continue;
    const x = Math.round(pixelOf(on, items.begin[i]));
    if (x < -wide || x > on.width + wide) continue;
    const top = y + Math.round((items.row[i] - band.row) * band.rowHeight * scene.dpr);
    ctx.fillStyle = scene.palette.fills[styles.of(items.name[i], 255)];
    ctx.strokeStyle = scene.isPale(items.name[i]) ? scene.palette.line : scene.palette.muted;
    paintDiamond(ctx, scene, x, top, heightIn(scene, band));
  }
}

function paintDiamond(ctx: Context, scene: Scene, x: number, y: number, height: number): void {
  const half = Math.min(DIAMOND * scene.dpr, height / 2);
  const middle = y + height / 2;
  ctx.lineWidth = scene.dpr;
  ctx.beginPath();
  ctx.moveTo(x + 0.5, middle - half);
  ctx.lineTo(x + 0.5 + half, middle);
  ctx.lineTo(x + 0.5, middle + half);
  ctx.lineTo(x + 0.5 - half, middle);
  ctx.closePath();
  ctx.fill();
  ctx.stroke();
}

function paintNames(
  ctx: Context,
  scene: Scene,
  band: Band,
  on: Stretch,
  piece: Piece,
  y: number,
  isFirst: boolean,
): void {
  const { items } = piece.tile;
  if (!items) return;
  const [first, end] = within(items, band);
  const least = TEXT_LEAST * scene.dpr * on.nsPerPx;
  const from = timeAt(on, 0);
  const to = Math.min(piece.to, timeAt(on, on.width));
  for (let i = first; i < end; i++) {
    const begin = items.begin[i];
    if (begin >= to || (begin < piece.from && !isFirst)) continue;
    const isInstant = (items.flags[i] & ITEM_INSTANT) !== 0;
    if (!isInstant && (items.dur[i] < least || items.flags[i] & ITEM_MERGED || begin + items.dur[i] < from)) continue;
    const top = y + Math.round((items.row[i] - band.row) * band.rowHeight * scene.dpr);
    const [x0, x1] = [pixelOf(on, begin), pixelOf(on, begin + items.dur[i])];
    if (isInstant) paintInstantName(ctx, scene, items, i, on, top, piece.to);
    else paintName(ctx, scene, items.name[i], x0, x1, top, band.rowHeight);
  }
}

// Draws a name within x0..x1, cut to fit.
export function paintName(
  ctx: Context,
  scene: Scene,
  name: number,
  x0: number,
  x1: number,
  top: number,
  rowHeight: number,
): void {
  const text = fitted(scene, name, (x1 - x0) / scene.dpr - 8);
  if (!text) return;
  ctx.fillStyle = scene.isPale(name) ? scene.palette.paleText : scene.palette.text;
  const middle = top + Math.round(((rowHeight - 1) * scene.dpr) / 2) + scene.dpr / 2;
  ctx.fillText(text, Math.round(x0) + 4 * scene.dpr, middle);
}

// Returns the part of a name that fits into this many CSS pixels; "" if too little does.
export function fitted(scene: Scene, name: number, room: number): string {
  const width = scene.textWidth(name);
  const text = scene.text(name);
  if (width <= room) return text;
  let letters = Math.floor((text.length * (room - 9)) / width);
  if (letters < 3) return "";
  const code = text.charCodeAt(letters - 1);
  if (code >= 0xd800 && code < 0xdc00) letters--; // not half of a character
  return `${text.slice(0, letters)}…`;
}

// Draws the name beside its diamond, if the row is free up to the next.
function paintInstantName(
  ctx: Context,
  scene: Scene,
  items: Items,
  i: number,
  on: Stretch,
  top: number,
  pieceEnd: number,
): void {
  const isLast = i + 1 >= items.count || items.row[i + 1] !== items.row[i];
  const room = ((isLast ? pieceEnd : items.begin[i + 1]) - items.begin[i]) / on.nsPerPx / scene.dpr - 14;
  if (items.merged[i] > 1 || Math.min(room, LABEL_MOST) < scene.textWidth(items.name[i])) return;
  ctx.fillStyle = scene.isPale(items.name[i]) ? scene.palette.paleText : scene.palette.foreground;
  const x = Math.round(pixelOf(on, items.begin[i])) + 8 * scene.dpr;
  ctx.fillText(scene.text(items.name[i]), x, top + 9 * scene.dpr);
}
