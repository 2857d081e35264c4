// SPDX-License-Identifier: MIT
// timeline.ts: the timeline: puts its parts together, and draws an animation frame after each change: moves the view a
// step (motion.ts), draws the visible part (picture.ts), and requests what is missing (tiles.ts). Does nothing while
// nothing changes.
//
//   ┌ corner: filter, hidden ─┬ overview ────────────┐
//   │                         ├ ruler ───────────────┤
//   ├ #pinned ────────────────┼──────────────────────┤
//   │  heads                  │ one canvas over both │
//   ├ #tracks ────────────────┤ panes                │
//   └─────────────────────────┴──────────────────────┘
import type { How } from "../app";
import { makePalette, type Theme } from "../colour";
import { element } from "../panels/dom";
import type { Details, EventRef, Track } from "../protocol";
import type { Store } from "../store";
import { Tiles, type Wanted } from "../tiles";
import { arrowsOf, type Arrow } from "./arrows";
import { Axis } from "./axis";
import { Corner } from "./corner";
import { hitAt, type Hit } from "./hit";
import { listen } from "./input";
import { tileNs } from "./items";
import { bounded, Motion, zoomed, type View } from "./motion";
import { overlayTile } from "./overlay";
import { Overview } from "./overview";
import { Panes, type Pane } from "./panes";
import { Picture } from "./picture";
import { around, uncovered, viewFor } from "./reveal";
import { drawRuler } from "./ruler";
import { Scene } from "./scene";
import { Strips } from "./strips";
import { Tooltip } from "./tooltip";
import { trackActions } from "./track_actions";
import { OVERLAY, PAD, ROW, Tree } from "./tree";

const PREPARE_MS = 3; // per animation frame, for drawing beside the view
const FRAMES = 600;

declare global {
  interface Window {
    kymoFrames: number[]; // ms of script in the last animation frames
  }
}

const context = (canvas: HTMLCanvasElement): CanvasRenderingContext2D =>
  canvas.getContext("2d") as CanvasRenderingContext2D;

export class Timeline {
  readonly element = element("div", { class: "timeline-frame" });
  readonly axis = new Axis();
  readonly motion = new Motion();
  readonly panes: Panes;
  readonly actions;
  tree: Tree;
  hovered: Hit | null = null;
  private pointer: { x: number; y: number } | null = null;
  private readonly canvas = element("canvas", { class: "timeline-canvas", "aria-hidden": "true" });
  private readonly rulerCanvas = element("canvas", { "aria-hidden": "true" });
  private readonly ruler = element("div", { class: "ruler" }, this.rulerCanvas);
  private readonly area = element("div", {
    id: "timeline",
    role: "application",
    "aria-label": "Timeline",
    "aria-roledescription": "timeline",
    tabindex: 0,
  });
  private readonly empty = element("div", { class: "no-tracks", hidden: true });
  private readonly tiles: Tiles;
  private readonly scene: Scene;
  private readonly strips: Strips;
  private readonly picture: Picture;
  private readonly overview: Overview;
  private readonly corner: Corner;
  private readonly tooltip: Tooltip;
  private details: Details | null = null; // details of the selection, if it is shown
  private arrows: Arrow[] = [];
  private overlay: ReturnType<typeof overlayTile> | null = null;
  private frame = 0;
  private before = 0; // time of the last animation frame
  private complete = false;
  private isOwn = false; // the movement itself sets the view
  private isRestored = true;
  private width = 0; // CSS pixels of the canvas
  private height = 0;

  constructor(
    private readonly app: Store,
    failed: (error: unknown) => void,
  ) {
    window.kymoFrames = [];
    this.tree = new Tree(app.trace);
    this.actions = trackActions(app, () => this.tree);
    this.panes = new Panes(this.actions);
    this.tiles = new Tiles(app.source, (tracks) => this.arrived(tracks), failed);
    this.scene = this.makeScene();
    this.strips = new Strips(this.scene, this.axis);
    this.picture = new Picture(context(this.canvas), app, this.scene, this.axis, this.panes, this.strips);
    this.overview = new Overview(app, this.scene, (to) => this.show(to), () => this.schedule());
    this.corner = new Corner(app);
    this.tooltip = new Tooltip(app);
    this.mount();
    this.hear();
    this.setTrace();
    void this.select();
  }

