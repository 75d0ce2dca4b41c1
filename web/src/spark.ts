// SPDX-License-Identifier: Apache-2.0
// Live bytes over time as a small line, for recordings that kept it by stack.

import type { App } from "./app";
import { svg } from "./dom";
import * as units from "./units";

/** What a stack held over time, or null if the recording does not say. */
export function sparkline(app: App, stack: number, width: number, height: number): SVGElement | null {
  const part = app.model.parts[app.model.partOf[stack]], { history } = part;
  if (!history) return null;
  const values = history.values.map((one) => Math.max(one[stack - part.firstStack], 0)), most = Math.max(...values, 1);
  const times = history.moments.map((moment) => moment.at_ns), span = times[times.length - 1] || 1;
  const points = values.map((value, i) => `${((times[i] / span) * (width - 2) + 1).toFixed(1)},${(height - 1 - (value / most) * (height - 2)).toFixed(1)}`);
  const area = `1,${height - 1} ${points.join(" ")} ${width - 1},${height - 1}`;
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "spark", role: "img", "aria-label": `live bytes over time, at most ${units.size(most)}` },
    svg("polygon", { points: area, class: "spark-area" }), svg("polyline", { points: `1,${height - 1} ` + points.join(" "), class: "spark-line" }));
}
