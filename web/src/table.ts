// SPDX-License-Identifier: Apache-2.0
// A table of any number of rows: only those that can be seen exist as elements.

import { h, type Child } from "./dom";

export interface Column {
  id: string;
  label: string;
  help?: string;
  isNumber?: boolean;
  width: string; // of the grid: "minmax(200px, 1fr)", "110px"
  sort(row: number): number | string;
  cell(row: number): Child;
}

const ROW_PX = 28,
  EXTRA_ROWS = 6;
// Browsers give up on elements of some ten million pixels.
const ROWS_MAX = 300000;

export interface TableOptions {
  label: string;
  onSort(sort: string): void;
  onSelect(row: number, isChosen: boolean): void; // false: nobody has, it is the first
  onOpen(row: number): void;
}

export class Table {
  readonly element: HTMLElement;
  private head = h("div", { class: "t-head", role: "row" });
  private body = h("div", { class: "t-body", tabindex: 0, role: "rowgroup" });
  private sizer = h("div", { class: "t-sizer" });
  private columns: Column[] = [];
  private order: number[] = [];
  private current = -1; // position in the order
  private rows = new Map<number, HTMLElement>();

  constructor(private options: TableOptions) {
    // within what scrolls, so that headings stay above their columns
    this.body.append(this.head, this.sizer);
    this.element = h(
      "div",
      { class: "table", role: "grid", "aria-label": options.label, "aria-readonly": "true" },
      this.body,
    );
    this.body.addEventListener("scroll", () => this.render());
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event, false));
    this.body.addEventListener("dblclick", (event) => this.click(event, true));
    new ResizeObserver(() => this.render()).observe(this.body);
  }

  /** The row that is selected, and how far the table was scrolled. */
  get place(): { row: number; top: number } {
    return { row: this.order[this.current] ?? -1, top: this.body.scrollTop };
  }

  /** The table was made anew with the same in it: selects the row that was, where it was. */
  restore(row: number, top: number): void {
    const position = this.order.indexOf(row);
    if (position < 0) return this.selectFirst();
    this.body.scrollTop = top;
    this.current = position;
    for (const element of this.rows.values()) element.remove();
    this.rows.clear();
    this.render();
    this.body.setAttribute("aria-activedescendant", `row-${position}`);
    this.options.onSelect(row, false);
  }

  /** `rows` are shown in the order that `sort` ("column" or "-column") asks for. */
  show(columns: Column[], rows: number[], sort: string): void {
    this.columns = columns;
    const isAscending = sort.startsWith("-"),
      id = sort.replace(/^-/, "");
    const column = columns.find((one) => one.id === id) ?? columns.find((one) => one.isNumber) ?? columns[0];
    const keys = new Map(rows.map((row) => [row, column.sort(row)]));
    const sign = isAscending ? -1 : 1;
    this.order = [...rows]
      .sort((a, b) => {
        const x = keys.get(a)!,
          y = keys.get(b)!;
        const order = typeof x === "number" ? (y as number) - x : x.localeCompare(y as string);
        return sign * order || a - b;
      })
      .slice(0, ROWS_MAX);
    this.element.style.setProperty("--columns", columns.map((one) => one.width).join(" "));
    this.element.setAttribute("aria-rowcount", String(this.order.length + 1));
    this.element.setAttribute("aria-colcount", String(columns.length));
    this.makeHead(column, isAscending);
    this.sizer.style.height = this.order.length * ROW_PX + "px";
    for (const element of this.rows.values()) element.remove();
    this.rows.clear();
    this.body.scrollTop = 0;
    this.current = -1;
    this.body.removeAttribute("aria-activedescendant");
    this.render();
  }

  private makeHead(sorted: Column, isAscending: boolean): void {
    const isFocused = this.head.contains(document.activeElement)
      ? (document.activeElement as HTMLElement).dataset.column
      : null;
    this.head.replaceChildren(
      ...this.columns.map((column) => {
        const isSorted = column === sorted,
          isText = !column.isNumber;
        const isUp = isAscending !== isText,
          mark = h("span", { "aria-hidden": "true" }, isUp ? " ▲ " : " ▼ ");
        const button = h(
          "button",
          {
            type: "button",
            title: column.help ?? null,
            "data-column": column.id,
            onclick: () => this.options.onSort(isSorted && !isAscending ? "-" + column.id : column.id),
          },
          isSorted && !isText ? mark : null,
          column.label,
          isSorted && isText ? mark : null,
        );
        return h(
          "div",
          {
            role: "columnheader",
            class: column.isNumber ? "number" : "",
            "aria-sort": isSorted ? (isUp ? "ascending" : "descending") : "none",
          },
          button,
        );
      }),
    );
    if (isFocused) (this.head.querySelector(`[data-column="${isFocused}"]`) as HTMLElement | null)?.focus();
  }

  private makeRow(position: number): HTMLElement {
    const row = this.order[position];
    const element = h(
      "div",
      {
        class: position === this.current ? "t-row current" : "t-row",
        role: "row",
        id: `row-${position}`,
        "data-position": position,
        "aria-rowindex": position + 2,
        "aria-selected": position === this.current ? "true" : "false",
      },
      this.columns.map((column) =>
        h("div", { role: "gridcell", class: column.isNumber ? "number" : "" }, column.cell(row)),
      ),
    );
    element.style.top = position * ROW_PX + "px";
    return element;
  }

  private render(): void {
    const first = Math.max(Math.floor(this.body.scrollTop / ROW_PX) - EXTRA_ROWS, 0);
    const last = Math.min(
      Math.ceil((this.body.scrollTop + this.body.clientHeight) / ROW_PX) + EXTRA_ROWS,
      this.order.length,
    );
    for (const [position, element] of this.rows) {
      if (position >= first && position < last) continue;
      element.remove();
      this.rows.delete(position);
    }
    for (let position = first; position < last; position++) {
      if (this.rows.has(position)) continue;
      const element = this.makeRow(position);
      this.rows.set(position, element);
      this.sizer.append(element);
    }
  }

  /** Of rows, below the headings. */
  private get seen(): number {
    return this.body.clientHeight - this.head.offsetHeight;
  }

  /** So that the details of a row are there to be read before anything is selected. */
  selectFirst(): void {
    this.move(0, false);
  }

  private move(position: number, isChosen = true): void {
    if (!this.order.length) return;
    const next = Math.max(0, Math.min(position, this.order.length - 1)),
      old = this.current;
    this.current = next;
    const top = next * ROW_PX,
      bottom = top + ROW_PX;
    if (top < this.body.scrollTop) this.body.scrollTop = top;
    else if (bottom > this.body.scrollTop + this.seen) this.body.scrollTop = bottom - this.seen;
    this.render();
    for (const [at, isCurrent] of [
      [old, false],
      [next, true],
    ] as [number, boolean][]) {
      const element = this.rows.get(at);
      if (!element || (at === next && !isCurrent)) continue;
      element.classList.toggle("current", isCurrent);
      element.setAttribute("aria-selected", String(isCurrent));
    }
    this.body.setAttribute("aria-activedescendant", `row-${next}`);
    this.options.onSelect(this.order[next], isChosen);
  }

  private click(event: MouseEvent, isDouble: boolean): void {
    const element = (event.target as Element).closest<HTMLElement>(".t-row");
    if (!element) return;
    const position = Number(element.dataset.position);
    if (isDouble) this.options.onOpen(this.order[position]);
    else this.move(position);
  }

  private key(event: KeyboardEvent): void {
    const page = Math.max(Math.floor(this.seen / ROW_PX) - 1, 1);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (event.key in steps) this.move(this.current < 0 && event.key !== "End" ? 0 : this.current + steps[event.key]);
    else if (event.key === "Enter" && this.current >= 0) this.options.onOpen(this.order[this.current]);
    else return;
    event.preventDefault();
  }
}
