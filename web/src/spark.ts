// SPDX-License-Identifier: Apache-2.0
// Live bytes over time as a small line, for recordings that kept it by stack.

import type { App } from "./app";
import { svg } from "./dom";
import * as units from "./units";

/** What some stacks held over time, or null if the recording does not say. */
export function sparkline(app: App, stacks: number[], width: number, height: number): SVGElement | null {
  const history = app.model.history;
  if (!history) return null;
  const values = history.sum(stacks), most = Math.max(...values, 1);
  const span = history.times[history.times.length - 1] - history.times[0] || 1;
  const points = values.map((value, i) => {
    const x = ((history.times[i] - history.times[0]) / span) * (width - 2) + 1;
    return `${x.toFixed(1)},${(height - 1 - (value / most) * (height - 2)).toFixed(1)}`;
  });
  const area = `1,${height - 1} ${points.join(" ")} ${width - 1},${height - 1}`;
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "spark", role: "img", "aria-label": `live bytes over time, at most ${units.size(most)}` },
    svg("polygon", { points: area, class: "spark-area" }), svg("polyline", { points: points.join(" "), class: "spark-line" }));
}
