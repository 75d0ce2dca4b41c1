#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of other releases of glibc, by their own ld.so: those before 2.34 have dlsym in libdl, which a program may
have from the start, later or never. Each is recorded, started and attached to, as if it were of this release."""

import os
import pathlib
import re

import cairn_test as t
import glibc_versions

# Waits for a byte after its first blocks, so that it can be attached to.
SOURCE = """
#include <stdlib.h>
#include <unistd.h>
void *kept[100];
__attribute__((noinline)) void take(int count, int size) {
    for (int i = 0; i < count; i++) { free(kept[i]); kept[i] = malloc(size); }
}
int main(int argc, char **argv) {
    char byte;
    take(100, 700);
    if (argc > 1 && read(0, &byte, 1) == 1) take(50, 900);
    write(1, "done\\n", 5);
    exit(3);
}
"""
BEGIN = (".globl _start\n_start: .cfi_startproc\n.cfi_undefined rip\nxor %ebp, %ebp\nmov (%rsp), %rdi\nlea 8(%rsp), %rsi\nand $-16, %rsp\ncall main\nhlt\n.cfi_endproc\n"
         ".section .note.GNU-stack,\"\",@progbits\n")


def build(version, libraries):
    """A program for that release's ld.so, or None."""
    try:
        found = glibc_versions.loader(version, os.environ.get("GLIBC_DIR", "."))
    except OSError as problem:
        return t.skip_part(f"glibc {version}: {problem}")
    if not found:
        return None
    place, name = pathlib.Path(found[1]), os.path.abspath(f"glibc{version}-{len(libraries)}")
    made = t.run(["gcc", "-O1", "-g", "-fno-builtin", "-nostdlib", "-Wl,--allow-shlib-undefined", "-Wl,--disable-new-dtags",
                  f"-Wl,-rpath,{place}", f"-Wl,--dynamic-linker={found[0]}", "-o", name, "begin.s", "source.c",
                  "-Wl,--no-as-needed", *(str(place / one) for one in libraries), str(place / "libc.so.6")])
    t.check_equal(f"{name}: {made.err.decode()}", made.status, 0)
    return name


def calls_of_take(found):
    return sum(stack["allocations"] for stack in t.stacks_through(found, "take")) if found else None


def check(version, libraries):
    program = build(version, libraries)
    if not program:
        return
    name = os.path.basename(program)
    result, path = t.record([program])
    t.check_equal(f"{name}: end", (result.status, result.out, result.err), (3, b"done\n", b""))
    t.check_equal(f"{name}: calls", calls_of_take(t.report(path)), 100)
    with t.Process([program, "wait"], stdin=t.subprocess.PIPE, stdout=t.subprocess.PIPE, env=t.environment()) as process:
        t.wait_until(lambda: t.is_in_state(process.pid, "S") and re.search(r"libc[-.]", open(f"/proc/{process.pid}/maps").read()))
        path = t.fresh_path("attached") + ".cairn"
        with t.Process([t.CAIRN, "attach", str(process.pid), "--exact", "-o", path], stdout=t.subprocess.DEVNULL,
                       stderr=t.subprocess.PIPE, env=t.environment()) as attach:
            t.wait_until(lambda: attach.poll() is not None or
                         b"recording" in t.run_cairn("ctl", str(process.pid), "status").out)
            out, _ = process.communicate(b"x")
            t.check_equal(f"{name}, attached: end", (process.wait(), out), (3, b"done\n"))
            said = attach.communicate()[1].decode()
        t.check_equal(f"{name}, attached: {said}: calls", calls_of_take(t.report(path) if os.path.exists(path) else None), 50)


t.need("gcc", "dpkg-deb")
if os.uname().machine != "x86_64":
    t.cannot_run_here("programs without start files are written for x86-64 here")
pathlib.Path("source.c").write_text(SOURCE, encoding="ascii")
pathlib.Path("begin.s").write_text(BEGIN, encoding="ascii")
for each in glibc_versions.SUITES:
    check(each, [])
    check(each, ["libdl.so.2"])
t.finish()
