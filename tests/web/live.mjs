// SPDX-License-Identifier: Apache-2.0
// Drives the live page of `cairn serve` in Chromium, as tests/e2e/serve_page.py tells it: node live.mjs PLAN. It does
// what the program is to do by lines to that test ("do early 1000"), which answers with a line each. Prints FAIL
// lines, ends with 1 then.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { chromium } = createRequire(plan.modules + "/")("playwright-core");
const PATIENCE_MS = 200000,
  STATES = 30,
  GROWTH_KB = 3000; // of the tab, over so many states; each has some hundred
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let failures = 0;

function check(isRight, message) {
  if (isRight) return;
  failures++;
  console.log("FAIL:", message);
}

async function ask(line) {
  console.log(line);
  return (await answers.next()).value;
}

const browser = await chromium.launch({ executablePath: plan.chromium, args: ["--no-sandbox", "--disable-gpu"] });

async function open(path) {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("console", (message) => check(page.isLosing, `console: ${message.text()}`));
  page.on("pageerror", (error) => check(false, error.stack));
  page.on("request", (request) =>
    check(request.url().startsWith(plan.url) || request.url().startsWith("data:"), `asks for ${request.url()}`),
  );
  page.on("response", (response) => (page.states += response.url().endsWith("live.data")));
  page.states = 0;
  await page.goto(plan.url + path);
  await page.waitForFunction(() => document.body.dataset.ready === "1");
  return page;
}

const text = (page, selector) => page.locator(selector).innerText();
const shows = (page, selector, words) =>
  page
    .waitForFunction(([at, what]) => document.querySelector(at)?.innerText.includes(what), [selector, words])
    .catch(async () => check(false, `${selector} does not come to show "${words}": ${await text(page, selector)}`));

async function follow() {
  const page = await open("/#view=table&by=exit");
  await shows(page, ".live-now", "live · ");
  await shows(page, ".t-body", "early");
  await page.locator(".t-row", { hasText: "early" }).click();
  await ask("do late 3000000");
  await shows(page, ".t-body", "late");
  await shows(page, ".t-row", "late"); // it is the largest now, and above
  check((await text(page, ".t-row.current")).includes("early"), "the selection moved to another row");
  await page.locator(".t-row", { hasText: "early" }).dblclick();
  await shows(page, ".chips", "only stack");
  await ask("do early 1048576");
  await shows(page, ".t-body", "1.1 MiB");
  check(!(await text(page, ".t-body")).includes("late"), "the chosen stack became another one");
  await page.close();
}

async function zoom() {
  const page = await open("/#view=flame&by=exit");
  await page.locator(".pictures canvas").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await shows(page, ".side h2", "main");
  const states = page.states;
  await ask("do early 5000000");
  await page.waitForFunction(() => document.querySelector(".live-now").innerText.includes("MiB"));
  while (page.states < states + 2) await page.waitForTimeout(50);
  check((await text(page, ".side h2")).includes("main") && page.url().includes("zoom="), "the zoom is lost");
  await page.close();
}

async function pauseAndCompare() {
  const page = await open("/");
  await page.click("#pause");
  await shows(page, ".live-now", "paused");
  const before = await text(page, ".cards");
  await ask("do late 1048576");
  check((await text(page, ".cards")) === before, "a paused page went on");
  await page.click("#pause");
  await shows(page, ".live-now", "live");
  await page.waitForFunction((old) => document.querySelector(".cards").innerText !== old, before);
  await page.click("#compare");
  await shows(page, ".cards", "the same");
  await ask("do late 2097152");
  await shows(page, ".cards", "+2.0 MiB");
  await shows(page, ".findings", "+2.0 MiB: a stack grew");
  await page.screenshot({ path: "live.png" });
  await page.click("#compare");
  await page.waitForFunction(() => !document.querySelector(".cards").innerText.includes("+2.0"));
  await page.close();
}

/** Time goes as fast as this page takes states. */
async function stay() {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.clock.install();
  let states = 0;
  page.on("response", (response) => (states += response.url().endsWith("live.data")));
  await page.goto(plan.url + "/");
  await page.waitForFunction(() => document.body.dataset.ready === "1");
  const session = await page.context().newCDPSession(page);
  const take = async (count) => {
    for (const wanted = states + count; states < wanted;) {
      await page.clock.runFor(10000);
      await page.waitForTimeout(20);
    }
    await session.send("HeapProfiler.collectGarbage");
    return (await session.send("Runtime.getHeapUsage")).usedSize / 1000;
  };
  const first = await take(5);
  await page.click("#compare");
  const last = await take(STATES);
  check(last - first < GROWTH_KB, `the tab grew from ${first} kB to ${last} kB in ${STATES} states`);
  await page.close();
}

async function end() {
  const page = await open("/");
  await shows(page, ".live-now", "live");
  await ask("end");
  await shows(page, ".live-now", "ended");
  await shows(page, ".trust", "ended");
  check(!(await page.locator("#pause").count()), "what has ended can be paused");
  page.isLosing = true;
  await ask("leave");
  await page.close();
}

for (const part of [follow, zoom, pauseAndCompare, stay, end]) await part();
await browser.close();
process.exit(failures ? 1 : 0);
