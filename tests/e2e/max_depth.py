#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --max-depth N: the N innermost frames of a stack stay, the figures are what they are without it, and
recordings of different depths are compared as if all had the least."""

import collections
import json
import os

import cairn_test as t

LEVELS = t.program("levels")[0]
DEPTH, ROUNDS = 300, 3
KEYS = ("peak_bytes", "at_exit_bytes", "allocations", "allocated_bytes", "frees")


def record(*options, argv=(LEVELS, str(DEPTH), str(ROUNDS)), env=None):
    path = t.fresh_path("levels") + ".cairn"
    result = t.run([t.CAIRN, "run", "-q", *options, "-o", path, "--", *argv], env=env)
    t.check_equal(f"{options}: status, stderr", (result.status, result.err), (0, b""))
    return path, result.out


def functions(stack):
    return tuple(f.get("function") or f"{f['module']}+{f['offset']:#x}" for f in stack["frames"] if not f.get("inlined"))


def by_stack(found, depth=None):
    """Values by stack; with `depth`, of its innermost frames and of whether there were more."""
    sums = collections.defaultdict(collections.Counter)
    for stack in found["stacks"]:
        names = functions(stack)
        is_cut = stack["incomplete"] == "max_depth" or (depth is not None and len(names) > depth)
        sums[names[:depth], is_cut].update({key: stack[key] for key in KEYS})
    return {key: dict(values) for key, values in sums.items()}


whole_path, whole_out = record()
whole = t.report(whole_path, "--all-frames")
paths = {}
for depth in (1, 2, 3, 64, 304, 1000, 32765):
    paths[depth], out = record("--max-depth", str(depth))
    found = t.report(paths[depth], "--all-frames")
    t.check_equal(f"{depth}: the program's output", out, whole_out)
    t.check_equal(f"{depth}: stacks", by_stack(found), by_stack(whole, depth))
    for part, key in (("peak", "bytes"), ("totals", "allocations"), ("totals", "allocated_bytes"), ("at_exit", "bytes")):
        t.check_equal(f"{depth}: {part} {key}", found[part][key], whole[part][key])
    t.check_equal(f"{depth}: is said", found["trust"]["max_depth"], depth)
    t.check(found["trust"]["exact"], f"{depth}: {found['trust']}")
t.check("max_depth" not in whole["trust"], whole["trust"])

# what is read is cut as what is recorded: against the least depth nothing is new
for one, other in ((whole_path, paths[64]), (paths[3], paths[64]), (paths[64], paths[1])):
    for pair in ((one, other), (other, one)):
        shown = json.loads(t.run_cairn("diff", *pair, "--by", "calls", "--json").out)
        t.check_equal(f"diff of {pair}", {row["change"] for row in shown["rows"]}, {"same"})
left = t.run_cairn("leaks", paths[3], "--baseline", whole_path, "--json")
t.check(left.status == 0 and not [s for s in json.loads(left.out)["stacks"] if s["allocations"]], f"leaks: {left.out[:300]!r}")

# so are stacks of a history, in which twice the rounds are twice the calls of each
twice = (LEVELS, str(DEPTH), str(2 * ROUNDS))
for first, second in (((), ("--max-depth", "64")), (("--max-depth", "3"), ()), (("--max-depth", "64"), ("--max-depth", "3"))):
    series, outside = t.fresh_path("history") + ".db", t.environment({"GIT_DIR": os.devnull})
    for commit, options, argv in (("one", first, (LEVELS, str(DEPTH), str(ROUNDS))), ("two", second, twice)):
        appended = t.run_cairn("check", "--max-calls", "1e9", "--series", series, "--commit", commit,
                               record(*options, argv=argv)[0], env=outside)
        t.check_equal(f"history of {first}, {second}: {appended.err!r}", appended.status, 0)
    steps = json.loads(t.run_cairn("history", "--json", series, env=outside).out)["steps"]
    moved = [stack for step in steps if step["measure"] == "calls" for stack in step["stacks"]]
    t.check(moved and all(stack["after"] == 2 * stack["before"] for stack in moved), f"history of {first}, {second}: {moved[:9]}")

# a sum has the least depth of its parts
merged = t.fresh_path("merged") + ".cairn"
t.check_equal("merge", t.run_cairn("merge", whole_path, paths[64], paths[3], "-o", merged).status, 0)
found = t.report(merged, "--all-frames")
t.check_equal("merge: stacks", set(by_stack(found)), set(by_stack(whole, 3)))
t.check_equal("merge: depth", found["trust"]["max_depth"], 3)

# screens and exports
text = t.run_cairn("report", paths[64], "--depth", "0").out.decode()
t.check("stacks cut at 64 frames: " in text and "(cut at 64)" in text, text)
t.check("incomplete" not in text, text)
tree = t.run_cairn("report", paths[64], "--view", "tree").out.decode()
t.check("(cut at 64)" in tree, tree)
inverted = t.run_cairn("report", paths[64], "--view", "tree", "--inverted", "--depth", "0", "--threshold", "0").out.decode()
t.check("(cut at 64)" in inverted, inverted)
folded = t.run_cairn("export", "-f", "collapsed", "--by", "calls", paths[64]).out.decode().splitlines()
t.check(folded and all(line.startswith("(cut at 64);") for line in folded if line.count("even") + line.count("odd") == 64
                       and "main" not in line), folded[:3])
t.check(any(line.startswith("(cut at 64);") for line in folded), folded[:3])
t.check("max_depth" in t.run_cairn("export", "-f", "csv", paths[64]).out.decode(), "csv")

# what cannot be
for text, words in (("0", b"--no-stacks"), ("1000000000", b"at most 32765"), ("x", b"needs a number"), ("-1", b"needs a number")):
    for command in (("run",), ("env",), ("attach",)):
        rest = {"run": ["true"], "env": [], "attach": [str(os.getpid())]}[command[0]]
        result = t.run_cairn(*command, f"--max-depth={text}", *rest)
        t.check(result.status != 0 and words in result.err, f"{command} {text}: {result.status} {result.err!r}")
t.check(t.run_cairn("run", "--max-depth", "5", "--no-stacks", "true").status != 0, "--no-stacks and --max-depth")
t.check(b"CAIRN_MAX_DEPTH" in t.run_cairn("env", "--max-depth", "7").out, "env")

# a stack that is one mapping of 8 GiB, and levels beyond what a stack can have without the option
path, out = record("--max-depth", "64", argv=(LEVELS, "80000", "2", "8"))
t.check_equal("80,000 levels", out, b"160000 levels\n")
found = t.report(path)
t.check(found["totals"]["allocations"] >= 160002, found["totals"])
t.check(len(found["stacks"]) < 200, len(found["stacks"]))
t.check(found["trust"]["exact"], found["trust"])

# a child of another depth: one run, shown at the least
argv = ("sh", "-c", f"CAIRN_MAX_DEPTH=5 {LEVELS} 300 1; {LEVELS} 300 1; :")
run, _ = record("--max-depth", "20", argv=argv)
t.check_equal("children: merge", t.run_cairn("merge", run, "-o", merged + "2").status, 0)
found = t.report(merged + "2", "--all-frames")
t.check_equal("children: depth", found["trust"]["max_depth"], 5)
t.check(all(len(functions(stack)) <= 5 for stack in found["stacks"]), "children: a deeper stack")

# frames of Python stay where the frame of the interpreter does in which they lie, recorded and read alike
script = "def f(n):\n x = bytearray(600)\n return f(n - 1) + 1 if n else 0\nf(20)\n"
argv, env = (t.PYTHON, "-S", "-c", script), t.environment({"PYTHONHASHSEED": "0"})
sides = [record("--python", *options, argv=argv, env=env)[0] for options in ((), ("--max-depth", "8"))]
shown = json.loads(t.run_cairn("diff", *sides, "--by", "calls", "--top", "0", "--json").out)
few = sum(row["change"] in ("new", "gone") for row in shown["rows"])
t.check(shown["rows"] and few <= len(shown["rows"]) // 100, f"Python: {few} of {len(shown['rows'])} stacks are on one side")
t.finish()
