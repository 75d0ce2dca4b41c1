#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn attach and leave, again and again, beside 20 programs of eight kinds that work meanwhile (targets.py).

    bench/harm/attach.py [--cycles 50] [NAME-PART ...]

Half of the cycles run beside four loops a processor; every second one records exactly. After each: the program gives
the answers that it gave before, its threads have their masks, priorities and no tracer, its descriptors are those it
had, as much of its memory is locked, and no file is mapped but what was before and cairn's library (docs/explain/attaching.md).
At the end it ends as it would. Prints a table; status 1 if a program was harmed. `make harm` runs it."""

import argparse
import collections
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests/tools")]
sys.dont_write_bytecode = True
PLACE = os.environ.get("HARM_DIR") or tempfile.mkdtemp(prefix="harm.")
shutil.rmtree(PLACE, ignore_errors=True)
os.makedirs(PLACE, mode=0o755)
os.chdir(PLACE)
import attached  # noqa: E402
import cairn_test as t  # noqa: E402
import targets  # noqa: E402

LOOPS_A_PROCESSOR = 4
LOOPS_S = "900"
LOOPS_NICE = "10"
SETTLE_S = 5
RECORD_FOR = "10ms"
LIBRARY = "r-xp /memfd:libcairn.so (deleted)"
RESIDENT_SLACK_BYTES = 96 << 20  # what the heaps of a program that works come and go by
MAPPED_SLACK_BYTES = 2 << 30  # stacks take 8 MiB, arenas 64; a recording that stayed at least 3 GiB
SLACK_BYTES = RESIDENT_SLACK_BYTES, MAPPED_SLACK_BYTES
WARM_UP = 20  # questions until a program has loaded what it loads late: Java's libraries have signal handlers
PENDING = ("SigPnd", "ShdPnd")  # a child that has just ended may be one
REFUSALS = collections.Counter()


class Asker(threading.Thread):
    """Asks a target again and again; is paused while its state is looked at."""

    def __init__(self, target):
        super().__init__(daemon=True)
        self.target, self.expected = target, target.ask()
        self.turn, self.is_ending, self.answers, self.wrong = threading.Lock(), False, 0, None
        self.start()

    def run(self):
        while not self.is_ending and self.wrong is None:
            with self.turn:
                try:
                    answer = self.target.ask()
                    self.wrong = None if answer == self.expected else f"it answered {answer!r:.200}"
                except (OSError, ValueError) as problem:
                    self.wrong = f"no answer: {problem}"
                self.answers += 1
            time.sleep(0.001)  # a lock does not go to who waits for it otherwise

    def stop(self):
        self.is_ending = True
        self.join()


@contextlib.contextmanager
def busy_machine(is_busy):
    count = LOOPS_A_PROCESSOR * len(os.sched_getaffinity(0)) if is_busy else 0
    command = ["nice", "-n", LOOPS_NICE, "timeout", LOOPS_S, "sh", "-c", "while :; do :; done"]
    loops = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.terminate()
            loop.wait()


def locked_kib(pid):
    return int(re.search(r"^VmLck:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text("ascii"), re.M)[1])


def sizes(pid):
    """(resident memory, address space), in bytes"""
    mapped, resident = pathlib.Path(f"/proc/{pid}/statm").read_text("ascii").split()[:2]
    return int(resident) * os.sysconf("SC_PAGE_SIZE"), int(mapped) * os.sysconf("SC_PAGE_SIZE")


def state_of(pid):
    """What must be as before. Threads and children come and go in some targets: their common state counts."""
    state = attached.state_of(pid)
    threads = {repr(sorted((name, value) for name, value in fields.items() if name not in PENDING))
               for fields in state["threads"].values()}
    links = sorted(re.sub(r"(socket|pipe):\[\d+\]", r"\1", link) for link in state["files"].values())
    main = {name: value for name, value in state["threads"][str(pid)].items() if name not in PENDING}
    return {"main thread": main, "threads": threads, "files": links, "locked": locked_kib(pid)}


def state_settled(pid):
    """Twice the same: a connection that was just answered is closed, a thread that was just made has its mask."""
    def look():
        try:
            return state_of(pid)
        except (OSError, KeyError):
            return None
    before = look()
    for _ in range(200):
        time.sleep(0.01)
        now = look()
        if now and now == before:
            return now
        before = now or before  # of many threads that come and go a look may find one gone
    return before if t.is_in_state(pid, "RSD") else None


def difference(before, after):
    if not after:
        return "it is gone"
    for name, value in before.items():
        if name == "threads":
            new = after[name] - value
            if any("'TracerPid', '0'" not in one for one in new):
                return f"a thread is traced: {new}"
        elif after[name] != value:
            return f"{name}: {after[name]}, {value} before"
    return None


def attach(pid, is_exact):
    """None: attached and left; else the line that says why not."""
    path = t.fresh_path("harm") + ".cairn"
    command = [t.CAIRN, "attach", "-q", str(pid), "-o", path, "--record-for", RECORD_FOR, *(["--exact"] if is_exact else [])]
    result = subprocess.run(command, env=t.environment(), stderr=subprocess.PIPE, text=True, check=False)
    for left in pathlib.Path(".").glob(pathlib.Path(path).name + "*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    return None if result.returncode == 0 else result.stderr.strip() or f"status {result.returncode}"


def new_files(pid, before):
    """Mappings of files that a cycle has left, but for the library's."""
    files = collections.Counter(re.sub(r"^\S+ ", "", one) for one in attached.files_mapped(pid))
    files.subtract(re.sub(r"^\S+ ", "", one) for one in before)
    return [name for name, count in files.items() if count > 0 and "/memfd:libcairn" not in name]


