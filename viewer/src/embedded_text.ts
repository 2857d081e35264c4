// SPDX-License-Identifier: MIT
// embedded_text.ts: numbers and names of an exported trace as texts, worded as by the server (src/server/api.c,
// api_event.c).
import { type Tables } from "./embedded_tables";

const LABEL_BYTES = 128; // of a name

function label(t: Tables, name: number, kind: string, id: number): string {
  return `${t.texts.cut(name, LABEL_BYTES) || kind} ${id}`;
}

export function threadLabel(t: Tables, thread: number): string {
  return thread < t.threads.tid.length ? label(t, t.threads.name[thread], "thread", t.threads.tid[thread]) : "";
}

export function processLabel(t: Tables, process: number): string {
  return process < t.processes.pid.length
    ? label(t, t.processes.name[process], "process", t.processes.pid[process])
    : "";
}

// Formats as C's %.*g.
function general(value: number, digits: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const exponent = Number(power);
  const short = (text: string): string => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  const sign = Object.is(value, -0) ? "-" : "";
  if (exponent >= -4 && exponent < digits) return sign + short(value.toFixed(Math.max(0, digits - 1 - exponent)));
  const size = String(Math.abs(exponent)).padStart(2, "0");
  return `${short(mantissa)}e${exponent < 0 ? "-" : "+"}${size}`;
}

// Returns the shortest text that parses to the same number.
export function realText(value: number): string {
  for (const digits of [15, 16]) {
    const text = general(value, digits);
    if (Number(text) === value) return text;
  }
  return general(value, 17);
}

export function changeText(value: number): string {
  return (value > 0 ? "+" : "") + realText(value);
}

// "2026-11-15T18:21:23.517965760Z", or null if unknown
export function wallText(t: Tables, ns: bigint): string | null {
  if (!t.wall.length) return null;
  let step = t.wall[0];
  for (const next of t.wall) if (next.from <= ns) step = next;
  const wall = ns + step.offset;
  const rest = ((wall % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  const seconds = (wall - rest) / 1_000_000_000n;
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, -5);
  return `${whole}.${String(rest).padStart(9, "0")}Z`;
}

const STATES: Record<string, string> = {
  Running: "running",
  R: "runnable: waiting for a CPU",
  "R+": "runnable: preempted",
  S: "sleeping",
  D: "sleeping, uninterruptible",
  T: "stopped",
  t: "stopped by a debugger",
  X: "dead",
  Z: "zombie",
  P: "parked",
  I: "idle",
  x: "dead",
};

// Describes the kernel's state letters.
export function stateText(state: string): string {
  if (!state) return "unknown";
  return Object.hasOwn(STATES, state) ? `${STATES[state]} (${state})` : state;
}
