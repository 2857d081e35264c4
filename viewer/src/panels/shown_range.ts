// SPDX-License-Identifier: MIT
// shown_range.ts: the part of the trace that the range table and the flame graph cover: the selected range, or the visible
// time, on the tracks that are neither hidden nor filtered out; and the way from a name in them to the timeline.
import type { App } from "../app";
import { duration, time } from "../format";

const TRACKS_MOST = 2500; // what a URL can carry

export interface ShownRange {
  from: number;
  to: number;
  selected: boolean;
}

export function shownRange(app: App): ShownRange {
  const { range, from, to } = app.state;
  return range ? { ...range, selected: true } : { from, to, selected: false };
}

const isCut = (app: App): boolean => app.state.hidden.length > 0 || app.state.filter.trim() !== "";

// Returns undefined for all tracks: a list of thousands costs more than it says. A list too long for a URL is dropped,
// and shownRangeText() says so.
export function tracksOf(app: App, kind: "slices" | "samples"): number[] | undefined {
  if (!isCut(app)) return undefined;
  const tracks = app.tracks.filter((track) => app.trace.tracks[track]?.kind === kind);
  return tracks.length > TRACKS_MOST ? undefined : tracks;
}

export function shownRangeText(app: App, shown: ShownRange): string {
  const what = shown.selected ? "Selected range" : "Visible time (no range selected)";
  const [from, to] = [shown.from, shown.to].map((ns) => time(ns - app.trace.begin));
  const all = isCut(app) && tracksOf(app, "slices") === undefined ? ", with hidden tracks" : "";
  return `${what}: ${from} to ${to}, ${duration(shown.to - shown.from)}${all}`;
}

// Selects the first match within the range; the search box takes over the text and continues from there.
export async function searchName(app: App, name: string): Promise<void> {
  const q = `name=${name}`;
  const { from, to } = shownRange(app);
  const { tab } = app.state;
  app.set({ search: q });
  // The search box shows the error.
  const found = await app.source.search(q, { near: from - 1, forward: true }).catch(() => null);
  if (app.state.search !== q || !found?.event || found.event.ts > to) return;
  await app.select(found.event, "reveal");
  app.set({ tab }); // the next name is one click away
}
