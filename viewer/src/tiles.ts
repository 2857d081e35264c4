// SPDX-License-Identifier: MIT
// tiles.ts: the cache of tiles, and the requests for missing ones.
//
// Once per animation frame the timeline says what it wants to show. Missing tiles are requested together: tracks that
// miss the same tiles of a level share a request. Requests that are no longer wanted are cancelled. Tiles stay in the
// cache up to a number of items; the least recently used go first.
//
// Tiles are kept by the key of their track, so that those of an older generation are shown until the newer ones arrive.
import type { Source, Tile, Track } from "./protocol";

const ITEMS_MAX = 1_500_000;
const REQUESTS_MAX = 3;
const TRACKS_OF_REQUEST = 48;
const PAUSE_MS = 1000; // after a failure

interface Kept {
  tile: Tile;
  generation: number;
  used: number;
}

interface Request {
  level: number;
  first: number;
  last: number;
  slots: Set<number>;
  abort: AbortController;
}

export interface Wanted {
  level: number;
  first: number;
  last: number;
  tracks: number[];
}

// Levels are below 64 and indices below 2^45 from zero, so this is exact.
const place = (level: number, index: number): number => level * 2 ** 46 + index + 2 ** 45;
const weight = (tile: Tile): number => 16 + (tile.items?.count ?? 0) + (tile.points?.count ?? 0);

export class Tiles {
  private slots = new Map<string, number>();
  private slotOf: number[] = []; // by track
  private kept: Map<number, Kept>[] = []; // by slot
  private requests: Request[] = [];
  private items = 0;
  private frame = 0;
  private generation = 0;
  private pausedUntil = 0;

  constructor(
    private readonly source: Source,
    private readonly arrived: (tracks: Set<number>) => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  setTracks(generation: number, tracks: Track[]): void {
    this.generation = generation;
    this.slotOf = tracks.map(({ key }) => {
      const slot = this.slots.get(key) ?? this.slots.size;
      this.slots.set(key, slot);
      this.kept[slot] ??= new Map();
      return slot;
    });
    for (const request of this.requests) request.abort.abort();
  }

  get(track: number, level: number, index: number): Tile | undefined {
    const kept = this.kept[this.slotOf[track]]?.get(place(level, index));
    if (kept) kept.used = this.frame;
    return kept?.tile;
  }

  private fresh(slot: number, level: number, index: number): boolean {
    const kept = this.kept[slot].get(place(level, index));
    if (kept) kept.used = this.frame; // wanted tiles are on the screen, even if not redrawn
    return kept?.generation === this.generation;
  }

  has(track: number, level: number, index: number): boolean {
    return this.fresh(this.slotOf[track], level, index);
  }

  // Requests what the first incomplete one of these misses. Returns true if the first one is complete.
  want(wanted: Wanted[]): boolean {
    this.frame++;
    this.giveUp(wanted);
    let complete = true;
    for (const [i, one] of wanted.entries()) {
      const missing = this.missing(one);
      if (i === 0) complete = missing.size === 0;
      for (const [range, tracks] of missing) this.ask(one.level, range, tracks);
      if (missing.size > 0) break;
    }
    this.evict();
    return complete;
  }

  private giveUp(wanted: Wanted[]): void {
    for (const { level, first, last, abort } of this.requests) {
      const useful = wanted.some((one) => one.level === level && one.first <= last && first <= one.last);
      if (!useful) abort.abort();
    }
  }

  private missing({ level, first, last, tracks }: Wanted): Map<string, number[]> {
    const groups = new Map<string, number[]>();
    for (const track of tracks) {
      const slot = this.slotOf[track];
      let from = first;
      let to = last;
      while (from <= to && this.fresh(slot, level, from)) from++;
      while (to > from && this.fresh(slot, level, to)) to--;
      if (from > to) continue;
      const range = `${from},${to}`;
      const group = groups.get(range);
      if (group) group.push(track);
      else groups.set(range, [track]);
    }
    return groups;
  }

  private ask(level: number, range: string, tracks: number[]): void {
    if (performance.now() < this.pausedUntil) return;
    const [first, last] = range.split(",").map(Number);
    const open = tracks.filter((track) => !this.asked(this.slotOf[track], level, first, last));
    for (let at = 0; at < open.length && this.requests.length < REQUESTS_MAX; at += TRACKS_OF_REQUEST) {
      void this.send(level, first, last, open.slice(at, at + TRACKS_OF_REQUEST));
    }
  }

  private asked(slot: number, level: number, first: number, last: number): boolean {
    return this.requests.some(
      (request) =>
        request.level === level &&
        request.first <= first &&
        request.last >= last &&
        request.slots.has(slot) &&
        !request.abort.signal.aborted,
    );
  }

  private async send(level: number, first: number, last: number, tracks: number[]): Promise<void> {
    const abort = new AbortController();
    const request = { level, first, last, slots: new Set(tracks.map((track) => this.slotOf[track])), abort };
    const { generation } = this;
    this.requests.push(request);
    try {
      const tiles = await this.source.tiles(level, first, last - first + 1, tracks, abort.signal);
      if (generation === this.generation) for (const tile of tiles) this.keep(tile);
    } catch (error) {
      if (!abort.signal.aborted) this.fail(error);
    }
    this.requests.splice(this.requests.indexOf(request), 1);
    this.arrived(new Set(tracks));
  }

  private fail(error: unknown): void {
    this.pausedUntil = performance.now() + PAUSE_MS;
    window.setTimeout(() => this.arrived(new Set()), PAUSE_MS + 10);
    this.failed(error);
  }

  private keep(tile: Tile): void {
    const kept = this.kept[this.slotOf[tile.track]];
    const at = place(tile.level, tile.index);
    const before = kept.get(at);
    if (before) this.items -= weight(before.tile);
    kept.set(at, { tile, generation: this.generation, used: this.frame });
    this.items += weight(tile);
  }

  // Never drops what the last animation frames used: it is on the screen.
  private evict(): void {
    if (this.items <= ITEMS_MAX) return;
    const all = this.kept.flatMap((tiles) => [...tiles].map(([at, kept]) => ({ tiles, at, kept })));
    all.sort((a, b) => a.kept.used - b.kept.used);
    for (const { tiles, at, kept } of all) {
      if (this.items <= ITEMS_MAX * 0.75 || kept.used >= this.frame - 2) break;
      this.items -= weight(kept.tile);
      tiles.delete(at);
    }
  }
}
