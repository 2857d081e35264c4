// SPDX-License-Identifier: MIT
// motion.ts: moves the view in time: towards a target, at the same speed for any frame rate, and steadily as long as a
// key is held. The view approaches its target, so that the eye can follow a jump from a second to a microsecond; users
// who asked the system for reduced motion see jumps.
import type { Action } from "../keys";
import { narrowest } from "../state";

export interface View {
  from: number;
  to: number;
}

const APPROACH_MS = 55;
const PAN_PER_S = 1.4; // lengths of the view
const ZOOM_PER_S = 7; // times
export const SPAN_LEAST = 50; // ns

const steady = new Set<Action>(["zoom-in", "zoom-out", "pan-left", "pan-right"]);
const still = matchMedia("(prefers-reduced-motion: reduce)");

export const isSteady = (action: Action): boolean => steady.has(action);

export function zoomed(view: View, factor: number, at: number): View {
  return { from: at - (at - view.from) * factor, to: at + (view.to - at) * factor };
}

// Keeps a view within the trace, roughly: its centre stays inside, and it is no longer than the trace.
export function bounded(view: View, begin: number, end: number): View {
  const narrow = Math.max(SPAN_LEAST, narrowest(begin, end));
  const all = Math.max(end - begin, narrow);
  const span = Math.min(Math.max(view.to - view.from, narrow), all);
  const middle = (view.from + view.to) / 2;
  const margin = Math.min(span, all - span) / 2;
  const least = begin + span / 2 - margin;
  const most = begin + all - span / 2 + margin;
  const centre = Math.min(most, Math.max(least, middle));
  return { from: centre - span / 2, to: centre + span / 2 };
}

export class Motion {
  private target: View | null = null;
  private readonly held = new Map<Action, number>(); // time of the press
  centre: number | null = null; // the point that zooming keeps in place; null: the centre

  get moving(): boolean {
    return this.target !== null || this.held.size > 0;
  }

  // Stops approaching the target; held keys continue.
  give(): void {
    this.target = null;
  }

  stop(): void {
    this.target = null;
    this.held.clear();
  }

  go(view: View): void {
    this.target = view;
  }

  // A press is one step at once, then a steady movement while it lasts.
  press(action: Action, now: number, view: View): void {
    if (this.held.has(action)) return;
    this.held.set(action, now);
    this.target = this.moved(action, this.target ?? view, action.startsWith("zoom") ? 0.1 : 0.07);
  }

  release(action?: Action): void {
    if (action) this.held.delete(action);
    else this.held.clear();
  }

  private moved(action: Action, view: View, seconds: number): View {
    const shift = (view.to - view.from) * PAN_PER_S * seconds;
    const at = this.centre ?? (view.from + view.to) / 2;
    switch (action) {
      case "zoom-in":
        return zoomed(view, ZOOM_PER_S ** -seconds, at);
      case "zoom-out":
        return zoomed(view, ZOOM_PER_S ** seconds, at);
      case "pan-left":
        return { from: view.from - shift, to: view.to - shift };
      default:
        return { from: view.from + shift, to: view.to + shift };
    }
  }

  // Returns the view after this many ms; null if it is at rest.
  step(ms: number, now: number, view: View, begin: number, end: number): View | null {
    for (const [action, since] of this.held) {
      if (now - since > 120) this.target = this.moved(action, this.target ?? view, ms / 1000);
    }
    if (!this.target) return null;
    this.target = bounded(this.target, begin, end);
    const { target } = this;
    const part = still.matches ? 1 : 1 - Math.exp(-ms / APPROACH_MS);
    const next = {
      from: view.from + (target.from - view.from) * part,
      to: view.to + (target.to - view.to) * part,
    };
    const left = Math.max(Math.abs(next.from - target.from), Math.abs(next.to - target.to));
    if (left >= (target.to - target.from) / 4000) return next;
    if (this.held.size === 0) this.target = null;
    return target;
  }
}