  private makeScene(): Scene {
    const tile = (track: number, level: number, index: number) =>
      track === OVERLAY ? this.overlay?.tile : this.tiles.get(track, level, index);
    const measure = context(document.createElement("canvas"));
    const isFresh = (track: number, level: number, index: number) => this.tiles.has(track, level, index);
    return new Scene(makePalette(this.theme), tile, isFresh, (name) => this.app.source.text(name), measure);
  }

  private get theme(): Theme {
    return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
  }

  private mount(): void {
    const { pinned, main } = this.panes;
    this.area.append(pinned.heads.pane, main.heads.pane, this.canvas, this.empty, this.tooltip.element);
    this.element.append(this.corner.element, this.overview.element, this.ruler, this.area);
    for (const pane of this.panes.both) {
      pane.heads.pane.addEventListener("scroll", () => this.scrolled(pane), { passive: true });
    }
    new ResizeObserver(() => this.resize()).observe(this.element);
    new ResizeObserver(() => this.resize()).observe(this.area);
    this.listen();
  }

  private hear(): void {
    const { app } = this;
    app.on("view", () => this.viewed());
    app.on("range", () => this.schedule());
    app.on("tracks", () => this.list());
    app.on("trace", () => void this.renew());
    app.on("selection", () => void this.select());
    app.on("page", () => this.resize());
    app.on("search", () => this.setBright());
    app.on("overlay", () => this.setOverlay());
    app.on("theme", () => {
      this.scene.setPalette(makePalette(this.theme));
      this.schedule();
    });
    app.reveal = (event, how) => this.reveal(event, how);
    app.scrollBack = () => this.panes.scrollBack(app.state.scroll);
  }

  private listen(): void {
    listen(this.canvas, this.ruler, {
      view: () => this.app.state,
      timeAt: (x) => this.axis.time(x * this.scene.dpr),
      show: (to) => this.show(to),
      zoom: (factor, x) => this.show(zoomed(this.app.state, factor, this.axis.time(x * this.scene.dpr))),
      scroll: (y, by) => this.scroll(y, by),
      hover: (x, y) => this.hover(x, y),
      leave: () => this.leave(),
      range: (from, to) => this.setRange(Math.round(from), Math.round(to)),
      clearRange: () => this.app.set({ range: null }),
      click: (x, y) => this.click(x, y),
      doubleClick: (x, y) => this.click(x, y, "focus"),
    });
  }

  // Another generation numbers its events differently: looks for the selection at its place.
  private async renew(): Promise<void> {
    const before = this.details;
    const key = before && this.scene.tracks[before.track]?.key;
    this.setTrace();
    const { trace, source, state } = this.app;
    const track = trace.tracks.findIndex((one) => one.key === key);
    if (!before || !state.selected || track < 0) return;
    const start = { track, row: before.row, ts: before.ts, id: -1, forward: true };
    const now = await source.neighbour(start).catch(() => null);
    const isIt = now && now.ts === before.ts && now.name === before.name;
    if (this.details !== before) return; // another was selected since
    this.app.set({ selected: isIt ? { kind: now.kind, id: now.id } : null });
    void this.select();
  }

  private setTrace(): void {
    const { trace } = this.app;
    this.tree = new Tree(trace);
    this.picture.tree = this.tree;
    this.tiles.setTracks(trace.generation, trace.tracks);
    this.scene.tracks = trace.tracks;
    this.scene.end = trace.end;
    this.scene.version++;
    this.list();
    void this.overview.load();
  }

  private list(): void {
    const overlay = this.overlay ? { name: this.overlay.name, rows: this.overlay.rows } : null;
    this.panes.list(this.tree, this.app.state, overlay);
    this.corner.update();
    const { trace, state } = this.app;
    this.empty.hidden = this.panes.main.entries.length + this.panes.pinned.entries.length > 0;
    const filtered = state.filter || state.hidden.length ? "No tracks: all are hidden or filtered out." : "";
    const none = trace.live ? "Nothing has been recorded yet." : "This trace has no events.";
    this.empty.textContent = filtered || none;
    if (this.pointer) this.point(this.pointer.x, this.pointer.y);
    this.setReady(false);
    this.schedule();
  }

  // Restores the state of a URL: scrolling has to wait until the tracks are laid out.
  restore(): void {
    this.isRestored = false;
    this.resize();
  }

