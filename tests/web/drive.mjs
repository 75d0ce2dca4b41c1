// SPDX-License-Identifier: Apache-2.0
// Drives pages of `cairn open` in Chromium, as tests/e2e/open_page.py tells it: node drive.mjs PLAN.
// The plan names playwright's directory, the browser and the pages. Prints FAIL lines, ends with 1 then.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { chromium } = createRequire(plan.modules + "/")("playwright-core");
const PATIENCE_MS = 200000;
let failures = 0;

function check(isRight, message) {
  if (isRight) return;
  failures++;
  console.log("FAIL:", message);
}

function equal(what, got, wanted) {
  check(
    JSON.stringify(got) === JSON.stringify(wanted),
    `${what}: ${JSON.stringify(got)}, should be ${JSON.stringify(wanted)}`,
  );
}

const browser = await chromium.launch({ executablePath: plan.chromium, args: ["--no-sandbox", "--disable-gpu"] });

/** Opens a page; whatever it asks of a network, and whatever it complains about, is a failure. */
async function open(name, hash = "", options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    offline: true,
    reducedMotion: "reduce",
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("console", (message) => check(false, `${name}${hash}: console: ${message.text()}`));
  page.on("pageerror", (error) => check(false, `${name}${hash}: ${error.stack}`));
  page.on("request", (request) =>
    check(request.isNavigationRequest() && request.url().startsWith("file:"), `${name}: asks for ${request.url()}`),
  );
  page.on("dialog", (dialog) => check(false, `${name}: a dialog: ${dialog.message()}`));
  await page.goto("file://" + plan.pages[name] + hash);
  await page.waitForFunction(() => document.body.dataset.ready === "1");
  return page;
}

const text = (page, selector) => page.locator(selector).innerText();
const hash = (page) => page.evaluate(() => decodeURIComponent(location.hash.replaceAll("+", " ")));
const settled = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const rows = (page) => page.locator(".t-row").allInnerTexts();
const measure = (page, value) => page.selectOption("#measure", value);

async function overview() {
  const page = await open("leak"),
    all = await text(page, "main");
  for (const wanted of plan.leak.words) check(all.includes(wanted), `overview: no "${wanted}" in ${all.slice(0, 900)}`);
  check((await page.locator(".uplot canvas").count()) === 1, "overview: no timeline");
  for (const [width, height] of [
    [1440, 900],
    [800, 600],
  ]) {
    await page.setViewportSize({ width, height });
    await settled(page);
    const below = async (selector) => (await page.locator(selector).first().boundingBox()).y;
    check(
      (await below(".stacks li")) < height / 2,
      `overview at ${width}x${height}: what holds most is below the middle`,
    );
    check(
      (await below(".findings li")) < height - 40,
      `overview at ${width}x${height}: no finding on the first screen`,
    );
    check(
      (await below(".timeline")) > (await below(".findings li")),
      `overview at ${width}x${height}: the timeline comes first`,
    );
    check(
      (await page.locator("header").boundingBox()).height < 60,
      `overview at ${width}x${height}: the heading is in two lines`,
    );
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  const links = await page.locator(".findings a").count();
  check(links > 0, "overview: no findings");
  await page.locator(".timeline").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  check(/live heap:?\s*\d/.test(await text(page, ".u-legend")), "timeline: arrows read no value");
  const box = await page.locator(".u-over").boundingBox();
  const atLeft = async () => {
    await page.mouse.move(box.x + 8, box.y + 40);
    await settled(page);
    return text(page, ".u-legend");
  };
  const before = await atLeft();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 4 });
  await page.mouse.up();
  check(before !== (await atLeft()), "timeline: dragging zooms");
  await page.locator(".findings a").first().click();
  check((await page.locator(".overview").count()) === 0, "a finding leads elsewhere");
  await page.goBack();
  await page.locator(".overview").waitFor();
  await page.context().close();
}

/** Clicks the flame graph's frame with a name, found as a pointer finds it; false: it is not drawn. */
async function clickFrame(page, name) {
  const spot = await page.evaluate((wanted) => {
    for (const canvas of document.querySelectorAll(".flame canvas")) {
      const box = canvas.getBoundingClientRect(),
        tip = canvas.parentElement.querySelector(".tip");
      for (let y = box.top + 10; y < Math.min(box.bottom, box.top + 300); y += 20)
        for (let x = box.left + 3; x < box.right; x += 7) {
          canvas.dispatchEvent(new MouseEvent("mousemove", { clientX: x, clientY: y, bubbles: true }));
          if (!tip.hidden && tip.querySelector("strong").textContent === wanted) return { x, y };
        }
      canvas.dispatchEvent(new MouseEvent("mouseleave"));
    }
    return null;
  }, name);
  if (!spot) return false;
  await page.mouse.move(spot.x, spot.y);
  await page.mouse.click(spot.x, spot.y);
  return true;
}

