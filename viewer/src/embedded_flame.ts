// SPDX-License-Identifier: MIT
// embedded_flame.ts: the call tree of a range of time with total times: merges slices or samples of the same name in
// the same place, as src/query/tree.c does.
import type { Pacer } from "./embedded_read";
import { select, type SliceRange } from "./embedded_range";
import { firstAt, INSTANT, NONE, type Tables } from "./embedded_tables";
import type { Flame } from "./protocol";

interface Node {
  name: number;
  parent: number; // node or -1
  count: number;
  total: number; // ns, or weight of samples; nodes are sorted by it
}

const NODES_MAX = 20000;

class Tree {
  readonly nodes: Node[] = [];
  private readonly found = new Map<number, number>();

  constructor(private readonly names: number) {}

  child(parent: number, name: number): number {
    const key = (parent + 1) * this.names + name;
    let node = this.found.get(key);
    if (node === undefined) {
      node = this.nodes.push({ name, parent, count: 0, total: 0 }) - 1;
      this.found.set(key, node);
    }
    return node;
  }

  add(node: number, total: number, count: number): void {
    this.nodes[node].total += total;
    this.nodes[node].count += count;
  }
}

// Orders nodes largest first, each before its children.
function inOrder(nodes: Node[], isShown: (node: number) => boolean): number[] {
  const children = new Map<number, number[]>();
  nodes.forEach((node, i) => {
    const siblings = children.get(node.parent);
    if (siblings) siblings.push(i);
    else children.set(node.parent, [i]);
  });
  // Ascending: the last one is popped first.
  for (const siblings of children.values())
    siblings.sort((a, b) => nodes[a].total - nodes[b].total || nodes[a].count - nodes[b].count || b - a);
  const order: number[] = [];
  const stack = [...(children.get(-1) ?? [])];
  for (let node = stack.pop(); node !== undefined && order.length < NODES_MAX; node = stack.pop()) {
    if (!isShown(node)) continue;
    order.push(node);
    for (const child of children.get(node) ?? []) stack.push(child);
  }
  return order;
}

// Returns the total below which a node is left out, to bound their number.
function leastTotal(totals: Float64Array): number {
  return totals.length <= NODES_MAX ? 0 : select(totals.slice(), totals.length - NODES_MAX);
}

function flameOf(tables: Tables, nodes: Node[], unit: Flame["unit"]): Flame {
  const totals = Float64Array.from(nodes, (node) => (unit === "samples" ? node.count : node.total));
  const self = totals.slice();
  nodes.forEach((node, i) => {
    if (node.parent >= 0) self[node.parent] -= totals[i];
  });
  const least = leastTotal(totals);
  const order = inOrder(nodes, (node) => totals[node] >= least);
  const place = new Map(order.map((node, i) => [node, i]));
  return {
    unit,
    nodes: order.map((i) => ({
      name: tables.texts.name(nodes[i].name),
      parent: place.get(nodes[i].parent) ?? -1,
      count: nodes[i].count,
      total: totals[i],
      self: Math.max(0, self[i]), // a child may outlast its parent
    })),
  };
}

export async function flameOfSlices(tables: Tables, range: SliceRange, pacer: Pacer): Promise<Flame> {
  const { slices, texts } = tables;
  const tree = new Tree(texts.count);
  const nodeOf = new Int32Array(range.end).fill(-2); // -2: not looked at yet
  // Returns the node of a slice, or of the nearest slice around it that counts.
  const around = (slice: number): number => {
    let up = slices.parent[slice];
    while (up < slice && nodeOf[up] === -2) up = slices.parent[up];
    return up < slice ? nodeOf[up] : -1;
  };
  await range.each(pacer, (slice) => {
    if (slices.kind[slice] === INSTANT) return;
    const node = tree.child(around(slice), slices.name[slice]);
    nodeOf[slice] = node;
    tree.add(node, range.endOf(slice) - range.beginOf(slice), 1);
  });
  return flameOf(tables, tree.nodes, "ns");
}

export interface SampleRange {
  from: number;
  to: number;
  threads: Set<number> | null; // null: all
}

// Sums a callsite's weight and samples with those of its callees.
function sumsBelow(tables: Tables, range: SampleRange): { weight: Float64Array; samples: Float64Array } {
  const { samples, callsites } = tables;
  const sites = callsites.parent.length;
  const sums = { weight: new Float64Array(sites), samples: new Float64Array(sites) };
  const end = firstAt(samples.ts, range.to);
  for (let i = firstAt(samples.ts, range.from); i < end; i++) {
    const site = samples.callsite[i];
    if (site >= sites || !samples.main[i] || (range.threads && !range.threads.has(samples.thread[i]))) continue;
    sums.weight[site] += samples.weight[i];
    sums.samples[site]++;
  }
  for (let site = sites - 1; site >= 0; site--) {
    const parent = callsites.parent[site];
    if (parent === NONE) continue;
    sums.weight[parent] += sums.weight[site];
    sums.samples[parent] += sums.samples[site];
  }
  return sums;
}

// Rounds halves away from 0, as C's llround().
const whole = (value: number): number => Math.sign(value) * Math.round(Math.abs(value));

export function flameOfSamples(tables: Tables, range: SampleRange): Flame {
  const { callsites, frames } = tables;
  const tree = new Tree(tables.texts.count);
  const sums = sumsBelow(tables, range);
  const nodeOf = new Int32Array(callsites.parent.length).fill(-1);
  for (let site = 0; site < callsites.parent.length; site++) {
    if (!sums.samples[site]) continue;
    const parent = callsites.parent[site];
    const name = frames.name[callsites.frame[site]] ?? 0;
    nodeOf[site] = tree.child(parent === NONE ? -1 : nodeOf[parent], name);
    tree.add(nodeOf[site], whole(sums.weight[site]), sums.samples[site]);
  }
  return flameOf(tables, tree.nodes, "samples");
}
