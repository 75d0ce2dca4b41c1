// SPDX-License-Identifier: Apache-2.0
// What the state selects of the model: which stacks count, and their sums. Screens ask here; results
// are kept until the part of the state changes that they depend on.

import type { Measure } from "./measures";
import { keyOf, type Model } from "./model";
import { MARK, type Part } from "./numbering";
import type { State } from "./state";
import {
  calleesOf,
  childrenOf,
  type Columns,
  inverted,
  occurrences,
  weigh,
  without,
  type Tree,
  type Weighted,
} from "./tree";
import * as units from "./units";

const LEAST_SHARE = 5000; // inverted trees stop below 1/5000 of the whole

export interface Groups {
  kind: string;
  count: number;
  label(group: number): string;
  where(group: number): string;
  self: Float64Array[]; // by measure of the view's `groupMeasures`, of a comparison by its sides; then by group
  total: Float64Array[];
}

const MEASURED = ["peak", "exit", "allocated", "calls"] as const,
  NOTHING = { peak: 0, exit: 0, allocated: 0, calls: 0 };

export interface ContextRow extends Record<(typeof MEASURED)[number], number> {
  name: string; // "": without such a label
  labels: string[];
  entered: number; // times that a thread came in
}

export const USUAL_MEASURES = ["peak", "exit", "allocated", "calls"];

export class View {
  readonly measure: Measure;
  readonly measures: Measure[];
  readonly isDiff: boolean; // of two recordings, or of two snapshots of one
  readonly profiles: number[]; // those that count
  private cache = new Map<string, unknown>();

  constructor(
    readonly model: Model,
    readonly state: State,
    previous: View | null,
  ) {
    const threads = state.focus.filter((one) => one.startsWith("thread:")).map((one) => Number(one.split(":")[1]));
    const labels = state.focus.filter((one) => one.startsWith("context:")).map((one) => one.slice("context:".length));
    const isOfCells = threads.length + labels.length > 0;
    this.measures = isOfCells ? model.ofCells(new Set(threads), labels) : model.measures;
    const isSnapshot = state.measure === "snapshot" && model.hasHistory && !isOfCells;
    const isPair = isSnapshot && state.from > 0 && !model.isDiff;
    this.isDiff = model.isDiff || isPair;
    this.measure = isSnapshot ? model.snapshot(state.to) : this.by(state.measure);
    if (isPair)
      this.measure = { ...this.measure, label: `${model.timeNear(state.from)} to ${model.timeNear(state.to)}` };
    this.profiles = this.chooseProfiles();
    if (previous && previous.model === model && previous.maskKey() === this.maskKey()) this.cache = previous.cache;
  }

  /** Module of the recorded program. */
  get program(): string {
    return this.model.parts[this.profiles[0]]?.profile.facts.executable ?? "";
  }

  /** How sure stacks are; what is known of threads and contexts is not sums of those. */
  private spread(id: string): Float64Array[] | null {
    return this.measures === this.model.measures ? this.model.spread(id) : null;
  }

  by(id: string): Measure {
    return this.measures.find((one) => one.id === id) ?? this.measures[0];
  }

  private maskKey(): string {
    const { process, focus, hide, internal } = this.state;
    return JSON.stringify([process, focus, hide, internal]);
  }

  private kept<T>(key: string, make: () => T): T {
    if (!this.cache.has(key)) this.cache.set(key, make());
    return this.cache.get(key) as T;
  }

  private chooseProfiles(): number[] {
    const all = this.model.parts.map((_, i) => i);
    if (this.model.isDiff || this.state.process === "all") return all;
    const one = Number(this.state.process || 0);
    return Number.isInteger(one) && one >= 0 && one < all.length ? [one] : all.slice(0, 1);
  }

  /** Which stacks count. */
  get mask(): Uint8Array {
    return this.kept("mask", () => {
      const mask = new Uint8Array(this.model.stackCount);
      for (const index of this.profiles) {
        const part = this.model.parts[index];
        mask.fill(1, part.firstStack, part.firstStack + part.stackNode.length);
      }
      for (const focus of this.state.focus) this.narrow(mask, focus);
      return mask;
    });
  }

