// SPDX-License-Identifier: MIT
// sql_result.ts: the rows of SQL as a table, and as CSV or JSON to save.
import { duration, time } from "../format";
import type { SqlResult } from "../protocol";
import { type Meaning, type Row } from "./sql_rows";
import { type Column, makeTable, type Table } from "./table";

const WIDTH_ROWS = 200; // sampled for the column widths
const LETTERS_MAX = 60;

function isNumeric(cell: Row[number]): boolean {
  return typeof cell === "number" || (typeof cell === "string" && /^-?\d+$/.test(cell));
}

function lettersOf(result: SqlResult, at: number): number {
  const lengths = result.rows.slice(0, WIDTH_ROWS).map((row) => String(row[at] ?? "NULL").length);
  return Math.min(LETTERS_MAX, Math.max(result.columns[at].length + 2, ...lengths));
}

function titleOf(name: string, cell: Row[number], meaning: Meaning, row: Row): string {
  const key = name.toLowerCase();
  if (key === "dur" && typeof cell === "number") return duration(cell);
  const { ts } = key === "ts" ? meaning.place(row) : { ts: null };
  return ts !== null ? time(ts) : String(cell ?? "NULL");
}

function columnOf(result: SqlResult, at: number, meaning: Meaning): Column<Row> {
  const name = result.columns[at];
  const cells = result.rows.slice(0, WIDTH_ROWS).map((row) => row[at]);
  const numeric = cells.some(isNumeric) && cells.every((cell) => cell === null || isNumeric(cell));
  return {
    key: name,
    label: name,
    numeric,
    width: `calc(${lettersOf(result, at)}ch + 20px)`,
    value: (row) => row[at],
    fill: (cell, row) => {
      cell.textContent = row[at] === null ? "NULL" : String(row[at]);
      cell.title = titleOf(name, row[at], meaning, row);
      if (row[at] === null) cell.classList.add("muted");
    },
  };
}

export function resultTable(result: SqlResult, meaning: Meaning, open: (row: Row) => void): Table<Row> {
  const columns = result.columns.map((_, at) => columnOf(result, at, meaning));
  // Columns may have the same name: the number keeps their sort keys apart.
  columns.forEach(
    (column, at) => (column.key = result.columns.indexOf(column.label) === at ? column.label : `${column.label} ${at}`),
  );
  const table = makeTable<Row>({ label: "SQL result", columns, open: meaning.placed ? open : undefined });
  table.node.classList.toggle("opens", meaning.placed);
  table.show(result.rows);
  return table;
}

function csvCell(cell: string | number | null): string {
  const text = String(cell ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function asCsv(columns: string[], rows: Row[]): string {
  return [columns, ...rows].map((cells) => cells.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

export function asJson(columns: string[], rows: Row[]): string {
  const objects = rows.map((row) => JSON.stringify(Object.fromEntries(columns.map((name, at) => [name, row[at]]))));
  return `[\n${objects.join(",\n")}\n]\n`;
}
