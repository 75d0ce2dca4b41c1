#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a terminal: Ctrl-C reaches the program once and cairn reports afterwards; Ctrl-Z stops both and the
shell's `fg` continues both; the program has the terminal, its foreground group and its settings."""

import os
import pty
import re
import select
import signal
import subprocess
import time

import cairn_test as t

PATIENCE_S = 120


class Terminal:
    """A program as leader of a session with a terminal of its own."""

    def __init__(self, argv):
        self.seen = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, t.environment({"TERM": "dumb", "PS1": "$ "}))

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                return False
        return True

    def wait_for(self, pattern, what):
        end = time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.seen) and time.monotonic() < end:
            if not self.read(0.1):
                break
        return t.check(re.search(pattern, self.seen), f"{what}: no {pattern} in {self.seen[-600:]!r}")

    def type(self, keys):
        os.write(self.master, keys)

    def status(self):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.read(0.05) and select.select([self.master], [], [], 0.05)[0]:
                    pass
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        return None


COUNT = ("import signal, sys, time, os\n"
         "seen = []\n"
         "signal.signal(signal.SIGINT, lambda *rest: seen.append(1))\n"
         "print('foreground', os.tcgetpgrp(0) == os.getpgrp(), sys.stdin.isatty(),\n"
         "      sys.stdout.isatty(), flush=True)\n"
         "while not seen: time.sleep(0.05)\n"
         "time.sleep(0.5)\n"
         "print('interrupts', len(seen), flush=True)\n"
         "sys.exit(6)\n")


def check_interrupt():
    terminal = Terminal([t.CAIRN, "run", "-o", "interrupt.cairn", t.PYTHON, "-c", COUNT])
    terminal.wait_for(rb"cairn: recording .*python3.* \(pid \d+\) to interrupt\.cairn", "start line")
    terminal.wait_for(rb"foreground True True True", "the program's terminal")
    terminal.type(b"\x03")
    t.check_equal("Ctrl-C: status", terminal.status(), 6)
    t.check(b"interrupts 1\r\n" in terminal.seen, f"Ctrl-C: {terminal.seen!r}")
    t.check(b"ended with status 6" in terminal.seen, f"Ctrl-C: no report in {terminal.seen!r}")


def check_killed():
    """A program without a handler dies of it; cairn still reports."""
    terminal = Terminal([t.CAIRN, "run", "-o", "killed.cairn", "sh", "-c", "echo ready; read line"])
    terminal.wait_for(rb"ready", "the shell")
    terminal.type(b"\x03")
    t.check_equal("killed: status", terminal.status(), -signal.SIGINT)
    t.check(b"ended by SIGINT" in terminal.seen, f"killed: {terminal.seen!r}")


def check_loop():
    """A shell that meets Ctrl-C during a command ends its loop if the command died of it, and only then."""
    dies, lives = "echo waiting; read line", 'trap "exit 0" INT; echo waiting; while :; do sleep 0.1; done'
    for program, wanted in ((dies, 0), (lives, 2)):
        loop = f"for round in 1 2; do '{t.CAIRN}' run -q -o loop.cairn sh -c '{program}'; echo after; done"
        shell = Terminal(["bash", "--norc", "--noprofile", "-c", loop])
        for round in range(1, wanted + 1 if wanted else 2):
            shell.wait_for(rb"(?s)(waiting.*){%d}" % round, f"{program}: round {round}")
            shell.type(b"\x03")
        shell.status()
        t.check_equal(f"{program}: rounds that went on", shell.seen.count(b"after\r\n"), wanted)


def check_stop():
    """In an interactive shell with job control."""
    shell = Terminal(["bash", "--norc", "--noprofile", "-i"])
    shell.wait_for(rb"\$ ", "shell")
    shell.type(f"{t.CAIRN} run -o stop.cairn {t.PYTHON} ./ticker\n".encode())
    shell.wait_for(rb"tick 3\r\n", "ticks")
    shell.type(b"\x1a")
    shell.wait_for(rb"\[1\]\+ ", "Ctrl-Z")  # "Stopped", in the user's language
    shell.read(0.3)
    before = shell.seen.count(b"tick")
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        shell.read(0.1)
    t.check_equal("Ctrl-Z: ticks while stopped", shell.seen.count(b"tick"), before)
    shell.type(b"fg\n")
    shell.wait_for(rb"tick 39\r\n", "fg")
    shell.wait_for(rb"ended with status 0", "report after fg")
    shell.type(b"exit\n")
    t.check_equal("shell: status", shell.status(), 0)


def check_settings():
    """What the program changes in the terminal stays as it left it."""
    shell = Terminal(["sh", "-c", f"stty -g; '{t.CAIRN}' run -q -o stty.cairn stty -echo; stty -a"])
    shell.status()
    t.check(b"-echo " in shell.seen, f"stty: {shell.seen!r}")


def check_waiting():
    """Who looks at much memory is told so in a line, which is gone again once there is something else; not of little
    memory, and not where stderr is no terminal."""
    for mebibytes in 80, 4:
        with t.Process([t.PYTHON, "-c", f"kept = bytearray(b'k' * ({mebibytes} << 20)); print(flush=True); __import__('sys').stdin.read()"],
                       env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            look = Terminal([t.CAIRN, "report", str(process.pid)])
            t.check_equal(f"report of {mebibytes} MiB: status", look.status(), 0)
            piped = t.run_cairn("report", str(process.pid))
            process.stdin.close()
        lines = re.findall(rb"\rcairn: [a-z ]+ \([0-9.]+ MiB\) \.\.\.", look.seen)
        t.check_equal(f"report of {mebibytes} MiB: lines", bool(lines), mebibytes == 80)
        t.check_equal("lines that stay", len(lines), len(re.findall(rb" MiB\) \.\.\.\r\x1b\[K", look.seen)))
        t.check(b"looking at" not in piped.out + piped.err, f"in a pipe: {piped.err}")


with open("ticker", "w", encoding="ascii") as file:
    file.write("import time\nfor i in range(40):\n    print('tick', i, flush=True)\n    time.sleep(0.05)\n")
t.need("bash")
check_interrupt()
check_killed()
check_loop()
check_stop()
check_settings()
check_waiting()
t.finish()
