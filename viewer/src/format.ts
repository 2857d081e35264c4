// SPDX-License-Identifier: MIT
// format.ts: times and counts for display, the same in every part of the page.

const UNITS: [number, string][] = [
  [3600e9, "h"],
  [60e9, "min"],
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

function threeDigits(value: number): string {
  if (value >= 100) return value.toFixed(0);
  return value.toFixed(value >= 10 ? 1 : 2);
}

// Three digits and a unit: "1.23 ms".
export function duration(ns: number): string {
  if (ns < 0) return "-" + duration(-ns);
  if (ns < 1000) return `${Math.round(ns)} ns`;
  for (const [size, unit] of UNITS) {
    // 999.7 µs is 1.00 ms: the rounded value decides the unit.
    if (ns >= size * 0.9995) return `${threeDigits(ns / size)} ${unit}`;
  }
  return "0 ns";
}

// A point in time to the nanosecond, in groups of three: "12.345 678 901 s".
export function time(ns: number): string {
  if (ns < 0) return "-" + time(-ns);
  const rounded = Math.round(ns);
  const whole = Math.floor(rounded / 1e9);
  const digits = String(rounded - whole * 1e9).padStart(9, "0");
  return `${whole}.${digits.replace(/(\d{3})(?=\d)/g, "$1\u202f")} s`;
}

// toLocaleString() would create one of these on each call, which is slow.
const numbers = new Intl.NumberFormat("en-US", { maximumFractionDigits: 3 });

export function count(n: number): string {
  return numbers.format(n);
}

// A counter value: "12.3 k", with its unit.
export function value(n: number, unit = ""): string {
  const size = Math.abs(n);
  const steps: [number, string][] = [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ];
  const step = steps.find(([least]) => size >= least);
  const scale = step ? (step[1] === "k" ? 1e3 : step[0]) : 1;
  const text = Number.isInteger(n / scale) ? String(n / scale) : trim(n / scale);
  return `${text}${step ? `\u202f${step[1]}` : ""}${unit ? ` ${unit}` : ""}`;
}

const trim = (n: number): string => (Math.abs(n) < 1e-3 ? n.toPrecision(3) : String(Number(n.toPrecision(4))));

// A percentage with three digits: "45.6 %", "0.12 %".
export function percent(part: number, whole: number): string {
  if (whole <= 0 || part === 0) return "0 %";
  const value = (100 * part) / whole;
  return `${value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)} %`;
}
