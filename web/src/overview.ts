// SPDX-License-Identifier: Apache-2.0
// The first screen: the summary in words, how far it can be believed, the heap over time, what is
// worth a look, and what holds the most.

import { focused, type App, type Screen } from "./app";
import type { Estimate, Facts, Profile } from "./data";
import { amount } from "./details";
import { fill, h, type Child } from "./dom";
import { findings, stackLine, stackTitle, type Finding } from "./findings";
import { heapMap } from "./heap";
import { residentBar } from "./resident";
import { Timeline } from "./timeline";
import * as units from "./units";
import { writeState } from "./state";
import type { View } from "./view";

const STACKS_SHOWN = 7;
// Of very many stacks figures and timeline are shown first; lists follow after the first picture.
const MANY_STACKS = 30000,
  LATER_MS = 40;

function card(label: string, value: Child, ...notes: Child[]): HTMLElement {
  return h(
    "div",
    { class: "card figure" },
    h("h2", {}, label),
    h("p", { class: "value" }, value),
    notes.map((note) => note && h("p", { class: "dim" }, note)),
  );
}

function link(
  app: App,
  patch: Parameters<App["set"]>[0],
  text: Child,
  attributes: Record<string, string> = {},
): HTMLElement {
  return h(
    "a",
    {
      ...attributes,
      href: writeState({ ...app.state, ...patch }),
      onclick: (event: MouseEvent) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        app.set(patch);
      },
    },
    text,
  );
}

/** The stacks that hold most, in order, and how many more there are. */
function largestStacks(view: View): { order: number[]; others: number } {
  const values = view.isDiff ? view.sides().at(-1)! : view.ofRows(view.measure.values),
    mask = view.isDiff ? view.mask : view.rows,
    order: number[] = [];
  let count = 0;
  for (let stack = 0; stack < mask.length; stack++) {
    if (!mask[stack] || values[stack] <= 0) continue;
    count++;
    if (order.length === STACKS_SHOWN && values[order[STACKS_SHOWN - 1]] >= values[stack]) continue;
    const at = order.findIndex((other) => values[other] < values[stack]);
    order.splice(at < 0 ? order.length : at, 0, stack);
    order.length = Math.min(order.length, STACKS_SHOWN);
  }
  return { order, others: count - order.length };
}

/** What the page has of malloc's heap, and of no other. */
function notKnown({ facts, heapShapes }: Profile): string {
  const { heap, point_ns } = facts,
    lacking = [point_ns ? null : "the heap over time", heapShapes ? null : "snapshots, sizes and ages"].filter(Boolean);
  return (
    `Of ${heap} it is known what its stacks held at its own peak, what they hold in the end, and what they allocated` +
    `${lacking.length ? `; this recording lacks ${lacking.join(", and ")}` : ", what they held at snapshots, and sizes of blocks, with --ages their ages"}. ` +
    "Findings, rounding, reallocations and who frees are of malloc's heap alone, RSS of the process."
  );
}

export class Overview implements Screen {
  readonly element: HTMLElement;
  private top = h("div", { class: "cards" });
  private trust = h("div", {});
  private timeline: Timeline;
  private noTimeline = h("p", { class: "card dim", id: "no-timeline" });
  private resident = h("div", {});
  private heap = h("div", {});
  private found = h("div", { class: "card" });
  private stacks = h("div", { class: "card" });
  private lists = h("div", { class: "columns" }, this.stacks, this.found);
  private run = h("div", {});
  private later = 0;

  constructor(private app: App) {
    this.timeline = new Timeline(app);
    this.element = h(
      "section",
      { class: "screen overview", "aria-label": "Overview" },
      this.run,
      this.trust,
      this.top,
      this.lists,
      this.timeline.element,
      this.noTimeline,
      this.resident,
      this.heap,
    );
    // what is folded on the screen is printed
    addEventListener("beforeprint", () => this.trust.querySelectorAll("details").forEach((one) => (one.open = true)));
  }

