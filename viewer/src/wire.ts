// SPDX-License-Identifier: MIT
// wire.ts: reads the binary response with tiles (src/server/wire.h shows its layout). Copies the columns out of the
// records, so that drawing walks over typed arrays. A section does not say whether it has items or points: the kind of
// its track does.
import type { Items, Points, Tile } from "./protocol";

const MAGIC = 0x3154594b;
const HEADER = 24;
const SECTION = 16;
const RECORD = 32;

export interface Names {
  number(name: number): number; // the page's number for the server's
  define(name: number, text: string): void;
}

function readNames(view: DataView, at: number, count: number, names: Names): void {
  const decoder = new TextDecoder();
  for (let i = 0; i < count; i++) {
    const name = view.getUint32(at, true);
    const bytes = view.getUint32(at + 4, true);
    names.define(name, decoder.decode(new Uint8Array(view.buffer, at + 8, bytes)));
    at += 8 + Math.ceil(bytes / 8) * 8;
  }
}

function readItems(view: DataView, at: number, count: number, names: Names): Items {
  const items: Items = {
    count,
    begin: new Float64Array(count),
    dur: new Float64Array(count),
    event: new Uint32Array(count),
    name: new Uint32Array(count),
    merged: new Uint32Array(count),
    row: new Uint16Array(count),
    fill: new Uint8Array(count),
    flags: new Uint8Array(count),
  };
  let last = -1;
  let number = 0;
  for (let i = 0; i < count; i++, at += RECORD) {
    items.begin[i] = view.getFloat64(at, true);
    items.dur[i] = view.getFloat64(at + 8, true);
    items.event[i] = view.getUint32(at + 16, true);
    const name = view.getUint32(at + 20, true);
    if (name !== last) number = names.number(name);
    last = name;
    items.name[i] = number;
    items.merged[i] = view.getUint32(at + 24, true);
    items.row[i] = view.getUint16(at + 28, true);
    items.fill[i] = view.getUint8(at + 30);
    items.flags[i] = view.getUint8(at + 31);
  }
  return items;
}

function readPoints(view: DataView, at: number, count: number): Points {
  const points: Points = {
    count,
    at: new Float64Array(count),
    min: new Float64Array(count),
    max: new Float64Array(count),
    last: new Float64Array(count),
  };
  for (let i = 0; i < count; i++, at += RECORD) {
    points.at[i] = view.getFloat64(at, true);
    points.min[i] = view.getFloat64(at + 8, true);
    points.max[i] = view.getFloat64(at + 16, true);
    points.last[i] = view.getFloat64(at + 24, true);
  }
  return points;
}

// Throws a RangeError if the response is cut off.
export function readTiles(bytes: ArrayBuffer, names: Names, isCounter: (track: number) => boolean): Tile[] {
  const view = new DataView(bytes);
  if (view.getUint32(0, true) !== MAGIC) throw new Error("The server is of another version: reload the page.");
  const sections = view.getUint32(8, true);
  const level = view.getUint32(20, true);
  readNames(view, view.getUint32(16, true), view.getUint32(12, true), names);
  const tiles: Tile[] = [];
  let at = HEADER;
  for (let i = 0; i < sections; i++) {
    const track = view.getUint32(at, true);
    const count = view.getUint32(at + 4, true);
    const index = Number(view.getBigInt64(at + 8, true));
    at += SECTION;
    const tile: Tile = { track, level, index };
    if (isCounter(track)) tile.points = readPoints(view, at, count);
    else tile.items = readItems(view, at, count, names);
    tiles.push(tile);
    at += count * RECORD;
  }
  return tiles;
}
