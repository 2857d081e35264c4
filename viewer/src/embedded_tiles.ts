// SPDX-License-Identifier: MIT
// embedded_tiles.ts: tiles of an exported trace, by the rules of src/server/tile_items.c. A walk from
// the top of a pyramid takes a node as a whole if nothing in it is as wide as a pixel and it is narrower than
// two, so that its cost depends on the pixels and not on the events.
import { above, endOf, FAN, topOf, type Pyramid, type Pyramids } from "./embedded_pyramids";
import { pointsOf } from "./embedded_points";
import { ITEM_INSTANT, ITEM_MERGED, ITEM_OPEN, TILE_PIXELS, type Items, type Tile } from "./protocol";

const OWN_MAX = 4; // spans at least a pixel wide that begin in one pixel; the rest is merged
const LINE = 16;
const BEFORE = -Infinity; // pixel of everything that begins before the tile

// Spans merged into one.
interface Node {
  begin: number;
  end: number;
  busy: number;
  longestDur: number;
  longest: number; // row
  count: number;
}

// A growing list of items. One is enough: a tile is made without pauses.
class Growing {
  count = 0;
  private room = 1024;
  private begin = new Float64Array(this.room);
  private dur = new Float64Array(this.room);
  private event = new Uint32Array(this.room);
  private name = new Uint32Array(this.room);
  private merged = new Uint32Array(this.room);
  private row = new Uint16Array(this.room);
  private fill = new Uint8Array(this.room);
  private flags = new Uint8Array(this.room);

  private grow(): void {
    const grown = <T extends { set(from: T): void; length: number }>(make: new (n: number) => T, from: T): T => {
      const to = new make(from.length * 2);
      to.set(from);
      return to;
    };
    this.begin = grown(Float64Array, this.begin);
    this.dur = grown(Float64Array, this.dur);
    this.event = grown(Uint32Array, this.event);
    this.name = grown(Uint32Array, this.name);
    this.merged = grown(Uint32Array, this.merged);
    this.row = grown(Uint16Array, this.row);
    this.fill = grown(Uint8Array, this.fill);
    this.flags = grown(Uint8Array, this.flags);
    this.room *= 2;
  }

  add(item: Node, name: number, row: number, fill: number, flags: number): void {
    if (this.count === this.room) this.grow();
    const i = this.count++;
    this.begin[i] = item.begin;
    this.dur[i] = item.end - item.begin;
    this.event[i] = item.longest;
    this.name[i] = name;
    this.merged[i] = item.count;
    this.row[i] = row;
    this.fill[i] = fill;
    this.flags[i] = flags;
  }

  // Returns the items as arrays of their own.
  take(): Items {
    const n = this.count;
    this.count = 0;
    return {
      count: n,
      begin: this.begin.slice(0, n),
      dur: this.dur.slice(0, n),
      event: this.event.slice(0, n),
      name: this.name.slice(0, n),
      merged: this.merged.slice(0, n),
      row: this.row.slice(0, n),
      fill: this.fill.slice(0, n),
      flags: this.flags.slice(0, n),
    };
  }
}

const scratch = new Growing();

class Walk {
  private readonly out = scratch;
  private pyramid!: Pyramid;
  private row = 0;
  private readonly merged: Node = { begin: 0, end: 0, busy: 0, longestDur: 0, longest: 0, count: 0 };
  private pixel = BEFORE; // pixel being merged
  // Spans that began in ownPixel and were not merged.
  private ownPixel = BEFORE;
  private ownCount = 0;
  // Nodes found by the walk and not yet handled. The server queues them to prefetch memory; the same queue is needed
  // here because it decides which pixel state a node sees.
  private readonly lineNode = new Int32Array(LINE);
  private readonly lineFrom = new Uint32Array(LINE);
  private readonly lineTo = new Uint32Array(LINE);
  private lineFirst = 0;
  private lineEnd = 0;

  constructor(
    private readonly from: number,
    private readonly to: number,
    private readonly pixelNs: number,
    private readonly traceEnd: number,
  ) {}

  walk(pyramid: Pyramid, row: number): void {
    this.pyramid = pyramid;
    this.row = row;
    this.ownCount = 0;
    if (!pyramid.levels) {
      this.rows(0, pyramid.count);
    } else {
      const { at, count } = topOf(pyramid);
      this.nodes(pyramid.levels, at, 0, count);
    }
    while (this.lineFirst !== this.lineEnd) this.takeFirst();
    this.putMerged();
  }

  // ---- items ----

  // In floats, as in the server.
  private fill({ begin, end, busy }: Node): number {
    const width = Math.fround(end - begin);
    const part = width > 0 ? Math.fround(Math.fround(busy / width) * 255) : 255;
    if (part >= 255) return 255;
    return part < 1 ? Number(busy > 0) : Math.floor(Math.fround(part + 0.5));
  }

  private putMerged(): void {
    const { merged, pyramid } = this;
    if (!merged.count) return;
    const isOne = merged.count === 1;
    const flags =
      (isOne ? 0 : ITEM_MERGED) |
      (merged.longestDur <= 0 ? ITEM_INSTANT : 0) |
      (isOne && pyramid.table.spans.dur[merged.longest] < 0 ? ITEM_OPEN : 0);
    this.out.add(merged, pyramid.table.name(merged.longest), this.row, isOne ? 255 : this.fill(merged), flags);
    merged.count = 0;
  }

