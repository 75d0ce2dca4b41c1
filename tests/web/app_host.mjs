// SPDX-License-Identifier: Apache-2.0
// A host of MCP Apps around the page, in Chromium, and a webview of an editor: node app_host.mjs PLAN. Prints a line of
// JSON with what the page asked for and showed. `bridge` of the plan is the AppBridge of ext-apps, or "": the few messages
// of the protocol that the page needs are then spoken here.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { chromium } = createRequire(plan.modules + "/")("playwright-core");
const text = (name) => readFileSync(join(plan.here, name), "utf8");
const PATIENCE_MS = 120_000;

/** Runs in the browser: shows the page in a frame without an origin, and answers it. */
function plainHost([page, data]) {
  const told = (window.told = { calls: [], messages: [] });
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.srcdoc = page;
  frame.style = "width: 1200px; height: 800px";
  const put = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const answers = {
    "ui/initialize": () => ({
      protocolVersion: "2026-01-26",
      hostInfo: { name: "test", version: "1" },
      hostCapabilities: {},
      hostContext: { theme: "dark" },
    }),
    "tools/call": (params) => {
      told.calls.push(params);
      return data
        ? { content: [{ type: "text", text: data }] }
        : { content: [{ type: "text", text: "no such recording" }], isError: true };
    },
    "ui/message": (params) => (told.messages.push(params.content[0].text), {}),
  };
  addEventListener("message", ({ data: { id, method, params } }) => {
    if (method === "ui/notifications/initialized")
      put({ method: "ui/notifications/tool-input", params: { arguments: { recording: "held.cairn" } } });
    if (answers[method]) put({ id, result: answers[method](params) });
  });
  document.body.append(frame);
}

/** The same by ext-apps. */
async function bridgedHost([page, data]) {
  const { AppBridge, PostMessageTransport } = await import("/bridge.js");
  const told = (window.told = { calls: [], messages: [] });
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.style = "width: 1200px; height: 800px";
  document.body.append(frame);
  const bridge = new AppBridge(
    null,
    { name: "test", version: "1" },
    { serverTools: {}, message: {} },
    { hostContext: { theme: "dark" } },
  );
  bridge.oncalltool = async (params) => {
    told.calls.push({ name: params.name, arguments: params.arguments });
    return data
      ? { content: [{ type: "text", text: data }] }
      : { content: [{ type: "text", text: "no such recording" }], isError: true };
  };
  bridge.onmessage = async ({ content }) => (told.messages.push(content[0].text), {});
  bridge.oninitialized = () => bridge.sendToolInput({ arguments: { recording: "held.cairn" } });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = page;
}

async function framed(browser, data, told) {
  const page = await browser.newPage();
  watch(page, told);
  await page.goto("http://host.test/");
  await page.evaluate(plan.bridge ? bridgedHost : plainHost, [text("page.html"), data]);
  return [page, page.frameLocator("iframe")];
}

function watch(page, told) {
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => told.complaints.push(String(error)));
  page.on("console", (line) => line.type() === "error" && told.complaints.push(line.text()));
  page.on("request", (request) => {
    const url = request.url();
    if (!/^(data:|about:|blob:|file:\/\/\/.*whole\.html|http:\/\/host\.test\/(bridge\.js)?$)/.test(url))
      told.requests.push(url);
  });
}

async function choosePlace(view) {
  await view.locator("#tab-table").click();
  await view.locator("[role=row]").nth(1).click();
  await view.locator("button.place").first().click();
}

async function showsApp(browser, told) {
  const [page, frame] = await framed(browser, text("data.txt"), told);
  await frame.locator("body[data-ready]").waitFor();
  told.shown = await frame.locator("body").innerText();
  told.theme = await frame.locator("html").getAttribute("data-theme");
  await choosePlace(frame);
  await page.waitForFunction("window.told.messages.length");
  Object.assign(told, await page.evaluate("window.told"));
}

async function saysFailure(browser, told) {
  const mine = { complaints: [], requests: [] };
  const [, frame] = await framed(browser, "", mine);
  const line = frame.locator("#loading", { hasText: "cannot be read" });
  await line.waitFor();
  told.failed = await line.innerText();
}

async function showsInEditor(browser, told) {
  const page = await browser.newPage();
  watch(page, told);
  await page.addInitScript(() => {
    window.heard = [];
    window.acquireVsCodeApi = () => ({ postMessage: (message) => window.heard.push(message) });
  });
  await page.goto(`file://${join(plan.here, "whole.html")}`);
  await page.locator("body[data-ready]").waitFor();
  await choosePlace(page);
  told.editor = await page.evaluate("window.heard");
}

const browser = await chromium.launch({ executablePath: plan.browser, args: ["--no-sandbox"] });
const told = { complaints: [], requests: [] };
const context = await browser.newContext({ viewport: { width: 1300, height: 900 } });
await context.route("http://host.test/**", (route) =>
  route.request().url().endsWith("/bridge.js")
    ? route.fulfill({ contentType: "text/javascript", body: text("bridge.js") })
    : route.fulfill({ contentType: "text/html", body: '<!doctype html><link rel="icon" href="data:,">' }),
);
await showsApp(context, told);
await saysFailure(context, told);
await showsInEditor(context, told);
await browser.close();
console.log(JSON.stringify(told));
