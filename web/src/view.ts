// SPDX-License-Identifier: Apache-2.0
// What the state selects of the model: which stacks count, and their sums. Screens ask here; results
// are kept until the part of the state changes that they depend on.

import { HIDDEN, MARK, type Measure, type Model, type Part } from "./model";
import type { State } from "./state";
import { calleesOf, childrenOf, inverted, occurrences, Tree, weigh, without, type Weighted } from "./tree";
import * as units from "./units";

const LEAST_SHARE = 5000;  // inverted trees stop below 1/5000 of the whole

export interface Groups {
  kind: string;
  count: number;
  label(group: number): string;
  where(group: number): string;
  self: Float64Array[];   // by measure of the view's `groupMeasures`, of a comparison by its sides; then by group
  total: Float64Array[];
}

export const USUAL_MEASURES = ["peak", "exit", "allocated", "calls"];

export class View {
  readonly measure: Measure;
  readonly measures: Measure[];
  readonly isDiff: boolean;      // of two recordings, or of two moments of one
  readonly profiles: number[];   // those that count
  private cache = new Map<string, unknown>();

  constructor(readonly model: Model, readonly state: State, previous: View | null) {
    const threads = state.focus.filter((one) => one.startsWith("thread:")).map((one) => Number(one.split(":")[1]));
    this.measures = threads.length ? model.ofThreads(new Set(threads)) : model.measures;
    const isMoment = state.measure === "moment" && model.hasHistory && !threads.length;
    const isPair = isMoment && state.from > 0 && !model.isDiff;
    this.isDiff = model.isDiff || isPair;
    this.measure = isMoment ? model.moment(state.to) : this.by(state.measure);
    if (isPair) this.measure = { ...this.measure, label: `${model.timeNear(state.from)} to ${model.timeNear(state.to)}` };
    this.profiles = this.chooseProfiles();
    if (previous && previous.model === model && previous.maskKey() === this.maskKey()) this.cache = previous.cache;
  }

  /** Module of the recorded program. */
  get program(): string {
    return this.model.parts[this.profiles[0]]?.profile.facts.executable ?? "";
  }

  by(id: string): Measure {
    return this.measures.find((one) => one.id === id) ?? this.measures[0];
  }

  private maskKey(): string {
    const { process, focus, hide, plumbing } = this.state;
    return JSON.stringify([process, focus, hide, plumbing]);
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
    const kind = focus.slice(0, focus.indexOf(":")), key = focus.slice(focus.indexOf(":") + 1);
    if (kind === "thread") return;
    if (kind === "stack") {
      for (let i = 0; i < mask.length; i++) if (i !== Number(key)) mask[i] = 0;
      return;
    }
    const { model } = this;
    const wanted = new Set<number>(kind === "function" ? model.functionsNamed(key) : []);
    const file = kind === "file" ? model.files.find(key) : -2;
    const line = kind === "line" ? model.lines.find(key) : -2;
    const module = kind === "module" ? model.modules.find(key) : -2;
    for (const index of this.profiles) {
      const part = model.parts[index];
      const isHit = this.through(part, (frame) => wanted.has(part.fn[frame]) || part.file[frame] === file || part.line[frame] === line || model.fnModule[part.fn[frame]] === module);
      for (let i = 0; i < part.stackNode.length; i++) if (!isHit[part.stackNode[i]]) mask[part.firstStack + i] = 0;
    }
  }

  /** Which nodes are on or below some frames. */
  private through(part: Part, isWanted: (frame: number) => boolean): Uint8Array {
    const hits = Uint8Array.from(part.fn, (_, frame) => Number(isWanted(frame))), isHit = new Uint8Array(part.nodeParent.length);
    for (let node = 1; node < isHit.length; node++) {
      isHit[node] = isHit[part.nodeParent[node]];
      const place = part.nodePlace[node];
      for (let i = part.placeStart[place]; !isHit[node] && i < part.placeStart[place + 1]; i++)
        isHit[node] = hits[part.placeFrames[i]];
    }
    return isHit;
  }

  /** What the stacks through a function, line, file or module held at each moment of a part. */
  heldBy(part: Part, kind: string, group: number): number[] | undefined {
    return this.kept(`held.${part.firstStack}.${kind}.${group}`, () => {
      const key = this.keysOf(kind).keys[this.model.parts.indexOf(part)], isHit = this.through(part, (frame) => key[frame] === group), mask = this.mask;
      const stacks = [...part.stackNode.keys()].filter((i) => isHit[part.stackNode[i]] && mask[part.firstStack + i]);
      return part.history?.values.map((held) => stacks.reduce((sum, stack) => sum + held[stack], 0));
    });
  }

