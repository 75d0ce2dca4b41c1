#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code that comes and goes: of two libraries that take turns at one address each stack names the right
one, unloaded ones stay named; RTLD_DEEPBIND with what constructors allocate, dlmopen, lazy and immediate binding, $ORIGIN in RUNPATH,
-fno-plt and executables that are not position-independent."""

import os
import shutil
import subprocess

import cairn_test as t

TURNS, BLOCKS = 20, 10
COLOURS = {"red": 30, "blue": 70}
FLAGS = ["-O1", "-g", "-fno-builtin", "-Wall"]
USER = """
#include <stdio.h>
void *red_take(unsigned long bytes);
int main(void) {
    for (int i = 0; i < 10; i++) if (!red_take(30)) return 1;
    puts("used");
    return 0;
}
"""


LOADER = """
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    void *library = ELSEWHERE ? dlmopen(LM_ID_NEWLM, "libred.so", RTLD_NOW)
                              : dlopen("libred.so", RTLD_NOW | (DEEP ? RTLD_DEEPBIND : 0));
    puts(library ? "loaded" : dlerror());
    return library ? 0 : 1;
}
"""


DEEP = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_GLOBAL | RTLD_DEEPBIND);
    void *(*take)(size_t) = library ? (void *(*)(size_t))dlsym(library, "take") : NULL;
    void (*give)(void *) = library ? (void (*)(void *))dlsym(library, "give") : NULL;
    for (int i = 0; take && i < 9; i++) give(take(90));
    puts(give && take(90) ? "taken" : dlerror());
    return library ? 0 : 1;
}
"""
EARLY = """
#include <stdlib.h>
void *kept[5];
__attribute__((constructor)) static void begin(void) { for (int i = 0; i < 5; i++) kept[i] = malloc(50); }
void *take(size_t size) { void *block = malloc(size); __asm__ volatile(""); return block; }
void give(void *block) { free(block); }
"""
ALLOCATOR = """
#include <stddef.h>
static char memory[65536];
static size_t used;
void *malloc(size_t size) { used += size + 31 & ~(size_t)15; return memory + used - (size + 31 & ~(size_t)15); }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) { (void)block; return malloc(size); }
void free(void *block) { (void)block; }
void *take(size_t size) { void *block = malloc(size); __asm__ volatile(""); return block; }
void give(void *block) { free(block); }
"""


def compile_c(name, text, *flags):
    with open(f"{name}.c", "w", encoding="ascii") as file:
        file.write(text)
    subprocess.run(["gcc", *FLAGS, "-o", name, f"{name}.c", *flags], check=True)


def build_libraries():
    os.mkdir("libs")
    for colour in COLOURS:
        compile_c(f"libs/lib{colour}.so", "#include <stdlib.h>\n"
                  f"void *{colour}_take(unsigned long bytes) {{ return malloc(bytes); }}\n",
                  "-shared", "-fPIC")


def check_colours(name, found, wanted_turns):
    for colour, size in COLOURS.items():
        inside = t.stacks_through(found, f"{colour}_take")
        t.check_equal(f"{name}: calls of {colour}_take", sum(s["allocations"] for s in inside),
                      wanted_turns * BLOCKS)
        t.check_equal(f"{name}: bytes of {colour}_take", sum(s["at_exit_bytes"] for s in inside),
                      wanted_turns * BLOCKS * size)
        modules = {os.path.basename(s["frames"][0]["module"] or "?") for s in inside}
        t.check_equal(f"{name}: module of {colour}_take", modules, {f"lib{colour}.so"})


def check(how, wanted_turns=1):
    argv = t.program("modules", how, os.path.abspath("libs"))
    plain = t.run(argv)
    t.check_equal(f"{how}: plain", plain.status, 0)
    for record in (t.record, t.record_alone):
        result, path = record(argv)
        if wanted_turns == 1:  # where a library lands is not promised
            result.check_like(how, plain)
        t.check_equal(f"{how}: status", result.status, 0)
        found = t.report(path)
        if found:
            t.check_nothing_lost(how, found)
            check_colours(how, found, wanted_turns)
            if wanted_turns > 1:
                t.check(b"one place" in result.out, f"{how}: the libraries were at different places")


def check_deepbind(name, text, lost, blocks):
    """A library that finds what it depends on before the program: its calls are those of others, with what its
    constructor allocates; an allocator that it brings is left alone, and counted."""
    compile_c(f"libs/lib{name}.so", text, "-shared", "-fPIC")
    compile_c("deep", DEEP, f'-DLIBRARY="{os.path.abspath("libs")}/lib{name}.so"', "-D_GNU_SOURCE", "-ldl")
    argv = [os.path.abspath("deep")]
    plain = t.run(argv)
    t.check_equal(f"deepbind, {name}: plain", (plain.status, plain.out), (0, b"taken\n"))
    for record in (t.record, t.record_alone):
        result, path = record(argv)
        result.check_like(f"deepbind, {name}", plain)
        found = t.report(path)
        if found:
            t.check_equal(f"deepbind, {name}: lost", found["trust"]["lost"], lost)
            t.check_equal(f"deepbind, {name}: named", found["trust"].get("bypassing"),
                          os.path.abspath(f"libs/lib{name}.so") if lost else None)
            words = t.run_cairn("report", path).out.decode()
            t.check_equal(f"deepbind, {name}: told", f"past cairn: lib{name}.so" in words, bool(lost))
            for function, count in blocks.items():
                inside = t.stacks_through(found, function)
                t.check_equal(f"deepbind, {name}: blocks of {function}", sum(s["allocations"] for s in inside), count)


