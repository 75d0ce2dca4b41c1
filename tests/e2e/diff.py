#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn diff: differences that are known because the program was told what to allocate. Stacks are the
same although lines moved or a function was inlined; several recordings a side leave noise out."""

import json
import re

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

for view in ("tree", "functions", "files", "modules", "types", "leaks"):
    screen = diff(first, second, "--view", view)
    t.check(re.search(r"peak heap .*\u2192.*\+4.6 KiB", screen), f"{view}: {screen}")
t.check(re.search(r"\+3\.9 KiB .*grown", diff(first, second, "--view", "tree")), "tree: no grown")
t.check("cannot be compared" in diff(first, second, "--view", "lines", status=2), "lines are refused")
t.check("different programs" in diff(first, t.record(t.program("leak"))[1]), "another program")
t.check("no_such" in diff(first, "no_such.cairn", status=1), "a missing file is named")
t.finish()
