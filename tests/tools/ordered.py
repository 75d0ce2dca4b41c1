# SPDX-License-Identifier: Apache-2.0
"""tests/programs/ordered under `cairn run`, with a model of its heap beside it."""

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

    def fork(self):
        """From now on the child follows orders; its recording is another one."""
        self.tool.stdin.write("0 fx 0 0\n")
        self.tool.stdin.flush()
        self.pid = self.tool.stdout.readline().split()[1]

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
        self.tool.communicate(timeout=t.PATIENCE_S)
        t.check_equal("status", self.tool.returncode, 0)


def held_in(found, suffix="at"):
    held = {}
    for name, function in FUNCTIONS.items():
        stacks = [s for s in found["stacks"] if any(f["function"] == function for f in s["frames"])]
        held[name] = (sum(s[f"{suffix}_bytes"] for s in stacks), sum(s[f"{suffix}_blocks"] for s in stacks))
    return held
