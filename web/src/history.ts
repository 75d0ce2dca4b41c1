// SPDX-License-Identifier: Apache-2.0
// What each stack held at the moments that the recording kept, at the peak and at the end.

import type { Moment, Profile } from "./data";
import * as units from "./units";

export interface History {
  moments: Moment[];
  values: Float64Array[];  // by moment, then by the part's stack
  slots: Float64Array[];   // by moment, then by the slot of the thread that allocated
}

/** Sums of changes. */
function summedUp(changes: Float64Array[]): Float64Array[] {
  const all: Float64Array[] = [];
  changes.forEach((own, i) => all.push(own.map((change, at) => change + (all[i - 1]?.[at] ?? 0))));
  return all;
}

/** Null without a moment between start and end: peak and end alone are no history. */
export function readHistory(profile: Profile): History | null {
  const { facts, moments, held, heldBySlot, numbers } = profile;
  if (!moments.length || held.length !== moments.length) return null;
  const all = summedUp(held), allSlots = summedUp(heldBySlot);
  const points = moments.map((moment, i) => ({ moment, values: all[i], slots: allSlots[i] ?? new Float64Array() }));
  const add = (reason: string, at_ns: number, id: string) => {
    const values = numbers.get("stack." + id), slots = numbers.get("slot." + id) ?? new Float64Array();
    if (values && !points.some((point) => point.moment.at_ns === at_ns)) points.push({ moment: { at_ns, reason, label: reason }, values, slots });
  };
  add("peak", facts.peak.at_ns, "peak");
  add(facts.has_ended ? "end" : "now", Math.max(facts.process.duration_ns, facts.peak.at_ns, ...moments.map((one) => one.at_ns)), "exit");
  points.sort((a, b) => a.moment.at_ns - b.moment.at_ns);
  return { moments: points.map((point) => point.moment), values: points.map((point) => point.values), slots: points.map((point) => point.slots) };
}

export function nearest(history: History, at_ns: number): number {
  let best = 0;
  history.moments.forEach((moment, i) => {
    if (Math.abs(moment.at_ns - at_ns) < Math.abs(history.moments[best].at_ns - at_ns)) best = i;
  });
  return best;
}

/** Fills what stacks held at a moment. */
export function heldAt(history: History, at_ns: number, out: Float64Array): void {
  const held = history.values[nearest(history, at_ns)];
  for (let stack = 0; stack < out.length; stack++) out[stack] = Math.max(held[stack], 0);
}

/** Stacks that held most over all moments together, the largest first. */
export function largest(history: History, mask: Uint8Array, firstStack: number, most: number): number[] {
  const sums = new Float64Array(history.values[0].length);
  for (const values of history.values) for (let i = 0; i < sums.length; i++) sums[i] += values[i];
  const order: number[] = [];
  for (let i = 0; i < sums.length; i++) {
    if (!mask[firstStack + i] || !(sums[i] > 0) || (order.length === most && sums[order[most - 1]] >= sums[i])) continue;
    const at = order.findIndex((other) => sums[other] < sums[i]);
    order.splice(at < 0 ? order.length : at, 0, i);
    order.length = Math.min(order.length, most);
  }
  return order;
}

/** "1.20 s warm"; "1.20 s" where the label is no more than that. */
export function momentName({ at_ns, reason, label }: Moment): string {
  const time = units.duration(at_ns);
  return label === time ? time : `${time} ${label || reason}`;
}
