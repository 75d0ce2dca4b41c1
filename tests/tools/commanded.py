# SPDX-License-Identifier: Apache-2.0
"""tests/programs/commands.c under `cairn run`, driven line by line."""

import subprocess

import cairn_test as t


class Commanded:
    """`with Commanded("run.cairn", "--off") as program: program.do("early 100")`; `before`: what runs cairn."""

    def __init__(self, path, *options, program=None, before=()):
        argv = [*before, t.CAIRN, "run", "-q", "-o", path, *options, "--", *(program or t.program("commands"))]
        self.tool = subprocess.Popen(argv, env=t.environment(), stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.do("hello")
        with open(f"/proc/{self.tool.pid}/task/{self.tool.pid}/children", encoding="ascii") as children:
            self.pid = children.read().split()[0]

    def __enter__(self):
        return self

    def do(self, *lines):
        for line in lines:
            self.tool.stdin.write(line + "\n")
            self.tool.stdin.flush()
            t.check_equal(line, self.tool.stdout.readline(), "ok\n")

    def ctl(self, *words, status=0):
        result = t.run_cairn("ctl", self.pid, *words)
        t.check_equal(f"ctl {words}: status, {result.err}", result.status, status)
        return result.out.decode()

    def __exit__(self, *_):
        _, self.err = self.tool.communicate("end\n", timeout=t.PATIENCE_S)
        t.check_equal("status", self.tool.returncode, 0)


def totals_of(found, function):
    """What the stacks through a function allocated, freed and hold: (bytes, freed bytes, bytes at exit)."""
    stacks = [stack for stack in found["stacks"] if function in t.functions(stack)]
    return tuple(sum(stack[key] for stack in stacks)
                 for key in ("allocated_bytes", "freed_bytes", "at_exit_bytes"))
