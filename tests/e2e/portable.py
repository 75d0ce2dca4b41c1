#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recording that keeps its names needs no files: `cairn run --symbols`, `cairn symbolize`, and the
names of code that a program generated."""

import os
import pathlib
import shutil

import cairn_test as t

HERE = pathlib.Path.cwd()
t.need("cc", "strip")

SOURCE = """
#include <stdlib.h>
static inline __attribute__((always_inline)) void *get(size_t size) { return malloc(size); }
__attribute__((noinline)) static void *keep(size_t size) { void *p = get(size); __asm__(""); return p; }
int main(void) { return !keep(77777); }
"""
(HERE / "keep.c").write_text(SOURCE)
t.check_equal("cc", t.run(["cc", "-g", "-O2", "-o", "keep", "keep.c"]).status, 0)
shutil.copy("keep", "keep.debug")


def frames(path):
    found = t.report(path, "--full-names")
    stacks = [s for s in found["stacks"] if s["allocated_bytes"] == 77777] if found else []
    if not t.check(len(stacks) == 1, f"{path}: stacks of 77777 bytes: {len(stacks)}"):
        return []
    return [(f["function"], f["line"]) for f in stacks[0]["frames"]
            if f["module"] == str(HERE / "keep")]


def figures(path):
    """Everything in a report but names."""
    found = t.report(path)
    for stack in found["stacks"]:
        for frame in stack["frames"]:
            frame["function"] = frame["file"] = frame["line"] = None
    return found["totals"], found["peak"], found["threads"], len(found["stacks"])


plain = t.fresh_path("plain") + ".cairn"
portable = t.fresh_path("portable") + ".cairn"
t.check_equal("run --symbols none",
              t.run_cairn("run", "-q", "--symbols", "none", "-o", plain, "./keep").status, 0)
t.check_equal("run --symbols all",
              t.run_cairn("run", "-q", "--symbols", "all", "-o", portable, "./keep").status, 0)
wanted = frames(plain)
t.check_equal("names", [name for name, _ in wanted][:3], ["get", "keep", "main"])
before = figures(plain)
os.remove("keep")
shutil.rmtree("cache", ignore_errors=True)
t.check_equal("portable, without the program", frames(portable), wanted)
t.check("from the recording" in t.run_cairn("info", portable).out.decode(), "info tells it")
t.check_equal("plain, without the program", [name for name, _ in frames(plain)][:1], [None])

# later, with what is found then; and again without it
(HERE / "symbols").mkdir()
shutil.copy("keep.debug", "symbols/keep.debug")
result = t.run_cairn("symbolize", "--debug-dir", "symbols", plain)
t.check_equal("symbolize", result.status, 0)
t.check(b": names of " in result.out, f"symbolize says {result.out}")
t.check_equal("symbolized", frames(plain), wanted)
for _ in range(2):
    t.check_equal("symbolize again", t.run_cairn("symbolize", plain).status, 0)
    t.check_equal("what was known stays", frames(plain), wanted)
t.check_equal("figures stay", figures(plain), before)
t.check_equal("mode", oct(os.stat(plain).st_mode & 0o777), oct(0o600))
t.check(not pathlib.Path(plain + ".part").exists(), "no temporary file is left")

result = t.run_cairn("run", "--symbols", "all", "--exec", "true")
t.check_equal("--symbols --exec", result.status, 2)
result = t.run_cairn("run", "--symbols", "some", "true")
t.check_equal("--symbols some", (result.status, b"own, all or none" in result.err), (2, True))
result = t.run_cairn("symbolize", "keep.c")
t.check_equal("symbolize of no recording", (result.status, result.out), (1, b""))

# several processes
several = t.fresh_path("several") + ".cairn"
shutil.copy("keep.debug", "keep")
t.run_cairn("run", "-q", "--symbols", "none", "-o", several, "sh", "-c", "./keep; ./keep; exit 0")
t.check_equal("symbolize a run", t.run_cairn("symbolize", several).status, 0)
os.remove("keep")
shutil.rmtree("cache", ignore_errors=True)
kept = [path for path in pathlib.Path(several).glob("keep.*.cairn")]
t.check_equal("recordings of it", len(kept), 2)
for path in kept:
    t.check_equal(path.name, frames(path), wanted)

# a program that says what it generated
SCRIPT = """
function makeBuffers(n) {
    const all = [];
    for (let i = 0; i < n; i++) all.push(Buffer.allocUnsafeSlow(7000 + i));
    return all;
}
let kept;
for (let round = 0; round < 20; round++) kept = makeBuffers(20);
"""
if shutil.which("node"):
    (HERE / "make.js").write_text(SCRIPT)
    _, recording = t.record(["node", "--perf-basic-prof", "--interpreted-frames-native-stack",
                             "make.js"])
    for path in pathlib.Path("/tmp").glob("perf-*.map"):
        owner = path.name[len("perf-"):-len(".map")]
        if not pathlib.Path("/proc", owner).exists() and path.stat().st_uid == os.getuid():
            if str(HERE / "make.js") in path.read_text(errors="replace"):
                path.unlink()
    # the map is gone, its names are in the recording
    found = t.report(recording)
    stacks = t.stacks_through(found, "makeBuffers") if found else []
    t.check(stacks, "no stack through makeBuffers")
    lines = {frame["line"] for stack in stacks for frame in stack["frames"]
             if frame["function"] == "makeBuffers" and frame["file"] == str(HERE / "make.js")}
    t.check_equal("line of makeBuffers", lines, {2})

result = t.run_cairn("run", "-q", "--python", t.PYTHON, "-c",
                     "import os; print(os.environ['PYTHONMALLOC'])")
t.check_equal("--python", result.out, b"malloc\n")
t.finish()
