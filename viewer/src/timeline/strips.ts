// SPDX-License-Identifier: MIT
// strips.ts: bitmaps of what was drawn: a strip is a band for CHUNK pixels of the axis. Moving in time or over the
// tracks copies strips; only what becomes visible is drawn. Strips are valid for one scale.
//
//   axis    │ chunk -1 │ chunk 0  │ chunk 1  │
//   band a  │          │  strip   │  strip   │
//   band b  │          │  strip   │          │
//
// Making a bitmap costs more than drawing once, so each animation frame makes them only for a short time; the rest is
// drawn directly, and gets its strip in one of the next frames.
import type { Axis } from "./axis";
import { paintBand, type Stretch } from "./paint";
import type { Scene } from "./scene";
import type { Band } from "./tree";

export const CHUNK = 512;
const MAKE_MS = 3;
const PIXELS_MAX = 24_000_000;
const SPARE_MAX = 8_000_000; // pixels of canvases kept for reuse

export interface Strip {
  canvas: OffscreenCanvas;
  band: Band;
  chunk: number;
  complete: boolean; // made from the tiles that belong there
  made: number; // version of the scene that it was made from
  news: number;
}

export class Strips {
  private readonly used = new Set<Strip>(); // least recently used first
  private readonly spare = new Map<number, OffscreenCanvas[]>(); // by height
  private pixels = 0;
  private sparePixels = 0;
  private scaled = -1;
  private until = 0;
  owed = false; // some visible strips were not made for lack of time
  private readonly news = new Map<number, number>(); // counts arrivals for each track

  constructor(
    private readonly scene: Scene,
    private readonly axis: Axis,
  ) {}

  // Tiles of these tracks arrived: their incomplete strips are worth another try.
  arrived(tracks: Iterable<number>): void {
    for (const track of tracks) this.news.set(track, (this.news.get(track) ?? 0) + 1);
  }

  // Forgets all strips, so that they are redrawn when visible.
  drop(): void {
    for (const strip of this.used) this.remove(strip);
  }

  // Begins an animation frame.
  begin(): void {
    this.checkScale();
    this.until = performance.now() + MAKE_MS;
    this.owed = false;
  }

  // Draws the visible part of a band, at y of the context.
  show(ctx: CanvasRenderingContext2D, band: Band, y: number): void {
    const first = Math.floor(this.axis.offset / CHUNK);
    const last = Math.floor((this.axis.offset + this.axis.width - 1) / CHUNK);
    for (let chunk = first; chunk <= last; chunk++) {
      const x = chunk * CHUNK - this.axis.offset;
      const strip = band.strips.get(chunk);
      const isThere = strip && this.isGood(strip);
      if (isThere || performance.now() < this.until) ctx.drawImage(this.get(band, chunk).canvas, x, y);
      else this.paint(ctx, band, chunk, x, y);
    }
  }

  private paint(ctx: CanvasRenderingContext2D, band: Band, chunk: number, x: number, y: number): void {
    this.owed = true;
    ctx.save();
    ctx.translate(x, 0);
    ctx.beginPath();
    ctx.rect(0, y, CHUNK, Math.ceil(band.rows * band.rowHeight * this.scene.dpr));
    ctx.clip();
    paintBand(ctx, this.scene, band, this.stretch(chunk), y);
    ctx.restore();
  }

  private stretch(chunk: number): Stretch {
    const { origin, nsPerPx, level } = this.axis;
    return { origin, nsPerPx, level, x0: chunk * CHUNK, width: CHUNK };
  }

  // Makes a strip beside the visible ones; returns false if all are there.
  prepare(band: Band): boolean {
    const last = Math.floor((this.axis.offset + this.axis.width - 1) / CHUNK);
    for (const chunk of [last + 1, Math.floor(this.axis.offset / CHUNK) - 1]) {
      const strip = band.strips.get(chunk);
      if (strip && this.isGood(strip)) continue;
      this.get(band, chunk);
      return true;
    }
    return false;
  }

  private checkScale(): void {
    if (this.scaled === this.axis.scaled) return;
    this.scaled = this.axis.scaled;
    this.drop();
  }

  private isGood(strip: Strip): boolean {
    const isNew = strip.made === this.scene.version;
    return isNew && (strip.complete || strip.news === (this.news.get(strip.band.track) ?? 0));
  }

  private get(band: Band, chunk: number): Strip {
    let strip = band.strips.get(chunk);
    if (strip && this.isGood(strip)) {
      this.used.delete(strip);
      this.used.add(strip);
      return strip;
    }
    if (strip) this.remove(strip);
    strip = this.make(band, chunk);
    band.strips.set(chunk, strip);
    this.used.add(strip);
    this.evict();
    return strip;
  }

  private make(band: Band, chunk: number): Strip {
    const { scene } = this;
    const height = Math.max(1, Math.ceil(band.rows * band.rowHeight * scene.dpr));
    const canvas = this.canvas(height);
    const ctx = canvas.getContext("2d") as OffscreenCanvasRenderingContext2D;
    ctx.clearRect(0, 0, CHUNK, height);
    const complete = paintBand(ctx, scene, band, this.stretch(chunk), 0);
    return { canvas, band, chunk, complete, made: scene.version, news: this.news.get(band.track) ?? 0 };
  }

  private canvas(height: number): OffscreenCanvas {
    this.pixels += CHUNK * height;
    const canvas = this.spare.get(height)?.pop();
    if (canvas) this.sparePixels -= CHUNK * height;
    return canvas ?? new OffscreenCanvas(CHUNK, height);
  }

  private remove(strip: Strip): void {
    const { height } = strip.canvas;
    this.used.delete(strip);
    strip.band.strips.delete(strip.chunk);
    this.pixels -= CHUNK * height;
    if (this.sparePixels + CHUNK * height > SPARE_MAX) return;
    this.sparePixels += CHUNK * height;
    const spare = this.spare.get(height) ?? [];
    spare.push(strip.canvas);
    this.spare.set(height, spare);
  }

  private evict(): void {
    for (const strip of this.used) {
      if (this.pixels <= PIXELS_MAX) return;
      this.remove(strip);
    }
  }
}
