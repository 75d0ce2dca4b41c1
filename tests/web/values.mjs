// SPDX-License-Identifier: Apache-2.0
// What the page works out, without a browser: node values.mjs SOURCES MODULES. Prints FAIL lines, ends with 1 then.
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , sources, modules] = process.argv;
const { buildSync } = createRequire(modules + "/")("esbuild");
let failures = 0;

function equal(what, got, wanted) {
  if (JSON.stringify(got) === JSON.stringify(wanted)) return;
  failures++;
  console.log(`FAIL: ${what}: ${JSON.stringify(got)}, should be ${JSON.stringify(wanted)}`);
}

async function load(name) {
  const built = buildSync({ entryPoints: [join(sources, name)], bundle: true, write: false, format: "esm" });
  return import("data:text/javascript;base64," + Buffer.from(built.outputFiles[0].text).toString("base64"));
}

/** The highest and lowest rate, and how much came in all. */
function rateOf(readRate, seconds, notes) {
  const point_ns = 1e8,
    index = [],
    allocated = [];
  notes.forEach(([at], i) => index.push(at - (i ? notes[i - 1][0] : 0)));
  notes.forEach(([, bytes]) => allocated.push(bytes));
  const numbers = new Map([
    ["point.index", Float64Array.from(index)],
    ["point.allocated", Float64Array.from(allocated)],
  ]);
  const { values } = readRate({ numbers, facts: { point_ns, process: { duration_ns: seconds * 1e9 } } }, "allocated");
  const width = seconds / values.length;
  return [Math.min(...values), Math.max(...values), values.reduce((sum, one) => sum + one * width, 0)].map((one) =>
    Math.round(one),
  );
}

const { readRate, readSeries } = await load("series.ts");
// 10 MB a second throughout: a note each tenth of a second, or each second, is the same rate all the time
const steady = Array.from({ length: 40 }, (_, i) => [i, (i + 1) * 1e6]);
equal("rate of notes without a gap", rateOf(readRate, 4, steady), [1e7, 1e7, 4e7]);
equal(
  "rate of notes with gaps",
  rateOf(
    readRate,
    4,
    steady.filter(([at]) => at % 10 === 9),
  ),
  [1e7, 1e7, 4e7],
);
equal("rate of one note at the end", rateOf(readRate, 4, steady.slice(-1)), [1e7, 1e7, 4e7]);
equal(
  "rate of a burst in one tenth",
  rateOf(readRate, 4, [
    [9, 0],
    [10, 4e6],
  ]),
  [0, 4e7, 4e6],
);

// two blocks, a free of one in the second interval, and silence up to the end: a step, not a slope
const stepped = readSeries(
  {
    numbers: new Map([
      ["point.index", Float64Array.from([0, 1])],
      ["point.high", Float64Array.from([200, 200])],
      ["point.last", Float64Array.from([200, 100])],
    ]),
    facts: { point_ns: 1e9, peak: { bytes: 200 }, process: { duration_ns: 10e9 }, rss: {} },
  },
  null,
);
const heldAt = (second) => stepped.live[stepped.seconds.findLastIndex((at) => at <= second)];
equal("held before and after the free, and long after", [1.5, 2, 5, 10].map(heldAt), [200, 100, 100, 100]);

// as the tool prints them (tests/unit/tool/base/units_test.c)
const { size, percent, duration } = await load("units.ts");
const sizes = [
  [327680000, "312 MiB"],
  [328728576, "314 MiB"],
  [1280, "1.2 KiB"],
  [1792, "1.8 KiB"],
  [-1280, "-1.2 KiB"],
  [0, "0 B"],
  [1023, "1023 B"],
  [102348, "99.9 KiB"],
];
for (const [bytes, wanted] of sizes) equal(`size of ${bytes}`, size(bytes), wanted);
equal("an eighth", percent(1, 8), "12 %");
equal("a time in the middle", duration(1.125e9), "1.12 s");

// Stacks of main, by place: main 0; fill, line 7, by two calls 1 and 2; an internal frame 3; fill, line 8, 4.
const pageOf = (process) => ({
  facts: { role: "process", process, threads: [], executable: "/bin/x", program: "x" },
  texts: ["main", "fill", "inner", "x.c", "/bin/x"],
  numbers: new Map(
    Object.entries({
      "frame.function": [1, 2, 2, 3, 2],
      "frame.file": [4, 4, 4, 4, 4],
      "frame.line": [20, 7, 7, 1, 8],
      "frame.module": [5, 5, 5, 5, 5],
      "frame.flags": [0, 0, 0, 2, 0],
      "frame.offset": [0, 0, 0, 0, 0],
      "place.count": [1, 1, 1, 1, 1],
      "place.frames": [0, 1, 2, 3, 4],
      // nodes 1: main; 2, 3: fill; 4: the internal frame in 3; 5: fill, line 8
      "node.back": [1, 1, 2, 1, 4],
      "node.place": [0, 1, 2, 3, 4],
      "stack.node": [2, 2, 1],
      "stack.peak_bytes": [10, 20, 40],
      "stack.peak_blocks": [1, 2, 4],
    }).map(([name, values]) => [name, Float64Array.from(values)]),
  ),
  shapes: [],
  findings: [],
  heaps: [],
  contexts: [],
  snapshots: [],
  held: [],
  heldBySlot: [],
  heapShapes: null,
  heldByHeaps: [],
  sources: {},
});
const { Model } = await load("model.ts"),
  { View } = await load("view.ts"),
  { initial } = await load("state.ts");
const model = new Model({ run: null, profiles: [pageOf({ pid: 1 }), pageOf({ pid: 2 })] });
const rowsOf = (state) => {
  const view = new View(model, { ...initial, ...state }, null),
    values = view.ofRows(view.measure.values);
  return [...view.rows.keys()].filter((row) => view.rows[row]).map((row) => [row, values[row], view.alikeTo(row)]);
};
equal("rows that read the same", rowsOf({}), [
  [0, 30, [0, 1]],
  [2, 40, [2]],
]);
equal("the same with internal frames", rowsOf({ internal: true }), [
  [0, 10, [0]],
  [1, 20, [1]],
  [2, 40, [2]],
]);
equal("of two processes together", rowsOf({ process: "all" }), [
  [0, 60, [0, 1, 3, 4]],
  [2, 80, [2, 5]],
]);
equal("a row alone", rowsOf({ focus: ["stack:1"] }), [[0, 30, [0, 1]]]);
process.exit(failures ? 1 : 0);
