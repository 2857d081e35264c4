// SPDX-License-Identifier: MIT
// panes.ts: the two lists of tracks, one above the other: the pinned ones and the tree. Each scrolls separately; one
// canvas covers both. Knows where a track is on it, and which track is at a position.
import type { State } from "../app";
import type { Track } from "../protocol";
import { element } from "../panels/dom";
import { Heads, type TrackActions } from "./heads";
import { entryAt, OVERLAY, PAD, ROW, type Entry, type Tree } from "./tree";

export interface Pane {
  heads: Heads;
  entries: Entry[];
  top: number; // CSS pixels, in the timeline
  height: number;
  scroll: number; // scroll position, cached: asking the element may cost a layout
}

export interface Place {
  pane: Pane;
  entry: Entry;
  y: number; // of the entry's top, in the timeline
}

function overlayEntry(name: string, rows: number): Entry {
  const track: Track = { id: OVERLAY, parent: -1, kind: "slices", key: "overlay", name, rows, events: rows };
  const height = Math.max(1, rows) * ROW + 2 * PAD;
  return { track, depth: 0, y: 0, height, folded: false, foldable: false, bands: null };
}

export class Panes {
  readonly pinned: Pane;
  readonly main: Pane;
  private places = new Map<number, { pane: Pane; entry: Entry }>();

  constructor(actions: TrackActions) {
    const pane = (id: string, label: string): HTMLElement =>
      element("div", { class: "pane", id, role: "tree", "aria-label": label });
    const make = (id: string, label: string, isPinned: boolean): Pane => ({
      heads: new Heads(pane(id, label), actions, isPinned),
      entries: [],
      top: 0,
      height: 0,
      scroll: 0,
    });
    this.pinned = make("pinned", "Pinned tracks", true);
    this.main = make("tracks", "Tracks", false);
  }

  get both(): Pane[] {
    return [this.pinned, this.main];
  }

  // Rebuilds both lists. The track at the top of the tree stays there.
  list(tree: Tree, state: Readonly<State>, overlay: { name: string; rows: number } | null): void {
    const anchor = this.anchor();
    const { pinned, main } = tree.entries(state);
    if (overlay) pinned.unshift(overlayEntry(overlay.name, overlay.rows));
    let y = 0;
    for (const entry of pinned) {
      entry.y = y;
      y += entry.height;
    }
    this.pinned.entries = pinned;
    this.main.entries = main;
    this.places = new Map();
    for (const pane of this.both) {
      for (const entry of pane.entries) this.places.set(entry.track.id, { pane, entry });
      pane.heads.setEntries(pane.entries);
    }
    this.measure();
    if (anchor) this.scrollTo(anchor.key, anchor.shift);
    this.render();
  }

  measure(): void {
    const own = this.pinned.heads.pane.parentElement?.getBoundingClientRect().top ?? 0;
    for (const pane of this.both) {
      const box = pane.heads.pane.getBoundingClientRect();
      pane.height = pane.heads.pane.clientHeight;
      pane.top = pane.height ? box.top - own : 0;
      pane.scroll = pane.heads.pane.scrollTop;
    }
  }

  // Scrolls as far as possible.
  scroll(pane: Pane, to: number): void {
    pane.heads.pane.scrollTop = to;
    pane.scroll = pane.heads.pane.scrollTop;
  }

  // Renders the elements of the visible part.
  render(): void {
    for (const pane of this.both) pane.heads.render(pane.scroll, pane.height);
  }

  // Returns the track at the top of the tree, and how far it is scrolled past.
  anchor(): { key: string; shift: number } | null {
    const top = this.main.scroll;
    const entry = this.main.entries[entryAt(this.main.entries, top)];
    return entry && top > 0 ? { key: entry.track.key, shift: top - entry.y } : null;
  }

  // The same as text for the state, and back.
  get scrolled(): string {
    const anchor = this.anchor();
    return anchor ? `${anchor.key}~${Math.round(anchor.shift)}` : "";
  }

  scrollBack(text: string): void {
    const [, key, shift] = /^(.*?)(?:~(\d+))?$/s.exec(text) ?? [];
    this.scrollTo(key, Number(shift ?? 0));
  }

  scrollTo(key: string, shift = 0): void {
    const entry = this.main.entries.find(({ track }) => track.key === key);
    this.scroll(this.main, entry ? entry.y + shift : 0);
  }

  // Returns where a track is, or the nearest group that it is folded into.
  place(track: Track | undefined, tracks: Track[]): Place | null {
    for (let at = track; at; at = tracks[at.parent]) {
      const found = this.places.get(at.id);
      if (!found) continue;
      const { pane, entry } = found;
      return { pane, entry, y: pane.top + entry.y - pane.scroll };
    }
    return null;
  }

  at(y: number): Place | null {
    const pane = this.both.find(({ top, height }) => y >= top && y < top + height);
    if (!pane) return null;
    const inner = y - pane.top + pane.scroll;
    const entry = pane.entries[entryAt(pane.entries, inner)];
    return entry && inner >= entry.y ? { pane, entry, y: pane.top + entry.y - pane.scroll } : null;
  }

  // Returns the visible entries, top to bottom.
  inSight(pane: Pane): Entry[] {
    const top = pane.scroll;
    const found: Entry[] = [];
    for (let i = entryAt(pane.entries, top); i < pane.entries.length && pane.height; i++) {
      if (pane.entries[i].y >= top + pane.height) break;
      found.push(pane.entries[i]);
    }
    return found;
  }

  // Scrolls a row of a track to the middle unless it is visible.
  reveal(track: Track, tracks: Track[], y: number, height: number): void {
    const place = this.place(track, tracks);
    if (!place) return;
    const { pane, entry } = place;
    const inner = entry.y + Math.min(y, entry.height - height);
    if (inner >= pane.scroll + 4 && inner + height <= pane.scroll + pane.height - 4) return;
    this.scroll(pane, inner - (pane.height - height) / 2);
  }
}
