#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Snapshots and marks outlive their program, however it ends, and a fork keeps the marks of its parent."""

import os
import pathlib
import signal

import cairn_test as t
from ordered import Ordered, held_in


def fill(program):
    program.order(0, "+", "a", 100, 50)
    program.take("snapshot", "first")
    program.order(1, "+", "b", 40, 1000)
    program.order(0, "-", "a", 30)
    program.take("mark", "middle")
    program.order(0, "+", "a", 7, 16)
    program.order(1, "-", "b", 10)
    program.order(1, "-", "a", 20)
    program.take("snapshot", "last")
    program.order(0, "-", "b", 5)
    program.order(0, "+", "c", 3, 70000)


def check_killed():
    program = Ordered("killed.cairn", "--snapshot-every", "16K")
    fill(program)
    os.kill(int(program.pid), signal.SIGKILL)
    program.tool.communicate(timeout=t.PATIENCE_S)
    for label, held in program.at.items():
        t.check_equal(f"killed: at {label}", held_in(t.report("killed.cairn", "--at", label)), held)
    t.check_equal("killed: since", held_in(t.report("killed.cairn", "--since", "middle")), program.held(1))
    t.check_equal("killed: end", held_in(t.report("killed.cairn"), "at_exit"), program.held())


def check_fork():
    program = Ordered("forked.cairn")
    fill(program)
    parent, parent_held = program.pid, program.held()
    program.fork()
    program.order(0, "+", "c", 1500, 8)  # fewer, and its recording would not be kept
    program.order(0, "-", "a", 40)
    program.order(0, "+", "b", 5, 1000)
    program.take("snapshot", "in the child")
    program.order(0, "-", "b", 20)
    program.take("mark", "later")
    program.order(0, "+", "a", 2, 16)
    program.end()
    files = {path.name.split(".")[-2]: str(path) for path in pathlib.Path("forked.cairn").glob("*.cairn")}
    if not t.check(set(files) == {parent, program.pid}, f"files: {files}"):
        return
    child = files[program.pid]
    t.check_equal("parent: end", held_in(t.report(files[parent]), "at_exit"), parent_held)
    t.check_equal("child: end", held_in(t.report(child), "at_exit"), program.held())
    label = "in the child"
    t.check_equal(f"child: at {label}", held_in(t.report(child, "--at", label)), program.at[label])
    t.check_equal("child: since a mark of its parent", held_in(t.report(child, "--since", "middle")),
                  program.held(1))
    t.check_equal("child: since its own mark", held_in(t.report(child, "--since", "later")), program.held(2))
    refused = t.run_cairn("report", "--at", "middle", child)
    t.check(refused.status == 1 and refused.err, f"child: at a mark of its parent: {refused.err}")


check_killed()
check_fork()
t.finish()
