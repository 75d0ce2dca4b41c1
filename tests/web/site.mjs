// SPDX-License-Identifier: Apache-2.0
// Drives the documentation's site in Chromium from file://, as tests/e2e/site.py tells it: node site.mjs PLAN.
// Prints FAIL lines, ends with 1 then.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { chromium } = createRequire(plan.modules + "/")("playwright-core");
const AMONG_FIRST = 3;
let failures = 0;

function check(isRight, message) {
  if (isRight) return;
  failures++;
  console.log("FAIL:", message);
}

const browser = await chromium.launch({ executablePath: plan.chromium, args: ["--no-sandbox", "--disable-gpu"] });

/** Opens a page; what it complains about, and what it asks of anything but files, is a failure. */
async function open(name, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, offline: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(200000);
  page.on("console", (message) => check(false, `${name}: console: ${message.text()}`));
  page.on("pageerror", (error) => check(false, `${name}: ${error.stack}`));
  page.on("request", (request) => check(request.url().startsWith("file:"), `${name}: asks for ${request.url()}`));
  await page.goto(`file://${plan.site}/${name}`);
  return page;
}

async function search(page, words) {
  await page.fill("#search input", "");
  await page.keyboard.press("Escape");
  await page.fill("#search input", words);
  await page.waitForSelector("#found:not([hidden]) li");
  return page.$$eval("#found a", (links) => links.map((link) => link.href));
}

/** What somebody types leads to the page that answers. */
async function questions() {
  const page = await open("docs/howto/leaks.html");
  for (const [words, wanted] of Object.entries(plan.questions)) {
    const first = (await search(page, words)).slice(0, AMONG_FIRST);
    check(
      first.some((url) => url.includes(wanted)),
      `search for "${words}": ${first.join(" ")}, and not ${wanted}`,
    );
  }
  await search(page, "zqxjkv");
  check((await page.textContent("#found")) === "nothing found", "search for nonsense");
  await page.context().close();
}

async function keys() {
  const page = await open("docs/tutorial.html");
  await page.keyboard.press("/");
  await page.keyboard.type("bisect");
  await page.waitForSelector("#found:not([hidden]) li");
  check((await page.locator("#found mark").count()) > 0, "no word is marked in what was found");
  await page.keyboard.press("ArrowDown");
  const wanted = await page.getAttribute("#found li:nth-child(2) a", "href");
  check((await page.getAttribute("#found li:nth-child(2)", "aria-selected")) === "true", "the arrow chooses");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.href.endsWith(wanted.replace(/^(\.\.\/)+/, "")));
  await page.keyboard.press("/");
  await page.keyboard.type("leak");
  await page.waitForSelector("#found:not([hidden]) li");
  await page.keyboard.press("Escape");
  check(await page.isHidden("#found"), "Escape closes what was found");
  await page.context().close();
}

const luminance = (color) => {
  const parts = color
    .match(/[\d.]+/g)
    .slice(0, 3)
    .map((part) => {
      const value = part / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};

/** Both colours of a page can be read (WCAG AA), and the switch changes them for all pages. */
async function colours() {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open("docs/howto/leaks.html", { colorScheme });
    const styles = () =>
      page.evaluate(() =>
        ["main p", "main a", "main pre", "nav h2", "nav [aria-current]"].map((name) => {
          let element = document.querySelector(name);
          const text = getComputedStyle(element).color;
          while (/rgba\(0, 0, 0, 0\)/.test(getComputedStyle(element).backgroundColor)) element = element.parentElement;
          return [name, text, getComputedStyle(element).backgroundColor];
        }),
      );
    for (const [name, text, ground] of await styles()) {
      const [high, low] = [luminance(text), luminance(ground)].sort((a, b) => b - a);
      const ratio = (high + 0.05) / (low + 0.05);
      check(ratio >= 4.5, `${colorScheme}: ${name} has a contrast of ${ratio.toFixed(2)}`);
    }
    const before = JSON.stringify(await styles());
    await page.click("#theme");
    const after = JSON.stringify(await styles());
    check(before !== after, `${colorScheme}: the switch changes nothing`);
    await page.goto(`file://${plan.site}/docs/howto/peak.html`);
    check(JSON.stringify((await styles())[0]) === JSON.stringify(JSON.parse(after)[0]), "the colours are kept");
    await page.context().close();
  }
}

/** No page is wider than a telephone; its menu opens. */
async function narrow() {
  const page = await open("index.html", { viewport: { width: 360, height: 740 } });
  for (const name of plan.pages) {
    await page.goto(`file://${plan.site}/${name}`);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    check(width <= 360, `${name} is ${width} wide at 360`);
  }
  check(await page.isHidden("nav"), "narrow: the menu is folded");
  await page.click("#menu-button");
  check(await page.isVisible("nav a"), "narrow: the menu opens");
  await page.context().close();
}

async function without_scripts() {
  const page = await open("docs/howto/leaks.html", { javaScriptEnabled: false, viewport: { width: 360, height: 740 } });
  check(await page.isVisible("nav a"), "without scripts: the pages are listed");
  check(await page.isHidden("#search"), "without scripts: no box that does nothing");
  await page.context().close();
}

for (const part of [questions, keys, colours, narrow, without_scripts]) {
  try {
    await part();
  } catch (error) {
    check(false, `${part.name}: ${error.stack}`);
  }
}
await browser.close();
process.exit(failures ? 1 : 0);
