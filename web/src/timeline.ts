// SPDX-License-Identifier: Apache-2.0
// The heap over time: highest live bytes of each interval, the rate of allocation below, the peak as
// a mark. Dragging zooms, a double click shows all again, arrow keys move the reading.

import uPlot from "uplot";
import type { App } from "./app";
import { listed } from "./colours";
import type { Facts, Snapshot, Profile } from "./data";
import { cssValue, fill, h } from "./dom";
import { stackTitle } from "./findings";
import { largest } from "./history";
import { choice, option } from "./parts";
import { readLive, readSeries } from "./series";
import * as units from "./units";
import type { View } from "./view";

function sizeTicks(_: uPlot, ticks: number[]): string[] {
  return ticks.map((value) => (value ? units.size(value) : "0"));
}

const TIME_STEPS = [
  ...Array.from({ length: 8 }, (_, i) => [1, 2, 5].map((one) => one * 10 ** (i - 7))).flat(),
  ...[10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400].flatMap((one, i) =>
    i < 13 ? one : [1, 2, 5, 10, 20, 50, 100].map((days) => days * one),
  ),
];

/** All ticks in one unit, with as many decimals as their distance needs. */
function timeTicks(_: uPlot, ticks: number[]): string[] {
  const last = ticks[ticks.length - 1],
    step = ticks.length > 1 ? ticks[1] - ticks[0] : last;
  if (last >= 120) return ticks.map((value) => (value ? units.duration(value * 1e9).replace(/ 00 \w+$/, "") : "0"));
  const [factor, unit] = last < 1e-3 ? [1e6, "µs"] : last < 1 ? [1e3, "ms"] : [1, "s"];
  const decimals = Math.max(0, -Math.floor(Math.log10(step * factor) + 1e-9));
  return ticks.map((value) => (value ? `${(value * factor).toFixed(decimals)} ${unit}` : "0"));
}

/** Steps of 1, 2, 4, ... of a unit of 1024. */
const SIZE_STEPS = Array.from({ length: 45 }, (_, i) => 2 ** i);

function peakText({ peak, sampling }: Facts): string {
  const one = sampling?.peak_estimate;
  return (
    units.size(units.shown(peak.bytes, one?.most_bytes)) + (one ? units.sure(one.interval_bytes, one.samples) : "")
  );
}

function peakMark(facts: Facts, at: number): uPlot.Plugin {
  return {
    hooks: {
      draw: [
        (plot) => {
          const { ctx, bbox } = plot;
          const [from, to] = [plot.scales.x.min ?? 0, plot.scales.x.max ?? 0];
          if (at < from || at > to || !facts.peak.bytes) return;
          const x = plot.valToPos(at, "x", true),
            y = plot.valToPos(facts.peak.bytes, "y", true),
            ratio = devicePixelRatio || 1;
          ctx.save();
          ctx.strokeStyle = cssValue("--mark");
          ctx.fillStyle = cssValue("--mark");
          ctx.lineWidth = ratio;
          ctx.setLineDash([4 * ratio, 3 * ratio]);
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
          ctx.setLineDash([]);
          ctx.beginPath();
          ctx.arc(x, y, 4 * ratio, 0, 2 * Math.PI);
          ctx.fill();
          ctx.font = `${12 * ratio}px ${cssValue("--sans")}`;
          const text = `peak ${peakText(facts)}`,
            width = ctx.measureText(text).width;
          const isRight = x + width + 10 * ratio > bbox.left + bbox.width;
          ctx.textAlign = isRight ? "right" : "left";
          const place = [x + (isRight ? -8 : 8) * ratio, Math.max(y - 8 * ratio, bbox.top + 12 * ratio)] as const;
          ctx.strokeStyle = cssValue("--card"); // lines below the text end beside it
          ctx.lineWidth = 4 * ratio;
          ctx.strokeText(text, ...place);
          ctx.fillText(text, ...place);
          ctx.restore();
        },
      ],
    },
  };
}

