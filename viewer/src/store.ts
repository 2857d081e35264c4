// SPDX-License-Identifier: MIT
// store.ts: the one App: keeps the state, notifies listeners, and keeps the URL in step with the state. Changes that
// come many times a second (the view, scrolling) reach the URL a little later, because browsers limit how often it may
// change. A jump adds an entry to the history, so that Back returns to the previous place.
import type { App, Change, How, Overlay, State } from "./app";
import type { Details, EventRef, Kind, Search, Source, Trace } from "./protocol";
import { exact, fromFragment, matching, showable, toFragment } from "./state";

const changeOf: Record<keyof State, Change | null> = {
  from: "view",
  to: "view",
  page: "page",
  tab: "tab",
  selected: "selection",
  range: "range",
  marks: "range",
  pinned: "tracks",
  hidden: "tracks",
  folded: "tracks",
  order: "tracks",
  filter: "tracks",
  scroll: null, // set by the timeline itself
  search: "search",
  sql: null,
  flameOf: "tab",
};
const URL_PAUSE_MS = 250;
const URL_AGAIN_MS = 5000;
const lazily = new Set<keyof State>(["from", "to", "range", "scroll", "sql", "filter"]);

const same = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);

export class Store implements App {
  search: Search | null = null;
  overlay: Overlay | null = null;
  state: State;
  // Set by the timeline: reveal() brings an event into view, scrollBack() scrolls to the place in the state.
  reveal: (event: EventRef, how: How) => void = () => undefined;
  scrollBack: () => void = () => undefined;
  private readonly listeners = new Map<Change, Set<() => void>>();
  private timer = 0;
  private push = false;
  private shown: number[] | null = null;
  private selects = 0; // the last one wins

  constructor(
    readonly source: Source,
    public trace: Trace,
    private readonly live: HTMLElement,
  ) {
    this.state = fromFragment(location.hash, trace.begin, trace.end);
    addEventListener("popstate", () => this.readUrl());
    addEventListener("pagehide", () => this.writeUrl());
  }

  get tracks(): number[] {
    this.shown ??= this.notHidden();
    return this.shown;
  }

  private notHidden(): number[] {
    const hidden = new Set(this.state.hidden);
    const shown = matching(this.trace.tracks, this.state.filter);
    const gone = new Set<number>();
    const left: number[] = [];
    for (const track of this.trace.tracks) {
      if (hidden.has(track.key) || gone.has(track.parent)) gone.add(track.id);
      else if (track.kind !== "group" && (shown?.has(track.id) ?? true)) left.push(track.id);
    }
    return left;
  }

  on(change: Change, fn: () => void): () => void {
    const set = this.listeners.get(change) ?? new Set();
    this.listeners.set(change, set.add(fn));
    return () => set.delete(fn);
  }

  // One listener that fails must not silence the others.
  emit(change: Change): void {
    if (change === "tracks" || change === "trace") this.shown = null;
    for (const fn of this.listeners.get(change) ?? []) {
      try {
        fn();
      } catch (error) {
        console.error(error);
      }
    }
  }

  set(part: Partial<State>): void {
    const next = { ...this.state, ...part };
    if ("from" in part || "to" in part) {
      Object.assign(next, showable(next, this.trace.begin, this.trace.end));
      // Keep the length exact: a view that moves keeps its scale.
      const span = exact(next.to - next.from);
      next.from = exact(next.from);
      next.to = exact(next.from + span);
    }
    const keys = (Object.keys(part) as (keyof State)[]).filter((key) => !same(this.state[key], next[key]));
    if (keys.length === 0) return;
    this.state = next;
    this.notify(keys);
    if (this.push || keys.some((key) => !lazily.has(key))) this.writeUrl();
    else this.timer ||= window.setTimeout(() => this.writeUrl(), URL_PAUSE_MS);
  }

  private notify(keys: (keyof State)[]): void {
    const changes = new Set(keys.map((key) => changeOf[key]));
    for (const change of changes) if (change) this.emit(change);
  }

  // Makes the next set() a jump: Back returns to here.
  jump(): void {
    this.writeUrl();
    this.push = true;
  }

  private writeUrl(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    const fragment = toFragment(this.state);
    if (fragment === location.hash) return;
    const isJump = this.push;
    this.push = false;
    try {
      if (isJump) history.pushState(null, "", fragment);
      else history.replaceState(null, "", fragment);
    } catch {
      this.timer = window.setTimeout(() => this.writeUrl(), URL_AGAIN_MS); // some browsers throw if called too often
    }
  }

  private readUrl(): void {
    if (location.hash === toFragment(this.state)) return;
    const before = this.state;
    this.state = fromFragment(location.hash, this.trace.begin, this.trace.end);
    this.notify((Object.keys(before) as (keyof State)[]).filter((key) => !same(before[key], this.state[key])));
    if (before.sql !== this.state.sql) this.emit("page");
    if (before.scroll !== this.state.scroll) this.scrollBack();
  }

  // Replaces the trace by another generation. A view at the end stays at the end.
  setTrace(trace: Trace): void {
    const before = this.trace;
    const { from, to } = this.state;
    this.trace = trace;
    if (to >= before.end - (to - from) * 0.01 && trace.end > before.end) {
      const by = trace.end - before.end;
      this.set({ from: from <= before.begin ? Math.min(from, trace.begin) : from + by, to: to + by });
    }
    this.emit("trace");
  }

  // A step to a neighbour is not a jump.
  async select(
    ref: EventRef | { kind: Kind; id: number } | null,
    how?: How,
    isJump = true,
  ): Promise<void> {
    const turn = ++this.selects;
    if (!ref) {
      this.set({ selected: null });
      return;
    }
    if (how && isJump) this.jump();
    this.set({ selected: { kind: ref.kind, id: ref.id }, tab: "details" });
    if (!how) return;
    const event = "ts" in ref ? ref : await this.source.event(ref.kind, ref.id).catch(() => null);
    if (!event || turn !== this.selects) return;
    this.reveal(event, how);
  }

  setSearch(result: Search | null): void {
    this.search = result;
    this.emit("search");
  }

  setOverlay(overlay: Overlay | null): void {
    this.overlay = overlay;
    this.emit("overlay");
  }

  announce(text: string): void {
    this.live.textContent = text;
  }

  // Returns the details of the selection; null if there is none, or another was selected since.
  async details(): Promise<Details | null> {
    const { selected } = this.state;
    if (!selected) return null;
    const details = await this.source.event(selected.kind, selected.id).catch(() => null);
    return same(selected, this.state.selected) ? details : null;
  }
}
