// SPDX-License-Identifier: Apache-2.0
// The keys of the page, which `?` shows.

import { h } from "./dom";

const EVERYWHERE = [
  ["/", "search functions; Enter shows what was found, Esc ends the search"],
  ["?", "these keys; Esc closes them"],
];
const PICTURE = [
  ["arrows, Home", "walk from frame to frame"],
  ["Enter", "zooms to the frame"],
  ["Backspace, Esc", "zooms out by one frame, wholly"],
  ["c", "callers and callees"],
  ["f", "focus: only stacks through the frame"],
  ["h", "hides the frame's stacks"],
  ["i", "inverts: from where memory is allocated"],
];
const ROWS = [
  ["arrows, Page, Home, End", "walk from row to row, or along the chart"],
  ["Enter", "shows only stacks through the row"],
];

/** `screens`: their names, in the order of their keys. */
export function keysDialog(screens: string[]): HTMLDialogElement {
  const groups: [string, string[][]][] = [
    ["Everywhere", [...screens.map((name, i) => [String(i + 1), name]), ...EVERYWHERE]],
    [screens[screens.length - 2], PICTURE],
    ["Rows and charts, once Tab has reached them", ROWS],
  ];
  const dialog = h(
    "dialog",
    { id: "keys", "aria-label": "Keys", onclose: () => dialog.remove() },
    groups.map(([title, rows]) => [
      h("h2", {}, title),
      h(
        "dl",
        {},
        rows.map(([keys, text]) => [h("dt", {}, keys), h("dd", {}, text)]),
      ),
    ]),
    h("button", { type: "button", onclick: () => dialog.close() }, "Close"),
  );
  return dialog;
}
