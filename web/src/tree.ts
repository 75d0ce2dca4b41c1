// SPDX-License-Identifier: Apache-2.0
// Trees of functions in flat arrays. A node's parent has a lower number; node 0 is the root.
// 100,000 stacks are some 10^6 nodes, so nothing here is an object per node.

export class Tree {
  parent = new Int32Array(1024);
  fn = new Int32Array(1024);
  depth = new Int32Array(1024);
  count = 1;
  private slots = new Int32Array(4096).fill(0);

  constructor() {
    this.parent[0] = -1;
    this.fn[0] = -1;
  }

  private hash(parent: number, fn: number): number {
    return (Math.imul(parent, 0x9e3779b1) ^ Math.imul(fn + 1, 0x85ebca6b)) >>> 0;
  }

  private grow(): void {
    const larger = (old: Int32Array) => {
      const copy = new Int32Array(old.length * 2);
      copy.set(old);
      return copy;
    };
    this.parent = larger(this.parent);
    this.fn = larger(this.fn);
    this.depth = larger(this.depth);
    this.slots = new Int32Array(this.parent.length * 4);
    for (let node = 1; node < this.count; node++) this.place(node);
  }

  private place(node: number): void {
    const mask = this.slots.length - 1;
    let at = this.hash(this.parent[node], this.fn[node]) & mask;
    while (this.slots[at]) at = (at + 1) & mask;
    this.slots[at] = node;
  }

  /** The child of `parent` for a function, made if there is none yet. */
  child(parent: number, fn: number): number {
    const mask = this.slots.length - 1;
    let at = this.hash(parent, fn) & mask;
    for (let node; (node = this.slots[at]); at = (at + 1) & mask)
      if (this.parent[node] === parent && this.fn[node] === fn) return node;
    return this.push(parent, fn);
  }

  private push(parent: number, fn: number): number {
    if (this.count === this.parent.length) this.grow();
    const node = this.count++;
    this.parent[node] = parent;
    this.fn[node] = fn;
    this.depth[node] = this.depth[parent] + 1;
    this.place(node);
    return node;
  }

  /** Functions from the outermost to the node's. */
  path(node: number): number[] {
    const path: number[] = [];
    for (; node > 0; node = this.parent[node]) path.push(this.fn[node]);
    return path.reverse();
  }

  isBelow(node: number, ancestor: number): boolean {
    while (this.depth[node] > this.depth[ancestor]) node = this.parent[node];
    return node === ancestor;
  }
}

/**
 * By node: the value; a second one, for colours: what it was before. Of estimates then squares of half
 * their 95 % intervals, which add up, and numbers of samples.
 */
export type Columns = (Float64Array | null)[];

/** A tree with what its nodes hold, and the children of each, the largest first. */
export interface Weighted {
  tree: Tree;
  columns: Columns;
  value: Float64Array; // the first two of them
  other: Float64Array | null;
  self: Float64Array;
  first: Int32Array; // children of node n: order[first[n]] up to order[first[n + 1]]
  order: Int32Array;
  maxDepth: number;
}

function orderChildren(tree: Tree, value: Float64Array): { first: Int32Array; order: Int32Array } {
  const first = new Int32Array(tree.count + 2);
  for (let node = 1; node < tree.count; node++) if (value[node] > 0) first[tree.parent[node] + 2]++;
  for (let i = 2; i < first.length; i++) first[i] += first[i - 1];
  const order = new Int32Array(first[first.length - 1]);
  for (let node = 1; node < tree.count; node++) if (value[node] > 0) order[first[tree.parent[node] + 1]++] = node;
  for (let node = 0; node < tree.count; node++) {
    const from = first[node],
      to = first[node + 1];
    if (to - from > 1) order.subarray(from, to).sort((a, b) => value[b] - value[a] || a - b);
  }
  return { first, order };
}

/** Children of each node, all of them, in the order of their numbers. */
export function childrenOf(parent: Int32Array): { first: Int32Array; order: Int32Array } {
  const first = new Int32Array(parent.length + 2);
  for (let node = 1; node < parent.length; node++) first[parent[node] + 2]++;
  for (let i = 2; i < first.length; i++) first[i] += first[i - 1];
  const order = new Int32Array(parent.length);
  for (let node = 1; node < parent.length; node++) order[first[parent[node] + 1]++] = node;
  return { first, order };
}

