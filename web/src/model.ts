// SPDX-License-Identifier: Apache-2.0
// The profiles of a page on common ground: functions, lines, files and modules are numbered once for
// all of them, stacks stand in one row, and one tree of functions holds them all. So several
// processes add up, and two recordings compare, by the names of their functions.

import type { Page, Profile } from "./data";
import { heldAt, nearest, readHistory, type History } from "./history";
import { Tree } from "./tree";
import * as units from "./units";
import { baseName } from "./units";

export const INLINED = 1,
  MARK = 8;
const HIDDEN = 2,
  ALLOCATOR = 4,
  INTERPRETER = 16,
  PYTHON = 32;

export interface Measure {
  id: string;
  label: string;
  help: string;
  isBytes: boolean;
  noun: [string, string]; // of the blocks or calls beside it
  values: Float64Array; // by stack
  counts: Float64Array; // blocks or calls, by stack
}

/** Texts numbered in the order in which they came. */
class Numbering {
  readonly list: string[] = [];
  private numbers = new Map<string, number>();

  of(text: string): number {
    let number = this.numbers.get(text);
    if (number === undefined) {
      number = this.list.length;
      this.list.push(text);
      this.numbers.set(text, number);
    }
    return number;
  }

  find(text: string): number {
    return this.numbers.get(text) ?? -1;
  }
}

/** One profile's tables, with the common numbers of its frames. */
export interface Part {
  profile: Profile;
  flags: Float64Array;
  fn: Int32Array; // by frame
  line: Int32Array; // by frame, -1: unknown
  file: Int32Array;
  placeStart: Int32Array; // frames of place p: placeFrames[placeStart[p]] up to placeStart[p + 1]
  placeFrames: Float64Array;
  nodeParent: Int32Array;
  nodePlace: Int32Array;
  isPython: Uint8Array; // by node: code in Python is on the way to it
  history: History | null;
  firstStack: number; // common number of its first stack
  stackNode: Int32Array;
}

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
const BLOCKS: [string, string] = ["block", "blocks"];

export class Model {
  readonly functions = new Numbering(); // "name\0module": the same name in two libraries is two
  readonly modules = new Numbering();
  readonly files = new Numbering();
  readonly lines = new Numbering();
  readonly fnName: string[] = [];
  readonly fnModule: number[] = [];
  readonly lineFile: number[] = [];
  readonly lineNumber: number[] = [];
  readonly parts: Part[] = [];
  private isOwnFn: boolean[] = [];
  readonly stackCount: number;
  readonly partOf: Uint16Array; // by stack
  readonly isDiff: boolean;
  readonly rows: Float64Array | null; // of two recordings: stacks with the same number are the same, as the tool has it
  readonly measures: Measure[];
  readonly hasHistory: boolean;
  readonly hasSnapshotValues: boolean;
  readonly isOneRecording: boolean; // two snapshots of one are compared: they differ in nothing but what was live
  private lastCells: { key: string; measures: Measure[] } | null = null;
  private snapshots = new Map<number, Measure>();
  private renamed = new Map<string, string>(); // files of the earlier side as the later one has them
  private keys: Float64Array | null = null; // by stack
  private trees = new Map<boolean, { tree: Tree; leaf: Int32Array }>();

  constructor(readonly page: Page) {
    this.isDiff = page.profiles.some((profile) => profile.facts.role === "after");
    if (this.isDiff) this.findRenamed(page.profiles);
    this.rows = page.profiles.at(-1)?.numbers.get("matching") ?? null;
    let stacks = 0;
    for (const profile of page.profiles) {
      const part = this.readPart(profile, stacks);
      stacks += part.stackNode.length;
      this.parts.push(part);
    }
    this.stackCount = stacks;
    this.partOf = new Uint16Array(stacks);
    this.parts.forEach((part, i) => this.partOf.fill(i, part.firstStack, part.firstStack + part.stackNode.length));
    this.hasHistory = this.parts.some((part) => part.history);
    this.hasSnapshotValues = this.parts.some((part) => Boolean(part.profile.facts.at_text));
    this.isOneRecording =
      this.isDiff && this.hasSnapshotValues && new Set(this.parts.map((part) => part.profile.facts.path)).size === 1;
    this.measures = this.makeMeasures();
  }

