// SPDX-License-Identifier: MIT
// embedded_tables.ts: the columns of an exported trace by name, and what follows from them at once: texts, the trace
// description, and where each event is drawn. Row numbers are event ids. NONE refers to no row.
import type { Pacer, Column, Unpacked } from "./embedded_read";
import type { Kind } from "./protocol";

export const NONE = 0xffffffff;
export const INSTANT = 1; // kind of a slice

export interface Spans {
  count: number;
  ts: Float64Array;
  dur: Float64Array; // -1: never ended
  view: Uint32Array; // track of the view
}

// The kinds of events, each with its columns.
export type EventKind = Exclude<Kind, "group">;

class Columns {
  constructor(private readonly columns: Map<string, Column>) {}

  private get<T extends Column>(name: string, type: abstract new (...args: never[]) => T): T {
    const column = this.columns.get(name);
    if (!(column instanceof type)) throw new Error(`The trace in this page has no ${name}: export it again.`);
    return column;
  }

  f64 = (name: string): Float64Array => this.get(name, Float64Array);
  u32 = (name: string): Uint32Array => this.get(name, Uint32Array);
  u16 = (name: string): Uint16Array => this.get(name, Uint16Array);
  u8 = (name: string): Uint8Array => this.get(name, Uint8Array);
  u64 = (name: string): BigUint64Array => this.get(name, BigUint64Array);

  // Rows are stored plus one: 0 minus 1 is NONE.
  rows(name: string): Uint32Array {
    const column = this.u32(name);
    for (let i = 0; i < column.length; i++) column[i] -= 1;
    return column;
  }

  durations(name: string): Float64Array {
    const column = this.f64(name);
    for (let i = 0; i < column.length; i++) column[i] -= 1;
    return column;
  }
}

const TEXT_BYTES = 4096; // no longer name is shown

// Decodes each text when it is first used.
export class Texts {
  readonly count: number;
  private readonly begins: Uint32Array;
  private readonly cache: (string | undefined)[];
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(
    bytes: Uint32Array,
    private readonly all: Uint8Array,
  ) {
    this.count = bytes.length;
    this.begins = new Uint32Array(bytes.length + 1);
    for (let i = 0; i < bytes.length; i++) this.begins[i + 1] = this.begins[i] + bytes[i];
    this.cache = new Array<string | undefined>(bytes.length);
  }

  get(number: number): string {
    return (this.cache[number] ??= this.cut(number, TEXT_BYTES));
  }

  // Returns at most this many of its bytes.
  cut(number: number, bytes: number): string {
    if (!(number < this.count)) return "";
    const begin = this.begins[number];
    return this.decoder.decode(this.all.subarray(begin, Math.min(begin + bytes, this.begins[number + 1])));
  }

  // Returns the text to display.
  name(number: number): string {
    return this.get(number) || "(no name)";
  }
}

// Stored is the difference from the likeliest parent: the last slice of the track that is less deep.
function parentsOf(stored: Uint32Array, track: Uint32Array, depth: Uint16Array, tracks: number): Uint32Array {
  const last = new Uint32Array(tracks).fill(NONE);
  for (let i = 0; i < stored.length; i++) {
    const code = stored[i];
    let parent = NONE;
    if (code === 0) {
      parent = last[track[i]] ?? NONE;
      while (parent !== NONE && depth[parent] >= depth[i]) parent = stored[parent];
    } else if (code > 1 && code - 1 <= i) {
      parent = i - (code - 1);
    }
    stored[i] = parent; // the ones before are already parents
    last[track[i]] = i;
  }
  return stored;
}

// 0: the category of the last slice of the same name; else one more than the category's number.
function categoriesOf(stored: Uint32Array, name: Uint32Array, strings: number): Uint32Array {
  const last = new Uint32Array(strings);
  for (let i = 0; i < stored.length; i++) {
    if (stored[i]) last[name[i]] = stored[i] - 1;
    stored[i] = last[name[i]] ?? 0;
  }
  return stored;
}

