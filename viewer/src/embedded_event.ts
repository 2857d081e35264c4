// SPDX-License-Identifier: MIT
// embedded_event.ts: the details of one event of an exported trace, as src/server/api_event.c and api_slice.c
// write them.
import { argsOf, sourceOf } from "./embedded_args";
import { firstAt, indexOf, INSTANT, NONE, NOT_KNOWN_WHEN } from "./embedded_tables";
import type { EventKind, Index, Tables } from "./embedded_tables";
import { changeText, processLabel, realText, stateText, threadLabel, wallText } from "./embedded_text";
import type { Details, EventRef, Kind } from "./protocol";

const CHILDREN_SHOWN = 200;
const PARENTS_SHOWN = 500;
const FLOWS_SHOWN = 200;
const FRAMES_SHOWN = 1024;

type Fact = Details["facts"][number];

interface Basics {
  ts: number;
  dur: number;
  name: string;
  thread: number;
  process: number;
  track: number;
  row: number;
}

// Only slices have these.
type Children = Pick<Details, "self" | "childrenCount" | "children">;
type Relatives = Children & Pick<Details, "parents" | "args" | "source" | "flowsIn" | "flowsOut">;

const ALONE: Relatives = {
  self: null,
  source: null,
  childrenCount: 0,
  args: [],
  parents: [],
  children: [],
  flowsIn: [],
  flowsOut: [],
};

export class Events {
  private readonly flowsOut: Index;
  private readonly flowsIn: Index;
  private readonly countersOf: Index; // by track of the trace
  private readonly statesOf: Index; // by thread

  constructor(private readonly t: Tables) {
    this.flowsOut = indexOf(t.flows.out, t.slices.count);
    this.flowsIn = indexOf(t.flows.in, t.slices.count);
    this.countersOf = indexOf(t.counters.track, t.tracks.view.length);
    this.statesOf = indexOf(t.states.thread, t.threads.tid.length);
  }

  private count(kind: Kind): number {
    const { slices, counters: counter, sched, states: state, sampleSpans: samples, losses: loss } = this.t;
    const tables = { group: { count: 0 }, slices, counter, sched, state, samples, loss };
    return Object.hasOwn(tables, kind) ? tables[kind].count : 0;
  }

  ref(kind: EventKind, id: number): EventRef {
    const { name, ts, dur, track, row } = this.basics(kind, id);
    return { kind, id, name, ts, dur, track, row };
  }

  details(kind: Kind, id: number): Details {
    if (kind === "group" || !Number.isInteger(id) || id < 0 || id >= this.count(kind))
      throw new Error(`no event ${id} of kind ${kind} in this trace`);
    const { t } = this;
    const of = this.basics(kind, id);
    const absolute = t.base + BigInt(Math.round(of.ts));
    return {
      ...this.ref(kind, id),
      category: kind === "slices" ? t.texts.get(t.slices.category[id]) : "",
      instant: kind === "slices" ? t.slices.kind[id] === INSTANT : kind === "loss",
      absolute: String(absolute),
      wall: wallText(t, absolute),
      process: processLabel(t, of.process),
      thread: threadLabel(t, of.thread),
      ...this.relatives(kind, id),
      stack: kind === "samples" ? this.stack(t.sampleSpans.callsite[id]) : [],
      facts: [...(of.dur < 0 ? [fact("end", "never ended in this trace")] : []), ...this.facts(kind, id)],
    };
  }

  // ---- all kinds ----

  private basics(kind: EventKind, id: number): Basics {
    switch (kind) {
      case "slices":
        return this.slice(id);
      case "counter":
        return this.counter(id);
      case "sched":
        return this.ofThread(this.t.sched, id, this.t.sched.thread[id], threadLabel(this.t, this.t.sched.thread[id]));
      case "state":
        return this.ofThread(this.t.states, id, this.t.states.thread[id], this.t.texts.name(this.t.states.state[id]));
      case "samples":
        return this.sample(id);
      case "loss":
        return this.loss(id);
    }
  }

  private slice(id: number): Basics {
    const { slices, tracks, texts } = this.t;
    const track = slices.track[id];
    return {
      ts: slices.ts[id],
      dur: slices.dur[id],
      name: texts.name(slices.name[id]),
      thread: tracks.thread[track],
      process: tracks.process[track],
      ...place(slices.view[id], slices.row[id]),
    };
  }

