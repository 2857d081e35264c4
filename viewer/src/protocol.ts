// SPDX-License-Identifier: MIT
// protocol.ts: what the page and whoever has the trace say to each other. `Source` is the one interface that the
// rest of the page knows: remote.ts asks the server (src/server), embedded.ts answers from data in the page.
//
// All times are nanoseconds since the view's base, as numbers: exact to 104 days. Absolute times are strings of digits.
// Event ids are rows of the table that their kind says. Tracks are numbered from 0 in the order of `Trace.tracks`.

export type Kind = "group" | "slices" | "counter" | "sched" | "state" | "samples" | "loss";

export interface Track {
  id: number;
  parent: number; // -1: none; a parent comes before its children
  kind: Kind;
  key: string; // the same in every load of a trace: what URLs and pins say
  name: string;
  rows: number; // 0 for groups, 1 for all but slices and samples
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
  wall: string | null; // ns since 1970 at time 0, where it is known
  begin: number;
  end: number;
  live: boolean;
  counts: Record<string, number>; // slices, instants, counters, flows, samples, sched, logs, lost: what there is
  tracks: Track[];
  snapshots: { ts: number; trigger: string; reason: string; event: number }[];
  losses: { ts: number | null; events: number; track: number; what: string }[]; // track -1: of none
  problems: { severity: "info" | "data loss" | "error"; name: string; count: number; first: string }[];
}

// GET api/tiles?g=GENERATION&level=K&first=I&count=N&tracks=1,2,3 answers binary: src/server/wire.h.
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
  merged: Uint32Array; // how many it stands for
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
  items?: Items; // all kinds but counter
  points?: Points;
}

// An event as others refer to it.
export interface EventRef {
  kind: Kind;
  id: number;
  name: string;
  ts: number;
  dur: number; // -1: never ended
  track: number; // -1: is not shown
  row: number;
}

export interface Arg {
  key: string;
  type: "null" | "int" | "real" | "bool" | "pointer" | "string" | "json";
  value: string;
}

// GET api/event?kind=slices&id=7[&g=GENERATION]: of another generation it is refused, for ids are other ones there
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
  facts: { key: string; value: string }[]; // what else a kind has: state, CPU, waker, priority, value, ...
}

// GET api/range?from=&to=[&tracks=1,2]: as `kymo report --from --to`
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

// GET api/flame?from=&to=&of=slices|samples[&tracks=1,2]. Parents come before their children; -1 is no parent.
export interface Flame {
  unit: "ns" | "samples";
  nodes: { name: string; parent: number; count: number; total: number; self: number }[];
}

// GET api/search?q=TEXT[&at=N]. Names and argument values that contain the text, whatever the case; "name:TEXT",
// "category:TEXT" and "arg:TEXT" (or "arg.KEY:TEXT") look there alone. Matches are numbered in the order of time.
export interface Search {
  count: number;
  tracks: { track: number; count: number; first: number }[]; // those with any; first: the number of its first match
  names: number[]; // numbers of the texts that match as names: what is drawn bright
  at: number; // -1: none was asked for, or there is none
  event: EventRef | null;
}
// GET api/search?q=TEXT&near=TS&forward=1: the same, and at is the first one after (0: before) that time

// POST api/sql, the body is the text. Rows are at most `limit` (a parameter, 1000 unless given).
export interface SqlResult {
  columns: string[];
  rows: (string | number | null)[][]; // integers beyond 2^53 are strings of digits
  more: boolean; // there are more rows
  ms: number;
  error?: string; // then the rest is empty
}
// POST api/cancel ends the SQL that runs.

// GET api/tables
export interface Tables {
  tables: { name: string; columns: string[] }[];
}

// GET api/status?g=GENERATION answers when the generation is another one, or after 20 s. While the first is loaded
// generation is 0 and stage says what is done.
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
  // Tiles of several tracks, `count` of them from `first` on. Who no longer wants them says so by the signal.
  tiles(level: number, first: number, count: number, tracks: number[], signal?: AbortSignal): Promise<Tile[]>;
  // The text of a name that tiles() brought.
  text(name: number): string;
  event(kind: Kind, id: number): Promise<Details>;
  range(from: number, to: number, tracks?: number[]): Promise<Range>;
  flame(from: number, to: number, of: "slices" | "samples", tracks?: number[]): Promise<Flame>;
  search(q: string, where?: { at: number } | { near: number; forward: boolean }): Promise<Search>;
  sql(text: string, limit?: number): Promise<SqlResult>;
  cancel(): Promise<void>;
  tables(): Promise<Tables>;
  status(generation: number): Promise<Status>;
}
