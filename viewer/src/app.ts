// SPDX-License-Identifier: MIT
// app.ts: the interface between the parts of the page. main.ts makes the one App and passes it to the timeline and the
// panels; they change the state through it and listen for changes with on(). No part knows another.
import type { EventRef, Kind, Search, Source, Trace } from "./protocol";

// The URL holds all of this (state.ts), so that a link shows the same place.
export interface State {
  from: number; // time shown, ns
  to: number;
  page: "timeline" | "sql";
  tab: "details" | "range" | "flame" | "info"; // tab of the panel below the timeline
  selected: { kind: Kind; id: number } | null;
  range: { from: number; to: number } | null; // selected time
  marks: number[]; // set with M
  pinned: string[]; // keys of tracks, in their order
  hidden: string[];
  folded: Record<string, boolean>; // keys of groups and tracks whose folding differs from the default
  order: string[]; // pairs of keys: a moved track and the one it was put before
  filter: string; // filters tracks by name
  scroll: string; // key of the top track, "~", pixels scrolled past its top; "": not scrolled
  search: string;
  sql: string;
  flameOf: "slices" | "samples";
}

export interface Overlay {
  name: string; // of its track
  rows: { ts: number; dur: number; name: string; ref: { kind: Kind; id: number } | null }[];
}

export type Change = "view" | "selection" | "range" | "tracks" | "search" | "overlay" | "page" | "tab" | "theme" | "trace";

// How a selected event is brought into view: all scroll and unfold to it; reveal zooms in if it is too small to see, pan
// never zooms, fit zooms out if it is longer than the view, focus zooms to it.
export type How = "reveal" | "pan" | "fit" | "focus";

export interface App {
  readonly source: Source;
  readonly trace: Trace; // replaced on "trace" when live
  readonly state: Readonly<State>;
  readonly search: Search | null; // result for state.search
  readonly overlay: Overlay | null;
  readonly tracks: number[]; // the tracks that are neither hidden nor filtered out: those of a range or flame graph

  on(change: Change, fn: () => void): () => void; // returns a function that unsubscribes
  // Changes part of the state, notifies the listeners, and updates the URL.
  set(part: Partial<State>): void;
  // Selects an event and opens its details.
  select(ref: EventRef | { kind: Kind; id: number } | null, how?: How): Promise<void>;
  setSearch(result: Search | null): void;
  setOverlay(overlay: Overlay | null): void;
  // Says a text to screen readers.
  announce(text: string): void;
}

// A panel is an element that keeps itself up to date.
export type Panel = (app: App) => HTMLElement;
