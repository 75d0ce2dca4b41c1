// SPDX-License-Identifier: Apache-2.0
// What the lists of the screen with tables are made of: a list, and the columns that several of them have.

import { amount } from "./details";
import type { Estimate } from "./data";
import { fill, h, type Child } from "./dom";
import type { Column } from "./table";
import * as units from "./units";
import type { View } from "./view";

export type Matches = (text: string) => boolean;

export interface Listed {
  columns: Column[];
  rows: number[];
  key(row: number): string | number; // the same for the same thing in another state of a process
  search(matches: Matches): (row: number) => boolean;
  select(row: number): HTMLElement;
  open(row: number): void;
}

/** A number with a bar behind it: its share of the largest. */
export function bar(text: string, value: number, most: number): HTMLElement {
  const fillBar = h("span", { class: "share", "aria-hidden": "true" });
  fillBar.style.width = `${most > 0 ? Math.max(0, Math.min(100, (100 * Math.abs(value)) / most)) : 0}%`;
  return h("span", { class: "with-share" }, fillBar, h("span", {}, text));
}

// Makes columns of numbers of one width.
export function numbersOf(width: string) {
  return (
    id: string,
    label: string,
    help: string | undefined,
    of: (row: number) => number,
    text: (value: number) => string,
  ): Column => ({ id, label, help, isNumber: true, width, sort: of, cell: (row) => text(of(row)) });
}

export function sureOf(one: Estimate | null | undefined): string {
  return one ? units.sure(one.interval_bytes, one.samples) : one === null ? " (a share)" : "";
}

/** The column with how sure its values are, where they are estimates. */
export function withSure(column: Column, of: (row: number) => Estimate | null | undefined): Column {
  return of(0) === undefined
    ? column
    : { ...column, width: "230px", cell: (row) => [column.cell(row), sureOf(of(row))] };
}

export function sparkColumn(cell: (row: number) => Child): Column {
  return { id: "spark", label: "Over time", width: "110px", sort: () => 0, cell };
}

/** A place for what takes a while: rows are there at once, and scrolling goes on. */
export function later(make: () => Child): HTMLElement {
  const place = h("span", {});
  setTimeout(() => place.isConnected && fill(place, make()));
  return place;
}

/** What a comparison shows of each row: its change, and the values on both sides. */
export function changeColumns(view: View, sums: Float64Array[], name: Column, calls: Float64Array[] = []): Column[] {
  const [before, after] = sums,
    of = (row: number) => view.change(sums.map((sum) => sum[row])),
    isSampled = sums.length > 2;
  const word = (row: number) => view.wordOf(sums, row, calls);
  return [
    name,
    {
      id: "change",
      label: "Change",
      help: "sorted by size, up or down",
      isNumber: true,
      width: isSampled ? "330px" : "120px",
      sort: (row) => Math.abs(after[row] - before[row]),
      cell: (row) => {
        const { by, isSure, sure } = of(row);
        return [
          h(
            "span",
            { class: !isSure ? "dim" : by > 0 ? "more" : by < 0 ? "less" : "" },
            units.signed(amount(view, by), by),
          ),
          sure,
        ];
      },
    },
    {
      id: "before",
      label: "Before",
      isNumber: true,
      width: "110px",
      sort: (row) => before[row],
      cell: (row) => amount(view, before[row]),
    },
    {
      id: "after",
      label: "After",
      isNumber: true,
      width: "110px",
      sort: (row) => after[row],
      cell: (row) => amount(view, after[row]),
    },
    { id: "word", label: "", width: calls.length ? "130px" : "80px", sort: word, cell: word },
  ];
}
