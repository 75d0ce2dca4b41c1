// SPDX-License-Identifier: Apache-2.0
// The panel beside flame graph and table: everything about one function or one stack, its source
// where it was at hand, and what can be done with it.

import { focused, type App } from "./app";
import { h, type Child } from "./dom";
import { place } from "./host";
import { INLINED, MARK, type Part } from "./numbering";
import * as units from "./units";
import type { View } from "./view";
import { sparkline } from "./spark";

export function amount(view: View, value: number): string {
  return view.measure.isBytes ? units.size(value) : units.count(value);
}

export function fact(label: string, ...value: Child[]): HTMLElement {
  return h("div", { class: "fact" }, h("dt", {}, label), h("dd", {}, value));
}

function action(label: string, help: string, onclick: () => void): HTMLElement {
  return h("button", { type: "button", class: "quiet", title: help, onclick }, label);
}

function functionActions(app: App, name: string): HTMLElement {
  const { state } = app;
  return h(
    "div",
    { class: "actions" },
    action("Focus", "Only stacks that go through this function, on every screen", () =>
      app.set(focused(state, "function", name)),
    ),
    app.model.isOfOwners
      ? action("Owners & what it keeps", "Who keeps it and what it keeps", () =>
          app.set({ view: "flame", pivot: name, zoom: "" }),
        )
      : action("Callers & callees", "Who calls it and what it calls", () =>
          app.set({ view: "flame", pivot: name, zoom: "" }),
        ),
    action("Hide", "Leave this function out of the stacks", () =>
      app.set({ hide: [...state.hide, name], pivot: "", zoom: "" }),
    ),
  );
}

/** Lines of a source around one of them, if they came with the page. */
export function sourceAround(app: App, file: string, line: number): HTMLElement | null {
  for (const part of app.model.parts) {
    for (const piece of part.profile.sources[file] ?? []) {
      const first = piece[0],
        texts = piece.slice(1) as string[];
      if (line < first || line >= first + texts.length) continue;
      const from = Math.max(line - 4, first),
        to = Math.min(line + 4, first + texts.length - 1);
      const rows: Child[] = [];
      for (let at = from; at <= to; at++)
        rows.push(
          h(
            "div",
            { class: at === line ? "line here" : "line" },
            h("span", { class: "number" }, at),
            h("code", {}, texts[at - first] || " "),
          ),
        );
      return h(
        "div",
        { class: "source", role: "group", "aria-label": `${units.baseName(file)} line ${line}`, tabindex: 0 },
        rows,
      );
    }
  }
  return null;
}

/** The lines of one function that hold most, with their sources; of a library's, those of the program that call it. */
function linesOf(app: App, fn: number): Child {
  const { model, view } = app,
    wanted = model.functionsNamed(model.fnName[fn]),
    sums = new Map<number, number>(),
    isOwn = model.isOwn(fn);
  const mask = view.mask;
  for (let stack = 0; stack < mask.length; stack++) {
    const value = mask[stack] ? view.shown[stack] : 0;
    if (!value) continue;
    const part = model.parts[model.partOf[stack]],
      seen = new Set<number>();
    let frames = model.framesOf(stack, true);
    if (!isOwn) {
      const at = frames.findIndex((frame) => wanted.has(part.fn[frame])),
        outer = at < 0 ? [] : frames.slice(at),
        own = model.firstOwn(part, outer);
      frames = own ? [outer[own]] : outer.slice(0, 1);
    }
    for (const frame of frames) {
      const line = part.line[frame];
      if (line < 0 || seen.has(line) || (isOwn && !wanted.has(part.fn[frame]))) continue;
      seen.add(line);
      sums.set(line, (sums.get(line) ?? 0) + value);
    }
  }
  const lines = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 3);
  if (!lines.length) return null;
  return [
    h("h3", {}, !isOwn ? "Called from" : lines.length > 1 ? "Lines that hold most" : "Line"),
    lines.map(([line, value]) => {
      const file = model.files.list[model.lineFile[line]],
        number = model.lineNumber[line];
      return h(
        "div",
        { class: "of-line" },
        h(
          "div",
          { class: "row-between" },
          place(file, number, `${units.baseName(file)}:${number}`),
          h("span", {}, amount(view, value)),
        ),
        sourceAround(app, file, number),
      );
    }),
  ];
}

export interface Values {
  value: number;
  self: number;
  whole: number;
  pair: number[] | null;
  net?: number; // of changes: what they come to
  sure?: string;
  selfSure?: string;
}

export function pairFacts(view: View, [before, after]: number[], sure = ""): Child[] {
  return [
    fact("Before", amount(view, before)),
    fact("After", amount(view, after)),
    fact("Change", units.signed(amount(view, after - before), after - before), sure),
  ];
}

function valueFacts(view: View, values: Values): Child[] {
  const { value, self, whole, pair, net, sure, selfSure } = values;
  if (pair) return pairFacts(view, pair, sure);
  if (net !== undefined)
    return [fact("Changes", amount(view, value)), fact("Together", units.signed(amount(view, net), net))];
  return [
    fact(view.measure.label, amount(view, value), sure, " ", h("span", { class: "dim" }, units.percent(value, whole))),
    self > 0 ? fact("Self", amount(view, self), selfSure) : null,
  ];
}

