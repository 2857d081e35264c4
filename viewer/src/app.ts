// SPDX-License-Identifier: MIT
// app.ts: what the parts of the page know of each other. main.ts makes the one App; the timeline and the panels are
// given it, change the state through it, and hear of changes by on(). No part knows another.
import type { EventRef, Kind, Search, Source, Trace } from "./protocol";

// All of this is in the URL (state.ts), so that a link shows the same place.
export interface State {
  from: number; // what is shown of time, ns
  to: number;
  page: "timeline" | "sql";
  tab: "details" | "range" | "flame" | "info"; // of the panel below the timeline
  selected: { kind: Kind; id: number } | null;
  range: { from: number; to: number } | null; // what is selected of time
  marks: number[]; // set with M
  pinned: string[]; // keys of tracks, in their order
  hidden: string[];
  folded: Record<string, boolean>; // keys of groups and tracks: folded or not, where that is not as usual
  order: string[]; // keys of tracks that were moved, in their new order
  filter: string; // of the tracks, by their names
  scroll: string; // key of the track at the top, "~" and how many pixels of it are above; "": it is not scrolled
  search: string;
  sql: string;
  flameOf: "slices" | "samples";
}

export interface Overlay {
  name: string; // of the track that shows it
  rows: { ts: number; dur: number; name: string; ref: { kind: Kind; id: number } | null }[];
}

export type Change = "view" | "selection" | "range" | "tracks" | "search" | "overlay" | "page" | "tab" | "theme" | "trace";

export interface App {
  readonly source: Source;
  readonly trace: Trace; // another one after "trace", when it is live
  readonly state: Readonly<State>;
  readonly search: Search | null; // of state.search
  readonly overlay: Overlay | null;
  readonly tracks: number[]; // that a range or flame graph is of: those not hidden

  on(change: Change, fn: () => void): () => void; // returns what ends it
  // Changes some of the state, tells who hears of it, and puts it into the URL.
  set(part: Partial<State>): void;
  // Selects, and opens the details. reveal scrolls and unfolds to it; focus zooms to it as well.
  select(ref: EventRef | { kind: Kind; id: number } | null, how?: "reveal" | "focus"): Promise<void>;
  setSearch(result: Search | null): void;
  setOverlay(overlay: Overlay | null): void;
  // What a screen reader should say now.
  announce(text: string): void;
}

// A panel is an element that keeps itself up to date.
export type Panel = (app: App) => HTMLElement;
