// SPDX-License-Identifier: MIT
// sql_text.ts: what the SQL page knows of texts: examples to begin with, the ones that were run before, and which words
// the one at the cursor may become.
import type { Tables } from "../protocol";

const HISTORY_KEY = "kymo.sql.history";
const HISTORY_MAX = 50;

export const EXAMPLES: [string, string][] = [
  ["The longest slices", "SELECT id, ts, dur, name\nFROM slice\nORDER BY dur DESC\nLIMIT 100"],
  [
    "Names by their time",
    "SELECT name, count(*) AS count, sum(dur) AS total, max(dur) AS longest\n" +
      "FROM slice\nGROUP BY name\nORDER BY total DESC",
  ],
  [
    "Slices with an argument",
    "SELECT s.id, s.ts, s.dur, s.name, a.key, a.display_value\n" +
      "FROM slice s JOIN args a USING (arg_set_id)\nORDER BY s.ts",
  ],
  [
    "Flows by how long they took",
    "SELECT o.name AS name, i.name AS into_name, f.slice_out AS slice_id,\n" +
      "  o.ts + o.dur AS ts, i.ts - o.ts - o.dur AS dur\n" +
      "FROM flow f JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in\nORDER BY dur DESC",
  ],
  [
    "Threads and how much is in them",
    "SELECT process.name AS process, pid, thread.name AS thread, tid, count(slice.id) AS slices\n" +
      "FROM thread LEFT JOIN process USING (upid)\n  LEFT JOIN thread_track USING (utid)\n" +
      "  LEFT JOIN slice ON slice.track_id = thread_track.id\nGROUP BY utid\nORDER BY slices DESC",
  ],
  ["Values of counters", "SELECT ts, name, value\nFROM counters\nORDER BY ts"],
  ["Where events were lost", "SELECT ts, events, what\nFROM loss\nORDER BY ts"],
  ["What was wrong with the input", "SELECT *\nFROM problem"],
];

// What a browser refuses to keep is not kept.
export function readHistory(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(HISTORY_KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((text): text is string => typeof text === "string") : [];
  } catch {
    return [];
  }
}

export function remember(text: string): void {
  const kept = [text, ...readHistory().filter((each) => each !== text)].slice(0, HISTORY_MAX);
  try {
    localStorage.setItem(HISTORY_KEY, JSON.stringify(kept));
  } catch {
    // A full or forbidden store costs the history and nothing else.
  }
}

const KEYWORDS =
  "SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN LEFT USING HAVING DISTINCT COUNT SUM AVG MIN MAX BETWEEN LIKE " +
  "GLOB REGEXP CASE WHEN THEN ELSE END WITH UNION ALL DESC IS NULL NOT EXTRACT_ARG PERCENTILE MEDIAN FORMAT_DURATION";

export function wordBefore(text: string, at: number): string {
  return /[A-Za-z_]\w*$/.exec(text.slice(0, at))?.[0] ?? "";
}

// Tables of the text first, as their columns are most likely meant; then all else.
export function completions(tables: Tables["tables"], text: string, at: number): string[] {
  const word = wordBefore(text, at).toLowerCase();
  if (word.length < 2) return [];
  const used = tables.filter((table) => text.toLowerCase().includes(table.name.toLowerCase()));
  const words = [
    ...used.flatMap((table) => table.columns),
    ...tables.map((table) => table.name),
    ...KEYWORDS.split(" "),
    ...tables.flatMap((table) => table.columns),
  ];
  const fitting = words.filter((each) => each.toLowerCase().startsWith(word) && each.length > word.length);
  return [...new Set(fitting)].slice(0, 8);
}

// The place that an error names, as a position in the text; -1: it names none.
export function errorPlace(text: string, error: string): number {
  const match = /line (\d+),? column (\d+)/i.exec(error);
  if (!match) return -1;
  const lines = text.split("\n");
  const line = Math.min(Number(match[1]), lines.length);
  const before = lines.slice(0, line - 1).reduce((all, each) => all + each.length + 1, 0);
  return Math.min(before + Number(match[2]) - 1, text.length);
}
