#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks are whole where walking is hard: 2,000 frames, alloca, realigned frames, a handler below a
signal frame, a coroutine, code of a library that was unloaded."""

import cairn_test as t


def only(stacks, what):
    return stacks[0] if t.check(len(stacks) >= 1, f"no stack: {what}") else None


def with_bytes(found, allocated_each):
    return [s for s in found["stacks"]
            if s["allocations"] and s["allocated_bytes"] == allocated_each * s["allocations"]]


def check_chain(found, bytes_each, wanted):
    """The stack that allocates blocks of `bytes_each` passes these functions, innermost first."""
    stack = only(with_bytes(found, bytes_each), f"of {bytes_each} bytes")
    if not stack:
        return
    names = t.functions(stack)
    positions = [names.index(name) if name in names else -1 for name in wanted]
    t.check(-1 not in positions and positions == sorted(positions),
            f"{bytes_each} bytes: {wanted} in {names}")
    t.check("main" not in names or names.count("main") == 1, f"main twice: {names}")


def recorded(*command):
    _, path = t.record(t.program(*command))
    return t.report(path)


deep = recorded("deep_recursion")
if deep:
    bottom = only([s for s in deep["stacks"] if s["allocated_bytes"] == 64], "2,000 frames")
    if bottom:
        t.check_equal("frames of descend", t.functions(bottom).count("descend"), 2001)
        t.check_equal("main below them", t.functions(bottom).count("main"), 1)
    t.check_equal("incomplete", sum(deep["trust"]["stacks_incomplete"].values()), 0)

frames = recorded("frames")
if frames:
    check_chain(frames, 101, ["with_alloca", "main"])
    check_chain(frames, 202, ["with_aligned_local", "main"])
    check_chain(frames, 303, ["with_arguments", "main"])
    check_chain(frames, 404, ["jump_out", "main"])
    check_chain(frames, 505, ["compare", "main"])
    nested = t.stacks_through(frames, "with_alloca", "with_aligned_local")
    t.check_equal("alloca below an aligned frame", len(nested), 1)
    t.check_equal("incomplete", sum(frames["trust"]["stacks_incomplete"].values()), 0)

signals = recorded("signal_handler")
if signals:
    check_chain(signals, 222, ["on_alternate", "main"])
    check_chain(signals, 333, ["on_alternate", "main"])
    check_chain(signals, 444, ["on_fault", "fault_here", "main"])
    inner = [s for s in with_bytes(signals, 111) if "on_alternate" in t.functions(s)]
    stack = only(inner, "a handler inside a handler")
    if stack:
        names = t.functions(stack)
        t.check_equal("handler in handler",
                      [n for n in names if n in ("on_plain", "on_alternate", "main")],
                      ["on_plain", "on_alternate", "main"])

coroutines = recorded("coroutines")
if coroutines:
    inside = t.stacks_through(coroutines, "turn", "body")
    t.check(inside, "no stack of a coroutine")
    t.check(not any("main" in t.functions(s) for s in inside), "main below a coroutine's stack")
    # Below them is the first byte of __start_context, as a return address: no unwind information covers the
    # place before it, so these stacks cannot be told from cut ones. No other stack is.
    t.check_equal("incomplete", sum(coroutines["trust"]["stacks_incomplete"].values()), len(inside))

plugin = recorded("dlopen_loop")
if plugin:
    inside = t.stacks_through(plugin, "plugin_allocate")
    t.check_equal("leaked by a library that is gone", sum(s["at_exit_bytes"] for s in inside),
                  50 * 57)
    t.check_equal("its constructor", sum(s["allocations"] for s in
                                         t.stacks_through(plugin, "plugin_start")), 50)
t.finish()
