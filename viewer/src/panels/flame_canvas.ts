// SPDX-License-Identifier: MIT
// flame_canvas.ts: draws a flame graph. The canvas covers only the visible part and stays in place while its container
// scrolls, so that deep stacks cost no more. A name has the same colour as on the timeline.
import { makePalette, ofName, type Palette, STEPS, STYLES, type Theme } from "../colour";
import { type Box, boxesOf, depthOf, type Frame } from "./flame_layout";

const ROW_PX = 20;
const TEXT_PX = 3; // from the edge of a box

export interface Picture {
  frames: Frame[];
  zoom: number;
  current: number; // has the focus ring
  hovered: number; // -1: none
  bright(name: string): boolean; // the others are dim
}

let palette: Palette | null = null;
let made = "";

function currentPalette(): Palette {
  const theme: Theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
  if (!palette || made !== theme) palette = makePalette(theme);
  made = theme;
  return palette;
}

interface FrameColours {
  fill(name: string): string;
  text: string;
  plain: string; // of frames without a name of their own
  plainText: string;
  ring: string;
}

function frameColours(): FrameColours {
  const { fills, text, group, foreground, accent } = currentPalette();
  return {
    fill: (name) => fills[ofName(name) * STYLES + STEPS - 1],
    text,
    plain: group,
    plainText: foreground,
    ring: accent === "" ? foreground : accent,
  };
}

export class FlameCanvas {
  readonly node: HTMLElement;
  private readonly canvas = document.createElement("canvas");
  private readonly place = document.createElement("div");
  private boxes: Box[] = [];
  private picture: Picture | null = null;
  private waiting = false;
  private readonly widths = new Map<string, number>();

  constructor() {
    this.node = document.createElement("div");
    this.node.className = "flame-scroller";
    this.canvas.setAttribute("aria-hidden", "true");
    this.node.append(this.place);
    this.place.append(this.canvas);
    this.node.addEventListener("scroll", () => this.redraw());
    new ResizeObserver(() => this.layout()).observe(this.node);
  }

  show(picture: Picture): void {
    const same = this.picture?.frames === picture.frames && this.picture.zoom === picture.zoom;
    this.picture = picture;
    if (same) this.redraw();
    else this.layout();
  }

  // Returns the box at a point of the browser window.
  boxAt(x: number, y: number): Box | null {
    const edge = this.node.getBoundingClientRect();
    const depth = Math.floor((y - edge.top + this.node.scrollTop) / ROW_PX);
    const left = x - edge.left;
    return this.boxes.find((box) => box.depth === depth && left >= box.x && left < box.x + box.width) ?? null;
  }

  reveal(frame: number): void {
    const top = (this.picture?.frames[frame]?.depth ?? 0) * ROW_PX;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    const low = top + ROW_PX - this.node.clientHeight;
    if (low > this.node.scrollTop) this.node.scrollTop = low;
  }

  redraw(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  private layout(): void {
    if (!this.picture) return;
    this.boxes = boxesOf(this.picture.frames, this.picture.zoom, this.node.clientWidth);
    this.place.style.height = `${depthOf(this.picture.frames) * ROW_PX}px`;
    this.redraw();
  }

  private draw(): void {
    const { clientWidth: width, clientHeight: height, scrollTop } = this.node;
    const pen = this.canvas.getContext("2d");
    if (!pen || !this.picture || width === 0) return;
    const density = devicePixelRatio;
    this.canvas.width = Math.round(width * density);
    this.canvas.height = Math.round(height * density);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    pen.setTransform(density, 0, 0, density, 0, -scrollTop * density);
    pen.font = `12px ${getComputedStyle(this.node).fontFamily}`;
    pen.textBaseline = "middle";
    const colours = frameColours();
    for (const box of this.boxes) {
      const y = box.depth * ROW_PX;
      if (y + ROW_PX >= scrollTop && y <= scrollTop + height) this.drawBox(pen, box, this.picture, colours);
    }
  }

  private drawBox(pen: CanvasRenderingContext2D, box: Box, picture: Picture, colours: FrameColours): void {
    const y = box.depth * ROW_PX;
    const width = Math.max(box.width - 1, 0.5);
    const frame = picture.frames[box.frame];
    pen.globalAlpha = !frame || picture.bright(frame.name) || box.frame === 0 ? 1 : 0.25;
    pen.fillStyle = frame && box.frame > 0 ? colours.fill(frame.name) : colours.plain;
    pen.fillRect(box.x, y, width, ROW_PX - 1);
    if (frame && width > 20) {
      pen.fillStyle = box.frame > 0 ? colours.text : colours.plainText;
      pen.fillText(this.cut(pen, frame.name, width - 2 * TEXT_PX), box.x + TEXT_PX, y + ROW_PX / 2);
    }
    pen.globalAlpha = 1;
    const ring = box.frame >= 0 && (box.frame === picture.current || box.frame === picture.hovered);
    if (!ring) return;
    pen.strokeStyle = colours.ring;
    pen.lineWidth = box.frame === picture.current ? 2 : 1;
    pen.strokeRect(box.x + 1, y + 1, Math.max(width - 2, 1), ROW_PX - 3);
  }

  // Cuts a name to fit.
  private cut(pen: CanvasRenderingContext2D, name: string, room: number): string {
    const shown = name.length > 500 ? name.slice(0, 500) : name;
    let width = this.widths.get(shown);
    if (width === undefined) this.widths.set(shown, (width = pen.measureText(shown).width));
    if (width <= room) return shown;
    const letters = Math.floor((shown.length * room) / width) - 1;
    return letters > 0 ? `${shown.slice(0, letters)}…` : "";
  }
}