  private merge(begin: number, end: number, busy: number, longestDur: number, row: number, count: number): void {
    const { merged } = this;
    const pixel = this.pixelOf(begin);
    if (merged.count && this.pixel === pixel) {
      if (end > merged.end) merged.end = end;
      merged.busy = Math.fround(merged.busy + busy);
      if (longestDur > merged.longestDur) {
        merged.longestDur = longestDur;
        merged.longest = row;
      }
      merged.count += count;
      return;
    }
    this.putMerged();
    merged.begin = begin;
    merged.end = end;
    merged.busy = busy;
    merged.longestDur = longestDur;
    merged.longest = row;
    merged.count = count;
    this.pixel = pixel;
  }

  private pixelOf(begin: number): number {
    return begin < this.from ? BEFORE : Math.floor(begin / this.pixelNs);
  }

  private takeRow(row: number, begin: number, end: number): void {
    const pixel = this.pixelOf(begin);
    const dur = Math.fround(end - begin);
    if (this.ownCount && this.ownPixel !== pixel) this.ownCount = 0;
    if (dur < this.pixelNs || this.ownCount === OWN_MAX) {
      this.merge(begin, end, dur, dur, row, 1);
      return;
    }
    this.putMerged();
    this.merge(begin, end, dur, dur, row, 1);
    this.putMerged();
    this.ownPixel = pixel;
    this.ownCount++;
  }

  // ---- the queue ----

  private rows(from: number, to: number): void {
    const { spans, order } = this.pyramid.table;
    for (let i = from; i < to; i++) {
      const row = order[this.pyramid.first + i];
      const begin = spans.ts[row];
      if (begin >= this.to) return;
      const end = endOf(spans, row, this.traceEnd);
      if (begin >= this.from || end > this.from) this.takeRow(row, begin, end);
    }
  }

  private takeFirst(): void {
    const at = this.lineFirst++ % LINE;
    const node = this.lineNode[at];
    if (node < 0) {
      this.rows(this.lineFrom[at], this.lineTo[at]);
      return;
    }
    const { begin, end, busy, longestDur, longest } = this.pyramid.table.nodes;
    const count = this.lineTo[at] - this.lineFrom[at];
    this.merge(begin[node], end[node], busy[node], longestDur[node], longest[node], count);
  }

  // A node to be merged whole, or -1 for rows to be visited.
  private putInLine(node: number, from: number, to: number): void {
    if (this.lineEnd - this.lineFirst === LINE) this.takeFirst();
    const at = this.lineEnd++ % LINE;
    this.lineNode[at] = node;
    this.lineFrom[at] = from;
    this.lineTo[at] = to;
  }

  // ---- the walk ----

  // Reports whether all of a node begins in a pixel that already has its share of unmerged spans.
  private isCrowded(begin: number, last: number): boolean {
    if (this.ownCount < OWN_MAX || begin < this.from || this.pixelOf(begin) !== this.ownPixel) return false;
    const { spans, order } = this.pyramid.table;
    const lastBegin = spans.ts[order[this.pyramid.first + last]];
    return lastBegin < this.to && this.pixelOf(lastBegin) === this.ownPixel;
  }

  private isWhole(node: number): boolean {
    const { nodes } = this.pyramid.table;
    const begin = nodes.begin[node];
    const end = nodes.end[node];
    const isNarrow = end - begin < 2 * this.pixelNs && nodes.longestDur[node] < this.pixelNs;
    return isNarrow && begin >= this.from && end < this.to;
  }

  // Walks nodes [from, to) of a level; returns false after the tile's end.
  private nodes(level: number, at: number, from: number, to: number): boolean {
    const { nodes } = this.pyramid.table;
    const span = FAN ** level; // rows under a node
    let below = this.pyramid.count; // nodes or rows under this level
    for (let i = 1; i < level; i++) below = above(below);
    for (let i = from; i < to; i++) {
      const node = at + i;
      if (nodes.begin[node] >= this.to) return false;
      if (nodes.end[node] < this.from) continue;
      const rowsEnd = Math.min((i + 1) * span, this.pyramid.count);
      const child = i * FAN;
      if (this.isWhole(node) || this.isCrowded(nodes.begin[node], rowsEnd - 1)) this.putInLine(node, i * span, rowsEnd);
      else if (level === 1) this.putInLine(-1, i * span, rowsEnd);
      else if (!this.nodes(level - 1, at - below, child, Math.min(child + FAN, below))) return false;
    }
    return true;
  }
}

export function tileOf(pyramids: Pyramids, track: number, level: number, index: number, traceEnd: number): Tile {
  const pixelNs = 2 ** level;
  const from = index * TILE_PIXELS * pixelNs;
  const to = from + TILE_PIXELS * pixelNs;
  const of = pyramids.of(track);
  const value = of[0]?.table.value;
  if (value) return { track, level, index, points: pointsOf(of[0], value, from, to, pixelNs) };
  const walk = new Walk(from, to, pixelNs, traceEnd);
  of.forEach((pyramid, row) => walk.walk(pyramid, row));
  return { track, level, index, items: scratch.take() };
}
