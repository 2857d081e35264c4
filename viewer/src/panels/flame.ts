// SPDX-License-Identifier: MIT
// flame.ts: the panel with the flame graph of the range: the call tree merged over time, widest first, of slices by
// time or of samples by number. Mouse and keys move the current frame and zoom in and out; a list that only screen
// readers see describes its surroundings.
import type { App, Panel } from "../app";
import { count, duration, percent } from "../format";
import type { Flame } from "../protocol";
import { button, element, plural } from "./dom";
import { FlameCanvas } from "./flame_canvas";
import { callersOf, type Frame, framesOf, matched } from "./flame_layout";
import { atMostEach, debounce, Latest } from "./latest";
import { searchName, shownRange, tracksOf } from "./shown_range";

const NEIGHBOURS = 50; // listed for screen readers

class FlamePanel {
  readonly node = element("section", { id: "flame", class: "panel-body columns", "aria-label": "Flame graph" });
  private readonly latest = new Latest(this.node, true);
  private readonly canvas = new FlameCanvas();
  private readonly about = element("span", { class: "flame-about" });
  private readonly tree = element("ul", { class: "sr-only", role: "group" });
  private readonly tip = element("div", { class: "tip", "aria-hidden": "true", hidden: true });
  private readonly empty = element("p", { class: "empty", hidden: true });
  private readonly find = element("input", {
    type: "search",
    placeholder: "Highlight",
    "aria-label": "Highlight frames whose name contains this text",
    input: () => this.highlight(),
  });
  private readonly share = element("output", {
    class: "flame-share muted",
    title: "Share of the total in matching frames",
  });
  private readonly out = button("Zoom out", { title: "To the caller (Backspace)" }, () => this.zoomOut());
  private readonly goSearch = button("Search", { title: "Search for the current frame's name" }, () => {
    if (this.current > 0) void searchName(this.app, this.frames[this.current].name);
  });
  private readonly kinds = new Map(
    (["slices", "samples"] as const).map((of) => [
      of,
      button(of === "slices" ? "Slices" : "Samples", {}, () => this.switchTo(of)),
    ]),
  );
  private frames: Frame[] = framesOf({ unit: "ns", nodes: [] });
  private unit: Flame["unit"] = "ns";
  private zoom = 0;
  private current = 0;
  private hovered = -1;
  private bright: (name: string) => boolean = () => true;
  private asked = "";

  constructor(private readonly app: App) {
    const kinds = element(
      "div",
      { class: "segments", role: "group", "aria-label": "Flame graph of" },
      ...this.kinds.values(),
    );
    const bar = element(
      "div",
      { class: "bar-line" },
      kinds,
      this.about,
      this.share,
      this.find,
      this.goSearch,
      this.out,
    );
    const place = this.canvas.node;
    place.tabIndex = 0;
    place.setAttribute("role", "tree");
    place.setAttribute("aria-label", "Flame graph");
    place.append(this.tree);
    this.node.append(bar, place, this.empty, this.tip);
    this.listen(place);
    this.update();
  }

  private listen(place: HTMLElement): void {
    const { app } = this;
    place.addEventListener("keydown", (event) => this.key(event));
    place.addEventListener("mousemove", (event) => this.hover(event));
    place.addEventListener("mouseleave", () => this.hover(null));
    place.addEventListener("click", (event) => this.press(event));
    const later = debounce(() => this.update(), 150);
    app.on("range", () => this.update());
    app.on("view", () => app.state.range || later());
    app.on("tracks", later);
    app.on(
      "trace",
      atMostEach(500, () => this.update()),
    );
    app.on("tab", () => this.update());
    app.on("page", () => this.update());
    app.on("search", () => this.highlight());
    app.on("theme", () => this.canvas.redraw());
  }

  // A trace without slices shows its samples.
  private get of(): "slices" | "samples" {
    const { slices = 0, samples = 0 } = this.app.trace.counts;
    return slices === 0 && samples > 0 ? "samples" : this.app.state.flameOf;
  }

