#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that says it is a Python, of each version that is read and of the free-threaded build, and whose states, frames and code objects hold
anything: pointers to nowhere, to themselves, to unmapped and half mapped pages, lengths without end. It allocates in
all of it, with and without the interpreter's lock, at last where that ends; its output and status are its own. And native
code of a true Python that has released the lock: its stacks are right, and no event takes system calls. So are those of a
deep recursion that goes back, without allocating, to any frame far out and comes again from its next line."""

import shutil

import cairn_test as t

SOURCE = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
const unsigned long Py_Version = VERSION;
enum { AREA = 1 << 16, M = MORE / 8 };  /* words by which heads of objects are larger */
struct member { const char *name; uint64_t type, offset, flags; const char *text; };
#if VERSION < 0x030a0000
#define TABLE "co_lnotab"
#else
#define TABLE "co_linetable"
#endif
#if VERSION < 0x030b0000
enum { LINE = 40, FILE_AT = 104, NAME_AT = 112, TABLE_AT = 120, CODE_SIZE = 176, TEXT = 80 };
#define NAME "co_name"
#else
#define NAME "co_qualname"
enum { LINE = VERSION < 0x030c0000 ? 72 : 68, FILE_AT = 112, NAME_AT = 128, TABLE_AT = 136,
       CODE_SIZE = VERSION < 0x030c0000 ? 184 : VERSION < 0x030d0000 ? 192 : VERSION < 0x030e0000 ? 200 : 208,
       TEXT = VERSION < 0x030c0000 ? 80 : 64 };
#endif
static struct member code_members[] = {{"co_firstlineno", 0, LINE}, {"co_filename", 0, FILE_AT}, {NAME, 0, NAME_AT}, {TABLE, 0, TABLE_AT}, {0}};
static struct member frame_members[] = {{"f_back", 0, 24}, {"f_code", 0, 32}, {0}};
uint64_t PyCode_Type[40] = {[4] = CODE_SIZE, [30] = (uint64_t)(uintptr_t)code_members};
uint64_t PyFrame_Type[40] = {[30] = (uint64_t)(uintptr_t)frame_members};
uint64_t PyUnicode_Type[40] = {[4 + M] = TEXT + MORE}, PyBytes_Type[40] = {[4 + M] = 33 + MORE};
#define W(a, b, c) [VERSION < 0x030e0000 ? a : VERSION < 0x030f0000 ? b : c]
uint64_t _PyRuntime[93] = {
    0x7970677562656478, VERSION, MORE != 0,  /* xdebugpy */
    W(23, 26, 26) = 72, W(29, 32, 40) = 8, W(30, 33, 41) = 0, W(31, 34, 42) = 56,
    W(33, 36, 44) = 74, W(35, 40, 48) = 112, W(37, 42, 50) = 128, W(38, 43, 51) = 136,
    W(39, 44, 52) = 68, W(43, 48, 56) = CODE_SIZE, W(45, 51, 59) = 8 + MORE, W(65, 75, 87) = 16 + MORE,
    W(66, 76, 88) = 32 + MORE, W(68, 78, 90) = 32 + MORE, W(69, 79, 91) = 16 + MORE, W(70, 80, 92) = 40 + MORE};
static uint64_t *area, *state, seed = 5, rounds;
static int has_lock;
static uint64_t next(void) { seed ^= seed << 13; seed ^= seed >> 7; return seed ^= seed << 17; }
static int is_ending;
int _Py_IsFinalizing(void) { return is_ending; }
void *PyGILState_GetThisThreadState(void) { return state; }
void *_PyThreadState_UncheckedGet(void) { return has_lock ? state : NULL; }
__attribute__((noinline)) void *_PyEval_EvalFrameDefault(int depth) {
    void *block = depth ? _PyEval_EvalFrameDefault(depth - 1) : malloc(next() % 3000);
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}
static uint64_t hostile(void) {
    uint64_t within = (uint64_t)(uintptr_t)area + next() % (AREA / 8 + 8) * 8;
    switch (next() % 12) {
    case 0: return next();
    case 1: return next() >> 17;
    case 2: return next() % 8;
    case 3: return (uint64_t)(uintptr_t)area + AREA - 8 * (next() % 4);
    case 4: return (uint64_t)(uintptr_t)area + AREA + next() % 4096;  /* unmapped */
    case 5: return (uint64_t)(uintptr_t)PyCode_Type;
    case 6: return (uint64_t)(uintptr_t)PyUnicode_Type;
    case 7: return (uint64_t)(uintptr_t)PyBytes_Type;
    case 8: return (uint64_t)(uintptr_t)state;
    default: return within;
    }
}
/* A code object with texts of hostile lengths: what comes behind the checks of types. */
static void make_code(uint64_t *code) {
    code[0] = code[M] = 5; code[1 + M] = (uint64_t)(uintptr_t)PyCode_Type;
    uint64_t *text = area + next() % (AREA / 8 - 8), *bytes = area + next() % (AREA / 8 - 8);
    text[1 + M] = (uint64_t)(uintptr_t)PyUnicode_Type; text[2 + M] = next() >> next() % 64; text[4 + M] = 0x20 | next() % 8 << 2 | (next() & 0x40);
    bytes[1 + M] = (uint64_t)(uintptr_t)PyBytes_Type; bytes[2 + M] = next() >> next() % 64;
    code[FILE_AT / 8] = code[NAME_AT / 8] = (uint64_t)(uintptr_t)text; code[TABLE_AT / 8] = (uint64_t)(uintptr_t)bytes;
    if (next() % 2) code[FILE_AT / 8] = hostile();
}
int main(void) {
    char *room = mmap(NULL, 3 * AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(room, AREA); munmap(room + 2 * AREA, AREA);
    area = (uint64_t *)(room + AREA);
    for (rounds = 0; rounds < 6000; rounds++) {
        for (int i = 0; i < AREA / 8; i += 1 + next() % 64) area[i] = hostile();
        state = area + next() % (AREA / 8 - 40);
        for (int i = 0; i < 4; i++) make_code(area + next() % (AREA / 8 - 32));
        for (int i = 0; i < 30; i++) state[i] = (uint64_t)(uintptr_t)(area + next() % (AREA / 8));
        if (next() % 16 == 0) state = (uint64_t *)(uintptr_t)hostile();
        has_lock = next() % 4 != 0;
        free(_PyEval_EvalFrameDefault(next() % 5));
    }
    /* The interpreter ends, and takes away what a thread without the lock is in. */
    state = area; has_lock = 0; is_ending = 1;
    munmap(area, AREA);
    for (int i = 0; i < 100; i++) free(_PyEval_EvalFrameDefault(i % 5));
    printf("%llu rounds\n", (unsigned long long)rounds);
    return 7;
}
"""

