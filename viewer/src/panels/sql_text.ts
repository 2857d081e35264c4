// SPDX-License-Identifier: MIT
// sql_text.ts: texts of the SQL page: examples, the history, and the completions of the word at the cursor.
import type { Tables } from "../protocol";

const HISTORY_KEY = "kymo.sql.history";
const HISTORY_MAX = 50;

export const EXAMPLES: [string, string][] = [
  ["Longest slices", "SELECT id, ts, dur, name\nFROM slice\nORDER BY dur DESC\nLIMIT 100"],
  [
    "Time by name",
    "SELECT name, count(*) AS count, sum(dur) AS total, max(dur) AS longest\n" +
      "FROM slice\nGROUP BY name\nORDER BY total DESC",
  ],
  [
    "Slices with an argument",
    "SELECT s.id, s.ts, s.dur, s.name, a.key, a.display_value\n" +
      "FROM slice s JOIN args a USING (arg_set_id)\nORDER BY s.ts",
  ],
  [
    "Flows by duration",
    "SELECT o.name AS name, i.name AS into_name, f.slice_out AS slice_id,\n" +
      "  o.ts + o.dur AS ts, i.ts - o.ts - o.dur AS dur\n" +
      "FROM flow f JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in\nORDER BY dur DESC",
  ],
  [
    "Threads and their slices",
    "SELECT process.name AS process, pid, thread.name AS thread, tid, count(slice.id) AS slices\n" +
      "FROM thread LEFT JOIN process USING (upid)\n  LEFT JOIN thread_track USING (utid)\n" +
      "  LEFT JOIN slice ON slice.track_id = thread_track.id\nGROUP BY utid\nORDER BY slices DESC",
  ],
  ["Counter values", "SELECT ts, name, value\nFROM counters\nORDER BY ts"],
  ["Lost events", "SELECT ts, events, what\nFROM loss\nORDER BY ts"],
  ["Problems in the input", "SELECT *\nFROM problem"],
];

// What the browser refuses to store is dropped.
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
    // A full or forbidden store only costs the history.
  }
}

const KEYWORDS =
  "SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN LEFT USING HAVING DISTINCT COUNT SUM AVG MIN MAX BETWEEN LIKE " +
  "GLOB REGEXP CASE WHEN THEN ELSE END WITH UNION ALL DESC IS NULL NOT EXTRACT_ARG PERCENTILE MEDIAN FORMAT_DURATION";

export function wordBefore(text: string, at: number): string {
  return /[A-Za-z_]\w*$/.exec(text.slice(0, at))?.[0] ?? "";
}

// Columns of the tables in the text come first, as the likeliest; then everything else.
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

// Returns the position in the text that an error names; -1 if none.
export function errorPlace(text: string, error: string): number {
  const match = /line (\d+),? column (\d+)/i.exec(error);
  if (!match) return -1;
  const lines = text.split("\n");
  const line = Math.min(Number(match[1]), lines.length);
  const before = lines.slice(0, line - 1).reduce((all, each) => all + each.length + 1, 0);
  return Math.min(before + Number(match[2]) - 1, text.length);
}
