// SPDX-License-Identifier: MIT
// embedded.ts: a Source that answers from data in the page itself, written by `kymo view --export`. It answers as the
// server does (src/server), so that the page looks the same; tests/viewer/embedded.mjs compares the two. SQL needs the
// server.
import { cutTrace } from "./embedded_cut";
import { Events } from "./embedded_event";
import { flameOfSamples, flameOfSlices } from "./embedded_flame";
import { Pyramids, pyramidTables } from "./embedded_pyramids";
import { rangeOf, SliceRange } from "./embedded_range";
import { Pacer, readEmbedded, type Progress } from "./embedded_read";
import { Searches } from "./embedded_search";
import { tablesOf, type Tables } from "./embedded_tables";
import { tileOf } from "./embedded_tiles";
import type { Details, EventRef, Flame, Kind, Range, Search, Source, Start, Tile, Trace } from "./protocol";
import type { SqlResult, Status, Tables as SqlTables } from "./protocol";

const LEVEL_MAX = 46;
const OPENING_MS = 24; // of work between two pauses
const TILES_MS = 5;
const NO_SQL = "SQL is not available in an exported page: use kymo view FILE.";

export class EmbeddedSource implements Source {
  readonly can = { sql: false, live: false };
  private readonly events: Events;
  private readonly searches: Searches;
  private readonly pacer = new Pacer(TILES_MS);
  private turn: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly data: Tables,
    private readonly pyramids: Pyramids,
  ) {
    this.events = new Events(data);
    this.searches = new Searches(data, this.events);
  }

  // text: the content of the element that holds the data.
  static async open(text: string, progress: Progress): Promise<EmbeddedSource> {
    const pacer = new Pacer(OPENING_MS);
    const unpacked = await readEmbedded(text, pacer, progress);
    const tables = await tablesOf(unpacked, pacer);
    if (unpacked.head.range) tables.trace = cutTrace(tables.trace, unpacked.head.range, tables);
    tables.trace = { ...tables.trace, live: false };
    const pyramids = new Pyramids(pyramidTables(tables), tables.trace.tracks, tables.trace.end);
    await pyramids.fill(pacer, progress);
    return new EmbeddedSource(tables, pyramids);
  }

  trace(): Promise<Trace> {
    return Promise.resolve(this.data.trace);
  }

  // Runs one request after another, so that together they take no more of an animation frame than one.
  tiles(level: number, first: number, count: number, tracks: number[], signal?: AbortSignal): Promise<Tile[]> {
    const made = this.turn.then(() => this.makeTiles(level, first, count, tracks, signal));
    this.turn = made.catch(() => undefined);
    return made;
  }

  private async makeTiles(
    level: number,
    first: number,
    count: number,
    tracks: number[],
    signal?: AbortSignal,
  ): Promise<Tile[]> {
    if (!(level >= 0 && level <= LEVEL_MAX)) throw new Error(`level ${level} is out of range`);
    const tiles: Tile[] = [];
    for (const track of tracks) {
      for (let i = 0; i < count; i++) {
        signal?.throwIfAborted();
        tiles.push(tileOf(this.pyramids, track, level, first + i, this.data.trace.end));
        await this.pacer.pause();
      }
    }
    return tiles;
  }

  text(name: number): string {
    return this.data.texts.get(name);
  }

  event(kind: Kind, id: number): Promise<Details> {
    return new Promise((resolve) => resolve(this.events.details(kind, id)));
  }

  neighbour(start: Start): Promise<EventRef | null> {
    const event = this.pyramids.neighbour(start);
    return Promise.resolve(event ? this.events.ref(event.kind, event.id) : null);
  }

  range(from: number, to: number, tracks?: number[]): Promise<Range> {
    return rangeOf(this.data, this.sliceRange(from, to, tracks), new Pacer());
  }

  async flame(from: number, to: number, of: "slices" | "samples", tracks?: number[]): Promise<Flame> {
    if (of === "slices") return flameOfSlices(this.data, this.sliceRange(from, to, tracks), new Pacer());
    return flameOfSamples(this.data, { from: Math.floor(from), to: Math.floor(to), threads: this.threadsOf(tracks) });
  }

  search(q: string, where?: { at: number } | { near: number; forward: boolean }): Promise<Search> {
    return this.searches.search(q, where);
  }

  sql(): Promise<SqlResult> {
    return Promise.resolve({ columns: [], rows: [], more: false, ms: 0, error: NO_SQL });
  }

  cancel(): Promise<void> {
    return Promise.resolve();
  }

  tables(): Promise<SqlTables> {
    return Promise.resolve({ tables: [] });
  }

  // Never resolves: an exported page never changes.
  status(): Promise<Status> {
    return new Promise(() => undefined);
  }

  private sliceRange(from: number, to: number, tracks?: number[]): SliceRange {
    return new SliceRange(this.data, Math.floor(from), Math.floor(to), tracks);
  }

  // Returns the threads whose samples the tracks show.
  private threadsOf(tracks?: number[]): Set<number> | null {
    if (!tracks) return null;
    const { sampleSpans } = this.data;
    const shown = new Set(tracks);
    const threads = new Set<number>();
    for (let i = 0; i < sampleSpans.count; i++) if (shown.has(sampleSpans.view[i])) threads.add(sampleSpans.thread[i]);
    return threads;
  }
}

// Returns the element with the data if this is an exported page.
export function embeddedData(): Element | null {
  return document.getElementById("kymo-data");
}

// Opens it. The text is the largest thing in the page, so it is released.
export function openEmbedded(element: Element, progress: Progress = () => undefined): Promise<Source> {
  const text = element.textContent ?? "";
  element.remove();
  return EmbeddedSource.open(text, progress);
}
