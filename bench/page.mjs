// SPDX-License-Identifier: Apache-2.0
// Measures a page of `cairn open` in Chromium, without a screen: node bench/page.mjs PAGE CHROMIUM
// DIRECTORY, where npm has installed playwright-core (web/ after npm ci). Prints the first picture,
// and what a frame of the flame graph costs while everything in it moves, as the time from one
// picture to the next and as time of the processor: on a busy machine only the latter means much.
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [file, executablePath, modules] = process.argv.slice(2);
const { chromium } = createRequire(resolve(modules) + "/")("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 }, offline: true })).newPage();
const session = await page.context().newCDPSession(page);
await session.send("Performance.enable", { timeDomain: "threadTicks" });

async function processorMs() {
  const { metrics } = await session.send("Performance.getMetrics");
  return 1000 * metrics.find((one) => one.name === "ThreadTime").value;
}

async function opened() {
  await page.goto("file://" + resolve(file));
  await page.waitForFunction(() => document.body.dataset.ready === "1");
  return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now())))));
}

/** Pictures one after the other, each of which moves all that is drawn: from a share of the height on. */
function drawn([count, share]) {
  return new Promise((done) => {
    const flame = document.querySelector(".flame"), top = (flame.scrollHeight - flame.clientHeight) * share, times = [];
    let last = 0;
    const step = (now) => {
      if (last) times.push(now - last);
      last = now;
      flame.scrollTop = top + (times.length % 40) * 3;
      flame.dispatchEvent(new Event("scroll"));
      if (times.length < count) requestAnimationFrame(step);
      else done(times.sort((a, b) => a - b));
    };
    requestAnimationFrame(step);
  });
}

const before = await processorMs(), first = await opened();
console.log(`first picture: ${first.toFixed(0)} ms after the start, ${((await processorMs()) - before).toFixed(0)} ms of the processor`);
await page.waitForTimeout(1500);
await page.click("#tab-flame");
await page.waitForTimeout(1500);
const FRAMES = 120, SHARES = { "at the outermost frames": 0, "in its middle": 0.5, "at the innermost": 0.9 };
for (const [where, share] of Object.entries(SHARES)) {
  await page.evaluate(drawn, [20, share]);
  const start = await processorMs(), times = await page.evaluate(drawn, [FRAMES, share]), spent = (await processorMs()) - start;
  console.log(`flame graph ${where}: a picture each ${times[FRAMES / 2].toFixed(1)} ms (median of ${FRAMES}), ${(spent / FRAMES).toFixed(1)} ms of the processor`);
}
await browser.close();
