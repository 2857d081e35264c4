// SPDX-License-Identifier: MIT
// overlay.ts: rows of SQL as a track: one tile with all of them, each in the first of a few rows that is free.
import type { Overlay } from "../app";
import { ITEM_INSTANT, ITEM_OPEN, type Items, type Kind, type Tile } from "../protocol";
import { OWN_TEXTS } from "./scene";
import { OVERLAY } from "./tree";

const ROWS_MAX = 8;

export interface OverlayTile {
  tile: Tile;
  name: string;
  rows: number;
  texts: string[];
  refs: ({ kind: Kind; id: number } | null)[]; // by event
}

// Assigns a row to each, in time order. Those that find none free go to the last.
function pack(overlay: Overlay): number[] {
  const free: number[] = [];
  return overlay.rows.map(({ ts, dur }) => {
    let row = free.findIndex((end) => end <= ts);
    if (row < 0) row = Math.min(free.length, ROWS_MAX - 1);
    free[row] = Math.max(free[row] ?? -Infinity, dur < 0 ? Infinity : ts + dur);
    return row;
  });
}

export function overlayTile(given: Overlay, end: number): OverlayTile {
  const overlay = { ...given, rows: [...given.rows].sort((a, b) => a.ts - b.ts) };
  const rowOf = pack(overlay);
  const order = overlay.rows.map((_, i) => i).sort((a, b) => rowOf[a] - rowOf[b] || a - b);
  const names = new Map<string, number>();
  const number = (text: string): number => {
    if (!names.has(text)) names.set(text, OWN_TEXTS + names.size);
    return names.get(text) ?? 0;
  };
  const rows = order.map((i) => overlay.rows[i]);
  const items: Items = {
    count: rows.length,
    begin: Float64Array.from(rows, ({ ts }) => ts),
    dur: Float64Array.from(rows, ({ ts, dur }) => (dur < 0 ? Math.max(0, end - ts) : dur)),
    event: Uint32Array.from(order),
    name: Uint32Array.from(rows, ({ name }) => number(name)),
    merged: new Uint32Array(rows.length).fill(1),
    row: Uint16Array.from(order, (i) => rowOf[i]),
    fill: new Uint8Array(rows.length).fill(255),
    flags: Uint8Array.from(rows, ({ dur }) => (dur === 0 ? ITEM_INSTANT : dur < 0 ? ITEM_OPEN : 0)),
  };
  return {
    tile: { track: OVERLAY, level: 0, index: 0, items },
    name: overlay.name,
    rows: rowOf.reduce((most, row) => Math.max(most, row + 1), 1),
    texts: [...names.keys()],
    refs: overlay.rows.map(({ ref }) => ref),
  };
}
