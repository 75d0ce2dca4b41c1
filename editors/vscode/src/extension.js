// SPDX-License-Identifier: Apache-2.0
// cairn in the editor: its commands, put together.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");
const tool = require("./tool");
const { Lines } = require("./lines");
const { Pages } = require("./page");
const { Problems } = require("./problems");
const { Lenses, commandOf } = require("./tests");

const BUDGETS = "cairn-budgets.toml";
const NO_BUDGET_HOLDS = 1; // the status of cairn check then

class Extension {
  constructor(context) {
    this.lines = new Lines();
    this.problems = new Problems();
    this.status = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Left);
    this.status.command = "cairn.clear";
    this.memory = context.workspaceState;
    const pages = new Pages((recording) => this.show(recording));
    const commands = {
      open: (uri) => this.open(uri),
      record: () => this.record(),
      recordTest: (uri, test) => this.recordTest(vscode.Uri.parse(uri), test),
      check: () => this.check(),
      problems: (uri) => this.readSarif(uri),
      clear: () => this.clear(),
    };
    context.subscriptions.push(
      this.lines,
      this.problems,
      this.status,
      ...Object.entries(commands).map(([name, run]) =>
        vscode.commands.registerCommand(`cairn.${name}`, (...words) => run(...words).catch(tool.tell)),
      ),
      vscode.window.registerCustomEditorProvider("cairn.recording", pages, {
        webviewOptions: { retainContextWhenHidden: true },
        supportsMultipleEditorsPerDocument: true,
      }),
      vscode.languages.registerCodeLensProvider(["cpp", "rust", "python"], new Lenses()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.lines.showAll()),
      vscode.workspace.onDidSaveTextDocument(() => this.lines.showAll()),
    );
  }

  folder() {
    const folder = vscode.workspace.workspaceFolders?.[0];
    if (!folder) throw new Error("cairn: no folder is open");
    return folder;
  }

  roots() {
    return (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  }

  /** Bytes beside lines and findings of a recording whose page is shown. */
  async show(recording) {
    if (this.lines.recording === recording) return;
    const isWanted = () => this.lines.recording === recording; // another page may come to the front meanwhile
    try {
      await this.lines.load(recording);
      const found = await this.problems.load(recording, isWanted);
      if (!isWanted()) return;
      const findings = `${found} finding${found === 1 ? "" : "s"}`;
      this.status.text = `cairn: ${path.basename(recording)}, ${findings}`;
      this.status.tooltip = "Bytes beside lines are of this recording. Hide them";
      this.status.show();
    } catch (problem) {
      if (isWanted()) this.lines.clear();
      await tool.tell(problem);
    }
  }

  async open(uri) {
    const chosen = uri ?? (await this.choose("A recording of cairn", ["**/*.cairn"]));
    if (chosen) await vscode.commands.executeCommand("vscode.openWith", chosen, "cairn.recording");
  }

  /** Asks for a file of the workspace, the newest first. */
  async choose(placeHolder, patterns) {
    const found = await Promise.all(patterns.map((pattern) => vscode.workspace.findFiles(pattern, null, 500)));
    const rows = found.flat().map((uri) => ({
      label: path.basename(uri.fsPath),
      description: path.dirname(vscode.workspace.asRelativePath(uri)),
      time: fs.statSync(uri.fsPath, { throwIfNoEntry: false })?.mtimeMs ?? 0,
      uri,
    }));
    if (!rows.length) throw new Error(`cairn: no ${patterns.join(", ")} in this folder`);
    rows.sort((a, b) => b.time - a.time);
    return (await vscode.window.showQuickPick(rows, { placeHolder }))?.uri;
  }

  async record() {
    const last = this.memory.get("command", "");
    const line = await vscode.window.showInputBox({
      prompt: "Command to record, for the shell",
      value: last,
      ignoreFocusOut: true,
    });
    if (!line) return;
    await this.memory.update("command", line);
    await this.recordAs("program", [], ["sh", "-c", `exec ${line}`], this.folder().uri.fsPath);
  }

  async recordTest(uri, test) {
    const folder = vscode.workspace.getWorkspaceFolder(uri) ?? this.folder();
    const isOfProgram = test.kind === "gtest" || test.kind === "catch2";
    const program = isOfProgram ? await this.testProgram(uri, folder) : null;
    if (isOfProgram && !program) return;
    const { options, command, cwd } = await commandOf(test, uri.fsPath, folder.uri.fsPath, program);
    await this.recordAs(test.name, options, command, cwd);
  }

  async testProgram(uri, folder) {
    const asked = "cairn.testProgram";
    const set = vscode.workspace.getConfiguration("cairn", uri).get("testProgram");
    const program =
      set ||
      (await vscode.window.showInputBox({
        prompt: "Test program, relative to the folder",
        value: this.memory.get(asked, ""),
        ignoreFocusOut: true,
      }));
    if (!program) return null;
    await this.memory.update(asked, program);
    return path.resolve(folder.uri.fsPath, program);
  }

  /** Runs a command under cairn in a terminal, and shows its recording when it has ended. */
  async recordAs(name, options, command, cwd) {
    if (!vscode.workspace.isTrusted) throw new Error("cairn: programs are recorded in trusted workspaces only");
    await tool.run(["--version"]); // without the tool: one line, no terminal
    const output = this.freeName(cwd, name.replace(/[^\w.-]+/g, "-").slice(0, 60) || "test");
    const words = ["run", "-o", output, ...options, "--", ...command];
    const task = new vscode.Task(
      { type: "cairn" },
      vscode.TaskScope.Workspace,
      `cairn: ${name}`,
      "cairn",
      new vscode.ProcessExecution(tool.path(), words, { cwd }),
    );
    const execution = await vscode.tasks.executeTask(task);
    await new Promise((resolve) => {
      const listener = vscode.tasks.onDidEndTaskProcess((event) => {
        if (event.execution.task !== execution.task && event.execution !== execution) return;
        listener.dispose();
        resolve();
      });
    });
    if (!fs.existsSync(output)) throw new Error(`cairn: ${name} was not recorded; the terminal says why`);
    if (fs.statSync(output).isDirectory()) return this.openRun(output);
    return this.open(vscode.Uri.file(output));
  }

  freeName(directory, name) {
    for (let number = 1; ; number++) {
      const file = path.join(directory, `${name}${number > 1 ? `-${number}` : ""}.cairn`);
      if (!fs.existsSync(file)) return file;
    }
  }

  /** A run of several processes is a directory: one of its recordings is chosen. */
  async openRun(directory) {
    const pattern = new vscode.RelativePattern(vscode.Uri.file(directory), "*.cairn");
    const found = await vscode.workspace.findFiles(pattern);
    const rows = found.map((uri) => ({ label: path.basename(uri.fsPath), uri }));
    const chosen =
      rows.length === 1 ? rows[0] : await vscode.window.showQuickPick(rows, { placeHolder: "Which process" });
    if (chosen) await this.open(chosen.uri);
  }

  /** Budgets of the folder (cairn-budgets.toml), on a recording that is asked for; broken ones are problems. */
  async check() {
    const folder = this.folder().uri.fsPath;
    const budgets = path.join(folder, BUDGETS);
    if (!fs.existsSync(budgets)) throw new Error(`cairn: there is no ${BUDGETS} in ${folder}`);
    const recording = await this.choose("Which recording to check", ["**/*.cairn"]);
    if (!recording) return;
    const directory = fs.mkdtempSync(path.join(require("node:os").tmpdir(), "cairn-check-"));
    try {
      const sarif = path.join(directory, "check.sarif");
      const words = ["check", "--budgets", budgets, "--sarif", sarif, recording.fsPath];
      const text = await tool.run(words, { cwd: folder, statuses: [NO_BUDGET_HOLDS] });
      this.problems.readSarif(sarif, this.roots());
      vscode.window.showInformationMessage(`cairn: ${text.trim().split("\n").pop()}`);
    } finally {
      fs.rmSync(directory, { recursive: true, force: true });
    }
  }

  async readSarif(uri) {
    const chosen = uri ?? (await this.choose("A file of SARIF", ["**/*.sarif", "**/*.sarif.json"]));
    if (!chosen) return;
    const count = this.problems.readSarif(chosen.fsPath, this.roots());
    vscode.window.showInformationMessage(`cairn: ${count} result${count === 1 ? "" : "s"} with a place`);
  }

  async clear() {
    this.lines.clear();
    this.problems.clear();
    this.status.hide();
  }
}

module.exports = { activate: (context) => void new Extension(context), deactivate() {} };