async function flame() {
  const page = await open("leak", "#view=flame&by=exit");
  await settled(page);
  check(
    (await text(page, ".side")).includes("leak_large") && (await text(page, ".side")).includes("malloc(50000)"),
    `flame: nothing selected: ${await text(page, ".side")}`,
  );
  check((await text(page, ".legend")).includes("leak (own code)"), `flame: the legend: ${await text(page, ".legend")}`);
  check(await clickFrame(page, "caller_two"), "flame: caller_two is drawn");
  check((await hash(page)).includes("zoom="), "flame: a click zooms");
  check((await text(page, ".side")).includes("caller_two"), "flame: a click selects");
  const zoomed = await hash(page);
  await page.click("#unzoom");
  check(!(await hash(page)).includes("zoom="), "flame: zoom out");
  await page.goBack();
  equal("flame: back", await hash(page), zoomed);
  await page.goBack();

  await page.fill("#search", "leak_shared");
  await page.waitForFunction(() => document.querySelector(".note").textContent.includes("leak_shared"));
  check(
    (await text(page, ".note")).includes(plan.leak.shared_at_exit),
    `search says what matches: ${await text(page, ".note")}`,
  );
  await measure(page, "calls");
  check(
    (await text(page, ".note")).includes(plan.leak.shared_calls),
    `search after a switch: ${await text(page, ".note")}`,
  );
  await page.press("#search", "Enter");
  await page.keyboard.press("3");
  check((await hash(page)).includes("view=table"), "Enter leaves the search");
  await page.keyboard.press("2");
  await page.fill("#search", "nothing(");
  await page.waitForFunction(() => document.querySelector(".note").textContent.includes("nowhere"));
  await page.fill("#search", "");
  await page.waitForFunction(() => !document.querySelector(".note").textContent);

  await measure(page, "exit");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  check(
    (await text(page, "#keys")).includes("callers and callees"),
    `keys: ? shows them: ${await text(page, "#keys")}`,
  );
  await page.keyboard.press("3");
  check(!(await hash(page)).includes("view=table"), "keys: beside those that are shown none has an effect");
  await page.keyboard.press("Escape");
  equal("keys: Esc closes them", await page.locator("#keys").count(), 0);
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("ArrowDown"); // nothing else on the page has that key
  check((await text(page, "#live")).includes("main,"), `keys: ${await text(page, "#live")}`);
  await page.keyboard.press("ArrowDown");
  check((await text(page, "#live")).includes("leak_large"), `keys: the largest is first: ${await text(page, "#live")}`);
  await page.keyboard.press("ArrowRight");
  const beside = await text(page, "#live");
  check(/caller_two/.test(beside), `keys: beside it: ${beside}`);
  await page.keyboard.press("Enter");
  check((await hash(page)).includes("zoom="), "keys: Enter zooms");
  await page.keyboard.press("c");
  check((await hash(page)).includes("function=caller_two"), "keys: c shows callers and callees");
  equal("callers and callees: two pictures", await page.locator(".flame canvas").count(), 2);
  check(
    (await text(page, ".note")).includes(plan.leak.two_at_exit),
    `callers and callees: ${await text(page, ".note")}`,
  );
  await page.click("#whole");
  await page.click("#inverted");
  await settled(page);
  check(await clickFrame(page, "leak_small"), "inverted: leak_small is outside");
  await page.click("#inverted");
  await page.goto("file://" + plan.pages.leak + "#view=flame&by=exit&focus=function:leak_shared");
  await settled(page);
  check((await text(page, ".chips")).includes(plan.leak.shared_at_exit), `focus: ${await text(page, ".chips")}`);
  check(!(await clickFrame(page, "leak_large")), "focus leaves out the rest");
  check(await clickFrame(page, "leak_shared"), "focus keeps what it is about");
  await page.getByRole("button", { name: "Hide" }).click();
  await settled(page);
  check((await hash(page)).includes("hide=leak_shared"), "hide");
  check(!(await clickFrame(page, "leak_shared")), "what is hidden is gone");
  await page.getByRole("button", { name: "Show everything" }).click();
  equal("show everything", await page.locator(".chips").isVisible(), false);
  await page.selectOption("#colour", "growth");
  check((await text(page, ".legend")).includes("stays"), "colours by what stays");
  await page.context().close();
}

