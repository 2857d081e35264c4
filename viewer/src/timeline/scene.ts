// SPDX-License-Identifier: MIT
// scene.ts: what drawing needs besides the items: colours, texts and their widths, search results. `version` grows
// whenever something that was drawn already changes.
import { ofLoss, ofName, ofState, STEPS, STYLES, type Palette } from "../colour";
import type { Kind, Track } from "../protocol";
import type { GetTile } from "./items";
import { boundsOf, type Bounds } from "./paint_counter";

export const FONT_PX = 11;
const TEXT_MAX = 300; // no screen shows more of a name
export const OWN_TEXTS = 2 ** 31; // names from here on belong to the overlay

export class Scene {
  version = 0;
  dpr = 1;
  end = 0; // of the trace
  tracks: Track[] = [];
  private readonly kinds = new Map<Kind, Styles>();
  private widths = new Float32Array(1024);
  private bright: Set<number> | null = null;
  overlayTexts: string[] = [];

  constructor(
    public palette: Palette,
    readonly tile: GetTile,
    readonly isFresh: (track: number, level: number, index: number) => boolean, // of this generation
    private readonly sourceText: (name: number) => string,
    private readonly measure: CanvasRenderingContext2D,
  ) {}

  setPalette(palette: Palette): void {
    this.palette = palette;
    this.version++;
  }

  // Names to highlight; null: all alike.
  setBright(names: number[] | null): void {
    if (!names?.length && !this.bright) return;
    this.bright = names?.length ? new Set(names) : null;
    this.version++;
  }

  bounds(track: number): Bounds {
    return boundsOf(this.tracks[track]);
  }

  trackName(track: number): string {
    return this.tracks[track].name;
  }

  font(dpr = this.dpr): string {
    return `${FONT_PX * dpr}px system-ui, sans-serif`;
  }

  text(name: number): string {
    const text = name >= OWN_TEXTS ? (this.overlayTexts[name - OWN_TEXTS] ?? "") : this.sourceText(name);
    return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
  }

  // Keeps widths by name, in CSS pixels. The overlay's names change, so they are measured each time.
  textWidth(name: number): number {
    if (name >= OWN_TEXTS) return this.measured(this.text(name));
    if (name >= this.widths.length) {
      const grown = new Float32Array(2 ** Math.ceil(Math.log2(name + 1)));
      grown.set(this.widths);
      this.widths = grown;
    }
    if (this.widths[name] === 0) this.widths[name] = this.measured(this.text(name)) || 1;
    return this.widths[name];
  }

  private measured(text: string): number {
    this.measure.font = this.font(1);
    return this.measure.measureText(text).width;
  }

  // Returns the styles of a kind of track.
  styles(kind: Kind): Styles {
    let styles = this.kinds.get(kind);
    if (!styles) {
      styles = new Styles(this, kind);
      this.kinds.set(kind, styles);
    }
    return styles;
  }

  isPale(name: number): boolean {
    return this.bright !== null && !this.bright.has(name);
  }
}

// The styles of a kind's names: numbers in palette.fills. Looks up each name's colour once.
export class Styles {
  private known = new Uint8Array(1024); // colour + 1

  constructor(
    private readonly scene: Scene,
    private readonly kind: Kind,
  ) {}

  // fill: covered part, of 255.
  of(name: number, fill: number): number {
    const colour = name < this.known.length && this.known[name] ? this.known[name] - 1 : this.find(name);
    const step = fill >= 255 ? STEPS - 1 : fill >> 6;
    return colour * STYLES + step + (this.scene.isPale(name) ? STEPS : 0);
  }

  private find(name: number): number {
    const text = this.scene.text(name);
    const colour = this.kind === "loss" ? ofLoss : this.kind === "state" ? ofState(text) : ofName(text);
    if (name >= OWN_TEXTS) return colour;
    if (name >= this.known.length) {
      const grown = new Uint8Array(2 ** Math.ceil(Math.log2(name + 1)));
      grown.set(this.known);
      this.known = grown;
    }
    this.known[name] = colour + 1;
    return colour;
  }
}