  /** A program or source that lies elsewhere, or is called otherwise, on the other side of a comparison. */
  private findRenamed(profiles: Profile[]): void {
    const [before, after] = profiles.map(
      ({ texts, numbers }) =>
        new Set(
          ["module", "file"].flatMap((name) =>
            [...(numbers.get("frame." + name) ?? [])].map((number) => texts[number - 1] ?? ""),
          ),
        ),
    );
    const byName = new Map<string, string | null>();
    for (const path of after)
      if (!before.has(path)) byName.set(baseName(path), byName.has(baseName(path)) ? null : path);
    for (const path of before) {
      const other = after.has(path) ? null : byName.get(baseName(path));
      if (other) this.renamed.set(path, other);
    }
    const [from, to] = profiles.map(({ facts }) => facts.executable);
    if (from && to) this.renamed.set(from, to);
  }

  /** Of a comparison, functions of one name are the same, in whatever library. */
  private functionOf(name: string, module: string): number {
    const known = this.functions.list.length;
    const fn = this.functions.of(this.isDiff ? name : name + "\0" + module);
    if (fn === known) this.fnName.push(name);
    this.fnModule[fn] = this.modules.of(module);
    return fn;
  }

  private lineOf(file: string, number: number): number {
    const known = this.lines.list.length;
    const line = this.lines.of(file + ":" + number);
    if (line === known) {
      this.lineFile.push(this.files.of(file));
      this.lineNumber.push(number);
    }
    return line;
  }

  private readFrames(profile: Profile, part: Part): void {
    const text = (number: number) => (number ? (profile.texts[number - 1] ?? "") : ""),
      path = (number: number) => this.renamed.get(text(number)) ?? text(number);
    const column = (name: string) => profile.numbers.get("frame." + name) ?? new Float64Array();
    const functions = column("function"),
      files = column("file"),
      lines = column("line");
    const modules = column("module"),
      offsets = column("offset");
    for (let frame = 0; frame < part.fn.length; frame++) {
      const module = path(modules[frame]);
      const address = `${module ? baseName(module) + "+" : ""}0x${Math.max(offsets[frame], 0).toString(16)}`;
      part.fn[frame] = this.functionOf(functions[frame] ? text(functions[frame]) : address, module);
      const file = path(files[frame]);
      part.file[frame] = file ? this.files.of(file) : -1;
      part.line[frame] = file && lines[frame] ? this.lineOf(file, lines[frame]) : -1;
    }
  }

  private readPart(profile: Profile, firstStack: number): Part {
    const column = (name: string) => profile.numbers.get(name) ?? new Float64Array();
    const frames = column("frame.function").length,
      counts = column("place.count");
    const back = column("node.back"),
      steps = column("stack.node");
    const part: Part = {
      profile,
      firstStack,
      history: readHistory(profile),
      flags: column("frame.flags"),
      fn: new Int32Array(frames),
      line: new Int32Array(frames),
      file: new Int32Array(frames),
      placeStart: new Int32Array(counts.length + 1),
      placeFrames: column("place.frames"),
      isPython: new Uint8Array(back.length + 1),
      nodeParent: new Int32Array(back.length + 1),
      nodePlace: new Int32Array(back.length + 1),
      stackNode: new Int32Array(steps.length),
    };
    for (let i = 0; i < counts.length; i++) part.placeStart[i + 1] = part.placeStart[i] + counts[i];
    for (let i = 0; i < back.length; i++) part.nodeParent[i + 1] = i + 1 - back[i];
    part.nodePlace.set(column("node.place"), 1);
    for (let i = 0, node = 0; i < steps.length; i++) part.stackNode[i] = node += steps[i];
    this.readFrames(profile, part);
    for (let node = 1; node < part.nodeParent.length; node++) {
      part.isPython[node] = part.isPython[part.nodeParent[node]];
      for (let i = part.placeStart[part.nodePlace[node]]; i < part.placeStart[part.nodePlace[node] + 1]; i++)
        if (part.flags[part.placeFrames[i]] & PYTHON) part.isPython[node] = 1;
    }
    return part;
  }