async function table() {
  const page = await open("leak", "#view=table&by=exit");
  const first = await rows(page);
  check(first[0].includes("leak_large") && first[0].includes(plan.leak.large_at_exit), `table: ${first[0]}`);
  await page.locator(".t-body").focus();
  check((await text(page, ".side")).includes("Frames, innermost first"), "table: details of the first row");
  await page.keyboard.press("ArrowDown");
  check((await page.locator("#row-1.current").count()) === 1, "table: arrows walk");
  await page.keyboard.press("Home");
  check((await page.locator(".side .source").first().innerText()).includes("malloc(50000)"), "table: source at hand");
  await page.keyboard.press("Enter");
  check((await hash(page)).includes("focus=stack:"), "table: Enter shows it alone");
  equal("table: one row is left", (await rows(page)).length, 1);
  await page.keyboard.press("2");
  await settled(page);
  check((await page.locator(".flame").count()) > 0, "key 2 is the flame graph");
  check((await clickFrame(page, "leak_large")) && !(await clickFrame(page, "leak_small")), "the selection filters it");
  await page.goto("file://" + plan.pages.leak + "#view=table&by=exit&table=functions");
  await page.locator(".t-head button", { hasText: "Self" }).click();
  const order = await rows(page);
  check(
    order[0].includes("leak_large") && order[1].includes("leak_shared"),
    `functions by themselves: ${order.slice(0, 2)}`,
  );
  await page.locator(".t-head button", { hasText: "Self" }).click();
  check((await rows(page))[0] !== order[0], "sorted the other way");
  equal("aria-sort", await page.locator('[aria-sort="ascending"]').innerText(), "▲ Self");
  await page.fill("#search", "^caller_");
  await page.waitForFunction(() => document.querySelectorAll(".t-row").length === 2);
  for (const kind of ["lines", "files", "modules", "threads"]) {
    await page.fill("#search", "");
    await page.click(`#kind-${kind}`);
    await page.waitForFunction(
      (wanted) => document.querySelector('[role="tab"][aria-selected="true"]').id === wanted,
      `kind-${kind}`,
    );
    await page.waitForFunction(() => document.querySelectorAll(".t-row").length > 0);
  }
  await page.locator("#kind-threads").focus();
  await page.keyboard.press("ArrowLeft");
  equal("tabs by keys", await page.evaluate(() => document.activeElement.id), "kind-modules");
  await page.context().close();
}

/** Details are beside the table, and headings above their columns, on small screens too. */
async function beside() {
  const page = await open("leak", "#view=table&by=exit", { viewport: { width: 800, height: 600 } });
  await page.locator(".t-row").nth(1).click();
  const side = await page.locator(".side").boundingBox(),
    table = await page.locator(".table").boundingBox();
  check(
    side.y < 300 && side.x >= table.x + table.width && side.x + side.width <= 800,
    `details: ${JSON.stringify(side)}, table ${JSON.stringify(table)}`,
  );
  const ends = (selector) =>
    page.locator(selector).evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().right)));
  equal(
    "headings are above their columns",
    await ends(".t-head > .number"),
    await ends(".t-row:first-child > .number"),
  );
  await page.setViewportSize({ width: 390, height: 800 });
  await page.reload();
  const [first] = await ends(".t-row:first-child > .number");
  check(first <= 390, `a telephone: the first figure ends at ${first}`);
  await page.context().close();
}

/** What the terminal takes for internal is so here: CPython in stacks with code in Python. */
async function internal() {
  const page = await open("python", "#view=table&table=functions&focus=function:main_of_it&search=^(_?Py|main_of_it)");
  const all = (await rows(page)).join(" ");
  check(all.includes("main_of_it") && !/\b_?Py[A-Z]/.test(all), `functions of CPython: ${all}`);
  await page.goto("file://" + plan.pages.python + "#view=flame&focus=function:main_of_it&search=^_?Py[A-Z]");
  await page.waitForFunction(() => document.querySelector(".note").textContent.includes("nowhere"));
  await page.getByRole("button", { name: "Show internal frames" }).click();
  await page.waitForFunction(() => /in [0-9,]+ frame/.test(document.querySelector(".note").textContent));
  await page.context().close();
}

/** The same binary in two directories, and an imported profile beside a recording. */
async function matched() {
  const page = await open("copies", "#view=table"),
    said = async (page) => (await rows(page)).map((row) => row.trim().split(/\s+/).at(-1)).sort();
  const words = await said(page);
  check(words.length > 2 && words.every((word) => word === "same"), `copies: ${words}`);
  await page.goto("file://" + plan.pages.copies + "#view=table&table=modules");
  equal("copies: the program is one module", (await rows(page)).filter((row) => row.startsWith("leak")).length, 1);
  const told = await open("told", "#view=table");
  equal("a comparison says what cairn diff says", await said(told), plan.told);
  await page.context().close();
  await told.context().close();
}

async function difference() {
  const page = await open("diff", "#view=flame&by=exit");
  await settled(page);
  check((await text(page, ".legend")).includes("less"), "diff: colours are changes");
  check(await clickFrame(page, "leak_large"), "diff: what is after");
  check((await text(page, ".side")).includes("Change"), "diff: before, after, change");
  await page.click("#tab-flame");
  await page.selectOption("#side", "before");
  await settled(page);
  check(!(await clickFrame(page, "leak_large")), "diff: before, it was not there");
  await page.selectOption("#side", "change");
  await settled(page);
  check(await clickFrame(page, "leak_large"), "diff: it is a change");
  await page.click("#tab-table");
  const large = (await rows(page)).find((row) => row.includes("leak_large"));
  check(large && large.includes("new") && large.includes("+"), `diff: table: ${large}`);
  await page.click("#tab-overview");
  check((await text(page, "main")).includes("→"), "diff: overview");
  await page.context().close();
}