  private narrow(mask: Uint8Array, focus: string): void {
    const kind = focus.slice(0, focus.indexOf(":")),
      key = focus.slice(focus.indexOf(":") + 1);
    if (kind === "thread" || kind === "context") return;
    if (kind === "stack") {
      const reading = this.model.isDiff ? null : this.model.reading(this.state.internal);
      for (let i = 0; i < mask.length; i++)
        if (reading ? reading[i] !== reading[Number(key)] : i !== Number(key)) mask[i] = 0;
      return;
    }
    const { model } = this;
    const wanted = new Set<number>(kind === "function" ? model.functionsNamed(key) : []);
    const file = kind === "file" ? model.files.find(key) : -2;
    const line = kind === "line" ? model.lines.find(key) : -2;
    const module = kind === "module" ? model.modules.find(key) : -2;
    for (const index of this.profiles) {
      const part = model.parts[index];
      const isHit = this.through(
        part,
        (frame) =>
          wanted.has(part.fn[frame]) ||
          part.file[frame] === file ||
          part.line[frame] === line ||
          model.fnModule[part.fn[frame]] === module,
      );
      for (let i = 0; i < part.stackNode.length; i++) if (!isHit[part.stackNode[i]]) mask[part.firstStack + i] = 0;
    }
  }

  /** Which nodes are on or below some frames. */
  private through(part: Part, isWanted: (frame: number) => boolean): Uint8Array {
    const hits = Uint8Array.from(part.fn, (_, frame) => Number(isWanted(frame))),
      isHit = new Uint8Array(part.nodeParent.length);
    for (let node = 1; node < isHit.length; node++) {
      isHit[node] = isHit[part.nodeParent[node]];
      const place = part.nodePlace[node];
      for (let i = part.placeStart[place]; !isHit[node] && i < part.placeStart[place + 1]; i++)
        isHit[node] = hits[part.placeFrames[i]];
    }
    return isHit;
  }

  /** What the stacks through a function, line, file or module held at each snapshot of a part. */
  heldBy(part: Part, kind: string, group: number): number[] | undefined {
    return this.kept(`held.${part.firstStack}.${kind}.${group}`, () => {
      const key = this.keysOf(kind).keys[this.model.parts.indexOf(part)],
        isHit = this.through(part, (frame) => key[frame] === group),
        mask = this.mask;
      const stacks = [...part.stackNode.keys()].filter((i) => isHit[part.stackNode[i]] && mask[part.firstStack + i]);
      return part.history?.values.map((held) => stacks.reduce((sum, stack) => sum + held[stack], 0));
    });
  }

  /** Values by stack: [before, after] of a comparison, else one alone. */
  sides(measure: Measure = this.measure): Float64Array[] {
    const { model, state } = this;
    if (!this.isDiff) return [measure.values];
    if (!model.isDiff) return [model.snapshot(state.from).values, measure.values];
    return this.kept("sides." + this.keyOf(measure), () => {
      const pair = [new Float64Array(model.stackCount), new Float64Array(model.stackCount)];
      for (const { profile, firstStack, stackNode } of model.parts)
        pair[profile.facts.role === "after" ? 1 : 0].set(
          measure.values.subarray(firstStack, firstStack + stackNode.length),
          firstStack,
        );
      return pair;
    });
  }

  /** Values by stack of the side that is looked at. */
  get shown(): Float64Array {
    const sides = this.sides();
    return sides[this.state.side === "before" ? 0 : sides.length - 1];
  }

  /** Sums over the stacks that count, by side. */
  sums(measure: Measure = this.measure): number[] {
    const { mask } = this;
    return this.kept("sums." + this.keyOf(measure), () =>
      this.sides(measure).map((values) => values.reduce((sum, value, stack) => sum + (mask[stack] ? value : 0), 0)),
    );
  }