/** Adds up what the leaves hold. */
export function weigh(tree: Tree, leaves: Columns): Weighted {
  const columns = leaves.map((own) => {
    const sum = own && own.slice(0, tree.count);
    for (let node = tree.count - 1; sum && node > 0; node--) sum[tree.parent[node]] += sum[node];
    return sum;
  });
  return weighted(tree, columns, leaves[0]!);
}

function weighted(tree: Tree, columns: Columns, self: Float64Array): Weighted {
  const value = columns[0]!;
  let maxDepth = 0;
  for (let node = 1; node < tree.count; node++)
    if (value[node] > 0 && tree.depth[node] > maxDepth) maxDepth = tree.depth[node];
  return { tree, columns, value, other: columns[1], self, ...orderChildren(tree, value), maxDepth };
}

/** The same tree without some functions: what they called is called by their callers. */
export function without(base: Tree, hidden: Set<number>): { tree: Tree; nodeOf: Int32Array } {
  const tree = new Tree();
  const nodeOf = new Int32Array(base.count);
  for (let node = 1; node < base.count; node++) {
    const parent = nodeOf[base.parent[node]];
    nodeOf[node] = hidden.has(base.fn[node]) ? parent : tree.child(parent, base.fn[node]);
  }
  return { tree, nodeOf };
}

/** What some functions call: the tree below their outermost occurrences. */
export function calleesOf(base: Tree, fns: Set<number>): { tree: Tree; nodeOf: Int32Array } {
  const tree = new Tree();
  const nodeOf = new Int32Array(base.count).fill(-1);
  for (let node = 1; node < base.count; node++) {
    const parent = nodeOf[base.parent[node]];
    if (parent > 0) nodeOf[node] = tree.child(parent, base.fn[node]);
    else if (fns.has(base.fn[node])) nodeOf[node] = tree.child(0, base.fn[node]);
  }
  return { tree, nodeOf };
}

/** The outermost occurrences of some functions. */
export function occurrences(base: Tree, fns: Set<number>): number[] {
  const isInside = new Uint8Array(base.count);
  const found: number[] = [];
  for (let node = 1; node < base.count; node++) {
    isInside[node] = isInside[base.parent[node]];
    if (isInside[node] || !fns.has(base.fn[node])) continue;
    isInside[node] = 1;
    found.push(node);
  }
  return found;
}

const INVERTED_DEPTH_MAX = 4000;

/**
 * The tree from some nodes outwards to their callers, of what `columns` have for those. Inverted stacks
 * share little, so what is smaller than `least` has no callers: it would be too thin to be seen.
 */
export function inverted(base: Tree, starts: number[], columns: Columns, least: number): Weighted {
  const tree = new Tree(),
    sums = columns.map((column) => column && [starts.reduce((sum, start) => sum + column[start], 0)]);
  // where each start has come to
  let tasks = [{ node: 0, items: starts.map((start) => ({ start, at: start })) }];
  while (tasks.length) {
    const next: typeof tasks = [];
    for (const { node, items } of tasks) {
      const groups = new Map<number, typeof items>();
      for (const { start, at } of items) {
        if (at <= 0) continue;
        const group = groups.get(base.fn[at]),
          moved = { start, at: base.parent[at] };
        if (group) group.push(moved);
        else groups.set(base.fn[at], [moved]);
      }
      for (const [fn, group] of groups) {
        const child = tree.child(node, fn);
        columns.forEach((column, i) => {
          let sum = 0;
          if (column) for (const { start } of group) sum += column[start];
          if (column) sums[i]![child] = sum;
        });
        if (sums[0]![child] >= least && tree.depth[child] < INVERTED_DEPTH_MAX)
          next.push({ node: child, items: group });
      }
    }
    tasks = next;
  }
  return weighted(
    tree,
    sums.map((sum) => sum && Float64Array.from(sum)),
    new Float64Array(tree.count),
  );
}
