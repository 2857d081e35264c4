// SPDX-License-Identifier: MIT
// embedded_pyramids.ts: the events of one row of a track in time order, and the pyramid over them, as
// src/server/view_pyramids.c makes them, in typed arrays. Both keep durations in nodes as floats, so that both draw the same.
import type { Pacer, Progress } from "./embedded_read";
import { NONE, type EventKind, type Spans, type Tables } from "./embedded_tables";
import type { Start, Track } from "./protocol";

export const FAN = 8;

export interface SpanNodes {
  begin: Float64Array;
  end: Float64Array;
  busy: Float32Array;
  longestDur: Float32Array;
  longest: Uint32Array; // row
}

export interface PointNodes {
  begin: Float64Array;
  end: Float64Array;
  min: Float64Array;
  max: Float64Array;
}

// A table of events as pyramids see it.
export interface PyramidTable {
  kind: EventKind;
  spans: Spans;
  row: Uint16Array | null; // of each event; null: 0
  name: (event: number) => number; // string
  value: Float64Array | null; // of counters
  order: Uint32Array; // rows, pyramid by pyramid
  nodes: SpanNodes;
  points: PointNodes;
}

export interface Pyramid {
  table: PyramidTable;
  first: number; // in order
  count: number;
  nodesAt: number; // of the lowest level
  levels: number;
  filled: number;
}

export const above = (count: number): number => Math.ceil(count / FAN);

// Returns where the nodes of a pyramid's highest level are, and how many.
export function topOf(pyramid: Pyramid): { at: number; count: number } {
  let at = pyramid.nodesAt;
  let count = above(pyramid.count);
  for (let level = 1; level < pyramid.levels; level++) {
    at += count;
    count = above(count);
  }
  return { at, count };
}

function nodesOver(rows: number): { levels: number; nodes: number } {
  let levels = 0;
  let nodes = 0;
  for (let count = rows; count > FAN; levels++) {
    count = above(count);
    nodes += count;
  }
  return { levels, nodes };
}

function emptySpans(count: number): SpanNodes {
  return {
    begin: new Float64Array(count),
    end: new Float64Array(count),
    busy: new Float32Array(count),
    longestDur: new Float32Array(count),
    longest: new Uint32Array(count),
  };
}

function emptyPoints(count: number): PointNodes {
  return {
    begin: new Float64Array(count),
    end: new Float64Array(count),
    min: new Float64Array(count),
    max: new Float64Array(count),
  };
}

function table(kind: EventKind, spans: Spans, name: (event: number) => number, row?: Uint16Array): PyramidTable {
  return {
    kind,
    spans,
    row: row ?? null,
    name,
    value: null,
    order: new Uint32Array(0),
    nodes: emptySpans(0),
    points: emptyPoints(0),
  };
}

export function pyramidTables(t: Tables): PyramidTable[] {
  const threadName = (thread: number): number => t.threads.name[thread] ?? 0;
  return [
    table("slices", t.slices, (i) => t.slices.name[i], t.slices.row),
    { ...table("counter", t.counters, () => 0), value: t.counters.value },
    table("sched", t.sched, (i) => threadName(t.sched.thread[i])),
    table("state", t.states, (i) => t.states.state[i]),
    table("samples", t.sampleSpans, (i) => t.frames.name[t.sampleSpans.frame[i]] ?? 0, t.sampleSpans.row),
    table("loss", t.losses, (i) => t.losses.what[i]),
  ];
}

// Returns when an event ends: with the trace if it never ended.
export function endOf(spans: Spans, event: number, traceEnd: number): number {
  const ts = spans.ts[event];
  const dur = spans.dur[event];
  return dur < 0 ? Math.max(ts, traceEnd) : ts + dur;
}

function setSpan(nodes: SpanNodes, node: number, begin: number, end: number, busy: number, row: number): void {
  nodes.begin[node] = begin;
  nodes.end[node] = end;
  nodes.busy[node] = busy;
  nodes.longestDur[node] = busy;
  nodes.longest[node] = row;
}

