// SPDX-License-Identifier: MIT
// sql_rows.ts: what rows of SQL mean on the timeline. A column "ts" (with "dur") is a time of the trace's clock;
// "slice_id", or "id" if the rows come from a table that the timeline shows, is an event.
import type { Overlay } from "../app";
import type { Kind, SqlResult, Trace } from "../protocol";

export type Row = (string | number | null)[];

export interface Place {
  ts: number | null; // since the view's base
  dur: number;
  ref: { kind: Kind; id: number } | null;
}

export interface Meaning {
  placed: boolean; // rows lead somewhere
  timed: boolean; // rows can be drawn
  place(row: Row): Place;
  name(row: Row): string;
}

const TABLES: Record<string, Kind> = {
  slice: "slices",
  slices: "slices",
  thread_slice: "slices",
  process_slice: "slices",
  thread_or_process_slice: "slices",
  ancestor_slice: "slices",
  descendant_slice: "slices",
  sched: "sched",
  sched_slice: "sched",
  thread_state: "state",
  counter: "counter",
  counters: "counter",
};

// The table of the outermost SELECT is the last one that is not part of an inner one.
function kindOf(sql: string): Kind | null {
  const plain = sql.replace(/--[^\n]*|\/\*[^]*?\*\/|'(?:[^']|'')*'/g, " ");
  let outer = plain;
  for (let before = ""; before !== outer;) {
    before = outer;
    outer = outer.replace(/\([^()]*\)/g, " ");
  }
  const last = [...outer.matchAll(/\bfrom\s+"?(\w+)/gi)].pop();
  return last ? (TABLES[last[1].toLowerCase()] ?? null) : null;
}

// Subtracts digits as integers: a clock's nanoseconds may exceed what a number holds.
export function sinceBase(ts: string | number, base: string): number | null {
  const number = Number(ts);
  if (ts === "" || !Number.isFinite(number)) return null;
  const whole = typeof ts === "string" ? /^-?\d+$/.test(ts) : Number.isSafeInteger(ts);
  return whole ? Number(BigInt(ts) - BigInt(base)) : number - Number(base);
}

export function meaningOf(result: SqlResult, sql: string, trace: Trace): Meaning {
  const names = result.columns.map((name) => name.toLowerCase());
  const [ts, dur, name, sliceId, id] = ["ts", "dur", "name", "slice_id", "id"].map((key) => names.indexOf(key));
  const kind = sliceId >= 0 ? "slices" : id >= 0 ? kindOf(sql) : null;
  const idAt = sliceId >= 0 ? sliceId : id;
  const text =
    name >= 0 ? name : (result.rows[0]?.findIndex((cell) => typeof cell === "string" && !/^-?\d+$/.test(cell)) ?? -1);

  function place(row: Row): Place {
    const at = ts >= 0 ? row[ts] : null;
    const number = kind !== null ? row[idAt] : null;
    return {
      ts: at === null ? null : sinceBase(at, trace.base),
      dur: dur >= 0 ? Number(row[dur] ?? 0) || 0 : 0,
      ref: kind !== null && typeof number === "number" && number >= 0 ? { kind, id: number } : null,
    };
  }
  return {
    placed: ts >= 0 || kind !== null,
    timed: ts >= 0,
    place,
    name: (row) => String((text >= 0 ? row[text] : null) ?? ""),
  };
}

export function overlayOf(rows: Row[], meaning: Meaning, sql: string): Overlay {
  const title = sql.replace(/\s+/g, " ").trim();
  const overlay: Overlay = { name: `SQL: ${title.length > 60 ? `${title.slice(0, 60)}…` : title}`, rows: [] };
  for (const row of rows) {
    const { ts, dur, ref } = meaning.place(row);
    if (ts !== null) overlay.rows.push({ ts, dur: Math.max(dur, 0), name: meaning.name(row), ref });
  }
  return overlay;
}
