// SPDX-License-Identifier: MIT
// flame_layout.ts: the layout of a flame graph. Of the frames with the same caller the widest comes first; frame 0 is
// the whole range. Pure arithmetic: knows nothing of colours or the page.
import type { Flame } from "../protocol";

export interface Frame {
  name: string;
  count: number;
  total: number;
  self: number;
  parent: number; // -1 for frame 0
  depth: number;
  start: number; // position and width, in the unit of totals
  width: number;
  children: number[]; // widest first
}

export interface Box {
  frame: number; // -1: several, too narrow to show
  x: number;
  width: number;
  depth: number;
}

const NARROW_PX = 1;

function frameOf(node: Flame["nodes"][number]): Frame {
  return { ...node, parent: node.parent + 1, depth: 0, start: 0, width: 0, children: [] };
}

export function framesOf(flame: Flame): Frame[] {
  const all: Frame = {
    name: "all",
    count: 0,
    total: 0,
    self: 0,
    parent: -1,
    depth: 0,
    start: 0,
    width: 0,
    children: [],
  };
  const frames = [all, ...flame.nodes.map(frameOf)];
  for (let i = 1; i < frames.length; i++) {
    const parent = frames[frames[i].parent];
    frames[i].depth = parent.depth + 1;
    parent.children.push(i);
    if (parent === all) {
      all.total += frames[i].total;
      all.count += frames[i].count;
    }
  }
  all.width = all.total;
  for (const frame of frames) placeChildren(frames, frame);
  return frames;
}

// Concurrent children may together last longer than their parent: then all are narrowed to fit.
function placeChildren(frames: Frame[], parent: Frame): void {
  parent.children.sort((a, b) => frames[b].total - frames[a].total);
  const sum = parent.children.reduce((all, child) => all + frames[child].total, 0);
  const scale = sum > 0 ? Math.min(parent.width / sum, parent.width / Math.max(parent.total, 1)) : 0;
  let start = parent.start;
  for (const child of parent.children) {
    frames[child].start = start;
    frames[child].width = frames[child].total * scale;
    start += frames[child].width;
  }
}

export function depthOf(frames: Frame[]): number {
  return frames.reduce((most, frame) => Math.max(most, frame.depth), 0) + 1;
}

export function callersOf(frames: Frame[], frame: number): number[] {
  const chain: number[] = [];
  for (let at = frames[frame]?.parent ?? -1; at >= 0; at = frames[at].parent) chain.push(at);
  return chain;
}

// Returns the boxes to draw when frame `zoom` is as wide as the picture: its callers above it, and everything in it.
export function boxesOf(frames: Frame[], zoom: number, pixels: number): Box[] {
  const boxes: Box[] = [zoom, ...callersOf(frames, zoom)].map((frame) => ({
    frame,
    x: 0,
    width: pixels,
    depth: frames[frame].depth,
  }));
  const top = frames[zoom];
  const scale = top.width > 0 ? pixels / top.width : 0;
  const open = [zoom];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const box of boxesIn(frames, frames[at], top.start, scale)) {
      boxes.push(box);
      if (box.frame >= 0) open.push(box.frame);
    }
  }
  return boxes;
}

function boxesIn(frames: Frame[], parent: Frame, from: number, scale: number): Box[] {
  const boxes: Box[] = [];
  for (const child of parent.children) {
    const { start, width, depth } = frames[child];
    const x = (start - from) * scale;
    if (width * scale < NARROW_PX) {
      const last = frames[parent.children[parent.children.length - 1]];
      boxes.push({ frame: -1, x, width: (last.start + last.width - start) * scale, depth });
      break;
    }
    boxes.push({ frame: child, x, width: width * scale, depth });
  }
  return boxes;
}

// Sums the totals of the frames that match, each counted once: not again inside another match.
export function matched(frames: Frame[], matches: (name: string) => boolean): number {
  const within = new Array<boolean>(frames.length).fill(false);
  let sum = 0;
  for (let i = 1; i < frames.length; i++) {
    const { parent, name, total } = frames[i];
    const own = matches(name);
    if (own && !within[parent]) sum += total;
    within[i] = own || within[parent];
  }
  return sum;
}
