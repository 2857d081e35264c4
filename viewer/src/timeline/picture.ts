// SPDX-License-Identifier: MIT
// picture.ts: draws the visible tracks onto the canvas: backgrounds and grid lines, the bands as strips (or directly
// while the scale changes), the names of slices that begin left of the view, and on top the selection, what is under
// the pointer, and the marks.
import type { App } from "../app";
import type { EventRef } from "../protocol";
import type { Arrow } from "./arrows";
import { drawArrows } from "./arrows";
import type { Axis } from "./axis";
import { lastBefore, pieces, tileNs } from "./items";
import { paintBand, paintName } from "./paint";
import type { Pane, Panes } from "./panes";
import { ticksOf } from "./ruler";
import type { Scene } from "./scene";
import type { Strips } from "./strips";
import { OVERLAY, ROW, type Band, type Entry, type Tree } from "./tree";
import { ITEM_INSTANT, ITEM_MERGED } from "../protocol";

// Maximum of visible snapshots that get a label, and a line.
const LABELS_MOST = 8;
const LINES_MOST = 24;

// The place of an event: the number of its track, times in ns.
export type Spot = Pick<EventRef, "track" | "row" | "ts" | "dur">;

export interface Over {
  selected: Spot | null;
  hovered: Spot | null;
  arrows: Arrow[];
}

export class Picture {
  tree!: Tree;

  constructor(
    private readonly ctx: CanvasRenderingContext2D,
    private readonly app: App,
    private readonly scene: Scene,
    private readonly axis: Axis,
    private readonly panes: Panes,
    private readonly strips: Strips,
  ) {}

  // `direct`: the scale is about to change again, so strips would be wasted.
  draw(over: Over, direct: boolean): void {
    const { ctx, scene } = this;
    this.strips.begin();
    ctx.fillStyle = scene.palette.background;
    ctx.fillRect(0, 0, ctx.canvas.width, ctx.canvas.height);
    for (const pane of this.panes.both) {
      if (!pane.height) continue;
      ctx.save();
      ctx.beginPath();
      ctx.rect(0, this.px(pane.top), ctx.canvas.width, this.px(pane.height));
      ctx.clip();
      this.drawPane(pane, direct);
      ctx.restore();
    }
    this.drawOver(over);
  }

  private px(css: number): number {
    return Math.round(css * this.scene.dpr);
  }

  private drawPane(pane: Pane, direct: boolean): void {
    const { scroll } = pane;
    const entries = this.panes.inSight(pane);
    for (const entry of entries) this.drawGround(entry, this.px(pane.top + entry.y - scroll));
    this.drawGrid(pane);
    for (const entry of entries) {
      for (const band of this.tree.bandsOf(entry)) {
        const y = pane.top + entry.y + band.y - scroll;
        if (y + band.rows * band.rowHeight < pane.top || y > pane.top + pane.height) continue;
        this.drawBand(band, this.px(y), direct);
      }
    }
  }

  private drawGround(entry: Entry, y: number): void {
    const { ctx, scene } = this;
    const height = this.px(entry.height);
    if (entry.track.kind === "group") {
      ctx.fillStyle = scene.palette.group;
      ctx.fillRect(0, y, this.axis.width, height);
    }
    ctx.fillStyle = scene.palette.line;
    ctx.fillRect(0, y + height - 1, this.axis.width, 1);
  }

  private drawGrid(pane: Pane): void {
    const { ctx, axis, scene } = this;
    const { step, ticks } = ticksOf(axis, scene.dpr);
    ctx.fillStyle = scene.palette.line;
    ctx.globalAlpha = 0.6;
    for (const tick of ticks) {
      ctx.fillRect(Math.round(axis.x(tick * step)), this.px(pane.top), 1, this.px(pane.height));
    }
    ctx.globalAlpha = 1;
  }

  private drawBand(band: Band, y: number, direct: boolean): void {
    const { ctx, axis, scene } = this;
    if (direct) {
      const { origin, nsPerPx, level, offset, width } = axis;
      paintBand(ctx, scene, band, { origin, nsPerPx, level, x0: offset, width }, y);
    } else {
      this.strips.show(ctx, band, y);
    }
    if (band.kind !== "counter" && band.rowHeight >= 14 && band.track !== OVERLAY) this.drawStuck(band, y);
  }

  // Draws the name of a slice that begins left of the view at the view's edge.
  private drawStuck(band: Band, y: number): void {
    const { axis, scene } = this;
    const from = axis.time(0);
    const index = Math.floor(from / tileNs(axis.level));
    const [piece] = pieces(scene.tile, band.track, axis.level, index).list;
    const items = piece?.tile.items;
    if (!items) return;
    for (let row = band.row; row < band.row + band.rows; row++) {
      const i = lastBefore(items, row, from - axis.nsPerPx);
      if (i < 0 || items.flags[i] & (ITEM_MERGED | ITEM_INSTANT)) continue;
      const end = axis.x(items.begin[i] + items.dur[i]);
      const top = y + this.px((row - band.row) * band.rowHeight);
      if (end >= 1) this.drawStuckName(band, items.name[i], end, top);
    }
  }

