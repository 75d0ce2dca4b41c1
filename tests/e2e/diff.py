#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn diff: differences that are known because the program was told what to allocate. Stacks are the
same although lines moved or a function was inlined; several recordings a side leave noise out."""

import json
import os
import re
import shlex

import cairn_test as t

t.need("gcc")

SOURCE = r"""
#include <stdlib.h>
%(blank)s
static void *volatile kept[64];
static int count;
%(inline)s static void keep(size_t size) { kept[count++] = malloc(size); }
__attribute__((noinline)) static void steady(void) { keep(1000); keep(1000); }
__attribute__((noinline)) static void noisy(size_t size) { keep(size); kept[63] = 0; }
__attribute__((noinline)) static void grown(size_t size) { keep(size); kept[63] = 0; }
__attribute__((noinline)) static void %(name)s(void) { keep(700); kept[63] = 0; }
int main(int argc, char **argv) {
    steady();
    noisy((size_t)atol(argv[1]));
    grown((size_t)atol(argv[2]));
    if (argc > 3) %(name)s();
    return 0;
}
"""
NOINLINE = "__attribute__((noinline, noclone))"
INLINE = "__attribute__((always_inline)) inline"


def build(name, blank=0, inline=NOINLINE, function="extra", flags=("-O1", "-g")):
    with open(f"{name}.c", "w", encoding="utf-8") as file:
        file.write(SOURCE % {"blank": "\n" * blank, "inline": inline, "name": function})
    result = t.run(["gcc", *flags, "-fno-builtin", "-fno-optimize-sibling-calls", "-o", name, f"{name}.c"])
    t.check_equal(f"{name}: gcc", result.status, 0)
    return name


def record(name, *arguments):
    return t.record([f"./{name}", *map(str, arguments)])[1]


def diff(before, after, *options, status=0):
    result = t.run_cairn("diff", *options, before, after)
    t.check_equal(f"diff {options}: status", result.status, status)
    return result.out.decode() if status == 0 else result.err.decode()


def rows(before, after, *options):
    found = json.loads(diff(before, after, "--json", *options))
    result = {}
    for row in found["rows"]:
        functions = [name for name in row.get("functions", [row.get("name")]) if name != "keep"]
        result[functions[0]] = (row["change"], row["delta"])
    return result


plain = build("plain")
first = record(plain, 100, 5000)
second = record(plain, 100, 9000, "extra")
changes = rows(first, second, "--by", "exit")
t.check_equal("grown", changes.get("grown"), ("grown", 4000))
t.check_equal("extra", changes.get("extra"), ("new", 700))
t.check_equal("steady", changes.get("steady"), ("same", 0))
t.check_equal("backwards", rows(second, first, "--by", "exit").get("extra"), ("gone", -700))
t.check_equal("--focus", set(rows(first, second, "--focus", "^extra$")), {"extra"})


def next_of(before, after, *options):
    """The command that the last line names, as words."""
    last = diff(before, after, *options).splitlines()[-1]
    return shlex.split(last.removeprefix("next: ")) if last.startswith("next: ") else None


t.check_equal("next", next_of(first, second), ["cairn", "diff", "--view", "tree", first, second])
t.check_equal("next, with what was asked for", next_of(first, second, "--by=exit", "--top", "1", "-f", "grown|it's", "--bytes"),
              ["cairn", "diff", "--view", "tree", "--by", "exit", "--focus", "grown|it's", "--bytes", first, second])
named_next = next_of(first, second, "--by", "exit", "--focus", "^(grown|extra)$")
t.check("grown" in t.run_cairn(*named_next[1:]).out.decode(), f"what is next runs: {named_next}")
for options in (("--view", "tree"), ("--view", "functions", "--by", "exit")):
    t.check_equal(f"next of {options}", next_of(first, second, *options), ["cairn", "open", first, second])
t.check_equal("nothing changed: nothing is next", next_of(first, first), None)
t.check_equal("a page is of one recording a side", next_of(f"{first},{first}", second, "--view", "functions"), None)

moved = build("moved", blank=40)
changes = rows(first, record(moved, 100, 5000))
t.check_equal("moved lines: changes", {change for change, _ in changes.values()}, {"same"})

named = build("named", inline=NOINLINE, flags=("-O1",))
inlined = build("inlined", inline=INLINE, flags=("-O1",))
changes = rows(record(named, 100, 5000), record(inlined, 100, 5000))
t.check_equal("inlined: steady", changes.get("steady"), ("same", 0))
t.check_equal("inlined: grown", changes.get("grown"), ("same", 0))
t.check("although functions were inlined" in diff(record(named, 1, 5), record(inlined, 1, 5)),
        "inlined: nothing says that stacks were joined")

several = [",".join(record(plain, noise, size) for noise in (100, 300, 200)) for size in (5000, 6000)]
found = json.loads(diff(*several, "--json"))
by_function = {row["functions"][-2]: row for row in found["rows"] if len(row["functions"]) > 1}
t.check_equal("spread: noisy", (by_function["noisy"]["change"], by_function["noisy"]["within_spread"]),
              ("same", True))
t.check_equal("spread: grown", (by_function["grown"]["change"], by_function["grown"]["delta"]),
              ("grown", 1000))
screen = diff(*several)
t.check("noisy" not in screen and "1 within the spread" in screen, f"spread: {screen}")

# what three runs a side may well differ by without a reason: small rows are left out, larger ones say so
varied = [",".join(record(plain, 100, size + step) for step in (0, 10, 20)) for size in (5000, 6000)]
screen = diff(*varied)
t.check("1 within the spread" in screen and "by chance" in screen, f"small: {screen}")
varied = [",".join(record(plain, 100, size + step) for step in (0, 10, 20)) for size in (5000, 900000)]
found = {row["functions"][-2]: row for row in json.loads(diff(*varied, "--json"))["rows"] if len(row["functions"]) > 1}
t.check_equal("large", (found["grown"]["change"], found["grown"]["chance"]), ("grown", 0.1))
t.check("10 % by chance" in diff(*varied), "large: the chance is shown")
t.check("one run on a side: how much of it is noise is not known" in diff(first, second), "one run a side")

for view in ("tree", "functions", "files", "directories", "modules", "types", "leaks"):
    screen = diff(first, second, "--view", view)
    t.check(re.search(r"peak heap .*\u2192.*\+4.6 KiB", screen), f"{view}: {screen}")
t.check(re.search(r"\+3\.9 KiB .*grown", diff(first, second, "--view", "tree")), "tree: no grown")
t.check("different programs" in diff(first, t.record(t.program("leak"))[1]), "another program")
t.check("no_such" in diff(first, "no_such.cairn", status=1), "a missing file is named")

# peaks of two phases: what is not at one of them, though it allocates as before, is neither gone nor new
with open("phases.c", "w", encoding="utf-8") as file:
    file.write(r'''
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noinline)) static void early(size_t size) { kept = malloc(size); free(kept); }
__attribute__((noinline)) static void late(size_t size) { kept = malloc(size); free(kept); }
int main(int argc, char **argv) {
    usleep(30000);
    early(50000);
    usleep(30000);
    late((size_t)atol(argv[argc - 1]));
    return 0;
}
''')
t.check_equal("phases: gcc", t.run(["gcc", "-O1", "-g", "-fno-builtin", "-o", "phases", "phases.c"]).status, 0)
before, after = record("phases", 90000), record("phases", 20000)
t.check_equal("phases", rows(before, after), {"early": ("only at this peak", 50000), "late": ("not at this peak", -90000)})
t.check_equal("phases: allocated", rows(before, after, "--by", "allocated"), {"early": ("same", 0), "late": ("shrunk", -70000)})
screen = diff(before, after)
t.check("1 not at this peak, 1 only at this peak" in screen and re.search(r"peaks at \w+ times: .* of .*, .* of ", screen),
        f"phases: {screen}")
t.check("noise" not in diff(f"{before}@peak", f"{before}@exit"), "two moments of one run: nothing is said of noise")

# every view works: lines that moved are the same, a rewritten function is matched in order
LINES = r"""%s#include <stdlib.h>
#include <stdio.h>
static void *kept[100];
static int count;
static void fill(int blocks) {
    for (int i = 0; i < blocks; i++) kept[count++] = malloc(1000);
    %skept[count++] = malloc(500);
}
int main(int argc, char **argv) {
    fill(atoi(argv[1]));
    kept[count++] = calloc(1, 77);
    return argc > 9;
}
"""


def record_lines(place, above, within, blocks):
    os.makedirs(place)
    with open(f"{place}/lines.c", "w", encoding="utf-8") as file:
        file.write(LINES % (above, within))
    built = t.run(["gcc", "-O0", "-g", "-o", f"{place}/lines", os.path.abspath(f"{place}/lines.c")])
    t.check_equal(f"{place}: gcc", built.status, 0)
    return t.record([f"{place}/lines", str(blocks)])[1]


first = record_lines("one", "", "", 10)
moved = record_lines("two", "// moved\n\n\n", "", 12)
changed = record_lines("three", "\n", "kept[count++] = malloc(200);\n    ", 10)


def rows_of(before, after, view):
    found = json.loads(diff(before, after, "--json", "--view", view))
    return {row.get("function", row["name"]) + ":" + row["name"].rsplit(":", 1)[-1]:
            (row["change"], row["delta"]) for row in found["rows"]}


t.check_equal("lines that moved", rows_of(first, moved, "lines"),
              {"fill:9": ("grown", 2000), "fill:10": ("same", 0), "main:14": ("same", 0)})
t.check_equal("lines of a function that was rewritten", rows_of(first, changed, "lines"),
              {"fill:7": ("same", 0), "fill:8": ("shrunk", -300), "fill:9": ("new", 500),
               "main:13": ("same", 0)})
text = diff(first, moved, "--view", "annotate")
t.check(re.search(r"\+2.0 KiB +11.7 KiB +9 .*kept", text), f"annotate: {text}")
t.check("two/lines.c" in text, f"annotate: {text}")
t.check("no stack goes through it" in diff(first, moved, "--view", "annotate", "--source", "x.c", status=1),
        "--source")
t.check_equal("threads", rows_of(first, moved, "threads"), {"main thread:main thread": ("grown", 2000)})
for view in ("timeline", "memory", "pools"):
    text = diff(first, moved, "--view", view)
    t.check("before: " in text and "after: " in text, f"{view}: {text}")
    t.check("no rows" in diff(first, moved, "--view", view, "--json", status=2), f"{view}: JSON")
text = diff(f"{first}@peak", f"{first}@exit")
t.check(re.search(r"^  live  ", text, re.M) and "unchanged" in text, f"snapshots: {text}")
t.check("snapshot" in diff(f"{first}@peak", f"{first}@exit", "--by", "calls", status=1), "snapshots and --by")
t.check("no-such-mark" in diff(f"{first}@no-such-mark", first, status=1), "a snapshot there is not")
t.finish()
