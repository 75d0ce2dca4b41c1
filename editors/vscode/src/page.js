// SPDX-License-Identifier: Apache-2.0
// A recording as an editor: the page of `cairn open` in a webview, which asks for source files to be shown.
"use strict";

const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const vscode = require("vscode");
const tool = require("./tool");

const MESSAGE = `<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'none'"><p>`;

function messagePage(text) {
  return MESSAGE + text.replace(/[&<>]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

/** Returns the page of a recording, which is written to a directory of its own and removed. */
async function makePage(recording) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "cairn-page-"));
  try {
    const file = path.join(directory, "page.html");
    await tool.run(["open", "-o", file, "--", recording]);
    return fs.readFileSync(file, "utf8");
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

/** Finds a file that the recording names: where it was, or below a folder of the workspace by the end of its path. */
function findSource(file) {
  const isFile = (one) => fs.statSync(one, { throwIfNoEntry: false })?.isFile();
  if (path.isAbsolute(file) && isFile(file)) return file;
  const parts = file.split("/").filter((part) => part && part !== "." && part !== "..");
  for (let from = 0; from < parts.length; from++) {
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      const below = path.join(folder.uri.fsPath, ...parts.slice(from));
      if (isFile(below)) return below;
    }
  }
  return null;
}

async function showSource({ file, line }) {
  const found = findSource(String(file));
  if (!found) {
    vscode.window.showWarningMessage(`cairn: ${file} is not here`);
    return;
  }
  const document = await vscode.workspace.openTextDocument(vscode.Uri.file(found));
  const at = new vscode.Position(Math.min(Math.max(Number(line) - 1 || 0, 0), document.lineCount - 1), 0);
  const beside = vscode.window.tabGroups.all.length > 1 ? vscode.ViewColumn.One : vscode.ViewColumn.Beside;
  await vscode.window.showTextDocument(document, { selection: new vscode.Range(at, at), viewColumn: beside });
}

class Pages {
  /** `onShown(path)` hears of each recording whose page is there, and comes to the front again. */
  constructor(onShown) {
    this.onShown = onShown;
  }

  openCustomDocument(uri) {
    return { uri, dispose() {} };
  }

  async resolveCustomEditor(document, panel) {
    const recording = document.uri.fsPath;
    let isReady = false;
    const tellShown = () => isReady && panel.active && this.onShown(recording);
    panel.webview.options = { enableScripts: true, localResourceRoots: [] };
    panel.onDidChangeViewState(tellShown);
    panel.webview.onDidReceiveMessage((message) => {
      if (message?.show) showSource(message.show);
      isReady ||= Boolean(message?.ready);
      if (message?.ready) tellShown();
    });
    try {
      panel.webview.html = await makePage(recording);
    } catch (problem) {
      panel.webview.html = messagePage(problem.code === "ENOENT" ? tool.MISSING : problem.message);
      await tool.tell(problem);
    }
  }
}

module.exports = { Pages, findSource };
