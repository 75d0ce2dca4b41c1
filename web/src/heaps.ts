// SPDX-License-Identifier: Apache-2.0
// Allocators by name (cairn run --wrap): a page in which one of them stands in the place of malloc's heap, so that every
// screen is of it. What is known of malloc's heap alone is left out: findings, rounding, reallocations, RSS.

import type { ContextSet, Facts, Page, Profile, Shape, Thread } from "./data";

const STACK_VALUES = [
  "peak_bytes",
  "peak_blocks",
  "at_exit_bytes",
  "at_exit_blocks",
  "allocated_bytes",
  "allocations",
  "freed_bytes",
  "frees",
] as const;
type Values = Record<(typeof STACK_VALUES)[number], number>;

/** The same by the names that cells and contexts have. */
const CELL_VALUES = {
  peak: "peak_bytes",
  exit: "at_exit_bytes",
  allocated: "allocated_bytes",
  calls: "allocations",
} as const;

const OF_MALLOC = /^(stack|cell|slot|point|heap|heap_point)\.|^matching$/,
  POINT_VALUES = ["index", "high", "last", "allocated", "calls"];

/** A stack of a heap, or its part of a thread, a context and a name. */
interface Row extends Values {
  index: number; // among the rows of all heaps
  node: number;
  slot: number;
  context: number;
}

/** The names of all heaps of the page, in the order in which they come. */
export function heapNames(page: Page): string[] {
  return [...new Set(page.profiles.flatMap((profile) => profile.heaps.map((one) => one.name)))];
}

function rowsOf({ heaps, numbers }: Profile, name: string): Row[] {
  const column = (id: string) => numbers.get("heap." + id) ?? new Float64Array(),
    own = heaps.findIndex((one) => one.name === name),
    values = STACK_VALUES.map((id) => column(id)),
    [names, nodes, slots, contexts] = ["name", "node", "slot", "context"].map(column),
    rows: Row[] = [];
  let node = 0;
  for (let i = 0; i < names.length; i++) {
    node += nodes[i];
    if (names[i] !== own && heaps[names[i]].heap !== own) continue;
    const row = { index: i, node, slot: slots[i], context: contexts[i] } as Row;
    STACK_VALUES.forEach((id, at) => (row[id] = values[at][i]));
    rows.push(row);
  }
  return rows;
}

/** A heap over time, in the form of malloc's. */
function pointsOf({ heaps, numbers }: Profile, name: string): [string, Float64Array][] {
  const own = heaps.findIndex((one) => one.name === name),
    of = numbers.get("heap_point.heap") ?? new Float64Array();
  return POINT_VALUES.map((id) => [
    "point." + id,
    (numbers.get("heap_point." + id) ?? new Float64Array()).filter((_, i) => of[i] === own),
  ]);
}

const nothing = (): Values => Object.fromEntries(STACK_VALUES.map((id) => [id, 0])) as Values;

function summed(rows: Values[]): Values {
  const sum = nothing();
  for (const row of rows) for (const id of STACK_VALUES) sum[id] += row[id];
  return sum;
}

/** Rows with the same key together, in order of the first of each. */
function grouped<Key>(rows: Row[], keyOf: (row: Row) => Key): Map<Key, Row[]> {
  const groups = new Map<Key, Row[]>();
  for (const row of rows) {
    const key = keyOf(row),
      known = groups.get(key);
    if (known) known.push(row);
    else groups.set(key, [row]);
  }
  return groups;
}

/** Threads that had a slot one after the other cannot be distinguished: they are one. */
function threadsOf({ facts }: Profile, rows: Row[]): Thread[] {
  return [...grouped(rows, (row) => row.slot)].flatMap(([slot, own]) => {
    const threads = facts.threads.filter((one) => one.slot === slot),
      sum = summed(own);
    if (!threads.length) return [];
    return {
      ...threads[0],
      name: [...new Set(threads.map((one) => one.name).filter(Boolean))].join(", "),
      end_ns: threads.some((one) => one.end_ns === null) ? null : Math.max(...threads.map((one) => one.end_ns ?? 0)),
      allocations: sum.allocations,
      allocated_bytes: sum.allocated_bytes,
      at_exit_bytes: sum.at_exit_bytes,
      at_exit_estimate: undefined,
      account: undefined,
    };
  });
}

function contextsOf({ contexts }: Profile, rows: Row[]): ContextSet[] {
  const groups = grouped(rows, (row) => row.context);
  return contexts.map((set, i) => {
    const sum = summed(groups.get(i) ?? []);
    const values = Object.entries(CELL_VALUES).map(([id, from]) => [id, sum[from]]);
    return { ...set, ...Object.fromEntries(values) };
  });
}