async function processes() {
  const page = await open("run", "#view=table&table=processes");
  const all = await rows(page);
  check(all.some((row) => row.includes("leak")) && all.some((row) => row.includes("threads")), `processes: ${all}`);
  const leak = page.locator(".t-row", { hasText: "leak" }).first();
  equal(
    "the highest of a process's small line is its peak",
    await leak.locator(".spark").getAttribute("aria-label"),
    `live bytes over time, at most ${plan.leak_peak}`,
  );
  check(
    all.some((row) => row.includes(plan.leak_peak)),
    `the peak of a process: ${all}`,
  );
  await leak.dblclick();
  check(
    (await hash(page)).includes("process=") || (await page.locator("#process").inputValue()) === "0",
    "a process is chosen",
  );
  await page.selectOption("#process", "all");
  await page.click("#tab-flame");
  await settled(page);
  check(await clickFrame(page, "main"), "all processes add up");
  await page.context().close();
}

async function snapshots() {
  const page = await open("snapshots");
  await page.selectOption("#rate", "stacks");
  check((await text(page, ".u-legend")).includes("example+0x"), `stacks over time: ${await text(page, ".u-legend")}`);
  const first = await text(page, ".findings ul:first-child");
  check(first.includes("grows by") && first.includes("sure: "), `the growing stack is told, and how sure: ${first}`);
  const headings = await page.locator(".findings h2, .findings ul:last-child strong").allInnerTexts();
  check(
    headings[0] === "Figures that stand out" && !headings.join().includes("grows by"),
    `what is no finding of the tool stands apart: ${headings}`,
  );
  const box = await page.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.9, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.getByRole("button", { name: "What grew in this window" }).click();
  await settled(page);
  check((await hash(page)).includes("by=snapshot"), "a window leads to the flame graph");
  await page.goto("file://" + plan.pages.snapshots + "#view=flame&by=snapshot&from=780000000&to=3900000000");
  await settled(page);
  check(await clickFrame(page, plan.grows), "what grew in a window");
  check((await text(page, ".side")).includes("+4.0 MiB"), `by how much: ${await text(page, ".side")}`);
  await page.click("#unzoom");
  await page.selectOption("#side", "grown");
  await settled(page);
  check(await clickFrame(page, plan.grows), "widths of what grew");
  await page.click("#unzoom");
  check(!(await clickFrame(page, plan.stays)), "what did not grow is not there");
  await page.selectOption("#side", "shrunk");
  await settled(page);
  check(!(await clickFrame(page, plan.grows)), "nothing shrank");
  await page.selectOption("#side", "after");
  await page.click("#tab-table");
  const compared = await rows(page);
  check(compared[0].includes("+4.0 MiB") && compared[1].includes("same"), `snapshots in the table: ${compared}`);
  await page.click("#kind-functions");
  await page.goto("file://" + plan.pages.snapshots + "#view=table&table=functions");
  await page.waitForFunction(() => document.querySelectorAll(".t-row .spark").length === 2);
  await page.goBack();
  check((await rows(page))[0].includes("+4.0 MiB"), `snapshots, by function: ${(await rows(page))[0]}`);
  await page.click("#kind-stacks");
  await page.click("#tab-flame");
  await page.selectOption("#from", "0");
  await page.selectOption("#to", { label: "1.56 s warm" });
  await settled(page);
  check(await clickFrame(page, plan.stays), "all of a snapshot");
  check((await text(page, ".side")).includes("3.0 MiB"), `at a moment: ${await text(page, ".side")}`);
  await page.click("#tab-table");
  equal("small lines", await page.locator(".t-row .spark").count(), 2);
  await page.goto("file://" + plan.pages.at);
  check((await text(page, ".cards")).includes("+4.0 MiB"), `two snapshots: ${await text(page, ".cards")}`);
  equal("two snapshots: measures", await page.locator("#measure option").allInnerTexts(), [
    "Live at snapshot",
    "Blocks at snapshot",
  ]);
  await page.click("#tab-flame");
  await settled(page);
  check(await clickFrame(page, plan.grows), "two snapshots: the frame that grew");
  check((await text(page, ".side")).includes("+4.0 MiB"), `two snapshots: ${await text(page, ".side")}`);
  await page.context().close();
}