  // A value holds until the next one.
  private counter(id: number): Basics {
    const { counters, tracks, texts, trace } = this.t;
    const track = counters.track[id];
    const next = this.counterBeside(id, 1);
    return {
      ts: counters.ts[id],
      dur: (next === NONE ? trace.end : counters.ts[next]) - counters.ts[id],
      name: texts.name(tracks.name[track]),
      thread: tracks.thread[track],
      process: tracks.process[track],
      ...place(counters.view[id], 0),
    };
  }

  private counterBeside(id: number, step: number): number {
    const { begins, rows } = this.countersOf;
    const track = this.t.counters.track[id];
    const all = rows.subarray(begins[track], begins[track + 1]);
    return all[lowerBound(all, id) + step] ?? NONE;
  }

  private ofThread(
    spans: { ts: Float64Array; dur: Float64Array; view: Uint32Array },
    id: number,
    thread: number,
    name: string,
  ): Basics {
    const process = this.t.threads.process[thread] ?? NONE;
    return { ts: spans.ts[id], dur: spans.dur[id], name, thread, process, ...place(spans.view[id], 0) };
  }

  private sample(id: number): Basics {
    const { sampleSpans, frames, texts } = this.t;
    const name = texts.name(frames.name[sampleSpans.frame[id]] ?? 0);
    return { ...this.ofThread(sampleSpans, id, sampleSpans.thread[id], name), ...place(sampleSpans.view[id], sampleSpans.row[id]) };
  }

  private loss(id: number): Basics {
    const { losses, texts, trace } = this.t;
    const of = this.ofThread(losses, id, losses.thread[id], texts.name(losses.what[id]));
    return of.ts <= NOT_KNOWN_WHEN ? { ...of, ts: trace.begin } : of;
  }

  // ---- facts ----

  private facts(kind: EventKind, id: number): Fact[] {
    switch (kind) {
      case "sched":
        return this.schedFacts(id);
      case "state":
        return this.stateFacts(id);
      case "counter":
        return this.counterFacts(id);
      case "samples":
        return this.sampleFacts(id);
      case "loss":
        return this.lossFacts(id);
      default:
        return [];
    }
  }

  private schedFacts(id: number): Fact[] {
    const { sched, texts } = this.t;
    return [
      fact("CPU", String(sched.cpu[id])),
      fact("priority", String(sched.priority[id])),
      fact("then", stateText(texts.get(sched.endState[id]))),
      ...this.wakeup(sched.thread[id], sched.ts[id]),
    ];
  }

  // Returns what the thread waited for before it ran: the state that ends where this begins.
  private wakeup(thread: number, ts: number): Fact[] {
    const { states, texts, threads } = this.t;
    const { begins, rows } = this.statesOf;
    if (thread >= threads.tid.length) return [];
    const all = rows.subarray(begins[thread], begins[thread + 1]);
    const state = all[lowerBound(all, ts, (row) => states.ts[row]) - 1];
    const text = state === undefined ? "" : texts.get(states.state[state]);
    if (!text.startsWith("R") || text === "Running" || states.ts[state] + states.dur[state] !== ts) return [];
    const waited = fact("waited for the CPU", `${states.dur[state]} ns`);
    return states.waker[state] < threads.tid.length
      ? [waited, fact("woken by", threadLabel(this.t, states.waker[state]))]
      : [waited];
  }

  private stateFacts(id: number): Fact[] {
    const { states, texts, threads } = this.t;
    const facts = [fact("state", stateText(texts.get(states.state[id])))];
    if (states.cpu[id] !== NONE) facts.push(fact("CPU", String(states.cpu[id])));
    if (states.waker[id] < threads.tid.length) facts.push(fact("woken by", threadLabel(this.t, states.waker[id])));
    if (states.ioWait[id] >= 0) facts.push(fact("waiting for I/O", states.ioWait[id] ? "yes" : "no"));
    if (states.blockedFunction[id]) facts.push(fact("blocked in", texts.cut(states.blockedFunction[id], 400)));
    return facts;
  }

  private counterFacts(id: number): Fact[] {
    const { counters, tracks, texts } = this.t;
    const unit = texts.cut(tracks.unit[counters.track[id]], 100);
    const with_ = (text: string): string => (unit ? `${text} ${unit}` : text);
    const before = this.counterBeside(id, -1);
    const value = fact("value", with_(realText(counters.value[id])));
    if (before === NONE) return [value];
    return [value, fact("change", with_(changeText(counters.value[id] - counters.value[before])))];
  }