  private resize(): void {
    const dpr = window.devicePixelRatio || 1;
    const width = Math.max(1, this.panes.main.heads.pane.clientWidth - this.corner.element.offsetWidth);
    const height = Math.max(1, this.area.clientHeight);
    if (width !== this.width || height !== this.height || dpr !== this.scene.dpr) {
      this.width = width;
      this.height = height;
      if (dpr !== this.scene.dpr) this.scene.version++;
      this.scene.dpr = dpr;
      this.fit(this.canvas, width, height);
      this.fit(this.rulerCanvas, width, this.ruler.clientHeight);
      this.fit(this.overview.canvas, width, this.overview.element.clientHeight);
    }
    this.panes.measure();
    if (!this.isRestored && this.panes.main.height) {
      this.isRestored = true;
      if (this.app.state.scroll) this.panes.scrollBack(this.app.state.scroll);
    }
    this.schedule();
  }

  private fit(canvas: HTMLCanvasElement, width: number, height: number): void {
    canvas.width = Math.round(width * this.scene.dpr);
    canvas.height = Math.round(height * this.scene.dpr);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }

  schedule(): void {
    this.frame ||= requestAnimationFrame((now) => this.onFrame(now));
  }

  private onFrame(now: number): void {
    const start = performance.now();
    this.frame = 0;
    if (this.app.state.page !== "timeline" || this.width <= 1) return;
    const isMoving = this.move(now);
    this.draw();
    const prepared = this.request();
    if (isMoving || !prepared) this.schedule();
    this.before = isMoving ? now : 0;
    this.setReady(this.complete && !isMoving && !this.strips.owed);
    window.kymoFrames.push(performance.now() - start);
    if (window.kymoFrames.length > FRAMES) window.kymoFrames.shift();
  }

  private move(now: number): boolean {
    const { state, trace } = this.app;
    this.motion.centre = this.pointer ? this.axis.time(this.pointer.x * this.scene.dpr) : null;
    const ms = this.before ? Math.min(50, now - this.before) : 16;
    const next = this.motion.step(ms, now, state, trace.begin, trace.end);
    this.isOwn = true;
    if (next) this.app.set(next);
    this.isOwn = false;
    return this.motion.moving;
  }

  // A view set by others ends the movement.
  private viewed(): void {
    if (!this.isOwn) this.motion.give();
    this.setReady(false);
    this.schedule();
  }

  private draw(): void {
    const { axis, app, scene } = this;
    const { from, to, range, marks } = app.state;
    const { offset } = axis;
    const isScaled = axis.set(from, Math.max(to, from + 1), this.canvas.width);
    if (this.pointer && (isScaled || axis.offset !== offset)) this.point(this.pointer.x, this.pointer.y);
    const over = { selected: this.details, hovered: this.hovered, arrows: this.arrows };
    this.picture.draw(over, isScaled && this.motion.moving);
    const pointer = this.pointer ? axis.time(this.pointer.x * scene.dpr) : null;
    drawRuler(context(this.rulerCanvas), scene, axis, { range, marks, pointer });
    this.overview.draw();
    this.panes.render();
  }

  // Requests what is missing: first for the view, then beside it, then the whole trace coarsely.
  // Returns false if there is more to prepare.
  private request(): boolean {
    const { axis, app } = this;
    const tracks = this.tracksInSight();
    const { level } = axis;
    const first = Math.floor(axis.time(0) / tileNs(level));
    const last = Math.floor(axis.time(axis.width) / tileNs(level));
    const wanted: Wanted[] = [{ level, first, last, tracks }];
    const top = Math.max(0, Math.ceil(Math.log2((app.trace.end - app.trace.begin) / axis.width)));
    const whole = [app.trace.begin, app.trace.end].map((ns) => Math.floor(ns / tileNs(top)));
    wanted.push({ level: top, first: whole[0], last: whole[1], tracks });
    wanted.push({ level, first: first - 1, last: last + 1, tracks });
    this.complete = this.tiles.want(wanted);
    if (this.strips.owed) return false;
    return !this.complete || this.prepare();
  }

  private tracksInSight(): number[] {
    const tracks = new Set<number>();
    for (const pane of this.panes.both) {
      for (const entry of this.panes.inSight(pane)) {
        for (const { track } of this.tree.bandsOf(entry)) if (track !== OVERLAY) tracks.add(track);
      }
    }
    return [...tracks];
  }

