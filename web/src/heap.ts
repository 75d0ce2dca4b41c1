// SPDX-License-Identifier: Apache-2.0
// The heap of a process by address: where what is resident is live, and where it is kept by little.

import type { Heap } from "./data";
import { h, type Child } from "./dom";
import * as units from "./units";

const COLUMNS = 128,
  ROW_PX = 7;
const NAMES: Record<string, string> = {
  main: "Main arena",
  arenas: "Arenas of threads",
  blocks: "Blocks with mappings of their own",
  other: "The allocator's memory",
};

/** From orange, where next to nothing is live, to blue. */
function colour(percent: number): string {
  return `hsl(${25 + 1.85 * percent},70%,55%)`;
}

/** `owners`: the stacks that keep most. */
export function heapMap(heap: Heap, owners: Child[]): HTMLElement {
  const strips = heap.map.strips.map((strip) => {
    const rows = Math.ceil(strip.cells.length / COLUMNS),
      label = `${NAMES[strip.kind]}: ${units.size(strip.bytes)}, ${units.size(strip.resident_bytes)} resident, ${units.size(strip.live_bytes)} live`;
    const canvas = h("canvas", { class: "heap-map", width: COLUMNS, height: rows, role: "img", "aria-label": label });
    canvas.style.height = `${rows * ROW_PX}px`;
    const context = canvas.getContext("2d")!;
    strip.cells.forEach((percent, i) => {
      if (percent < 0) return;
      context.fillStyle = colour(percent);
      context.fillRect(i % COLUMNS, Math.floor(i / COLUMNS), 1, 1);
    });
    return [h("p", { class: "small" }, label), canvas];
  });
  const keys = [0, 50, 100].map((percent) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = colour(percent);
    return h("li", {}, swatch, `${percent} % live`);
  });
  return h(
    "div",
    { class: "card" },
    h(
      "h2",
      {},
      `The heap by address: ${units.size(heap.live)} live on ${units.size(heap.resident)} ${heap.is_core ? "of pages" : "resident"}`,
    ),
    strips,
    h(
      "ul",
      { class: "rss-keys" },
      keys,
      h("li", { class: "dim" }, `${units.size(heap.map.cell_bytes)} a cell; empty: not resident`),
    ),
    owners.length ? h("ul", { class: "findings" }, owners) : null,
  );
}
