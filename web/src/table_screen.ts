// SPDX-License-Identifier: Apache-2.0
// The screen with tables: stacks, functions, lines, files, modules, threads, contexts, processes.

import { focused, matcher, type App, type Screen } from "./app";
import { amount, fact, functionOf, pairFacts, shapesThrough, sourceAround, stackDetails } from "./details";
import { fill, h, type Child } from "./dom";
import type { Estimate } from "./data";
import { stackLine } from "./findings";
import { lineOf, sparkline } from "./spark";
import { Table, type Column } from "./table";
import { toggle } from "./parts";
import * as units from "./units";
import { USUAL_MEASURES, type Groups, type View } from "./view";

const CALLERS_SHOWN = 4;
// Of labels, as format.h has it: how many a process keeps, and what the value of all others is.
const LABELS_KEPT = "4,096",
  OTHER = "=(other)";

/** A number with a bar behind it: its share of the largest. */
function bar(text: string, value: number, most: number): HTMLElement {
  const fillBar = h("span", { class: "share", "aria-hidden": "true" });
  fillBar.style.width = `${most > 0 ? Math.max(0, Math.min(100, (100 * Math.abs(value)) / most)) : 0}%`;
  return h("span", { class: "with-share" }, fillBar, h("span", {}, text));
}

// Makes columns of numbers of one width.
function numbersOf(width: string) {
  return (
    id: string,
    label: string,
    help: string | undefined,
    of: (row: number) => number,
    text: (value: number) => string,
  ): Column => ({ id, label, help, isNumber: true, width, sort: of, cell: (row) => text(of(row)) });
}

type Matches = (text: string) => boolean;

interface Listed {
  columns: Column[];
  rows: number[];
  key(row: number): string | number; // the same for the same thing in another state of a process
  search(matches: Matches): (row: number) => boolean;
  select(row: number): HTMLElement;
  open(row: number): void;
}

function sureOf(one: Estimate | null | undefined): string {
  return one ? units.sure(one.interval_bytes, one.samples) : one === null ? " (a share)" : "";
}

