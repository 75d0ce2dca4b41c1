// SPDX-License-Identifier: Apache-2.0
// A tree of weights as a table whose rows unfold: the same as a picture's, for people who read
// figures or listen to the page. Of each node as many children are shown as fit, the largest first.

import { h } from "./dom";
import type { PictureOptions } from "./picture";
import type { Weighted } from "./tree";

const CHILDREN_SHOWN = 100,
  UNFOLDED_SHARE = 0.5; // at first the largest way is open as far as each step keeps so much

export interface TreeTableOptions extends PictureOptions {
  name(node: number): string;
  amounts(node: number): string[]; // total, share, its own
}

export class TreeTable {
  readonly element: HTMLElement;
  private body = h("div", { class: "tt-body", role: "rowgroup" });
  private data: Weighted | null = null;
  private marked: Uint8Array | null = null;
  private open = new Set<number>();
  private more = new Map<number, number>(); // children shown beyond the usual ones
  private zoom = 0;
  private cursor = 0;

  constructor(private options: TreeTableOptions) {
    const heading = (text: string, isNumber: boolean) =>
      h("span", { role: "columnheader", class: isNumber ? "number" : "" }, text);
    this.element = h(
      "div",
      {
        class: "tree-table",
        role: "treegrid",
        "aria-label": options.label,
        tabindex: 0,
        onkeydown: (event: KeyboardEvent) => this.key(event),
      },
      h(
        "div",
        { class: "tt-row tt-head", role: "row" },
        ["Total", "Share", "Its own"].map((text) => heading(text, true)),
        heading("Owner or function", false),
      ),
      this.body,
    );
  }

  show(data: Weighted, zoom: number, selected: number): void {
    if (this.data !== data) {
      this.data = data;
      this.marked = null;
      this.open.clear();
      this.more.clear();
      this.unfoldLargest();
    }
    this.zoom = zoom;
    this.cursor = selected;
    this.open.add(zoom);
    this.render();
  }

  private unfoldLargest(): void {
    const { first, order, value } = this.data!;
    for (let node = 0; ; node = order[first[node]]) {
      this.open.add(node);
      if (first[node] === first[node + 1] || value[order[first[node]]] < UNFOLDED_SHARE * value[node]) return;
    }
  }

  /** Marks what a search has found, and opens the ways to it. */
  mark(marked: Uint8Array | null): void {
    const { tree, value } = this.data!;
    this.marked = marked;
    for (let node = 1; marked && node < tree.count; node++)
      if (marked[node] && value[node] > 0)
        for (let at = tree.parent[node]; at >= 0 && !this.open.has(at); at = tree.parent[at]) this.open.add(at);
    this.render();
  }

  /** Nodes that are shown, each with how many siblings follow that are not. */
  private rows(): { node: number; hidden: number }[] {
    const { first, order } = this.data!,
      rows: { node: number; hidden: number }[] = [],
      pending = [{ node: this.zoom, hidden: 0 }];
    while (pending.length) {
      const row = pending.pop()!;
      rows.push(row);
      if (row.hidden || !this.open.has(row.node)) continue;
      const count = first[row.node + 1] - first[row.node],
        shown = Math.min(count, CHILDREN_SHOWN + (this.more.get(row.node) ?? 0));
      if (shown < count) pending.push({ node: row.node, hidden: count - shown });
      for (let i = first[row.node] + shown; i-- > first[row.node];) pending.push({ node: order[i], hidden: 0 });
    }
    return rows;
  }

  private render(): void {
    const hasFocus = this.element.contains(document.activeElement);
    this.body.replaceChildren(...this.rows().map((row) => (row.hidden ? this.moreRow(row) : this.row(row.node))));
    const current = this.body.querySelector<HTMLElement>("[aria-selected=true]");
    if (current) this.element.setAttribute("aria-activedescendant", current.id);
    if (hasFocus) {
      this.element.focus({ preventScroll: true });
      current?.scrollIntoView({ block: "nearest" });
    }
  }

  private row(node: number): HTMLElement {
    const { tree, first } = this.data!,
      hasChildren = first[node] < first[node + 1],
      isOpen = this.open.has(node),
      depth = tree.depth[node] - tree.depth[this.zoom];
    const name = h("span", { role: "gridcell", class: "mono tt-name" });
    name.style.paddingInlineStart = `${depth * 16}px`;
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = node ? this.options.colour(node) : "transparent";
    name.append(
      h(
        "button",
        {
          type: "button",
          class: "fold",
          tabindex: -1,
          "aria-hidden": "true",
          disabled: !hasChildren,
          onclick: () => this.fold(node),
        },
        hasChildren ? (isOpen ? "▾" : "▸") : "·",
      ),
      swatch,
      this.options.name(node),
    );
    return h(
      "div",
      {
        class: `tt-row${this.marked && this.marked[node] ? " found" : ""}`,
        id: `tt-${node}`,
        role: "row",
        "aria-level": depth + 1,
        "aria-selected": node === this.cursor ? "true" : "false",
        ...(hasChildren ? { "aria-expanded": isOpen ? "true" : "false" } : {}),
        onclick: () => this.select(node),
        ondblclick: () => this.options.onZoom(node),
      },
      this.options.amounts(node).map((text) => h("span", { role: "gridcell", class: "number" }, text)),
      name,
    );
  }

  private moreRow({ node, hidden }: { node: number; hidden: number }): HTMLElement {
    return h(
      "div",
      { class: "tt-row", role: "row" },
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          onclick: () => {
            this.more.set(node, (this.more.get(node) ?? 0) + 10 * CHILDREN_SHOWN);
            this.render();
          },
        },
        `${hidden} more below ${this.options.name(node)}`,
      ),
    );
  }

  private fold(node: number): void {
    if (!this.open.delete(node)) this.open.add(node);
    this.render();
  }

  private select(node: number): void {
    this.cursor = node;
    this.options.onSelect(node);
    this.render();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.data) return;
    const nodes = this.rows()
        .filter((row) => !row.hidden)
        .map((row) => row.node),
      at = Math.max(nodes.indexOf(this.cursor), 0),
      node = nodes[at],
      { tree, first } = this.data,
      isOpen = this.open.has(node) && first[node] < first[node + 1];
    const steps: Record<string, number> = {
      ArrowDown: nodes[at + 1],
      ArrowUp: nodes[at - 1],
      Home: nodes[0],
      End: nodes[nodes.length - 1],
    };
    if (event.key in steps) this.select(steps[event.key] ?? node);
    else if (event.key === "ArrowRight") isOpen ? this.select(nodes[at + 1]) : this.fold(node);
    else if (event.key === "ArrowLeft") isOpen ? this.fold(node) : this.select(Math.max(tree.parent[node], this.zoom));
    else if (event.key === "Enter") this.options.onZoom(node);
    else if (event.key === "Escape") this.options.onZoom(0);
    else if (!this.options.onKey(event.key, node)) return;
    event.preventDefault();
    event.stopPropagation();
  }
}