// Stored is the difference from the type of the last argument of the same key.
function typesOf(stored: Uint8Array, key: Uint32Array, strings: number): Uint8Array {
  const last = new Uint8Array(strings);
  for (let i = 0; i < stored.length; i++) {
    last[key[i]] ^= stored[i];
    stored[i] = last[key[i]] ?? 0;
  }
  return stored;
}

function rowsOf(stored: Uint16Array, depth: Uint16Array): Uint16Array {
  for (let i = 0; i < stored.length; i++) {
    const away = stored[i];
    stored[i] = depth[i] + (away & 1 ? -((away + 1) >> 1) : away >> 1);
  }
  return stored;
}

function through(rows: Uint32Array, column: Uint32Array): Uint32Array {
  const to = new Uint32Array(rows.length);
  for (let i = 0; i < rows.length; i++) to[i] = column[rows[i]] ?? NONE;
  return to;
}

// Rows of a table by the key in one of its columns, ascending: those of a key begin at rows[begins[key]].
export interface Index {
  begins: Uint32Array;
  rows: Uint32Array;
}

export function indexOf(column: Uint32Array, keys: number): Index {
  const begins = new Uint32Array(keys + 1);
  for (const key of column) if (key < keys) begins[key + 1]++;
  for (let i = 0; i < keys; i++) begins[i + 1] += begins[i];
  const rows = new Uint32Array(begins[keys]);
  const next = begins.slice(0, keys);
  for (let i = 0; i < column.length; i++) {
    const key = column[i];
    if (key < keys) rows[next[key]++] = i;
  }
  return { begins, rows };
}

// Returns the first row whose time is not before ts.
export function firstAt(times: Float64Array, ts: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[middle] < ts) low = middle + 1;
    else high = middle;
  }
  return low;
}

function processes(c: Columns) {
  return { pid: c.f64("processes.pid"), name: c.u32("processes.name") };
}

function threads(c: Columns) {
  return { tid: c.f64("threads.tid"), name: c.u32("threads.name"), process: c.rows("threads.process") };
}

function tracks(c: Columns) {
  return {
    view: c.rows("tracks.view"),
    thread: c.rows("tracks.thread"),
    process: c.rows("tracks.process"),
    name: c.u32("tracks.name"),
    unit: c.u32("tracks.unit"),
  };
}

// The largest table: pauses between its columns so that the page can draw.
async function slices(c: Columns, views: Uint32Array, strings: number, pacer: Pacer) {
  const ts = c.f64("slices.ts");
  const track = c.u32("slices.track");
  const depth = c.u16("slices.depth");
  const name = c.u32("slices.name");
  const dur = c.durations("slices.dur");
  await pacer.pause();
  const view = through(track, views);
  await pacer.pause();
  const parent = parentsOf(c.u32("slices.parent"), track, depth, views.length);
  await pacer.pause();
  const category = categoriesOf(c.u32("slices.category"), name, strings);
  await pacer.pause();
  return {
    count: ts.length,
    ts,
    dur,
    track,
    depth,
    view,
    parent,
    kind: c.u8("slices.kind"),
    name,
    category,
    args: c.u32("slices.args"), // 0: none
    row: rowsOf(c.u16("slices.row"), depth),
    listed: c.rows("slices.listed"),
  };
}

function counters(c: Columns, view: Uint32Array) {
  const ts = c.f64("counters.ts");
  const track = c.u32("counters.track");
  return {
    count: ts.length,
    ts,
    dur: new Float64Array(0),
    track,
    view: through(track, view),
    value: c.f64("counters.value"),
  };
}

function sched(c: Columns) {
  const ts = c.f64("sched.ts");
  return {
    count: ts.length,
    ts,
    dur: c.durations("sched.dur"),
    view: c.rows("sched.view"),
    cpu: c.u32("sched.cpu"),
    thread: c.rows("sched.thread"),
    endState: c.u32("sched.end_state"),
    priority: c.f64("sched.priority"),
  };
}