export function functionDetails(app: App, fn: number, values: Values): HTMLElement {
  const { model, view } = app,
    name = model.fnName[fn],
    module = model.modules.list[model.fnModule[fn]];
  return h(
    "div",
    { class: "details" },
    h("h2", { class: "mono name" }, name),
    module ? h("p", { class: "dim mono", title: module }, units.baseName(module)) : null,
    h("dl", {}, valueFacts(view, values)),
    functionActions(app, name),
    linesOf(app, fn),
    shapesThrough(app, (part, frame) => model.fnName[part.fn[frame]] === name),
  );
}

/** The same with what the table of functions says of it. */
export function functionOf(app: App, fn: number): HTMLElement {
  const { view } = app,
    groups = view.groups("functions"),
    { total, self } = groups,
    at = view.isDiff ? 1 : view.groupMeasures.indexOf(view.measure),
    sums = total.map((sum) => sum[fn]);
  return functionDetails(app, fn, {
    value: total[at][fn],
    self: self[at][fn],
    whole: view.sums()[0],
    pair: view.isDiff ? sums : null,
    sure: view.isDiff ? view.change(sums).sure : view.groupSure(total, at, fn),
    selfSure: view.groupSure(self, at, fn),
  });
}

/** The program's own function that most memory is allocated by, with what it calls of libraries; -1: there is none. */
export function largestOwn({ model, view }: App): number {
  const sums = new Float64Array(model.fnName.length),
    { mask, shown } = view;
  for (let stack = 0; stack < mask.length; stack++) {
    if (!mask[stack] || !(shown[stack] > 0)) continue;
    const part = model.parts[model.partOf[stack]],
      frames = model.framesOf(stack, view.state.internal),
      frame = frames[model.firstOwn(part, frames)];
    if (frame !== undefined && !(part.flags[frame] & MARK)) sums[part.fn[frame]] += shown[stack];
  }
  return sums.reduce((most, sum, fn) => (sum > (sums[most] ?? 0) ? fn : most), -1);
}

/** Sizes, reallocations and ages of the blocks of stacks through some frames. */
export function shapesThrough(app: App, isHit: (part: Part, frame: number) => boolean): Child {
  const { model } = app;
  return shapesOf(app, (stack) =>
    model.framesOf(stack, true).some((frame) => isHit(model.parts[model.partOf[stack]], frame)),
  );
}

function frameRow(app: App, stack: number, frame: number): HTMLElement {
  const { model } = app,
    part = model.parts[model.partOf[stack]],
    fn = part.fn[frame],
    name = model.fnName[fn];
  const isMark = (part.flags[frame] & MARK) !== 0,
    line = part.line[frame],
    text = model.frameLocation(part, frame);
  const label = isMark
    ? h("span", { class: "dim" }, name)
    : h(
        "button",
        {
          type: "button",
          class: "link mono",
          title: "Callers and callees of this function",
          onclick: () => app.set({ view: "flame", pivot: name, zoom: "" }),
        },
        name,
      );
  return h(
    "li",
    { class: part.flags[frame] & INLINED ? "inlined" : "" },
    label,
    " ",
    line >= 0
      ? place(model.files.list[model.lineFile[line]], model.lineNumber[line], text)
      : h("span", { class: "dim mono" }, text),
  );
}

const SIZES_SHOWN = 10;

/** Sizes, reallocations and ages of the blocks of some stacks, as far as the page has them. */
function shapesOf(app: App, isWanted: (stack: number) => boolean): Child {
  const { model, view } = app,
    counts = new Map<number, number>(),
    reallocs = [0, 0, 0],
    ages: number[] = [];
  let stacks = 0;
  for (const index of view.profiles) {
    const { profile, firstStack } = model.parts[index];
    for (const shape of profile.shapes) {
      if (!view.mask[firstStack + shape.stack] || !isWanted(firstStack + shape.stack)) continue;
      stacks++;
      for (const [bytes, count] of shape.sizes) counts.set(bytes, (counts.get(bytes) ?? 0) + count);
      shape.reallocs?.forEach((value, i) => (reallocs[i] += value));
      shape.ages_ms?.forEach((value, i) => (ages[i] = (ages[i] ?? 0) + value));
    }
  }
  if (!stacks) return null;
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0),
    frequent = [...counts].sort((a, b) => b[1] - a[1]).slice(0, SIZES_SHOWN),
    most = frequent[0]?.[1];
  const sizes = frequent
    .sort((a, b) => a[0] - b[0])
    .map(([bytes, count]) => {
      const share = h("span", { class: "share" });
      share.style.width = `${(100 * count) / most}%`;
      return h(
        "div",
        { class: "fact sized" },
        share,
        h("dt", {}, units.size(bytes)),
        h("dd", {}, units.count(count), " ", h("span", { class: "dim" }, units.percent(count, all))),
      );
    });
  const freed = ages.reduce((sum, one) => sum + one, 0);
  let bucket = 0;
  for (let sum = 0; bucket < ages.length; bucket++) if ((sum += ages[bucket]) * 2 >= freed) break;
  return [
    sizes.length
      ? [
          h(
            "h3",
            {},
            "Sizes of blocks",
            stacks > 1 ? h("span", { class: "dim small" }, ` of ${units.count(stacks)} stacks`) : null,
          ),
          h("dl", {}, sizes),
        ]
      : null,
    reallocs[0]
      ? h(
          "p",
          {},
          `${units.plural(reallocs[0], "realloc")}, ${units.percent(reallocs[1], reallocs[0])} in place, ${units.size(reallocs[2])} copied`,
        )
      : null,
    freed
      ? h(
          "p",
          {},
          `Half of ${view.model.isOfOwners ? "them are" : "those that were freed lived"} less than ${units.duration(Math.max(2 ** bucket, 1) * 1e6)}${view.model.isOfOwners ? " old" : ""}`,
        )
      : null,
  ];
}