function joinSpan(nodes: SpanNodes, node: number, end: number, busy: number, longestDur: number, row: number): void {
  if (end > nodes.end[node]) nodes.end[node] = end;
  nodes.busy[node] += busy;
  if (longestDur > nodes.longestDur[node]) {
    nodes.longestDur[node] = longestDur;
    nodes.longest[node] = row;
  }
}

function spansOfRows(pyramid: Pyramid, traceEnd: number): void {
  const { spans, order, nodes } = pyramid.table;
  for (let i = 0; i < pyramid.count; i++) {
    const row = order[pyramid.first + i];
    const begin = spans.ts[row];
    const end = endOf(spans, row, traceEnd);
    const dur = Math.fround(end - begin);
    const node = pyramid.nodesAt + Math.floor(i / FAN);
    if (i % FAN === 0) setSpan(nodes, node, begin, end, dur, row);
    else joinSpan(nodes, node, end, dur, dur, row);
  }
}

function spansAbove(nodes: SpanNodes, below: number, count: number, to: number): void {
  for (let i = 0; i < count; i++) {
    const from = below + i;
    const node = to + Math.floor(i / FAN);
    if (i % FAN === 0) {
      setSpan(nodes, node, nodes.begin[from], nodes.end[from], nodes.busy[from], nodes.longest[from]);
      nodes.longestDur[node] = nodes.longestDur[from];
    } else {
      joinSpan(nodes, node, nodes.end[from], nodes.busy[from], nodes.longestDur[from], nodes.longest[from]);
    }
  }
}

function setPoint(nodes: PointNodes, node: number, begin: number, end: number, min: number, max: number): void {
  nodes.begin[node] = begin;
  nodes.end[node] = end;
  nodes.min[node] = min;
  nodes.max[node] = max;
}

// NaN counts only where there is no number.
function joinPoint(nodes: PointNodes, node: number, end: number, min: number, max: number): void {
  nodes.end[node] = end;
  if (!(nodes.min[node] <= min) && min === min) nodes.min[node] = min;
  if (!(nodes.max[node] >= max) && max === max) nodes.max[node] = max;
}

function pointsOfRows(pyramid: Pyramid, value: Float64Array): void {
  const { spans, order, points } = pyramid.table;
  for (let i = 0; i < pyramid.count; i++) {
    const row = order[pyramid.first + i];
    const at = spans.ts[row];
    const node = pyramid.nodesAt + Math.floor(i / FAN);
    if (i % FAN === 0) setPoint(points, node, at, at, value[row], value[row]);
    else joinPoint(points, node, at, value[row], value[row]);
  }
}

function pointsAbove(nodes: PointNodes, below: number, count: number, to: number): void {
  for (let i = 0; i < count; i++) {
    const from = below + i;
    const node = to + Math.floor(i / FAN);
    if (i % FAN === 0)
      setPoint(nodes, node, nodes.begin[from], nodes.end[from], nodes.min[from], nodes.max[from]);
    else joinPoint(nodes, node, nodes.end[from], nodes.min[from], nodes.max[from]);
  }
}

function buildPyramid(pyramid: Pyramid, traceEnd: number): void {
  if (!pyramid.levels) return;
  const { value } = pyramid.table;
  if (value) pointsOfRows(pyramid, value);
  else spansOfRows(pyramid, traceEnd);
  let at = pyramid.nodesAt;
  let count = above(pyramid.count);
  for (let level = 1; level < pyramid.levels; level++) {
    if (value) pointsAbove(pyramid.table.points, at, count, at + count);
    else spansAbove(pyramid.table.nodes, at, count, at + count);
    at += count;
    count = above(count);
  }
}

// States and losses are not always in time order.
function sortPyramid(pyramid: Pyramid): void {
  const { spans, order } = pyramid.table;
  const rows = order.subarray(pyramid.first, pyramid.first + pyramid.count);
  for (let i = 1; i < rows.length; i++) {
    if (spans.ts[rows[i]] >= spans.ts[rows[i - 1]]) continue;
    rows.sort((a, b) => spans.ts[a] - spans.ts[b] || a - b);
    return;
  }
}

