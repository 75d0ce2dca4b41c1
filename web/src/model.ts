// SPDX-License-Identifier: Apache-2.0
// What is asked of the profiles of a page on common ground: stacks in words, one tree of functions that
// holds them all, what they held at a moment. So several processes add up, and two recordings compare, by
// the names of their functions.

import type { Page } from "./data";
import { heldAt, nearest } from "./history";
import { BLOCKS, makeMeasures, type Measure } from "./measures";
import { ALLOCATOR, HIDDEN, INTERPRETER, MARK, NumberedParts, type Part } from "./numbering";
import { Tree } from "./tree";
import * as units from "./units";
import { baseName } from "./units";

// Functions of a language's standard library, wherever they were compiled into; and code that came with the system.
const STANDARD = /^(<.* as )?<?(std|core|alloc|__gnu_cxx|__cxxabiv1)::|^lib(std)?c\+\+/;
const KEEPER = /^\(in (.*)\)$/;
const OF_SYSTEM = /^(\/usr\/(?!local\/)|\/lib|\/nix\/store|\[|<frozen)|\/(site|dist)-packages\/|\/lib\/python\d/;

/** A stack in words: the first function of the program's own and its line, what it called for the memory, who called it. */
export interface Told {
  own: string;
  where: string;
  called: string;
  callers: string[];
}

/** Of whole numbers below 2^48: as many as a browser's numbers hold exactly when they are multiplied. */
function mixed(hash: number, value: number): number {
  const high = Math.floor(hash / 0x1000000),
    low = hash % 0x1000000;
  return (
    (Math.imul(low ^ value, 0x9e3779b1) >>> 8) * 0x1000000 + ((Math.imul(high ^ (value >>> 3), 0x85ebca6b) + low) >>> 8)
  );
}

/** The key of a label, "key=value". */
export function keyOf(label: string): string {
  return label.slice(0, label.indexOf("="));
}

function hashOfText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

const NOT_RECORDED = "[stack not recorded]";
const SNAPSHOTS_KEPT = 8;

export class Model extends NumberedParts {
  private isOwnFn: boolean[] = [];
  readonly partOf: Uint16Array; // by stack
  readonly rows: Float64Array | null; // of two recordings: stacks with the same number are the same, as the tool has it
  readonly measures: Measure[];
  readonly hasHistory: boolean;
  readonly isOneRecording: boolean; // two snapshots of one are compared: they differ in nothing but what was live
  private lastCells: { key: string; measures: Measure[] } | null = null;
  private snapshots = new Map<number, Measure>();
  private keys: Float64Array | null = null; // by stack
  private trees = new Map<boolean, { tree: Tree; leaf: Int32Array }>();

  constructor(page: Page) {
    super(page);
    this.rows = page.profiles.at(-1)?.numbers.get("matching") ?? null;
    this.partOf = new Uint16Array(this.stackCount);
    this.parts.forEach((part, i) => this.partOf.fill(i, part.firstStack, part.firstStack + part.stackNode.length));
    this.hasHistory = this.parts.some((part) => part.history);
    this.isOneRecording =
      this.isDiff && this.hasSnapshotValues && new Set(this.parts.map((part) => part.profile.facts.path)).size === 1;
    this.measures = makeMeasures(this);
  }

  get hasContexts(): boolean {
    return this.parts.some((part) => part.profile.contexts.length > 0);
  }

  /** Keys of the program's labels. */
  get labelKeys(): string[] {
    const keys = this.parts.flatMap(({ profile }) => profile.contexts.flatMap((set) => set.labels.map(keyOf)));
    return [...new Set(keys)].sort();
  }

  /** Cells of a part that some threads (none: all) made within some labels (of one key: either of them). */
  private areCells(part: Part, slots: Set<number>, labels: string[]): Uint8Array {
    const { numbers, contexts } = part.profile,
      slot = numbers.get("cell.slot") ?? new Float64Array(),
      context = numbers.get("cell.context"),
      wanted = new Map<string, string[]>();
    for (const label of labels) wanted.set(keyOf(label), [...(wanted.get(keyOf(label)) ?? []), label]);
    const isIn = contexts.map((set) =>
      [...wanted.values()].every((some) => some.some((label) => set.labels.includes(label))),
    );
    return Uint8Array.from(slot, (one, i) =>
      Number((!slots.size || slots.has(one)) && (!labels.length || isIn[context?.[i] ?? 0] === true)),
    );
  }

  /** The same measures of what some threads (by slot) allocated within some labels, as far as cells tell it. */
  ofCells(slots: Set<number>, labels: string[]): Measure[] {
    const key = JSON.stringify([[...slots], labels]);
    if (this.lastCells?.key === key) return this.lastCells.measures;
    const make = () => new Float64Array(this.stackCount),
      values: Record<string, Float64Array> = { peak: make(), exit: make(), allocated: make(), calls: make() };
    for (const part of this.parts) {
      const { numbers } = part.profile,
        stacks = numbers.get("cell.stack"),
        are = this.areCells(part, slots, labels);
      for (const id in values) {
        const own = numbers.get("cell." + id);
        for (let i = 0; stacks && own && i < own.length; i++)
          if (are[i]) values[id][part.firstStack + stacks[i]] += own[i];
      }
    }
    const measures = this.measures
      .filter((one) => one.id in values)
      .map((one) => {
        const own = values[one.id];
        return { ...one, values: own, counts: one.id === "allocated" ? values.calls : own };
      });
    this.lastCells = { key, measures };
    return measures;
  }

  /** Names the frames of a stack, in whatever state of its process: -1 of none. */
  stackKey(stack: number): number {
    return this.stackKeys[stack] ?? -1;
  }

  /** The stack whose frames have that name; -1: there is none. */
  stackWithKey(key: number): number {
    return this.stackKeys.indexOf(key);
  }

  private get stackKeys(): Float64Array {
    if (this.keys) return this.keys;
    this.keys = new Float64Array(this.stackCount);
    const texts = this.functions.list.map(hashOfText);
    for (const part of this.parts) {
      const hashes = new Float64Array(part.nodeParent.length);
      for (let node = 1; node < hashes.length; node++) {
        let hash = hashes[part.nodeParent[node]];
        const place = part.nodePlace[node];
        for (let i = part.placeStart[place]; i < part.placeStart[place + 1]; i++) {
          const frame = part.placeFrames[i];
          hash = mixed(mixed(hash, texts[part.fn[frame]]), this.lineNumber[part.line[frame]] ?? 0);
        }
        hashes[node] = hash;
      }
      part.stackNode.forEach((node, i) => (this.keys![part.firstStack + i] = hashes[node]));
    }
    return this.keys;
  }

  /** When the snapshot nearest to a time was. */
  timeNear(at_ns: number): string {
    const history = this.parts.find((part) => part.history)?.history;
    return units.duration(history ? history.snapshots[nearest(history, at_ns)].at_ns : at_ns);
  }

  /** What stacks held at a moment. */
  snapshot(at_ns: number): Measure {
    const known = this.snapshots.get(at_ns);
    if (known) return known;
    if (this.snapshots.size >= SNAPSHOTS_KEPT) this.snapshots.clear();
    const values = new Float64Array(this.stackCount);
    for (const part of this.parts)
      if (part.history)
        heldAt(part.history, at_ns, values.subarray(part.firstStack, part.firstStack + part.stackNode.length));
    const measure: Measure = {
      id: "snapshot",
      label: `At ${this.timeNear(at_ns)}`,
      help: "bytes that were live at a moment",
      isBytes: true,
      noun: BLOCKS,
      values,
      counts: values,
    };
    this.snapshots.set(at_ns, measure);
    return measure;
  }

  /** Internal frames are left out unless they are wanted; Python's own are in stacks with code in Python. */
  isHidden(part: Part, frame: number, isPython: number): boolean {
    return (part.flags[frame] & (isPython ? HIDDEN | INTERPRETER : HIDDEN)) !== 0;
  }

  /** Frames of a stack, innermost first, as numbers of its part; internal ones left out unless wanted. */
  framesOf(stack: number, withInternal: boolean): number[] {
    const part = this.parts[this.partOf[stack]],
      isPython = part.isPython[part.stackNode[stack - part.firstStack]];
    const all: number[] = [];
    for (let node = part.stackNode[stack - part.firstStack]; node > 0; node = part.nodeParent[node]) {
      const place = part.nodePlace[node];
      for (let i = part.placeStart[place]; i < part.placeStart[place + 1]; i++) all.push(part.placeFrames[i]);
    }
    if (withInternal) return all;
    const shown = all.filter((frame) => !this.isHidden(part, frame, isPython));
    const hasCode = shown.some((frame) => !(part.flags[frame] & MARK)),
      only = hasCode ? -1 : this.onlyFrame(part, all);
    return only < 0 ? shown : [only, ...shown];
  }

  /** The first frame of code that is shown; `isShown` false: it stands for a stack of internal frames. */
  innermost(stack: number, withInternal: boolean): { frame: number; isShown: boolean } {
    const part = this.parts[this.partOf[stack]],
      leaf = part.stackNode[stack - part.firstStack];
    for (let node = leaf; node > 0; node = part.nodeParent[node]) {
      const place = part.nodePlace[node];
      for (let i = part.placeStart[place]; i < part.placeStart[place + 1]; i++) {
        const frame = part.placeFrames[i];
        if (!(part.flags[frame] & MARK) && (withInternal || !this.isHidden(part, frame, part.isPython[leaf])))
          return { frame, isShown: true };
      }
    }
    return {
      frame: this.framesOf(stack, withInternal).find((frame) => !(part.flags[frame] & MARK)) ?? -1,
      isShown: false,
    };
  }

  /** What stands for a stack of nothing but internal frames: its first frame that is no allocator; -1: no code at all. */
  private onlyFrame(part: Part, frames: number[]): number {
    const code = frames.filter((frame) => !(part.flags[frame] & MARK));
    return code.find((frame) => !(part.flags[frame] & ALLOCATOR)) ?? code[code.length - 1] ?? -1;
  }

  /** Stacks with code in Python, or those without. */
  private addPart(part: Part, tree: Tree, leaf: Int32Array, withInternal: boolean, isPython: number): void {
    const nodeOf = new Int32Array(part.nodeParent.length);
    const hasCode = new Uint8Array(part.nodeParent.length);
    for (let node = 1; node < nodeOf.length; node++) {
      let at = nodeOf[part.nodeParent[node]];
      hasCode[node] = hasCode[part.nodeParent[node]];
      const place = part.nodePlace[node];
      for (let i = part.placeStart[place + 1] - 1; i >= part.placeStart[place]; i--) {
        const frame = part.placeFrames[i];
        if (!withInternal && this.isHidden(part, frame, isPython)) continue;
        at = tree.child(at, part.fn[frame]);
        if (!(part.flags[frame] & MARK)) hasCode[node] = 1;
      }
      nodeOf[node] = at;
    }
    const none = this.functionOf(NOT_RECORDED, "");
    for (let i = 0; i < part.stackNode.length; i++) {
      const node = part.stackNode[i];
      if (part.isPython[node] !== isPython) continue;
      let at = nodeOf[node];
      if (!node) at = tree.child(0, none);
      else if (!hasCode[node]) {
        const first = this.framesOf(part.firstStack + i, false)[0];
        if (!(part.flags[first] & MARK)) at = tree.child(at, part.fn[first]);
      }
      leaf[part.firstStack + i] = at;
    }
  }

  /** All stacks as a tree of functions, from the outermost inwards, and the leaf of each stack. */
  tree(withInternal: boolean): { tree: Tree; leaf: Int32Array } {
    let found = this.trees.get(withInternal);
    if (!found) {
      found = { tree: new Tree(), leaf: new Int32Array(this.stackCount) };
      for (const part of this.parts)
        for (const isPython of [0, 1])
          if (!isPython || part.isPython.includes(1))
            this.addPart(part, found.tree, found.leaf, withInternal, isPython);
      if (this.rows) this.matchLeaves(this.rows, found.leaf);
      this.trees.set(withInternal, found);
    }
    return found;
  }

  /** Where the later side of a comparison has the same stack by other functions, that is the place of the earlier one. */
  private matchLeaves(rows: Float64Array, leaf: Int32Array): void {
    const first = this.parts[1].firstStack,
      leafOf = new Map<number, number>(),
      isAfter = new Set<number>(leaf.subarray(first));
    for (let stack = leaf.length - 1; stack >= first; stack--) leafOf.set(rows[stack], leaf[stack]);
    for (let stack = 0; stack < first; stack++)
      if (!isAfter.has(leaf[stack])) leaf[stack] = leafOf.get(rows[stack]) ?? leaf[stack];
  }

  private readings = new Map<boolean, Float64Array>();

  /** By stack, the same number for those that read the same, function by function and line by line; internal frames count where they are shown. */
  reading(withInternal: boolean): Float64Array {
    let keys = this.readings.get(withInternal);
    if (!keys) {
      const { leaf } = this.tree(withInternal);
      keys = Float64Array.from(leaf, (node) => node * 2 ** 32);
      for (const part of this.parts)
        for (const isPython of [0, 1]) {
          const lines = this.linesOf(part, withInternal, isPython);
          part.stackNode.forEach((node, i) => {
            const stack = part.firstStack + i;
            if (part.isPython[node] === isPython) keys![stack] += lines[node] || this.lineOfOnly(part, stack);
          });
        }
      this.readings.set(withInternal, keys);
    }
    return keys;
  }

  /** By node, the lines of all frames that are shown on the way to it, mixed. */
  private linesOf(part: Part, withInternal: boolean, isPython: number): Uint32Array {
    const lines = new Uint32Array(part.nodeParent.length);
    for (let node = 1; node < lines.length; node++) {
      let mixture = lines[part.nodeParent[node]];
      const place = part.nodePlace[node];
      for (let i = part.placeStart[place + 1] - 1; i >= part.placeStart[place]; i--) {
        const frame = part.placeFrames[i];
        if (!withInternal && this.isHidden(part, frame, isPython)) continue;
        mixture = Math.imul(mixture ^ (part.line[frame] + 2), 0x9e3779b1);
        mixture ^= mixture >>> 15;
      }
      lines[node] = mixture;
    }
    return lines;
  }

  /** The line that stands for a stack of nothing but internal frames. */
  private lineOfOnly(part: Part, stack: number): number {
    const [frame] = this.framesOf(stack, false);
    return frame === undefined ? 0 : part.line[frame] + 2;
  }

  isStandard(fn: number): boolean {
    return STANDARD.test(this.fnName[fn]) || STANDARD.test(this.moduleName(fn));
  }

  /** Code of the program, and not of a standard library or one that came with the system. */
  isOwn(fn: number): boolean {
    return (this.isOwnFn[fn] ??=
      !this.isStandard(fn) &&
      (this.parts.some(({ profile: { facts } }) => facts.executable === this.modules.list[this.fnModule[fn]]) ||
        !OF_SYSTEM.test(this.modules.list[this.fnModule[fn]] || "[")));
  }

  /** The place of the first own frame among some of a stack; 0: there is none. */
  firstOwn(part: Part, frames: number[]): number {
    return Math.max(
      frames.findIndex((frame) => !(part.flags[frame] & MARK) && this.isOwn(part.fn[frame])),
      0,
    );
  }

  /** Of owners: the file that a variable or a call is in; null: neither. */
  keeperModule(fn: number): string | null {
    return KEEPER.exec(this.moduleName(fn))?.[1] ?? null;
  }

  told(stack: number, withInternal: boolean, callers: number): Told {
    const part = this.parts[this.partOf[stack]],
      frames = this.framesOf(stack, withInternal),
      at = this.isOfOwners ? 0 : this.firstOwn(part, frames), // of owners the block itself
      fns = frames.map((frame) => part.fn[frame]);
    return {
      own: frames.length ? this.fnName[fns[at]] : "a stack that was not recorded",
      where: frames.length && part.line[frames[at]] >= 0 ? this.frameLocation(part, frames[at]) : "",
      called: at ? this.fnName[fns[at - 1]] : "",
      callers: fns.slice(at + 1, at + 1 + callers).map((fn, i) => this.shortName(fn, fns[at + i])),
    };
  }

  moduleName(fn: number): string {
    return fn < 0 ? "" : baseName(this.modules.list[this.fnModule[fn]]);
  }

  /** The name, without its library where the function before it is of the same: "+0x1234". */
  shortName(fn: number, before: number): string {
    const name = this.fnName[fn],
      plus = name.lastIndexOf("+0x");
    const isSame = plus > 0 && before >= 0 && this.fnModule[fn] === this.fnModule[before];
    return isSame && name.slice(0, plus) === this.moduleName(fn) ? name.slice(plus) : name;
  }

  /** Functions by name, in whatever module. */
  functionsNamed(name: string): Set<number> {
    const found = new Set<number>();
    this.fnName.forEach((one, fn) => one === name && found.add(fn));
    return found;
  }

  private spreads = new Map<string, [Float64Array, Float64Array] | null>();

  /** By stack, squares of half the 95 % intervals, which add up, and numbers of samples; null: nothing is an estimate. */
  spread(id: string): [Float64Array, Float64Array] | null {
    let found = this.spreads.get(id);
    if (found === undefined) {
      const name = `${id}_interval`;
      found = this.parts.some((part) => part.profile.numbers.has("stack." + name))
        ? [this.joined(name).map((half) => half * half), this.joined(id + "_samples")]
        : null;
      this.spreads.set(id, found);
    }
    return found;
  }

  /** How sure a stack's value is, in words. */
  sure(stack: number, { id, isBytes }: Measure): string {
    const spread = this.spread(id);
    return spread ? units.sure(Math.sqrt(spread[0][stack]), spread[1][stack], isBytes) : "";
  }

  frameLocation(part: Part, frame: number): string {
    const line = part.line[frame];
    if (line >= 0) return `${baseName(this.files.list[this.lineFile[line]])}:${this.lineNumber[line]}`;
    if (part.file[frame] >= 0) return baseName(this.files.list[part.file[frame]]);
    return this.moduleName(part.fn[frame]);
  }
}
