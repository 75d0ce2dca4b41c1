// SPDX-License-Identifier: Apache-2.0
// The live page of `cairn serve` in Chromium for some minutes, as bench/live.py asks: node bench/live.mjs URL CHROMIUM
// DIRECTORY MINUTES, where npm has installed playwright-core. Each minute one line: states taken, heap of the tab after
// a collection, and pictures a second while the flame graph zooms in and out. Ends with 1 after an error in the console.
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [url, executablePath, modules, minutes] = process.argv.slice(2);
const { chromium } = createRequire(resolve(modules) + "/")("playwright-core");
const MINUTE_MS = 60000,
  ZOOM_MS = 5000;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
const session = await page.context().newCDPSession(page);
let states = 0,
  errors = 0;
const note = (text) => (errors++, console.log(`console: ${text}`));
page.on("console", (message) => note(message.text()));
page.on("pageerror", (error) => note(error.stack));
page.on("response", (response) => (states += response.url().endsWith("live.data")));
await session.send("Performance.enable", { timeDomain: "threadTicks" });

async function processorMs() {
  const { metrics } = await session.send("Performance.getMetrics");
  return 1000 * metrics.find((one) => one.name === "ThreadTime").value;
}

async function heapKb() {
  await session.send("HeapProfiler.collectGarbage");
  return (await session.send("Runtime.getHeapUsage")).usedSize / 1000;
}

/** Pictures that were drawn while keys zoom in and out, their time on the processor, and the longest wait for one. */
async function zoom() {
  await page.locator(".pictures canvas").focus();
  await page.evaluate(() => {
    window.pictures = { count: 0, longest: 0, last: performance.now(), isOver: false };
    const step = (now) => {
      const all = window.pictures;
      all.longest = Math.max(all.longest, now - all.last);
      all.last = now;
      all.count++;
      if (!all.isOver) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
  const spent = await processorMs(),
    start = performance.now();
  while (performance.now() - start < ZOOM_MS)
    for (const key of ["ArrowDown", "Enter", "ArrowDown", "Enter", "Escape"]) await page.keyboard.press(key);
  const elapsed = performance.now() - start,
    all = await page.evaluate(() => ((window.pictures.isOver = true), window.pictures));
  return { second: (1000 * all.count) / elapsed, one: ((await processorMs()) - spent) / all.count, longest: all.longest };
}

await page.goto(url + "/#view=flame&by=exit");
await page.waitForFunction(() => document.body.dataset.ready === "1");
for (let minute = 0; minute <= minutes; minute++) {
  if (minute) await page.waitForTimeout(MINUTE_MS - ZOOM_MS);
  const { second, one, longest } = await zoom(),
    heap = await heapKb();
  console.log(
    `minute ${minute}: ${states} states, ${heap.toFixed(0)} kB, ${second.toFixed(0)} pictures a second, each ` +
      `${one.toFixed(1)} ms of the processor, at most ${longest.toFixed(0)} ms apart`,
  );
}
await browser.close();
console.log(`${errors} errors in the console`);
process.exit(errors ? 1 : 0);
