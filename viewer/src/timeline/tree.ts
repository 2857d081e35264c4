// SPDX-License-Identifier: MIT
// tree.ts: which tracks are shown, in which order, where and how high: the tree of the trace's tracks without those
// hidden, folded or filtered out, and with moved tracks in their new places. Sizes are CSS pixels.
//
// An entry is one track in a pane. It is drawn as bands: some rows of one track. A tall track has several bands, of
// which only the visible ones are drawn; a folded group has one thin band for each of its busiest tracks. Call stacks
// are deep and rarely wanted: next to other tracks of their thread they are folded by default, into rows so thin that
// only their shape shows.
import type { State } from "../app";
import type { Kind, Trace, Track } from "../protocol";
import { matching } from "../state";
import type { Strip } from "./strips";

export const ROW = 18;
export const PAD = 3;
const GROUP = 26;
const COUNTER = 38;
const STATE = 12;
const BAND_ROWS = 16;
const SUMMARY_BANDS = 5;
const DEEP = 4; // rows of call stacks
const OPEN_TRACKS = 80; // unfolded by default

export const OVERLAY = -1; // track number of the rows of SQL

export interface Band {
  track: number;
  kind: Kind;
  row: number; // the first one
  rows: number;
  y: number; // in its entry
  rowHeight: number;
  strips: Map<number, Strip>;
}

export interface Entry {
  track: Track;
  depth: number;
  y: number; // in its pane
  height: number;
  folded: boolean;
  foldable: boolean;
  bands: Band[] | null; // made when first visible
}

const band = (track: Track, row: number, rows: number, y: number, rowHeight: number): Band => ({
  track: track.id,
  kind: track.kind,
  row,
  rows,
  y,
  rowHeight,
  strips: new Map(),
});

function thin(track: Track): Band {
  const rowHeight = Math.max(2, Math.floor(ROW / track.rows));
  return band(track, 0, Math.min(track.rows, Math.floor(ROW / rowHeight)), PAD, rowHeight);
}

const foldable = (track: Track): boolean => track.kind === "group" || track.kind === "counter" || track.rows > 1;

function heightOf(track: Track, folded: boolean): number {
  if (track.kind === "group") return GROUP;
  if (folded) return ROW + 2 * PAD;
  if (track.kind === "counter") return COUNTER;
  if (track.kind === "state") return STATE + 2 * PAD + 4;
  return Math.max(1, track.rows) * ROW + 2 * PAD;
}

export class Tree {
  private readonly children: Track[][] = [];
  private readonly roots: Track[] = [];
  private readonly foldedByDefault = new Set<number>();

  constructor(readonly trace: Trace) {
    for (const track of trace.tracks) {
      this.children.push([]);
      (this.children[track.parent] ?? this.roots).push(track);
    }
    this.foldUsually();
  }

  private foldUsually(): void {
    for (const { kind, rows, id, parent, tid } of this.trace.tracks) {
      const isAlone = !this.children[parent]?.some((other) => other.id !== id && other.tid === tid);
      if (kind === "samples" && rows > DEEP && !isAlone) this.foldedByDefault.add(id);
    }
    let shown = 0;
    for (const [i, root] of this.roots.entries()) {
      shown += this.leaves(root).length;
      if (i > 0 && shown > OPEN_TRACKS) this.foldedByDefault.add(root.id);
    }
  }

  private leaves(track: Track): Track[] {
    const found: Track[] = [];
    const walk = (at: Track): void => {
      if (at.kind !== "group") found.push(at);
      for (const child of this.children[at.id]) walk(child);
    };
    walk(track);
    return found;
  }

  isFolded(track: Track, state: Readonly<State>): boolean {
    return state.folded[track.key] ?? this.foldedByDefault.has(track.id);
  }

  // Returns a track and its parents, innermost first.
  way(track: number): Track[] {
    const found: Track[] = [];
    for (let at = this.trace.tracks[track]; at; at = this.trace.tracks[at.parent]) found.push(at);
    return found;
  }