  /** The same of all stacks, whatever is selected, together. */
  get everything(): number {
    const ofAll = this.isDiff ? undefined : this.model.measures.find((one) => one.id === this.measure.id);
    let sum = 0;
    for (const values of ofAll ? [ofAll.values] : this.sides())
      for (const index of this.profiles) {
        const { firstStack, stackNode } = this.model.parts[index];
        for (let i = 0; i < stackNode.length; i++) sum += values[firstStack + i];
      }
    return sum;
  }

  /** Stacks that count by the first of them that reads the same, where there are several. */
  private get alike(): Map<number, number[]> {
    return this.kept("alike", () => {
      const reading = this.model.reading(this.state.internal),
        firsts = new Map<number, number>(),
        alike = new Map<number, number[]>();
      this.mask.forEach((counts, stack) => {
        if (!counts) return;
        const first = firsts.get(reading[stack]);
        if (first === undefined) firsts.set(reading[stack], stack);
        else if (alike.has(first)) alike.get(first)!.push(stack);
        else alike.set(first, [first, stack]);
      });
      return alike;
    });
  }

  /** Stacks that are one row with this one, which comes first. */
  alikeTo(stack: number): number[] {
    return this.alike.get(stack) ?? [stack];
  }

  /** Which stacks have a row: those that count, and of those that read the same the first. */
  get rows(): Uint8Array {
    return this.kept("rows", () => {
      const rows = this.mask.slice();
      for (const [, ...others] of this.alike.values()) for (const stack of others) rows[stack] = 0;
      return rows;
    });
  }

  /** Values of rows: sums over the stacks that read the same. */
  ofRows(values: Float64Array): Float64Array {
    const known = this.kept("ofRows", () => new WeakMap<Float64Array, Float64Array>());
    let sums = this.alike.size ? known.get(values) : values;
    if (!sums) {
      sums = values.slice();
      for (const [first, ...others] of this.alike.values()) for (const stack of others) sums[first] += values[stack];
      known.set(values, sums);
    }
    return sums;
  }

  /** What the stacks of a row held at each snapshot of the process that the first of them is of. */
  heldByRow(row: number): number[] | undefined {
    const { parts, partOf } = this.model,
      part = parts[partOf[row]],
      stacks = this.alikeTo(row).filter((stack) => partOf[stack] === partOf[row]);
    return part.history?.values.map((held) => stacks.reduce((sum, stack) => sum + held[stack - part.firstStack], 0));
  }

  /** How sure the value of a row is, in words. */
  sure(row: number, { id, isBytes }: Measure): string {
    const spread = this.model.spread(id)?.map((one) => this.ofRows(one));
    return spread ? units.sure(Math.sqrt(spread[0][row]), spread[1][row], isBytes) : "";
  }

  get baseTree(): { tree: Tree; leaf: Int32Array } {
    const { hide, internal } = this.state;
    const base = this.model.tree(internal);
    if (!hide.length) return base;
    return this.kept("base", () => {
      const hidden = new Set<number>();
      for (const name of hide) for (const fn of this.model.functionsNamed(name)) hidden.add(fn);
      const { tree, nodeOf } = without(base.tree, hidden);
      return { tree, leaf: base.leaf.map((node) => nodeOf[node]) };
    });
  }

  /** How old the blocks of stacks were when they were freed, or of owners' are, as the power of two of milliseconds; those without an age: -1. */
  get ages(): Float64Array | null {
    return this.kept("ages", () => {
      const ages = new Float64Array(this.mask.length).fill(-1);
      let hasAny = false;
      for (const index of this.profiles) {
        const { profile, firstStack } = this.model.parts[index];
        for (const shape of profile.shapes) {
          const freed = (shape.ages_ms ?? []).reduce((sum, one) => sum + one, 0);
          if (!freed) continue;
          ages[firstStack + shape.stack] = shape.ages_ms!.reduce((sum, one, power) => sum + one * power, 0) / freed;
          hasAny = true;
        }
      }
      return hasAny ? ages : null;
    });
  }

