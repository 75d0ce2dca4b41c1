// SPDX-License-Identifier: Apache-2.0
// What resident memory consisted of when it was highest, as one bar whose parts add up.

import { listed } from "./colours";
import type { Picture } from "./data";
import { h } from "./dom";
import * as units from "./units";

function partsOf(picture: Picture): [string, string, number][] {
  const unknown = [
    ["live blocks", picture.live_bytes],
    ["free memory", picture.live_bytes === null ? null : picture.free_bytes],
    ["rounding and headers", picture.slack_bytes],
    ["what the program maps itself", picture.mapped_bytes],
  ];
  const rest = [
    "not distinguished: thread caches",
    ...unknown.filter(([, bytes]) => (bytes ?? null) === null).map(([name]) => name),
  ].join(", ");
  const parts: [string, string, number][] = [
    ["live heap", units.plural(picture.heap_live_blocks, "block"), picture.live_bytes ?? 0],
    ["code and files", "code, data and mapped files", picture.files_bytes],
    ["slack", "rounding and headers of live blocks, about", picture.slack_bytes ?? 0],
    ["free in the heap", "kept by the allocator", picture.free_bytes ?? 0],
    ["rest of the heap", rest, picture.rest_bytes],
    ["mapped", "by the program itself, not by malloc", picture.mapped_bytes ?? 0],
    ["cairn itself", "this recording, tables, library", picture.own_bytes],
    ["stacks", "of the threads", picture.stacks_bytes],
    ["shared memory", "that is no file", picture.shared_bytes],
    ["other", "mappings of the kernel and of devices", picture.other_bytes],
  ];
  return parts.filter(([, , bytes]) => bytes > 0);
}

const NEAR = 0.98; // of the peak: as far as it rounds

/** Says of what time it is, where that is not the peak's. */
function heading(picture: Picture, peakBytes: number): string {
  const size = units.size(picture.rss_bytes),
    time = units.duration(picture.at_ns);
  return picture.rss_bytes < peakBytes * NEAR
    ? `Resident memory: ${size} of ${units.size(peakBytes)} at its peak, as read ${time} after the start`
    : `Resident memory: ${size}, ${time} after the start`;
}

export function residentBar(picture: Picture, peakBytes: number): HTMLElement {
  const parts = partsOf(picture),
    words: string[] = [];
  const segments = parts.map(([name, , bytes], i) => {
    const segment = h(
      "span",
      { class: "segment", title: `${name}: ${units.size(bytes)}` },
      bytes / picture.rss_bytes > 0.09 ? h("span", {}, name) : null,
    );
    segment.style.background = listed(i);
    segment.style.flexGrow = String(bytes);
    words.push(`${name} ${units.size(bytes)}`);
    return segment;
  });
  const keys = parts.map(([name, help, bytes], i) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = listed(i);
    return h(
      "li",
      { title: help },
      swatch,
      h("strong", {}, units.size(bytes)),
      " ",
      name,
      " ",
      h("span", { class: "dim" }, units.percent(bytes, picture.rss_bytes)),
    );
  });
  return h(
    "div",
    { class: "card" },
    h("h2", {}, heading(picture, peakBytes)),
    h("div", { class: "rss", role: "img", "aria-label": words.join(", ") }, segments),
    h("ul", { class: "rss-keys" }, keys),
    picture.live_bytes === null || picture.heap_live_bytes > picture.live_bytes
      ? h(
          "p",
          { class: "dim small" },
          `${units.size(picture.heap_live_bytes)} of the heap were asked for; ` +
            (picture.live_bytes === null ? "how much of it is resident is not known." : "not all of it is resident."),
        )
      : null,
  );
}
