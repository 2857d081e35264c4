// SPDX-License-Identifier: MIT
// commands.ts: the keys of the timeline (keys.ts), wherever the focus is except in a text field.
import { actionOf, actionOfKey, type Action } from "../keys";
import type { Details, Track } from "../protocol";
import type { Store } from "../store";
import { isSteady } from "./motion";
import { around } from "./reveal";
import type { Timeline } from "./timeline";

const NEAR = 6; // CSS pixels within which a mark is hit
const SERIES_MS = 2000; // steps that follow each other sooner are one jump

// Arrows and Enter belong to the focused element, unless that is the timeline or nothing.
const local = /^(Arrow|Enter|Escape)/;

function isTyping(target: EventTarget | null): boolean {
  const at = target as HTMLElement | null;
  return !!at?.closest?.("input, textarea, select, dialog, [contenteditable]");
}

export class Commands {
  private stepped = -Infinity; // when the last step was
  private steps: Promise<void> = Promise.resolve(); // one after another: each begins where the last one ended

  constructor(
    private readonly app: Store,
    private readonly timeline: Timeline,
    private readonly page: (action: Action) => boolean, // handles the actions of the page
  ) {
    addEventListener("keydown", (event) => this.onKey(event));
    addEventListener("keyup", (event) => this.onKeyUp(event));
    addEventListener("blur", () => timeline.motion.release());
  }

  private onKey(event: KeyboardEvent): void {
    const action = actionOf(event);
    if (!action || event.defaultPrevented || isTyping(event.target)) return;
    const target = event.target as HTMLElement;
    const isOurs = target === document.body || !!target.closest("#timeline");
    if (local.test(event.key) && event.key !== "Escape" && !isOurs) return;
    if (this.page(action) || (this.app.state.page === "timeline" && this.run(action))) event.preventDefault();
  }

  private onKeyUp(event: KeyboardEvent): void {
    const action = actionOfKey(event);
    if (action) this.timeline.motion.release(action);
  }

  private run(action: Action): boolean {
    if (isSteady(action)) {
      this.timeline.motion.press(action, performance.now(), this.app.state);
      this.timeline.schedule();
      return true;
    }
    switch (action) {
      case "whole":
        this.timeline.go({ from: this.app.trace.begin, to: this.app.trace.end });
        return true;
      case "focus":
        void this.focus();
        return true;
      case "mark":
        this.mark();
        return true;
      case "range":
        void this.range();
        return true;
      case "next":
      case "previous":
        this.steps = this.steps.then(() => this.step(action === "next"));
        return true;
      case "parent":
      case "child":
      case "flow-back":
      case "flow-forward":
        void this.follow(action);
        return true;
      case "pin":
      case "hide":
        return this.onTrack(action);
      case "escape":
        return this.escape();
      default:
        return false;
    }
  }

  // Zooms to the selection or the range; if that is already shown, to the whole trace.
  private async focus(): Promise<void> {
    const { state, trace } = this.app;
    const details = await this.app.details();
    const all = { from: trace.begin, to: trace.end };
    const of = details ? { from: details.ts, to: endOf(details, trace.end) } : state.range;
    const to = of ? around(of.from, of.to) : all;
    const isThere = Math.abs(to.from - state.from) + Math.abs(to.to - state.to) < (to.to - to.from) * 0.01;
    this.timeline.go(isThere ? all : to);
  }

  private mark(): void {
    void this.app.details().then((details) => {
      const { marks, from, to } = this.app.state;
      const at = Math.round(this.timeline.pointed ?? details?.ts ?? (from + to) / 2);
      const near = (to - from) * (NEAR / Math.max(1, this.timeline.element.clientWidth));
      const left = marks.filter((mark) => Math.abs(mark - at) > near);
      this.app.set({ marks: left.length < marks.length ? left : [...marks, at].sort((a, b) => a - b) });
      this.app.announce(left.length < marks.length ? "Mark removed" : "Mark set");
    });
  }

  private async range(): Promise<void> {
    const details = await this.app.details();
    if (!details) return;
    const to = Math.max(details.ts + 1, endOf(details, this.app.trace.end));
    this.app.set({ range: { from: details.ts, to }, tab: "range" });
  }

  private async step(forward: boolean): Promise<void> {
    const { app } = this;
    const details = await app.details();
    const track = details ? details.track : (this.firstTrack()?.id ?? -1);
    if (track < 0) return;
    const start = details
      ? { track, row: details.row, ts: details.ts, id: details.id, forward }
      : { track, row: 0, ts: forward ? app.state.from : app.state.to, id: -1, forward };
    const next = await app.source.neighbour(start).catch(() => null);
    // Back returns to where a series of steps began.
    const isFirst = performance.now() - this.stepped > SERIES_MS;
    this.stepped = performance.now();
    if (next) await app.select(next, "pan", isFirst);
    else app.announce(forward ? "No later event in this row" : "No earlier event in this row");
  }

  // Returns the focused track, else the first visible track with slices.
  private firstTrack(): Track | undefined {
    const { panes } = this.timeline;
    const focused = panes.both.map(({ heads }) => heads.focused).find(Boolean);
    if (focused && focused.kind !== "group" && focused.kind !== "counter") return focused;
    const inSight = panes.both.flatMap((pane) => panes.inSight(pane)).map(({ track }) => track);
    const slices = inSight.filter(({ kind, id }) => kind === "slices" && id >= 0);
    const ofThread = slices.find(({ tid }) => tid !== undefined);
    return ofThread ?? slices[0] ?? this.app.trace.tracks.find(({ kind }) => kind === "slices");
  }

  private async follow(action: Action): Promise<void> {
    const details = await this.app.details();
    if (!details) return;
    const to = {
      parent: details.parents[0],
      child: details.children[0],
      "flow-back": details.flowsIn[0]?.from,
      "flow-forward": details.flowsOut[0]?.to,
    }[action as "parent"];
    if (to) await this.app.select(to, action === "parent" ? "fit" : "pan");
    else this.app.announce(`This event has no ${action.replace("-", " ")}`);
  }

  private onTrack(action: "pin" | "hide"): boolean {
    const { panes, pointedTrack, actions } = this.timeline;
    const focused = panes.both.map(({ heads }) => heads.focused).find(Boolean);
    const track = focused ?? pointedTrack;
    if (track) actions[action](track);
    else void this.app.details().then((details) => details && actions[action](this.app.trace.tracks[details.track]));
    return true;
  }

  private escape(): boolean {
    const { selected, range } = this.app.state;
    if (selected) void this.app.select(null);
    else if (range) this.app.set({ range: null });
    return !!(selected || range);
  }
}

const endOf = (details: Details, end: number): number => (details.dur < 0 ? end : details.ts + details.dur);
