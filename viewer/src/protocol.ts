// SPDX-License-Identifier: MIT
// protocol.ts: the requests of the page and their answers. The rest of the page knows only the interface `Source`:
// remote.ts asks the server (src/server), embedded.ts answers from data in the page.
//
// All times are nanoseconds since the view's base, as numbers: exact to 104 days. Absolute times are strings of digits.
// Event ids are rows of their kind's table. Tracks are numbered from 0 in the order of `Trace.tracks`.

export type Kind = "group" | "slices" | "counter" | "sched" | "state" | "samples" | "loss";

export interface Track {
  id: number;
  parent: number; // -1: none; a parent comes before its children
  kind: Kind;
  key: string; // the same in every load of a trace: used in URLs and for pins
  name: string;
  rows: number; // 0 for groups, 1 for all others except slices and samples
  events: number;
  pid?: number;
  tid?: number;
  cpu?: number;
  unit?: string; // counter
  min?: number;
  max?: number;
}

// GET api/trace
export interface Trace {
  generation: number;
  name: string;
  format: string;
  base: string; // ns of `clock` at time 0
  clock: string; // "BOOTTIME"
  wall: string | null; // ns since 1970 at time 0, if known
  begin: number;
  end: number;
  live: boolean;
  counts: Record<string, number>; // slices, instants, counters, flows, samples, sched, logs, lost
  tracks: Track[];
  snapshots: { ts: number; trigger: string; reason: string; event: number }[];
  losses: { ts: number | null; events: number; track: number; what: string }[]; // track -1: none
  problems: { severity: "info" | "data loss" | "error"; name: string; count: number; first: string }[];
}

// GET api/tiles?g=GENERATION&level=K&first=I&count=N&tracks=1,2,3 returns binary: src/server/wire.h.
export const TILE_PIXELS = 512;
export const ITEM_MERGED = 1;
export const ITEM_INSTANT = 2;
export const ITEM_OPEN = 4;

// Items of a tile of a track, as columns; `row` ascends, and `begin` within a row.
export interface Items {
  count: number;
  begin: Float64Array;
  dur: Float64Array;
  event: Uint32Array;
  name: Uint32Array; // of Source.text()
  merged: Uint32Array; // how many events it represents
  row: Uint16Array;
  fill: Uint8Array;
  flags: Uint8Array;
}
// Points of a tile of a counter.
export interface Points {
  count: number;
  at: Float64Array;
  min: Float64Array;
  max: Float64Array;
  last: Float64Array;
}
export interface Tile {
  track: number;
  level: number;
  index: number;
  items?: Items; // all kinds except counter
  points?: Points;
}

// An event as others refer to it.
export interface EventRef {
  kind: Kind;
  id: number;
  name: string;
  ts: number;
  dur: number; // -1: never ended
  track: number; // -1: not shown
  row: number;
}

export interface Arg {
  key: string;
  type: "null" | "int" | "real" | "bool" | "pointer" | "string" | "json";
  value: string;
}

// GET api/event?kind=slices&id=7[&g=GENERATION]: fails for another generation, because its ids differ
export interface Details extends EventRef {
  category: string;
  instant: boolean;
  self: number | null; // slices
  absolute: string; // ns of the trace's clock
  wall: string | null; // "2026-11-15T18:21:23.517965760Z"
  process: string; // "demo server 7120" or ""
  thread: string;
  args: Arg[];
  source: { file: string; line: number; function: string } | null;
  parents: EventRef[]; // innermost first
  children: EventRef[]; // the first 200 in time
  childrenCount: number;
  flowsIn: { name: string; from: EventRef }[];
  flowsOut: { name: string; to: EventRef }[];
  stack: { name: string; file: string; line: number; module: string }[]; // samples: innermost first
  facts: { key: string; value: string }[]; // more by kind: state, CPU, waker, priority, value, ...
}

// GET api/range?from=&to=[&tracks=1,2]: the same as `kymo report --from --to`
export interface RangeRow {
  name: string;
  count: number; // spans
  instants: number;
  total: number;
  self: number;
  min: number;
  mean: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
}
export interface Range {
  rows: RangeRow[]; // by total, descending
}

// GET api/flame?from=&to=&of=slices|samples[&tracks=1,2]. Parents come before their children; -1: no parent.
export interface Flame {
  unit: "ns" | "samples";
  nodes: { name: string; parent: number; count: number; total: number; self: number }[];
}

// GET api/neighbour?g=&track=&row=&ts=&id=&forward=1: the event of a row behind (0: before) that time and event; id -1:
// an event that begins at ts counts, too. {event: EventRef | null}
export interface Start {
  track: number;
  row: number;
  ts: number;
  id: number;
  forward: boolean;
}

// GET api/search?q=TEXT[&at=N]. Finds names and argument values that contain the text, ignoring case; "name:TEXT",
// "category:TEXT" and "arg:TEXT" (or "arg.KEY:TEXT") restrict the search; "name=TEXT" finds exactly this name. Matches
// are numbered in time order.
export interface Search {
  count: number;
  tracks: { track: number; count: number; first: number }[]; // tracks with matches; first: number of the first
  names: number[]; // numbers of the texts that match as names: drawn bright
  at: number; // -1: not requested, or no match
  event: EventRef | null;
}
// GET api/search?q=TEXT&near=TS&forward=1: the same, and at is the first match after (0: before) that time

// POST api/sql, the body is the SQL text. Returns at most `limit` rows (a parameter, default 1000).
export interface SqlResult {
  columns: string[];
  rows: (string | number | null)[][]; // integers beyond 2^53 are strings of digits
  more: boolean; // there are more rows
  ms: number;
  error?: string; // if set, the rest is empty
}
// POST api/cancel interrupts the running SQL.

// GET api/tables
export interface Tables {
  tables: { name: string; columns: string[] }[];
}

// GET api/status?g=GENERATION answers when the generation differs, or after 20 s. While the first one is loaded the
// generation is 0 and stage describes the work.
export interface Status {
  generation: number;
  live: boolean;
  begin: number;
  end: number;
  stage: string;
  done: number;
  all: number;
}

export interface Source {
  readonly can: { sql: boolean; live: boolean };
  trace(): Promise<Trace>;
  // Returns `count` tiles of each track, beginning with `first`. The signal cancels the request.
  tiles(level: number, first: number, count: number, tracks: number[], signal?: AbortSignal): Promise<Tile[]>;
  // Returns the text of a name from tiles().
  text(name: number): string;
  event(kind: Kind, id: number): Promise<Details>;
  neighbour(start: Start): Promise<EventRef | null>;
  range(from: number, to: number, tracks?: number[]): Promise<Range>;
  flame(from: number, to: number, of: "slices" | "samples", tracks?: number[]): Promise<Flame>;
  search(q: string, where?: { at: number } | { near: number; forward: boolean }): Promise<Search>;
  sql(text: string, limit?: number): Promise<SqlResult>;
  cancel(): Promise<void>;
  tables(): Promise<Tables>;
  status(generation: number): Promise<Status>;
}
