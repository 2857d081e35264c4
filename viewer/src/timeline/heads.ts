// SPDX-License-Identifier: MIT
// heads.ts: the names of the tracks beside the canvas: a tree of which only the visible part is in the document. A name
// can be folded, pinned, hidden and dragged. For the keyboard and screen readers it is an ARIA tree, in which Tab
// reaches one item at a time.
import { count, value } from "../format";
import type { Track } from "../protocol";
import { element } from "../panels/dom";
import { icon } from "../icons";
import { entryAt, type Entry } from "./tree";

export interface TrackActions {
  fold(track: Track, folded?: boolean): void;
  pin(track: Track): void;
  hide(track: Track): void;
  // Puts a track before another one of the same parent; null: at the end.
  move(track: Track, before: Track | null): void;
  step(track: Track, by: -1 | 1): void;
}

const SPARE = 400; // CSS pixels above and below the visible part

export class Heads {
  private readonly shown = new Map<string, HTMLElement>();
  private entries: Entry[] = [];
  private last = ""; // arguments of the last render()
  private aim = ""; // key of the item that Tab reaches
  private readonly space = element("div", { class: "pane-space" });

  constructor(
    readonly pane: HTMLElement,
    private readonly actions: TrackActions,
    private readonly isPinned: boolean,
  ) {
    pane.append(this.space);
    pane.addEventListener("keydown", (event) => this.onKey(event));
    pane.addEventListener("focusin", (event) => this.onFocus(event));
    pane.addEventListener("pointerdown", (event) => this.onDrag(event));
  }

  // Replaces the list; elements of tracks that are still shown are kept.
  setEntries(entries: Entry[]): void {
    this.entries = entries;
    const last = entries[entries.length - 1];
    this.space.style.height = `${last ? last.y + last.height : 0}px`;
    this.pane.classList.toggle("empty", entries.length === 0);
    if (!entries.some(({ track }) => track.key === this.aim)) this.aim = entries[0]?.track.key ?? "";
    for (const [key, head] of this.shown) {
      if (head.contains(document.activeElement)) continue; // keep the focused element
      head.remove();
      this.shown.delete(key);
    }
    this.last = "";
  }

  // Renders the visible part of a pane scrolled to `top`.
  render(top: number, height: number): void {
    if (this.last === `${top} ${height}`) return;
    this.last = `${top} ${height}`;
    const wanted = new Set<string>();
    for (let i = entryAt(this.entries, top - SPARE); i < this.entries.length; i++) {
      const entry = this.entries[i];
      if (entry.y > top + height + SPARE) break;
      wanted.add(entry.track.key);
      this.show(entry);
    }
    for (const [key, head] of this.shown) {
      if (wanted.has(key) || (head.contains(document.activeElement) && this.find(key))) continue;
      head.remove();
      this.shown.delete(key);
    }
  }

  private find(key: string): Entry | undefined {
    return this.entries.find(({ track }) => track.key === key);
  }

  private show(entry: Entry): void {
    const { track } = entry;
    let head = this.shown.get(track.key);
    if (!head) {
      head = this.make(entry);
      this.shown.set(track.key, head);
      this.space.append(head);
    }
    head.style.top = `${entry.y}px`;
    head.style.height = `${entry.height}px`;
    head.tabIndex = track.key === this.aim ? 0 : -1;
    if (entry.foldable) {
      head.setAttribute("aria-expanded", String(!entry.folded));
      const fold = head.querySelector<HTMLElement>(".fold");
      if (fold) fold.textContent = entry.folded ? "▸" : "▾";
    }
  }

  private make({ track, depth, foldable }: Entry): HTMLElement {
    const fold = foldable
      ? this.tool("fold", `Fold ${track.name}`, null, () => this.actions.fold(track))
      : element("span", { class: "fold-space" });
    const pin = this.tool("pin", `Pin ${track.name}`, "pin", () => this.actions.pin(track));
    pin.setAttribute("aria-pressed", String(this.isPinned));
    const hide = this.tool("hide", `Hide ${track.name}`, "hide", () => this.actions.hide(track));
    const name = element("span", { class: "name", title: titleOf(track) }, track.name || "(no name)");
    const most = track.max === undefined ? "" : value(track.max, track.unit);
    const note = most && element("span", { class: "note", title: "Maximum" }, most);
    const tools = element("span", { class: "tools" }, pin, hide);
    const head = element("div", { class: "head" }, fold, name, note || null, tools);
    head.style.paddingLeft = `${4 + depth * 12}px`;
    const classes = `track ${track.kind === "group" ? "group" : ""} ${this.isPinned ? "pinned" : ""}`;
    const label = `${track.name}, ${kindName(track)}`;
    return element(
      "div",
      { class: classes, role: "treeitem", "data-key": track.key, "aria-label": label, "aria-level": depth + 1 },
      head,
    );
  }

  private tool(kind: string, label: string, picture: "pin" | "hide" | null, press: () => void): HTMLButtonElement {
    const button = element("button", { type: "button", class: kind, "aria-label": label, title: label, tabindex: -1 });
    if (picture) button.append(icon(picture));
    button.addEventListener("click", (event) => {
      event.stopPropagation();
      press();
    });
    return button;
  }

