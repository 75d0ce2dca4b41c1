// SPDX-License-Identifier: Apache-2.0
// The cairn command, as the extension finds and calls it. Nothing else starts a process here.
"use strict";

const { execFile } = require("node:child_process");
const vscode = require("vscode");

const OUTPUT_BYTES = 256 << 20;
const MISSING = "cairn: the command is not found; install it, or name it in the setting cairn.path";

function path() {
  return vscode.workspace.getConfiguration("cairn").get("path") || "cairn";
}

/** Tells a problem in one line, with a button for the setting where the command is missing. */
async function tell(problem) {
  const text = problem.code === "ENOENT" ? MISSING : problem.message;
  const setting = "Open Setting";
  const choice = await vscode.window.showErrorMessage(text, ...(problem.code === "ENOENT" ? [setting] : []));
  if (choice === setting) await vscode.commands.executeCommand("workbench.action.openSettings", "cairn.path");
}

/**
 * Returns what cairn prints. Rejects with its own message if it fails; `statuses` are others than 0 that are answers.
 */
function run(words, { cwd, statuses = [] } = {}) {
  return new Promise((resolve, reject) => {
    execFile(path(), words, { cwd, maxBuffer: OUTPUT_BYTES, encoding: "utf8" }, (error, out, errors) => {
      if (!error || statuses.includes(error.code)) resolve(out);
      else if (error.code === "ENOENT") reject(error);
      else reject(new Error(`cairn: ${(errors.trim() || error.message).replace(/^cairn: /, "").split("\n")[0]}`));
    });
  });
}

module.exports = { MISSING, path, run, tell };