/** The snapshots that the recording kept, as ticks at the top; those with a name say it. */
function snapshotMarks(snapshots: Snapshot[]): uPlot.Plugin {
  return {
    hooks: {
      draw: [
        (plot) => {
          const { ctx, bbox } = plot,
            ratio = devicePixelRatio || 1;
          ctx.save();
          ctx.strokeStyle = ctx.fillStyle = cssValue("--dim");
          ctx.setLineDash([]);
          ctx.lineWidth = ratio;
          ctx.font = `${11 * ratio}px ${cssValue("--sans")}`;
          let free = bbox.left;
          for (const { at_ns, label } of snapshots) {
            const x = plot.valToPos(at_ns / 1e9, "x", true);
            if (x < bbox.left || x > bbox.left + bbox.width) continue;
            ctx.beginPath();
            ctx.moveTo(x, bbox.top);
            ctx.lineTo(x, bbox.top + (label ? 14 : 6) * ratio);
            ctx.stroke();
            if (!label || x < free) continue;
            ctx.fillText(label, x + 3 * ratio, bbox.top + 11 * ratio);
            free = x + ctx.measureText(label).width + 8 * ratio;
          }
          ctx.restore();
        },
      ],
    },
  };
}

const STACKS_SHOWN = 10;

const STILL_THERE = 0.9; // of what stacks held at a snapshot; the heap is noted a little late

/** When the whole heap has fallen below what stacks held at the last snapshot: what they hold from then on is unknown. */
function falls(profile: Profile, seconds: number[], whole: number[]): { at: number; after: number }[] {
  const live = readLive(profile);
  return seconds.flatMap((from, i) => {
    const until = seconds[i + 1] ?? Infinity;
    const at = live.seconds.findIndex((one, j) => one > from && one < until && live.values[j] < STILL_THERE * whole[i]);
    return at < 0 ? [] : [{ at: live.seconds[at], after: i }];
  });
}

/** The stacks that held most, on top of each other, below what all held; null where that is unknown. */
function stackSeries(
  app: App,
  view: View,
): { seconds: number[]; names: string[]; own: (number | null)[][]; sums: (number | null)[][] } | null {
  const part = app.model.parts[view.profiles[view.profiles.length - 1]],
    history = part.history;
  if (!history) return null;
  const stacks = largest(history, view.mask, part.firstStack, STACKS_SHOWN);
  const all = (values: Float64Array) => values.reduce((sum, value) => sum + Math.max(value, 0), 0);
  const whole = history.values.map((values) =>
    values.reduce((sum, value, i) => sum + (view.mask[part.firstStack + i] ? value : 0), 0),
  );
  const own = [...stacks.map((stack) => history.values.map((values) => Math.max(values[stack], 0)))];
  const rest = whole.map((value, i) => Math.max(value - own.reduce((sum, one) => sum + one[i], 0), 0));
  const names = stacks.map((stack) => stackTitle(app, part.firstStack + stack, 1));
  const lines = [[0, ...rest], ...own.reverse().map((one) => [0, ...one])] as (number | null)[][];
  const seconds = [0, ...history.snapshots.map((snapshot) => snapshot.at_ns / 1e9)];
  const gaps = falls(part.profile, seconds, [0, ...history.values.map(all)]);
  for (const { at, after } of gaps.reverse()) {
    seconds.splice(after + 1, 0, at);
    for (const line of lines) line.splice(after + 1, 0, null);
  }
  const sums: (number | null)[][] = [];
  for (const line of lines) {
    const below = sums[sums.length - 1];
    sums.push(line.map((value, i) => (value === null ? null : value + (below?.[i] ?? 0))));
  }
  return { seconds, names: [...names, "all other stacks"], own: lines.reverse(), sums: sums.reverse() };
}

export class Timeline {
  readonly element: HTMLElement;
  private holder = h("div", { class: "plot" });
  private plot: uPlot | null = null;
  private profile: Profile | null = null;
  private earlier: Profile | null = null;
  private rate = "rate";
  private rates = h("span", {});
  private hasHistory = false;
  private span: [number, number] | null = null; // that was zoomed into, of what the process is followed in
  private view: View | null = null;
  private mask: Uint8Array | null = null;
  private window = h("span", {});
  private hint = h("span", {});

