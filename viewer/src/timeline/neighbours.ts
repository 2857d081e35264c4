// SPDX-License-Identifier: MIT
// neighbours.ts: finds the next or previous event in a row at any scale. Tiles of the current scale may have merged it
// with others or not reach it, so the search goes to ever coarser tiles, and for merged items back to ever finer ones.
import { ITEM_INSTANT, ITEM_MERGED, type EventRef, type Items, type Source, type Trace } from "../protocol";
import { LEVEL_MAX } from "./axis";
import { rowsOf, tileNs } from "./items";

export interface Start {
  track: number;
  row: number;
  ts: number;
  id: number; // -1: an event that begins at ts counts, too
  forward: boolean;
}

interface Found {
  items: Items;
  i: number;
}

// Reports whether an item begins beyond the start. Some of several merged events may, although the first does not.
function isBeyond(items: Items, i: number, start: Start): boolean {
  const begin = items.begin[i];
  if (items.flags[i] & ITEM_MERGED) return start.forward ? begin + items.dur[i] >= start.ts : begin <= start.ts;
  if (begin !== start.ts) return start.forward ? begin > start.ts : begin < start.ts;
  return start.id < 0 || (start.forward ? items.event[i] > start.id : items.event[i] < start.id);
}

// Returns the nearest event beyond the start in a tile: walks its items in order, and merged ones in finer tiles.
async function inTile(source: Source, level: number, index: number, start: Start): Promise<Found | null> {
  const [{ items }] = await source.tiles(level, index, 1, [start.track]);
  const rows = items ? rowsOf(items) : [];
  if (!items || start.row + 1 >= rows.length) return null;
  const [first, count] = [rows[start.row], rows[start.row + 1] - rows[start.row]];
  for (let n = 0; n < count; n++) {
    const i = first + (start.forward ? n : count - 1 - n);
    if (!isBeyond(items, i, start)) continue;
    if (!(items.flags[i] & ITEM_MERGED) || level === 0) return { items, i };
    const found = await inMerged(source, level, index, { items, i }, start);
    if (found) return found;
  }
  return null;
}

// Merged events lie within a pixel, so in one of the two finer tiles, or at their border.
async function inMerged(
  source: Source,
  level: number,
  index: number,
  { items, i }: Found,
  start: Start,
): Promise<Found | null> {
  const size = tileNs(level - 1);
  const from = Math.max(Math.floor(items.begin[i] / size), index * 2);
  const to = Math.min(Math.floor((items.begin[i] + items.dur[i]) / size), index * 2 + 1);
  const halves = start.forward ? [from, to] : [to, from];
  const found = await inTile(source, level - 1, halves[0], start);
  return found ?? (from === to ? null : inTile(source, level - 1, halves[1], start));
}

// Tries coarser and coarser tiles until an event is found or the trace ends.
async function outwards(source: Source, trace: Trace, level: number, start: Start): Promise<Found | null> {
  for (let at = level; at <= LEVEL_MAX; at++) {
    const size = tileNs(at);
    const index = Math.floor(start.ts / size);
    const beside = index + (start.forward ? 1 : -1);
    const found = (await inTile(source, at, index, start)) ?? (await inTile(source, at, beside, start));
    if (found) return found;
    if (index * size <= trace.begin && (index + 1) * size > trace.end) return null;
  }
  return null;
}

export async function neighbour(source: Source, trace: Trace, level: number, start: Start): Promise<EventRef | null> {
  const found = await outwards(source, trace, level, start);
  if (!found) return null;
  const { items, i } = found;
  return {
    kind: trace.tracks[start.track].kind,
    id: items.event[i],
    name: source.text(items.name[i]),
    ts: items.begin[i],
    dur: items.flags[i] & ITEM_INSTANT ? 0 : items.dur[i],
    track: start.track,
    row: start.row,
  };
}
