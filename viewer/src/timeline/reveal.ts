// SPDX-License-Identifier: MIT
// reveal.ts: what has to change for an event to be in sight: which tracks are shown, and which window of time.
import type { State } from "../app";
import type { EventRef } from "../protocol";
import { SPAN_LEAST, type Window } from "./motion";
import type { Tree } from "./tree";

const SMALL = 400; // parts of the window: what is less cannot be seen well
const ROOM = 20; // times its length to each side of what was too small

// Unfolds, and takes out of the hidden and filtered, what an event is in.
export function uncovered(tree: Tree, state: Readonly<State>, event: EventRef): Partial<State> {
  const way = tree.way(event.track);
  const keys = new Set(way.map(({ key }) => key));
  const folded = { ...state.folded };
  for (const [i, track] of way.entries()) {
    if ((i > 0 || event.row > 0) && tree.isFolded(track, state)) folded[track.key] = false;
  }
  const filter = state.filter.trim().toLowerCase();
  const isFound = way.some(({ name }) => name.toLowerCase().includes(filter));
  const hidden = state.hidden.filter((key) => !keys.has(key));
  return { folded, hidden, filter: isFound ? state.filter : "", page: "timeline" };
}

// A window with a slice in its middle, and some room.
export function around(from: number, to: number): Window {
  const span = Math.max(to - from, SPAN_LEAST);
  const middle = (from + to) / 2;
  return { from: middle - span * 0.6, to: middle + span * 0.6 };
}

// Moved just so far that a time is in sight; closer where it would be too small to see. null: it is well seen.
export function windowFor({ from, to }: Window, ts: number, end: number): Window | null {
  const span = to - from;
  const middle = (ts + end) / 2;
  const long = end - ts;
  if (long > 0 && long < span / SMALL) return { from: middle - long * ROOM, to: middle + long * ROOM };
  if (ts < to - span * 0.02 && end > from + span * 0.02) return null;
  if (long > span) return { from: ts - span * 0.1, to: ts + span * 0.9 };
  return { from: middle - span / 2, to: middle + span / 2 };
}
