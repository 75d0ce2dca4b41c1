// SPDX-License-Identifier: Apache-2.0
// What each stack held at the snapshots that the recording kept, at the peak and at the end.

import type { Snapshot, Profile } from "./data";
import * as units from "./units";

export interface History {
  snapshots: Snapshot[];
  values: Float64Array[]; // by snapshot, then by the part's stack
  slots: Float64Array[]; // by snapshot, then by the slot of the thread that allocated
}

/** Sums of changes. */
function summedUp(changes: Float64Array[]): Float64Array[] {
  const all: Float64Array[] = [];
  changes.forEach((own, i) => all.push(own.map((change, at) => change + (all[i - 1]?.[at] ?? 0))));
  return all;
}

/** Null without a snapshot between start and end: peak and end alone are no history. */
export function readHistory(profile: Profile): History | null {
  const { facts, snapshots, held, heldBySlot, numbers } = profile;
  if (!snapshots.length || held.length !== snapshots.length) return null;
  const all = summedUp(held),
    allSlots = summedUp(heldBySlot);
  const points = snapshots.map((snapshot, i) => ({
    snapshot,
    values: all[i],
    slots: allSlots[i] ?? new Float64Array(),
  }));
  const add = (reason: string, at_ns: number, id: string, field: string) => {
    const values = numbers.get("stack." + field),
      slots = numbers.get("slot." + id) ?? new Float64Array();
    if (values && !points.some((point) => point.snapshot.at_ns === at_ns))
      points.push({ snapshot: { at_ns, reason, label: reason }, values, slots });
  };
  add("peak", facts.peak.at_ns, "peak", "peak_bytes");
  add(
    facts.has_ended ? "end" : "now",
    Math.max(facts.process.duration_ns, facts.peak.at_ns, ...snapshots.map((one) => one.at_ns)),
    "exit",
    "at_exit_bytes",
  );
  points.sort((a, b) => a.snapshot.at_ns - b.snapshot.at_ns);
  return {
    snapshots: points.map((point) => point.snapshot),
    values: points.map((point) => point.values),
    slots: points.map((point) => point.slots),
  };
}

export function nearest(history: History, at_ns: number): number {
  let best = 0;
  history.snapshots.forEach((snapshot, i) => {
    if (Math.abs(snapshot.at_ns - at_ns) < Math.abs(history.snapshots[best].at_ns - at_ns)) best = i;
  });
  return best;
}

/** Fills what stacks held at a moment. */
export function heldAt(history: History, at_ns: number, out: Float64Array): void {
  const held = history.values[nearest(history, at_ns)];
  for (let stack = 0; stack < out.length; stack++) out[stack] = Math.max(held[stack], 0);
}

/** Stacks that held most over all snapshots together, the largest first. */
export function largest(history: History, mask: Uint8Array, firstStack: number, most: number): number[] {
  const sums = new Float64Array(history.values[0].length);
  for (const values of history.values) for (let i = 0; i < sums.length; i++) sums[i] += values[i];
  const order: number[] = [];
  for (let i = 0; i < sums.length; i++) {
    if (!mask[firstStack + i] || !(sums[i] > 0) || (order.length === most && sums[order[most - 1]] >= sums[i]))
      continue;
    const at = order.findIndex((other) => sums[other] < sums[i]);
    order.splice(at < 0 ? order.length : at, 0, i);
    order.length = Math.min(order.length, most);
  }
  return order;
}

/** "1.20 s warm"; "1.20 s" where the label is no more than that. */
export function snapshotName({ at_ns, reason, label }: Snapshot): string {
  const time = units.duration(at_ns);
  return label === time ? time : `${time} ${label || reason}`;
}
