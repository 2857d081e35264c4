// SPDX-License-Identifier: MIT
// dense.ts: items one or two pixels wide, of which there may be one for each pixel of the screen. Instead of drawing
// rectangles, it stores them into an image with one line per row and scales each line to the row's height: an order of
// magnitude cheaper.
import type { Context } from "./paint";

export const NARROW = 2; // pixels

let image = new ImageData(1, 1);
let pixels = new Uint32Array(image.data.buffer);
let scratch = new OffscreenCanvas(1, 1);
let touched = new Uint8Array(1); // rows

export class Dense {
  private any = false;

  constructor(
    private readonly width: number,
    private readonly rows: number,
  ) {}

  // Called for the first item: a band of wide slices does not need an image.
  private begin(): void {
    this.any = true;
    if (image.width === this.width && image.height >= this.rows) {
      pixels.fill(0, 0, this.width * this.rows);
      touched.fill(0);
      return;
    }
    image = new ImageData(this.width, this.rows);
    pixels = new Uint32Array(image.data.buffer);
    touched = new Uint8Array(this.rows);
    scratch = new OffscreenCanvas(this.width, this.rows);
  }

  put(row: number, x0: number, x1: number, colour: number): void {
    if (!this.any) this.begin();
    touched[row] = 1;
    const line = row * this.width;
    for (let x = x0; x < x1; x++) pixels[line + x] = colour;
  }

  // The first row is at y; each is `height` of its `rowHeight` high.
  draw(ctx: Context, y: number, rowHeight: number, height: number): void {
    if (!this.any) return;
    const from = scratch.getContext("2d", { willReadFrequently: true }) as OffscreenCanvasRenderingContext2D;
    from.putImageData(image, 0, 0, 0, 0, this.width, this.rows);
    ctx.imageSmoothingEnabled = false;
    for (let row = 0; row < this.rows; row++) {
      const top = y + Math.round(row * rowHeight);
      if (touched[row]) ctx.drawImage(scratch, 0, row, this.width, 1, 0, top, this.width, height);
    }
  }
}
