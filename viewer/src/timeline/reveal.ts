// SPDX-License-Identifier: MIT
// reveal.ts: what has to change to make an event visible: the tracks shown, and the view.
import type { How, State } from "../app";
import type { EventRef } from "../protocol";
import { SPAN_LEAST, type View } from "./motion";
import type { Tree } from "./tree";

const SMALL = 400; // fraction of the view: smaller slices are hard to see
const ROOM = 20; // multiples of its length to each side of a slice that was too small

// Unfolds the parents of an event and removes them from the hidden and filtered tracks.
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

// Returns a view with a slice in its middle, and some room.
export function around(from: number, to: number): View {
  const span = Math.max(to - from, SPAN_LEAST);
  const middle = (from + to) / 2;
  return { from: middle - span * 0.6, to: middle + span * 0.6 };
}

// Returns a view moved just far enough to show a time; null if it is visible. "pan" keeps the scale, "fit" zooms out to
// what is longer than the view, "reveal" zooms in to what would be too small to see.
export function viewFor({ from, to }: View, ts: number, end: number, how: Exclude<How, "focus"> = "reveal"): View | null {
  const span = to - from;
  const middle = (ts + end) / 2;
  const long = end - ts;
  if (how === "fit" && (ts < from || end > to)) {
    if (long > span) return around(ts, end);
    return { from: middle - span / 2, to: middle + span / 2 };
  }
  if (how === "reveal" && long > 0 && long < span / SMALL) return { from: middle - long * ROOM, to: middle + long * ROOM };
  if (ts < to - span * 0.02 && end > from + span * 0.02) return null;
  if (long > span) return { from: ts - span * 0.1, to: ts + span * 0.9 };
  return { from: middle - span / 2, to: middle + span / 2 };
}
