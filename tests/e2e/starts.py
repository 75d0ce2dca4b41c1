#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose file is not where the kernel says: given to a dynamic linker as a word, removed or replaced
while they run, by themselves too, with libraries that were opened by a relative path or are gone, or programs without a file; and where no memory may become code. They are recorded, and names are
those of the file that ran, never of another one with its path."""

import os
import pathlib
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


OWN_FILE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>
static void *kept[300];
__attribute__((noinline)) void *HOW(size_t size) { void *block = malloc(size); __asm__ volatile(""); return block; }
static int from_memory(char **words, char **variables) {
    int from = open(words[0], O_RDONLY), to = memfd_create("prog", MFD_CLOEXEC);
    words[1] = "again";
    return sendfile(to, from, 0, 1 << 24) > 0 && fexecve(to, words, variables);
}
int main(int count, char **words, char **variables) {
    void *(*take)(size_t) = HOW;
    if (!strcmp(words[1], "memory")) return from_memory(words, variables);
    if (!strcmp(words[1], "gone")) unlink(words[0]);
    if (!strcmp(words[1], "moved")) rename(words[0], "other");
    if (!strcmp(words[1], "library")) {
        void *library = dlopen(words[2], RTLD_NOW);
        take = (void *(*)(size_t))dlsym(library, "plugged");
        unlink(words[2]);
    }
    for (int i = 0; i < 300; i++) kept[i] = take(1000);
    if (!strcmp(words[1], "library")) getchar();
    return write(1, "done\\n", 5) == 5 ? 3 : 1;
}
"""


def of_own_file(how):
    """A program that removes or moves its file as it begins, or has none with a name."""
    program = build(f"own_{how}", OWN_FILE, f"-DHOW=take_{how}", "-Wl,--build-id=uuid")
    result, path = t.record([program, how])
    t.check_equal(f"{how}: end", (result.status, result.out), (3, b"done\n"))
    for name in (program, "other"):
        if os.path.exists(name):
            os.remove(name)
    found = t.report(recorded_as(path, "memfd") if how == "memory" else path)
    if found:
        stacks = t.stacks_through(found, f"take_{how}", "main")
        t.check_equal(f"{how}: blocks", sum(one["allocations"] for one in stacks), 300)


def recorded_as(directory, name):
    if not os.path.isdir(directory):
        return directory
    return next(os.path.join(directory, one) for one in os.listdir(directory) if one.startswith(name))


def holds(pid, name):
    """cairn run has the file of that name open, which has none any more."""
    links = pathlib.Path(f"/proc/{pid}/fd")
    return any(name in os.readlink(one) for one in links.iterdir() if one.is_symlink())


def library_removed():
    """A library that is extracted, opened and removed, as those of packed programs are."""
    library = build("extracted.so", PLUGIN, "-shared", "-fPIC", "-Wl,--build-id=uuid")
    program = build("own_library", OWN_FILE, "-DHOW=unused")
    path = t.fresh_path("library.cairn")
    run = subprocess.Popen([t.CAIRN, "run", "-q", "-o", path, "--", program, "library", library], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE)
    t.wait_until(lambda: holds(run.pid, "extracted.so (deleted)"), seconds=t.PATIENCE_S)
    out, _ = run.communicate(b"\n", timeout=t.PATIENCE_S)
    t.check_equal("library: end", (run.returncode, out), (3, b"done\n"))
    found = t.report(path)
    if found:
        stacks = t.stacks_through(found, "plugged", "main")
        t.check_equal("library: blocks", sum(one["allocations"] for one in stacks), 300)


SEALED = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
void *kept[600];
__attribute__((noinline)) void *leaf(size_t size) { void *block = malloc(size); __asm__ volatile(""); return block; }
static int seal(void) {
    enum { MSEAL = 462, MOST = 400 };
    unsigned long start[MOST], end[MOST];
    char line[4096];
    int count = 0, sealed = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (count < MOST && fgets(line, sizeof line, maps))
        if (strchr(line, '/') && sscanf(line, "%lx-%lx", &start[count], &end[count]) == 2) count++;
    fclose(maps);
    for (int i = 0; i < count; i++) sealed += !syscall(MSEAL, start[i], end[i] - start[i], 0);
    return sealed;
}
int main(void) {
    enum { SET_MDWE = 65, REFUSE = 1 };
    int is_set = !prctl(SET_MDWE, REFUSE, 0, 0, 0), is_sealed = seal() > 0, used = 0;
    printf("%d %d\\n", is_set, is_sealed);
    for (fflush(stdout); getchar() == '.'; fflush(stdout)) {
        for (int i = 0; i < 300; i++) kept[used++ % 600] = leaf(1000);
        puts("kept");
    }
    return 3;
}
"""


def check_sealed():
    """No memory may become code (PR_SET_MDWE), and what is mapped stays as it is (mseal), where the kernel has both."""
    program = build("sealed", SEALED)
    result, path = t.record([program], stdin=b".")
    t.check_equal("sealed: end", (result.status, result.out[-5:]), (3, b"kept\n"))
    if b"1 1" not in result.out:
        t.skip_part(f"this kernel has no PR_SET_MDWE or no mseal: {result.out[:3].decode()}")
    found = t.report(path)
    if found:
        check_leaf("sealed", found, program)
        t.check_equal("sealed: lost", found["trust"]["lost"], {})
    run = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    run.stdout.readline()
    attached = Attached(run.pid, "--exact", "--no-scan-heap")
    run.stdin.write(b".")
    t.check_equal("sealed, attached: kept", run.stdout.readline(), b"kept\n")
    found = attached.leave()
    run.stdin.write(b".")
    t.check_equal("sealed: goes on", run.stdout.readline(), b"kept\n")
    run.stdin.close()
    t.check_equal("sealed, attached: end", run.wait(t.PATIENCE_S), 3, is_grave=True)
    if found:
        check_leaf("sealed, attached", found, program)


NODES = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>
struct NODE { struct NODE *next; int values[10]; } *list;
int main(int count, char **words, char **variables) {
    if (count > 1) {
        int from = open(words[0], O_RDONLY), to = memfd_create("prog", MFD_CLOEXEC);
        words[1] = NULL;
        return sendfile(to, from, 0, 1 << 24) > 0 && fexecve(to, words, variables);
    }
    for (int i = 0; i < 1000; i++) {
        struct NODE *node = calloc(1, sizeof *node);
        node->next = list;
        list = node;
    }
    puts("ready");
    fflush(stdout);
    return getchar() == '.' ? 3 : 1;
}
"""


def types_of(how, change):
    """Types and variables of a running program whose file is gone or another one."""
    program = build(f"nodes_{how}", NODES, f"-DNODE=node_{how}", "-Wl,--build-id=uuid")
    run = subprocess.Popen([program] + ["memory"] * (how == "memory"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.check_equal(f"types, {how}: it is there", run.stdout.readline(), b"ready\n")
    change(program)
    rows = t.answer(str(run.pid), "types")["types"]
    blocks = [row["blocks"] for row in rows if row["type"] == f"node_{how}"]
    t.check_equal(f"types, {how}: blocks", blocks, [1000])
    rows = t.answer(str(run.pid), "owners")["owners"]
    t.check("list" in [row["name"] for row in rows], f"owners, {how}: {rows[:3]}")
    run.communicate(b".", timeout=t.PATIENCE_S)
    t.check_equal(f"types, {how}: end", run.returncode, 3)


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
for each in ("gone", "moved", "memory"):
    of_own_file(each)
library_removed()
check_sealed()
types_of("removed", os.remove)
types_of("replaced", replace)
types_of("memory", os.remove)
t.finish()
