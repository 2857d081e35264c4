// SPDX-License-Identifier: MIT
// items.ts: searches the items of tiles: which tile to show while the wanted one is missing, and which item is at a
// position.
import { TILE_PIXELS, type Items, type Tile } from "../protocol";
import { LEVEL_MAX } from "./axis";

export type GetTile = (track: number, level: number, index: number) => Tile | undefined;

export const tileNs = (level: number): number => TILE_PIXELS * 2 ** level;

// A tile, and the time that it is shown for.
export interface Piece {
  tile: Tile;
  from: number;
  to: number;
}

// Returns what there is for one tile's time: that tile, both of the next finer level, or the nearest coarser one.
export function pieces(get: GetTile, track: number, level: number, index: number): { exact: boolean; list: Piece[] } {
  const size = tileNs(level);
  const from = index * size;
  const to = from + size;
  const tile = get(track, level, index);
  if (tile) return { exact: true, list: [{ tile, from, to }] };
  const finer = level > 0 ? [get(track, level - 1, index * 2), get(track, level - 1, index * 2 + 1)] : [];
  const middle = from + size / 2;
  if (finer[0] && finer[1]) {
    const list = [
      { tile: finer[0], from, to: middle },
      { tile: finer[1], from: middle, to },
    ];
    return { exact: false, list };
  }
  for (let up = 1; level + up <= LEVEL_MAX; up++) {
    const coarse = get(track, level + up, Math.floor(index / 2 ** up));
    if (coarse) return { exact: false, list: [{ tile: coarse, from, to }] };
  }
  return { exact: false, list: [] };
}

const indices = new WeakMap<Items, Uint32Array>();

// Returns where each row's items begin, and after the last row their end.
export function rowsOf(items: Items): Uint32Array {
  let index = indices.get(items);
  if (!index) {
    const rows = items.count ? items.row[items.count - 1] + 1 : 0;
    index = new Uint32Array(rows + 1).fill(items.count);
    for (let i = items.count - 1; i >= 0; i--) index[items.row[i]] = i;
    for (let row = rows - 1; row >= 0; row--) index[row] = Math.min(index[row], index[row + 1]);
    indices.set(items, index);
  }
  return index;
}

// Returns the last item of a row that begins at or before a time; -1 if none.
export function lastBefore(items: Items, row: number, ns: number): number {
  const rows = rowsOf(items);
  if (row + 1 >= rows.length) return -1;
  let low = rows[row];
  let high = rows[row + 1];
  const first = low;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items.begin[middle] <= ns) low = middle + 1;
    else high = middle;
  }
  return low > first ? low - 1 : -1;
}

// Returns the item of a row at a time, or the nearest within `slack`; -1 if none.
export function itemAt(items: Items, row: number, ns: number, slack: number): number {
  const rows = rowsOf(items);
  if (row + 1 >= rows.length) return -1;
  const last = lastBefore(items, row, ns + slack);
  let best = -1;
  let nearest = slack;
  for (let i = last; i >= rows[row] && i > last - 8; i--) {
    const distance = Math.max(items.begin[i] - ns, ns - items.begin[i] - items.dur[i], 0);
    if (distance <= nearest && (best < 0 || distance < nearest)) {
      best = i;
      nearest = distance;
    }
  }
  return best;
}
