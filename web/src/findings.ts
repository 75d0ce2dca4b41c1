// SPDX-License-Identifier: Apache-2.0
// What is worth knowing first, in plain words; each finding leads to the screen that shows it.

import { focused, type App } from "./app";
import { h, type Child } from "./dom";
import type { ToldFinding } from "./data";
import type { State } from "./state";
import * as units from "./units";
import type { View } from "./view";

export interface Finding {
  text: string;
  detail: string;
  weight: number;
  go: Partial<State>;
  /** One of the tool's, as `cairn report --view findings` has them; the others are figures that stand out. */
  isTold?: boolean;
}

const MUCH = 0.2,
  WORTH_BYTES = 64 * 1024;

function largest(view: View, id: string): { stack: number; value: number; sum: number } {
  const { values } = view.by(id),
    mask = view.mask;
  let stack = -1,
    sum = 0;
  for (let i = 0; i < mask.length; i++) {
    if (!mask[i]) continue;
    sum += values[i];
    if (stack < 0 || values[i] > values[stack]) stack = i;
  }
  return { stack, value: stack < 0 ? 0 : values[stack], sum };
}

/** "read_line server.cc:86 → std::vector<char>::resize ← main": who allocates, by what, and who wanted it. */
export function stackTitle(app: App, stack: number, callers = 1): string {
  const { own, where, called, callers: by } = app.model.told(stack, app.state.internal, callers);
  return [where ? `${own} ${where}` : own, called && `→ ${called}`, ...by.map((one) => "← " + one)]
    .filter(Boolean)
    .join(" ");
}

/** The same with its parts told apart. */
export function stackLine(app: App, stack: number, callers: number): Child {
  const { own, where, called, callers: by } = app.model.told(stack, app.state.internal, callers);
  return [
    h("span", { class: "mono strong" }, own),
    where ? h("span", { class: "where" }, " " + where) : null,
    h(
      "span",
      { class: "mono dim" },
      called ? " → " + called : "",
      by.map((one) => " ← " + one),
    ),
  ];
}

function oneStack(app: App, view: View): Finding[] {
  const { stack, value, sum } = largest(view, "peak");
  if (stack < 0 || value < MUCH * sum || value < WORTH_BYTES) return [];
  const blocks = view.model.hasBlocks ? ` in ${units.plural(view.by("peak").counts[stack], "block")}` : "";
  return [
    {
      text: `${units.percent(value, sum)} of the peak is one stack`,
      detail: `${units.size(value)}${blocks}: ${stackTitle(app, stack)}`,
      weight: value / sum,
      go: { view: "table", table: "stacks", measure: "peak", ...focused(app.state, "stack", String(stack)) },
    },
  ];
}

function leftovers(app: App, view: View): Finding[] {
  const { stack, value, sum } = largest(view, "exit"),
    peak = view.sums(view.by("peak"))[0];
  const facts = app.model.parts[view.profiles[0]].profile.facts;
  if (!facts.has_ended || sum < WORTH_BYTES || stack < 0) return [];
  return [
    {
      text: `${units.size(sum)} were never freed`,
      detail: `${units.percent(sum, peak)} of the peak; most of it, ${units.size(value)}, from ${stackTitle(app, stack)}`,
      weight: Math.min(sum / (peak || 1), 1) * 0.8,
      go: { view: "flame", measure: "exit", pivot: "", zoom: "" },
    },
  ];
}

function isGrowing(app: App, view: View): Finding[] {
  const profile = app.model.parts[view.profiles[0]].profile,
    { facts } = profile;
  const at = facts.peak.at_ns,
    whole = facts.process.duration_ns;
  if (
    view.profiles.length > 1 ||
    !facts.has_ended ||
    whole < 5e8 ||
    at < 0.97 * whole ||
    facts.peak.bytes < WORTH_BYTES
  )
    return [];
  return [
    {
      text: "The heap was largest at its end",
      detail: `it reached ${units.size(facts.peak.bytes)} ${units.duration(at)} after the start, of ${units.duration(whole)}`,
      weight: 0.5,
      go: { view: "flame", measure: "exit", pivot: "", zoom: "" },
    },
  ];
}

function churn(app: App, view: View): Finding[] {
  const [allocated] = view.sums(view.by("allocated")),
    [peak] = view.sums(view.by("peak"));
  const { stack, value, sum } = largest(view, "calls");
  if (!view.model.hasCalls || stack < 0 || allocated < 10 * peak || sum < 10000) return [];
  const bytes = view.by("allocated").values[stack];
  return [
    {
      text: `${units.short(sum)} allocations for a heap of ${units.size(peak)}`,
      detail: `${units.size(allocated)} over all time, ${(allocated / peak).toFixed(0)} times the peak; ${units.percent(value, sum)} of the calls (${units.size(bytes / value)} each) from ${stackTitle(app, stack)}`,
      weight: 0.45,
      go: { view: "table", table: "stacks", measure: "calls", sort: "value" },
    },
  ];
}

function smallBlocks(view: View): Finding[] {
  const { mask } = view,
    peak = view.by("peak");
  let bytes = 0,
    blocks = 0;
  for (let i = 0; i < mask.length; i++) {
    if (!mask[i] || !peak.counts[i] || peak.values[i] / peak.counts[i] > 32) continue;
    bytes += peak.values[i];
    blocks += peak.counts[i];
  }
  if (!view.model.hasBlocks || blocks < 10000) return [];
  return [
    {
      text: `${units.short(blocks)} blocks of 32 bytes or less at the peak`,
      detail: `${units.size(bytes)} asked for; beside that each costs what the allocator rounds up or keeps with it (glibc: 8 bytes or more)`,
      weight: 0.3,
      go: { view: "table", table: "stacks", measure: "peak-blocks", sort: "value" },
    },
  ];
}