class Trial:
    """The cycles of one target."""

    def __init__(self, target):
        self.target, self.asker = target, None
        for _ in range(WARM_UP):
            target.ask()
        self.before, self.files = state_settled(target.pid), attached.files_mapped(target.pid)
        self.asker = Asker(target)
        self.attached = self.refused = self.failed = 0
        self.size = None
        self.harm = None

    def cycle(self, is_exact):
        reason = attach(self.target.pid, is_exact)
        if reason:
            REFUSALS[re.sub(r"\d+", "N", reason)] += 1
            self.refused += 1
        else:
            self.attached += 1
        with self.asker.turn:
            self.look()
        self.harm = self.harm or self.asker.wrong

    def look(self):
        pid = self.target.pid
        end = time.monotonic() + SETTLE_S
        while (harm := difference(self.before, state_settled(pid))) and time.monotonic() < end:
            pass  # a thread that has not run since then has yet to begin its system call again (sigsuspend's mask)
        self.harm = harm
        if self.harm:
            return
        left, size = new_files(pid, self.files), sizes(pid)
        if left:
            self.harm = f"mapped: {left}"
        elif self.size and any(now > first + slack for now, first, slack in zip(size, self.size, SLACK_BYTES)):
            self.harm = f"resident and mapped: {size} bytes, {self.size} after the first cycle"
        self.size = self.size or size

    def end(self):
        self.asker.stop()
        status = self.target.end()
        self.harm = self.harm or (f"it ended with {status}" if status is not None else None)


def try_target(kind, name, start, cycles):
    begin = time.monotonic()
    trial = Trial(start())
    for is_busy in (False, True):
        with busy_machine(is_busy):
            for turn in range(cycles // 2):
                if not trial.harm:
                    trial.cycle(turn % 2 == 1)
    trial.end()
    word = f"HARMED: {trial.harm}" if trial.harm else "0"
    print(f"| {kind} | {name} | {trial.attached} | {trial.refused} | {trial.asker.answers:,} | "
          f"{time.monotonic() - begin:.0f} s | {word} |", flush=True)
    return trial


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    print("| kind | target | attached and left | refused | right answers meanwhile | took | harmed |\n|---|---|--:|--:|--:|--:|--:|")
    trials = []
    for kind, name, needed, start in targets.TARGETS:
        if options.names and not any(word in f"{kind} {name}" for word in options.names):
            continue
        if not shutil.which(needed, path=os.environ["PATH"] + ":/usr/sbin"):
            print(f"| {kind} | {name} | {needed} is not installed |", flush=True)
            continue
        trials.append(try_target(kind, name, start, options.cycles))
    harmed = sum(1 for trial in trials if trial.harm)
    print(f"{sum(trial.attached for trial in trials)} attached and left, {harmed} of {len(trials)} targets harmed")
    for reason, count in REFUSALS.most_common():
        print(f"  {count} x {reason}")
    return 1 if harmed else 0


sys.exit(main())