  private onFocus(event: FocusEvent): void {
    const key = (event.target as HTMLElement).closest<HTMLElement>(".track")?.dataset.key;
    if (!key) return;
    this.aim = key;
    for (const [other, head] of this.shown) {
      head.tabIndex = other === key ? 0 : -1;
      // Tab also reaches the buttons of the focused item.
      for (const button of head.querySelectorAll("button")) button.tabIndex = other === key ? 0 : -1;
    }
  }

  // The focused track, if any.
  get focused(): Track | null {
    const key = (document.activeElement as HTMLElement | null)?.closest<HTMLElement>(".track")?.dataset.key;
    return key && this.pane.contains(document.activeElement) ? (this.find(key)?.track ?? null) : null;
  }

  focus(key: string): void {
    const entry = this.find(key);
    if (!entry) return;
    this.scrollTo(entry);
    this.aim = key;
    this.render(this.pane.scrollTop, this.pane.clientHeight);
    this.shown.get(key)?.focus({ preventScroll: true });
  }

  scrollTo(entry: Entry): void {
    const { scrollTop, clientHeight } = this.pane;
    const bottom = entry.y + entry.height;
    if (entry.y < scrollTop) this.pane.scrollTop = entry.y;
    else if (bottom > scrollTop + clientHeight) this.pane.scrollTop = bottom - clientHeight;
  }

  private onKey(event: KeyboardEvent): void {
    const head = event.target as HTMLElement;
    if (!head.classList.contains("track") || event.ctrlKey || event.metaKey) return;
    const at = this.entries.findIndex(({ track }) => track.key === head.dataset.key);
    if (at >= 0 && this.press(event, at)) {
      event.preventDefault();
      event.stopPropagation();
    }
  }

  private press(event: KeyboardEvent, at: number): boolean {
    const { track, folded, foldable, depth } = this.entries[at];
    const last = this.entries.length - 1;
    const go = (to: number): void => this.focus(this.entries[Math.min(last, Math.max(0, to))].track.key);
    switch (event.key) {
      case "ArrowDown":
      case "ArrowUp": {
        const by = event.key === "ArrowDown" ? 1 : -1;
        if (event.altKey) this.actions.step(track, by);
        else go(at + by);
        if (event.altKey) this.focus(track.key);
        return true;
      }
      case "ArrowRight":
        if (foldable && folded) this.actions.fold(track, false);
        else go(at + 1);
        return true;
      case "ArrowLeft":
        if (foldable && !folded) this.actions.fold(track, true);
        else go(this.entries.findLastIndex((entry, i) => i < at && entry.depth < depth));
        return true;
      case "Home":
        go(0);
        return true;
      case "End":
        go(this.entries.length - 1);
        return true;
      case "Enter":
      case " ":
        if (foldable) this.actions.fold(track);
        return foldable;
      default:
        return false;
    }
  }

  // Drags a name to another place among its siblings.
  private onDrag(event: PointerEvent): void {
    const head = (event.target as HTMLElement).closest<HTMLElement>(".track");
    const entry = head && this.find(head.dataset.key ?? "");
    if (!entry || event.button !== 0 || (event.target as HTMLElement).closest("button")) return;
    const start = event.clientY;
    let place: { head: HTMLElement; track: Track; before: boolean } | null = null;
    const move = (at: PointerEvent): void => {
      this.unmark();
      if (Math.abs(at.clientY - start) < 5) return;
      place = this.placeAt(entry, at.clientY);
      place?.head.classList.add(place.before ? "drop-before" : "drop-after");
    };
    const up = (at: PointerEvent): void => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", up);
      this.unmark();
      if (place && at.type === "pointerup") this.drop(entry, place.track, place.before);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", up);
  }

  private unmark(): void {
    for (const head of this.shown.values()) head.classList.remove("drop-before", "drop-after");
  }

  private placeAt(moved: Entry, clientY: number): { head: HTMLElement; track: Track; before: boolean } | null {
    const y = clientY - this.pane.getBoundingClientRect().top + this.pane.scrollTop;
    const entry = this.entries[entryAt(this.entries, y)];
    const head = entry && this.shown.get(entry.track.key);
    const isBeside = this.isPinned ? entry?.depth === 0 : entry?.track.parent === moved.track.parent;
    if (!head || !isBeside || entry === moved) return null;
    return { head, track: entry.track, before: y < entry.y + entry.height / 2 };
  }

  private drop(moved: Entry, target: Track, before: boolean): void {
    const depth = moved.depth;
    const at = this.entries.findIndex(({ track }) => track === target);
    const next = this.entries.find((entry, i) => i > at && entry.depth <= depth);
    const fits = next && next.depth === depth && (this.isPinned || next.track.parent === target.parent);
    this.actions.move(moved.track, before ? target : fits ? next.track : null);
  }
}

const kinds: Record<string, string> = {
  group: "group",
  slices: "slices",
  counter: "counter",
  sched: "CPU scheduling",
  state: "thread states",
  samples: "call stacks",
  loss: "losses",
};

const kindName = (track: Track): string => kinds[track.kind] ?? track.kind;

function titleOf(track: Track): string {
  const parts = [track.name, kindName(track)];
  if (track.pid !== undefined) parts.push(`process ${track.pid}`);
  if (track.tid !== undefined) parts.push(`thread ${track.tid}`);
  if (track.events) parts.push(`${count(track.events)} events`);
  return parts.join("\n");
}