  /** The middle age of a node's blocks, where picture's colours are ages; -1: it is not known. */
  ageOf(data: Weighted, node: number): number {
    const known = data.columns[data.columns.length - 1];
    return data.other && known && known[node] > 0 ? data.other[node] / known[node] : -1;
  }

  private get isByAge(): boolean {
    return !this.isDiff && this.state.colour === "age";
  }

  /** What leaves hold, by node of the base tree: the width, and what it is compared with. */
  private leafValues(): { value: Float64Array; other: Float64Array | null } {
    const { tree, leaf } = this.baseTree,
      mask = this.mask,
      value = new Float64Array(tree.count);
    if (!this.isDiff) {
      const { values } = this.measure;
      const exit = this.by("exit").values,
        all = this.by("allocated").values;
      const other = new Float64Array(tree.count),
        isGrowth = this.state.colour === "growth",
        ages = this.isByAge ? this.ages : null;
      for (let stack = 0; stack < mask.length; stack++) {
        if (!mask[stack]) continue;
        value[leaf[stack]] += values[stack];
        // what became of it: the share that is left at the end
        if (isGrowth && all[stack]) other[leaf[stack]] += values[stack] * Math.min(exit[stack] / all[stack], 1);
      }
      for (let stack = 0; ages && stack < mask.length; stack++)
        if (mask[stack] && ages[stack] >= 0) other[leaf[stack]] += values[stack] * ages[stack];
      return { value, other: isGrowth || ages ? other : null };
    }
    return this.changedLeaves();
  }

  /** Before or after beside the other side; changes beside what they come to; growth or shrinkage beside what did not change. */
  private changedLeaves(): { value: Float64Array; other: Float64Array } {
    const { tree, leaf } = this.baseTree,
      mask = this.mask,
      { side } = this.state;
    const [before, after] = this.sides().map((values) => {
      const sums = new Float64Array(tree.count);
      for (let stack = 0; stack < mask.length; stack++) if (mask[stack]) sums[leaf[stack]] += values[stack];
      return sums;
    });
    if (side === "before") return { value: before, other: after };
    if (side === "after") return { value: after, other: before };
    const value = new Float64Array(tree.count),
      other = new Float64Array(tree.count);
    for (let node = 0; node < tree.count; node++) {
      const net = after[node] - before[node],
        isShown = side === "change" || (side === "grown" ? net > 0 : net < 0);
      if (!isShown) continue;
      value[node] = Math.abs(net);
      other[node] = side === "change" ? net : Math.min(before[node], after[node]);
    }
    return { value, other };
  }

  private keyOf(measure: Measure): string {
    return measure.id === "snapshot" ? `snapshot ${this.state.from} ${this.state.to}` : measure.id;
  }

  private weightKey(): string {
    const { measure, state } = this;
    return [this.keyOf(measure), state.side, ["growth", "age"].indexOf(state.colour)].join();
  }

  /** Of a comparison: a stack for each row, and what its sides add up to. What is hidden may make stacks one that were two. */
  get pairs(): { stack: Int32Array; sums: Float64Array[]; calls: Float64Array[]; key: ArrayLike<number> } {
    return this.kept("pairs." + this.keyOf(this.measure), () => {
      const { tree, leaf } = this.baseTree,
        mask = this.mask,
        values = this.rowValues,
        after = values[1],
        { rows } = this.model;
      const key = rows && !this.state.hide.length ? rows : leaf,
        count = rows ? Math.max(mask.length, tree.count) : tree.count;
      const stack = new Int32Array(count).fill(-1),
        sums = values.map(() => new Float64Array(count)),
        calls = this.ofPeaks.map(() => new Float64Array(count));
      for (let i = 0; i < mask.length; i++) {
        if (!mask[i]) continue;
        calls.forEach((sum, side) => (sum[key[i]] += this.ofPeaks[side][i]));
        sums.forEach((sum, k) => (sum[key[i]] += values[k][i]));
        if (stack[key[i]] < 0 || after[i] > after[stack[key[i]]]) stack[key[i]] = i;
      }
      return { stack, sums, calls, key };
    });
  }

