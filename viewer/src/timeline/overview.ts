// SPDX-License-Identifier: MIT
// overview.ts: the strip at the top: the activity of the whole trace, and the visible part of it. Dragging the view
// moves it; dragging beside it selects another one.
import type { App } from "../app";
import { element } from "../panels/dom";
import { TILE_PIXELS, type Tile } from "../protocol";
import { SPAN_LEAST, type View } from "./motion";
import type { Scene } from "./scene";

const COLUMNS = 600;
const TRACKS = 24; // only the busiest are shown

export class Overview {
  readonly canvas = element("canvas", { "aria-hidden": "true" });
  readonly element = element("div", { class: "overview", title: "Whole trace" }, this.canvas);
  private busy: Float32Array = new Float32Array(COLUMNS);
  private turn = 0;

  constructor(
    private readonly app: App,
    private readonly scene: Scene,
    private readonly show: (view: View) => void,
    private readonly changed: () => void,
  ) {
    this.element.addEventListener("pointerdown", (event) => this.onDown(event));
  }

  // Requests the activity of the busiest tracks.
  async load(): Promise<void> {
    const turn = ++this.turn;
    const { trace, source } = this.app;
    const tracks = trace.tracks.filter(({ kind }) => kind === "slices" || kind === "sched" || kind === "samples");
    tracks.sort((a, b) => b.events - a.events);
    const level = Math.max(0, Math.ceil(Math.log2((trace.end - trace.begin) / COLUMNS)));
    const size = TILE_PIXELS * 2 ** level;
    const first = Math.floor(trace.begin / size);
    const count = Math.floor(trace.end / size) - first + 1;
    const ids = tracks.slice(0, TRACKS).map(({ id }) => id);
    const tiles = ids.length ? await source.tiles(level, first, count, ids).catch(() => []) : [];
    if (turn !== this.turn) return;
    this.busy = density(tiles, trace.begin, trace.end, size);
    this.changed();
  }

  draw(): void {
    const { scene, canvas } = this;
    const ctx = canvas.getContext("2d") as CanvasRenderingContext2D;
    const { width, height } = canvas;
    ctx.clearRect(0, 0, width, height);
    const most = this.busy.reduce((a, b) => Math.max(a, b), 0.01);
    ctx.fillStyle = scene.palette.muted;
    ctx.globalAlpha = 0.55;
    for (let i = 0; i < COLUMNS; i++) {
      const x0 = Math.round((i * width) / COLUMNS);
      const x1 = Math.round(((i + 1) * width) / COLUMNS);
      const high = Math.ceil((this.busy[i] / most) * (height - 6 * scene.dpr));
      if (high > 0) ctx.fillRect(x0, height - high, x1 - x0, high);
    }
    ctx.globalAlpha = 1;
    this.drawView(ctx, width, height);
  }

  private drawView(ctx: CanvasRenderingContext2D, width: number, height: number): void {
    const { scene, app } = this;
    const x0 = Math.round(this.part(app.state.from) * width);
    const x1 = Math.max(x0 + 2, Math.round(this.part(app.state.to) * width));
    ctx.fillStyle = scene.palette.background;
    ctx.globalAlpha = 0.62;
    ctx.fillRect(0, 0, x0, height);
    ctx.fillRect(x1, 0, width - x1, height);
    ctx.globalAlpha = 1;
    ctx.fillStyle = scene.palette.accent;
    ctx.fillRect(x0, 0, x1 - x0, 2 * scene.dpr);
    ctx.fillRect(x0, 0, Math.ceil(scene.dpr), height);
    ctx.fillRect(x1 - Math.ceil(scene.dpr), 0, Math.ceil(scene.dpr), height);
  }

  private part(ns: number): number {
    const { begin, end } = this.app.trace;
    return (ns - begin) / Math.max(1, end - begin);
  }

  private timeAt(event: PointerEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const { begin, end } = this.app.trace;
    return begin + ((event.clientX - box.left) / box.width) * (end - begin);
  }

  private onDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    const start = this.timeAt(event);
    const { from, to } = this.app.state;
    const all = this.app.trace.end - this.app.trace.begin;
    const isInside = start >= from && start <= to && to - from < all * 0.98;
    this.element.setPointerCapture(event.pointerId);
    const move = (at: PointerEvent): void => {
      const now = this.timeAt(at);
      if (isInside) this.show({ from: from + now - start, to: to + now - start });
      else if (Math.abs(now - start) > all / 200) this.show({ from: Math.min(now, start), to: Math.max(now, start) });
    };
    const up = (at: PointerEvent): void => {
      this.element.removeEventListener("pointermove", move);
      this.element.removeEventListener("pointerup", up);
      this.element.removeEventListener("pointercancel", up);
      const half = Math.max(to - from, SPAN_LEAST) / 2;
      const isClick = Math.abs(this.timeAt(at) - start) <= all / 200;
      if (!isInside && isClick) this.show({ from: start - half, to: start + half });
    };
    this.element.addEventListener("pointermove", move);
    this.element.addEventListener("pointerup", up);
    this.element.addEventListener("pointercancel", up);
  }
}

// Returns how much of each column the outermost slices cover, summed over the tracks.
function density(tiles: Tile[], begin: number, end: number, size: number): Float32Array {
  const busy = new Float32Array(COLUMNS);
  const perColumn = Math.max(1, end - begin) / COLUMNS;
  for (const { items, index } of tiles) {
    if (!items) continue;
    for (let i = 0; i < items.count && items.row[i] === 0; i++) {
      const from = Math.max(items.begin[i], index * size);
      const to = Math.min(items.begin[i] + items.dur[i], (index + 1) * size);
      cover(busy, (from - begin) / perColumn, (to - begin) / perColumn, items.fill[i] ? items.fill[i] / 255 : 1);
    }
  }
  return busy;
}

function cover(busy: Float32Array, from: number, to: number, part: number): void {
  const last = Math.min(COLUMNS - 1, Math.floor(to));
  for (let column = Math.max(0, Math.floor(from)); column <= last; column++) {
    busy[column] += part * Math.max(0.02, Math.min(to, column + 1) - Math.max(from, column));
  }
}