  // Draws strips beside the view in advance. Returns true if all are there.
  private prepare(): boolean {
    const start = performance.now();
    if (this.motion.moving) return true;
    for (const pane of this.panes.both) {
      for (const entry of this.panes.inSight(pane)) {
        for (const band of this.tree.bandsOf(entry)) {
          while (this.strips.prepare(band)) if (performance.now() - start > PREPARE_MS) return false;
        }
      }
    }
    return true;
  }

  private arrived(tracks: Set<number>): void {
    this.strips.arrived(tracks);
    this.schedule();
  }

  private setReady(isReady: boolean): void {
    const { dataset } = document.documentElement;
    if (isReady) dataset.ready = "1";
    else delete dataset.ready;
  }

  // Shows a view without animation.
  show(to: View): void {
    this.motion.stop();
    this.app.set(bounded(to, this.app.trace.begin, this.app.trace.end));
  }

  // Moves to a view.
  go(to: View): void {
    this.motion.go(bounded(to, this.app.trace.begin, this.app.trace.end));
    this.setReady(false);
    this.schedule();
  }

  private scroll(y: number, by: number): void {
    const pane = this.panes.both.find(({ top, height }) => y >= top && y < top + height) ?? this.panes.main;
    this.panes.scroll(pane, pane.scroll + by);
    this.schedule();
  }

  private scrolled(pane: Pane): void {
    pane.scroll = pane.heads.pane.scrollTop;
    this.app.set({ scroll: this.panes.scrolled });
    if (this.pointer) this.point(this.pointer.x, this.pointer.y);
    this.schedule();
  }

  private hover(x: number, y: number): void {
    this.point(x, y);
    this.schedule();
  }

  private point(x: number, y: number): void {
    this.pointer = { x, y };
    this.hovered = y < 0 ? null : hitAt(this.scene, this.axis, this.panes, this.tree, x, y);
    if (this.hovered) this.tooltip.show(this.hovered, x + this.corner.element.offsetWidth, y);
    else this.tooltip.hide();
  }

  private leave(): void {
    this.pointer = null;
    this.hovered = null;
    this.tooltip.hide();
    this.schedule();
  }

  // The time at the pointer, if it is over the timeline.
  get pointed(): number | null {
    return this.pointer ? this.axis.time(this.pointer.x * this.scene.dpr) : null;
  }

  // The track at the pointer.
  get pointedTrack(): Track | null {
    return (this.pointer && this.panes.at(this.pointer.y)?.entry.track) ?? null;
  }

  private click(x: number, y: number, how?: "focus"): void {
    this.area.focus({ preventScroll: true });
    const hit = hitAt(this.scene, this.axis, this.panes, this.tree, x, y);
    const ref = hit && hit.track === OVERLAY ? this.overlay?.refs[hit.id] : hit;
    if (hit && hit.track === OVERLAY && !ref) this.setRange(hit.ts, hit.ts + hit.dur);
    else if (!hit || (ref && ref.id >= 0)) void this.app.select(ref ?? null, ref ? how : undefined);
  }

  private setRange(from: number, to: number): void {
    this.app.set({ range: { from, to: Math.max(from + 1, to) }, tab: "range" });
  }

  // Loads the details of the selection for drawing.
  private async select(): Promise<void> {
    const asked = this.app.state.selected;
    const details = await this.app.details();
    if (asked !== this.app.state.selected) return; // another request is on its way
    this.details = details && details.track >= 0 ? details : null;
    this.arrows = details ? arrowsOf(details) : [];
    this.schedule();
  }

  // Makes an event visible.
  private reveal(event: EventRef, how: How): void {
    const { state, trace } = this.app;
    this.app.set(uncovered(this.tree, state, event));
    const track = trace.tracks[event.track];
    if (track) this.panes.reveal(track, trace.tracks, PAD + event.row * ROW, ROW);
    const end = event.dur < 0 ? trace.end : event.ts + event.dur;
    const to = how === "focus" ? around(event.ts, end) : viewFor(state, event.ts, end, how);
    if (to) this.go(to);
    this.schedule();
  }

  private setBright(): void {
    const { search, state } = this.app;
    this.scene.setBright(search && state.search ? search.names : null);
    this.schedule();
  }

  private setOverlay(): void {
    this.overlay = this.app.overlay ? overlayTile(this.app.overlay, this.app.trace.end) : null;
    this.scene.overlayTexts = this.overlay?.texts ?? [];
    this.list();
  }
}
