#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool is killed while the program runs: the program notices nothing and its recording is there at
its end; if the program is killed as well, a checkpoint at most 10 seconds old is. Files that a process
writes itself can be copied at any moment, lose their name or their directory, and fill their disk."""

import concurrent.futures
import os
import pathlib
import shutil
import signal
import subprocess
import time

import cairn_test as t
import death_watch as watch
import ledger

COPIES = 200
DELETIONS = 40


def check_survivor():
    """SIGKILL to the tool; the program ends by itself afterwards and writes its file."""
    os.mkdir("survivor")
    run = watch.start("run", "paced", 2, path="survivor/x.cairn")
    watch.wait_for_work(run)
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    before = run.account()
    t.check(t.wait_until(lambda: not os.path.exists(f"/proc/{run.pid}")), "the program hangs")
    t.check(run.account().allocations > before.allocations, "the program stood still")
    t.check_equal("survivor: its last word", run.read_output(), b"done\n")
    ledger.check("survivor", ledger.reports("survivor").get(run.pid), run.account())


def begin_checkpoint():
    run = watch.start("run", "paced", 600)
    watch.wait_for_work(run)
    return run, time.time(), run.account().allocations


def check_checkpoint(run, start, early):
    """Both are killed: what was counted up to the last checkpoint is there."""
    t.wait_until(lambda: os.path.exists(run.path) and os.stat(run.path).st_mtime > start)
    os.kill(run.process.pid, signal.SIGKILL)
    os.kill(run.pid, signal.SIGKILL)
    run.process.wait()
    if not t.check(os.path.exists(run.path), "checkpoint: there is none"):
        return
    found = t.report(run.path)
    got = found["totals"]["allocations"]
    t.check(early <= got <= run.account().allocations + 1,
            f"checkpoint: {got} allocations, {early} at the beginning")


def check_copies():
    """A copy of a file taken while its process writes it opens, and never has less than one before."""
    run = watch.start("alone", "loop", 2)
    watch.wait_for_work(run)
    for number in range(COPIES):
        subprocess.run(["cp", "--sparse=always", run.path, f"copy{number}.cairn"], check=True)
    os.kill(run.pid, signal.SIGKILL)
    run.process.wait()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(report_top, range(COPIES)))
    last = 0
    for number, result in enumerate(results):
        if t.check_equal(f"copy {number}: status", result.status, 0):
            got = watch.totals(result)["allocations"]
            t.check(got >= last, f"copy {number}: {got} allocations after {last}")
            last = got


def report_top(number):
    return t.run_cairn("report", "--json", "--top", "3", f"copy{number}.cairn")


def check_deleted():
    """The file, or its whole directory, goes away while the program runs."""
    for is_directory in (False, True):
        os.mkdir("doomed.d")
        run = watch.start("alone", "paced", 1, path="doomed.d/x.cairn")
        watch.wait_for_work(run)
        if is_directory:
            shutil.rmtree("doomed.d")
        else:
            os.unlink(run.path)
        t.check_equal("deleted: status", run.process.wait(60), 0)
        t.check_equal("deleted: output", run.read_output(), b"done\n")
        shutil.rmtree("doomed.d", ignore_errors=True)


def program_output(run, how, place):
    """The lines of the program; the tool's own, that the recording could not be kept, is checked and left out."""
    lines = run.read_output().splitlines()
    is_told = how == "run" and len(lines) > 1 and lines[-1].startswith(b"cairn: ")
    t.check(not is_told or place in lines[-1], f"the tool said {lines[-1:]}")
    return lines[:-1] if is_told else lines


def check_deleted_early():
    """The same at any moment of a short life: while the file is made, while it grows, at the end."""
    for number in range(DELETIONS):
        how = "alone" if number % 2 else "run"
        os.mkdir("early.d")
        run = watch.start(how, "many-stacks", 3000, path="early.d/x.cairn")
        time.sleep(0.004 * (number // 2))
        shutil.rmtree("early.d", ignore_errors=True)
        status, last = run.process.wait(60), program_output(run, how, b"early.d")[-1:]
        # the tool does not start a program whose directory is gone by then: it looked, or could not create the file
        is_refused = how == "run" and status == 125 and last[0].endswith((b"no such directory",
                                                                          b"No such file or directory"))
        t.check(is_refused or (status, last) == (0, [b"done"]),
                f"deleted after {number // 2} steps ({how}): {status}, {last}")
        shutil.rmtree("early.d", ignore_errors=True)


def check_full():
    """A file system of 1 MiB that is full from the start, or becomes so."""
    place = pathlib.Path("small").resolve()
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)],
                             stderr=subprocess.DEVNULL, check=False).returncode == 0
    if not mounted:
        t.skip_part("full disk, since this user may not mount a tmpfs")
        return
    try:
        for how in ("alone", "run"):
            for filled_kib in (0, 900, 1024):
                (place / "filler").write_bytes(b"x" * (filled_kib * 1024 - 4096 * (filled_kib > 999)))
                run = watch.start(how, "many-stacks", 3000, path=str(place / "x.cairn"))
                what = f"full disk ({how}, {filled_kib} KiB taken)"
                t.check_equal(f"{what}: status", run.process.wait(60), 0)
                t.check_equal(f"{what}: output", program_output(run, how, b"small"), [b"done"])
                for file in place.iterdir():
                    file.unlink()
    finally:
        subprocess.run(["umount", str(place)], check=False)


begun = begin_checkpoint()
check_survivor()
check_deleted()
check_deleted_early()
check_full()
check_copies()
check_checkpoint(*begun)
t.finish()