  private switchTo(of: "slices" | "samples"): void {
    this.app.set({ flameOf: of });
    this.update();
  }

  private update(): void {
    const { app } = this;
    const { tab, page } = app.state;
    const { of: flameOf } = this;
    for (const [of, press] of this.kinds) press.setAttribute("aria-pressed", String(of === flameOf));
    this.kinds.get("samples")!.disabled = !app.trace.counts.samples && flameOf !== "samples";
    this.kinds.get("slices")!.disabled = !app.trace.counts.slices && flameOf !== "slices";
    if (tab !== "flame" || page !== "timeline") return;
    const { from, to } = shownRange(app);
    const asked = JSON.stringify([from, to, flameOf, tracksOf(app, flameOf), app.trace.generation]);
    if (asked === this.asked) return;
    this.asked = asked;
    const fail = (why: string) => {
      this.asked = "";
      this.say(why);
    };
    void this.latest.ask(
      () => this.nodesOf(from, to, flameOf),
      (flame) => this.take(flame),
      fail,
    );
  }

  private async nodesOf(from: number, to: number, of: "slices" | "samples"): Promise<Flame> {
    const tracks = tracksOf(this.app, of);
    return tracks?.length === 0 ? { unit: "ns", nodes: [] } : this.app.source.flame(from, to, of, tracks);
  }

  // Zooms the new graph to the same callers as the previous one, as far as it has them.
  private take(flame: Flame): void {
    const path = [this.zoom, ...callersOf(this.frames, this.zoom)].map((frame) => this.frames[frame].name).reverse();
    this.frames = framesOf(flame);
    this.unit = flame.unit;
    this.zoom = this.findPath(path);
    this.current = this.zoom;
    this.hovered = -1;
    this.tip.hidden = true;
    const none =
      this.of === "samples" ? "No samples in this range." : "No slices in this range.";
    this.say(flame.nodes.length > 0 ? "" : none);
    this.show();
  }

  private findPath(names: string[]): number {
    let at = 0;
    for (const name of names.slice(1)) {
      const next = this.frames[at].children.find((child) => this.frames[child].name === name);
      if (next === undefined) break;
      at = next;
    }
    return at;
  }

  private say(text: string): void {
    this.empty.textContent = text;
    this.empty.hidden = text === "";
    this.canvas.node.hidden = text !== "";
  }

  // Returns the text to highlight: that of the panel's own box, else that of the search.
  private wanted(): string {
    const text = this.find.value || this.app.state.search.replace(/^name:/, "");
    return /^(category|arg(\.[^:]*)?):/.test(text) ? "" : text.trim().toLowerCase();
  }

  private draw(): void {
    const { frames, zoom, current, hovered, bright } = this;
    this.canvas.show({ frames, zoom, current, hovered, bright });
  }

  // A text that matches no frame dims none.
  private highlight(): void {
    const text = this.wanted();
    const has = (name: string) => name.toLowerCase().includes(text);
    const sum = text === "" ? 0 : matched(this.frames, has);
    this.bright = sum > 0 ? has : () => true;
    this.share.textContent = text === "" ? "" : sum > 0 ? percent(sum, this.frames[0].total) : "no match";
    this.draw();
  }

  private show(): void {
    const { frames, zoom, current } = this;
    this.highlight();
    this.out.disabled = zoom === 0;
    this.goSearch.disabled = current === 0;
    this.about.textContent = frames.length > 1 ? this.sentence(current) : "";
    this.about.title = this.about.textContent;
    this.fillTree();
  }

  private amount(n: number): string {
    return this.unit === "ns" ? duration(n) : plural(n, count(n), "sample");
  }

  private figures(frame: Frame): [string, string][] {
    const whole = this.frames[0].total;
    const lines: [string, string][] = [
      ["Total", `${this.amount(frame.total)} (${percent(frame.total, whole)})`],
      ["Self", `${this.amount(frame.self)} (${percent(frame.self, whole)})`],
    ];
    if (this.unit === "ns") lines.push(["Count", count(frame.count)]);
    return lines;
  }