  /** Calls by stack of both sides, if peaks are compared: what holds nothing at one may have allocated as before. */
  private get ofPeaks(): Float64Array[] {
    return this.isDiff && this.measure.id.startsWith("peak") ? this.sides(this.by("calls")) : [];
  }

  /** What became of a row of a comparison, as cairn diff says it. */
  wordOf(sums: Float64Array[], row: number, calls: Float64Array[] = []): string {
    const [before, after] = sums,
      { by, isSure } = this.change(sums.map((sum) => sum[row]));
    if (!isSure) return "within ±";
    if (!before[row] && after[row]) return calls[0]?.[row] ? "only at this peak" : "new";
    if (!after[row] && before[row]) return calls[1]?.[row] ? "not at this peak" : "gone";
    return by > 0 ? "grown" : by < 0 ? "shrunk" : "same";
  }

  /** All stacks of a row of a comparison, of both sides. */
  stacksOfPair(row: number): number[] {
    const { key } = this.pairs;
    return [...this.mask.keys()].filter((stack) => this.mask[stack] && key[stack] === row);
  }

  private leafColumns(): Columns {
    const { value, other } = this.leafValues(),
      { tree, leaf } = this.baseTree,
      mask = this.mask;
    const isPart = this.isDiff && ["grown", "shrunk"].includes(this.state.side);
    return [
      value,
      other,
      ...(isPart ? [] : (this.spread(this.measure.id) ?? [])).map((values) => {
        const sums = new Float64Array(tree.count);
        for (let stack = 0; stack < mask.length; stack++) if (mask[stack]) sums[leaf[stack]] += values[stack];
        return sums;
      }),
      ...(this.isByAge && this.ages ? [this.agedLeaves(this.ages)] : []),
    ];
  }

  /** What leaves hold of stacks whose ages are known. */
  private agedLeaves(ages: Float64Array): Float64Array {
    const { tree, leaf } = this.baseTree,
      { values } = this.measure,
      sums = new Float64Array(tree.count);
    for (let stack = 0; stack < this.mask.length; stack++)
      if (this.mask[stack] && ages[stack] >= 0) sums[leaf[stack]] += values[stack];
    return sums;
  }

  /** The whole as a flame graph. */
  flame(): Weighted {
    return this.kept(`flame.${this.weightKey()}.${this.state.inverted}`, () => {
      const { tree } = this.baseTree,
        leaves = this.leafColumns(),
        all = weigh(tree, leaves),
        starts = [];
      if (!this.state.inverted) return all;
      for (let node = 1; node < tree.count; node++) if (all.self[node] > 0) starts.push(node);
      return inverted(tree, starts, leaves, all.value[0] / LEAST_SHARE);
    });
  }

  /** Callers and callees of the functions with one name. */
  sandwich(name: string): { callers: Weighted; callees: Weighted } {
    return this.kept(`sandwich.${this.weightKey()}.${name}`, () => {
      const { tree } = this.baseTree,
        leaves = this.leafColumns(),
        all = weigh(tree, leaves),
        fns = this.model.functionsNamed(name);
      const starts = occurrences(tree, fns).filter((node) => all.value[node] > 0),
        below = calleesOf(tree, fns);
      const callees = leaves.map((leaf) => {
        const sums = leaf && new Float64Array(below.tree.count);
        for (let node = 1; sums && node < tree.count; node++)
          if (below.nodeOf[node] > 0) sums[below.nodeOf[node]] += leaf[node];
        return sums;
      });
      return {
        callers: inverted(tree, starts, all.columns, all.value[0] / LEAST_SHARE / 4),
        callees: weigh(below.tree, callees),
      };
    });
  }

  /** Stacks added up by functions, lines, files or modules of their frames. */
  groups(kind: string): Groups {
    const key = this.isDiff || this.groupMeasures.length > USUAL_MEASURES.length ? this.keyOf(this.measure) : "";
    return this.kept(`groups.${kind}.${key}`, () => this.makeGroups(kind));
  }