  private figures(facts: Facts): HTMLElement[] {
    const { peak, totals, process, rss, at_exit } = facts,
      seconds = process.duration_ns / 1e9;
    const estimate = (one?: Estimate) => (one ? units.sure(one.interval_bytes, one.samples).slice(1) : null),
      blocks = (value: number, one?: Estimate) =>
        facts.has_blocks
          ? `in ${units.count(units.shown(value, one?.most_blocks))}${one?.interval_blocks ? ` ± ${units.count(one.interval_blocks)}` : ""} ${value === 1 ? "block" : "blocks"}`
          : "";
    const rate = seconds > 0.01 ? `${units.short(totals.allocations / seconds)} calls a second` : null;
    return [
      facts.heap ? card("Heap", facts.heap, "an allocator by name, as its row of --wrap says") : null,
      card(
        facts.heap ? "Its peak" : "Peak heap",
        units.size(units.shown(peak.bytes, facts.sampling?.peak_estimate.most_bytes)),
        [
          blocks(peak.blocks, facts.sampling?.peak_estimate),
          peak.at_ns ? `${units.duration(peak.at_ns)} after the start` : "",
        ]
          .filter(Boolean)
          .join(", "),
        peak.from_ns ? `perhaps from ${units.duration(peak.from_ns)}` : null,
        peak.error_bytes ? `within ${units.size(peak.error_bytes)}` : null,
        estimate(facts.sampling?.peak_estimate),
      ),
      facts.has_calls
        ? card("Allocated", units.size(totals.allocated_bytes), `in ${units.plural(totals.allocations, "call")}`, rate)
        : null,
      card(
        facts.has_ended ? "At the end" : "Now",
        units.size(units.shown(at_exit.bytes, facts.sampling?.at_exit_estimate.most_bytes)),
        blocks(at_exit.blocks, facts.sampling?.at_exit_estimate),
        facts.has_ended && at_exit.bytes ? "never freed" : null,
        estimate(facts.sampling?.at_exit_estimate),
      ),
      rss.peak_bytes ? card("Peak RSS", units.size(rss.peak_bytes), "code, stacks and the heap") : null,
    ].filter((one): one is HTMLElement => one !== null);
  }

  private compared(before: Facts, after: Facts): HTMLElement[] {
    const one = (
      label: string,
      first: number,
      second: number,
      text: (value: number) => string,
      ...estimates: (Estimate | undefined)[]
    ) => {
      const a = units.shown(first, estimates[0]?.most_bytes),
        b = units.shown(second, estimates[1]?.most_bytes),
        change = b - a,
        percent = a && change ? `${change > 0 ? "+" : ""}${units.percent(change, a)}` : "";
      const half = Math.hypot(...estimates.map((each) => each?.interval_bytes ?? 0)),
        isSure = Math.abs(change) > half;
      return card(
        label,
        h(
          "span",
          { class: !isSure ? "" : change > 0 ? "more" : "less" },
          change ? units.signed(text(change), change) : "the same",
        ),
        `${text(a)} → ${text(b)}`,
        half
          ? units
              .sure(
                half,
                estimates.reduce((sum, each) => sum + (each?.samples ?? 0), 0),
              )
              .slice(1) + (change && !isSure ? ": within the interval" : "")
          : null,
        percent,
      );
    };
    const [square, samples] = this.app.model.spread("at")?.map((all) => all.reduce((sum, each) => sum + each)) ?? [
      0, 0,
    ];
    const atSnapshot =
      before.at_text && after.at_text
        ? [
            one("Live at snapshot", before.at_bytes, after.at_bytes, units.size, {
              interval_bytes: Math.sqrt(square),
              samples,
            }),
          ]
        : [];
    if (atSnapshot.length && before.path === after.path) return atSnapshot;
    return [
      ...atSnapshot,
      one(
        "Peak heap",
        before.peak.bytes,
        after.peak.bytes,
        units.size,
        before.sampling?.peak_estimate,
        after.sampling?.peak_estimate,
      ),
      ...(before.has_calls && after.has_calls
        ? [
            one("Allocated", before.totals.allocated_bytes, after.totals.allocated_bytes, units.size),
            one("Calls", before.totals.allocations, after.totals.allocations, units.count),
          ]
        : []),
      one(
        after.has_ended ? "At the end" : "Live",
        before.at_exit.bytes,
        after.at_exit.bytes,
        units.size,
        before.sampling?.at_exit_estimate,
        after.sampling?.at_exit_estimate,
      ),
    ];
  }