async function contexts() {
  const page = await open("contexts", "#view=table&table=contexts&key=tenant");
  for (const [name, bytes] of Object.entries(plan.contexts.tenants)) {
    const row = page.locator(".t-row", { has: page.getByText(name, { exact: true }) });
    check((await row.innerText()).includes(bytes), `tenant ${name} holds ${bytes}: ${await row.innerText()}`);
  }
  equal("by", await page.locator('.keys-of-labels [aria-pressed="true"]').allInnerTexts(), ["by tenant"]);
  await page.locator(".t-row", { has: page.getByText("8", { exact: true }) }).dblclick();
  check((await hash(page)).includes("focus=context:tenant=8"), `a context is chosen: ${await hash(page)}`);
  await page.locator(".chip", { hasText: "only of tenant=8" }).waitFor();
  await page.click("#tab-flame");
  await settled(page);
  check((await clickFrame(page, "take")) && !(await clickFrame(page, "work")), "only what was allocated in it");
  check((await text(page, ".chips")).includes(plan.contexts.tenants["8"]), `its bytes: ${await text(page, ".chips")}`);
  await page.goto("file://" + plan.pages.contexts + "#view=table&table=contexts&key=*&focus=function:work");
  await settled(page);
  const all = await rows(page);
  check(
    all.some((row) => row.includes("endpoint=/b c tenant=7") && row.includes(plan.contexts.work)),
    `sets of labels through a function: ${all}`,
  );
  await page.goto("file://" + plan.pages.other + "#view=table&table=contexts&key=request&by=calls");
  await page.fill("#search", "other");
  await page.waitForFunction(() => document.querySelectorAll(".t-row").length === 1);
  check((await rows(page))[0].includes("(other) labels after the first 4,096"), `overflow: ${await rows(page)}`);
  await page.goto("file://" + plan.pages.leak + "#view=table&table=contexts");
  await settled(page);
  equal("a page without contexts", await page.locator("#kind-contexts").count(), 0);
  await page.context().close();
}

async function threads() {
  const page = await open("threads", "#view=table&table=threads");
  for (const [name, most] of Object.entries(plan.threads.most)) {
    const line = page.locator(".t-row", { has: page.getByText(name, { exact: true }) }).locator(".spark");
    equal(`small line of ${name}`, await line.getAttribute("aria-label"), `live bytes over time, at most ${most}`);
  }
  await page.locator(".t-row", { hasText: "producer" }).dblclick();
  check((await hash(page)).includes("focus=thread:"), "a thread is chosen");
  await page.locator(".chip", { hasText: "producer" }).waitFor();
  await measure(page, "allocated");
  await settled(page);
  check(
    (await text(page, ".chips")).includes(plan.threads.share),
    `a thread's share of all is not "${plan.threads.share}": ${await text(page, ".chips")}`,
  );
  await page.click("#tab-flame");
  await settled(page);
  check((await clickFrame(page, "produce")) && !(await clickFrame(page, "main")), "only what the thread allocated");
  await page.click("#tab-overview");
  check(
    (await text(page, ".findings")).includes("of what producer allocates is freed by consumer"),
    `who frees what: ${await text(page, ".findings")}`,
  );
  await page.context().close();
}