  /** The usual measures, and the chosen one. */
  get groupMeasures(): Measure[] {
    const usual = this.measures.filter((one) => USUAL_MEASURES.includes(one.id));
    return usual.includes(this.measure) ? usual : [...usual, this.measure];
  }

  /** What rows add up: of a comparison both sides, else the measures; then how sure these are. */
  get rowValues(): Float64Array[] {
    const of = ({ id }: Measure) => this.spread(id);
    if (this.isDiff) return [...this.sides(), ...(of(this.measure) ?? [])];
    const all = this.groupMeasures,
      values = all.map((one) => one.values),
      none = new Float64Array(this.model.stackCount);
    return this.spread("peak")
      ? [...values, ...all.map((one) => of(one)?.[0] ?? none), ...all.map((one) => of(one)?.[1] ?? none)]
      : values;
  }

  /** How sure a sum of a group is, in words; `sums`: its own or its total. */
  groupSure(sums: Float64Array[], at: number, group: number): string {
    const all = this.groupMeasures,
      count = all.length;
    return !this.isDiff && sums.length > count
      ? units.sure(Math.sqrt(sums[at + count][group]), sums[at + 2 * count][group], all[at].isBytes)
      : "";
  }

  /**
   * What a row of a comparison says, from its sums: before, after and how sure these are. What is not among
   * samples may still have been there, up to 3.7 times so many bytes as there is one in; so has it cairn diff.
   */
  change([before, after, square, samples]: number[]): { by: number; isSure: boolean; sure: string } {
    const by = after - before;
    if (samples === undefined) return { by, isSure: true, sure: "" };
    for (const {
      profile: { facts },
    } of this.model.parts)
      if (!(facts.role === "after" ? after : before)) square += (3.7 * (facts.sampling?.rate_most_bytes ?? 0)) ** 2;
    const half = Math.sqrt(square);
    return { by, isSure: !by || Math.abs(by) > half, sure: units.sure(half, samples, this.measure.isBytes) };
  }

  /** How sure a node of a flame graph is; `pair`: what it was before and after. */
  nodeSure({ columns: [, , square, samples] }: Weighted, node: number, pair: [number, number] | null): string {
    if (this.isByAge) return ""; // no sample has ages
    if (!square) return "";
    if (pair) return this.change([...pair, square[node], samples![node]]).sure;
    return this.isDiff ? "" : units.sure(Math.sqrt(square[node]), samples![node], this.measure.isBytes);
  }

  private keysOf(kind: string): { count: number; keys: Int32Array[] } {
    const { model } = this;
    const keys = model.parts.map((part) => {
      const key = kind === "functions" ? part.fn : kind === "lines" ? part.line : part.file;
      return kind === "modules" ? part.fn.map((fn) => model.fnModule[fn]) : key;
    });
    const count = { functions: model.functions, lines: model.lines, files: model.files }[kind] ?? model.modules;
    return { count: count.list.length, keys };
  }

  private makeGroups(kind: string): Groups {
    const { model } = this,
      { count, keys } = this.keysOf(kind);
    const make = () => this.rowValues.map(() => new Float64Array(count));
    const groups = { kind, count, self: make(), total: make(), ...this.describe(kind) };
    for (const index of this.profiles)
      for (const isPython of [0, 1])
        if (!isPython || model.parts[index].isPython.includes(1))
          this.addGroups(model.parts[index], keys[index], groups, isPython);
    return groups;
  }

  /** The sets of labels, or the values of a key, with their sums over the stacks that count; most at the peak first. */
  contexts(key: string): ContextRow[] {
    return this.kept("contexts." + key, () => {
      const rows = new Map<string, ContextRow>();
      for (const index of this.profiles) this.addContexts(this.model.parts[index], key, rows);
      return [...rows.values()].sort((a, b) => b.peak - a.peak);
    });
  }