  private joined(name: string): Float64Array {
    const all = new Float64Array(this.stackCount);
    for (const part of this.parts) {
      const own = part.profile.numbers.get("stack." + name);
      if (own) all.set(own.subarray(0, part.stackNode.length), part.firstStack);
    }
    for (let i = 0; i < all.length; i++) if (all[i] < 0) all[i] = 0;
    return all;
  }

  get isOfOwners(): boolean {
    return this.parts.some((part) => part.profile.facts.of_owners);
  }

  private makeKept(blocks: Float64Array): Measure[] {
    const kept = { noun: BLOCKS, counts: blocks };
    return [
      {
        ...kept,
        id: "exit",
        label: "Kept",
        help: "bytes of the blocks",
        isBytes: true,
        values: this.joined("at_exit_bytes"),
      },
      { ...kept, id: "exit-blocks", label: "Blocks kept", help: "blocks", isBytes: false, values: blocks },
    ];
  }

  private makeMeasures(): Measure[] {
    const isOver = this.parts.every((part) => part.profile.facts.has_ended);
    const peakBlocks = this.joined("peak_blocks"),
      exitBlocks = this.joined("at_exit_blocks");
    const calls = this.joined("allocations");
    const callNoun: [string, string] = ["call", "calls"];
    if (this.isOfOwners) return this.makeKept(exitBlocks);
    const end = isOver ? "At the end" : "Now";
    const list: Measure[] = [
      ...(this.hasSnapshotValues ? this.makeThen() : []),
      {
        id: "peak",
        label: "At the peak",
        help: "bytes that were live when the heap was largest",
        isBytes: true,
        noun: BLOCKS,
        values: this.joined("peak_bytes"),
        counts: peakBlocks,
      },
      {
        id: "exit",
        label: end,
        help: "bytes that were never freed",
        isBytes: true,
        noun: BLOCKS,
        values: this.joined("at_exit_bytes"),
        counts: exitBlocks,
      },
      {
        id: "allocated",
        label: "Allocated",
        help: "bytes asked for over all time",
        isBytes: true,
        noun: callNoun,
        values: this.joined("allocated_bytes"),
        counts: calls,
      },
      {
        id: "calls",
        label: "Calls",
        help: "number of allocations",
        isBytes: false,
        noun: callNoun,
        values: calls,
        counts: calls,
      },
      {
        id: "peak-blocks",
        label: "Blocks at the peak",
        help: "blocks that were live when the heap was largest",
        isBytes: false,
        noun: BLOCKS,
        values: peakBlocks,
        counts: peakBlocks,
      },
      {
        id: "exit-blocks",
        label: isOver ? "Blocks at the end" : "Blocks now",
        help: "blocks that were never freed",
        isBytes: false,
        noun: BLOCKS,
        values: exitBlocks,
        counts: exitBlocks,
      },
    ];
    const extra = (id: string, label: string, help: string, isBytes: boolean, values: Float64Array): void => {
      if (values.some((value) => value > 0))
        list.push({ id, label, help, isBytes, noun: callNoun, values, counts: isBytes ? calls : values });
    };
    extra(
      "temporary",
      "Temporary blocks",
      "blocks freed by their thread before it allocated again",
      false,
      this.joined("temporary"),
    );
    extra("slack", "Slack", "room of all blocks beyond what was asked for", true, this.joined("slack_bytes"));
    return list;
  }

  /** What was live at the snapshots that the page was asked for. */
  private makeThen(): Measure[] {
    const help = this.parts.map((part) => part.profile.facts.at_text).join(" → "),
      counts = this.joined("at_blocks");
    return [
      { id: "at", label: "Live at snapshot", help, isBytes: true, noun: BLOCKS, values: this.joined("at"), counts },
      { id: "at-blocks", label: "Blocks at snapshot", help, isBytes: false, noun: BLOCKS, values: counts, counts },
    ];
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
      at = this.firstOwn(part, frames),
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
