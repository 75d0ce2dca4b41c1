// SPDX-License-Identifier: Apache-2.0
// Stands for the module `vscode` that an editor gives to extensions: as much of it as editors/vscode calls, with what
// was shown kept in lists. Tasks really run. tests/editors/real.mjs drives the real one.
"use strict";

const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { fileURLToPath, pathToFileURL } = require("node:url");

class Uri {
  constructor(fsPath) {
    Object.assign(this, { fsPath, scheme: "file" });
  }
  static file(name) {
    return new Uri(name);
  }
  static parse(text) {
    return new Uri(fileURLToPath(text));
  }
  toString() {
    return pathToFileURL(this.fsPath).href;
  }
}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(...at) {
    const [start, end] = at.length === 4 ? [new Position(at[0], at[1]), new Position(at[2], at[3])] : at;
    Object.assign(this, { start, end });
  }
}

class Diagnostic {
  constructor(range, message, severity) {
    Object.assign(this, { range, message, severity });
  }
}

class MarkdownString {
  value = "";
  appendText(text) {
    this.value += text;
    return this;
  }
}

class Emitter {
  listeners = new Set();
  on = (listener) => {
    this.listeners.add(listener);
    return { dispose: () => this.listeners.delete(listener) };
  };
  fire(event) {
    for (const listener of [...this.listeners]) listener(event);
  }
}

class Document {
  constructor(file, languageId) {
    this.uri = Uri.file(file);
    this.languageId = languageId;
    this.text = fs.readFileSync(file, "utf8");
    this.lines = this.text.split("\n");
    this.lineCount = this.lines.length;
    this.isDirty = false;
  }
  getText() {
    return this.text;
  }
  lineAt(line) {
    return { range: new Range(line, 0, line, this.lines[line].length) };
  }
  positionAt(offset) {
    const before = this.text.slice(0, offset).split("\n");
    return new Position(before.length - 1, before.at(-1).length);
  }
}

class Editor {
  decorations = [];
  constructor(document) {
    this.document = document;
  }
  setDecorations(type, shown) {
    this.decorations = shown;
  }
}

class Collection extends Map {
  set(uri, problems) {
    return super.set(uri.fsPath, problems);
  }
  dispose() {}
}

function filesBelow(directory, ending) {
  return fs.readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const name = path.join(directory, entry.name);
    if (entry.isDirectory()) return filesBelow(name, ending);
    return name.endsWith(ending) ? [Uri.file(name)] : [];
  });
}

/** An editor with one folder open. `answers` are those of its questions, in order. */
function makeEditor(folder, settings) {
  const shown = { errors: [], infos: [], warnings: [], documents: [], status: "", answers: [] };
  const commands = new Map(),
    collections = new Map(),
    providers = {},
    lenses = [];
  const visible = new Emitter(),
    saved = new Emitter(),
    ended = new Emitter();
  const noted = (list) => async (text) => void list.push(text);
  const window = {
    visibleTextEditors: [],
    tabGroups: { all: [0] },
    createTextEditorDecorationType: (look) => ({ look, dispose() {} }),
    createStatusBarItem: () => ({
      show() {
        shown.status = this.text;
      },
      hide: () => (shown.status = ""),
      dispose() {},
    }),
    showErrorMessage: noted(shown.errors),
    showInformationMessage: noted(shown.infos),
    showWarningMessage: noted(shown.warnings),
    showInputBox: async () => shown.answers.shift(),
    showQuickPick: async (rows) => {
      const wanted = shown.answers.shift();
      return rows.find(({ label }) => label === wanted);
    },
    showTextDocument: async (document, options) =>
      void shown.documents.push([document.uri.fsPath, options.selection.start.line + 1]),
    onDidChangeVisibleTextEditors: visible.on,
    registerCustomEditorProvider: (type, provider) => ((providers[type] = provider), { dispose() {} }),
  };
  const workspace = {
    isTrusted: true,
    workspaceFolders: [{ uri: Uri.file(folder) }],
    getConfiguration: () => ({ get: (name) => settings[name] }),
    getWorkspaceFolder: () => workspace.workspaceFolders[0],
    asRelativePath: (uri) => path.relative(folder, uri.fsPath),
    findFiles: async (pattern) =>
      filesBelow(pattern.base ?? folder, (pattern.pattern ?? pattern).replace(/^(\*\*\/)?\*/, "")),
    openTextDocument: async (uri) => new Document(uri.fsPath, "cpp"),
    onDidSaveTextDocument: saved.on,
  };
  const api = {
    Uri,
    Position,
    Range,
    Diagnostic,
    MarkdownString,
    window,
    workspace,
    RelativePattern: class {
      constructor(base, pattern) {
        Object.assign(this, { base: base.fsPath, pattern });
      }
    },
    ThemeColor: class {
      constructor(id) {
        this.id = id;
      }
    },
    CodeLens: class {
      constructor(range, command) {
        Object.assign(this, { range, command });
      }
    },
    ProcessExecution: class {
      constructor(process, args, options) {
        Object.assign(this, { process, args, options });
      }
    },
    Task: class {
      constructor(definition, scope, name, source, execution) {
        Object.assign(this, { definition, name, execution });
      }
    },
    StatusBarAlignment: { Left: 1 },
    ViewColumn: { One: 1, Beside: -2 },
    TaskScope: { Workspace: 2 },
    DecorationRangeBehavior: { ClosedOpen: 3 },
    DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2 },
    languages: {
      createDiagnosticCollection: (name) => (collections.set(name, new Collection()), collections.get(name)),
      registerCodeLensProvider: (languages, provider) => (lenses.push(provider), { dispose() {} }),
    },
    commands: {
      registerCommand: (name, run) => (commands.set(name, run), { dispose() {} }),
      executeCommand: async (name, ...words) => {
        if (name === "vscode.openWith") return openWith(...words);
        return commands.get(name)?.(...words);
      },
    },
    tasks: {
      onDidEndTaskProcess: ended.on,
      executeTask: async (task) => {
        const { process, args, options } = task.execution,
          execution = { task };
        setImmediate(() => {
          shown.task = spawnSync(process, args, { ...options, encoding: "utf8" });
          ended.fire({ execution });
        });
        return execution;
      },
    },
  };
  async function openWith(uri, type) {
    const heard = new Emitter(),
      provider = providers[type];
    const panel = { active: true, onDidChangeViewState: () => {}, webview: { onDidReceiveMessage: heard.on } };
    shown.panel = panel;
    shown.say = (message) => heard.fire(message);
    await provider.resolveCustomEditor(provider.openCustomDocument(uri), panel);
    if (panel.webview.html.includes('id="data"')) heard.fire({ ready: true });
  }
  const openFile = (file, language) => {
    const editor = new Editor(new Document(file, language));
    window.visibleTextEditors.push(editor);
    visible.fire(window.visibleTextEditors);
    return editor;
  };
  return { api, shown, commands, collections, lenses, openFile, openWith, saved };
}

module.exports = { makeEditor };
