// SPDX-License-Identifier: Apache-2.0
// The lists of what stacks go through: functions, lines, files, modules.

import { focused, type App } from "./app";
import { bar, changeColumns, later, sparkColumn, type Listed } from "./columns";
import { fact, functionOf, pairFacts, shapesThrough, sourceAround } from "./details";
import { h } from "./dom";
import { place } from "./host";
import { sparkline } from "./spark";
import type { Column } from "./table";
import * as units from "./units";
import type { Groups, View } from "./view";

function groupColumns(view: View, groups: Groups): Column[] {
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
  if (view.isDiff) return changeColumns(view, groups.total, name);
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
      sparkColumn((row) => later(() => sparkline(part, view.heldBy(part, groups.kind, row), 96, 22))),
    );
  return columns;
}

function groupDetails(app: App, view: View, groups: Groups, kind: string, row: number): HTMLElement {
  const { total } = groups,
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
    kind === "lines"
      ? h("p", {}, place(view.model.files.list[view.model.lineFile[row]], view.model.lineNumber[row], key))
      : h("p", { class: "dim mono" }, groups.where(row)),
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

export function listGroups(app: App, view: View, kind: string): Listed {
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
    columns: groupColumns(view, groups),
    rows,
    key: (row) => groups.label(row) + "\0" + groups.where(row),
    search: (matches) => (row) => matches(groups.label(row)) || matches(groups.where(row)),
    select: (row) => groupDetails(app, view, groups, kind, row),
    open: (row) => app.set(focused(app.state, ...keyOf(row))),
  };
}
