// SPDX-License-Identifier: MIT
// embedded_search.ts: finds events of an exported trace that have a text in their name, category or arguments, as
// src/server/search.c does: compares each string once, ignoring case, then selects rows by their strings. Numbers the
// matches of slices and samples together in time order, slices first when both begin at once.
import { argString, argText, plainKey } from "./embedded_args";
import type { Events } from "./embedded_event";
import { Pacer } from "./embedded_read";
import { firstAt, NONE, type Tables } from "./embedded_tables";
import type { EventRef, Search } from "./protocol";

const STEP = 1 << 16;
const KEPT = 4; // searches: stepping from match to match repeats the same one
const NAMES_MAX = 65536;

const INT = 1;
const UINT = 2;
const REAL = 3;
const POINTER = 5;

// Folds character by character, so that a letter's folding does not depend on its place in a word.
function fold(text: string): string {
  return /^[\x00-\x7f]*$/.test(text) ? text.toLowerCase() : Array.from(text, (char) => char.toLowerCase()).join("");
}

interface Wanted {
  needle: string;
  exact: boolean; // the needle is all of a name
  names: boolean;
  categories: boolean;
  args: boolean;
  source: boolean; // also match arguments that give a source location
  key: string | null; // of arguments
}

// "name:", "name=", "category:", "arg:", "arg.KEY:"
function wantedOf(q: string): Wanted {
  if (/^name=/i.test(q)) {
    const needle = q.slice(5);
    return { needle, exact: true, names: needle !== "", categories: false, args: false, source: false, key: null };
  }
  const parts = /^(?:(name|category|arg):|arg\.([^:]+):)?([^]*)$/i.exec(q);
  const where = parts?.[1]?.toLowerCase() ?? (parts?.[2] === undefined ? "" : "arg");
  const needle = fold(parts?.[3] ?? q);
  return {
    needle,
    exact: false,
    names: needle !== "" && (where === "" || where === "name"),
    categories: needle !== "" && where === "category",
    args: needle !== "" && (where === "" || where === "arg"),
    source: where === "arg",
    key: parts?.[2]?.toLowerCase() ?? null,
  };
}

// Remembers the result for each string.
class Known {
  private readonly known: Uint8Array; // 1: contains the text, 2: does not

  constructor(
    strings: number,
    private readonly test: (string: number) => boolean,
  ) {
    this.known = new Uint8Array(strings);
  }

  has(string: number): boolean {
    if (!this.known[string]) this.known[string] = this.test(string) ? 1 : 2;
    return this.known[string] === 1;
  }

  all(max: number): number[] {
    const found: number[] = [];
    for (let i = 0; i < this.known.length && found.length < max; i++) if (this.known[i] === 1) found.push(i);
    return found;
  }
}

interface Found {
  rows: Uint32Array; // matches in time order
  isSpan: Uint8Array; // of each match: a sample span, else a slice
  ts: Float64Array;
  tracks: Search["tracks"];
  names: number[];
}

class Looking {
  private readonly wanted: Wanted;
  private readonly byName: Known;
  private readonly byValue: Known;
  private readonly byKey: Known;
  private readonly sets: Uint8Array;

  constructor(
    private readonly t: Tables,
    q: string,
    private readonly pacer: Pacer,
  ) {
    this.wanted = wantedOf(q);
    const contains = (string: number): boolean => string !== 0 && this.contains(t.texts.cut(string, Infinity));
    this.byName = new Known(t.texts.count, contains);
    this.byValue = new Known(t.texts.count, contains);
    this.byKey = new Known(t.texts.count, (string) => this.keyFits(t.texts.cut(string, Infinity)));
    this.sets = new Uint8Array(t.args.begins.length);
  }

  private contains(text: string): boolean {
    return this.wanted.exact ? text === this.wanted.needle : fold(text).includes(this.wanted.needle);
  }

  private keyFits(full: string): boolean {
    const plain = plainKey(full);
    if (!this.wanted.source && (plain.startsWith("source.") || plain.startsWith("source_location."))) return false;
    const { key } = this.wanted;
    return key === null || plain.toLowerCase() === key || full.toLowerCase() === key;
  }

  // Formats a number only if the text could be part of one.
  private couldBe(type: number): boolean {
    const { needle } = this.wanted;
    if (type === INT || type === UINT) return /^[-0-9]*$/.test(needle);
    if (type === POINTER) return /^[0-9a-fx]*$/.test(needle);
    return type !== REAL || /^[-+.0-9einfa]*$/.test(needle);
  }