  /** Values by stack: [before, after] of a comparison, else one alone. */
  sides(measure: Measure = this.measure): Float64Array[] {
    const { model, state } = this;
    if (!this.isDiff) return [measure.values];
    if (!model.isDiff) return [model.moment(state.from).values, measure.values];
    return this.kept("sides." + this.keyOf(measure), () => {
      const pair = [new Float64Array(model.stackCount), new Float64Array(model.stackCount)];
      for (const { profile, firstStack, stackNode } of model.parts)
        pair[profile.facts.role === "after" ? 1 : 0].set(measure.values.subarray(firstStack, firstStack + stackNode.length), firstStack);
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
    return this.kept("sums." + this.keyOf(measure), () => this.sides(measure).map((values) => values.reduce((sum, value, stack) => sum + (mask[stack] ? value : 0), 0)));
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

  get baseTree(): { tree: Tree; leaf: Int32Array } {
    const { hide, plumbing } = this.state;
    const base = this.model.tree(plumbing);
    if (!hide.length) return base;
    return this.kept("base", () => {
      const hidden = new Set<number>();
      for (const name of hide) for (const fn of this.model.functionsNamed(name)) hidden.add(fn);
      const { tree, nodeOf } = without(base.tree, hidden);
      return { tree, leaf: base.leaf.map((node) => nodeOf[node]) };
    });
  }

  /** What leaves hold, by node of the base tree: the width, and what it is compared with. */
  private leafValues(): { value: Float64Array; other: Float64Array | null } {
    const { tree, leaf } = this.baseTree, mask = this.mask, value = new Float64Array(tree.count);
    if (!this.isDiff) {
      const { values } = this.measure;
      const exit = this.by("exit").values, all = this.by("allocated").values;
      const other = new Float64Array(tree.count), isGrowth = this.state.colour === "growth";
      for (let stack = 0; stack < mask.length; stack++) {
        if (!mask[stack]) continue;
        value[leaf[stack]] += values[stack];
        // what became of it: the share that is left at the end
        if (isGrowth && all[stack]) other[leaf[stack]] += values[stack] * Math.min(exit[stack] / all[stack], 1);
      }
      return { value, other: isGrowth ? other : null };
    }
    return this.changedLeaves();
  }

  /** Before or after beside the other side; changes beside what they come to; growth or shrinkage beside what did not change. */
  private changedLeaves(): { value: Float64Array; other: Float64Array } {
    const { tree, leaf } = this.baseTree, mask = this.mask, { side } = this.state;
    const [before, after] = this.sides().map((values) => {
      const sums = new Float64Array(tree.count);
      for (let stack = 0; stack < mask.length; stack++) if (mask[stack]) sums[leaf[stack]] += values[stack];
      return sums;
    });
    if (side === "before") return { value: before, other: after };
    if (side === "after") return { value: after, other: before };
    const value = new Float64Array(tree.count), other = new Float64Array(tree.count);
    for (let node = 0; node < tree.count; node++) {
      const net = after[node] - before[node], isShown = side === "change" || (side === "grown" ? net > 0 : net < 0);
      if (!isShown) continue;
      value[node] = Math.abs(net);
      other[node] = side === "change" ? net : Math.min(before[node], after[node]);
    }
    return { value, other };
  }

  private keyOf(measure: Measure): string {
    return measure.id === "moment" ? `moment ${this.state.from} ${this.state.to}` : measure.id;
  }

  private weightKey(): string {
    const { measure, state } = this;
    return [this.keyOf(measure), state.side, state.colour === "growth"].join();
  }

  /** The whole as a flame graph. */
  flame(): Weighted {
    return this.kept(`flame.${this.weightKey()}.${this.state.inverted}`, () => {
      const { tree } = this.baseTree, { value, other } = this.leafValues();
      const weighted = weigh(tree, value, other);
      if (!this.state.inverted) return weighted;
      const starts = [];
      for (let node = 1; node < tree.count; node++)
        if (value[node] > 0) starts.push({ node, value: value[node], other: other ? other[node] : 0 });
      return inverted(tree, starts, weighted.value[0] / LEAST_SHARE, other !== null);
    });
  }

  /** Callers and callees of the functions with one name. */
  sandwich(name: string): { callers: Weighted; callees: Weighted } {
    return this.kept(`sandwich.${this.weightKey()}.${name}`, () => {
      const { tree } = this.baseTree, { value, other } = this.leafValues();
      const all = weigh(tree, value, other);
      const fns = this.model.functionsNamed(name);
      const starts = occurrences(tree, fns).filter((node) => all.value[node] > 0)
        .map((node) => ({ node, value: all.value[node], other: all.other ? all.other[node] : 0 }));
      const callers = inverted(tree, starts, all.value[0] / LEAST_SHARE / 4, other !== null);
      const below = calleesOf(tree, fns);
      const self = new Float64Array(below.tree.count), otherSelf = other ? new Float64Array(below.tree.count) : null;
      for (let node = 1; node < tree.count; node++) {
        if (below.nodeOf[node] <= 0) continue;
        self[below.nodeOf[node]] += value[node];
        if (other && otherSelf) otherSelf[below.nodeOf[node]] += other[node];
      }
      return { callers, callees: weigh(below.tree, self, otherSelf) };
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

  /** What groups add up. */
  private get groupValues(): Float64Array[] {
    if (this.isDiff) return this.sides();
    const all = this.groupMeasures, spread = (one: Measure) => this.model.spread(one.id);
    const values = all.map((one) => one.values), none = new Float64Array(this.model.stackCount);
    return this.model.spread("peak") ? [...values, ...all.map((one) => spread(one)?.[0] ?? none), ...all.map((one) => spread(one)?.[1] ?? none)] : values;
  }

  /** How sure a sum of a group is, in words; `sums`: its own or its total. */
  groupSure(sums: Float64Array[], at: number, group: number): string {
    const all = this.groupMeasures, count = all.length;
    return !this.isDiff && sums.length > count ? units.sure(Math.sqrt(sums[at + count][group]), sums[at + 2 * count][group], all[at].isBytes) : "";
  }

  /** How sure a node of the flame graph is; of inverted ones it is not known. */
  nodeSure(node: number): string {
    const { id, isBytes } = this.measure, spread = this.isDiff || this.state.inverted ? null : this.model.spread(id);
    if (!spread) return "";
    const { value, other } = this.kept(`spread.${this.weightKey()}`, () => {
      const { tree, leaf } = this.baseTree, mask = this.mask, sums = [new Float64Array(tree.count), new Float64Array(tree.count)];
      for (let stack = 0; stack < mask.length; stack++) if (mask[stack]) sums.forEach((sum, i) => sum[leaf[stack]] += spread[i][stack]);
      return weigh(tree, sums[0], sums[1]);
    });
    return units.sure(Math.sqrt(value[node]), other![node], isBytes);
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
    const { model } = this, { count, keys } = this.keysOf(kind);
    const make = () => this.groupValues.map(() => new Float64Array(count));
    const groups = { kind, count, self: make(), total: make(), ...this.describe(kind) };
    for (const index of this.profiles) this.addGroups(model.parts[index], keys[index], groups);
    return groups;
  }

  /** One walk over the tree of a part: a node's sum counts for a group where no caller is of it too. */
  private addGroups(part: Part, key: Int32Array, groups: Groups): void {
    const sums = this.addStacks(part, key, groups), isUsed = new Uint8Array(part.nodeParent.length);
    for (const sum of sums) for (let node = 0; node < sum.length; node++) if (sum[node] > 0) isUsed[node] = 1;
    const children = childrenOf(part.nodeParent), active = new Int32Array(groups.count);
    const isShown = (frame: number) => !(part.flags[frame] & MARK) && (this.state.plumbing || !(part.flags[frame] & HIDDEN));
    const pending = [0];
    while (pending.length) {
      const visit = pending.pop()!, node = visit < 0 ? ~visit : visit, place = part.nodePlace[node];
      const last = node ? part.placeStart[place + 1] : 0;
      for (let at = node ? part.placeStart[place] : 0; at < last; at++) {
        const frame = part.placeFrames[at], group = key[frame];
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
  private addStacks(part: Part, key: Int32Array, groups: Groups): Float64Array[] {
    const { model, mask } = this, all = this.groupValues;
    const sums = all.map(() => new Float64Array(part.nodeParent.length));
    for (let i = 0; i < part.stackNode.length; i++) {
      const stack = part.firstStack + i;
      if (!mask[stack]) continue;
      const { frame, isShown } = model.innermost(stack, this.state.plumbing), group = frame < 0 ? -1 : key[frame];
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
      return { label: (i) => model.lines.list[i].slice(model.lines.list[i].lastIndexOf("/") + 1), where: (i) => model.files.list[model.lineFile[i]] };
    const list = kind === "files" ? model.files.list : model.modules.list;
    return { label: (i) => list[i].slice(list[i].lastIndexOf("/") + 1) || "[no module]", where: (i) => list[i] };
  }
}