/** Allocators by name, one in the place of malloc's heap: what tests/tools/wrapped_heaps.py takes. */
async function heaps() {
  if (!plan.pages.heaps) return;
  const page = await open("heaps"),
    names = await page.locator("#heap option").allInnerTexts();
  equal("the heaps", names, ["malloc", "mine", "areas", "areas/red", "areas/blue"]);
  check((await text(page, ".cards")).includes("1.0 MiB"), `malloc's own heap: ${await text(page, ".cards")}`);
  check(!(await text(page, "main")).includes("fill_late"), "malloc's stacks are without those of the other heaps");
  await page.selectOption("#heap", "mine");
  await settled(page);
  const all = await text(page, "main");
  for (const wanted of ["97.7 KiB", "in 100 blocks", "201 calls", "14.7 KiB", "in 110 blocks", "fill_early"])
    check(all.includes(wanted), `mine: no "${wanted}" in ${all}`);
  check(!all.includes("Peak RSS") && !all.includes("exact"), `what is the process' is not said of a heap: ${all}`);
  check(/Findings[^.]+are of malloc's heap alone/.test(all), `what is not known is said: ${all}`);
  equal("its timeline", await page.locator(".timeline:visible").count(), 1);
  check((await hash(page)).includes("heap=mine"), `the address has it: ${await hash(page)}`);
  await measure(page, "exit");
  await page.click("#tab-table");
  await settled(page);
  const left = await rows(page);
  equal("stacks", left.length, 3);
  check(left[0].includes("fill_early") && left[0].includes("9.8 KiB"), `what is left: ${left}`);
  await page.click("#kind-threads");
  await settled(page);
  check(/103 KiB\s+201\s+14\.7 KiB/.test((await rows(page))[0]), `its thread: ${await rows(page)}`);
  await page.click("#tab-flame");
  await settled(page);
  check((await clickFrame(page, "fill_late")) && !(await clickFrame(page, "pool_alloc")), "its flame graph");
  const side = await text(page, ".side");
  check(side.includes("Sizes of blocks") && /50 B\s+100/.test(side), `sizes of its blocks: ${side}`);
  await measure(page, "snapshot");
  await settled(page);
  check(await clickFrame(page, "fill_early"), "what it held at a snapshot");
  await measure(page, "exit");
  await settled(page);
  await page.selectOption("#heap", "areas/red");
  await settled(page);
  check((await clickFrame(page, "take_blue")) && !(await clickFrame(page, "fill_late")), "that of another one");
  await page.click("#tab-overview");
  await settled(page);
  equal("the timeline of one name in a heap", await page.locator(".timeline:visible").count(), 1);
  await page.click("#tab-flame");
  await settled(page);
  await page.selectOption("#heap", "");
  await settled(page);
  check(await clickFrame(page, "pool_alloc"), "malloc's again");
  await page.goBack(); // from the frame that was clicked
  await page.goBack();
  await settled(page);
  equal("back", await page.locator("#heap").inputValue(), "areas/red");
  await page.goto("file://" + plan.pages.heaps + "#heap=none&view=table");
  await settled(page);
  equal("a heap that is not there", await page.locator("#heap").inputValue(), "");
  await page.goto("file://" + plan.pages.leak + "#heap=mine");
  await settled(page);
  equal("a page without heaps by name", await page.locator("#heap").count(), 0);
  await page.context().close();
}

async function hostile() {
  for (const view of ["overview", "flame", "table"]) {
    const page = await open("hostile", `#view=${view}&table=functions`);
    await settled(page);
    const elements = await page.evaluate(
      () => document.querySelectorAll("img, iframe, object, embed, svg script, script:not([id]) ~ script").length,
    );
    equal(`hostile ${view}: elements from text`, elements, 0);
    check(await page.evaluate(() => window.hacked === undefined), `hostile ${view}: a name ran`);
    if (view === "table")
      check((await text(page, ".t-body")).includes("<img src=x"), "hostile: names are shown as they are");
    if (view === "flame") check(await clickFrame(page, plan.hostile), "hostile: the frame is there");
    if (view === "flame") check((await text(page, ".side")).includes(plan.hostile), "hostile: and its details");
    check(!(await page.title()).includes("\u202e"), "hostile: title");
    await page.context().close();
  }
}

async function odd() {
  for (const name of plan.odd) {
    const page = await open(name, "#view=flame");
    for (const view of ["flame", "table", "overview"]) {
      await page.click(`#tab-${view}`);
      await settled(page);
      check((await text(page, "body")).length > 60, `${name} ${view}: says nothing`);
    }
    await page.context().close();
  }
  const bare = await open("bare", "#view=table");
  equal("no stacks: said once", (await rows(bare))[0].split("[incomplete").length, 2);
  await bare.context().close();
  const sampled = await open("sampled", "#view=table");
  check((await text(sampled, ".t-head")).includes("±"), `a sample's intervals: ${await text(sampled, ".t-head")}`);
  await sampled.context().close();
  const wholes = await open("sampled", "#view=flame&inverted=1"),
    side = async (page, name) => (await clickFrame(page, name)) && text(page, ".side");
  check(((await side(wholes, "work")) || "").includes("±"), "an inverted flame graph has intervals");
  await wholes.context().close();
  const { peak, end, stack } = plan.changes,
    pair = await open("sampled2"),
    cards = await text(pair, ".cards");
  for (const [by, sure] of [peak, end])
    check(cards.includes(by) && cards.includes(sure), `samples compared: no ${by} ${sure} in ${cards}`);
  await pair.goto("file://" + plan.pages.sampled2 + "#view=table&by=exit");
  await settled(pair);
  check(
    (await rows(pair)).some(
      (row) => row.startsWith("leak_large") && row.includes(stack.join(" ")) && row.includes("gone"),
    ),
    `samples compared: no ${stack} in ${await rows(pair)}`,
  );
  check(
    (await rows(pair)).some((row) => row.includes("within ±")),
    "samples compared: every difference is taken for sure",
  );
  await pair.context().close();
  const none = await open("none"),
    said = /allocated nothing/;
  check(
    said.test(await text(none, "main")) && (await none.locator(".timeline").isHidden()),
    `no stack: ${await text(none, "main")}`,
  );
  await none.click("#tab-flame");
  check(said.test(await text(none, ".note")), `no stack: ${await text(none, ".note")}`);
  await none.context().close();
  const context = await browser.newContext({ offline: true }),
    page = await context.newPage();
  await page.goto("file://" + plan.pages.cut);
  await page.waitForFunction(() => document.querySelector("#loading")?.textContent.includes("cannot be read"));
  await context.close();
}

/** Contrast of all text with what is behind it (WCAG 2: 4.5, large text 3), and names of controls. */
function audit() {
  const rgba = (value) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = value;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const kept = new Map();
  const colour = (value) => kept.get(value) ?? kept.set(value, rgba(value)).get(value);
  const over = (top, below) => top.slice(0, 3).map((one, i) => one * top[3] + below[i] * (1 - top[3]));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((one) =>
      one / 255 <= 0.03928 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(colour(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const problems = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const style = getComputedStyle(element);
    if (
      !own ||
      !element.getClientRects().length ||
      style.visibility === "hidden" ||
      element.closest("script, .unseen, .skip")
    )
      continue;
    const below = behind(element),
      text = over(colour(style.color), below);
    const [a, b] = [light(text), light(below)].sort((x, y) => y - x),
      ratio = (a + 0.05) / (b + 0.05);
    const isLarge =
      parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && +style.fontWeight >= 700);
    if (ratio < (isLarge ? 3 : 4.5))
      problems.push(`contrast ${ratio.toFixed(2)}: ${element.className} "${element.textContent.slice(0, 40)}"`);
  }
  for (const element of document.body.querySelectorAll(
    "button, a[href], input, select, canvas[tabindex], [role=grid]",
  )) {
    const name =
      element.getAttribute("aria-label") || element.textContent.trim() || element.closest("label")?.textContent.trim();
    if (!name) problems.push(`no name: ${element.outerHTML.slice(0, 80)}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) problems.push(`id ${id} twice`);
  if (document.documentElement.scrollWidth > innerWidth + 1)
    problems.push(`wider than the window: ${document.documentElement.scrollWidth}`);
  return problems;
}

async function access() {
  for (const [name, view] of [
    ["leak", ""],
    ["snapshots", ""],
    ["leak", "#view=flame&focus=function:main"],
    ["leak", "#view=table&table=functions"],
    ["diff", ""],
    ["half", ""],
  ]) {
    const page = await open(name, view);
    await settled(page);
    if (view.includes("table")) await page.locator(".t-row").first().click();
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await settled(page);
      for (const problem of await page.evaluate(audit)) check(false, `${colorScheme} ${name} ${view}: ${problem}`);
    }
    if (!view) {
      await page.keyboard.press("Tab");
      equal(`${name}: the first stop`, await page.evaluate(() => document.activeElement.textContent), "To the content");
      await page.emulateMedia({ media: "print" });
      check(await page.locator("#search").isHidden(), "print: no controls");
    }
    await page.context().close();
  }
  for (const [width, colorScheme] of [
    [400, "dark"],
    [800, "light"],
  ]) {
    const page = await open("leak", "#view=flame", { viewport: { width, height: 700 }, colorScheme });
    await settled(page);
    for (const problem of await page.evaluate(audit)) check(false, `${width} wide: ${problem}`);
    await page.context().close();
  }
}

/** 100,000 stacks; times are printed, not judged: machines differ. */
async function large() {
  const start = Date.now(),
    page = await open("large");
  console.log(`${plan.large_stacks} stacks: first picture after ${Date.now() - start} ms`);
  await page.click("#tab-flame");
  await settled(page);
  const frame = await page.evaluate(
    () =>
      new Promise((done) => {
        const flame = document.querySelector(".flame"),
          times = [];
        const step = (last) =>
          requestAnimationFrame((now) => {
            flame.scrollTop = (times.length % 20) * 12;
            if (last) times.push(now - last);
            if (times.length < 60) step(now);
            else done(times.sort((a, b) => a - b)[30]);
          });
        step(0);
      }),
  );
  console.log(`${plan.large_stacks} stacks: a frame of the flame graph each ${frame.toFixed(1)} ms`);
  await page.click("#tab-table");
  check((await page.locator(".t-row").count()) < 100, "large: only rows that can be seen exist");
  equal("large: rows", await page.locator(".table").getAttribute("aria-rowcount"), String(plan.large_stacks + 1));
  await page.locator(".t-body").focus();
  await page.keyboard.press("End");
  check((await page.locator(`#row-${plan.large_stacks - 1}.current`).count()) === 1, "large: the last row");
  await page.context().close();
}

/** The names in the rectangles of a tree map, found as a pointer finds them. */
async function boxes(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector(".map canvas"),
      tip = canvas.parentElement.querySelector(".tip"),
      box = canvas.getBoundingClientRect(),
      found = {};
    for (let y = box.top + 3; y < box.bottom; y += 6)
      for (let x = box.left + 3; x < box.right; x += 6) {
        canvas.dispatchEvent(new MouseEvent("mousemove", { clientX: x, clientY: y, bubbles: true }));
        if (tip.hidden) continue;
        const name = tip.querySelector("strong").textContent;
        found[name] = { x, y, spots: (found[name]?.spots ?? 0) + 1 };
      }
    canvas.dispatchEvent(new MouseEvent("mouseleave"));
    return found;
  });
}

/** Who keeps what: a tree map whose areas are known, a table that unfolds, the flame graph. */
async function owners() {
  const page = await open("owners");
  equal("owners: screens", await page.locator("nav button").allInnerTexts(), ["Owners", "Table"]);
  let found = await boxes(page);
  const texts = found["char[]"]?.spots ?? 0;
  check(texts > 0 && found.item, `owners: the map has ${Object.keys(found)}`);
  const share = texts / Object.values(found).reduce((sum, one) => sum + one.spots, 0);
  check(share > 0.6, `owners: texts are most of it and cover ${share}`);
  check((await text(page, ".legend")).includes("char[]"), "owners: the legend");
  await page.selectOption("#colour", "module");
  await settled(page);
  check(/^owners\n/.test(await text(page, ".legend")), `owners by module: ${await text(page, ".legend")}`);
  await page.selectOption("#colour", "function");
  await settled(page);
  await page.mouse.click(found.item.x, found.item.y);
  check((await hash(page)).includes("zoom="), "owners: a click zooms");
  check((await text(page, ".side")).includes("item"), "owners: a click selects");
  await page.goBack();
  await page.locator(".map canvas").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  check((await hash(page)).includes("zoom=0"), "owners: keys zoom");
  await page.keyboard.press("Escape");
  await page.fill("#search", "item");
  await page.waitForFunction(() => document.querySelector(".note").textContent.includes("frame"));
  check((await text(page, ".note")).includes("“item” is on stacks of"), `owners: search: ${await text(page, ".note")}`);
  await page.fill("#search", "");
  await page.waitForFunction(() => !document.querySelector(".note").textContent.includes("item"));
  await page.selectOption("#shape", "tree");
  await settled(page);
  const first = await page.locator(".tt-body .tt-row").allInnerTexts();
  check(/sessions/.test(first[1]) && first[1].includes(plan.owners.sessions), `owners: the table: ${first[1]}`);
  const unfolded = first.findIndex((row) => row.includes("char[]"));
  check(unfolded > 0, `owners: the largest way is open: ${first}`);
  await page.locator(".tree-table").focus();
  for (const key of ["ArrowDown", "ArrowLeft"]) await page.keyboard.press(key);
  await page.locator(".tt-row[aria-selected=true][aria-expanded=false]").waitFor();
  equal("owners: folded", await page.locator(".tt-row[aria-selected=true]").getAttribute("aria-expanded"), "false");
  await page.keyboard.press("ArrowRight");
  await page.locator(".tt-row[aria-selected=true][aria-expanded=true]").waitFor();
  equal("owners: unfolded", await page.locator(".tt-row[aria-selected=true]").getAttribute("aria-expanded"), "true");
  await page.selectOption("#shape", "flame");
  await settled(page);
  check(await clickFrame(page, "table"), "owners: the flame graph");
  await page.keyboard.press("2");
  const table = `${await text(page, ".t-head")} ${await rows(page)}`;
  check(table.includes("What is kept ← who keeps it") && !table.includes("→"), `owners: the table: ${table}`);
  await page.context().close();
}

async function aged() {
  const page = await open("aged", "#view=flame&shape=map&by=allocated");
  await page.selectOption("#colour", "age");
  await settled(page);
  const legend = await text(page, ".legend");
  check(/up to 1\.0 ms.*16 ms.*and more.*not known/s.test(legend), `ages: ${legend}`);
  const swatches = await page.locator(".legend .swatch").evaluateAll((all) => all.map((one) => one.style.background));
  equal("ages: a colour each", new Set(swatches).size, 7);
  await page.locator(".map canvas").focus();
  await page.keyboard.press("ArrowDown");
  check((await text(page, "#live")).includes("freed after about"), `ages, by keys: ${await text(page, "#live")}`);
  await page.goto("file://" + plan.pages.leak + "#view=flame&shape=map");
  await settled(page);
  equal("no ages, no such colours", await page.locator("#colour option[value=age]").count(), 0);
  await page.context().close();
}

/** Who keeps what, by how old that is. */
async function owners_aged() {
  const page = await open("owners_aged", "#colour=age");
  await settled(page);
  const legend = await text(page, ".legend");
  check(/up to 1\.0 ms.*16 ms.*74 h 33 min and more.*not known/s.test(legend), `owners' ages: ${legend}`);
  check(!legend.includes("freed"), `owners' ages: ${legend}`);
  await page.locator(".map canvas").focus();
  await page.keyboard.press("ArrowDown");
  check(/about \S+ \S+ old/.test(await text(page, "#live")), `owners' ages, by keys: ${await text(page, "#live")}`);
  await page.goto("file://" + plan.pages.owners);
  await settled(page);
  equal("owners without ages", await page.locator("#colour option[value=age]").count(), 0);
  await page.context().close();
}

const parts = {
  owners,
  aged,
  owners_aged,
  overview,
  flame,
  table,
  beside,
  internal,
  matched,
  difference,
  processes,
  snapshots,
  threads,
  contexts,
  heaps,
  hostile,
  odd,
  access,
  large,
};
for (const [name, part] of Object.entries(parts)) {
  if (plan.only && !plan.only.split(",").includes(name)) continue;
  const start = Date.now();
  try {
    await part();
  } catch (error) {
    check(false, `${name}: ${error.stack}`);
  }
  // pages that are not looked at any more go on computing
  for (const context of browser.contexts()) await context.close();
  console.log(`${name}: ${Date.now() - start} ms`);
}
await browser.close();
process.exit(failures ? 1 : 0);