def check_linked(name, *flags):
    compile_c("libs/user-" + name, USER, *flags, "-Llibs", "-lred", "-Wl,-rpath,$ORIGIN",
              "-Wl,--enable-new-dtags")
    argv = [os.path.abspath("libs/user-" + name)]
    result, path = t.record(argv)
    t.check_equal(f"{name}: end", (result.status, result.out), (0, b"used\n"))
    found = t.report(path)
    if found:
        inside = [s for s in t.stacks_through(found, "red_take", "main")
                  if os.path.basename(s["frames"][0]["module"]) == "libred.so"]
        t.check_equal(f"{name}: blocks", sum(s["at_exit_bytes"] for s in inside), 10 * 30)


def check_callers_path():
    """dlopen and dlmopen of a bare name look along the RUNPATH of whoever calls them."""
    for deep, elsewhere in ((0, 0), (1, 0), (0, 1)):
        compile_c("loader", LOADER, f"-DDEEP={deep}", f"-DELSEWHERE={elsewhere}", "-D_GNU_SOURCE", "-ldl",
                  "-Wl,-rpath,$ORIGIN/libs", "-Wl,--enable-new-dtags")
        plain = t.run([os.path.abspath("loader")])
        t.check_equal("caller's RUNPATH", (plain.status, plain.out), (0, b"loaded\n"))
        for record in (t.record, t.record_alone):
            record([os.path.abspath("loader")])[0].check_like("caller's RUNPATH", plain)


def check_holes(argv, function, lines):
    """The executable's segments do not lie side by side."""
    result, path = t.record(argv)
    t.check_equal(f"{argv[0]}: end", (result.status, len(result.out.splitlines())), (0, lines))
    found = t.report(path)
    info = t.run_cairn("info", path).out.decode()
    module = [line for line in info.splitlines() if line.endswith("/" + os.path.basename(argv[0]))]
    t.check(module and "no build-id" not in module[-1], f"{argv[0]}: {module}")
    if found:
        t.check_equal(f"{argv[0]}: incomplete", found["trust"]["stacks_incomplete"], {})
        t.check(t.stacks_through(found, function), f"{argv[0]}: no stack through {function}")


def check_executables_with_holes():
    rules = "".join(f"t{i}: ; @echo $@ $(subst t,u,$@)\n" for i in range(300))
    with open("rules.mk", "w", encoding="ascii") as file:
        file.write(f"all: {' '.join(f't{i}' for i in range(300))}\n{rules}")
    if shutil.which("make"):
        check_holes(["make", "-n", "-f", "rules.mk"], "main", 300)
    for kind in ("-pie", "-no-pie"):
        compile_c("holes" + kind, USER, kind, "-Llibs", "-lred", "-Wl,-rpath,$ORIGIN/libs",
                  "-Wl,--build-id", "-Wl,-z,max-page-size=0x200000")
        check_holes([os.path.abspath("holes" + kind)], "red_take", 1)


def check_resolvers():
    """Resolvers of indirect functions allocate while the program is bound at once: thread-local variables
    have no values yet then. Each program is bound to one whose first call is another function."""
    library = t.program("libresolved.so")[0]
    for name in ("malloc", "calloc", "realloc", "reallocarray", "aligned"):
        code = f"""#include <stdio.h>
int resolved_{name}(void);
int main(void) {{ printf("%d\\n", resolved_{name}()); return 3; }}"""
        argv = [os.path.abspath(f"resolved-{name}")]
        compile_c(f"resolved-{name}", code, "-Wl,-z,now", library, f"-Wl,-rpath,{os.path.dirname(library)}")
        plain = t.run(argv)
        t.check_equal(f"resolver with {name}: plain", (plain.status, plain.out), (3, b"1\n"))
        for options in ((), ("--sample",)):
            t.record(argv, options=options)[0].check_like(f"resolver with {name} {options}", plain)
        t.record_alone(argv)[0].check_like(f"resolver with {name}, preload alone", plain)


t.need("gcc")
build_libraries()
check_resolvers()
check("turns", TURNS)
check("threads", TURNS)
for kind in ("lazy", "now"):
    check(kind)
check("deepbind")
check_deepbind("early", EARLY, {}, {"begin": 5, "take": 10})
check_deepbind("allocator", ALLOCATOR, {"deepbind": 1}, {"take": 0})
check("namespace")
check_callers_path()
check_linked("lazy", "-Wl,-z,lazy")
check_linked("now", "-Wl,-z,now")
check_linked("no-plt", "-fno-plt")
check_linked("no-pie", "-no-pie", "-fno-pie")
check_executables_with_holes()
t.finish()