  // Covers the part of the name that the strip shows; if the slice is too narrow for a name, only itself.
  private drawStuckName(band: Band, name: number, end: number, y: number): void {
    const { ctx, scene, axis } = this;
    const room = Math.min(end - 1, axis.width, (scene.textWidth(name) * 2 + 40) * scene.dpr);
    ctx.fillStyle = scene.palette.fills[scene.styles(band.kind).of(name, 255)];
    ctx.fillRect(0, y, Math.round(room), this.px(band.rowHeight) - Math.round(scene.dpr));
    if (end <= 22 * scene.dpr) return;
    ctx.font = scene.font();
    ctx.textBaseline = "middle";
    paintName(ctx, scene, name, 0, end, y, band.rowHeight);
  }

  // Returns the rectangle of an event in CSS pixels, cut to its pane; null if not visible.
  box(spot: Spot): { x: number; y: number; width: number; height: number; pane: Pane } | null {
    const place = this.panes.place(this.app.trace.tracks[spot.track], this.app.trace.tracks);
    if (!place) return null;
    const { entry, pane } = place;
    const band = this.tree.bandsOf(entry).find((one) => one.track === spot.track && spot.row < one.row + one.rows);
    const row = band ? Math.max(0, spot.row - band.row) : 0;
    const y = place.y + (band ? band.y + row * band.rowHeight : entry.height / 2 - ROW / 2);
    const height = band ? band.rowHeight - 1 : ROW;
    const { dpr } = this.scene;
    const x = this.axis.x(spot.ts) / dpr;
    const end = spot.dur < 0 ? this.scene.end : spot.ts + spot.dur;
    return { x, y, width: this.axis.x(end) / dpr - x, height, pane };
  }

  private drawOver(over: Over): void {
    const { ctx, scene } = this;
    this.drawRange();
    this.drawLines();
    if (over.hovered) this.outline(over.hovered, scene.palette.muted, 1);
    if (over.selected) this.outline(over.selected, scene.palette.foreground, 2);
    drawArrows(ctx, scene, over.arrows, (spot) => this.box(spot));
  }

  private outline(spot: Spot, colour: string, thick: number): void {
    const { ctx, axis, scene } = this;
    const box = this.box(spot);
    if (!box) return;
    const x0 = Math.max(-8, Math.round(box.x * scene.dpr));
    const x1 = Math.min(axis.width + 8, Math.max(x0 + 2, Math.round((box.x + box.width) * scene.dpr)));
    if (x1 < 0 || x0 > axis.width) return;
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, this.px(box.pane.top), axis.width, this.px(box.pane.height));
    ctx.clip();
    ctx.strokeStyle = colour;
    ctx.lineWidth = thick * scene.dpr;
    const half = ctx.lineWidth / 2;
    const wider = (spot.dur === 0 ? 6 * scene.dpr : 0) - half; // around the diamond of an instant
    ctx.strokeRect(x0 - wider, this.px(box.y) + half, x1 - x0 + 2 * wider, this.px(box.height) - 2 * half);
    ctx.restore();
  }

  private drawRange(): void {
    const { ctx, axis, scene } = this;
    const { range } = this.app.state;
    if (!range) return;
    const x0 = Math.round(axis.x(range.from));
    const x1 = Math.round(axis.x(range.to));
    ctx.fillStyle = scene.palette.accent;
    ctx.globalAlpha = 0.1;
    ctx.fillRect(x0, 0, x1 - x0, ctx.canvas.height);
    ctx.globalAlpha = 0.8;
    ctx.fillRect(x0, 0, Math.ceil(scene.dpr), ctx.canvas.height);
    ctx.fillRect(x1, 0, Math.ceil(scene.dpr), ctx.canvas.height);
    ctx.globalAlpha = 1;
  }

  private drawLines(): void {
    const { app, scene } = this;
    const { from, to } = app.state;
    const seen = app.trace.snapshots.filter(({ ts }) => ts >= from && ts <= to);
    // Many lines would hide the events at them; the snapshot track shows them all.
    this.ctx.globalAlpha = seen.length > LABELS_MOST ? 0.25 : 0.7;
    if (seen.length <= LINES_MOST) for (const { ts } of seen) this.line(ts, scene.palette.error);
    this.ctx.globalAlpha = 1;
    for (const mark of app.state.marks) this.line(mark, scene.palette.warn);
    if (seen.length <= LABELS_MOST) for (const { ts, trigger, reason } of seen) this.label(ts, reason || trigger);
  }

  private label(ns: number, text: string): void {
    const { ctx, scene, axis } = this;
    const shown = `⚑ ${text || "snapshot"}`;
    const x = Math.round(axis.x(ns));
    const bottom = ctx.canvas.height - this.px(4);
    ctx.font = scene.font();
    ctx.textBaseline = "bottom";
    ctx.fillStyle = scene.palette.background;
    ctx.fillRect(x + this.px(1), bottom - this.px(14), ctx.measureText(shown).width + this.px(8), this.px(15));
    ctx.fillStyle = scene.palette.error;
    ctx.fillText(shown, x + this.px(4), bottom);
  }

  private line(ns: number, colour: string): number | null {
    const { ctx, axis, scene } = this;
    const x = Math.round(axis.x(ns));
    if (x < 0 || x > axis.width) return null;
    ctx.fillStyle = colour;
    ctx.fillRect(x, 0, Math.ceil(scene.dpr), ctx.canvas.height);
    return x;
  }
}
