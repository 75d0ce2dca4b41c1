// SPDX-License-Identifier: Apache-2.0
// Makes web/report.html, the page without its data: one script and one style sheet, bundled and
// minified, named by their hashes in the content security policy. `node build.mjs FILE` writes
// elsewhere, for the test that compares.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";
import { lean } from "./lean.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const CODE_BUDGET_BYTES = 195_000;

const bundled = await build({
  entryPoints: [join(here, "src/main.ts")],
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: ["chrome100", "firefox113", "safari16.4"],
  charset: "utf8",
  legalComments: "inline",
  plugins: [lean],
});
const style = await transform(
  readFileSync(join(here, "node_modules/uplot/dist/uPlot.min.css"), "utf8") +
    readFileSync(join(here, "src/style.css"), "utf8"),
  { loader: "css", minify: true, target: ["chrome111", "firefox113", "safari16.4"] },
);

// A closing tag within a string would end the script.
const script = bundled.outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
const sheet = style.code.trim();
for (const text of [script, sheet])
  if (/\{\{(data|title|policy|live)\}\}|\0/.test(text)) throw new Error("the code contains a mark of the template");

const hash = (text) => "sha256-" + createHash("sha256").update(text).digest("base64");
const parts = { script, style: sheet, "script-hash": hash(script), "style-hash": hash(sheet) };
const page = readFileSync(join(here, "src/page.html"), "utf8").replace(/<<([a-z-]+)>>/g, (_, name) => parts[name]);

const bytes = Buffer.byteLength(page);
if (bytes > CODE_BUDGET_BYTES)
  throw new Error(`the page has ${bytes} bytes before its data, more than ${CODE_BUDGET_BYTES}`);
writeFileSync(process.argv[2] ?? join(here, "report.html"), page);
console.log(`${bytes} bytes`);
