// SPDX-License-Identifier: Apache-2.0
// The profiles of a page on common ground: functions, lines, files and modules are numbered once for
// all of them, stacks stand in one row, and one tree of functions holds them all. So several
// processes add up, and two recordings compare, by the names of their functions.

import type { Page, Profile } from "./data";
import { heldAt, nearest, readHistory, type History } from "./history";
import { Tree } from "./tree";
import * as units from "./units";
import { baseName } from "./units";

export const INLINED = 1, HIDDEN = 2, ALLOCATOR = 4, MARK = 8;

export interface Measure {
  id: string;
  label: string;
  help: string;
  isBytes: boolean;
  noun: [string, string];  // of the blocks or calls beside it
  values: Float64Array;    // by stack
  counts: Float64Array;    // blocks or calls, by stack
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
  fn: Int32Array;       // by frame
  line: Int32Array;     // by frame, -1: unknown
  file: Int32Array;
  placeStart: Int32Array;  // frames of place p: placeFrames[placeStart[p]] up to placeStart[p + 1]
  placeFrames: Float64Array;
  nodeParent: Int32Array;
  nodePlace: Int32Array;
  history: History | null;
  firstStack: number;   // common number of its first stack
  stackNode: Int32Array;
}

const NOT_RECORDED = "[stack not recorded]";
const MOMENTS_KEPT = 8;
const BLOCKS: [string, string] = ["block", "blocks"];

export class Model {
  readonly functions = new Numbering();  // "name\0module": the same name in two libraries is two
  readonly modules = new Numbering();
  readonly files = new Numbering();
  readonly lines = new Numbering();
  readonly fnName: string[] = [];
  readonly fnModule: number[] = [];
  readonly lineFile: number[] = [];
  readonly lineNumber: number[] = [];
  readonly parts: Part[] = [];
  readonly stackCount: number;
  readonly partOf: Uint16Array;  // by stack
  readonly isDiff: boolean;
  readonly measures: Measure[];
  readonly hasHistory: boolean;
  readonly hasThen: boolean;
  readonly isOneRecording: boolean;  // two moments of one are compared: they differ in nothing but what was live
  private lastThreads: { key: string; measures: Measure[] } | null = null;
  private moments = new Map<number, Measure>();
  private trees = new Map<boolean, { tree: Tree; leaf: Int32Array }>();

  constructor(readonly page: Page) {
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
    this.isDiff = page.profiles.some((profile) => profile.facts.role === "after");
    this.hasThen = this.parts.some((part) => Boolean(part.profile.facts.then));
    this.isOneRecording = this.isDiff && this.hasThen && new Set(this.parts.map((part) => part.profile.facts.path)).size === 1;
    this.measures = this.makeMeasures();
  }

  private functionOf(name: string, module: string): number {
    const known = this.functions.list.length;
    const fn = this.functions.of(name + "\0" + module);
    if (fn === known) {
      this.fnName.push(name);
      this.fnModule.push(this.modules.of(module));
    }
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
    const text = (number: number) => (number ? profile.texts[number - 1] ?? "" : "");
    const column = (name: string) => profile.numbers.get("frame." + name) ?? new Float64Array();
    const functions = column("function"), files = column("file"), lines = column("line");
    const modules = column("module"), offsets = column("offset");
    for (let frame = 0; frame < part.fn.length; frame++) {
      const module = text(modules[frame]);
      const address = `${module ? baseName(module) + "+" : ""}0x${Math.max(offsets[frame], 0).toString(16)}`;
      part.fn[frame] = this.functionOf(functions[frame] ? text(functions[frame]) : address, module);
      const file = text(files[frame]);
      part.file[frame] = file ? this.files.of(file) : -1;
      part.line[frame] = file && lines[frame] ? this.lineOf(file, lines[frame]) : -1;
    }
  }

