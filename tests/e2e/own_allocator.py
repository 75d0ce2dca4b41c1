#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Allocators that are linked into the executable: jemalloc and tcmalloc in C and C++ programs, in Rust
programs under the names of Rust's jemalloc crate, beside libc's malloc, under cairn run and cairn
attach. Totals, peaks and stacks are those of the program's own account, or those of the same program
on libc; an allocator whose code does not allow it is refused in one line, and its program untouched. Of tcmalloc
`make check` has its account alone, and attaching."""

import glob
import os
import signal
import subprocess

import cairn_test as t
import ledger

SOURCES = t.SOURCE / "tests/programs"
# Archive: programs, with the functions whose stacks are compared with those on libc.
ARCHIVES = {"jemalloc": "libjemalloc.a", "tcmalloc": "libtcmalloc_minimal.a"}
PROGRAMS = {
    ("mixed",): ["as_parser", "as_cache", "as_buffer", "as_page"],
    ("realloc_chain",): ["chain_begin", "chain_grow", "chain_shrink"],
    ("threads", "short"): ["short_body"],
    ("exceptions",): ["all_forms", "catcher"],
}


def find(name):
    found = glob.glob(f"/usr/lib/*-linux-gnu/{name}")
    return found[0] if found else None


def build(name, source, *extra, output=None):
    """A program of tests/programs, or of a text, with an allocator inside."""
    target = os.path.abspath(output or name)
    compiler = ["g++", "-std=c++17"] if str(source).endswith(".cc") else ["gcc", "-std=gnu17"]
    result = t.run([*compiler, "-D_GNU_SOURCE", "-O1", "-g", "-fno-builtin", f"-I{t.SOURCE}",
                    f"-I{t.SOURCE}/include", "-o", target, str(source), *extra, "-lstdc++", "-lm",
                    "-pthread", "-ldl"])
    t.check_equal(f"{name} is built", (result.status, result.err.decode()), (0, ""))
    return target


def source_of(name):
    return next(path for path in (SOURCES / f"{name}.c", SOURCES / f"{name}.cc") if path.exists())


def sums(found, function):
    stacks = [stack for stack in found["stacks"]
              if any(name.split("(")[0] == function for name in t.functions(stack))]
    return tuple(sum(stack[field] for stack in stacks)
                 for field in ("allocations", "allocated_bytes", "at_exit_bytes", "at_exit_blocks"))


def compare_with_libc(name, archive):
    for (program, *words), functions in PROGRAMS.items():
        what = f"{program} with {name} inside"
        on_libc = t.report(t.record(t.program(program, *words))[1])
        target = build(what.replace(" ", "_"), source_of(program), archive)
        result, path = t.record([target, *words])
        result.check_like(what, t.run([target, *words]))
        found = t.report(path)
        for function in functions:
            t.check(sums(on_libc, function)[0] > 0, f"{program}: nothing through {function}")
            t.check_equal(f"{what}: {function}", sums(found, function), sums(on_libc, function))
        t.check_sums(what, found)
        t.check_nothing_lost(what, found)


def check_account(what, found, text):
    calls, size, frees, left, peak = map(int, text.split())
    totals = found["totals"]
    t.check_equal(f"{what}: calls, bytes, frees, left, peak",
                  (totals["allocations"], totals["allocated_bytes"], totals["frees"],
                   found["at_exit"]["bytes"], found["peak"]["bytes"]), (calls, size, frees, left, peak))


def whole_account(name, archive, *flags):
    """A program that knows of every block: with stacks, and in the other modes."""
    target = build(f"owned_{name}", SOURCES / "owned.c", archive, *flags)
    plain = t.run([target])
    if not flags:  # it allocates for itself as it begins
        result, path = t.record([target])
        calls, size, _, left, _ = map(int, result.out.split())
        t.check_equal(f"owned with {name}: calls, bytes, left", sums(t.report(path), "work")[:3],
                      (calls, size, left))
        return
    for options in ((), ("--no-stacks",), ("--ages",), ("--free-stacks",)):
        what = f"owned with {name} {' '.join(options)}"
        result, path = t.record([target], options=options)
        result.check_like(what, plain)
        found = t.report(path)
        check_account(what, found, result.out.decode())
        t.check_sums(what, found)
        t.check_nothing_lost(what, found)
    result, path = t.record([target], options=("--sample", "--rate", "1"))
    check_account(f"owned with {name}, every byte sampled", t.report(path), result.out.decode())


def alignments(name, archive):
    """Aligned calls are known of these allocators too, aligned operator new among them."""
    target = build(f"aligned_{name}", SOURCES / "aligned.cc", archive)
    found = t.report(t.record([target])[1])
    calls = {}
    for stack in found["stacks"]:
        for one in stack.get("aligned", {"alignments": []})["alignments"]:
            calls[one["alignment"]] = calls.get(one["alignment"], 0) + one["calls"]
    by_new = [stack["aligned"] for stack in t.stacks_through(found, "by_new")]
    t.check_equal(f"{name}: aligned calls", [calls.get(alignment) for alignment in (128, 256, 4096)], [200, 100, 50])
    t.check_equal(f"{name}: operator new", [(one["calls"], one["usual_alignment"], one["waste_bytes"])
                                            for one in by_new], [(150, 64, None)])


def accounts_of_processes(archive):
    """Children that a program forks go on with the allocator led to cairn."""
    for program, *words in (("births", "fork"), ("short_threads", "many", 50)):
        target = build(f"{program}_owned", source_of(program), archive)
        result, path, accounts = ledger.recorded([target, *map(str, words)])
        result.check_like(program, t.run([target, *map(str, words)],
                                         env={"LEDGER": t.fresh_path("plain")}))
        found = ledger.reports(path)
        for pid, account in accounts.items():
            ledger.check(f"{program} {pid}", found.get(pid), account)


# A malloc of the program's own that asks libc for its blocks: each counts once.
FORWARDING = """
#include <dlfcn.h>
#include <stdlib.h>
static void *find(const char *name) { return dlsym(RTLD_NEXT, name); }
static __thread int is_finding;
static char early[4096];
static size_t early_used;
#define REAL(result, name, parameters) static result (*real) parameters; \\
    if (!real && !is_finding) { is_finding = 1; *(void **)&real = find(name); is_finding = 0; }