function factsOf(profile: Profile, name: string, rows: Row[]): Facts {
  const { facts, heaps } = profile,
    sum = summed(rows);
  return {
    ...facts,
    heap: name,
    point_ns: heaps.find((one) => one.name === name)?.point_ns ?? 0,
    sampling: undefined,
    empty: rows.length ? null : `the heap ${name} was not used here`,
    at_text: null,
    trust_line: "as its row of --wrap says",
    totals: {
      allocations: sum.allocations,
      frees: sum.frees,
      allocated_bytes: sum.allocated_bytes,
      freed_bytes: sum.freed_bytes,
      failed: 0,
    },
    peak: {
      bytes: sum.peak_bytes,
      blocks: sum.peak_blocks,
      at_ns: heaps.find((one) => one.name === name)?.peak_ns ?? 0,
      error_bytes: 0,
    },
    at_exit: { bytes: sum.at_exit_bytes, blocks: sum.at_exit_blocks },
    rss: { peak_bytes: 0 },
    threads: threadsOf(profile, rows),
    thread_accounts: undefined,
  };
}

/** The rows of each stack, in the order in which stacks come. */
function stacksOf(rows: Row[]): [number, Row[]][] {
  return [...grouped(rows, (row) => row.node)].sort(([a], [b]) => a - b);
}

/** Of each snapshot what keys of rows held more than at the one before, in an array of so many. */
function heldBy({ snapshots, heldByHeaps }: Profile, rows: Row[], count: number, keyOf: (row: Row) => number) {
  if (heldByHeaps.length !== snapshots.length) return [];
  return heldByHeaps.map((changes) => {
    const sums = new Float64Array(count);
    for (const row of rows) if (keyOf(row) >= 0) sums[keyOf(row)] += changes[row.index];
    return sums;
  });
}

function shapesOf({ heapShapes }: Profile, rows: Row[], stackOf: Map<number, number>): Shape[] {
  const stackOfRow = new Map(rows.map((row) => [row.index, stackOf.get(row.node)!])),
    shapes = new Map<number, Shape>();
  for (const { row, sizes, ages_ms } of heapShapes ?? []) {
    const stack = stackOfRow.get(row);
    if (stack === undefined) continue;
    const shape = shapes.get(stack) ?? { stack, sizes: [] };
    shapes.set(stack, shape);
    shape.sizes.push(...sizes);
    if (!ages_ms) continue;
    const ages = (shape.ages_ms ??= []);
    ages_ms.forEach((count, i) => (ages[i] = (ages[i] ?? 0) + count));
  }
  return [...shapes.values()];
}

function bySlot(rows: Row[], id: keyof Values): Float64Array {
  const sums = new Float64Array(rows.reduce((most, { slot }) => Math.max(most, slot + 1), 0));
  for (const row of rows) if (row.slot >= 0) sums[row.slot] += row[id];
  return sums;
}

function numbersOf(profile: Profile, name: string, rows: Row[]): Map<string, Float64Array> {
  const all = new Map([...profile.numbers].filter(([id]) => !OF_MALLOC.test(id)).concat(pointsOf(profile, name))),
    stacks = stacksOf(rows),
    sums = stacks.map(([, own]) => summed(own)),
    stackOf = new Map(stacks.map(([node], i) => [node, i]));
  all.set(
    "stack.node",
    Float64Array.from(stacks, ([node], i) => node - (stacks[i - 1]?.[0] ?? 0)),
  );
  for (const id of STACK_VALUES)
    all.set(
      "stack." + id,
      Float64Array.from(sums, (sum) => sum[id]),
    );
  const cell = (id: string, of: (row: Row) => number) => all.set("cell." + id, Float64Array.from(rows, of));
  cell("stack", (row) => stackOf.get(row.node)!);
  cell("slot", (row) => row.slot);
  cell("context", (row) => row.context);
  for (const [id, from] of Object.entries(CELL_VALUES)) cell(id, (row) => row[from]);
  for (const id of ["peak", "exit"] as const) all.set("slot." + id, bySlot(rows, CELL_VALUES[id]));
  return all;
}

function profileOf(profile: Profile, name: string): Profile {
  const rows = rowsOf(profile, name),
    stacks = stacksOf(rows),
    stackOf = new Map(stacks.map(([node], i) => [node, i])),
    slots = rows.reduce((most, { slot }) => Math.max(most, slot + 1), 0),
    held = heldBy(profile, rows, stacks.length, (row) => stackOf.get(row.node)!);
  return {
    ...profile,
    facts: factsOf(profile, name, rows),
    numbers: numbersOf(profile, name, rows),
    contexts: contextsOf(profile, rows),
    heap: undefined,
    shapes: shapesOf(profile, rows, stackOf),
    findings: [],
    snapshots: held.length ? profile.snapshots : [],
    held,
    heldBySlot: heldBy(profile, rows, slots, (row) => row.slot),
  };
}

export function pageOfHeap(page: Page, name: string): Page {
  return { ...page, profiles: page.profiles.map((profile) => profileOf(profile, name)) };
}