function states(c: Columns) {
  const ts = c.f64("states.ts");
  return {
    count: ts.length,
    ts,
    dur: c.durations("states.dur"),
    view: c.rows("states.view"),
    thread: c.rows("states.thread"),
    state: c.u32("states.state"),
    cpu: c.rows("states.cpu"),
    waker: c.rows("states.waker"),
    ioWait: c.f64("states.io_wait"),
    blockedFunction: c.u32("states.blocked_function"),
  };
}

function sampleSpans(c: Columns) {
  const ts = c.f64("sample_spans.ts");
  return {
    count: ts.length,
    ts,
    dur: c.durations("sample_spans.dur"),
    view: c.rows("sample_spans.view"),
    row: c.u16("sample_spans.row"),
    frame: c.rows("sample_spans.frame"),
    callsite: c.rows("sample_spans.callsite"),
    thread: c.rows("sample_spans.thread"),
    samples: c.u32("sample_spans.samples"),
  };
}

function samples(c: Columns) {
  const ts = c.f64("samples.ts");
  return {
    count: ts.length,
    ts,
    thread: c.rows("samples.thread"),
    callsite: c.rows("samples.callsite"),
    weight: c.f64("samples.weight"),
    main: c.u8("samples.main"),
  };
}

export const NOT_KNOWN_WHEN = -9e18; // before any real time

function losses(c: Columns) {
  const ts = c.f64("losses.ts");
  return {
    count: ts.length,
    ts,
    dur: new Float64Array(ts.length),
    view: c.rows("losses.view"),
    events: c.f64("losses.events"),
    thread: c.rows("losses.thread"),
    cpu: c.rows("losses.cpu"),
    what: c.u32("losses.what"),
  };
}

function args(c: Columns, strings: number) {
  const size = c.u32("arg_sets.size");
  const begins = new Uint32Array(size.length + 1);
  for (let i = 0; i < size.length; i++) begins[i + 1] = begins[i] + size[i];
  const key = c.u32("args.key");
  return { begins, key, type: typesOf(c.u8("args.type"), key, strings), value: c.u64("args.value") };
}

// Callers come before callees: a callsite that violates this has no caller.
function callsites(c: Columns) {
  const parent = c.rows("callsites.parent");
  for (let i = 0; i < parent.length; i++) if (parent[i] >= i) parent[i] = NONE;
  return { parent, frame: c.rows("callsites.frame") };
}

function frames(c: Columns) {
  return {
    name: c.u32("frames.name"),
    file: c.u32("frames.file"),
    line: c.u32("frames.line"),
    relPc: c.u64("frames.rel_pc"),
    mapping: c.rows("frames.mapping"),
    mappingName: c.u32("mappings.name"),
  };
}

function flows(c: Columns) {
  return { out: c.rows("flows.out"), in: c.rows("flows.in"), name: c.u32("flows.name") };
}

export type Tables = Awaited<ReturnType<typeof tablesOf>>;

export async function tablesOf({ head, columns }: Unpacked, pacer: Pacer) {
  const c = new Columns(columns);
  const texts = new Texts(c.u32("strings.bytes"), c.u8("strings.text"));
  const ofTracks = tracks(c);
  const ofSlices = await slices(c, ofTracks.view, texts.count, pacer);
  const all = {
    texts,
    processes: processes(c),
    threads: threads(c),
    tracks: ofTracks,
    slices: ofSlices,
    counters: counters(c, ofTracks.view),
    sched: sched(c),
    states: states(c),
    sampleSpans: sampleSpans(c),
    samples: samples(c),
    losses: losses(c),
    callsites: callsites(c),
    frames: frames(c),
    flows: flows(c),
    first: head.first,
    base: BigInt(head.trace.base),
    wall: head.wall.map(([from, offset]) => ({ from: BigInt(from), offset: BigInt(offset) })),
  };
  await pacer.pause();
  return { ...all, args: args(c, texts.count), trace: head.trace };
}
