// SPDX-License-Identifier: Apache-2.0
// The screen with tables: stacks, functions, lines, files, modules, threads, contexts, processes.

import { matcher, type App, type Screen } from "./app";
import type { Listed } from "./columns";
import { fill, h } from "./dom";
import { listGroups } from "./list_groups";
import { labelKey, listContexts, listProcesses, listThreads } from "./list_origins";
import { listStacks } from "./list_stacks";
import { toggle } from "./parts";
import { Table } from "./table";
import * as units from "./units";
import type { View } from "./view";

export class TableScreen implements Screen {
  readonly element: HTMLElement;
  private tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "What the table lists" });
  private keys = h("div", { class: "keys-of-labels", role: "group", "aria-label": "Contexts by" });
  private note = h("p", { class: "note", role: "status" });
  private side = h("aside", { class: "side", "aria-label": "Selection", tabindex: 0 });
  private table: Table;
  private listed: Listed | null = null;
  private shown: View | null = null;

  constructor(private app: App) {
    this.table = new Table({
      label: "What holds the memory",
      onSort: (sort) => app.set({ sort }, false),
      onSelect: (row, isChosen) => this.select(row, isChosen),
      onOpen: (row) => this.listed?.open(row),
    });
    this.element = h(
      "section",
      { class: "screen table-screen", "aria-label": "Table" },
      this.tabs,
      h(
        "div",
        { class: "split" },
        h("div", { class: "picture-side" }, this.keys, this.note, this.table.element),
        this.side,
      ),
    );
  }

  private select(row: number, isChosen: boolean): void {
    if (!this.listed) return;
    fill(this.side, this.listed.select(row));
    if (isChosen && this.side.getBoundingClientRect().top >= innerHeight) this.side.scrollIntoView();
  }

  private get kinds(): [string, string][] {
    if (this.app.model.isOfOwners)
      return [
        ["stacks", "Ways"],
        ["functions", "Owners"],
        ["modules", "Kinds"],
      ];
    const kinds: [string, string][] = [
      ["stacks", "Stacks"],
      ["functions", "Functions"],
      ["lines", "Lines"],
      ["files", "Files"],
      ["modules", "Modules"],
      ["threads", "Threads"],
    ];
    if (this.app.model.hasContexts) kinds.push(["contexts", "Contexts"]);
    if (this.app.model.page.run) kinds.push(["processes", "Processes"]);
    return kinds;
  }

  private makeTabs(current: string): void {
    const isFocused = this.tabs.contains(document.activeElement);
    fill(
      this.tabs,
      this.kinds.map(([id, label]) =>
        h(
          "button",
          {
            type: "button",
            role: "tab",
            id: `kind-${id}`,
            "aria-selected": id === current ? "true" : "false",
            tabindex: id === current ? 0 : -1,
            onclick: () => this.app.set({ table: id, sort: "" }),
            onkeydown: (event: KeyboardEvent) => this.tabKey(event, id),
          },
          label,
        ),
      ),
    );
    if (isFocused) document.getElementById(`kind-${current}`)?.focus();
  }

  private tabKey(event: KeyboardEvent, id: string): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = this.kinds.findIndex(([one]) => one === id),
      next = this.kinds[(at + step + this.kinds.length) % this.kinds.length];
    this.app.set({ table: next[0], sort: "" });
    document.getElementById(`kind-${next[0]}`)?.focus();
    event.preventDefault();
  }

  private makeKeys(isShown: boolean): void {
    const { labelKeys } = this.app.model,
      shown = labelKey(this.app),
      focused = this.keys.contains(document.activeElement) ? document.activeElement!.id : "";
    const button = (key: string, label: string, help: string) =>
      toggle(`key-${key}`, label, help, key === (shown || "*"), () => this.app.set({ key, sort: "" }));
    fill(
      this.keys,
      isShown
        ? [
            ...labelKeys.map((key) => button(key, `by ${key}`, `what each ${key} holds`)),
            labelKeys.length > 1 ? button("*", "whole sets", "by all labels together") : null,
          ]
        : null,
    );
    this.keys.hidden = !isShown;
    if (focused) document.getElementById(focused)?.focus();
  }

  private list(view: View): Listed {
    const kind = this.kinds.some(([id]) => id === view.state.table) ? view.state.table : "stacks";
    if (kind === "threads") return listThreads(this.app, view);
    if (kind === "contexts") return listContexts(this.app, view);
    if (kind === "processes") return listProcesses(this.app);
    return kind === "stacks" ? listStacks(this.app, view) : listGroups(this.app, view, kind);
  }

  /** Of another state of the process: what was selected, and how far was scrolled. */
  private kept(view: View): { key: string | number; top: number; sideTop: number } | null {
    const { shown, listed } = this;
    if (!shown || !listed || shown.model === view.model || shown.state.table !== view.state.table) return null;
    const { row, top } = this.table.place;
    return row < 0 || shown.isDiff !== view.isDiff ? null : { key: listed.key(row), top, sideTop: this.side.scrollTop };
  }

  private restore(
    listed: Listed,
    rows: number[],
    { key, top, sideTop }: { key: string | number; top: number; sideTop: number },
  ): void {
    this.table.restore(rows.find((row) => listed.key(row) === key) ?? -1, top);
    this.side.scrollTop = sideTop;
  }

  update(view: View): void {
    const { state } = view,
      matches = matcher(state.search);
    const kept = this.kept(view),
      listed = (this.listed = this.list(view));
    const rows = matches ? listed.rows.filter(listed.search(matches)) : listed.rows;
    this.makeTabs(state.table);
    this.makeKeys(state.table === "contexts" && view.model.hasContexts);
    const found = matches
      ? `${units.plural(rows.length, "row")} of ${units.count(listed.rows.length)} with “${state.search}”`
      : units.plural(rows.length, "row");
    this.note.textContent = rows.length
      ? `${found}. Select one for its details; Enter or a double click shows only stacks through it.`
      : matches
        ? found
        : "Nothing to show here: the recording has no such thing.";
    if (!kept) fill(this.side);
    this.table.show(listed.columns, rows, state.sort);
    if (kept) this.restore(listed, rows, kept);
    else this.table.selectFirst();
    this.shown = view;
  }
}