  private sampleFacts(id: number): Fact[] {
    const { sampleSpans, frames } = this.t;
    const address = frames.relPc[sampleSpans.frame[id]];
    const samples = fact("samples", String(sampleSpans.samples[id]));
    return address === undefined ? [samples] : [samples, fact("address", `0x${address.toString(16)}`)];
  }

  private lossFacts(id: number): Fact[] {
    const { losses } = this.t;
    const facts = [fact("events lost", losses.events[id] ? String(losses.events[id]) : "some, number unknown")];
    if (losses.cpu[id] !== NONE) facts.push(fact("CPU", String(losses.cpu[id])));
    if (losses.ts[id] <= NOT_KNOWN_WHEN) facts.push(fact("when", "unknown"));
    return facts;
  }

  private stack(site: number): Details["stack"] {
    const { callsites, frames, texts } = this.t;
    const stack: Details["stack"] = [];
    for (; site < callsites.parent.length && stack.length < FRAMES_SHOWN; site = callsites.parent[site]) {
      const frame = callsites.frame[site];
      if (!(frame < frames.name.length)) continue;
      stack.push({
        name: texts.name(frames.name[frame]),
        file: texts.get(frames.file[frame]),
        line: frames.line[frame],
        module: texts.get(frames.mappingName[frames.mapping[frame]] ?? 0),
      });
    }
    return stack;
  }

  // ---- relatives ----

  private relatives(kind: EventKind, id: number): Relatives {
    if (kind !== "slices") return ALONE;
    const { flows, slices } = this.t;
    const to = (flow: number, slice: number) => ({ name: this.flowName(flow), to: this.ref("slices", slice) });
    const from = (flow: number, slice: number) => ({ name: this.flowName(flow), from: this.ref("slices", slice) });
    return {
      ...this.children(id),
      parents: this.parents(id),
      args: argsOf(this.t, slices.args[id]),
      source: sourceOf(this.t, slices.args[id]),
      flowsIn: this.flows(this.flowsIn, id).map((flow) => from(flow, flows.out[flow])),
      flowsOut: this.flows(this.flowsOut, id).map((flow) => to(flow, flows.in[flow])),
    };
  }

  private flows(index: Index, id: number): number[] {
    return [...index.rows.subarray(index.begins[id], Math.min(index.begins[id] + FLOWS_SHOWN, index.begins[id + 1]))];
  }

  private flowName(flow: number): string {
    return this.t.texts.get(this.t.flows.name[flow]);
  }

  private endOf(slice: number): number {
    const { slices, trace } = this.t;
    return slices.dur[slice] < 0 ? trace.end : slices.ts[slice] + slices.dur[slice];
  }

  // Children begin within it, so they are among the rows after it up to its end.
  private children(id: number): Children {
    const { slices } = this.t;
    const end = this.endOf(id);
    const last = firstAt(slices.ts, end + 1);
    const children: EventRef[] = [];
    let childrenCount = 0;
    let busy = 0;
    for (let i = id + 1; i < last; i++) {
      if (slices.parent[i] !== id) continue;
      if (childrenCount++ < CHILDREN_SHOWN) children.push(this.ref("slices", i));
      if (slices.kind[i] !== INSTANT) busy += Math.max(0, Math.min(this.endOf(i), end) - slices.ts[i]);
    }
    const self = slices.kind[id] === INSTANT ? null : end - slices.ts[id] - busy;
    return { self, childrenCount, children };
  }

  private parents(id: number): EventRef[] {
    const { parent } = this.t.slices;
    const parents: EventRef[] = [];
    for (let up = parent[id]; up !== NONE && parents.length < PARENTS_SHOWN; up = parent[up])
      parents.push(this.ref("slices", up));
    return parents;
  }
}

const fact = (key: string, value: string): Fact => ({ key, value });

function place(track: number, row: number): { track: number; row: number } {
  return track === NONE ? { track: -1, row: 0 } : { track, row };
}

// Returns the first of ascending rows whose value is not below the given one.
function lowerBound(rows: Uint32Array, value: number, of: (row: number) => number = (row) => row): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (of(rows[middle]) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
