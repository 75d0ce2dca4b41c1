#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What stacks held at snapshots, and what was allocated since a mark and still lives, against a program
that does what it is told: two threads that also free each other's blocks, a fixed choice of orders,
snapshots and marks in between."""

import random

import cairn_test as t
from ordered import FUNCTIONS, Ordered, held_in

def run_orders(path, threads, options=()):
    choice = random.Random(7)
    program = Ordered(path, *options)
    for step in range(40):
        name = choice.choice("abc")
        left = len(program.blocks[name])
        if left and choice.random() < 0.45:
            program.order(choice.randrange(threads), "-", name, choice.randint(1, left))
        else:
            program.order(choice.randrange(threads), "+", name, choice.randint(1, 400), choice.choice([8, 100, 3000]))
        if step % 5 == 4:
            program.take("mark" if step % 10 == 9 else "snapshot", f"step {step}")
    program.end()
    return program


def check_all(path, program):
    for label, held in program.at.items():
        found = t.report(path, "--at", label)
        t.check_equal(f"{path} at {label}", held_in(found), held)
    for label, generation in program.generations.items():
        found = t.report(path, "--since", label)
        t.check_equal(f"{path} since {label}", held_in(found), program.held(generation))
    t.check_equal(f"{path}: end", held_in(found, "at_exit"), program.held())
    first, last = list(program.at)[1], list(program.at)[-1]
    between = {name: tuple(b - a for a, b in zip(program.at[first][name], program.at[last][name]))
               for name in FUNCTIONS}
    t.check_equal(f"{path} between", held_in(t.report(path, "--between", f"{first},{last}")), between)


for threads in (1, 2):
    path = f"orders{threads}.cairn"
    check_all(path, run_orders(path, threads))
# automatic snapshots all the time: those asked for stay, and so do their values
check_all("busy.cairn", run_orders("busy.cairn", 2, ["--snapshot-every", "16K"]))
check_all("none.cairn", run_orders("none.cairn", 1, ["--snapshot-every", "0"]))
t.finish()