const FRAMES_SHOWN = 400;

/** Everything about a stack; of a comparison, of all stacks that a row of it adds up. */
export function stackDetails(
  app: App,
  stack: number,
  pair: number[] | null = null,
  stacks: number[] = [stack],
): HTMLElement {
  const { model, view, state } = app;
  const frames = model.framesOf(stack, state.internal),
    part = model.parts[model.partOf[stack]];
  const sources: Child[] = [];
  for (const frame of frames) {
    const line = part.line[frame];
    if (line < 0) continue;
    const file = model.files.list[model.lineFile[line]],
      piece = sourceAround(app, file, model.lineNumber[line]);
    if (piece)
      sources.push(
        h("p", {}, place(file, model.lineNumber[line], `${units.baseName(file)}:${model.lineNumber[line]}`)),
        piece,
      );
    if (sources.length >= 4) break;
  }
  const sides = (pair ? ["before", "after"] : [""]).map((role) =>
    stacks.filter((one) => !role || !model.isDiff || model.parts[model.partOf[one]].profile.facts.role === role),
  );
  const sum = (values: ArrayLike<number>, of: number[]) => of.reduce((all, one) => all + values[one], 0);
  const { isOfOwners } = model,
    kept = view.measures[0];
  const calls = sum(isOfOwners ? kept.counts : view.by("calls").values, stacks),
    allocated = sum(isOfOwners ? kept.values : view.by("allocated").values, stacks);
  const shown = (text: (values: number[]) => string) => sides.map(text).join(" → ");
  return h(
    "div",
    { class: "details" },
    h("h2", {}, "Stack"),
    sparkline(
      part,
      pair ? part.history?.values.map((held) => held[stack - part.firstStack]) : view.heldByRow(stack),
      300,
      44,
    ),
    h(
      "dl",
      {},
      pair ? pairFacts(view, pair, view.change(pair).sure) : null,
      view.measures
        .filter(({ id }) => ["at", "peak", "exit", "allocated"].includes(id))
        .map((measure) =>
          fact(
            measure.label,
            shown((of) => units.size(sum(measure.values, of))),
            pair ? "" : view.sure(stack, measure),
            " ",
            h(
              "span",
              { class: "dim" },
              measure.counts === measure.values
                ? null
                : shown((of) => units.plural(sum(measure.counts, of), ...measure.noun)),
            ),
          ),
        ),
      view.measures
        .filter(({ id }) => ["temporary", "slack"].includes(id))
        .map((measure) =>
          sum(measure.values, stacks)
            ? fact(
                measure.label,
                shown((of) => (measure.isBytes ? units.size : units.count)(sum(measure.values, of))),
              )
            : null,
        ),
      isOfOwners || (model.hasCalls && model.hasBlocks)
        ? fact("Average size", calls ? units.size(allocated / calls) : "–")
        : null,
    ),
    shapesOf(app, (one) => stacks.includes(one)),
    h(
      "div",
      { class: "actions" },
      action("Only this stack", "Show this stack alone, on every screen", () =>
        app.set(focused(state, "stack", String(stack))),
      ),
    ),
    h("h3", {}, "Frames, innermost first"),
    h(
      "ol",
      { class: "frames" },
      frames.slice(0, FRAMES_SHOWN).map((frame) => frameRow(app, stack, frame)),
    ),
    frames.length > FRAMES_SHOWN
      ? h("p", { class: "dim" }, `and ${units.plural(frames.length - FRAMES_SHOWN, "frame")} more`)
      : null,
    sources.length ? [h("h3", {}, "Source"), sources] : null,
    view.model.parts.length > 1
      ? h("p", { class: "dim" }, `in ${part.profile.facts.program} (${part.profile.facts.process.pid})`)
      : null,
  );
}

export function hint(text: string): HTMLElement {
  return h("div", { class: "details empty" }, h("p", { class: "dim" }, text));
}
