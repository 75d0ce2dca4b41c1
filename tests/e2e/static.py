#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libcairn_static.a: fully static programs, in C and C++, with threads and signal handlers, are recorded exactly
and with whole stacks; nobody asking for it, they leave no file."""

import pathlib
import shutil
import subprocess

import cairn_test as t

# as `make install` writes them
WRAPS = subprocess.run([t.SOURCE / "dev/exported-names.sh", "heap"], capture_output=True, check=True).stdout.decode().split()
LINK = next(line.replace("@WRAPS@", ",".join(f"--wrap={name}" for name in WRAPS)).split(":", 1)[1].split(" -L")[0].split()
            for line in (t.SOURCE / "bindings/c/cairn-static.pc.in").read_text().splitlines() if line.startswith("Libs:"))


def build(source, *options, compiler="gcc"):
    output = pathlib.Path.cwd() / (f"{pathlib.Path(source).stem}-{compiler}" + "".join(options).replace("/", "_"))
    made = subprocess.run([compiler, *options, "-D_GNU_SOURCE", "-O1", "-g", "-fno-builtin", f"-I{t.SOURCE}",
                           f"-I{t.SOURCE}/include", str(t.SOURCE / source), "-o", str(output), *LINK,
                           f"-L{t.BUILD}", "-lcairn_static", "-pthread"], capture_output=True, check=False)
    t.check(made.returncode == 0, f"{source}: {made.stderr.decode()[-500:]}")
    return str(output)


def recorded(program, *arguments):
    result, path = t.record([program, *arguments])
    found = t.report(path)
    if found:
        t.check_sums(program, found)
        t.check_nothing_lost(program, found)
    return result, found


BY_NAME = """
#include <stddef.h>
void *cairn_embed_malloc(size_t bytes), *cairn_embed_calloc(size_t count, size_t bytes), *cairn_embed_realloc(void *block, size_t bytes);
void cairn_embed_free(void *block);
int cairn_embed_posix_memalign(void **result, size_t alignment, size_t bytes);
__attribute__((noinline)) static int by_name(void) {
    void *aligned = NULL;
    for (int i = 0; i < 100; i++) {
        cairn_embed_free(cairn_embed_realloc(cairn_embed_malloc(100), 300));
        cairn_embed_free(cairn_embed_calloc(2, 10));
    }
    return cairn_embed_posix_memalign(&aligned, 64, 1000);
}
int main(void) { return by_name(); }
"""


def by_name(compiler):
    """An allocator that calls cairn by name, as that of bindings/rust."""
    pathlib.Path("by_name.c").write_text(BY_NAME, "ascii")
    output = str(pathlib.Path(f"by_name-{compiler}").absolute())
    made = subprocess.run([compiler, "-static", "-O1", "-g", "by_name.c", "-o", output, "-Wl,--eh-frame-hdr", f"-L{t.BUILD}",
                           "-lcairn_embed", "-pthread"], capture_output=True, check=False)
    t.check(made.returncode == 0, f"{compiler}, by name: {made.stderr.decode()[-500:]}")
    _, found = recorded(output)
    if found:
        of_it = t.stacks_through(found, "by_name")
        t.check_equal(f"{compiler}, by name: calls", sum(s["allocations"] for s in of_it), 301)
        t.check_equal(f"{compiler}, by name: bytes", sum(s["allocated_bytes"] for s in of_it), 100 * (100 + 300 + 20) + 1000)
        t.check_equal(f"{compiler}, by name: left", sum(s["at_exit_bytes"] for s in of_it), 1000)


t.need("gcc", "g++")
leak = build("tests/programs/leak.c", "-static")
t.check_equal("alone: status", t.run([leak]).status, t.run(t.program("leak")).status)
t.check_equal("alone: files", list(pathlib.Path.cwd().glob("*.cairn")), [])
_, found = recorded(leak)
if found:
    small = t.stacks_through(found, "leak_small", "main", "_start")
    t.check_equal("leaked in one function", [(s["at_exit_bytes"], s["at_exit_blocks"]) for s in small],
                  [(2400, 100)])
_, found = recorded(build("tests/programs/threads.c", "-static"), "short")
if found:
    inside = t.stacks_through(found, "short_body")
    t.check_equal("calls of threads", sum(s["allocations"] for s in inside), 80 * 1001)
if shutil.which("musl-gcc"):
    by_name("musl-gcc")
else:
    t.skip_part("musl, since there is no musl-gcc")
by_name("gcc")
containers = build("tests/programs/containers.cc", "-static", compiler="g++")
dynamic, there = t.record(t.program("containers"))
result, found = recorded(containers)
t.check_equal("C++: output", (result.status, result.out), (dynamic.status, dynamic.out))
whole = t.report(there)
if found and whole:
    calls = [sum(s["allocations"] for s in r["stacks"] if "main" in t.functions(s)) for r in (found, whole)]
    t.check_equal("C++: calls below main, static and dynamic", calls[0], calls[1])
regions = build("examples/regions.c", "-static-pie")
result, found = recorded(regions)
t.check(result.out.startswith(b"load: 2000 allocations of 120000 bytes"), f"regions: {result.out}")
storm = t.run([build("tests/programs/signal_storm.c", "-static")],
              env={"CAIRN_OUTPUT": str(pathlib.Path.cwd() / "storm.cairn")})
t.check_equal("signal storm", storm.status, 0)
found = t.report("storm.cairn")
if found:
    t.check_sums("storm", found)
t.finish()
