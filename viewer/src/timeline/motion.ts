// SPDX-License-Identifier: MIT
// motion.ts: how the window moves in time: towards a target, in the same way at any rate of frames, and steadily as
// long as a key is held. A target is approached, so that a jump from a second to a microsecond is a way that the eye
// can follow; who asked the system for less motion sees jumps.
import type { Action } from "../keys";
import { narrowest } from "../state";

export interface Window {
  from: number;
  to: number;
}

const APPROACH_MS = 55;
const PAN_PER_S = 1.4; // widths of the window
const ZOOM_PER_S = 7; // times
export const SPAN_LEAST = 50; // ns

const steady = new Set<Action>(["zoom-in", "zoom-out", "pan-left", "pan-right"]);
const still = matchMedia("(prefers-reduced-motion: reduce)");

export const isSteady = (action: Action): boolean => steady.has(action);

export function zoomed(window: Window, factor: number, at: number): Window {
  return { from: at - (at - window.from) * factor, to: at + (window.to - at) * factor };
}

// Within the trace, more or less: its middle stays in it, and it is no wider than it.
export function bounded(window: Window, begin: number, end: number): Window {
  const narrow = Math.max(SPAN_LEAST, narrowest(begin, end));
  const all = Math.max(end - begin, narrow);
  const span = Math.min(Math.max(window.to - window.from, narrow), all);
  const middle = (window.from + window.to) / 2;
  const margin = Math.min(span, all - span) / 2;
  const least = begin + span / 2 - margin;
  const most = begin + all - span / 2 + margin;
  const centre = Math.min(most, Math.max(least, middle));
  return { from: centre - span / 2, to: centre + span / 2 };
}

export class Motion {
  private target: Window | null = null;
  private readonly held = new Map<Action, number>(); // since when
  centre: number | null = null; // what zooming leaves in its place; null: the middle

  get moving(): boolean {
    return this.target !== null || this.held.size > 0;
  }

  // No longer to its target; keys that are held go on.
  give(): void {
    this.target = null;
  }

  stop(): void {
    this.target = null;
    this.held.clear();
  }

  go(window: Window): void {
    this.target = window;
  }

  // A press is one step at once, and a steady movement while it lasts.
  press(action: Action, now: number, window: Window): void {
    if (this.held.has(action)) return;
    this.held.set(action, now);
    this.target = this.moved(action, this.target ?? window, action.startsWith("zoom") ? 0.1 : 0.07);
  }

  release(action?: Action): void {
    if (action) this.held.delete(action);
    else this.held.clear();
  }

  private moved(action: Action, window: Window, seconds: number): Window {
    const shift = (window.to - window.from) * PAN_PER_S * seconds;
    const at = this.centre ?? (window.from + window.to) / 2;
    switch (action) {
      case "zoom-in":
        return zoomed(window, ZOOM_PER_S ** -seconds, at);
      case "zoom-out":
        return zoomed(window, ZOOM_PER_S ** seconds, at);
      case "pan-left":
        return { from: window.from - shift, to: window.to - shift };
      default:
        return { from: window.from + shift, to: window.to + shift };
    }
  }

  // Where the window is after so many ms; null: it rests.
  step(ms: number, now: number, window: Window, begin: number, end: number): Window | null {
    for (const [action, since] of this.held) {
      if (now - since > 120) this.target = this.moved(action, this.target ?? window, ms / 1000);
    }
    if (!this.target) return null;
    this.target = bounded(this.target, begin, end);
    const { target } = this;
    const part = still.matches ? 1 : 1 - Math.exp(-ms / APPROACH_MS);
    const next = {
      from: window.from + (target.from - window.from) * part,
      to: window.to + (target.to - window.to) * part,
    };
    const left = Math.max(Math.abs(next.from - target.from), Math.abs(next.to - target.to));
    if (left >= (target.to - target.from) / 4000) return next;
    if (this.held.size === 0) this.target = null;
    return target;
  }
}
