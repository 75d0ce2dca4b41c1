#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An allocator in the executable is recorded from its first block: what constructors of libraries allocate before
main, C++'s own library among them, is a part of the account that the allocator itself keeps. So it is in programs
that such a program starts, where cairn becomes the program (--exec), and with other releases of glibc; where another library has to be the first to be
initialized, it is as it was then: main's blocks are all known, and earlier ones are counted when they are freed."""

import os
import pathlib
import subprocess

import cairn_test as t
import glibc_versions
import ledger

# An allocator with an account, and a program that uses it. `early` is what a library's constructor allocated.
OWNED = """
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
static struct account { uint64_t calls, bytes, frees, live; } account;
static _Alignas(16) char heap[64 << 20];
static size_t used;
__attribute__((noinline)) static size_t *head_of(void *block) { return (size_t *)block - 2; }
void *malloc(size_t size) {
    void *block = heap + used + 16;
    if (used + size + 32 > sizeof heap) _exit(9);
    used += (size + 31) & ~(size_t)15;
    *head_of(block) = size;
    account.calls++, account.bytes += size, account.live += size;
    return block;
}
static void forget(void *block) { account.frees++, account.live -= *head_of(block); }
#ifdef LEAF
void free(void *block) { static volatile int seen; seen += block != NULL; }
#else
void free(void *block) { if (block) forget(block); }
#endif
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) {
    void *result = malloc(size);
    if (block) memcpy(result, block, *head_of(block) < size ? *head_of(block) : size);
    if (block) forget(block);
    return result;
}
static void say(uint64_t number) {
    char text[24] = {0};
    size_t at = sizeof text - 1;
    for (text[--at] = ' '; number || at == sizeof text - 2; number /= 10) text[--at] = (char)('0' + number % 10);
    if (write(1, text + at, strlen(text + at)) < 0) _exit(8);
}
extern void *early[10];
// So many that the recording of a program that becomes another is kept.
enum { ROUNDS = 3000 };
int main(int count, char **words) {
    void *own[50];
    for (int i = 0; i < ROUNDS; i++) free(malloc(16));
    for (int i = 0; i < 50; i++) own[i] = malloc(100 + (size_t)i);
    for (int i = 0; i < 40; i++) own[i] = realloc(own[i], 300);
    for (int i = 0; i < 30; i++) free(own[i]);
    for (int i = 0; i < 7; i++) free(early[i]);
    struct account now = account;
    say(now.calls), say(now.bytes), say(now.frees), say(now.live);
    if (write(1, "\\n", 1) != 1) return 7;
    if (count > 1) execve(words[1], words + 1, environ);
    _exit(3);
}
"""
LIBRARY = """
#include <stdlib.h>
void *early[10];
__attribute__((constructor)) static void allocate(void) {
    for (int i = 0; i < 10; i++) early[i] = malloc(1000 + (size_t)i);
    early[9] = realloc(early[9], 5000);
}
"""
FIRST = "static int is_first; __attribute__((constructor)) static void begin(void) { is_first = 1; }"
ROUNDS = 3000
MAIN = {"allocations": ROUNDS + 90, "bytes": ROUNDS * 16 + sum(100 + i for i in range(50)) + 40 * 300,
        "frees": ROUNDS + 40 + 30}
EARLY_FREED = 7


def write(name, text):
    with open(name, "w", encoding="ascii") as file:
        file.write(text)


def build(name, *words):
    result = t.run(["gcc", "-O1", "-g", "-fno-builtin", "-fno-stack-protector", "-o", name, *words])
    t.check_equal(f"{name} is built", (result.status, result.err.decode()), (0, ""))
    return os.path.abspath(name)


def account_of(found):
    totals = found["totals"]
    return (totals["allocations"], totals["allocated_bytes"], totals["frees"], found["at_exit"]["bytes"])


def check_whole(what, found, line):
    t.check_equal(f"{what}: calls, bytes, frees, left", account_of(found), tuple(map(int, line.split())))
    t.check_nothing_lost(what, found)


