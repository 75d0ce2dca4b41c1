// SPDX-License-Identifier: Apache-2.0
// Drives the extension in code-server, in a browser: node real.mjs PLAN. Prints a line of JSON: how long it took from a
// key to a page that is ready, what it showed, and which requests went elsewhere.
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";

const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { chromium } = createRequire(plan.modules + "/")("playwright-core");
const PATIENCE_MS = 60_000;

function startServer() {
  const words = [
    "--auth",
    "none",
    "--bind-addr",
    "127.0.0.1:0",
    "--user-data-dir",
    plan.data,
    "--extensions-dir",
    plan.extensions,
  ];
  const off = [
    "--disable-telemetry",
    "--disable-update-check",
    "--disable-workspace-trust",
    "--disable-getting-started-override",
  ];
  const server = spawn("node", [plan.server, ...words, ...off], { stdio: ["ignore", "pipe", "pipe"] });
  return new Promise((resolve, reject) => {
    let told = "";
    const hear = (text) => {
      told += text;
      const address = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(told);
      if (address) resolve([server, address[1]]);
    };
    server.stdout.on("data", hear);
    server.stderr.on("data", hear);
    server.on("exit", () => reject(new Error(told)));
  });
}

/** The frame of the page of `cairn open`, within the two of a webview. */
async function pageFrame(page, title) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end;) {
    for (const frame of page.frames().reverse())
      if (
        await frame
          .evaluate((text) => document.body?.dataset.ready === "1" && document.title.includes(text), title)
          .catch(() => false)
      )
        return frame;
    await page.waitForTimeout(50);
  }
  throw new Error(`no page of ${title}`);
}

/** Opens a file of the folder; milliseconds from the click on. */
async function open(page, name) {
  const row = page.locator(".explorer-folders-view .monaco-list-row", { has: page.getByText(name, { exact: true }) });
  await row.waitFor();
  const start = Date.now();
  await row.dblclick();
  await page.locator(".tab.active", { hasText: name }).waitFor();
  return start;
}

/** Processor time of the editor, the browser and what they started: what the time would be on one quiet processor. */
function processorMs() {
  const TICK_MS = 10,
    rows = readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => {
        try {
          const fields = readFileSync(`/proc/${name}/stat`, "utf8")
            .replace(/^.*\) /s, "")
            .split(" ")
            .map(Number);
          return [{ pid: Number(name), parent: fields[1], ticks: fields[11] + fields[12] + fields[13] + fields[14] }];
        } catch {
          return []; // it has just ended
        }
      });
  const ours = new Set([process.pid]);
  for (let before = -1; before !== ours.size;) {
    before = ours.size;
    for (const { pid, parent } of rows) if (ours.has(parent)) ours.add(pid);
  }
  return TICK_MS * rows.reduce((sum, { pid, ticks }) => sum + (ours.has(pid) ? ticks : 0), 0);
}

async function openPage(page, name) {
  const start = await open(page, name);
  const frame = await pageFrame(page, name.replace(/\.cairn$/, ""));
  return [Date.now() - start, frame];
}

/** Opens a file until the editor has read which extensions there are: before, it takes a recording for a text. */
async function openFirst(page, name) {
  for (;;) {
    await open(page, name);
    const isText = page.locator(".monaco-editor-pane-placeholder").waitFor();
    isText.catch(() => false); // the one that loses the race
    const isPage = pageFrame(page, name.replace(/\.cairn$/, "")).then(() => true);
    isPage.catch(() => false);
    if (await Promise.race([isText, isPage])) return;
    await page.locator(".tab.active .codicon-close").click();
    await page.locator(".monaco-editor-pane-placeholder").waitFor({ state: "detached" });
  }
}

const besideLines = () =>
  [...document.querySelectorAll(".view-line span")]
    .map((element) => getComputedStyle(element, "::after").content)
    .filter((text) => text && text !== "none")
    .map((text) => text.slice(1, -1));

async function drive(page, told) {
  await page.locator(".monaco-workbench").waitFor();
  await page.locator(".explorer-folders-view .monaco-list-row").first().waitFor();
  await openFirst(page, "held.cairn");
  const before = processorMs();
  const [ms, frame] = await openPage(page, plan.large);
  told.firstPictureMs = ms;
  told.firstPictureProcessorMs = processorMs() - before;
  told.screens = await frame.locator("nav button, nav a").allInnerTexts();
  const [, small] = await openPage(page, "held.cairn");
  await small.locator("#tab-table").click();
  await small.locator("[role=row], tbody tr").nth(1).click();
  const link = small.locator("button.place").first();
  told.place = await link.innerText();
  await link.click();
  await page.locator(".monaco-editor .view-line").first().waitFor();
  await page.waitForFunction(
    () =>
      document.querySelector(".monaco-editor .view-line") &&
      document.querySelector(".editor-status-selection, [id='status.editor.selection']"),
  );
  told.cursor = await page.locator("[id='status.editor.selection']").innerText();
  told.status = await page.locator(".statusbar-item", { hasText: "cairn:" }).innerText();
  await page.waitForFunction(`(${besideLines})().length > 0`);
  told.lines = await page.evaluate(besideLines);
  await page.locator("[id='status.problems'] a").click();
  await page.locator(".markers-panel .monaco-list-row").first().waitFor();
  told.problems = await page.locator(".markers-panel .monaco-list-row").allInnerTexts();
  await open(page, "tests.cc");
  await page.locator(".codelens-decoration a", { hasText: "record this test" }).first().click();
  await pageFrame(page, "Parser.Empty");
  told.recorded = true;
  if (plan.picture) await page.screenshot({ path: plan.picture });
}

const [server, address] = await startServer();
const browser = await chromium.launch({ executablePath: plan.browser, args: ["--no-sandbox"] });
const told = { elsewhere: [] };
try {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  page.setDefaultTimeout(PATIENCE_MS);
  await page.context().route(/.*/, (route) => {
    const url = route.request().url();
    if (/^(https?|wss?):/.test(url) && !url.startsWith(address)) {
      told.elsewhere.push(url);
      return route.abort();
    }
    return route.continue();
  });
  await page.goto(`${address}/?folder=${encodeURIComponent(plan.folder)}`);
  await drive(page, told).catch(async (problem) => {
    told.problem = String(problem);
    await page.screenshot({ path: plan.failed }).catch(() => {});
  });
} finally {
  await browser.close();
  server.kill("SIGTERM");
}
console.log(JSON.stringify(told));
