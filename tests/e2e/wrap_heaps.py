#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--heap NAME: an allocator by name in the place of malloc's heap. By stack exact beside what the program does, calls,
bytes, what is left and what was held at its own peak; in every view of stacks, exports and a comparison; arenas by
name, also where that is given late; a failed realloc; forks, whose figures are those of the fork whatever the parent does
before they begin to record; malloc's own figures are those without --wrap, so that nothing counts twice."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t
import wrapped_heaps
from wrapped_heaps import ROWS


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


def check_pprof(recording):
    """The name is a label of each sample, and a comment."""
    if not shutil.which("go"):
        t.skip_part("go is not installed")
        return
    for heap, calls in (("mine", 201), ("areas/red", 30)):
        name = f"{heap.replace('/', '-')}.pb.gz"
        made = t.run_cairn("export", "--heap", heap, "--format", "pprof", "-o", name, recording)
        t.check_equal(f"{heap}: {made.err}", made.status, 0)
        tags, comments = (t.run(["go", "tool", "pprof", *words, name], env={"HOME": os.getcwd()}).out.decode()
                          for words in (("-tags", "-sample_index=alloc_objects"), ("-comments",)))
        t.check(re.search(rf"heap: Total {calls}\b.*\n +{calls}(\.0)? \( *100%\): {heap}\n", tags), f"{heap}: {tags}")
        t.check(f"heap {heap}, as its row of --wrap says" in comments, f"{heap}: {comments}")


def check_views(recording):
    for view, said in (("stacks", "fill_early"), ("tree", "fill_early"), ("functions", "fill_early"), ("lines", "program"), ("files", ""),
                       ("modules", "program"), ("directories", ""), ("leaks", "fill_early")):
        shown = t.run_cairn("report", "--heap", "mine", "--view", view, *(["--print"] if view == "tree" else []), recording)
        t.check(shown.status == 0 and said in shown.out.decode() and "heap mine" in shown.out.decode(), f"{view}: {shown}")
    summary = t.run_cairn("report", "--heap", "mine", recording).out.decode()
    t.check("as its row of --wrap says" in summary and "97.7 KiB" in summary, f"summary: {summary}")
    t.check("RSS" not in summary, f"resident memory is the process', and no heap's: {summary}")
    folded = t.run_cairn("export", "--heap", "mine", "--format", "collapsed", "--by", "allocated", "-o", "-", recording).out.decode()
    t.check_equal("exported", sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), 105070)
    check_pprof(recording)
    compared = t.run_cairn("diff", "--heap", "mine", "--json", recording, recording)
    t.check_equal(f"compared: {compared.err}", compared.status, 0)
    for words, said in ((("--heap", "yours"), "no such heap; there are: mine, areas"), (("--heap", ""), "which of them? mine, areas; --view pools has all of them"),
                        (("--heap", "mine", "--view", "frees"), "is not of one heap by name"),
                        (("--heap", "mine", "--by", "slack"), "peak, exit, allocated and calls")):
        refused = t.run_cairn("report", *words, recording)
        t.check(refused.status != 0 and said in refused.err.decode(), f"{words}: {refused}")


def check_late_name():
    """A block is its arena's, under whichever name that has in the end."""
    text = wrapped_heaps.PROGRAM.replace("take_red(red); take_blue(blue); take_blue(red); arena_clear(red); take_blue(red);",
                                         'take_red(red); arena_name(red, "scarlet"); take_blue(red); arena_name(blue, "navy"); take_blue(blue);')
    wrapped_heaps.make("late", text)
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
    result, recording = t.record(["./program", "late fork"], options=ROWS)
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


STEPS = r"""
#include <stdlib.h>
#include <time.h>
#define OWN __attribute__((noinline, noclone))
OWN void *pool_alloc(size_t n) { __asm__("" ::"r"(n) : "memory"); return malloc(n + 8); }
static volatile long calls;
OWN void pool_free(void *p) { calls++; __asm__("" ::"r"(p) : "memory"); }
static void rest(void) { nanosleep(&(struct timespec){0, 100000000}, NULL); }
int main(void) {
  void *blocks[10];
  for (int i = 0; i < 10; i++) { blocks[i] = pool_alloc(100000); if (i == 1 || i == 9) rest(); }
  for (int i = 0; i < 5; i++) pool_free(blocks[i]);
  rest();
  return 0;
}
"""


def heights(chart):
    """How many rows each column of the chart fills."""
    rows = [line.split("\u2502", 1)[1] for line in chart.splitlines() if "\u2502" in line]
    width = max(map(len, rows))
    return len(rows), [sum(row.ljust(width)[i] != " " for row in rows) for i in range(width)]


