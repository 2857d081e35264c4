// SPDX-License-Identifier: MIT
// embedded_cut.ts: the trace when only a part of its time was exported: counts its events again and drops the tracks
// left empty, so that the remaining tracks have new numbers.
import { INSTANT, NONE, type Spans } from "./embedded_tables";
import type { Trace, Track } from "./protocol";

interface Part {
  from: number | null;
  to: number | null;
}

interface Counted {
  slices: Spans & { kind: Uint8Array; listed: Uint32Array };
  counters: Spans & { value: Float64Array };
  sched: Spans;
  states: Spans;
  sampleSpans: Spans;
  losses: Spans;
  samples: { count: number };
  tracks: { view: Uint32Array };
  flows: { out: Uint32Array };
  first: number;
}

const drawn = (t: Counted): Spans[] => [t.slices, t.counters, t.sched, t.states, t.sampleSpans, t.losses];

// Returns the number that a slice of the whole trace has here, or NONE.
function sliceHere({ slices: { listed, count }, first }: Counted, row: number): number {
  if (row < first) return listed.indexOf(row) >>> 0; // -1 is NONE then
  return row - first + listed.length < count ? row - first + listed.length : NONE;
}

function countsOf(counts: Record<string, number>, t: Counted): Record<string, number> {
  let instants = 0;
  for (const kind of t.slices.kind) if (kind === INSTANT) instants++;
  const here: Record<string, number> = {
    slices: t.slices.count - instants,
    instants,
    counters: t.counters.count,
    flows: t.flows.out.length,
    samples: t.samples.count,
    sched: t.sched.count,
  };
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, here[name] ?? count]));
}

function eventsOf(tracks: number, t: Counted): Float64Array {
  const events = new Float64Array(tracks);
  for (const table of drawn(t)) for (const view of table.view) if (view < tracks) events[view]++;
  return events;
}

// Returns each track's new number, or NONE: tracks with events and the groups that contain them stay.
function numbersOf(tracks: Track[], events: Float64Array): Uint32Array {
  const stays = new Uint8Array(tracks.length);
  for (let id = tracks.length - 1; id >= 0; id--) {
    if (tracks[id].kind !== "group" && events[id]) stays[id] = 1;
    if (stays[id] && tracks[id].parent >= 0) stays[tracks[id].parent] = 1;
  }
  let next = 0;
  return Uint32Array.from(stays, (stay) => (stay ? next++ : NONE));
}

// Returns the minimum and maximum of each counter.
function extremesOf(tracks: number, { counters }: Counted): { min: Float64Array; max: Float64Array } {
  const min = new Float64Array(tracks).fill(Infinity);
  const max = new Float64Array(tracks).fill(-Infinity);
  for (let i = 0; i < counters.count; i++) {
    const view = counters.view[i];
    if (counters.value[i] < min[view]) min[view] = counters.value[i];
    if (counters.value[i] > max[view]) max[view] = counters.value[i];
  }
  return { min, max };
}

function cutTracks(tracks: Track[], numbers: Uint32Array, events: Float64Array, t: Counted): Track[] {
  const { min, max } = extremesOf(tracks.length, t);
  const range = (id: number) => (min[id] <= max[id] ? { min: min[id], max: max[id] } : {});
  return tracks
    .filter((track) => numbers[track.id] !== NONE)
    .map((track) => ({
      ...track,
      id: numbers[track.id],
      parent: track.parent < 0 ? -1 : numbers[track.parent],
      events: track.kind === "group" ? track.events : events[track.id],
      ...(track.kind === "counter" ? range(track.id) : {}),
    }));
}

// Also renumbers the tracks of the events.
export function cutTrace(trace: Trace, part: Part, t: Counted): Trace {
  const events = eventsOf(trace.tracks.length, t);
  const numbers = numbersOf(trace.tracks, events);
  const tracks = cutTracks(trace.tracks, numbers, events, t);
  for (const view of [t.tracks.view, ...drawn(t).map((table) => table.view)])
    for (let i = 0; i < view.length; i++) view[i] = numbers[view[i]] ?? NONE;
  const begin = Math.max(trace.begin, part.from ?? trace.begin);
  const isIn = (ts: number): boolean => ts >= (part.from ?? -Infinity) && ts < (part.to ?? Infinity);
  const trackHere = (track: number): number => (track < 0 || numbers[track] === NONE ? -1 : numbers[track]);
  return {
    ...trace,
    begin,
    end: Math.max(begin, Math.min(trace.end, part.to ?? trace.end)),
    counts: countsOf(trace.counts, t),
    tracks,
    snapshots: trace.snapshots
      .filter(({ ts }) => isIn(ts))
      .map((snapshot) => ({ ...snapshot, event: sliceHere(t, snapshot.event) })),
    losses: trace.losses
      .filter(({ ts }) => ts === null || isIn(ts))
      .map((loss) => ({ ...loss, track: trackHere(loss.track) })),
  };
}
