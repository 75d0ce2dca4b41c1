// SPDX-License-Identifier: Apache-2.0
// The profiles of a page with common numbers: functions, lines, files and modules are numbered once for
// all of them, and stacks stand in one row.

import type { Page, Profile } from "./data";
import { readHistory, type History } from "./history";
import { baseName } from "./units";

// Flags of a frame.
export const INLINED = 1,
  HIDDEN = 2,
  ALLOCATOR = 4,
  MARK = 8,
  INTERPRETER = 16,
  PYTHON = 32;

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

export class NumberedParts {
  readonly functions = new Numbering(); // "name\0module": the same name in two libraries is two
  readonly modules = new Numbering();
  readonly files = new Numbering();
  readonly lines = new Numbering();
  readonly fnName: string[] = [];
  readonly fnModule: number[] = [];
  readonly lineFile: number[] = [];
  readonly lineNumber: number[] = [];
  readonly parts: Part[] = [];
  hasCalls = true;
  hasBlocks = true;
  readonly stackCount: number;
  readonly isDiff: boolean;
  readonly hasSnapshotValues: boolean;
  private renamed = new Map<string, string>(); // files of the earlier side as the later one has them

  constructor(readonly page: Page) {
    this.isDiff = page.profiles.some((profile) => profile.facts.role === "after");
    if (this.isDiff) this.findRenamed(page.profiles);
    let stacks = 0;
    for (const profile of page.profiles) {
      const part = this.readPart(profile, stacks);
      stacks += part.stackNode.length;
      this.parts.push(part);
    }
    this.stackCount = stacks;
    this.hasCalls = this.parts.every((part) => part.profile.facts.has_calls);
    this.hasBlocks = this.parts.every((part) => part.profile.facts.has_blocks);
    this.hasSnapshotValues = this.parts.some((part) => Boolean(part.profile.facts.at_text));
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
  protected functionOf(name: string, module: string): number {
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

  /** A column of the stacks of all parts, one after the other. */
  joined(name: string): Float64Array {
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
}
