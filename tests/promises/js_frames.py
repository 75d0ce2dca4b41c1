#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=js changes nothing: a node program has the same output, status, descriptors, masks of signals,
directory, environment and options as without cairn, also where it compiles, collects, and starts and ends workers; and
a program without V8 is as it was. `make check-long` has it without a compiler, and with objects that move, too."""

import shutil

import cairn_test as t

LOOK = """
const fs = require("fs"), vm = require("vm"), zlib = require("zlib"), crypto = require("crypto");
const { Worker, isMainThread, parentPort } = require("worker_threads");

const stack = new Error("stack").stack;

function work(i) {
  const buffer = Buffer.alloc(5000 + (i % 7), i);
  zlib.deflateSync(buffer);
  crypto.createHash("sha256").update(buffer).digest();
  vm.runInNewContext(`(function f${i}() { return new ArrayBuffer(100 + ${i % 5}); })()`);
}

if (!isMainThread) {
  for (let i = 0; i < 20; i++) work(i);
  parentPort.postMessage("done");
} else {
  for (let i = 0; i < 100; i++) {
    work(i);
    if (i % 50 === 0) gc();
  }
  let left = 4;
  for (let i = 0; i < 4; i++)
    new Worker(__filename).on("message", () => --left || end());
}

function end() {
  const lines = fs.readFileSync("/proc/thread-self/status", "utf8").split("\\n");
  console.log(lines.filter((line) => /^(Sig[^Q]|Shd)/.test(line)).join("\\n"));
  const files = [];
  for (const one of fs.readdirSync("/proc/self/fd"))
    try {
      const to = fs.readlinkSync("/proc/self/fd/" + one);
      if (!/^(pipe|socket|anon_inode|.proc)/.test(to)) files.push(to);
    } catch {}
  console.log(files.sort().join());
  console.log(process.cwd(), process.execArgv.join(), process.argv0);
  console.log(Object.keys(process.env).filter((name) => !/^(CAIRN_|LD_PRELOAD$|_$)/.test(name)).sort().join());
  console.log(stack.split("\\n").length, Error.stackTraceLimit);
  process.exit(7);
}
"""
OPTION = ["--frames=js"]
shell = ["sh", "-c", "exec 7</dev/null; ls /proc/self/fd | wc -l; ulimit -a; trap; exit 3"]
t.record(shell, options=OPTION)[0].check_like("no V8", t.run(shell))

node = shutil.which("node")
if node:
    program = f"{t.fresh_path('look')}.js"
    with open(program, "w", encoding="utf-8") as source:
        source.write(LOOK)
    for mode in ([], ["--jitless"], ["--stress-compaction"]) if t.IS_LONG else ([],):
        argv = [node, "--expose-gc", *mode, program]
        plain = t.run(argv)
        t.check_equal(f"{mode}: plain", plain.status, 7)
        result, recording = t.record(argv, options=OPTION)
        result.check_like(f"{mode}: recorded", plain)
        found = t.report(recording, "--focus", "^work$", "--top", "1")  # of all stacks 200 MB
        t.check("stacks have its frames" not in t.run_cairn("info", recording).out.decode() or
                any(frame["function"] == "work" for stack in found["stacks"] for frame in stack["frames"]),
                f"{mode}: stacks have frames of JavaScript")
else:
    t.skip_part("node is not installed")
t.finish()