def check_over_time():
    """Two blocks of 100 kB, then ten, then five, each for a while; malloc's heap has what is freed of the pool still."""
    pathlib.Path("steps.c").write_text(STEPS, encoding="ascii")
    made = t.run(["gcc", "-O1", "-g", "-w", "-o", "steps", "steps.c"])
    t.check_equal(f"gcc: {made.err.decode()}", made.status, 0)
    _, recording = t.record(["./steps"], options=["--wrap", "name=own:alloc=pool_alloc(size=1):free=pool_free(ptr=1)"])
    shown = t.run_cairn("report", "--heap", "own", "--view", "timeline", "--bytes", recording)
    chart = shown.out.decode()
    rows, found = heights(chart)
    steps = [height for i, height in enumerate(found) if not i or height != found[i - 1]]
    wanted = [round(rows * share) for share in (0.2, 1, 0.5)]
    at = -1
    for height in wanted:
        at = next((i for i in range(at + 1, len(steps)) if abs(steps[i] - height) <= 1), None)
        if not t.check(at is not None, f"{wanted} of {rows} rows in this order: {steps}\n{chart}"):
            break
    t.check("heap by name over time" in chart and "peak 1000000 at" in chart and "resident" not in chart, f"its peak: {chart}")
    page = t.run_cairn("open", "-o", "steps.html", recording)
    t.check_equal(f"the page: {page.err}", page.status, 0)


TASKS = r"""
#define _GNU_SOURCE
#include <cairn/cairn.h>
#include <pthread.h>
#include <stdlib.h>
#define OWN __attribute__((noinline, noclone))
OWN void *pool_alloc(size_t n) { __asm__("" ::"r"(n) : "memory"); return malloc(n + 8); }
static volatile long calls;
OWN void pool_free(void *p) { calls++; __asm__("" ::"r"(p) : "memory"); }
OWN void take(int count, size_t n) { for (int i = 0; i < count; i++) { pool_alloc(n); __asm__("" ::: "memory"); } }
static void *early;
static void *work(void *context) {
  pthread_setname_np(pthread_self(), "worker");
  cairn_context_enter((cairn_context)(uintptr_t)context);
  take(10, 100);
  cairn_region_begin("parse"); take(5, 40); cairn_region_end(NULL);
  cairn_context_leave();
  pool_free(early);
  return NULL;
}
int main(void) {
  pthread_t thread;
  early = pool_alloc(300);
  take(2, 500);
  pthread_create(&thread, NULL, work, (void *)(uintptr_t)cairn_context_with(0, "tenant", "7"));
  pthread_join(thread, NULL);
  return 0;
}
"""


def check_parts():
    """By thread, region and context, and narrowed by them: what is left of the heap, never malloc's bytes (8 more each)."""
    pathlib.Path("tasks.c").write_text(TASKS, encoding="ascii")
    made = t.run(["gcc", "-O1", "-g", "-w", "-pthread", "-I", str(t.SOURCE / "include"), "-o", "tasks", "tasks.c"])
    t.check_equal(f"gcc: {made.err.decode()}", made.status, 0)
    _, recording = t.record(["./tasks"], options=["--wrap", "name=own:alloc=pool_alloc(size=1):free=pool_free(ptr=1)"])
    found = t.report(recording, "--heap", "own")
    keys = ("allocations", "allocated_bytes", "at_exit_bytes")
    t.check_equal("threads", {one["name"]: tuple(one[key] for key in keys) for one in found["threads"]},
                  {"tasks": (3, 1300, 1000), "worker": (15, 1200, 1200)})
    t.check_equal("contexts", {one["labels"].get("tenant"): one["at_exit_bytes"] for one in found["contexts"]}, {None: 1000, "7": 1200})
    t.check_equal("regions", [(one["name"], one["allocations"], one["at_exit_bytes"], "rise_bytes" in one) for one in found["regions"]],
                  [("tenant=7/parse", 5, 200, False)])
    for words, wanted in (("--thread", "worker"), 1200), (("--thread", "tasks"), 1000), (("--context", "tenant=7"), 1200), (("--region", "parse"), 200):
        left = t.report(recording, "--heap", "own", *words)["stacks"]
        t.check_equal(f"{words}", sum(one["at_exit_bytes"] for one in left), wanted)
    for view, said in (("threads", "worker"), ("contexts", "tenant=7"), ("regions", "parse")):
        shown = t.run_cairn("report", "--heap", "own", "--by", "exit", "--bytes", "--view", view, recording).out.decode()
        t.check(said in shown and "most more" not in shown, f"{view}: {shown}")


def check_fork():
    result, recording = t.record(["./program", "fork"], options=ROWS)
    pids = [one["process"]["pid"] for one in json.loads(t.run_cairn("report", "--json", recording).out).get("processes", [])]
    found = {pid: stacks(recording, "mine", "--process", str(pid)) for pid in pids}
    t.check_equal("status", result.status, 0)
    t.check_equal("parent and child", sorted(one.get("fill_early", ())[2:4] for one in found.values()), [(0, 0), (10, 10000)])
    t.check_equal("what the child took", sorted(one.get("fill_late", ())[2:4] for one in found.values()), [(99, 4950), (199, 9950)])