  private async findSets(): Promise<void> {
    const { begins, key, type } = this.t.args;
    const could = Array.from({ length: 8 }, (_, i) => this.couldBe(i));
    const valueIn = (arg: number): boolean => {
      const string = argString(this.t, arg);
      return string ? this.byValue.has(string) : could[type[arg]] && this.contains(argText(this.t, arg));
    };
    for (let set = 1; set + 1 < begins.length; set++) {
      for (let arg = begins[set]; arg < begins[set + 1] && !this.sets[set]; arg++)
        if (this.byKey.has(key[arg]) && valueIn(arg)) this.sets[set] = 1;
      if (set % STEP === 0) await this.pacer.pause();
    }
  }

  private sliceIn(slice: number): boolean {
    const { slices } = this.t;
    if (this.wanted.names && this.byName.has(slices.name[slice])) return true;
    if (this.wanted.categories && this.byValue.has(slices.category[slice])) return true;
    return this.wanted.args && this.sets[slices.args[slice]] === 1;
  }

  private spanIn(span: number): boolean {
    const frame = this.t.sampleSpans.frame[span];
    return this.wanted.names && frame !== NONE && this.byName.has(this.t.frames.name[frame]);
  }

  private async rows(count: number, isIn: (row: number) => boolean): Promise<number[]> {
    const found: number[] = [];
    for (let from = 0; from < count; from += STEP) {
      for (let row = from; row < Math.min(from + STEP, count); row++) if (isIn(row)) found.push(row);
      await this.pacer.pause();
    }
    return found;
  }

  async find(): Promise<Found> {
    const { slices, sampleSpans } = this.t;
    if (this.wanted.args) await this.findSets();
    const ofSlices = await this.rows(slices.count, (row) => this.sliceIn(row));
    const ofSpans = await this.rows(sampleSpans.count, (row) => this.spanIn(row));
    ofSpans.sort((a, b) => sampleSpans.ts[a] - sampleSpans.ts[b] || a - b);
    return { ...this.inOrder(ofSlices, ofSpans), names: this.byName.all(NAMES_MAX) };
  }

  private inOrder(ofSlices: number[], ofSpans: number[]): Omit<Found, "names"> {
    const { slices, sampleSpans } = this.t;
    const count = ofSlices.length + ofSpans.length;
    const found = { rows: new Uint32Array(count), isSpan: new Uint8Array(count), ts: new Float64Array(count) };
    const tracks = new Map<number, { track: number; count: number; first: number }>();
    for (let i = 0, slice = 0, span = 0; i < count; i++) {
      const [sliceTs, spanTs] = [slices.ts[ofSlices[slice]] ?? Infinity, sampleSpans.ts[ofSpans[span]] ?? Infinity];
      const isSpan = slice === ofSlices.length || spanTs < sliceTs;
      const row = isSpan ? ofSpans[span++] : ofSlices[slice++];
      found.rows[i] = row;
      found.isSpan[i] = Number(isSpan);
      found.ts[i] = (isSpan ? sampleSpans : slices).ts[row];
      const track = (isSpan ? sampleSpans : slices).view[row];
      const known = tracks.get(track);
      if (known) known.count++;
      else if (track !== NONE) tracks.set(track, { track, count: 1, first: i });
    }
    return { ...found, tracks: [...tracks.values()].sort((a, b) => a.track - b.track) };
  }
}

export class Searches {
  private readonly kept = new Map<string, Promise<Found>>(); // most recently used last

  constructor(
    private readonly t: Tables,
    private readonly events: Events,
  ) {}

  private found(q: string): Promise<Found> {
    const found = this.kept.get(q) ?? new Looking(this.t, q, new Pacer()).find();
    this.kept.delete(q);
    this.kept.set(q, found);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= KEPT) break;
      this.kept.delete(oldest);
    }
    return found;
  }

  async search(q: string, where?: { at: number } | { near: number; forward: boolean }): Promise<Search> {
    const { rows, isSpan, ts, tracks, names } = await this.found(q);
    let at = -1;
    if (where && "at" in where) at = where.at;
    else if (where) at = firstAt(ts, Math.floor(where.near)) - (where.forward ? 0 : 1);
    if (!(at < rows.length)) at = -1;
    const event: EventRef | null = at < 0 ? null : this.events.ref(isSpan[at] ? "samples" : "slices", rows[at]);
    return { count: rows.length, tracks, names, at, event };
  }
}