  // Returns the siblings of a track in display order. `order` is pairs: a track, and the one that it was put before
  // ("$": the end).
  siblings(track: Track, order: readonly string[]): Track[] {
    return this.ordered(this.children[track.parent] ?? this.roots, order);
  }

  private ordered(tracks: Track[], order: readonly string[]): Track[] {
    if (order.length === 0) return tracks;
    const list = [...tracks];
    for (let i = 0; i + 1 < order.length; i += 2) {
      const from = list.findIndex(({ key }) => key === order[i]);
      const before = order[i + 1] === "$" ? list.length : list.findIndex(({ key }) => key === order[i + 1]);
      if (from < 0 || before < 0) continue;
      const [moved] = list.splice(from, 1);
      list.splice(before > from ? before - 1 : before, 0, moved);
    }
    return list;
  }

  // Returns the entries of the tree, and those of the pinned tracks.
  entries(state: Readonly<State>): { pinned: Entry[]; main: Entry[] } {
    const hidden = new Set(state.hidden);
    const pins = new Set(state.pinned);
    const shown = matching(this.trace.tracks, state.filter);
    const walk = (tracks: Track[], depth: number, into: Entry[], inPinned: boolean): void => {
      for (const track of this.ordered(tracks, state.order)) {
        if (hidden.has(track.key) || (!inPinned && (pins.has(track.key) || (shown && !shown.has(track.id))))) continue;
        const folded = !(shown && !inPinned) && this.isFolded(track, state);
        push(into, track, depth, folded);
        if (!folded || track.kind !== "group") walk(this.children[track.id], depth + 1, into, inPinned);
      }
    };
    const pinned: Entry[] = [];
    const byKey = new Map(this.trace.tracks.map((track) => [track.key, track]));
    for (const key of pins) {
      const track = byKey.get(key);
      if (track) walk([track], 0, pinned, true);
    }
    const main: Entry[] = [];
    walk(this.roots, 0, main, false);
    return { pinned, main };
  }

  bandsOf(entry: Entry): Band[] {
    entry.bands ??= this.makeBands(entry);
    return entry.bands;
  }

  private makeBands({ track, folded, height }: Entry): Band[] {
    if (track.kind === "group") return folded ? this.summary(track, height) : [];
    if (track.kind === "counter") return [band(track, 0, 1, PAD, height - 2 * PAD)];
    if (track.kind === "state") return [band(track, 0, 1, Math.round((height - STATE) / 2), STATE)];
    if (track.kind === "samples" && folded) return [thin(track)];
    const rows = folded ? 1 : Math.max(1, track.rows);
    const bands: Band[] = [];
    for (let row = 0; row < rows; row += BAND_ROWS) {
      bands.push(band(track, row, Math.min(BAND_ROWS, rows - row), PAD + row * ROW, ROW));
    }
    return bands;
  }

  private summary(group: Track, height: number): Band[] {
    const drawn = this.leaves(group).filter(({ kind }) => kind !== "counter" && kind !== "state");
    const busiest = [...drawn].sort((a, b) => b.events - a.events).slice(0, SUMMARY_BANDS);
    const rows = drawn.filter((track) => busiest.includes(track));
    const each = Math.min(8, Math.floor((height - 2 * PAD) / Math.max(1, rows.length)));
    const top = Math.round((height - each * rows.length) / 2);
    return rows.map((track, i) => band(track, 0, 1, top + i * each, each));
  }
}

function push(into: Entry[], track: Track, depth: number, folded: boolean): void {
  const last = into[into.length - 1];
  const y = last ? last.y + last.height : 0;
  const height = heightOf(track, folded);
  into.push({ track, depth, y, height, folded, foldable: foldable(track), bands: null });
}

// Returns the first entry that ends below y.
export function entryAt(entries: Entry[], y: number): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle].y + entries[middle].height > y) high = middle;
    else low = middle + 1;
  }
  return low;
}
