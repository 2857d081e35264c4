// SPDX-License-Identifier: MIT
// hit.ts: finds what is under the pointer.
import { ITEM_INSTANT, type Kind, type Track } from "../protocol";
import type { Axis } from "./axis";
import { itemAt, pieces, tileNs, type Piece } from "./items";
import type { Panes } from "./panes";
import type { Spot } from "./picture";
import type { Scene } from "./scene";
import { OVERLAY, type Band, type Tree } from "./tree";

export interface Hit extends Spot {
  kind: Kind;
  id: number;
  name: string;
  count: number; // more than 1: merged, and the rest describes the longest
  value?: { low: number; high: number; unit: string }; // of a counter
  of: Track;
}

const SLACK = 4; // CSS pixels of tolerance beside an item

// x and y: CSS pixels from the canvas' corner. Returns null if nothing is there.
export function hitAt(scene: Scene, axis: Axis, panes: Panes, tree: Tree, x: number, y: number): Hit | null {
  const place = panes.at(y);
  if (!place) return null;
  const inner = y - place.y;
  const bands = tree.bandsOf(place.entry);
  const band = bands.find((one) => inner >= one.y && inner < one.y + one.rows * one.rowHeight);
  if (!band) return null;
  const ns = axis.time(x * scene.dpr);
  const row = band.row + Math.floor((inner - band.y) / band.rowHeight);
  const piece = pieceAt(scene, axis, band, ns);
  const track = scene.tracks[band.track] ?? place.entry.track;
  if (!piece) return null;
  if (band.kind === "counter") return valueAt(track, piece, ns);
  return itemHit(scene, track, band, piece, row, ns, SLACK * scene.dpr * axis.nsPerPx);
}

function pieceAt(scene: Scene, axis: Axis, band: Band, ns: number): Piece | undefined {
  if (band.track === OVERLAY) {
    const tile = scene.tile(OVERLAY, 0, 0);
    return tile && { tile, from: -Infinity, to: Infinity };
  }
  const { list } = pieces(scene.tile, band.track, axis.level, Math.floor(ns / tileNs(axis.level)));
  return list.find(({ from, to }) => ns >= from && ns < to);
}

function itemHit(
  scene: Scene,
  of: Track,
  band: Band,
  piece: Piece,
  row: number,
  ns: number,
  slack: number,
): Hit | null {
  const { items } = piece.tile;
  const i = items ? itemAt(items, row, ns, slack) : -1;
  if (!items || i < 0) return null;
  return {
    kind: band.kind,
    id: items.event[i],
    name: scene.text(items.name[i]),
    count: items.merged[i],
    track: band.track,
    row,
    ts: items.begin[i],
    dur: items.flags[i] & ITEM_INSTANT ? 0 : items.dur[i],
    of,
  };
}

function valueAt(of: Track, piece: Piece, ns: number): Hit | null {
  const { points } = piece.tile;
  if (!points?.count || ns < points.at[0]) return null;
  let i = points.count - 1;
  while (i > 0 && points.at[i] > ns) i--;
  const value = { low: points.min[i], high: points.max[i], unit: of.unit ?? "" };
  const next = i + 1 < points.count ? points.at[i + 1] : ns;
  const ts = points.at[i];
  return { kind: "counter", id: -1, name: of.name, count: 1, track: of.id, row: 0, ts, dur: next - ts, value, of };
}

