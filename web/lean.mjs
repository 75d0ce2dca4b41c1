// SPDX-License-Identifier: Apache-2.0
// uPlot without what the page has no use for: calendar dates (its axis counts from the start of a
// program), logarithmic scales, bars, splines, bands, points and joined tables are a third of it.
// Only whole functions at the top level are taken out, by name; a name that is missing is an error,
// so that another version of uPlot cannot be cut wrongly without anyone's notice.
import { readFileSync } from "node:fs";

const EMPTY = {
  dates: ["fmtDate", "tzDate", "timeAxisStamps", "timeAxisVals", "timeAxisVal", "timeSeriesStamp", "timeSeriesVal"],
  scales: ["rangeLog", "rangeAsinh", "logAxisSplits", "asinhAxisSplits", "log10AxisValsFilt", "log2AxisValsFilt"],
  shapes: ["bars", "splineInterp", "_monotoneCubic", "points", "clipBandLine"],
  tables: ["join"],
};
const OTHERWISE = { genTimeStuffs: "return [[], [], noop];", bandFillClipDirs: "return [0, 0];" };

export const lean = {
  name: "lean",
  setup(build) {
    build.onLoad({ filter: /uPlot\.esm\.js$/ }, ({ path }) => {
      let text = readFileSync(path, "utf8");
      const bodies = {
        ...Object.fromEntries(
          Object.values(EMPTY)
            .flat()
            .map((name) => [name, ""]),
        ),
        ...OTHERWISE,
      };
      for (const [name, body] of Object.entries(bodies)) {
        const pattern = new RegExp(`^function ${name}\\(.*\\) \\{\\n[^]*?\\n\\}\\n`, "m");
        if (!pattern.test(text)) throw new Error(`uPlot has no function ${name} any more: look at lean.mjs`);
        text = text.replace(pattern, `function ${name}() { ${body} }\n`);
      }
      return { contents: text, loader: "js" };
    });
  },
};
