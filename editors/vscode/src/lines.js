// SPDX-License-Identifier: Apache-2.0
// Bytes beside the lines of source files, of the recording that was opened last.
"use strict";

const fs = require("node:fs");
const vscode = require("vscode");
const tool = require("./tool");
const units = require("./units");

const PLACE = /^(.*):(\d+)$/;
const SAME_PARTS = 2; // components at the end of a path by which a file that lies elsewhere now is found

const MEASURES = {
  peak: "at the peak",
  exit: "at the end",
  allocated: "allocated over all time",
  calls: "allocations over all time",
};

function endOf(path) {
  return path.split("/").slice(-SAME_PARTS).join("/");
}

class Lines {
  constructor() {
    this.figures = new Map(); // path to [{line, value, own, blocks}]
    this.moved = new Map(); // end of the path of a file that is not there to its path; null: of several
    this.recording = null;
    this.measure = "peak";
    this.decoration = vscode.window.createTextEditorDecorationType({
      after: { margin: "0 0 0 3em", color: new vscode.ThemeColor("editorCodeLens.foreground") },
      rangeBehavior: vscode.DecorationRangeBehavior.ClosedOpen,
    });
  }

  /** Reads the figures of a recording, which take the place of those of another one. */
  async load(recording) {
    const measure = vscode.workspace.getConfiguration("cairn").get("measure") || "peak";
    const words = ["report", "--view=lines", "--format=json", "--top=0", `--by=${measure}`, "--", recording];
    this.clear();
    this.recording = recording;
    const answer = JSON.parse(await tool.run(words));
    if (this.recording !== recording) return;
    this.measure = measure;
    this.recordedAt = fs.statSync(recording).mtimeMs;
    for (const row of answer.rows) this.add(row);
    for (const path of this.figures.keys()) {
      if (fs.existsSync(path)) continue;
      const end = endOf(path);
      this.moved.set(end, this.moved.has(end) ? null : path);
    }
    this.showAll();
  }

  add({ name, total, self, total_blocks }) {
    const place = PLACE.exec(name || "");
    if (!place || !total) return;
    const rows = this.figures.get(place[1]) || [];
    rows.push({ line: Number(place[2]), value: total, own: self, blocks: total_blocks });
    this.figures.set(place[1], rows);
  }

  rowsOf(document) {
    const path = document.uri.scheme === "file" ? document.uri.fsPath : "";
    if (this.figures.has(path)) return this.figures.get(path);
    const moved = path && this.moved.get(endOf(path));
    return moved ? this.figures.get(moved) : [];
  }

  /** Returns true if lines may have moved since the recording was made. */
  isNewer(document) {
    if (document.isDirty) return true;
    try {
      return fs.statSync(document.uri.fsPath).mtimeMs > this.recordedAt;
    } catch {
      return true;
    }
  }

  text(value) {
    return this.measure === "calls" ? units.counted(value, "call") : units.size(value);
  }

  show(editor) {
    const { document } = editor;
    const isNewer = this.recording && this.isNewer(document);
    const shown = this.rowsOf(document)
      .filter(({ line }) => line <= document.lineCount)
      .map((row) => this.decorationOf(row, document, isNewer));
    editor.setDecorations(this.decoration, shown);
  }

  decorationOf(row, document, isNewer) {
    const end = document.lineAt(row.line - 1).range.end;
    const blocks = this.measure === "calls" ? "" : ` in ${units.counted(row.blocks, "block")}`;
    const hover = new vscode.MarkdownString();
    hover.appendText(`${this.text(row.value)}${blocks} ${MEASURES[this.measure]} came through this line`);
    if (row.own) hover.appendText(`, ${this.text(row.own)} of it allocated by the line itself`);
    hover.appendText(` (${this.recording}).`);
    if (isNewer) hover.appendText(" The file was changed after the recording: lines may have moved.");
    return {
      range: new vscode.Range(end, end),
      hoverMessage: hover,
      renderOptions: { after: { contentText: `${this.text(row.value)}${isNewer ? " ?" : ""}` } },
    };
  }

  showAll() {
    for (const editor of vscode.window.visibleTextEditors) this.show(editor);
  }

  clear() {
    this.figures.clear();
    this.moved.clear();
    this.recording = null;
    this.showAll();
  }

  dispose() {
    this.decoration.dispose();
  }
}

module.exports = { Lines };