// All pyramids of all tracks.
export class Pyramids {
  private readonly pyramids: Pyramid[] = [];
  private readonly firstOf: Uint32Array; // by track

  constructor(
    private readonly tables: PyramidTable[],
    private readonly tracks: Track[],
    private readonly traceEnd: number,
  ) {
    this.firstOf = new Uint32Array(tracks.length + 1);
    for (const track of tracks) this.addTrack(track);
  }

  private addTrack(track: Track): void {
    const of = this.tables.find((table) => table.kind === track.kind);
    const rows = of ? Math.max(1, track.rows) : 0;
    for (let row = 0; of && row < rows; row++)
      this.pyramids.push({ table: of, first: 0, count: 0, nodesAt: 0, levels: 0, filled: 0 });
    this.firstOf[track.id + 1] = this.pyramids.length;
  }

  of(track: number): Pyramid[] {
    return this.pyramids.slice(this.firstOf[track], this.firstOf[track + 1]);
  }

  // Returns the event of a row behind or before a moment and event, as src/server/api_event.c does.
  neighbour({ track, row, ts, id, forward }: Start): { kind: EventKind; id: number } | null {
    const pyramid = this.of(track)[row];
    if (!pyramid) return null;
    const { order, spans, kind } = pyramid.table;
    const last = id < 0 ? (forward ? -1 : Infinity) : forward ? id : id - 1;
    let low = 0;
    let high = pyramid.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const event = order[pyramid.first + middle];
      if (spans.ts[event] < ts || (spans.ts[event] === ts && event <= last)) low = middle + 1;
      else high = middle;
    }
    const at = forward ? low : low - 1;
    return at >= 0 && at < pyramid.count ? { kind, id: order[pyramid.first + at] } : null;
  }

  private find(table: PyramidTable, event: number): Pyramid | undefined {
    const track = table.spans.view[event];
    if (track === NONE || !(track < this.tracks.length)) return undefined;
    const pyramid = this.pyramids[Math.min(this.firstOf[track] + (table.row?.[event] ?? 0), this.firstOf[track + 1] - 1)];
    return pyramid?.table === table ? pyramid : undefined;
  }

  private makeRoom(table: PyramidTable): void {
    let rows = 0;
    let nodes = 0;
    for (const pyramid of this.pyramids) {
      if (pyramid.table !== table) continue;
      const over = nodesOver(pyramid.count);
      pyramid.first = rows;
      pyramid.nodesAt = nodes;
      pyramid.levels = over.levels;
      rows += pyramid.count;
      nodes += over.nodes;
    }
    table.order = new Uint32Array(rows);
    if (table.value) table.points = emptyPoints(nodes);
    else table.nodes = emptySpans(nodes);
  }

  // Counting sort by pyramid; keeps the time order.
  private async sortTable(table: PyramidTable, pacer: Pacer, report: (rows: number) => void): Promise<void> {
    const step = 1 << 16;
    const each = async (fn: (pyramid: Pyramid, event: number) => void): Promise<void> => {
      for (let from = 0; from < table.spans.count; from += step) {
        const to = Math.min(from + step, table.spans.count);
        for (let event = from; event < to; event++) {
          const pyramid = this.find(table, event);
          if (pyramid) fn(pyramid, event);
        }
        report(to - from);
        await pacer.pause();
      }
    };
    await each((pyramid) => pyramid.count++);
    this.makeRoom(table);
    await each((pyramid, event) => (table.order[pyramid.first + pyramid.filled++] = event));
  }

  async fill(pacer: Pacer, progress: Progress): Promise<void> {
    const all = 2 * this.tables.reduce((sum, table) => sum + table.spans.count, 0);
    let done = 0;
    for (const table of this.tables)
      await this.sortTable(table, pacer, (rows) => progress("Indexing the trace", (done += rows), all));
    for (const pyramid of this.pyramids) {
      sortPyramid(pyramid);
      buildPyramid(pyramid, this.traceEnd);
      await pacer.pause();
    }
  }
}
