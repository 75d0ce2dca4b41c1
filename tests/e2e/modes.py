#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--no-stacks counts what a full recording counts, without stacks, and says so; a library that is switched
off leaves the program alone and an empty recording."""

import cairn_test as t


def totals_only(name, argv):
    full, full_path = t.record(argv)
    short = t.fresh_path("totals") + ".cairn"
    result = t.run_cairn("run", "-q", "--no-stacks", "-o", short, *argv)
    result.check_like(name, full)
    wanted, found = t.report(full_path), t.report(short)
    for one in wanted, found:  # which blocks are watched is chance
        del one["totals"]["watched"], one["totals"]["watched_short_lived"]
    for what in ("totals", "at_exit"):
        t.check_equal(f"{name}: {what}", found[what], wanted[what])
    for what in ("bytes", "blocks"):
        t.check_equal(f"{name}: peak {what}", found["peak"][what], wanted["peak"][what])
    stacks = {tuple(t.functions(stack)) for stack in found["stacks"]}
    t.check(len(stacks) == 1, f"{name}: stacks {stacks}")
    t.check("no_stacks" in found["trust"]["stacks_incomplete"], f"{name}: {found['trust']}")


totals_only("mixed", t.program("mixed"))
totals_only("realloc_chain", t.program("realloc_chain"))

plain = t.run(t.program("mixed"))
off, path = t.record_alone(t.program("mixed"), env={"CAIRN_OFF": "1"})
off.check_like("off", plain)
found = t.report(path)
t.check_equal("off: allocations", found["totals"]["allocations"], 0)
t.check_equal("off: losses", found["trust"]["lost"], {})
shown = t.run_cairn("env", "--no-stacks")
t.check(b"CAIRN_STACKS=0" in shown.out.replace(b"'", b""), f"env --no-stacks: {shown.out!r}")
t.finish()
