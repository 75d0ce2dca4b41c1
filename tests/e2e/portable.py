#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recording that keeps its names needs no files: `cairn run --symbols`, `cairn symbolize`, and the
names of code that a program generated."""

import os
import pathlib
import re
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

# As a program of .NET in one file: a stripped runtime, and code that it writes to a map, one method calling the other.
DOTNET = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static void *kept[100];
static unsigned char *code, *used;
static void take(void) { for (int i = 0; i < 100; i++) kept[i] = malloc(10000); }
typedef void call(void);
static void emit(FILE *map, call *callee, const char *name) {
    static const unsigned char head[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8}, tail[] = {0xff, 0xd0, 0x5d, 0xc3};
    unsigned char *start = used;
    memcpy(used, head, sizeof head);
    memcpy(used + sizeof head, &callee, sizeof callee);
    memcpy(used + sizeof head + sizeof callee, tail, sizeof tail);
    used += sizeof head + sizeof callee + sizeof tail;
    fprintf(map, "%lx %lx %s\n", (long)start, (long)(used - start), name);
}
static void compile(void) { ((call *)(void *)code)(); puts(""); }
int main(void) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    code = used = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    emit(map, take, "instance uint8[] [System.Private.CoreLib] System.Text.Encoding::GetBytes(string)[Optimized]");
    call *outer = (call *)(void *)used;
    emit(map, compile, "instance void [Shop] Shop.Program+<Main>d__1::MoveNext()[QuickJitted]");
    fclose(map);
    outer();
    printf("%s", path);
}
"""
if os.uname().machine == "x86_64":
    (HERE / "shop.c").write_text(DOTNET)
    t.run(["gcc", "-O0", "-s", "-fno-asynchronous-unwind-tables", "-o", "Shop", "shop.c"])
    result, recording = t.record(["./Shop"])
    pathlib.Path(result.out.decode().strip()).unlink()
    shown = t.run_cairn("report", "--view", "stacks", recording).out.decode()
    t.check(re.search(r"\n +System.Text.Encoding.GetBytes +System.Private.CoreLib\n +Shop.Program.Main +Shop\n", shown),
            f"methods of .NET, without the runtime between them: {shown}")
    t.check("Shop+0x" not in shown, f"the runtime is hidden: {shown}")
    whole = t.run_cairn("report", "--view", "stacks", "--all-frames", recording).out.decode()
    t.check("Shop+0x" in whole, f"the runtime in all frames: {whole}")
    first = t.run_cairn("report", recording).out.decode()
    t.check(re.search(r"977 KiB +100 blocks +Shop.Program.Main", first), f"the program's own method leads: {first}")

result = t.run_cairn("run", "-q", "--python", t.PYTHON, "-c",
                     "import os; print(os.environ['PYTHONMALLOC'])")
t.check_equal("--python", result.out, b"malloc\n")
t.finish()
