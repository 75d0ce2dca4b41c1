#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--heap NAME: an allocator by name in the place of malloc's heap. By stack exact beside what the program does, calls,
bytes, what is left and what was held at its own peak; in every view of stacks, exports and a comparison; arenas by
name, also where that is given late; a failed realloc; forks, whose figures are those of the fork whatever the parent does
before they begin to record; malloc's own figures are those without --wrap, so that nothing counts twice."""

import json
import os
import pathlib

import cairn_test as t

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
static char chunk[1 << 20], *at = chunk;
OWN void *pool_alloc(size_t n) { if (at == chunk) at = malloc(1 << 20); char *p = at; at += (n + 15) / 16 * 16; return p; }
static volatile long calls;
OWN void pool_free(void *p) { calls++; __asm__("" ::"r"(p) : "memory"); }
OWN void *pool_again(void *p, size_t n) { __asm__("" ::"r"(p) : "memory"); return n > 1 << 20 ? NULL : pool_alloc(n); }
struct arena { int unused; };
OWN struct arena *arena_make(const char *name) { __asm__("" ::"r"(name) : "memory"); return malloc(64); }
OWN void *arena_take(struct arena *a, size_t n) { __asm__("" ::"r"(a) : "memory"); return malloc(n); }
OWN void arena_name(struct arena *a, const char *name) { calls++; __asm__("" ::"r"(a), "r"(name) : "memory"); }
OWN void arena_clear(struct arena *a) { calls++; __asm__("" ::"r"(a) : "memory"); }
static void *early[100], *late[100];
OWN void fill_early(void) { for (int i = 0; i < 100; i++) { early[i] = pool_alloc(1000); __asm__("" ::: "memory"); } }
OWN void fill_late(void) { for (int i = 0; i < 100; i++) { late[i] = pool_alloc(50); __asm__("" ::: "memory"); } }
OWN void grow(void) { late[0] = pool_again(late[0], 70); if (pool_again(late[1], 1ul << 40)) abort(); __asm__("" ::: "memory"); }
OWN void take_red(struct arena *a) { for (int i = 0; i < 10; i++) arena_take(a, 100); __asm__("" ::: "memory"); }
OWN void take_blue(struct arena *a) { for (int i = 0; i < 10; i++) arena_take(a, 7); __asm__("" ::: "memory"); }
int main(int argc, char **argv) {
  fill_early();
  for (int i = 0; i < 90; i++) pool_free(early[i]);
  fill_late(); grow();
  struct arena *red = arena_make("red"), *blue = arena_make("blue");
  take_red(red); take_blue(blue); take_blue(red); arena_clear(red); take_blue(red);
  if (argc > 2) {
    int go[2]; char told;
    if (pipe(go)) return 1;
    struct arena *dyed = arena_make("red");
    take_red(dyed);
    if (!fork()) {
      close(go[1]);
      if (read(go[0], &told, 1)) _exit(1);
      for (int i = 0; i < 2000; i++) arena_make("green");
      fill_late();
      exit(0);
    }
    for (int i = 90; i < 100; i++) pool_free(early[i]);
    fill_early(); arena_clear(dyed); take_blue(dyed);
    close(go[0]); close(go[1]);
    wait(NULL);
    return 0;
  }
  if (argc > 1) {
    pid_t child = fork();
    if (!child) { for (int i = 0; i < 2000; i++) arena_make("green"); for (int i = 90; i < 100; i++) pool_free(early[i]); fill_late(); exit(0); }
    waitpid(child, NULL, 0);
  }
  return 0;
}
"""
ROWS = ["--wrap", "name=mine:alloc=pool_alloc(size=1):realloc=pool_again(ptr=1,size=2):free=pool_free(ptr=1)",
        "--wrap", "name=areas:make=arena_make(label=1):alloc=arena_take(pool=1,size=2):clear=arena_clear(pool=1)"]


def build(name, text):
    pathlib.Path(f"{name}.c").write_text(text, encoding="ascii")
    made = t.run(["gcc", "-O1", "-g", "-w", "-o", name, f"{name}.c"])
    t.check_equal(f"gcc: {made.err.decode()}", made.status, 0)


def stacks(recording, heap, *options):
    """By the innermost function: calls, bytes, blocks and bytes left, blocks and bytes at the peak."""
    keys = ("allocations", "allocated_bytes", "at_exit_blocks", "at_exit_bytes", "peak_blocks", "peak_bytes")
    sums = {}
    for one in (t.report(recording, "--heap", heap, *options) or {}).get("stacks", []):
        values = sums.setdefault(t.functions(one)[0], [0] * len(keys))
        for i, key in enumerate(keys):
            values[i] += one[key]
    return {function: tuple(values) for function, values in sums.items()}


def check_figures():
    plain_result, plain = t.record(["./program"])
    result, recording = t.record(["./program"], options=ROWS)
    t.check_equal("the program", (result.status, result.out), (plain_result.status, plain_result.out))
    t.check_equal("by stack", stacks(recording, "mine"),
                  {"fill_early": (100, 100000, 10, 10000, 100, 100000), "fill_late": (100, 5000, 99, 4950, 0, 0), "grow": (1, 70, 1, 70, 0, 0)})
    t.check_equal("arenas of all names", stacks(recording, "areas"),
                  {"take_red": (10, 1000, 0, 0, 10, 1000), "take_blue": (30, 210, 20, 140, 20, 140)})
    t.check_equal("arenas of one name", stacks(recording, "areas/red"),
                  {"take_red": (10, 1000, 0, 0, 10, 1000), "take_blue": (20, 140, 10, 70, 10, 70)})
    keys = ("allocations", "allocated_bytes", "frees", "failed")
    with_rows, without = (t.report(one)["totals"] for one in (recording, plain))
    t.check_equal("malloc's own figures, without what the heaps hold", {key: with_rows.get(key) for key in keys},
                  {key: without.get(key) for key in keys})
    t.check("backing      1.0 MiB of the heap" in t.run_cairn("report", recording).out.decode(), "what the chunk is is said")
    return recording


def check_views(recording):
    for view, said in (("stacks", "fill_early"), ("tree", "fill_early"), ("functions", "fill_early"), ("lines", "program"), ("files", ""),
                       ("modules", "program"), ("directories", ""), ("leaks", "fill_early")):
        shown = t.run_cairn("report", "--heap", "mine", "--view", view, *(["--print"] if view == "tree" else []), recording)
        t.check(shown.status == 0 and said in shown.out.decode() and "heap mine" in shown.out.decode(), f"{view}: {shown}")
    summary = t.run_cairn("report", "--heap", "mine", recording).out.decode()
    t.check("as its row of --wrap says" in summary and "97.7 KiB" in summary, f"summary: {summary}")
    folded = t.run_cairn("export", "--heap", "mine", "--format", "collapsed", "--by", "allocated", "-o", "-", recording).out.decode()
    t.check_equal("exported", sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), 105070)
    compared = t.run_cairn("diff", "--heap", "mine", "--json", recording, recording)
    t.check_equal(f"compared: {compared.err}", compared.status, 0)
    for words, said in ((("--heap", "yours"), "no such heap; there are: mine, areas"), (("--heap", "mine", "--view", "timeline"), "--heap is of views of stacks"),
                        (("--heap", "mine", "--by", "slack"), "peak, exit, allocated and calls"), (("--heap", "mine", "--thread", "1"), "--heap")):
        refused = t.run_cairn("report", *words, recording)
        t.check(refused.status != 0 and said in refused.err.decode(), f"{words}: {refused}")


def check_late_name():
    """A block is its arena's, under whichever name that has in the end."""
    text = PROGRAM.replace("take_red(red); take_blue(blue); take_blue(red); arena_clear(red); take_blue(red);",
                           'take_red(red); arena_name(red, "scarlet"); take_blue(red); arena_name(blue, "navy"); take_blue(blue);')
    build("late", text)
    row = ROWS[3] + ":label=arena_name(pool=1,label=2)"
    result, recording = t.record(["./late"], options=["--wrap", row])
    t.check_equal("status", result.status, 0)
    t.check_equal("under the name that came later", stacks(recording, "areas/scarlet"),
                  {"take_red": (10, 1000, 10, 1000, 10, 1000), "take_blue": (10, 70, 10, 70, 10, 70)})
    t.check_equal("and of an arena that was empty", stacks(recording, "areas/navy"), {"take_blue": (10, 70, 10, 70, 10, 70)})
    t.check("no such heap" in t.run_cairn("report", "--heap", "areas/red", recording).err.decode(), "nothing is left of the old name")
    pools = {pool["name"]: pool["at_exit_bytes"] for pool in t.report(recording)["pools"]}
    t.check_equal("the pools' view says the same", (pools["areas/scarlet"], pools.get("areas/red", 0), pools["areas/navy"]), (1070, 0, 70))