RELEASED = """
import ctypes, sys
duplicate = ctypes.CDLL(None).strdup
def inner():
    duplicate(b"x" * 40)
def outer():
    for _ in range(500):
        inner()
        inner()
outer()
"""
FIRST_CALL = 8  # its line; the other one follows


def released():
    """Two callers of the same function, at the same place of the native stack."""
    result, path = t.record([t.PYTHON, "-SIc", RELEASED], python=True)
    t.check_equal("released: status", (result.status, result.out, result.err), (0, b"", b""))
    calls = {FIRST_CALL: 0, FIRST_CALL + 1: 0}
    for stack in t.stacks_through(t.report(path, "--focus", "^outer$"), "strdup", "inner", "outer"):
        lines = [frame["line"] for frame in stack["frames"] if frame.get("function") == "outer"]
        calls[lines[0]] += stack["allocations"]
    t.check_equal("released: calls by line", calls, {FIRST_CALL: 500, FIRST_CALL + 1: 500})
    if not shutil.which("strace"):
        t.skip_part("system calls of events without the lock, since strace is not installed")
        return
    result, asked = t.asked_calls("process_vm_readv", [t.CAIRN, "run", "-q", "--python", "-o", t.fresh_path("counted") + ".cairn",
                                                       "--", t.PYTHON, "-SIc", RELEASED])
    most = 500  # of 1,000 events; an interpreter's start takes some
    t.check(result.status == 0 and asked < most, f"released: {asked} questions, {result}")

DEPTH, TURNS, ROUNDS = 1800, (1, 30, 300, 1000, 1500), 10
DEEP = f"""
import ctypes, sys
duplicate = ctypes.CDLL(None).strdup
sys.setrecursionlimit(9000)
def down(n, turn):
    if n == turn:
        down(n - 1, -1)
        down(n - 1, -1)
    elif n:
        down(n - 1, turn)
    else:
        duplicate(b"x" * 40)
for turn in {TURNS}:
    for i in range({ROUNDS}):
        down({DEPTH}, turn)
"""
FIRST_OF_TWO = 7  # its line


def deep():
    """All frames in between are what they were, at the same addresses: the one that turned alone is at another line."""
    result, path = t.record([t.PYTHON, "-SIc", DEEP], python=True)
    t.check_equal("deep: status", (result.status, result.out, result.err), (0, b"", b""))
    calls = {}
    for stack in t.stacks_through(t.report(path, "--focus", "^down$", "--by", "calls"), "strdup", "down"):
        lines = [frame["line"] for frame in stack["frames"] if frame.get("function") == "down"]
        t.check_equal("deep: frames", len(lines), DEPTH + 1)
        turned = [(i, line) for i, line in enumerate(lines) if FIRST_OF_TWO <= line <= FIRST_OF_TWO + 1]
        key = turned[0] if len(turned) == 1 else tuple(turned)
        calls[key] = calls.get(key, 0) + stack["allocations"]
    t.check_equal("deep: calls by frame and line", calls,
                  {(turn, line): ROUNDS for turn in TURNS for line in (FIRST_OF_TWO, FIRST_OF_TWO + 1)})


t.need("gcc")
released()
deep()
for minor, more in [*((minor, 0) for minor in range(8, 16)), (13, 16)]:
    what, name = f"3.{minor}{'t' if more else ''}", f"false{minor}-{more}"
    with open("false.c", "w", encoding="ascii") as file:
        file.write(SOURCE)
    built = t.run(["gcc", "-O1", "-w", "-rdynamic", f"-DVERSION={0x03000000 + (minor << 16):#x}", f"-DMORE={more}", "-o", name, "false.c"])
    t.check_equal(f"gcc: {built.err.decode()}", built.status, 0)
    result, recording = t.record_alone([f"./{name}"], env={"CAIRN_PYTHON": "1"})
    t.check_equal(what, (result.status, result.out, result.err), (7, b"6000 rounds\n", b""))
    info = t.run_cairn("info", recording)
    t.check(b"stacks have its frames" in info.out, f"{what} was read: {info.out[-400:]}")
t.finish()