  private addContexts(part: Part, key: string, rows: Map<string, ContextRow>): void {
    const { contexts, numbers } = part.profile,
      isPart = this.state.focus.some((one) => !one.startsWith("thread:") && !one.startsWith("context:"));
    const of = contexts.map(({ labels, entered }) => {
      const own = key ? labels.filter((label) => keyOf(label) === key) : labels,
        name = own.map((label) => (key ? label.slice(key.length + 1) : label)).join(" ");
      const row = rows.get(own.join("\0")) ?? { name, labels: own, entered: 0, ...NOTHING };
      if (own.length) row.entered += entered;
      rows.set(own.join("\0"), row);
      return row;
    });
    if (!isPart) {
      contexts.forEach((set, i) => MEASURED.forEach((id) => (of[i][id] += Math.max(set[id], 0))));
      return;
    }
    const stack = numbers.get("cell.stack"),
      context = numbers.get("cell.context");
    for (const id of MEASURED) {
      const own = numbers.get("cell." + id);
      for (let i = 0; stack && context && own && i < own.length; i++)
        if (this.mask[part.firstStack + stack[i]]) of[context[i]][id] += own[i];
    }
  }

  /** One walk over the tree of a part: a node's sum counts for a group where no caller is of it too. */
  private addGroups(part: Part, key: Int32Array, groups: Groups, isPython: number): void {
    const sums = this.addStacks(part, key, groups, isPython),
      isUsed = new Uint8Array(part.nodeParent.length);
    for (const sum of sums) for (let node = 0; node < sum.length; node++) if (sum[node] > 0) isUsed[node] = 1;
    const children = childrenOf(part.nodeParent),
      active = new Int32Array(groups.count);
    const isShown = (frame: number) =>
      !(part.flags[frame] & MARK) && (this.state.internal || !this.model.isHidden(part, frame, isPython));
    const pending = [0];
    while (pending.length) {
      const visit = pending.pop()!,
        node = visit < 0 ? ~visit : visit,
        place = part.nodePlace[node];
      const last = node ? part.placeStart[place + 1] : 0;
      for (let at = node ? part.placeStart[place] : 0; at < last; at++) {
        const frame = part.placeFrames[at],
          group = key[frame];
        if (group < 0 || !isShown(frame)) continue;
        if (visit < 0) active[group]--;
        else if (!active[group]++) for (let i = 0; i < sums.length; i++) groups.total[i][group] += sums[i][node];
      }
      if (visit < 0) continue;
      pending.push(~node);
      for (let i = children.first[node]; i < children.first[node + 1]; i++)
        if (isUsed[children.order[i]]) pending.push(children.order[i]);
    }
  }

  /** What nodes hold with all below them, by measure; and what groups hold by their own calls. */
  private addStacks(part: Part, key: Int32Array, groups: Groups, isPython: number): Float64Array[] {
    const { model, mask } = this,
      all = this.rowValues;
    const sums = all.map(() => new Float64Array(part.nodeParent.length));
    for (let i = 0; i < part.stackNode.length; i++) {
      const stack = part.firstStack + i;
      if (!mask[stack] || part.isPython[part.stackNode[i]] !== isPython) continue;
      const { frame, isShown } = model.innermost(stack, this.state.internal),
        group = frame < 0 ? -1 : key[frame];
      all.forEach((values, at) => {
        sums[at][part.stackNode[i]] += values[stack];
        if (group >= 0) groups.self[at][group] += values[stack];
        if (group >= 0 && !isShown) groups.total[at][group] += values[stack];
      });
    }
    for (const sum of sums) for (let node = sum.length - 1; node > 0; node--) sum[part.nodeParent[node]] += sum[node];
    return sums;
  }

  private describe(kind: string): Pick<Groups, "label" | "where"> {
    const { model } = this;
    if (kind === "functions") return { label: (i) => model.fnName[i], where: (i) => model.moduleName(i) };
    if (kind === "lines")
      return {
        label: (i) => model.lines.list[i].slice(model.lines.list[i].lastIndexOf("/") + 1),
        where: (i) => model.files.list[model.lineFile[i]],
      };
    const list = kind === "files" ? model.files.list : model.modules.list;
    return { label: (i) => list[i].slice(list[i].lastIndexOf("/") + 1) || "[no module]", where: (i) => list[i] };
  }
}