function library(app: App, view: View): Finding[] {
  const { model, mask } = view,
    { values } = view.by("peak"),
    program = model.modules.find(view.program),
    [whole] = view.sums(view.by("peak"));
  const own = new Float64Array(model.modules.list.length);
  for (let stack = 0; stack < mask.length; stack++) {
    const frame = mask[stack] && values[stack] ? model.innermost(stack, app.state.internal).frame : -1;
    if (frame >= 0) own[model.fnModule[model.parts[model.partOf[stack]].fn[frame]]] += values[stack];
  }
  own[program] = 0;
  const value = own.reduce((most, one) => Math.max(most, one), 0),
    path = value ? model.modules.list[own.indexOf(value)] : "";
  if (!path || value < 0.3 * whole || value < WORTH_BYTES) return [];
  return [
    {
      text: `${units.percent(value, whole)} of the peak is allocated by ${units.baseName(path)}`,
      detail: `${units.size(value)}, by the library's own calls of the allocator`,
      weight: (0.6 * value) / whole,
      go: { view: "flame", measure: "peak", ...focused(app.state, "module", path) },
    },
  ];
}

/** Where a finding of the tool leads, by its kind. */
function placeOf(one: ToldFinding, only: Partial<State>): Partial<State> {
  if (one.kind === "freed_by") return { view: "table", table: "threads", sort: "" };
  if (one.kind === "free" || one.kind === "arenas" || one.kind === "huge") return { view: "overview" };
  if (one.kind === "temporary" && !one.is_estimate) return { view: "flame", measure: "temporary", zoom: "", pivot: "" };
  const isAboutCalls = one.kind === "temporary" || one.kind === "ages" || one.kind === "reuse";
  return { view: "table", table: "stacks", ...(isAboutCalls ? { measure: "calls", sort: "value" } : {}), ...only };
}

/** The command that prints a page of the documentation, as the terminal names it. */
function helpOf(page: string): string {
  return page.replace(/^docs\/howto\/([\w-]+)\.md/, "cairn help $1");
}

/** The tool's own findings, in its words (tool/render/findings.c). */
function told(app: App, view: View): Finding[] {
  const least = 0.6; // more than the page's own
  return view.profiles.flatMap((i) => {
    const part = view.model.parts[i];
    return part.profile.findings.map((one): Finding => {
      const stack = part.firstStack + (one.stack ?? 0);
      return {
        text: one.text,
        detail: `${one.saves}; ${one.sure ? `sure: ${one.sure}; ` : ""}how: ${helpOf(one.page)}`,
        weight: least + (1 - least) * Math.min(one.gain, 1),
        isTold: true,
        go: placeOf(one, one.stack === undefined ? {} : focused(app.state, "stack", String(stack))),
      };
    });
  });
}

function failures(view: View): Finding[] {
  const failed = view.profiles.reduce((sum, i) => sum + view.model.parts[i].profile.facts.totals.failed, 0);
  if (!failed) return [];
  return [
    {
      text: `${units.plural(failed, "allocation")} failed`,
      detail: "the allocator returned nothing",
      weight: 0.9,
      go: { view: "table", table: "threads" },
    },
  ];
}

function threads(view: View): Finding[] {
  const all = view.profiles.flatMap((i) => view.model.parts[i].profile.facts.threads);
  if (all.length < 2 || !view.model.hasCalls) return [];
  const sum = all.reduce((bytes, thread) => bytes + thread.allocated_bytes, 0);
  const most = all.reduce((a, b) => (a.allocated_bytes >= b.allocated_bytes ? a : b));
  if (!sum) return [];
  return [
    {
      text: `${units.plural(all.length, "thread")}, of which ${most.name || most.tid} allocated ${units.percent(most.allocated_bytes, sum)}`,
      detail: units.size(most.allocated_bytes),
      weight: 0.2,
      go: { view: "table", table: "threads", sort: "" },
    },
  ];
}

function changes(app: App, view: View): Finding[] {
  const { isBytes } = view.measure,
    { stack: of, sums, calls } = view.pairs;
  const change = (node: number) => view.change(sums.map((sum) => sum[node]));
  const text = isBytes ? units.size : units.count,
    whole = Math.max(...view.sums());
  return [...of.keys()]
    .filter((node) => of[node] >= 0)
    .map((node) => ({ node, ...change(node) }))
    .filter(({ by, isSure }) => isSure && Math.abs(by) > whole / 200)
    .sort((a, b) => Math.abs(b.by) - Math.abs(a.by))
    .slice(0, 6)
    .map(({ node, by, sure }) => {
      const said: Record<string, string> = {
        new: "a new stack",
        gone: "a stack is gone",
        grown: "a stack grew",
        shrunk: "a stack shrank",
      };
      const word = view.wordOf(sums, node, calls),
        sign = units.signed(text(by), by) + sure;
      return {
        text: `${sign}: ${said[word] ?? `a stack is ${word}`}`,
        detail: stackTitle(app, of[node], 3),
        weight: Math.abs(by) / whole,
        go: { view: "table" as const, table: "stacks", sort: "change" },
      };
    });
}

export function findings(app: App, view: View): Finding[] {
  if (!view.model.stackCount) return [];
  if (view.isDiff) return changes(app, view);
  const all = [
    told(app, view),
    oneStack(app, view),
    leftovers(app, view),
    isGrowing(app, view),
    churn(app, view),
    smallBlocks(view),
    library(app, view),
    failures(view),
    threads(view),
  ];
  return all
    .flat()
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 7);
}