  constructor(private app: App) {
    this.makeRates();
    this.element = h(
      "div",
      { class: "card timeline" },
      h("div", { class: "row-between" }, h("h2", {}, "Over time"), this.rates),
      this.holder,
      h("p", { class: "dim small" }, "Drag to zoom, double click for all of it. ", this.hint, " ", this.window),
    );
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "group");
    this.element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.plot && this.resize()).observe(this.holder);
  }

  private makeRates(): void {
    const kinds = [option("rate", "live heap, bytes allocated"), option("calls", "live heap, calls")];
    this.hasHistory = this.app.model.hasHistory;
    if (this.hasHistory) kinds.push(option("stacks", "the ten largest stacks"));
    fill(
      this.rates,
      choice("rate", "Shows", this.rate, kinds, (value) => {
        this.rate = value;
        this.draw();
      }),
    );
  }

  /** `earlier`: the other side of a comparison, where that is another recording. */
  show(profile: Profile, earlier: Profile | null, view: View): void {
    const isSame = this.profile === profile && (this.rate !== "stacks" || this.mask === view.mask);
    this.span = this.profile && this.profile !== profile ? this.zoomed() : null;
    if (this.hasHistory !== this.app.model.hasHistory) this.makeRates();
    this.view = view;
    this.profile = profile;
    this.earlier = earlier;
    this.mask = view.mask;
    if (!isSame) this.draw();
  }

  private zoomed(): [number, number] | null {
    const { plot } = this;
    if (!plot) return null;
    const { min, max } = plot.scales.x,
      [seconds] = plot.data;
    return min !== undefined && max !== undefined && (min > seconds[0] || max < seconds[seconds.length - 1])
      ? [min, max]
      : null;
  }

  /** What was zoomed into leads to the flame graph of what grew in it. */
  private showWindow(plot: uPlot): void {
    const { min, max } = plot.scales.x,
      [seconds] = plot.data,
      history = this.app.model.hasHistory;
    const isWhole =
      min === undefined ||
      max === undefined ||
      min === null ||
      max === null ||
      (min <= seconds[0] && max >= seconds[seconds.length - 1]);
    const go = (from: number) =>
      this.app.set({
        view: "flame",
        measure: "snapshot",
        from,
        to: max! * 1e9,
        side: from ? "grown" : "after",
        zoom: "",
        pivot: "",
      });
    fill(
      this.window,
      isWhole || !history
        ? null
        : [
            h("button", { type: "button", class: "quiet", onclick: () => go(min! * 1e9) }, "What grew in this window"),
            " ",
            h("button", { type: "button", class: "quiet", onclick: () => go(0) }, "What was held at its end"),
          ],
    );
  }

  private drawStacks(axis: uPlot.Axis): boolean {
    const stacked = this.view ? stackSeries(this.app, this.view) : null;
    if (!stacked) return false;
    const series = stacked.names.map((label, i) => ({
      label,
      stroke: listed(i),
      fill: i < STACKS_SHOWN ? listed(i) : cssValue("--rest"),
      width: 1,
      points: { show: false },
      scale: "y",
      paths: uPlot.paths.stepped!({ align: 1 }),
      value: (_: uPlot, __: number, ___: number, at: number | null) =>
        at === null || stacked.own[i][at] === null ? "–" : units.size(stacked.own[i][at]!),
    }));
    this.plot = new uPlot(
      {
        width: Math.max(this.holder.clientWidth, 320),
        height: 320,
        plugins: [snapshotMarks(this.profile!.snapshots)],
        scales: { x: { time: false }, y: { range: (_, __, max) => [0, Math.max(max, 1) * 1.12] } },
        axes: [
          { ...axis, values: timeTicks, incrs: TIME_STEPS },
          { ...axis, size: 78, values: sizeTicks, incrs: SIZE_STEPS, scale: "y" },
        ],
        series: [{ label: "at", value: (_, value) => (value === null ? "–" : units.duration(value * 1e9)) }, ...series],
        hooks: { setScale: [(plot, key) => key === "x" && this.showWindow(plot)] },
      },
      [stacked.seconds, ...stacked.sums] as uPlot.AlignedData,
      this.holder,
    );
    return true;
  }

  private resize(): void {
    const width = this.holder.clientWidth;
    if (width && this.plot && Math.abs(this.plot.width - width) > 1)
      this.plot.setSize({ width, height: this.plot.height });
  }

  redraw(): void {
    if (this.profile) this.draw();
  }

  private draw(): void {
    this.plot?.destroy();
    this.plot = null;
    const profile = this.profile!,
      { facts } = profile,
      series = readSeries(profile, this.earlier);
    // the peak's time is of a coarse clock: its mark goes to the highest point nearby
    const highest = series.seconds[series.live.indexOf(Math.max(...series.live))] ?? 0,
      noted = facts.peak.at_ns / 1e9;
    const peakAt = Math.abs(highest - noted) < 0.02 ? highest : noted;
    this.element.setAttribute(
      "aria-label",
      `Live heap over ${units.duration(facts.process.duration_ns)}: peak ${peakText(facts)} at ${units.duration(facts.peak.at_ns)}${facts.peak.from_ns ? `, perhaps from ${units.duration(facts.peak.from_ns)}` : ""}. Arrow keys read values.`,
    );
    if (series.seconds.length < 2) {
      this.holder.replaceChildren(h("p", { class: "dim" }, "This recording has no timeline."));
      return;
    }
    this.holder.replaceChildren();
    const isBytes = this.rate !== "calls";
    fill(
      this.hint,
      this.rate === "stacks"
        ? "Stacks are known at the snapshots marked at the top, and drawn as unchanged until the next one, or until the heap falls."
        : "The line is the highest of each stretch of time." +
            (facts.sampling ? " It is estimated from samples, at other times less surely than at the peak." : ""),
    );
    const rateText = (value: number | null) =>
      value === null ? "–" : (isBytes ? units.size(value) : units.short(value)) + "/s";
    const steps = uPlot.paths.stepped!({ align: 1 });
    const size = (_: uPlot, value: number | null) => (value === null ? "–" : units.size(value)),
      dashed = { scale: "y", width: 1.5, points: { show: false }, value: size };
    const more: [uPlot.Series, (number | null)[]][] = [];
    if (series.rss)
      more.push([
        { label: "resident (RSS)", paths: steps, stroke: cssValue("--rss"), dash: [6, 3], ...dashed },
        series.rss,
      ]);
    if (series.before)
      more.push([{ label: "live heap before", stroke: cssValue("--mark"), dash: [2, 2], ...dashed }, series.before]);
    const axis = {
      stroke: cssValue("--dim"),
      grid: { stroke: cssValue("--line"), width: 1 },
      ticks: { stroke: cssValue("--line"), width: 1 },
      font: `12px ${cssValue("--sans")}`,
    };
    if (this.rate === "stacks" && this.drawStacks(axis)) return;
    // between the points the heap may have been larger than at any of them
    const yTop = (max: number) => Math.max(facts.peak.bytes < 2 * max ? facts.peak.bytes : 0, max, 1) * 1.12;
    this.plot = new uPlot(
      {
        width: Math.max(this.holder.clientWidth, 320),
        height: 260,
        plugins: [peakMark(facts, peakAt), snapshotMarks(profile.snapshots)],
        hooks: { setScale: [(plot, key) => key === "x" && this.showWindow(plot)] },
        scales: {
          x: { time: false },
          y: { range: (_, __, max) => [0, yTop(max)] },
          r: { range: (_, __, max) => [0, Math.max(max, 1) * 3] },
        },
        cursor: { drag: { x: true, y: false }, focus: { prox: 16 } },
        legend: { live: true },
        axes: [
          { ...axis, values: timeTicks, incrs: TIME_STEPS },
          { ...axis, size: 78, values: sizeTicks, incrs: SIZE_STEPS, scale: "y" },
          {
            ...axis,
            size: 84,
            side: 1,
            grid: { show: false },
            scale: "r",
            values: (_, ticks) => ticks.map((value) => (value ? rateText(value) : "")),
            incrs: isBytes ? SIZE_STEPS : undefined,
          },
        ],
        series: [
          { label: "at", value: (_, value) => (value === null ? "–" : units.duration(value * 1e9)) },
          {
            label: "live heap",
            scale: "y",
            stroke: cssValue("--live"),
            width: 2,
            fill: cssValue("--live-area"),
            points: { show: false },
            value: size,
          },
          {
            label: isBytes ? "allocated" : "calls",
            scale: "r",
            paths: steps,
            stroke: cssValue("--rate"),
            width: 1,
            points: { show: false },
            value: (_, value) => rateText(value),
          },
          ...more.map(([one]) => one),
        ],
      },
      [
        series.seconds,
        series.live,
        isBytes ? series.rate : series.calls,
        ...more.map(([, values]) => values),
      ] as uPlot.AlignedData,
      this.holder,
    );
    if (this.span) this.plot.setScale("x", { min: this.span[0], max: this.span[1] });
    this.span = null;
  }

  private key(event: KeyboardEvent): void {
    const plot = this.plot,
      step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!plot || !step || event.target !== this.element) return;
    const seconds = plot.data[0],
      at = Math.max(0, Math.min((plot.cursor.idx ?? -1) + step, seconds.length - 1));
    const y = (plot.data[1][at] ?? 0) as number;
    plot.setCursor({ left: plot.valToPos(seconds[at], "x"), top: plot.valToPos(y, "y") });
    event.preventDefault();
  }
}