  /** `snapshots`: what is said of the snapshots that the page was asked for. */
  private trustLine(facts: Facts, snapshots: Facts[]): HTMLElement {
    const { exact } = facts.trust,
      [first, second] = facts.trust_line.split(" · ");
    return h(
      "div",
      { class: facts.heap ? "trust stated" : exact ? "trust" : "trust doubtful" },
      h(
        "details",
        {},
        h(
          "summary",
          {},
          h("strong", {}, facts.ending),
          h(
            "span",
            { class: "badge" },
            facts.heap ? "" : exact ? "✓ " : "⚠ ",
            [first, second].filter(Boolean).join(" · "),
          ),
        ),
        h("p", { class: "dim" }, facts.trust_line),
      ),
      facts.first.map((sentence) => h("p", { class: "first" }, sentence)),
      snapshots.map((one) => one.at_text && h("p", { class: "at" }, one.at_text)),
      facts.empty ? h("p", { class: "warning" }, facts.empty) : null,
    );
  }

  private foundList(list: Finding[]): Child {
    return h(
      "ul",
      {},
      list.map((one) =>
        h("li", {}, link(this.app, one.go, [h("strong", {}, one.text), h("span", { class: "dim" }, one.detail)])),
      ),
    );
  }

  private showFound(view: View): void {
    const list = findings(this.app, view),
      told = view.isDiff ? list : list.filter((one) => one.isTold),
      seen = view.isDiff ? [] : list.filter((one) => !one.isTold);
    const none = view.isDiff ? "No stack changed by more than half a percent." : "None.";
    fill(
      this.found,
      h(
        "h2",
        {},
        "Findings",
        view.model.spread("peak") ? h("span", { class: "dim small" }, " estimated from samples") : null,
      ),
      h(
        "div",
        { class: "findings" },
        told.length ? this.foundList(told) : h("p", { class: "dim" }, none),
        seen.length ? [h("h2", {}, "Figures that stand out"), this.foundList(seen)] : null,
      ),
    );
  }

  private showStacks(view: View): void {
    const { noun, label } = view.measure,
      isSame = view.measure.counts === view.measure.values,
      [values, counts] = [view.measure.values, view.measure.counts].map((one) =>
        view.isDiff ? one : view.ofRows(one),
      ),
      { order, others } = largestStacks(view);
    const most = order.length ? values[order[0]] : 0,
      whole = view.sums().at(-1)!;
    const rows = order.map((stack) => {
      const fillBar = h("span", { class: "share", "aria-hidden": "true" });
      fillBar.style.width = `${(100 * values[stack]) / most}%`;
      return h(
        "li",
        {},
        link(this.app, { view: "table", table: "stacks", ...focused(this.app.state, "stack", String(stack)) }, [
          fillBar,
          h("span", { class: "stack-value" }, amount(view, values[stack])),
          h("span", { class: "dim stack-share" }, units.percent(values[stack], whole)),
          h("span", { class: "stack-name", title: stackTitle(this.app, stack, 9) }, stackLine(this.app, stack, 1)),
          h(
            "span",
            { class: "dim stack-blocks" },
            isSame ? "" : units.plural(counts[stack], ...noun),
            view.isDiff ? view.model.sure(stack, view.measure) : view.sure(stack, view.measure),
          ),
        ]),
      );
    });
    const rest = whole - order.reduce((sum, stack) => sum + values[stack], 0);
    fill(
      this.stacks,
      h("h2", {}, `What holds most: ${label.toLowerCase()}${view.isDiff ? ", after" : ""}`),
      rows.length ? h("ol", { class: "stacks" }, rows) : h("p", { class: "dim" }, "No stack holds anything here."),
      others
        ? h(
            "p",
            {},
            link(
              this.app,
              { view: "table", table: "stacks", sort: "" },
              `${amount(view, rest)} in ${units.count(others)} more ${others === 1 ? "stack" : "stacks"}`,
            ),
          )
        : null,
    );
  }

