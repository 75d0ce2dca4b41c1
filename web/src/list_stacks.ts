// SPDX-License-Identifier: Apache-2.0
// The list of stacks; of a comparison, of pairs of them.

import { focused, type App } from "./app";
import { bar, changeColumns, numbersOf, sparkColumn, type Listed, type Matches } from "./columns";
import { amount, stackDetails } from "./details";
import type { Child } from "./dom";
import { stackLine } from "./findings";
import { sparkline } from "./spark";
import type { Column } from "./table";
import * as units from "./units";
import { USUAL_MEASURES, type View } from "./view";

const CALLERS_SHOWN = 4;

function leafName(app: App, stack: number): string {
  return app.model.told(stack, app.state.internal, 0).own;
}

function stackCell(app: App, stack: number): Child {
  return stackLine(app, stack, CALLERS_SHOWN);
}

function stackColumns(app: App, view: View, most: number): Column[] {
  const { model } = app,
    { measure } = view,
    values = view.ofRows(measure.values),
    counts = view.ofRows(measure.counts);
  const number = numbersOf("108px");
  const columns: Column[] = [
    {
      id: "name",
      label: model.isOfOwners ? "What is kept ← who keeps it" : "Own function → what it called ← callers",
      width: "minmax(min(260px, 44vw), 1fr)",
      sort: (row) => leafName(app, row),
      cell: (row) => stackCell(app, row),
    },
    {
      id: "value",
      label: measure.label,
      help: measure.help,
      isNumber: true,
      width: "130px",
      sort: (row) => values[row],
      cell: (row) => bar(amount(view, values[row]), values[row], most),
    },
  ];
  const spread = model.spread(measure.id);
  if (spread)
    columns.push({
      ...number(
        "interval",
        "±",
        "half the width of the 95 % interval, and the samples behind it",
        (row) => view.ofRows(spread[0])[row],
        String,
      ),
      width: "190px",
      cell: (row) => view.sure(row, measure) || "exact",
    });
  if (!model.hasHistory)
    columns.push(
      number(
        "share",
        "Share",
        "of all",
        (row) => values[row],
        (value) => units.percent(value, view.sums()[0]),
      ),
    );
  if (measure.counts !== measure.values)
    columns.push(
      number(
        "blocks",
        measure.noun[1][0].toUpperCase() + measure.noun[1].slice(1),
        "as many " + measure.noun[1],
        (row) => counts[row],
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
      (row) => view.ofRows(other.values)[row],
      other.isBytes ? units.size : units.count,
    );
    columns.push(
      model.spread(id)
        ? { ...column, width: "250px", cell: (row) => [column.cell(row), view.sure(row, other)] }
        : column,
    );
  }
  if (model.hasHistory)
    columns.splice(
      matchMedia("(max-width: 640px)").matches ? columns.length : 1, // figures come first on a telephone
      0,
      sparkColumn((row) => {
        const part = model.parts[model.partOf[row]];
        return sparkline(part, view.heldByRow(row), 96, 22);
      }),
    );
  return columns;
}

function pairColumns(app: App, view: View): Column[] {
  const name: Column = {
    id: "name",
    label: "Own function → what it called ← callers",
    width: "minmax(min(260px, 44vw), 1fr)",
    sort: (row) => leafName(app, view.pairs.stack[row]),
    cell: (row) => stackCell(app, view.pairs.stack[row]),
  };
  return changeColumns(view, view.pairs.sums, name, view.pairs.calls);
}

/** Stacks through a function with such a name: asked once a function, not once a stack. */
function stacksWith(view: View, matches: Matches): (stack: number) => boolean {
  const { tree, leaf } = view.baseTree,
    isFound = view.model.fnName.map((name) => matches(name));
  const isOn = new Uint8Array(tree.count);
  for (let node = 1; node < tree.count; node++) isOn[node] = isOn[tree.parent[node]] | Number(isFound[tree.fn[node]]);
  return (stack) => isOn[leaf[stack]] === 1;
}

export function listStacks(app: App, view: View): Listed {
  const rows: number[] = [],
    mask = view.isDiff ? view.mask : view.rows,
    values = view.isDiff ? view.measure.values : view.ofRows(view.measure.values),
    calls = view.isDiff ? view.by("calls").values : view.ofRows(view.by("calls").values);
  let most = 0;
  for (let stack = 0; stack < mask.length; stack++) {
    if (!mask[stack] || (values[stack] <= 0 && calls[stack] <= 0)) continue;
    rows.push(stack);
    if (values[stack] > most) most = values[stack];
  }
  return {
    rows: view.isDiff
      ? [...view.pairs.stack.keys()].filter((row) => view.pairs.sums[0][row] || view.pairs.sums[1][row])
      : rows,
    key: (row) => view.model.stackKey(view.isDiff ? view.pairs.stack[row] : row),
    columns: view.isDiff ? pairColumns(app, view) : stackColumns(app, view, most),
    search: (matches) => {
      const isFound = stacksWith(view, matches);
      return (row) => isFound(view.isDiff ? view.pairs.stack[row] : row);
    },
    select: (row) =>
      view.isDiff
        ? stackDetails(
            app,
            view.pairs.stack[row],
            view.pairs.sums.map((sum) => sum[row]),
            view.stacksOfPair(row),
          )
        : stackDetails(app, row, null, view.alikeTo(row)),
    open: (row) => app.set(focused(app.state, "stack", String(view.isDiff ? view.pairs.stack[row] : row))),
  };
}