class Waiting:
    """The program, recorded, while it waits: `pid`."""

    def __enter__(self):
        self.tool = subprocess.Popen([t.CAIRN, "run", "-q", "-o", "waiting.cairn", *ROWS, "--", "./program", "wait"], env=t.environment(),
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        t.check_equal("it waits", self.tool.stdout.readline(), b"ready\n")
        self.pid = str(next(child for child in t.children_of(self.tool.pid) if t.is_called(child, "program")))
        return self

    def take(self):
        self.tool.stdin.write(b"+")
        self.tool.stdin.flush()
        t.check_equal("it takes more", self.tool.stdout.readline(), b"taken\n")

    def __exit__(self, *_):
        self.tool.communicate(timeout=t.PATIENCE_S)
        os.remove("waiting.cairn")


def top(pid, *options):
    shown = t.run_cairn("top", "--once", "--interval", "100ms", *options, pid)
    t.check_equal(f"top {options}: {shown.err}", shown.status, 0)
    return shown


def check_top():
    """Live, without stopping it: the heaps by name, the stacks of one, and what comes meanwhile."""
    def held(heap):
        found = json.loads(top(program.pid, "--json", "--heap", heap).out)
        if "heaps" in found:
            return {one["name"]: (one["live_bytes"], one["live_blocks"], one["allocations"]) for one in found["heaps"]}
        t.check_equal("its name", found["heap"], heap)
        sums = {}
        for one in found["stacks"]:
            before = sums.get(t.functions(one)[0], (0, 0, 0))
            sums[t.functions(one)[0]] = tuple(a + one[key] for a, key in zip(before, ("live_bytes", "live_blocks", "allocations")))
        return sums
    with Waiting() as program:
        t.check_equal("by name", held(""), {"mine": (15_020, 110, 201), "areas/red": (70, 10, 30), "areas/blue": (70, 10, 10)})
        t.check_equal("stacks", held("mine"), {"fill_early": (10_000, 10, 100), "fill_late": (4950, 99, 100), "grow": (70, 1, 1)})
        # stacks that hold nothing have no line
        t.check_equal("of all names", held("areas")["take_blue"], (140, 20, 20))
        program.take()
        t.check_equal("and more", held("areas/red"), {"take_red": (1000, 10, 10), "take_blue": (70, 10, 10)})
        whole = json.loads(top(program.pid, "--json").out)
        t.check("pool_alloc" in str(whole["stacks"]) and all("pool_alloc" in str(one) or "arena_" in str(one) for one in whole["stacks"]),
                f"malloc's own list has the backing alone: {whole}")
        printed = top(program.pid, "--heap", "mine").out.decode()
        t.check("3 stacks of heap mine by what they hold: 14.7 KiB in 110 blocks" in printed and "malloc: live 1.0 MiB" in printed, printed)
        none = top(program.pid, "--heap", "yours")
        t.check_equal("it is said", none.err.decode(), "cairn: top: --heap yours: the program has no such heap so far\n")
        refused = t.run_cairn("top", "--once", "--heap", "mine")
        t.check("needs the PID or NAME" in refused.err.decode(), f"of no process: {refused}")


def check_top_screen():
    if not shutil.which("tmux"):
        return t.skip_part("tmux is not installed")
    from tmux_screen import Screen
    with Waiting() as program:
        screen = Screen(f"{t.CAIRN} top --interval 100ms {program.pid}")
        screen.wait_for(r"7 stacks by what they hold", "malloc's list")
        screen.press("w", r"3 heaps by what they hold.*\n.*HEAP\n +14\.7 KiB .* 110  mine\n", "by name")
        screen.press("Enter", r"3 stacks of heap mine .*\n.*STACK\n +9\.8 KiB .*fill_early program\.c:\d+ \u2190 main", "its stacks")
        screen.press("Enter", r"live 9\.8 KiB in 10 blocks, 67 % of the heap", "one of them")
        screen.press("Escape", r"3 stacks of heap mine", "back to the heap")
        screen.press("v", r"are younger is not known", "what came since a mark is not known")
        screen.press("Escape", r"3 heaps by what they hold", "back to the heaps")
        program.take()
        screen.wait_for(r"1\.0 KiB +\+1000 B .* areas/red", "what grew")
        screen.press("w", r"8 stacks by what they hold", "and malloc's list")
        screen.press("q", r"(?m)^status 0", "leave")
        screen.close()


t.need("gcc")
if os.uname().machine != "x86_64":
    t.cannot_run_here("--wrap is for x86-64")
wrapped_heaps.make()
check_views(check_figures())
check_over_time()
check_parts()
check_fork()
check_at_fork()
check_late_name()
check_top()
check_top_screen()
t.finish()