  private readPart(profile: Profile, firstStack: number): Part {
    const column = (name: string) => profile.numbers.get(name) ?? new Float64Array();
    const frames = column("frame.function").length, counts = column("place.count");
    const back = column("node.back"), steps = column("stack.node");
    const part: Part = {
      profile, firstStack, history: readHistory(profile), flags: column("frame.flags"), fn: new Int32Array(frames),
      line: new Int32Array(frames), file: new Int32Array(frames), placeStart: new Int32Array(counts.length + 1),
      placeFrames: column("place.frames"), nodeParent: new Int32Array(back.length + 1),
      nodePlace: new Int32Array(back.length + 1), stackNode: new Int32Array(steps.length),
    };
    for (let i = 0; i < counts.length; i++) part.placeStart[i + 1] = part.placeStart[i] + counts[i];
    for (let i = 0; i < back.length; i++) part.nodeParent[i + 1] = i + 1 - back[i];
    part.nodePlace.set(column("node.place"), 1);
    for (let i = 0, node = 0; i < steps.length; i++) part.stackNode[i] = node += steps[i];
    this.readFrames(profile, part);
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

  private makeMeasures(): Measure[] {
    const isOver = this.parts.every((part) => part.profile.facts.has_ended);
    const peakBlocks = this.joined("peak_blocks"), exitBlocks = this.joined("exit_blocks");
    const calls = this.joined("calls");
    const callNoun: [string, string] = ["call", "calls"];
    const end = isOver ? "At the end" : "Now";
    const list: Measure[] = [
      ...(this.hasThen ? this.makeThen() : []),
      { id: "peak", label: "At the peak", help: "bytes that were live when the heap was largest", isBytes: true, noun: BLOCKS, values: this.joined("peak"), counts: peakBlocks },
      { id: "exit", label: end, help: "bytes that were never freed", isBytes: true, noun: BLOCKS, values: this.joined("exit"), counts: exitBlocks },
      { id: "allocated", label: "Allocated", help: "bytes asked for over all time", isBytes: true, noun: callNoun, values: this.joined("allocated"), counts: calls },
      { id: "calls", label: "Calls", help: "number of allocations", isBytes: false, noun: callNoun, values: calls, counts: calls },
      { id: "peak-blocks", label: "Blocks at the peak", help: "blocks that were live when the heap was largest", isBytes: false, noun: BLOCKS, values: peakBlocks, counts: peakBlocks },
      { id: "exit-blocks", label: isOver ? "Blocks at the end" : "Blocks now", help: "blocks that were never freed", isBytes: false, noun: BLOCKS, values: exitBlocks, counts: exitBlocks },
    ];
    const extra = (id: string, label: string, help: string, isBytes: boolean, values: Float64Array): void => {
      if (values.some((value) => value > 0)) list.push({ id, label, help, isBytes, noun: callNoun, values, counts: isBytes ? calls : values });
    };
    extra("temporary", "Temporary blocks", "blocks freed by their thread before it allocated again", false, this.joined("temporary"));
    extra("slack", "Slack", "room of all blocks beyond what was asked for", true, this.joined("slack"));
    return list;
  }

  /** What was live at the moments that the page was asked for. */
  private makeThen(): Measure[] {
    const help = this.parts.map((part) => part.profile.facts.then).join(" → "), counts = this.joined("then_blocks");
    return [{ id: "then", label: "Live then", help, isBytes: true, noun: BLOCKS, values: this.joined("then"), counts },
      { id: "then-blocks", label: "Blocks then", help, isBytes: false, noun: BLOCKS, values: counts, counts }];
  }


  /** The same measures of what some threads allocated, by slot, as far as cells tell it. */
  ofThreads(slots: Set<number>): Measure[] {
    const key = [...slots].join();
    if (this.lastThreads?.key === key) return this.lastThreads.measures;
    const make = () => new Float64Array(this.stackCount), values: Record<string, Float64Array> = { peak: make(), exit: make(), allocated: make(), calls: make() };
    for (const { profile, firstStack } of this.parts) {
      const stacks = profile.numbers.get("cell.stack"), slot = profile.numbers.get("cell.slot");
      for (const id in values) {
        const own = profile.numbers.get("cell." + id);
        for (let i = 0; stacks && slot && own && i < own.length; i++) if (slots.has(slot[i])) values[id][firstStack + stacks[i]] += own[i];
      }
    }
    const measures = this.measures.filter((one) => one.id in values).map((one) => {
      const own = values[one.id];
      return { ...one, values: own, counts: one.id === "allocated" ? values.calls : own };
    });
    this.lastThreads = { key, measures };
    return measures;
  }

  /** When the moment nearest to a time was. */
  timeNear(at_ns: number): string {
    const history = this.parts.find((part) => part.history)?.history;
    return units.duration(history ? history.moments[nearest(history, at_ns)].at_ns : at_ns);
  }

  /** What stacks held at a moment. */
  moment(at_ns: number): Measure {
    const known = this.moments.get(at_ns);
    if (known) return known;
    if (this.moments.size >= MOMENTS_KEPT) this.moments.clear();
    const values = new Float64Array(this.stackCount);
    for (const part of this.parts) if (part.history) heldAt(part.history, at_ns, values.subarray(part.firstStack, part.firstStack + part.stackNode.length));
    const measure: Measure = { id: "moment", label: `At ${this.timeNear(at_ns)}`, help: "bytes that were live at a moment", isBytes: true, noun: BLOCKS, values, counts: values };
    this.moments.set(at_ns, measure);
    return measure;
  }

  /** Frames of a stack, innermost first, as numbers of its part; plumbing left out unless wanted. */
  framesOf(stack: number, withPlumbing: boolean): number[] {
    const part = this.parts[this.partOf[stack]];
    const all: number[] = [];
    for (let node = part.stackNode[stack - part.firstStack]; node > 0; node = part.nodeParent[node]) {
      const place = part.nodePlace[node];
      for (let i = part.placeStart[place]; i < part.placeStart[place + 1]; i++) all.push(part.placeFrames[i]);
    }
    if (withPlumbing) return all;
    const shown = all.filter((frame) => !(part.flags[frame] & HIDDEN));
    const hasCode = shown.some((frame) => !(part.flags[frame] & MARK)), only = hasCode ? -1 : this.onlyFrame(part, all);
    return only < 0 ? shown : [only, ...shown];
  }

  /** The first frame of code that is shown; `isShown` false: it stands for a stack of plumbing. */
  innermost(stack: number, withPlumbing: boolean): { frame: number; isShown: boolean } {
    const part = this.parts[this.partOf[stack]], left = withPlumbing ? MARK : MARK | HIDDEN;
    for (let node = part.stackNode[stack - part.firstStack]; node > 0; node = part.nodeParent[node]) {
      const place = part.nodePlace[node];
      for (let i = part.placeStart[place]; i < part.placeStart[place + 1]; i++)
        if (!(part.flags[part.placeFrames[i]] & left)) return { frame: part.placeFrames[i], isShown: true };
    }
    return { frame: this.framesOf(stack, withPlumbing).find((frame) => !(part.flags[frame] & MARK)) ?? -1, isShown: false };
  }

  /** What stands for a stack of nothing but plumbing: its first frame that is no allocator; -1: no code at all. */
  private onlyFrame(part: Part, frames: number[]): number {
    const code = frames.filter((frame) => !(part.flags[frame] & MARK));
    return code.find((frame) => !(part.flags[frame] & ALLOCATOR)) ?? code[code.length - 1] ?? -1;
  }

  private addPart(part: Part, tree: Tree, leaf: Int32Array, withPlumbing: boolean): void {
    const nodeOf = new Int32Array(part.nodeParent.length);
    const hasCode = new Uint8Array(part.nodeParent.length);
    for (let node = 1; node < nodeOf.length; node++) {
      let at = nodeOf[part.nodeParent[node]];
      hasCode[node] = hasCode[part.nodeParent[node]];
      const place = part.nodePlace[node];
      for (let i = part.placeStart[place + 1] - 1; i >= part.placeStart[place]; i--) {
        const frame = part.placeFrames[i];
        if (!withPlumbing && part.flags[frame] & HIDDEN) continue;
        at = tree.child(at, part.fn[frame]);
        if (!(part.flags[frame] & MARK)) hasCode[node] = 1;
      }
      nodeOf[node] = at;
    }
    const none = this.functionOf(NOT_RECORDED, "");
    for (let i = 0; i < part.stackNode.length; i++) {
      const node = part.stackNode[i];
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
  tree(withPlumbing: boolean): { tree: Tree; leaf: Int32Array } {
    let found = this.trees.get(withPlumbing);
    if (!found) {
      found = { tree: new Tree(), leaf: new Int32Array(this.stackCount) };
      for (const part of this.parts) this.addPart(part, found.tree, found.leaf, withPlumbing);
      this.trees.set(withPlumbing, found);
    }
    return found;
  }

  moduleName(fn: number): string {
    return fn < 0 ? "" : baseName(this.modules.list[this.fnModule[fn]]);
  }

  /** The name, without its library where the function before it is of the same: "+0x1234". */
  shortName(fn: number, before: number): string {
    const name = this.fnName[fn], plus = name.lastIndexOf("+0x");
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
      const name = `${id}_interval`, of = { "peak-blocks": "peak", "exit-blocks": "exit", calls: "allocated" }[id] ?? id;
      found = this.parts.some((part) => part.profile.numbers.has("stack." + name)) ? [this.joined(name).map((half) => half * half), this.joined(of + "_samples")] : null;
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
