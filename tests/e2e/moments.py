#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What stacks held at moments, and what was allocated since a mark and still lives, against a program
that does what it is told: two threads that also free each other's blocks, a fixed choice of orders,
snapshots and marks in between."""

import random
import subprocess

import cairn_test as t

FUNCTIONS = {"a": "keep_a", "b": "keep_b", "c": "keep_c"}


class Ordered:
    """The program under `cairn run`, and a model of its heap: per function (generation, size) of its blocks."""

    def __init__(self, path, *options):
        self.tool = subprocess.Popen([t.CAIRN, "run", "-q", *options, "-o", path, *t.program("ordered")],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     env=t.environment())
        self.tool.stdout.readline()
        children = subprocess.run(["pgrep", "-P", str(self.tool.pid), "-x", "ordered"], capture_output=True,
                                  text=True).stdout.split()
        self.pid = children[0] if t.check(len(children) == 1, f"children: {children}") else "0"
        self.blocks = {name: [] for name in FUNCTIONS}
        self.generation = 0
        self.at, self.generations = {}, {}

    def order(self, thread, sign, name, count, size=0):
        self.tool.stdin.write(f"{thread} {sign}{name} {count} {size}\n")
        self.tool.stdin.flush()
        t.check_equal("answer", self.tool.stdout.readline(), "done\n")
        if sign == "+":
            self.blocks[name] += [(self.generation, size)] * count
        else:
            del self.blocks[name][:count]

    def take(self, word, label):
        result = t.run_cairn("ctl", self.pid, word, label)
        t.check_equal(f"{word} {label}: status {result.err}", result.status, 0)
        self.at[label] = self.held()
        if word == "mark":
            self.generation += 1
            self.generations[label] = self.generation

    def held(self, since=0):
        return {name: (sum(size for born, size in blocks if born >= since),
                       sum(born >= since for born, _ in blocks)) for name, blocks in self.blocks.items()}

    def end(self):
        self.tool.communicate(timeout=60)
        t.check_equal("status", self.tool.returncode, 0)


def held_in(found, suffix="then"):
    held = {}
    for name, function in FUNCTIONS.items():
        stacks = [s for s in found["stacks"] if any(f["function"] == function for f in s["frames"])]
        held[name] = (sum(s[f"{suffix}_bytes"] for s in stacks), sum(s[f"{suffix}_blocks"] for s in stacks))
    return held


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
# automatic moments all the time: those asked for stay, and so do their values
check_all("busy.cairn", run_orders("busy.cairn", 2, ["--every", "16K"]))
check_all("none.cairn", run_orders("none.cairn", 1, ["--every", "0"]))
t.finish()
