// SPDX-License-Identifier: Apache-2.0
// Calls a native function that allocates, in stacks of many kinds, and tells each stack as V8's own
// interface has it at that moment: node calls.js LIBRARY TOLD CALLS
"use strict";
const fs = require("fs");
const zlib = require("zlib");
const [library, toldPath, callsText] = process.argv.slice(2);
const native = { exports: {} };
process.dlopen(native, library);
const { allocate, back } = native.exports;
const told = new Map();
let calls = 0;

Error.stackTraceLimit = 200;
Error.prepareStackTrace = (_, sites) =>
  sites
    .filter((site) => !site.isAsync() && site.getFileName())
    .map((site) => `${site.getFunctionName() ?? "<anonymous>"}:${site.getFileName()}:${site.getLineNumber()}`)
    .join(" ");

function tell(holder) {
  Error.captureStackTrace(holder, tell);
  told.set(holder.stack, (told.get(holder.stack) ?? 0) + 1);
  calls++;
}

function leaf() {
  const holder = {};
  tell(holder), allocate();
}

class Shape {
  constructor(depth) {
    this.depth = depth;
    if (depth >= 0) step(depth - 1, 7);
  }
  area(depth) {
    step(depth - 1, 3);
  }
  get size() {
    leaf();
    return 1;
  }
  static make(depth) {
    return new Shape(depth - 1);
  }
  #hidden(depth) {
    step(depth, 5);
  }
  reveal(depth) {
    this.#hidden(depth - 1);
  }
}

const shape = new Shape(-1);
const arrow = (depth, seed) => step(depth - 1, seed);
const table = { method: (depth) => step(depth - 1, 11), "two words"(depth) { step(depth - 1, 12); } };

function* generator(depth) {
  yield step(depth - 1, 2);
  leaf();
}

// Small enough to be inlined, one in another.
function small(depth) {
  smaller(depth);
}
function smaller(depth) {
  if (depth > 0) step(depth - 1, 8);
  else leaf();
}

const made = new Function("step", "depth", "\n  return step(depth - 1, 9);");
const evaluated = eval("(function evaluated(depth) {\n step(depth - 1, 10); })");

function step(depth, seed) {
  if (depth <= 0) return leaf();
  switch (seed % 14) {
    case 0:
      return arrow(depth, seed + 5);
    case 1:
      return [depth - 1].forEach((next) => step(next, seed + 3));
    case 2:
      return shape.area(depth);
    case 3:
      for (const _ of generator(depth));
      return;
    case 4:
      return void new Shape(depth);
    case 5:
      return back(() => step(depth - 1, seed + 4));
    case 6:
      return void [2, 1].sort((a, b) => (leaf(), a - b));
    case 7:
      return small(depth);
    case 8:
      return void JSON.parse("[1]", (key, value) => (key === "0" && step(depth - 1, seed + 6), value));
    case 9:
      return made(step, depth);
    case 10:
      return evaluated(depth);
    case 11:
      return void (table.method(depth), table["two words"](depth - 2));
    case 12:
      return void (shape.size, Shape.make(depth));
    default:
      try {
        shape.reveal(depth);
        throw new TypeError("caught");
      } catch {
        return leaf();
      }
  }
}

// A loop that is compiled while it runs.
function loop(count) {
  for (let i = 0; i < count; i++) {
    small(i % 3);
    if (i % 5 === 0) leaf();
  }
}

async function later() {
  await null;
  step(4, 0);
  await new Promise((resolve) => setImmediate(resolve));
  leaf();
}

async function main() {
  const wanted = Number(callsText);
  for (let seed = 0; calls < wanted; seed++) {
    step(seed % 9, seed);
    if (seed % 64 === 0) loop(100);
    if (seed % 256 === 0) await later();
    if (seed % 1024 === 0) global.gc?.();
  }
  zlib.deflateSync(Buffer.alloc(1000));
  fs.writeFileSync(toldPath, [...told].map(([stack, count]) => `${count} ${stack}\n`).join(""));
}

main();
