// SPDX-License-Identifier: MIT
// remote.ts: a Source that asks the server (src/server) and reads its tiles (src/server/wire.h).
//
// A server numbers its texts afresh in each generation. The page gives each text a permanent number, so that what was
// drawn of an older generation keeps its names until the newer one arrives, and a trace followed for hours does not
// need more and more numbers. Each response with tiles brings the texts of its items (wire.h).
import type {
  Details,
  EventRef,
  Flame,
  Kind,
  Range,
  Search,
  Source,
  SqlResult,
  Start,
  Status,
  Tables,
  Tile,
  Trace,
} from "./protocol";
import { readTiles, type Names } from "./wire";

// The server has a different generation than requested.
export class Outdated extends Error {
  constructor() {
    super("The trace has changed; loading the newer one.");
  }
}
// The server is gone, or belongs to someone else now.
export class Gone extends Error {}

async function request(path: string, init?: RequestInit): Promise<Response> {
  const response = await fetch(path, { ...init, credentials: "omit", redirect: "error" }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Gone("The server does not answer.");
  });
  if (response.ok) return response;
  if (response.status === 409) throw new Outdated();
  if (response.status === 403) throw new Gone("The server refuses this address: use the one that kymo view printed.");
  const body = (await response.json().catch(() => ({}))) as { error?: string };
  throw new Error(body.error ?? `The server answered with status ${response.status}.`);
}

async function json<T>(path: string, parameters: Record<string, string | number | undefined> = {}): Promise<T> {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) if (value !== undefined) query.set(key, String(value));
  const response = await request(query.size ? `${path}?${query}` : path);
  return (await response.json()) as T;
}

const whole = (ns: number): number => Math.round(ns);

export class RemoteSource implements Source {
  readonly can = { sql: true, live: true };
  private generation = 0;
  private counters = new Set<number>(); // tracks of this generation
  private readonly texts: (string | undefined)[] = [""]; // undefined: found by a search, but in no tile yet
  private readonly known = new Map<string, number>(); // of texts
  private numbers = new Map<number, number>(); // the server's numbers of this generation to the page's
  private readonly free: number[] = []; // numbers for reuse
  private readonly names: Names = {
    number: (name) => this.number(name),
    define: (name, text) => this.define(name, text),
  };
  private readonly events = new Map<string, Promise<Details>>();

  async trace(): Promise<Trace> {
    const trace = await json<Trace>("api/trace");
    if (trace.generation !== this.generation) this.renumber();
    this.generation = trace.generation;
    this.counters = new Set(trace.tracks.filter(({ kind }) => kind === "counter").map(({ id }) => id));
    this.events.clear();
    return trace;
  }

  // Numbers that never got a text become free.
  private renumber(): void {
    for (const own of this.numbers.values()) if (this.texts[own] === undefined) this.free.push(own);
    this.numbers = new Map();
  }

  private number(name: number): number {
    let own = this.numbers.get(name);
    if (own === undefined) {
      own = this.free.pop() ?? this.texts.push(undefined) - 1;
      this.numbers.set(name, own);
    }
    return own;
  }

  private define(name: number, text: string): void {
    const own = this.numbers.get(name) ?? this.known.get(text) ?? this.number(name);
    this.numbers.set(name, own);
    this.texts[own] = text;
    if (!this.known.has(text)) this.known.set(text, own);
  }

  async tiles(level: number, first: number, count: number, tracks: number[], signal?: AbortSignal): Promise<Tile[]> {
    const generation = this.generation;
    const query = `g=${generation}&level=${level}&first=${first}&count=${count}&tracks=${tracks.join(",")}`;
    const response = await request(`api/tiles?${query}`, { signal });
    const bytes = await response.arrayBuffer();
    if (generation !== this.generation) throw new Outdated();
    return readTiles(bytes, this.names, (track) => this.counters.has(track));
  }

  text(name: number): string {
    return this.texts[name] ?? "";
  }

  // Keeps the last ones: the timeline and the panel request the same.
  event(kind: Kind, id: number): Promise<Details> {
    const key = `${kind}:${id}`;
    let details = this.events.get(key);
    if (!details) {
      details = json<Details>("api/event", { g: this.generation, kind, id });
      this.events.set(key, details);
      details.catch(() => this.events.delete(key));
      if (this.events.size > 64) this.events.delete(this.events.keys().next().value ?? "");
    }
    return details;
  }

  async neighbour({ track, row, ts, id, forward }: Start): Promise<EventRef | null> {
    const at = forward ? Math.ceil(ts) : Math.floor(ts);
    const parameters = { g: this.generation, track, row, ts: at, id, forward: forward ? 1 : 0 };
    return (await json<{ event: EventRef | null }>("api/neighbour", parameters)).event;
  }

  range(from: number, to: number, tracks?: number[]): Promise<Range> {
    return json("api/range", { from: whole(from), to: whole(to), tracks: tracks?.join(",") });
  }

  flame(from: number, to: number, of: "slices" | "samples", tracks?: number[]): Promise<Flame> {
    return json("api/flame", { from: whole(from), to: whole(to), of, tracks: tracks?.join(",") });
  }

  async search(q: string, where?: { at: number } | { near: number; forward: boolean }): Promise<Search> {
    const parameters: Record<string, string | number> = { q };
    if (where && "at" in where) parameters.at = where.at;
    if (where && "near" in where) {
      parameters.near = whole(where.near);
      parameters.forward = where.forward ? 1 : 0;
    }
    const found = await json<Search>("api/search", parameters);
    return { ...found, names: found.names.map((name) => this.number(name)) };
  }

  async sql(text: string, limit?: number): Promise<SqlResult> {
    const path = limit === undefined ? "api/sql" : `api/sql?limit=${limit}`;
    return (await (await request(path, { method: "POST", body: text })).json()) as SqlResult;
  }

  async cancel(): Promise<void> {
    await request("api/cancel", { method: "POST", body: "" });
  }

  tables(): Promise<Tables> {
    return json("api/tables");
  }

  status(generation: number): Promise<Status> {
    return json("api/status", { g: generation });
  }
}
