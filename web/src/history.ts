// SPDX-License-Identifier: Apache-2.0
// What each stack held at the moments that the recording kept, at the peak and at the end.

import type { Moment, Profile } from "./data";
import * as units from "./units";

export interface History {
  moments: Moment[];
  values: Float64Array[];  // by moment, then by the part's stack
}

/** Null without a moment between start and end: peak and end alone are no history. */
export function readHistory(profile: Profile): History | null {
  const { facts, moments, held, numbers } = profile;
  if (!moments.length || held.length !== moments.length) return null;
  const points: { moment: Moment; values: Float64Array }[] = [];
  held.forEach((changes, i) => {
    const values = changes.slice(), before = points[i - 1]?.values;
    if (before) for (let stack = 0; stack < values.length; stack++) values[stack] += before[stack];
    points.push({ moment: moments[i], values });
  });
  const add = (reason: string, at_ns: number, values: Float64Array | undefined) => {
    if (values && !points.some((point) => point.moment.at_ns === at_ns)) points.push({ moment: { at_ns, reason, label: reason }, values });
  };
  add("peak", facts.peak.at_ns, numbers.get("stack.peak"));
  add(facts.has_ended ? "end" : "now", Math.max(facts.process.duration_ns, facts.peak.at_ns, ...moments.map((one) => one.at_ns)), numbers.get("stack.exit"));
  points.sort((a, b) => a.moment.at_ns - b.moment.at_ns);
  return { moments: points.map((point) => point.moment), values: points.map((point) => point.values) };
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
