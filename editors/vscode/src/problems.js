// SPDX-License-Identifier: Apache-2.0
// Problems at lines: findings of a recording, and the results of a SARIF file, as `cairn check`, `cairn history` and
// `cairn torture` write it.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");
const { findSource } = require("./page");
const tool = require("./tool");

const FINDING = /^(\/[^:]*):(\d+): (.*)$/;
const LEVELS = {
  error: vscode.DiagnosticSeverity.Error,
  warning: vscode.DiagnosticSeverity.Warning,
  note: vscode.DiagnosticSeverity.Information,
};

function problemAt(line, message, severity, code) {
  const at = new vscode.Range(line - 1, 0, line - 1, Number.MAX_SAFE_INTEGER);
  const problem = new vscode.Diagnostic(at, message, severity);
  problem.source = "cairn";
  problem.code = code;
  return problem;
}

/** The file that a location of SARIF names; relative ones are below a root. */
function fileOf(location, roots) {
  const uri = location?.artifactLocation?.uri;
  if (!uri) return null;
  if (uri.startsWith("file:")) return vscode.Uri.parse(uri).fsPath;
  const relative = decodeURIComponent(uri);
  const found = roots.map((root) => path.join(root, relative)).filter((one) => fs.existsSync(one));
  return found[0] ?? path.join(roots[0] ?? "/", relative);
}

/** Returns [file, problem] of each result that has a line. */
function problemsOf(sarif, roots) {
  return (sarif.runs ?? []).flatMap((run) =>
    (run.results ?? []).flatMap((result) => {
      const location = result.locations?.[0]?.physicalLocation;
      const file = fileOf(location, roots);
      const line = location?.region?.startLine ?? 1;
      const level = LEVELS[result.level] ?? LEVELS.warning;
      return file ? [[file, problemAt(line, result.message?.text ?? "", level, result.ruleId)]] : [];
    }),
  );
}

class Problems {
  constructor() {
    this.collections = ["cairn findings", "cairn results"].map((name) =>
      vscode.languages.createDiagnosticCollection(name),
    );
    [this.findings, this.results] = this.collections;
  }

  put(collection, pairs) {
    const byFile = new Map();
    for (const [file, problem] of pairs) byFile.set(file, [...(byFile.get(file) ?? []), problem]);
    collection.clear();
    for (const [file, problems] of byFile) collection.set(vscode.Uri.file(file), problems);
    return pairs.length;
  }

  /** Reads the findings of a recording, and shows them if `isWanted` is still true then. */
  async load(recording, isWanted) {
    const lines = await tool.run(["report", "--view=findings", "--format=unix", "--", recording], { statuses: [1] });
    const found = lines.split("\n").flatMap((text) => {
      const [, file, line, message] = FINDING.exec(text) ?? [];
      return file ? [[findSource(file) ?? file, problemAt(Number(line), message, LEVELS.note, "finding")]] : [];
    });
    return isWanted() ? this.put(this.findings, found) : 0;
  }

  /** The results of a file of SARIF; rejects if it is none. */
  readSarif(file, roots) {
    let sarif;
    try {
      sarif = JSON.parse(fs.readFileSync(file, "utf8"));
    } catch (error) {
      throw new Error(`cairn: ${file}: not SARIF: ${error.message}`);
    }
    if (!Array.isArray(sarif?.runs)) throw new Error(`cairn: ${file}: not SARIF: it has no runs`);
    return this.put(this.results, problemsOf(sarif, roots));
  }

  clear() {
    for (const collection of this.collections) collection.clear();
  }

  dispose() {
    for (const collection of this.collections) collection.dispose();
  }
}

module.exports = { Problems };