def check_modes(program):
    plain = t.run([program])
    t.check_equal("the program alone", (plain.status, plain.err), (3, b""))
    for options in ((), ("--no-stacks",), ("--ages",), ("--sample", "--rate", "1")):
        what = f"early {' '.join(options)}"
        result, path = t.record([program], options=options)
        result.check_like(what, plain)
        check_whole(what, t.report(path), plain.out.decode())


def check_children(program):
    """Of each program that the first one becomes or starts, by exec and by a shell's fork, nothing is missing."""
    for what, argv, count in (("exec", [program, program, program], 3),
                              ("fork and exec", ["/bin/sh", "-c", f"{program}; {program}; exit 3"], 2)):
        result, path = t.record(argv)
        lines = result.out.decode().splitlines()
        t.check_equal(f"{what}: status and lines", (result.status, len(lines)), (3, count))
        found = [t.report(file) for file in ledger.files(path)]
        owned = [one for one in found if one["process"]["command"].startswith(program)]
        t.check_equal(f"{what}: accounts", sorted(account_of(one) for one in owned),
                      sorted(tuple(map(int, line.split())) for line in lines))
        for one in owned:
            t.check_nothing_lost(what, one)


def execute(argv, *options, env=None):
    path = t.fresh_path("become") + ".cairn"
    return t.run([t.CAIRN, "run", "--exec", *options, "-o", path, "--", *argv], env=env), path


def check_exec(program):
    """Where cairn becomes the program, that leads its allocator to the library by itself."""
    plain = t.run([program])
    for options in ((), ("--no-stacks",), ("--sample", "--rate", "1")):
        what = f"--exec {' '.join(options)}"
        result, path = execute([program], *options)
        result.check_like(what, plain)
        check_whole(what, t.report(path), plain.out.decode())
    result, path = execute([program, program])
    t.check_equal("--exec, exec: accounts",
                  sorted(account_of(t.report(file)) for file in pathlib.Path(path).parent.glob(
                      pathlib.Path(path).stem + "*.cairn")),
                  sorted(tuple(map(int, line.split())) for line in result.out.decode().splitlines()))
    result, _ = execute([program, "/bin/echo", "another"])
    t.check_equal("--exec: another program", (result.status, result.out.splitlines()[1:], result.err),
                  (0, [b"another"], b""))


def check_plan(program, other):
    """What does not fit the executable is left alone, whatever it says."""
    result, _ = execute([program, "/usr/bin/env"])
    plans = [line.split("=", 1)[1] for line in result.out.decode().splitlines() if line.startswith("CAIRN_ENTRIES=")]
    if not t.check_equal("plans in the environment", len(plans), 1):
        return
    plan, plain = plans[0], t.run([program])
    header, part = 64, 240  # digits
    damaged = ["", "0", plan[:30], plan[:header], plan[:-1], plan[:header + part], "z" + plan[1:], "00" * 40,
               plan[:16] + "ff" * 8 + plan[32:], plan[:32] + "00" * 8 + plan[48:], plan[:48] + "ff" * 8 + plan[64:],
               plan[:48] + "00" * 8 + plan[64:], plan[:header + 16] + "cc" + plan[header + 18:],
               plan[:header + 36] + "ffff" + plan[header + 40:]]
    for number, text in enumerate(damaged):
        result, path = t.record_alone([program], env={"CAIRN_ENTRIES": text})
        result.check_like(f"damaged plan {number}", plain)
        if pathlib.Path(path).exists():
            t.check_equal(f"damaged plan {number}: recorded", t.report(path)["totals"]["allocations"], 0)
    result, path = t.record_alone([program], env={"CAIRN_ENTRIES": plan})
    result.check_like("whole plan", plain)
    check_whole("whole plan", t.report(path), plain.out.decode())
    result, path = t.record_alone([other], env={"CAIRN_ENTRIES": plan})
    result.check_like("another executable's plan", t.run([other]))


