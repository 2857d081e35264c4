// SPDX-License-Identifier: MIT
// share.ts: a part of a whole, for people.

// Three digits: "45.6 %", "0.12 %".
export function percent(part: number, whole: number): string {
  if (whole <= 0 || part === 0) return "0 %";
  const value = (100 * part) / whole;
  return `${value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)} %`;
}
