// SPDX-License-Identifier: MIT
// ruler.ts: the time axis above the tracks: ticks at round times, flags for the marks with the time between them, the
// selected range with its length.
import { duration } from "../format";
import type { Axis } from "./axis";
import type { Scene } from "./scene";

const APART = 110; // CSS pixels between labels, at least
const TICKS_MOST = 500;

const units: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

// Returns 1, 2 or 5 times a power of ten, at least this long.
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5, 10].find((times) => times * power >= least * 0.999999) ?? 10);
}

function stepOf(axis: Axis, dpr: number): number {
  return Math.max(1, roundStep(APART * dpr * axis.nsPerPx));
}

// Returns the visible round times, as multiples of the step, and one left of them. Their number is bounded.
export function ticksOf(axis: Axis, dpr: number): { step: number; ticks: number[] } {
  const step = stepOf(axis, dpr);
  const first = Math.floor(axis.time(0) / step) - 1;
  const length = Math.min(TICKS_MOST, Math.max(0, Math.floor(axis.time(axis.width) / step) - first + 1));
  return { step, ticks: Array.from({ length: length || 0 }, (_, i) => first + i) };
}

function label(ns: number, step: number, last: number): string {
  const [size, unit] = units.find(([least]) => Math.abs(last) >= least) ?? units[3];
  const digits = Math.max(0, Math.ceil(Math.log10(size) - Math.log10(step) - 1e-9));
  const [whole, part] = (ns / size).toFixed(Math.min(9, digits)).split(".");
  const grouped = part ? `.${part.replace(/(\d{3})(?=\d)/g, "$1\u202f")}` : "";
  return `${whole.replace("-", "−")}${grouped} ${unit}`;
}

export interface RulerState {
  range: { from: number; to: number } | null;
  marks: readonly number[];
  pointer: number | null; // ns
}

// A label on the ruler other than a tick's.
interface Tag {
  text: string;
  left: number;
  width: number;
  colour: string;
}

export function drawRuler(ctx: CanvasRenderingContext2D, scene: Scene, axis: Axis, state: RulerState): void {
  const { dpr, palette } = scene;
  const height = ctx.canvas.height;
  ctx.clearRect(0, 0, axis.width, height);
  ctx.font = scene.font();
  ctx.textBaseline = "middle";
  const tags = [...rangeTag(ctx, scene, axis, state.range), ...markTags(ctx, scene, axis, state.marks)];
  if (state.range) drawRange(ctx, scene, axis, state.range, height);
  drawTicks(ctx, scene, axis, height, tags);
  drawMarks(ctx, scene, axis, state.marks, height);
  for (const { text, left, colour } of tags) {
    ctx.fillStyle = colour;
    ctx.fillText(text, left + 4 * dpr, 10 * dpr);
  }
  if (state.pointer !== null) {
    ctx.fillStyle = palette.accent;
    ctx.fillRect(Math.round(axis.x(state.pointer)), height - 8 * dpr, Math.ceil(dpr), 8 * dpr);
  }
}

// Centres a tag between two positions, as far as they are visible.
function tagBetween(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  axis: Axis,
  text: string,
  x0: number,
  x1: number,
  colour: string,
): Tag {
  const width = ctx.measureText(text).width + 8 * scene.dpr;
  const middle = (Math.max(0, x0) + Math.min(axis.width, x1)) / 2;
  return { text, left: Math.round(middle - width / 2), width, colour };
}

function rangeTag(ctx: CanvasRenderingContext2D, scene: Scene, axis: Axis, range: RulerState["range"]): Tag[] {
  if (!range || axis.x(range.to) < 0 || axis.x(range.from) > axis.width) return [];
  const text = duration(range.to - range.from);
  return [tagBetween(ctx, scene, axis, text, axis.x(range.from), axis.x(range.to), scene.palette.accent)];
}

// Returns the time between each two neighbours, if there is room for it.
function markTags(ctx: CanvasRenderingContext2D, scene: Scene, axis: Axis, marks: readonly number[]): Tag[] {
  const sorted = [...marks].sort((a, b) => a - b);
  const tags: Tag[] = [];
  for (let i = 1; i < sorted.length; i++) {
    const [x0, x1] = [axis.x(sorted[i - 1]), axis.x(sorted[i])];
    if (x1 < 0 || x0 > axis.width) continue;
    const tag = tagBetween(ctx, scene, axis, `Δ ${duration(sorted[i] - sorted[i - 1])}`, x0, x1, scene.palette.warn);
    if (tag.width < x1 - x0) tags.push(tag);
  }
  return tags;
}

function drawTicks(ctx: CanvasRenderingContext2D, scene: Scene, axis: Axis, height: number, tags: Tag[]): void {
  const { dpr, palette } = scene;
  const { step, ticks } = ticksOf(axis, dpr);
  const last = axis.time(axis.width);
  for (const tick of ticks) {
    const x = Math.round(axis.x(tick * step));
    ctx.fillStyle = palette.line;
    for (let small = 1; small < 5; small++) {
      ctx.fillRect(Math.round(axis.x((tick + small / 5) * step)), height - 4 * dpr, Math.ceil(dpr), 4 * dpr);
    }
    ctx.fillRect(x, height - 10 * dpr, Math.ceil(dpr), 10 * dpr);
    const text = label(tick * step, step, last);
    const right = x + ctx.measureText(text).width + 8 * dpr;
    const isFree = tags.every((tag) => right < tag.left || x > tag.left + tag.width);
    ctx.fillStyle = palette.muted;
    if (x >= 0 && isFree) ctx.fillText(text, x + 4 * dpr, 10 * dpr);
  }
}

function drawRange(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  axis: Axis,
  range: { from: number; to: number },
  height: number,
): void {
  const { dpr, palette } = scene;
  const x0 = Math.round(axis.x(range.from));
  const x1 = Math.round(axis.x(range.to));
  ctx.globalAlpha = 0.18;
  ctx.fillStyle = palette.accent;
  ctx.fillRect(x0, 0, x1 - x0, height);
  ctx.globalAlpha = 1;
  ctx.fillRect(x0, height - 3 * dpr, Math.max(1, x1 - x0), 3 * dpr);
}

function drawMarks(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  axis: Axis,
  marks: readonly number[],
  height: number,
): void {
  const { dpr, palette } = scene;
  ctx.fillStyle = palette.warn;
  for (const mark of marks) {
    const x = Math.round(axis.x(mark));
    ctx.beginPath();
    ctx.moveTo(x - 5 * dpr, height - 9 * dpr);
    ctx.lineTo(x + 5 * dpr, height - 9 * dpr);
    ctx.lineTo(x, height);
    ctx.fill();
  }
}
