// SPDX-License-Identifier: Apache-2.0
// "Record this test" above tests of Rust, pytest, GoogleTest and Catch2.
"use strict";

const { execFile } = require("node:child_process");
const path = require("node:path");
const vscode = require("vscode");

const OUTPUT_BYTES = 64 << 20;

const FRAMEWORKS = [
  {
    language: "rust",
    pattern: /#\[(?:\w+::)?test[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)/g,
    kind: "cargo",
  },
  { language: "python", pattern: /^(?:async )?def (test\w*)|^[ \t]+(?:async )?def (test\w*)/gm, kind: "pytest" },
  { language: "cpp", pattern: /\bTEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)/g, kind: "gtest" },
  { language: "cpp", pattern: /\b(?:TEST_CASE|SCENARIO)\s*\(\s*"((?:[^"\\]|\\.)*)"/g, kind: "catch2" },
];

/** The class around a method of Python: the last one before it that is not indented. */
function classBefore(text, offset) {
  const found = [...text.slice(0, offset).matchAll(/^class (\w+)/gm)];
  return found.length ? found[found.length - 1][1] : null;
}

function nameOf(kind, match, text) {
  if (kind === "gtest") return `${match[1]}.${match[2]}`;
  if (kind !== "pytest" || match[1]) return match[1];
  const of = classBefore(text, match.index);
  return of ? `${of}::${match[2]}` : null;
}

/** Tests of a text: [{kind, name, offset}]. */
function testsOf(language, text) {
  return FRAMEWORKS.filter((one) => one.language === language).flatMap(({ pattern, kind }) =>
    [...text.matchAll(pattern)].flatMap((match) => {
      const name = nameOf(kind, match, text);
      return name ? [{ kind, name, offset: match.index + match[0].search(/\S/) }] : [];
    }),
  );
}

/** Standard output of a program; null: it failed. */
function outputOf(program, words, cwd) {
  return new Promise((resolve) =>
    execFile(program, words, { cwd, encoding: "utf8", maxBuffer: OUTPUT_BYTES }, (error, out) =>
      resolve(error ? null : out),
    ),
  );
}

function messageOf(line) {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** Builds the tests of a crate, without recording that, and finds the one with a test of such a name. */
async function findCargoTest(name, cwd) {
  const built = await outputOf("cargo", ["test", "--no-run", "--message-format=json"], cwd);
  if (built === null) throw new Error("cairn: cargo test --no-run failed: build the tests first");
  for (const line of built.split("\n")) {
    const message = messageOf(line);
    if (!message?.executable || !message.profile?.test) continue;
    const directory = path.dirname(message.manifest_path);
    const listed = (await outputOf(message.executable, ["--list"], directory)) ?? "";
    const found = listed
      .split("\n")
      .map((row) => row.replace(/: test$/, ""))
      .find((row) => row === name || row.endsWith(`::${name}`));
    if (found) return { options: [], command: [message.executable, found, "--exact"], cwd: directory };
  }
  throw new Error(`cairn: cargo has no test ${name}`);
}

/** What records a test: options of `cairn run`, the command, and where. `program` is that of GoogleTest and Catch2. */
async function commandOf(test, file, cwd, program) {
  if (test.kind === "cargo") return findCargoTest(test.name, path.dirname(file));
  if (test.kind === "pytest")
    return { options: ["--python"], command: ["python3", "-m", "pytest", `${file}::${test.name}`], cwd };
  if (test.kind === "gtest") return { options: [], command: [program, `--gtest_filter=${test.name}`], cwd };
  return { options: [], command: [program, test.name.replace(/[,[\]*\\]/g, "\\$&")], cwd };
}

class Lenses {
  provideCodeLenses(document) {
    if (!vscode.workspace.getConfiguration("cairn").get("codeLens")) return [];
    return testsOf(document.languageId, document.getText()).map((test) => {
      const at = document.positionAt(test.offset);
      return new vscode.CodeLens(new vscode.Range(at, at), {
        title: "cairn: record this test",
        command: "cairn.recordTest",
        arguments: [document.uri.toString(), test],
      });
    });
  }
}

module.exports = { Lenses, testsOf, commandOf };