def check_refused():
    """An allocator that cannot be led is told in one line before cairn becomes the program."""
    leaf = build("leaf", "-DLEAF", "owned.c", os.path.abspath("libearly.so"))
    reason = "free: it calls nothing, and its callers may count on that"
    result, path = execute([leaf])
    t.check_equal("--exec, refused", (result.status, result.err.decode().splitlines()),
                  (3, [f"cairn: leaf's own allocator is not recorded: {reason}"]))
    t.check_equal("--exec, refused: recorded", t.report(path)["totals"]["allocations"], 0)
    result, _ = execute([leaf], "-q")
    t.check_equal("--exec, refused, quietly", (result.status, result.err), (3, b""))


def check_second(program):
    """A library that is loaded later and marked as the first one is the first."""
    first = build("libfirst.so", "-shared", "-fPIC", "-Wl,-z,initfirst", "first.c")
    result, path = t.record([program], env={"LD_PRELOAD": first})
    t.check_equal("another library first: status", result.status, 3)
    check_main("another library first", t.report(path))


def check_main(what, found):
    totals = found["totals"]
    t.check_equal(f"{what}: main's calls, bytes, frees",
                  (totals["allocations"], totals["allocated_bytes"], totals["frees"]), tuple(MAIN.values()))
    t.check_equal(f"{what}: lost", {reason: number for reason, number in found["trust"]["lost"].items() if number},
                  {"unknown_free": EARLY_FREED})


def check_glibc(version):
    """An executable for another release's ld.so, by the symbols of the oldest."""
    try:
        found = glibc_versions.loader(version, os.environ.get("GLIBC_DIR", "."))
    except OSError as problem:
        t.skip_part(f"glibc {version}: {problem}")
        return
    if not found:
        return
    place = pathlib.Path(found[1])
    start = [t.run(["gcc", f"-print-file-name={name}"]).out.decode().strip() for name in ("crti.o", "crtn.o")]
    write("begin.s", ".globl _start\n_start: xor %ebp, %ebp\nmov (%rsp), %rdi\nlea 8(%rsp), %rsi\n"
                     "and $-16, %rsp\ncall main\nhlt\n.section .note.GNU-stack,\"\",@progbits\n")
    linked = ["-nostdlib", "-Wl,--allow-shlib-undefined", "-Wl,--disable-new-dtags", f"-Wl,-rpath,{place}:{os.getcwd()}"]
    for has_threads in (False, True):
        more = ["libdl.so.2", *(["libpthread.so.0"] if has_threads else [])]
        name = f"glibc{version}{'_threads' if has_threads else ''}"
        build(f"lib{name}.so", "-shared", "-fPIC", *linked, "library.c", str(place / "libc.so.6"))
        program = build(name, *linked, start[0], "begin.s", "owned.c", os.path.abspath(f"lib{name}.so"),
                        "-Wl,--no-as-needed", *(str(place / one) for one in more), str(place / "libc.so.6"), start[1],
                        f"-Wl,--dynamic-linker={found[0]}")
        plain = t.run([program])
        t.check_equal(f"{name} alone: status", plain.status, 3)
        # In an old glibc a function that is looked for in vain makes dlsym itself allocate.
        result, path = t.record([program])
        t.check_equal(f"{name}: status", (result.status, result.err), (3, b""))
        found_there = t.report(path)
        if has_threads and version == "2.31":
            check_main(name, found_there)  # its libpthread is marked as the first
        else:
            check_whole(name, found_there, plain.out.decode())


t.need("gcc", "dpkg-deb")
if os.uname().machine != "x86_64":
    t.cannot_run_here("allocators in executables are led to cairn on x86-64")
write("owned.c", OWNED)
write("library.c", LIBRARY)
write("first.c", FIRST)
build("libearly.so", "-shared", "-fPIC", "library.c")
owned = build("owned", "owned.c", os.path.abspath("libearly.so"), "-Wl,--no-as-needed", "-lstdc++", "-lm")
check_modes(owned)
check_children(owned)
check_second(owned)
fixed = build("fixed", "-no-pie", "owned.c", os.path.abspath("libearly.so"), "-Wl,--no-as-needed", "-lstdc++", "-lm")
for each in (owned, fixed):
    check_exec(each)
    check_plan(each, fixed if each == owned else owned)
check_refused()
for glibc in glibc_versions.SUITES:
    check_glibc(glibc)
t.finish()
