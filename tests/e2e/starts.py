#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose file is not where the kernel says: given to a dynamic linker as a word, removed or replaced
while they run, with libraries that were opened by a relative path or are gone. They are recorded, and names are
those of the file that ran, never of another one with its path."""

import os
import re
import shutil
import subprocess

import cairn_test as t
from attached import Attached, Target

PROGRAM = """
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
void *kept[300];
__attribute__((noinline)) void *leaf(size_t size) { void *block = malloc(size); __asm__ volatile(""); return block; }
int main(int count, char **words) {
    for (int i = 0; i < 300; i++) kept[i] = leaf(1000);
    if (count > 1) {
        void *library = dlopen("./plugin.so", RTLD_NOW);
        void *(*plugged)(size_t) = library && !chdir("/") ? (void *(*)(size_t))dlsym(library, "plugged") : NULL;
        for (int i = 0; plugged && i < 20; i++) kept[i] = plugged(70);
        if (!plugged) return 1;
    }
    return write(1, "done\\n", 5) == 5 ? 3 : 1;
}
"""
PLUGIN = """
#include <stdlib.h>
__attribute__((noinline)) void *plugged(size_t size) { void *block = malloc(size); __asm__ volatile(""); return block; }
"""
EARLY = """
#include <stdlib.h>
void *volatile early;
__attribute__((constructor)) static void begin(void) { early = malloc(40); }
"""
OTHER = "int impostor(void) { return 1; } int main(void) { return impostor(); }"


def build(name, text, *flags):
    with open("built.c", "w", encoding="ascii") as file:
        file.write(text)
    subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", "-o", name, "built.c", *flags, "-ldl"], check=True)
    return os.path.abspath(name)


def check_leaf(what, found, program, count=300):
    stacks = t.stacks_through(found, "leaf", "main")
    t.check_equal(f"{what}: blocks", sum(one["allocations"] for one in stacks), count)
    t.check_equal(f"{what}: its file", {one["frames"][0]["module"] for one in stacks}, {program})


def given_to_linker():
    build("libearly.so", EARLY, "-shared", "-fPIC")
    early = ["-L.", "-Wl,--no-as-needed", "-learly", "-Wl,-rpath,$ORIGIN"]
    for name, flags in (("p", early), ("fixed", ["-no-pie"]), ("unmarked", ["-Wl,--build-id=none"])):
        program = build(name, PROGRAM, *flags)
        for what, argv in (("run", [linker, f"./{name}"]), ("script", ["sh", "-c", f"exec {linker} ./{name}"]),
                           ("option", [linker, "--library-path", "/nowhere", f"./{name}"])):
            plain = t.run(argv)
            t.check_equal(f"{name}, {what}: plain", (plain.status, plain.out), (3, b"done\n"))
            result, path = t.record(argv)
            result.check_like(f"{name}, {what}", plain)
            found = t.report(path)
            if found:
                check_leaf(f"{name}, {what}", found, program)
                t.check_equal(f"{name}, {what}: incomplete", found["trust"]["stacks_incomplete"], {})
                if name == "p":
                    t.check_equal(f"{what}: before main", len(t.stacks_through(found, "begin")), 1)
                words = t.run_cairn("report", path).out.decode()
                t.check(words.startswith(f"{name} "), f"{name}, {what}: its name: {words[:200]}")


def given_with_allocator():
    """The linker puts the executable among the libraries, with cairn's reservations right below."""
    archive = subprocess.run(["gcc", "-print-file-name=libjemalloc.a"], check=True, text=True,
                             capture_output=True).stdout.strip()
    if not os.path.isabs(archive):
        t.skip_part("no jemalloc to link with")
        return
    for name, flags in (("own", []), ("own_fixed", ["-no-pie"])):
        program = build(name, PROGRAM, archive, "-lpthread", "-lm", "-lstdc++", *flags)
        for options in [], ["--exec"]:
            what = f"{name} allocator {' '.join(options)}"
            result, path = t.record([linker, f"./{name}"], options=options)
            t.check_equal(f"{what}: end", (result.status, result.out), (3, b"done\n"))
            found = t.report(path)
            if found:
                check_leaf(what, found, program)


def attach(what, target, wanted, *forbidden):
    """`wanted`: a file's name at the end of the stack's frames."""
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    t.check_equal(f"{what}: kept", target.tell("keep 300 1000"), "done")
    found = attached.leave()
    target.end(what)
    if not found:
        return
    stacks = t.stacks_through(found, "main")
    t.check_equal(f"{what}: blocks", sum(one["allocations"] for one in stacks if one["at_exit_bytes"] >= 300000), 300)
    names = {one for stack in found["stacks"] for one in t.functions(stack)}
    t.check(not names & set(forbidden), f"{what}: {names}")
    modules = {frame["module"] for stack in stacks for frame in stack["frames"]}
    t.check(any(os.path.basename(one or "").startswith(wanted) for one in modules), f"{what}: {modules}")


def attached_to_linker():
    attach("attach to ld.so", Target(before=(linker,)), "attached")


def removed(what, change):
    path = shutil.copy(t.PROGRAMS / "attached", f"server-{what}")
    target = Target(path=os.path.abspath(path))
    change(path)
    attach(what, target, f"server-{what}", "impostor")


def removed_library():
    os.mkdir("server")
    for name in ("attached", "libplugin.so"):
        shutil.copy(t.PROGRAMS / name, "server")
    target = Target(path=os.path.abspath("server/attached"))
    t.check_equal("plugin: loaded", target.tell("plugin 1 10"), "done")
    os.remove("server/libplugin.so")
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    t.check_equal("plugin: kept", target.tell("plugin 300 1000"), "done")
    found = attached.leave()
    target.end("plugin")
    if found:
        stacks = [one for one in found["stacks"] if "libplugin.so" in (one["frames"][0]["module"] or "")]
        t.check_equal("plugin: blocks", sum(one["allocations"] for one in stacks), 300)
        t.check(all(one["frames"][0]["function"] for one in stacks) or os.getuid(), f"plugin: names: {stacks}")


def replace(path):
    build("new", OTHER)
    os.rename("new", path)


def relative():
    build("plugin.so", PLUGIN, "-shared", "-fPIC")
    program = build("p", PROGRAM)
    result, path = t.record([program, "plug"])
    t.check_equal("relative: end", (result.status, result.out), (3, b"done\n"))
    found = t.report(path)
    if found:
        stacks = t.stacks_through(found, "plugged")
        t.check_equal("relative: blocks", sum(one["allocations"] for one in stacks), 20)
        t.check_equal("relative: its file", {one["frames"][0]["module"] for one in stacks},
                      {os.path.abspath("plugin.so")})


t.need("gcc", "readelf")
t.need_attach()
build("p", PROGRAM)
linker = re.search(r"interpreter: (.*)\]", subprocess.run(["readelf", "-lW", "p"], check=True, text=True,
                                                         capture_output=True).stdout)[1]
given_to_linker()
given_with_allocator()
attached_to_linker()
removed("gone", os.remove)
removed("replaced", replace)
removed_library()
relative()
t.finish()