def check_at_fork():
    result, recording = t.record(["./program", "fork", "wait"], options=ROWS)
    t.check_equal("status", result.status, 0)
    processes = json.loads(t.run_cairn("report", "--json", recording).out).get("processes", [])
    pids = {one["process"]["pid"] for one in processes}
    child = next((one for one in processes if one["process"]["ppid"] in pids), None)
    if not t.check(child, f"the child has a recording: {pids}"):
        return
    pid = str(child["process"]["pid"])
    found = stacks(recording, "mine", "--process", pid)
    t.check_equal("what there was at the fork, and its own", {name: one[:4] for name, one in found.items()},
                  {"fill_early": (10, 10000, 10, 10000), "fill_late": (199, 9950, 199, 9950), "grow": (1, 70, 1, 70)})
    t.check_equal("arenas at the fork", stacks(recording, "areas/red", "--process", pid),
                  {"take_red": (10, 1000, 10, 1000, 10, 1000), "take_blue": (10, 70, 10, 70, 10, 70)})
    pools = {pool["name"]: pool for pool in child["pools"]}
    t.check_equal("the pools' view says the same", [(pools[name]["allocated_bytes"], pools[name]["at_exit_bytes"], pools[name]["made"])
                                                    for name in ("mine", "areas/red", "areas/blue", "areas/green")],
                  [(20020, 20020, 1), (1070, 1070, 2), (70, 70, 1), (0, 0, 2000)])


def check_fork():
    result, recording = t.record(["./program", "fork"], options=ROWS)
    pids = [one["process"]["pid"] for one in json.loads(t.run_cairn("report", "--json", recording).out).get("processes", [])]
    found = {pid: stacks(recording, "mine", "--process", str(pid)) for pid in pids}
    t.check_equal("status", result.status, 0)
    t.check_equal("parent and child", sorted(one.get("fill_early", ())[2:4] for one in found.values()), [(0, 0), (10, 10000)])
    t.check_equal("what the child took", sorted(one.get("fill_late", ())[2:4] for one in found.values()), [(99, 4950), (199, 9950)])


t.need("gcc")
if os.uname().machine != "x86_64":
    t.cannot_run_here("--wrap is for x86-64")
build("program", PROGRAM)
check_views(check_figures())
check_fork()
check_at_fork()
check_late_name()
t.finish()
