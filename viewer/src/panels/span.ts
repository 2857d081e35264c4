// SPDX-License-Identifier: MIT
// span.ts: what of the trace the range's table and the flame graph are of: the selected range, or what is shown, on the
// tracks that are not hidden; and the way from a name in them to the timeline.
import type { App } from "../app";
import { duration, time } from "../format";

const TRACKS_MOST = 2500; // what an address can carry

export interface Span {
  from: number;
  to: number;
  selected: boolean;
}

export function spanOf(app: App): Span {
  const { range, from, to } = app.state;
  return range ? { ...range, selected: true } : { from, to, selected: false };
}

// Undefined: all of them. Nobody is asked to leave out what is not hidden, as a list of thousands costs more than it
// tells; a longer one than can be asked for is not asked for, and spanText() says so.
export function tracksOf(app: App, kind: "slices" | "samples"): number[] | undefined {
  if (app.state.hidden.length === 0) return undefined;
  const tracks = app.tracks.filter((track) => app.trace.tracks[track]?.kind === kind);
  return tracks.length > TRACKS_MOST ? undefined : tracks;
}

export function spanText(app: App, span: Span): string {
  const what = span.selected ? "Selected range" : "What is shown (no range is selected)";
  const [from, to] = [span.from, span.to].map((ns) => time(ns - app.trace.begin));
  const all = app.state.hidden.length > 0 && tracksOf(app, "slices") === undefined ? ", with hidden tracks" : "";
  return `${what}: ${from} to ${to}, ${duration(span.to - span.from)}${all}`;
}

// The first match within the span is selected; the search box sees the text and goes on from there.
export async function searchName(app: App, name: string): Promise<void> {
  const q = `name:${name}`;
  const { from, to } = spanOf(app);
  const { tab } = app.state;
  app.set({ search: q });
  const found = await app.source.search(q, { near: from - 1, forward: true }).catch(() => null); // the box says why
  if (app.state.search !== q || !found?.event || found.event.ts > to) return;
  await app.select(found.event, "reveal");
  app.set({ tab }); // the next name is a click away
}