  private sentence(at: number): string {
    const frame = this.frames[at];
    return [frame.name, ...this.figures(frame).map(([key, value]) => `${key.toLowerCase()} ${value}`)].join(" · ");
  }

  private hover(event: MouseEvent | null): void {
    const box = event && this.canvas.boxAt(event.clientX, event.clientY);
    this.hovered = box ? box.frame : -1;
    this.tip.hidden = !box;
    if (box && event) this.fillTip(box.frame, event);
    this.draw();
  }

  private fillTip(at: number, event: MouseEvent): void {
    const frame = this.frames[at];
    const lines = frame ? this.figures(frame).map(([key, value]) => element("div", {}, `${key} ${value}`)) : [];
    this.tip.replaceChildren(
      element("strong", {}, frame ? frame.name : "Several frames, too narrow to show"),
      ...lines,
    );
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    this.tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 8))}px`;
    this.tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 8))}px`;
  }

  private press(event: MouseEvent): void {
    const box = this.canvas.boxAt(event.clientX, event.clientY);
    if (!box || box.frame < 0) return;
    this.current = box.frame;
    this.zoomTo(box.frame);
  }

  private zoomTo(frame: number): void {
    this.zoom = frame;
    this.show();
    this.canvas.reveal(this.current);
    this.app.announce(`Zoomed to ${this.sentence(frame)}`);
  }

  private zoomOut(): void {
    this.zoomTo(Math.max(0, this.frames[this.zoom].parent));
  }

  private moveTo(frame: number | undefined): void {
    if (frame === undefined || frame < 0) return;
    this.current = frame;
    const inside = frame === this.zoom || callersOf(this.frames, frame).includes(this.zoom);
    if (!inside) this.zoom = frame;
    this.show();
    this.canvas.reveal(frame);
  }

  private beside(step: number): number | undefined {
    const siblings = this.frames[this.frames[this.current].parent]?.children ?? [];
    return siblings[siblings.indexOf(this.current) + step];
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const acts: Record<string, () => void> = {
      ArrowDown: () => this.moveTo(this.frames[this.current].children[0]),
      ArrowUp: () => this.moveTo(this.frames[this.current].parent),
      ArrowLeft: () => this.moveTo(this.beside(-1)),
      ArrowRight: () => this.moveTo(this.beside(1)),
      Home: () => this.moveTo(0),
      Enter: () => this.zoomTo(this.current),
      Backspace: () => this.zoomOut(),
      Escape: () => this.zoomOut(),
    };
    const act = acts[event.key];
    if (!act || (event.key === "Escape" && this.zoom === 0)) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  }

  // Lists the callers, the frame with its siblings, and its callees.
  private fillTree(): void {
    const { frames, current } = this;
    const own = frames[current];
    const beside = current > 0 ? frames[own.parent].children.slice(0, NEIGHBOURS) : [0];
    if (!beside.includes(current)) beside.push(current);
    const items = callersOf(frames, current)
      .reverse()
      .map((frame) => this.item(frame));
    for (const frame of beside) {
      items.push(this.item(frame));
      if (frame === current) items.push(...own.children.slice(0, NEIGHBOURS).map((child) => this.item(child)));
    }
    this.tree.replaceChildren(...items);
    this.canvas.node.setAttribute("aria-activedescendant", `flame-frame-${current}`);
  }

  private item(frame: number): HTMLElement {
    return element(
      "li",
      {
        id: `flame-frame-${frame}`,
        role: "treeitem",
        "aria-level": this.frames[frame].depth + 1,
        "aria-selected": String(frame === this.current),
        "aria-expanded": this.frames[frame].children.length > 0 ? String(frame === this.current) : undefined,
      },
      this.sentence(frame),
    );
  }
}

export const flame: Panel = (app) => new FlamePanel(app).node;
