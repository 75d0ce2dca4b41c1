# SPDX-License-Identifier: Apache-2.0
"""Programs that do what they are told on stdin, and cairn attach beside them."""

import signal
import subprocess

from cairn_test import CAIRN, PROGRAMS, check, check_equal, environment, fresh_path, report


class Target:
    """tests/programs/attached.c, or another one that says "ready" and answers each line."""

    def __init__(self, threads=1, path=PROGRAMS / "attached", before=()):
        self.process = subprocess.Popen([*before, str(path), str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment(), text=True)
        self.pid = self.process.pid
        check_equal("the program starts", self.process.stdout.readline(), "ready\n")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self, what):
        check_equal(f"{what}: the program's own look at its blocks", self.tell("end"), "sound")
        self.process.stdin.close()
        check_equal(f"{what}: its status", self.process.wait(60), 0)


class Attached:
    """cairn attach in the background; leave() has it leave and returns the report."""

    def __init__(self, pid, *options):
        self.path = fresh_path("attached") + ".cairn"
        self.process = subprocess.Popen(
            [CAIRN, "attach", str(pid), "-o", self.path, *options], env=environment(),
            stderr=subprocess.PIPE, bufsize=0)  # of what is read as a line nothing behind it is lost
        self.first = self.process.stderr.readline().decode()
        check("cairn: recording" in self.first, f"attach begins: {self.first}")

    def leave(self, ask=None):
        if ask:
            ask()
        else:
            self.process.send_signal(signal.SIGINT)
        self.err = self.process.communicate(timeout=120)[1].decode()
        check_equal("attach ends well", self.process.returncode, 0)
        return report(self.path)
