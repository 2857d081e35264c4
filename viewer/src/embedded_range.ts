// SPDX-License-Identifier: MIT
// embedded_range.ts: sums up the slices of a range of time by name, as `kymo report --from --to` does
// (src/query/stats.c): a slice that reaches beyond the range counts with its part within, self time is the duration
// minus that of the children, and a percentile is the smallest duration that this share of all does not exceed.
import type { Pacer } from "./embedded_read";
import { firstAt, INSTANT, type Tables } from "./embedded_tables";
import type { Range, RangeRow } from "./protocol";

const STEP = 1 << 16;
const SORT_MAX = 1 << 17;
const ROWS_MAX = 20000; // more than anybody reads

// Selects the slices that count, and how much of each.
export class SliceRange {
  readonly end: number; // the first slice that begins too late
  private readonly tracks: Uint8Array | null; // of the view

  constructor(
    private readonly tables: Tables,
    readonly from: number,
    readonly to: number,
    tracks?: number[],
  ) {
    this.end = from < to ? firstAt(tables.slices.ts, to) : 0;
    this.tracks = tracks ? new Uint8Array(tables.trace.tracks.length) : null;
    for (const track of tracks ?? []) if (this.tracks && track in this.tracks) this.tracks[track] = 1;
  }

  has(slice: number): boolean {
    const { ts, dur, view } = this.tables.slices;
    if (this.tracks && this.tracks[view[slice]] !== 1) return false;
    if (ts[slice] >= this.from) return ts[slice] < this.to;
    return (dur[slice] < 0 ? this.tables.trace.end : ts[slice] + dur[slice]) > this.from;
  }

  beginOf(slice: number): number {
    return Math.max(this.tables.slices.ts[slice], this.from);
  }

  endOf(slice: number): number {
    const { ts, dur } = this.tables.slices;
    const end = dur[slice] < 0 ? this.tables.trace.end : ts[slice] + dur[slice];
    return Math.max(this.beginOf(slice), Math.min(end, this.to));
  }

  // Calls fn for each slice that counts, with pauses for drawing.
  async each(pacer: Pacer, fn: (slice: number) => void): Promise<void> {
    for (let from = 0; from < this.end; from += STEP) {
      const to = Math.min(from + STEP, this.end);
      for (let slice = from; slice < to; slice++) if (this.has(slice)) fn(slice);
      await pacer.pause();
    }
  }
}

interface Group {
  name: number;
  count: number;
  instants: number;
  total: number; // what recurs within itself counts once
  self: number;
  until: number; // the latest end
  durations: Float64Array;
  filled: number;
}

class Groups {
  readonly all: Group[] = [];
  private readonly of: Int32Array; // by name: its group, -1 if none

  constructor(
    private readonly tables: Tables,
    private readonly range: SliceRange,
  ) {
    this.of = new Int32Array(tables.texts.count).fill(-1);
  }

  private get(name: number): Group {
    const known = this.of[name];
    if (known >= 0) return this.all[known];
    const group = { name, count: 0, instants: 0, total: 0, self: 0, until: 0, durations: new Float64Array(0), filled: 0 };
    this.of[name] = this.all.push(group) - 1;
    return group;
  }

  add(slice: number): void {
    const { kind, name, parent } = this.tables.slices;
    const group = this.get(name[slice]);
    if (kind[slice] === INSTANT) {
      group.instants++;
      return;
    }
    const begin = this.range.beginOf(slice);
    const end = this.range.endOf(slice);
    if (!this.recurs(group, slice, begin)) group.total += end - begin;
    if (!group.count || end > group.until) group.until = end;
    group.count++;
    group.self += end - begin;
    if (parent[slice] < slice) this.takeFromParent(parent[slice], begin, end);
  }

  // Reports whether a slice is in one of the same name, as src/query/stats.c does.
  private recurs(group: Group, slice: number, begin: number): boolean {
    const { kind, name, parent } = this.tables.slices;
    if (!group.count || begin >= group.until) return false;
    for (let inner = slice, at = parent[slice]; at < inner; inner = at, at = parent[at])
      if (name[at] === name[slice] && kind[at] !== INSTANT && this.range.has(at)) return true;
    return false;
  }

  // Subtracts the part of a child that is within its parent.
  private takeFromParent(parent: number, begin: number, end: number): void {
    if (!this.range.has(parent)) return;
    const within = Math.min(end, this.range.endOf(parent));
    if (within > begin) this.get(this.tables.slices.name[parent]).self -= within - begin;
  }

  gather(slice: number): void {
    const { kind, name } = this.tables.slices;
    if (kind[slice] === INSTANT) return;
    const group = this.get(name[slice]);
    if (!group.filled) group.durations = new Float64Array(group.count);
    group.durations[group.filled++] = this.range.endOf(slice) - this.range.beginOf(slice);
  }
}

function percentileRank(count: number, part: number): number {
  const rank = Math.ceil(count * part);
  return rank ? Math.min(rank, count) - 1 : 0;
}

function median3(values: Float64Array, low: number, high: number): number {
  const a = values[low];
  const b = values[(low + high) >>> 1];
  const c = values[high];
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}

// Returns the value of a rank. Reorders the values: none before that rank is larger, none after it smaller. The values
// before `low` must not be larger. Groups equal values, so that many of them cost nothing.
export function select(values: Float64Array, rank: number, low = 0): number {
  let high = values.length - 1;
  while (low < high) {
    const pivot = median3(values, low, high);
    let below = low;
    let over = high;
    for (let i = low; i <= over; ) {
      const value = values[i];
      if (value < pivot) {
        values[i++] = values[below];
        values[below++] = value;
      } else if (value > pivot) {
        values[i] = values[over];
        values[over--] = value;
      } else {
        i++;
      }
    }
    if (rank < below) high = below - 1;
    else if (rank > over) low = over + 1;
    else return pivot;
  }
  return values[low];
}

// Parts ascend. The browser's sort is faster, but blocks the page too long for very many values.
function percentiles(values: Float64Array, parts: number[]): number[] {
  const ranks = parts.map((part) => percentileRank(values.length, part));
  if (!values.length) return parts.map(() => 0);
  if (values.length > SORT_MAX) return ranks.map((rank, i) => select(values, rank, ranks[i - 1] ?? 0));
  values.sort();
  return ranks.map((rank) => values[rank]);
}

function rowOf(tables: Tables, group: Group): RangeRow {
  const { durations, count } = group;
  let min = count ? Infinity : 0;
  let max = 0;
  let sum = 0;
  for (const duration of durations) {
    min = Math.min(min, duration);
    max = Math.max(max, duration);
    sum += duration;
  }
  const [p50, p95, p99] = percentiles(durations, [0.5, 0.95, 0.99]);
  return {
    name: tables.texts.name(group.name),
    count,
    instants: group.instants,
    total: group.total,
    self: group.self,
    min,
    mean: count ? sum / count : 0,
    p50,
    p95,
    p99,
    max,
  };
}

export async function rangeOf(tables: Tables, range: SliceRange, pacer: Pacer): Promise<Range> {
  const groups = new Groups(tables, range);
  await range.each(pacer, (slice) => groups.add(slice));
  await range.each(pacer, (slice) => groups.gather(slice));
  const inOrder = groups.all
    .filter((group) => group.count || group.instants)
    .sort((a, b) => b.total - a.total || b.count + b.instants - a.count - a.instants || a.name - b.name);
  const rows: RangeRow[] = [];
  for (const group of inOrder.slice(0, ROWS_MAX)) {
    rows.push(rowOf(tables, group));
    await pacer.pause();
  }
  return { rows };
}