/** The column with how sure its values are, where they are estimates. */
function withSure(column: Column, of: (row: number) => Estimate | null | undefined): Column {
  return of(0) === undefined
    ? column
    : { ...column, width: "230px", cell: (row) => [column.cell(row), sureOf(of(row))] };
}

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

  private stackColumns(view: View, most: number): Column[] {
    const { model } = this.app,
      { measure } = view;
    const number = numbersOf("108px");
    const columns: Column[] = [
      {
        id: "name",
        label: "Own function → what it called ← callers",
        width: "minmax(260px, 1fr)",
        sort: (row) => this.leafName(row),
        cell: (row) => this.stackCell(row),
      },
      {
        id: "value",
        label: measure.label,
        help: measure.help,
        isNumber: true,
        width: "130px",
        sort: (row) => measure.values[row],
        cell: (row) => bar(amount(view, measure.values[row]), measure.values[row], most),
      },
    ];
    const spread = model.spread(measure.id);
    if (spread)
      columns.push({
        ...number(
          "interval",
          "±",
          "half the width of the 95 % interval, and the samples behind it",
          (row) => spread[0][row],
          String,
        ),
        width: "190px",
        cell: (row) => model.sure(row, measure) || "exact",
      });
    if (!model.hasHistory)
      columns.push(
        number(
          "share",
          "Share",
          "of all",
          (row) => measure.values[row],
          (value) => units.percent(value, view.sums()[0]),
        ),
      );
    if (measure.counts !== measure.values)
      columns.push(
        number(
          "blocks",
          measure.noun[1][0].toUpperCase() + measure.noun[1].slice(1),
          "as many " + measure.noun[1],
          (row) => measure.counts[row],
          units.count,
        ),
      );
    for (const other of view.measures) {
      const { id } = other;
      if (id === measure.id || !USUAL_MEASURES.includes(id)) continue;
      const column = number(
        id,
        other.label,
        other.help,
        (row) => other.values[row],
        other.isBytes ? units.size : units.count,
      );
      columns.push(
        model.spread(id)
          ? { ...column, width: "250px", cell: (row) => [column.cell(row), model.sure(row, other)] }
          : column,
      );
    }
    if (model.hasHistory)
      columns.splice(
        1,
        0,
        this.sparkColumn((row) => {
          const part = model.parts[model.partOf[row]];
          return sparkline(
            part,
            part.history?.values.map((held) => held[row - part.firstStack]),
            96,
            22,
          );
        }),
      );
    return columns;
  }

  private sparkColumn(cell: (row: number) => Child): Column {
    return { id: "spark", label: "Over time", width: "110px", sort: () => 0, cell };
  }

  private leafName(stack: number): string {
    return this.app.model.told(stack, this.app.state.internal, 0).own;
  }

  private stackCell(stack: number): Child {
    return stackLine(this.app, stack, CALLERS_SHOWN);
  }

  private listStacks(view: View): Listed {
    const rows: number[] = [],
      { measure, mask } = view;
    let most = 0;
    for (let stack = 0; stack < mask.length; stack++) {
      if (!mask[stack] || (measure.values[stack] <= 0 && view.by("calls").values[stack] <= 0)) continue;
      rows.push(stack);
      if (measure.values[stack] > most) most = measure.values[stack];
    }
    return {
      rows: view.isDiff
        ? [...view.pairs.stack.keys()].filter((row) => view.pairs.sums[0][row] || view.pairs.sums[1][row])
        : rows,
      key: (row) => view.model.stackKey(view.isDiff ? view.pairs.stack[row] : row),
      columns: view.isDiff ? this.pairColumns(view) : this.stackColumns(view, most),
      search: (matches) => {
        const isFound = this.stacksWith(view, matches);
        return (row) => isFound(view.isDiff ? view.pairs.stack[row] : row);
      },
      select: (row) =>
        view.isDiff
          ? stackDetails(
              this.app,
              view.pairs.stack[row],
              view.pairs.sums.map((sum) => sum[row]),
            )
          : stackDetails(this.app, row),
      open: (row) => this.app.set(focused(this.app.state, "stack", String(view.isDiff ? view.pairs.stack[row] : row))),
    };
  }

  /** Stacks through a function with such a name: asked once a function, not once a stack. */
  private stacksWith(view: View, matches: (text: string) => boolean): (stack: number) => boolean {
    const { tree, leaf } = view.baseTree,
      isFound = view.model.fnName.map((name) => matches(name));
    const isOn = new Uint8Array(tree.count);
    for (let node = 1; node < tree.count; node++) isOn[node] = isOn[tree.parent[node]] | Number(isFound[tree.fn[node]]);
    return (stack) => isOn[leaf[stack]] === 1;
  }

  private pairColumns(view: View): Column[] {
    return this.changeColumns(view, view.pairs.sums, {
      id: "name",
      label: "Own function → what it called ← callers",
      width: "minmax(260px, 1fr)",
      sort: (row) => this.leafName(view.pairs.stack[row]),
      cell: (row) => this.stackCell(view.pairs.stack[row]),
    });
  }

  private changeColumns(view: View, sums: Float64Array[], name: Column): Column[] {
    const [before, after] = sums,
      of = (row: number) => view.change(sums.map((sum) => sum[row])),
      isSampled = sums.length > 2;
    const word = (row: number) => {
      const { by, isSure } = of(row);
      return !isSure
        ? "within ±"
        : !before[row]
          ? "new"
          : !after[row]
            ? "gone"
            : by > 0
              ? "grown"
              : by < 0
                ? "shrunk"
                : "same";
    };
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
      { id: "word", label: "", width: "80px", sort: word, cell: word },
    ];
  }

  private groupColumns(view: View, groups: Groups): Column[] {
    const all = view.groupMeasures,
      shown = view.measure,
      at = all.indexOf(shown);
    const name: Column = {
      id: "name",
      label: groups.kind[0].toUpperCase() + groups.kind.slice(1, -1),
      width: "minmax(220px, 1fr)",
      sort: (row) => groups.label(row),
      cell: (row) => [
        h(
          "span",
          { class: groups.kind !== "functions" || view.model.isOwn(row) ? "mono strong" : "mono" },
          groups.label(row),
        ),
        " ",
        h("span", { class: "mono dim" }, groups.where(row)),
      ],
    };
    if (view.isDiff) return this.changeColumns(view, groups.total, name);
    let most = 0;
    for (const value of groups.total[at]) if (value > most) most = value;
    const text = shown.isBytes ? units.size : units.count,
      wide = view.model.spread("peak") ? "250px" : undefined;
    const columns: Column[] = [
      name,
      {
        id: "total",
        label: shown.label,
        help: shown.help + ", in total: with all it calls",
        isNumber: true,
        width: wide ?? "130px",
        sort: (row) => groups.total[at][row],
        cell: (row) =>
          bar(text(groups.total[at][row]) + view.groupSure(groups.total, at, row), groups.total[at][row], most),
      },
      {
        id: "share",
        label: "Share",
        help: "of all",
        isNumber: true,
        width: "70px",
        sort: (row) => groups.total[at][row],
        cell: (row) => units.percent(groups.total[at][row], view.sums()[0]),
      },
      {
        id: "self",
        label: "Self",
        help: "by its own calls of the allocator",
        isNumber: true,
        width: wide ?? "100px",
        sort: (row) => groups.self[at][row],
        cell: (row) => text(groups.self[at][row]) + view.groupSure(groups.self, at, row),
      },
    ];
    all.forEach((other, i) => {
      if (i !== at)
        columns.push({
          id: other.id,
          label: other.label,
          help: other.help,
          isNumber: true,
          width: wide ?? "110px",
          sort: (row) => groups.total[i][row],
          cell: (row) =>
            (other.isBytes ? units.size : units.count)(groups.total[i][row]) + view.groupSure(groups.total, i, row),
        });
    });
    const part = view.model.parts[view.profiles[0]];
    if (view.profiles.length === 1 && part.history)
      columns.splice(
        1,
        0,
        this.sparkColumn((row) => this.later(() => sparkline(part, view.heldBy(part, groups.kind, row), 96, 22))),
      );
    return columns;
  }

  /** A place for what takes a while: rows are there at once, and scrolling goes on. */
  private later(make: () => Child): HTMLElement {
    const place = h("span", {});
    setTimeout(() => place.isConnected && fill(place, make()));
    return place;
  }

  private listGroups(view: View, kind: string): Listed {
    const groups = view.groups(kind),
      rows: number[] = [];
    for (let group = 0; group < groups.count; group++)
      if (groups.total.slice(0, view.isDiff ? 2 : view.groupMeasures.length).some((one) => one[group] > 0))
        rows.push(group);
    const keyOf = (row: number): [string, string] => {
      if (kind === "functions") return ["function", groups.label(row)];
      if (kind === "lines") return ["line", view.model.lines.list[row]];
      return kind === "files" ? ["file", groups.where(row)] : ["module", groups.where(row)];
    };
    return {
      columns: this.groupColumns(view, groups),
      rows,
      key: (row) => groups.label(row) + "\0" + groups.where(row),
      search: (matches) => (row) => matches(groups.label(row)) || matches(groups.where(row)),
      select: (row) => this.groupDetails(view, groups, kind, row),
      open: (row) => this.app.set(focused(this.app.state, ...keyOf(row))),
    };
  }

  private groupDetails(view: View, groups: Groups, kind: string, row: number): HTMLElement {
    const { app } = this,
      { total } = groups,
      sumsOf = (row: number) => total.map((sum) => sum[row]),
      all = view.groupMeasures;
    if (kind === "functions") return functionOf(app, row);
    const [focusKind, key] =
      kind === "lines"
        ? ["line", view.model.lines.list[row]]
        : kind === "files"
          ? ["file", groups.where(row)]
          : ["module", groups.where(row)];
    return h(
      "div",
      { class: "details" },
      h("h2", { class: "mono name" }, groups.label(row)),
      h("p", { class: "dim mono" }, groups.where(row)),
      h(
        "dl",
        {},
        view.isDiff
          ? pairFacts(view, sumsOf(row), view.change(sumsOf(row)).sure)
          : all.map((measure, i) =>
              fact(
                measure.label,
                (measure.isBytes ? units.size : units.count)(total[i][row]),
                view.groupSure(total, i, row),
              ),
            ),
      ),
      h(
        "div",
        { class: "actions" },
        h(
          "button",
          { type: "button", class: "quiet", onclick: () => app.set(focused(app.state, focusKind, key)) },
          "Focus",
        ),
      ),
      kind === "lines" ? sourceAround(app, groups.where(row), view.model.lineNumber[row]) : null,
      shapesThrough(
        app,
        (part, frame) =>
          (kind === "lines"
            ? part.line[frame]
            : kind === "files"
              ? part.file[frame]
              : view.model.fnModule[part.fn[frame]]) === row,
      ),
    );
  }

  private listThreads(view: View): Listed {
    const threads = view.profiles
      .map((i) => view.model.parts[i])
      .flatMap((part) => part.profile.facts.threads.map((thread) => ({ thread, part, facts: part.profile.facts })));
    const name = (row: number) => threads[row].thread.name || "[no name]";
    const number = numbersOf("130px");
    const only = (row: number) =>
      threads.length > 1 && this.app.set(focused(this.app.state, "thread", String(threads[row].thread.slot)));
    let most = 0;
    for (const { thread } of threads) most = Math.max(most, thread.allocated_bytes);
    const lasted = (row: number) =>
      (threads[row].thread.end_ns ?? threads[row].facts.process.duration_ns) - threads[row].thread.start_ns;
    // threads that had a slot of the recording one after the other are one line: their blocks cannot be distinguished
    const line = (row: number): Child => {
      const {
          part,
          facts,
          thread: { slot },
        } = threads[row],
        sharers = facts.threads.filter((other) => other.slot === slot).length;
      return h(
        "span",
        { title: sharers > 1 ? `of ${sharers} threads together, one after the other` : null },
        sparkline(
          part,
          part.history?.slots.map((held) => held[slot] ?? 0),
          96,
          22,
        ),
      );
    };
    return {
      columns: [
        {
          id: "name",
          label: "Thread",
          width: "minmax(180px, 1fr)",
          sort: name,
          cell: (row) => [
            h("span", { class: "mono strong" }, name(row)),
            " ",
            h("span", { class: "dim" }, `${threads[row].thread.tid} · ${threads[row].facts.program}`),
          ],
        },
        ...(threads.some(({ part }) => part.history) ? [this.sparkColumn(line)] : []),
        {
          id: "allocated",
          label: "Allocated",
          isNumber: true,
          width: "140px",
          sort: (row) => threads[row].thread.allocated_bytes,
          cell: (row) =>
            bar(units.size(threads[row].thread.allocated_bytes), threads[row].thread.allocated_bytes, most),
        },
        number("calls", "Calls", undefined, (row) => threads[row].thread.allocations, units.count),
        withSure(
          number("exit", "Left of it", undefined, (row) => threads[row].thread.at_exit_bytes, units.size),
          (row) => threads[row].thread.at_exit_estimate,
        ),
        number("start", "Started at", undefined, (row) => threads[row].thread.start_ns, units.duration),
        number("lasted", "Ran for", undefined, (row) => Math.max(lasted(row), 0), units.duration),
      ],
      rows: threads.map((_, i) => i),
      key: (row) => `${threads[row].thread.tid} ${threads[row].thread.start_ns}`,
      search: (matches) => (row) => matches(name(row)),
      select: (row) =>
        h(
          "div",
          { class: "details" },
          h("h2", { class: "mono name" }, name(row)),
          h("p", { class: "dim" }, `thread ${threads[row].thread.tid} of ${threads[row].facts.program}`),
          threads.length > 1
            ? h(
                "div",
                { class: "actions" },
                h("button", { type: "button", class: "quiet", onclick: () => only(row) }, "Only what it allocated"),
              )
            : null,
        ),
      open: only,
    };
  }

  /** The key by whose values contexts are listed; "": whole sets. */
  private get labelKey(): string {
    const { labelKeys } = this.app.model,
      { key } = this.app.state;
    return key === "*" ? "" : labelKeys.includes(key) ? key : (labelKeys[0] ?? "");
  }

  private makeKeys(isShown: boolean): void {
    const { labelKeys } = this.app.model,
      { labelKey } = this,
      focused = this.keys.contains(document.activeElement) ? document.activeElement!.id : "";
    const button = (key: string, label: string, help: string) =>
      toggle(`key-${key}`, label, help, key === (labelKey || "*"), () => this.app.set({ key, sort: "" }));
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

  private listContexts(view: View): Listed {
    const key = this.labelKey,
      rows = view.contexts(key),
      isOther = rows.map(({ labels }) => labels.some((label) => label.endsWith(OTHER)));
    const most = rows.reduce((most, row) => Math.max(most, row.peak), 0);
    const number = numbersOf("130px");
    const end = view.model.parts.every((part) => part.profile.facts.has_ended) ? "At the end" : "Now";
    const only = (row: number) => {
      const focus = rows[row].labels.map((label) => `context:${label}`);
      if (focus.length) this.app.set({ focus: [...new Set([...view.state.focus, ...focus])], zoom: "" });
    };
    const name = (row: number) => rows[row].name || "(none)";
    return {
      columns: [
        {
          id: "name",
          label: key || "Context",
          width: "minmax(200px, 1fr)",
          sort: name,
          cell: (row) => [
            h("span", { class: rows[row].labels.length ? "mono strong" : "dim" }, name(row)),
            isOther[row] ? h("span", { class: "dim" }, ` labels after the first ${LABELS_KEPT} of a process`) : null,
          ],
        },
        {
          ...number(
            "peak",
            "At the peak",
            "bytes that were live when the heap was largest",
            (row) => rows[row].peak,
            units.size,
          ),
          width: "140px",
          cell: (row) => bar(units.size(rows[row].peak), rows[row].peak, most),
        },
        number("exit", end, "bytes that were not freed", (row) => rows[row].exit, units.size),
        number("allocated", "Allocated", "bytes asked for over all time", (row) => rows[row].allocated, units.size),
        number("calls", "Calls", "number of allocations", (row) => rows[row].calls, units.count),
        number(
          "entered",
          "Entered",
          "times that a thread came in",
          (row) => rows[row].entered,
          (value) => (value ? units.count(value) : "–"),
        ),
      ],
      rows: [...rows.keys()].filter((row) => rows[row].calls || rows[row].entered),
      key: (row) => rows[row].labels.join("\0"),
      search: (matches) => (row) => matches(name(row)),
      select: (row) =>
        h(
          "div",
          { class: "details" },
          h("h2", { class: "mono name" }, rows[row].labels.join(" ") || "(none)"),
          rows[row].labels.length
            ? h(
                "div",
                { class: "actions" },
                h("button", { type: "button", class: "quiet", onclick: () => only(row) }, "Only what it allocated"),
              )
            : h("p", { class: "dim" }, key ? `what has no label ${key}` : "what was allocated outside of all contexts"),
          view.model.spread("peak")
            ? h("p", { class: "dim" }, "Estimates from samples: cairn report --json has their intervals.")
            : null,
        ),
      open: only,
    };
  }

  private listProcesses(): Listed {
    const { run } = this.app.model.page,
      rows = run!.rows,
      { parts } = this.app.model;
    const profileOf = (row: number) =>
      parts.findIndex((part) => rows[row].file && part.profile.facts.path.endsWith("/" + rows[row].file));
    let most = 0;
    for (const row of rows) most = Math.max(most, row.peak);
    const number = numbersOf("115px");
    const ending = (row: number) =>
      rows[row].signal
        ? `signal ${rows[row].signal}`
        : rows[row].status === undefined
          ? ""
          : `status ${rows[row].status}`;
    const show = (row: number) =>
      profileOf(row) >= 0 &&
      this.app.set({ process: String(profileOf(row)), view: "overview", zoom: "", focus: [], pivot: "" });
    const line = (live: number[] = []) =>
      live.length ? lineOf([...live.keys(), live.length], [...live, live[live.length - 1]], 96, 22) : null;
    return {
      columns: [
        {
          id: "name",
          label: "Process",
          width: "minmax(200px, 1fr)",
          sort: (row) => rows[row].name,
          cell: (row) => [
            h("span", { class: "mono strong" }, rows[row].name),
            " ",
            h("span", { class: "dim" }, rows[row].pid),
          ],
        },
        ...(rows.some((row) => row.live) ? [this.sparkColumn((row) => line(rows[row].live))] : []),
        {
          id: "peak",
          label: "Peak heap",
          isNumber: true,
          width: rows.some((row) => row.peak_estimate) ? "250px" : "140px",
          sort: (row) => rows[row].peak,
          cell: (row) => bar(units.size(rows[row].peak) + sureOf(rows[row].peak_estimate), rows[row].peak, most),
        },
        number(
          "rss",
          "RSS peak",
          undefined,
          (row) => rows[row].rss_peak,
          (value) => (value ? units.size(value) : "–"),
        ),
        number("allocated", "Allocated", undefined, (row) => rows[row].allocated, units.size),
        number("calls", "Calls", undefined, (row) => rows[row].calls, units.count),
        withSure(
          number("exit", "At the end", undefined, (row) => rows[row].exit, units.size),
          (row) => rows[row].exit_estimate,
        ),
        number("duration", "Ran for", undefined, (row) => rows[row].duration_ns, units.duration),
        { id: "ending", label: "Ended", width: "90px", sort: ending, cell: ending },
      ],
      rows: rows.map((_, i) => i),
      key: (row) => row,
      search: (matches) => (row) => matches(rows[row].name) || matches(String(rows[row].pid)),
      select: (row) =>
        h(
          "div",
          { class: "details" },
          h("h2", { class: "mono name" }, rows[row].name),
          h("p", { class: "dim" }, `process ${rows[row].pid}, child of ${rows[row].ppid}`),
          profileOf(row) >= 0
            ? h(
                "div",
                { class: "actions" },
                h("button", { type: "button", class: "quiet", onclick: () => show(row) }, "Show this process"),
              )
            : h(
                "p",
                { class: "dim" },
                rows[row].file
                  ? "Small: its stacks are not in this page (cairn open on its file shows them)."
                  : "It left no recording: it made few allocations.",
              ),
        ),
      open: show,
    };
  }

  private list(view: View): Listed {
    const kind = this.kinds.some(([id]) => id === view.state.table) ? view.state.table : "stacks";
    if (kind === "threads") return this.listThreads(view);
    if (kind === "contexts") return this.listContexts(view);
    if (kind === "processes") return this.listProcesses();
    return kind === "stacks" ? this.listStacks(view) : this.listGroups(view, kind);
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
