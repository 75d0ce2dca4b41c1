// SPDX-License-Identifier: Apache-2.0
// Live bytes over time as a small line, for recordings that kept it by stack.

import { svg } from "./dom";
import type { Part } from "./numbering";
import * as units from "./units";

/** What was live at each snapshot of a part, or null if the recording does not say. */
export function sparkline(
  { history }: Part,
  live: number[] | undefined,
  width: number,
  height: number,
): SVGElement | null {
  return history && live
    ? lineOf(
        history.snapshots.map((snapshot) => snapshot.at_ns),
        live,
        width,
        height,
      )
    : null;
}

/** What was live at some times, ascending from 0 on. */
export function lineOf(times: number[], live: number[], width: number, height: number): SVGElement {
  const values = live.map((one) => Math.max(one, 0)),
    highest = Math.max(...values),
    most = highest || 1,
    span = times[times.length - 1] || 1;
  const x = (i: number) => ((times[i] / span) * (width - 2) + 1).toFixed(1),
    y = (value: number) => (height - 1 - (value / most) * (height - 2)).toFixed(1);
  // what was held between two snapshots is not known: as much as at the first of them
  const points = values.map((value, i) => `${x(i)},${y(values[i - 1] ?? 0)} ${x(i)},${y(value)}`);
  const area = `1,${height - 1} ${points.join(" ")} ${width - 1},${height - 1}`;
  return svg(
    "svg",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      class: "spark",
      role: "img",
      "aria-label": `live bytes over time, at most ${units.size(highest)}`,
    },
    svg("polygon", { points: area, class: "spark-area" }),
    svg("polyline", { points: `1,${height - 1} ` + points.join(" "), class: "spark-line" }),
  );
}