  private showRun(view: View): void {
    const { run } = view.model.page;
    if (!run) {
      fill(this.run);
      return;
    }
    const lines = run.facts
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
    fill(
      this.run,
      h(
        "div",
        { class: "card run" },
        h("h2", {}, lines[0] ?? "A run of several processes"),
        lines.slice(1).map((line) => h("p", { class: "dim" }, line.replace(/ {2,}/g, " · "))),
        h(
          "p",
          {},
          link(
            this.app,
            { view: "table", table: "processes", sort: "" },
            `All ${units.plural(run.rows.length, "process", "processes")}`,
          ),
        ),
      ),
    );
  }

  update(view: View): void {
    const parts = view.profiles.map((i) => view.model.parts[i]),
      facts = parts.map((part) => part.profile.facts);
    this.showRun(view);
    if (view.model.isDiff && facts.length > 1) fill(this.top, this.compared(facts[0], facts[1]));
    else fill(this.top, facts.length === 1 ? this.figures(facts[0]) : []);
    const isFollowed = view.model.isDiff && facts.length > 1 && facts[0].path === facts[1].path && !facts[0].at_text;
    const told = view.model.isOneRecording ? facts.slice(0, 1) : isFollowed ? facts.slice(1) : facts,
      isUnfolded = Boolean(this.trust.querySelector("details")?.open);
    fill(
      this.trust,
      told.map((one) => this.trustLine(one, view.model.isOneRecording ? facts : [one])),
    );
    if (isUnfolded) this.trust.querySelectorAll("details").forEach((one) => (one.open = true));
    const ofHeap = parts.find((part) => part.profile.facts.heap)?.profile,
      isTimed = !ofHeap || ofHeap.facts.point_ns > 0;
    fill(this.noTimeline, ofHeap ? notKnown(ofHeap) : null);
    this.noTimeline.hidden = !ofHeap;
    this.timeline.element.hidden =
      !parts.length || !isTimed || (facts.length > 1 && !view.model.isDiff) || facts.every((one) => one.empty);
    this.lists.hidden = facts.length > 0 && facts.every((one) => one.empty);
    const isPair = view.model.isDiff && facts.length > 1 && facts[0].path !== facts[1].path;
    if (parts.length && isTimed)
      this.timeline.show(parts[parts.length - 1].profile, isPair ? parts[0].profile : null, view);
    this.showResident(facts);
    this.showHeap(view);
    clearTimeout(this.later);
    if (view.model.stackCount < MANY_STACKS) this.showLists(view);
    else this.later = window.setTimeout(() => this.showLists(view), LATER_MS);
  }

  private showLists(view: View): void {
    this.showFound(view);
    this.showStacks(view);
  }

  private showResident(facts: Facts[]): void {
    const picture = facts.length === 1 ? facts[0].rss.at_peak : null;
    fill(this.resident, picture ? residentBar(picture, facts[0].rss.peak_bytes) : null);
  }

  private showHeap({ model: { page } }: View): void {
    const { heap } = page.profiles[0] ?? {};
    fill(
      this.heap,
      heap
        ? heapMap(
            heap,
            heap.owners
              .filter(([stack]) => stack >= 0)
              .map(([stack, kept, live]) =>
                h(
                  "li",
                  {},
                  link(
                    this.app,
                    { view: "table", table: "stacks", ...focused(this.app.state, "stack", String(stack)) },
                    [
                      h("strong", {}, `${units.size(kept)} kept by ${units.size(live)} live`),
                      h("span", { class: "dim" }, stackTitle(this.app, stack)),
                    ],
                  ),
                ),
              ),
          )
        : null,
    );
  }

  redraw(): void {
    this.timeline.redraw();
  }
}
