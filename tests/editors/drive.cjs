// SPDX-License-Identifier: Apache-2.0
// Drives editors/vscode in a stand-in of an editor (vscode.cjs): node drive.cjs PLAN, a file of JSON with the folder, the
// extension and the command. Prints a line of JSON with all that was shown.
"use strict";

const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const { makeEditor } = require("./vscode.cjs");

const plan = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const settings = { path: plan.cairn, measure: "peak", codeLens: true, testProgram: "./held" };
const editor = makeEditor(plan.folder, settings);
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? editor.api : load(name, ...rest));

const { shown, commands, collections } = editor;
const at = (name) => path.join(plan.folder, name);
const settled = async (isDone) => {
  while (!isDone()) await new Promise((resolve) => setTimeout(resolve, 5));
};
const rowsOf = (open) =>
  open.decorations.map(({ range, renderOptions, hoverMessage }) => [
    range.start.line + 1,
    renderOptions.after.contentText,
    hoverMessage.value,
  ]);
const problemsOf = (name) =>
  [...collections.get(name)].flatMap(([file, list]) =>
    list.map(({ range, message, severity, code }) => [file, range.start.line + 1, severity, code, message]),
  );

/** Calls of the command that are not answered yet. */
const calls = new Set();
const tool = require(path.join(path.dirname(plan.extension), "tool.js"));
const { run } = tool;
tool.run = (...words) => {
  const call = run(...words);
  calls.add(call);
  call.catch(() => {}).finally(() => calls.delete(call));
  return call;
};

async function main() {
  const told = {};
  const context = { subscriptions: [], workspaceState: { get: (name, usual) => usual, update: async () => {} } };
  require(plan.extension).activate(context);
  told.commands = [...commands.keys()];

  const source = editor.openFile(at("held.c"), "c");
  const copy = editor.openFile(at("elsewhere/src/moved.c"), "c");
  await commands.get("cairn.open")(editor.api.Uri.file(at("held.cairn")));
  await settled(() => shown.status);
  told.page = {
    bytes: shown.panel.webview.html.length,
    html: shown.panel.webview.html.slice(0, 600),
    options: shown.panel.webview.options,
  };
  told.lines = rowsOf(source);
  told.movedLines = rowsOf(copy);
  told.findings = problemsOf("cairn findings");
  told.status = shown.status;

  shown.say({ show: { file: at("held.c"), line: 7 } });
  shown.say({ show: { file: "/nowhere/elsewhere/src/moved.c", line: 3 } });
  shown.say({ show: { file: "/nowhere/at/all.c", line: 3 } });
  shown.say({ other: 1 });
  await settled(() => shown.documents.length === 2 && shown.warnings.length === 1);
  Object.assign(told, { documents: shown.documents, warnings: shown.warnings });

  fs.utimesSync(at("held.c"), new Date(), new Date(Date.now() + 60_000));
  editor.saved.fire(source.document);
  told.newer = rowsOf(source).map(([, text]) => text);

  // a page that is left before its findings are there
  fs.copyFileSync(at("held.cairn"), at("slow.cairn"));
  settings.path = at("slow.sh");
  await editor.openWith(editor.api.Uri.file(at("slow.cairn")), "cairn.recording");
  await settled(() => fs.existsSync(at("asked")));
  await editor.openWith(editor.api.Uri.file(at("held.cairn")), "cairn.recording");
  await settled(() => calls.size === 1); // the slow one
  await new Promise((resolve) => setImmediate(resolve));
  fs.writeFileSync(at("go"), "");
  await settled(() => calls.size === 0);
  await new Promise((resolve) => setImmediate(resolve));
  told.kept = problemsOf("cairn findings").length;
  settings.path = plan.cairn;

  shown.answers = ["held.cairn"];
  await commands.get("cairn.check")();
  told.results = problemsOf("cairn results");
  told.infos = [...shown.infos];
  await commands.get("cairn.clear")();
  told.cleared = [rowsOf(source), problemsOf("cairn results"), problemsOf("cairn findings"), shown.status];

  told.lenses = {};
  for (const [language, name] of [
    ["rust", "tests.rs"],
    ["python", "test_shop.py"],
    ["cpp", "tests.cc"],
  ]) {
    const { document } = editor.openFile(at(name), language);
    told.lenses[language] = editor.lenses[0]
      .provideCodeLenses(document)
      .map(({ range, command }) => [range.start.line + 1, command.arguments[1].kind, command.arguments[1].name]);
  }
  const [first] = editor.lenses[0].provideCodeLenses(editor.openFile(at("tests.cc"), "cpp").document);
  await commands.get(first.command.command)(...first.command.arguments);
  await settled(() => shown.status || shown.errors.length);
  told.recorded = [shown.status, shown.task.stdout];

  told.errorsBefore = [...shown.errors];
  fs.writeFileSync(at("broken.sarif"), '{"runs": 3}');
  fs.writeFileSync(at("broken.cairn"), "no recording");
  await commands.get("cairn.problems")(editor.api.Uri.file(at("broken.sarif")));
  await editor.openWith(editor.api.Uri.file(at("broken.cairn")), "cairn.recording");
  told.broken = shown.errors.splice(0);
  told.brokenPage = shown.panel.webview.html;

  settings.path = "/nowhere/cairn";
  await editor.openWith(editor.api.Uri.file(at("held.cairn")), "cairn.recording");
  await commands.get(first.command.command)(...first.command.arguments);
  told.missing = shown.errors.splice(0);
  told.missingPage = shown.panel.webview.html;
  process.stdout.write(JSON.stringify(told));
}

main().catch((problem) => {
  console.error(problem);
  process.exit(1);
});
