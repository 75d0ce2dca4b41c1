# SPDX-License-Identifier: Apache-2.0
"""A program under cairn that a test watches, disturbs and kills while it runs."""

import json
import os
import subprocess

import cairn_test as t
import ledger


class Running:
    """A `doomed` that works: its process (the tool's under `run`), its own pid, its account."""

    def __init__(self, how, arguments, path):
        self.path = os.path.abspath(path or t.fresh_path("running") + ".cairn")
        self.account_path = t.fresh_path("account")
        self.output_path = t.fresh_path("output")
        argv = t.program("doomed", *arguments)
        env = {"LEDGER": self.account_path}
        if how == "alone":
            env.update(LD_PRELOAD=t.RUNTIME, CAIRN_OUTPUT=self.path)
        else:
            argv = [t.CAIRN, "run", "-q", "-o", self.path, "--", *argv]
        with open(self.output_path, "wb") as output:
            self.process = subprocess.Popen(argv, env=t.environment(env), stdout=output,
                                            stderr=output, stdin=subprocess.DEVNULL)
        self.pid = 0

    def account(self):
        return ledger.read(self.account_path)[self.pid]

    def read_output(self):
        with open(self.output_path, "rb") as file:
            return file.read()


def start(how, *arguments, path=None):
    return Running(how, arguments, path)


def wait_for_work(run, allocations=2000):
    """Until every thread has begun and the program has done something worth losing."""
    def is_at_work():
        run.pid = ledger.at_work(run.account_path, allocations)
        return run.pid

    t.check(t.wait_until(is_at_work), "the program does not begin")


def totals(result):
    return json.loads(result.out)["totals"]
