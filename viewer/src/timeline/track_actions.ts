// SPDX-License-Identifier: MIT
// track_actions.ts: the actions on tracks: fold, pin, hide, move. All change the state.
import type { App } from "../app";
import type { Track } from "../protocol";
import type { TrackActions } from "./heads";
import { OVERLAY, type Tree } from "./tree";

const without = (list: readonly string[], key: string): string[] => list.filter((one) => one !== key);

// Returns `order` without its entries for a track.
function unmoved(order: readonly string[], key: string): string[] {
  const left: string[] = [];
  for (let i = 0; i + 1 < order.length; i += 2) if (order[i] !== key) left.push(order[i], order[i + 1]);
  return left;
}

export function trackActions(app: App, tree: () => Tree): TrackActions {
  const movePinned = (track: Track, before: Track | null): void => {
    const left = without(app.state.pinned, track.key);
    const at = before ? left.indexOf(before.key) : left.length;
    if (at >= 0) app.set({ pinned: [...left.slice(0, at), track.key, ...left.slice(at)] });
  };
  const move = (track: Track, before: Track | null): void => {
    if (app.state.pinned.includes(track.key)) movePinned(track, before);
    else app.set({ order: [...unmoved(app.state.order, track.key), track.key, before?.key ?? "$"] });
  };
  return {
    move,
    fold(track, folded = !tree().isFolded(track, app.state)) {
      app.set({ folded: { ...app.state.folded, [track.key]: folded } });
    },
    pin(track) {
      if (track.id === OVERLAY) {
        app.setOverlay(null);
        return;
      }
      const { pinned } = app.state;
      const isPinned = pinned.includes(track.key);
      app.set({ pinned: isPinned ? without(pinned, track.key) : [...pinned, track.key] });
      app.announce(`${track.name} ${isPinned ? "unpinned" : "pinned"}`);
    },
    hide(track) {
      if (track.id === OVERLAY) app.setOverlay(null);
      else app.set({ hidden: [...without(app.state.hidden, track.key), track.key] });
      app.announce(`${track.name} hidden`);
    },
    step(track, by) {
      const { pinned, order } = app.state;
      const isPinned = pinned.includes(track.key);
      const keys = isPinned ? pinned : tree().siblings(track, order).map(({ key }) => key);
      const to = keys.indexOf(track.key) + by;
      if (to < 0 || to >= keys.length) return;
      const beforeKey = keys[by < 0 ? to : to + 1];
      move(track, app.trace.tracks.find(({ key }) => key === beforeKey) ?? null);
      app.announce(`${track.name} moved ${by < 0 ? "up" : "down"}`);
    },
  };
}