void *calloc(size_t count, size_t size) {
    REAL(void *, "calloc", (size_t, size_t))
    if (real) return real(count, size);
    early_used += 256;
    return early_used + count * size <= sizeof early ? early + early_used - 256 : NULL;
}
void *malloc(size_t size) {
    REAL(void *, "malloc", (size_t))
    return real ? real(size) : calloc(1, size);
}
void *realloc(void *block, size_t size) {
    REAL(void *, "realloc", (void *, size_t))
    return real(block, size);
}
void free(void *block) {
    REAL(void, "free", (void *))
    if (((char *)block < early || (char *)block >= early + sizeof early) && real) real(block);
}
int main(void) {
    void *blocks[100];
    for (int i = 0; i < 100; i++) blocks[i] = calloc(1, 100 + i);
    for (int i = 0; i < 100; i++) blocks[i] = realloc(blocks[i], 300);
    for (int i = 0; i < 90; i++) free(blocks[i]);
    return 4;
}
"""

# Heaps that the caller names, as Firefox has them beside its malloc: one free serves both.
ARENAS = """
#define FUNCTION __attribute__((noinline, noclone))
#include <stddef.h>
#include <string.h>
#include <unistd.h>
static char heap[16 << 20];
static size_t used;
FUNCTION static void *take(size_t alignment, size_t size) {
    used = ((used + 16 + alignment - 1) & ~(alignment - 1)) + size;
    if (used > sizeof heap) _exit(9);
    memcpy(heap + used - size - sizeof size, &size, sizeof size);
    return memset(heap + used - size, 0, size);
}
FUNCTION static void give(void *block) { if (block) memset(block, 1, 1); }
static void *again(void *old, size_t size) {
    size_t before = 0;
    char *block = take(16, size);
    if (old) memcpy(&before, (char *)old - sizeof before, sizeof before);
    if (old) memcpy(block, old, before < size ? before : size);
    give(old);
    return block;
}
FUNCTION void *malloc(size_t size) { return take(16, size); }
FUNCTION void *calloc(size_t count, size_t size) { return take(16, count * size); }
FUNCTION void *realloc(void *block, size_t size) { return again(block, size); }
FUNCTION void free(void *block) { give(block); }
FUNCTION void *moz_arena_malloc(size_t arena, size_t size) { return take(arena ? 32 : 16, size); }
FUNCTION void *moz_arena_calloc(size_t arena, size_t count, size_t size) { return take(arena ? 32 : 16, count * size); }
FUNCTION void *moz_arena_realloc(size_t arena, void *block, size_t size) { return arena ? again(block, size) : NULL; }
FUNCTION void *moz_arena_memalign(size_t arena, size_t alignment, size_t size) { return take(arena ? alignment : 16, size); }
FUNCTION void moz_arena_free(size_t arena, void *block) { if (arena) give(block); }
static void *volatile kept;
int main(void) {
    for (size_t i = 1; i <= 100; i++) {
        free(moz_arena_realloc(7, moz_arena_malloc(7, i), 2 * i));
        moz_arena_free(7, moz_arena_calloc(7, i, 3));
        moz_arena_free(7, NULL);
        kept = moz_arena_memalign(7, 64, i);
    }
    return 4;
}
"""

REFUSED = """
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
static char heap[1 << 20];
static size_t used;
void *malloc(size_t size) {
    void *block = heap + used;
    used += (size + 31) & ~(size_t)15;
    if (used > sizeof heap) _exit(9);
    return block;
}
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) { (void)block; return malloc(size); }
extern void free(void *);
FREE
int main(void) {
    free(malloc(10));
    puts("fine");
    fflush(stdout);
    while (getchar() != EOF) {}
    return 5;
}
"""


# Its loop begins behind the first instruction; it leaves all registers alone.
LOOP = """__asm__(".globl free\\n.type free, @function\\nfree: xor %eax, %eax\\n1: inc %eax\\n"
                   "cmp $3, %eax\\njne 1b\\nret\\n.size free, .-free\\n");"""
LEAF = "void free(void *block) { static volatile int seen; seen += block != NULL; }"


def refused(name, free, reason):
    with open(f"{name}.c", "w", encoding="ascii") as file:
        file.write(REFUSED.replace("FREE", free))
    target = build(name, f"{name}.c")
    result = t.run([t.CAIRN, "run", "-o", t.fresh_path(name) + ".cairn", target], stdin=b"")
    text = result.err.decode()
    t.check_equal(f"{name}: the program is as without", (result.status, result.out), (5, b"fine\n"))
    t.check_equal(f"{name}: lines that say so", [line for line in text.splitlines() if "free: " in line],
                  [f"cairn: {name}'s own allocator is not recorded: free: {reason}"])
    with t.Process([target], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        result = t.run_cairn("attach", str(process.pid), "--record-for", "10ms")
        t.check_equal(f"{name}, attach: status", result.status, 1)
        t.check_equal(f"{name}, attach: lines", result.err.decode().count("\n"), 1)
        t.check(reason in result.err.decode(), f"{name}, attach: {result.err}")
        process.stdin.close()
        t.check_equal(f"{name}, attach: the program's status", process.wait(60), 5)


def sanitized():
    """A sanitizer's malloc is not taken for an allocator, whatever is asked for."""
    with open("sanitized.c", "w", encoding="ascii") as file:
        file.write("#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(\"ready\"); fflush(stdout);"
                   " free(malloc(10)); getchar(); return 6; }\n")
    t.check_equal("clang", t.run(["clang", "-fsanitize=address", "-o", "sanitized", "sanitized.c"]).status, 0)
    result = t.run([t.CAIRN, "run", "--ignore-checks", "-o", t.fresh_path("sanitized") + ".cairn",
                    os.path.abspath("sanitized")], stdin=b"")
    t.check_equal("AddressSanitizer, --ignore-checks", (result.status, result.out), (6, b"ready\n"))
    with t.Process(["./sanitized"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        result = t.run_cairn("attach", str(process.pid), "--record-for", "10ms")
        t.check("it is built with AddressSanitizer" in result.err.decode(), f"AddressSanitizer, attach: {result.err}")
        t.check_equal("AddressSanitizer, attach: status", result.status, 1)
        process.stdin.close()
        t.check_equal("AddressSanitizer, attach: the program's status", process.wait(60), 6)


def whole_program(name, text, wanted):
    with open(f"{name}.c", "w", encoding="ascii") as file:
        file.write(text)
    target = build(name, f"{name}.c")
    for options in ((), ("--sample", "--rate", "1")):
        what = f"{name} {' '.join(options)}"
        result, path = t.record([target], options=options)
        t.check_equal(f"{what}: status", result.status, 4)
        found = t.report(path)
        t.check_equal(f"{what}: calls, bytes, left", sums(found, "main"), wanted)
        t.check_nothing_lost(what, found)


def rjem_small():
    """A small allocator with the names that Rust's jemalloc crate uses."""
    name = os.path.abspath("rjem.o")
    t.run(["gcc", "-O2", "-g", "-c", "-o", name, str(SOURCES / "rust/rjem.c")])
    return ["-C", f"link-arg={name}"]


def rjem_real(archive):
    """jemalloc itself, its functions renamed; in an executable that is not position-independent."""
    name = os.path.abspath("librjem.a")
    public = "malloc calloc realloc free posix_memalign aligned_alloc memalign valloc malloc_usable_size " \
             "mallocx rallocx xallocx sallocx dallocx sdallocx nallocx mallctl __libc_malloc __libc_calloc " \
             "__libc_realloc __libc_free __libc_memalign __libc_valloc __posix_memalign"
    result = t.run(["objcopy", *(f"--redefine-sym={each}=_rjem_{each}" for each in public.split()), archive, name])
    t.check_equal("objcopy", (result.status, result.err), (0, b""))
    return ["-L", os.getcwd(), "-l", "static=rjem", "-l", "stdc++", "-C", "link-arg=-no-pie",
            "-C", "relocation-model=static"]


def rust(*linked):
    """Rust's blocks come from its allocator, others from libc: both are recorded."""
    if len(t.RUNTIME) > 100:  # with it the line in /proc/self/maps, which libc reads into a buffer that grows
        t.skip_part("the path of the library decides how much libc allocates")
        return
    target = os.path.abspath("owned_rust")
    built = t.run(["rustc", "--edition", "2018", "-g", "-C", "opt-level=1", *linked, "-o", target,
                   str(SOURCES / "rust/owned.rs")])
    if not t.check_equal(f"rustc {built.err.decode()[-800:]}", built.status, 0):
        return
    _, counted = t.count([target])
    libc = next(iter(counted.values()))
    for options in ((), ("--no-stacks",)):
        what = f"rust {' '.join(options)}"
        result, path = t.record([target], options=options)
        t.check_equal(f"{what}: status", result.status, 3)
        found = t.report(path)
        calls, size, frees, left, peak = map(int, result.out.split())
        totals = found["totals"]
        t.check_equal(f"{what}: calls, bytes, frees, left, peak",
                      (totals["allocations"], totals["allocated_bytes"], totals["frees"],
                       found["at_exit"]["bytes"], found["peak"]["bytes"]),
                      (calls + libc["allocations"], size + libc["allocated_bytes"], frees + libc["frees"],
                       left + libc["live_bytes"], peak + libc["live_bytes"]))
        t.check_nothing_lost(what, found)
    result, path = t.record([target])
    found = t.report(path)
    t.check_equal("rust: libc's blocks", sums(found, "owned::from_libc"), (100, 14950, 1045, 10))
    t.check(sums(found, "owned::count_words")[0] > 5000, "rust: words are counted with stacks")
    attach_rust(target)


class Attached:
    """cairn attach to a process that talks by lines."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=t.environment(), text=True)
        t.check_equal(f"{argv[0]} starts", self.process.stdout.readline(), "ready\n")

    def begin(self, *options):
        self.path = t.fresh_path("attached") + ".cairn"
        self.tool = subprocess.Popen([t.CAIRN, "attach", str(self.process.pid), "-o", self.path, *options],
                                     stderr=subprocess.PIPE, text=True, env=t.environment())
        first = self.tool.stderr.readline()
        t.check("cairn: recording" in first, f"attach begins: {first}")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def leave(self):
        self.tool.send_signal(signal.SIGINT)
        _, text = self.tool.communicate(timeout=t.PATIENCE_S)
        t.check_equal(f"attach ends well: {text}", self.tool.returncode, 0)
        return t.report(self.path)

    def end(self, status):
        self.process.stdin.close()
        t.check_equal("the program's status", self.process.wait(60), status)


def attach_rust(target):
    attached = Attached([target, "talk"])
    attached.begin("--exact")
    calls, size, frees, left, peak = map(int, attached.tell("").split())
    found = attached.leave()
    attached.end(3)
    t.check_equal("rust, attached: calls, bytes, left", sums(found, "owned::work")[:3], (calls, size, left))
    t.check_equal("rust, attached: libc's blocks", sums(found, "owned::from_libc"), (100, 14950, 1045, 10))
    t.check_equal("rust, attached: frees", found["totals"]["frees"], frees + 90)
    before = found["inherited"]["bytes"]
    t.check_equal("rust, attached: peak", found["peak"]["bytes"], before + peak + 1045)


def maps_of(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        return len(file.readlines())


def attach_under_load(name, archive):
    """Threads that do nothing but allocate; also after a tool that was killed."""
    target = build(f"attached_{name}", SOURCES / "attached.c", archive)
    attached = Attached([target, "3"])
    attached.tell("keep 50 100")
    attached.begin("--exact")
    attached.tell("keep 300 1000")
    found = attached.leave()
    t.check_equal(f"{name}, attached: blocks kept", sums(found, "keep"), (300, 300000, 300000, 300))
    maps = maps_of(attached.process.pid)
    for turn in range(4):
        attached.begin(*(["--exact"] if turn % 2 else []))
        attached.tell("keep 10 10")
        if turn == 2:
            attached.tool.kill()
            attached.tool.wait()
        else:
            attached.leave()
    t.check_equal(f"{name}, attached: mappings after the first time and after the last",
                  maps_of(attached.process.pid), maps)
    t.check_equal(f"{name}: a child", attached.tell("fork 100 100"), "child 7")
    t.check_equal(f"{name}: the program's own look at its blocks", attached.tell("end"), "sound")
    attached.end(0)


def stripped():
    """Exported functions are enough for cairn run; attach cannot tell the allocator's code without symbols."""
    target, owned = os.path.abspath("attached_jemalloc"), os.path.abspath("exceptions_with_jemalloc_inside")
    t.check_equal("strip", t.run(["strip", target, owned]).status, 0)
    result, path = t.record([owned])
    found = t.report(path)
    t.check_equal("stripped: status", result.status, 0)
    t.check(found["totals"]["allocations"] > 20000, f"stripped: {found['totals']}")
    t.check_nothing_lost("stripped", found)
    attached = Attached([target, "2"])
    result = t.run_cairn("attach", str(attached.process.pid), "--record-for", "10ms")
    t.check_equal("stripped, attach: status", result.status, 1)
    t.check("its symbols were taken away (strip)" in result.err.decode(), f"stripped, attach: {result.err}")
    attached.tell("end")
    attached.end(0)


t.need("gcc", "g++", "clang", "rustc", "objcopy")
if os.uname().machine != "x86_64":
    t.cannot_run_here("allocators in executables are led to cairn on x86-64")
for allocator, file_name in ARCHIVES.items():
    place = find(file_name)
    if t.check(place is not None, f"{file_name} is not installed"):
        if t.IS_LONG or allocator == "jemalloc":
            compare_with_libc(allocator, place)
            alignments(allocator, place)
        whole_account(allocator, place, *(["-DOWNED_JEMALLOC"] if "jemalloc" in allocator else []))
accounts_of_processes(find("libjemalloc.a"))
refused("jumps_back", LOOP, "it jumps back into its first bytes")
refused("leaf", LEAF, "it calls nothing, and its callers may count on that")
sanitized()
whole_program("forwarding", FORWARDING, (200, 44950, 3000, 10))
whole_program("arenas", ARENAS, (400, 35350, 5050, 100))
rust(*rjem_small())
rust(*rjem_real(find("libjemalloc.a")))
for allocator in ("jemalloc", "tcmalloc"):
    attach_under_load(allocator, find(ARCHIVES[allocator]))
stripped()
t.finish()
