// SPDX-License-Identifier: MIT
// embedded_args.ts: arguments of slices of an exported trace, as src/server/api_slice.c shows them.
import type { Tables } from "./embedded_tables";
import { realText } from "./embedded_text";
import type { Arg, Details } from "./protocol";

const ARGS_SHOWN = 2000;
const ARG_BYTES = 65536;

// Matches enum ky_arg_type of src/model/trace.h.
const TYPES: Arg["type"][] = ["null", "int", "int", "real", "bool", "pointer", "string", "json"];
const INT = 1;
const UINT = 2;
const REAL = 3;
const BOOL = 4;
const POINTER = 5;
const STRING = 6;
const JSON_TEXT = 7;

// The keys that formats use for a source location.
const SOURCES = [
  ["source.file_name", "source.line_number", "source.function_name"],
  ["source_location.file_name", "source_location.line_number", "source_location.function_name"],
  ["task.posted_from.file_name", "task.posted_from.line_number", "task.posted_from.function_name"],
  ["src_file", "src_line", "src_func"],
];

function* rowsOf(t: Tables, set: number): Generator<number> {
  const end = Math.min(t.args.begins[set + 1] ?? 0, t.args.key.length);
  for (let i = t.args.begins[set] ?? 0; i < end; i++) yield i;
}

// Drops the prefix that only names the kind of file.
export function plainKey(key: string): string {
  return key.replace(/^(args|debug)\.(?=[^])/, "");
}

const isSource = (key: string): boolean => key.startsWith("source.") || key.startsWith("source_location.");

function realOf(value: bigint): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, value, true); // reverses its bytes
  return view.getFloat64(0, false);
}

const signed = (value: bigint): bigint => BigInt.asIntN(64, value & 1n ? ~(value >> 1n) : value >> 1n);

// Returns the string number of a value, or 0.
export function argString(t: Tables, arg: number): number {
  const type = t.args.type[arg];
  return type === STRING || type === JSON_TEXT ? Number(t.args.value[arg]) : 0;
}

export function argText(t: Tables, arg: number, bytes = ARG_BYTES): string {
  const value = t.args.value[arg];
  switch (t.args.type[arg]) {
    case INT:
      return String(signed(value));
    case UINT:
      return String(value);
    case REAL:
      return realText(realOf(value));
    case BOOL:
      return value ? "true" : "false";
    case POINTER:
      return `0x${value.toString(16)}`;
    case STRING:
    case JSON_TEXT:
      return t.texts.cut(Number(value), bytes);
    default:
      return "null";
  }
}

export function argsOf(t: Tables, set: number): Arg[] {
  const args: Arg[] = [];
  for (const arg of rowsOf(t, set)) {
    const key = plainKey(t.texts.get(t.args.key[arg]));
    if (isSource(key)) continue;
    if (args.length === ARGS_SHOWN) break;
    args.push({ key, type: TYPES[t.args.type[arg]] ?? "null", value: argText(t, arg) });
  }
  return args;
}

function lineOf(t: Tables, arg: number | undefined): number {
  if (arg === undefined || t.args.type[arg] > UINT) return 0;
  const value = t.args.type[arg] === INT ? signed(t.args.value[arg]) : t.args.value[arg];
  return Number(BigInt.asUintN(32, value));
}

export function sourceOf(t: Tables, set: number): Details["source"] {
  const found = new Map<string, number>();
  for (const arg of rowsOf(t, set)) {
    const key = plainKey(t.texts.get(t.args.key[arg]));
    if (!found.has(key)) found.set(key, arg);
  }
  const text = (arg: number | undefined): string => (arg === undefined ? "" : argText(t, arg, 4096));
  for (const [file, line, name] of SOURCES) {
    if (!found.has(file) && !found.has(name)) continue;
    return { file: text(found.get(file)), line: lineOf(t, found.get(line)), function: text(found.get(name)) };
  }
  return null;
}
