#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool is killed while the program runs: the program notices nothing and its recording is there at
its end; if the program is killed as well, a checkpoint is, and says so. Files that a process
writes itself can be copied at any moment, lose their name or their directory, and fill their disk."""

import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

import cairn_test as t
import death_watch as watch
import ledger

LONG = bool(os.environ.get("CAIRN_LONG"))
KILLS = 300 if LONG else 6
STARTING = threading.Lock()
LONGEST_S = 4 if LONG else 2  # until a kill
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
    check_said("checkpoint", run.path, found)


def check_said(what, path, found):
    """A checkpoint is not called exact, by any figure; its totals are those of its threads."""
    trust = found["trust"]
    t.check_equal(f"{what}: trust", (trust["exact"], trust["lost"].get("end")), (False, 1))
    checkpoint = trust["checkpoint"]
    t.check(0 < checkpoint["at_ns"] < checkpoint["next_due_ns"] <= checkpoint["at_ns"] + 10_000_000_000, f"{what}: {checkpoint}")
    screen = t.run_cairn("report", path).out.decode()
    t.check("not exact" in screen and "checkpoint at " in screen and "lost: what came after it" in screen, f"{what}: {screen}")
    t.check("nothing lost" not in screen, f"{what}: {screen}")
    for key in ("allocations", "allocated_bytes"):
        t.check_equal(f"{what}: {key} of its threads", sum(thread[key] for thread in found["threads"]), found["totals"][key])


def check_random_kills():
    """Tool, program or both are killed at random instants: what there is can be read, is no more than was done, and is
    exact unless it says that it is a checkpoint."""
    chance = random.Random(4711)
    kinds = dict.fromkeys(("whole", "checkpoint", "none"), 0)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        plans = [(("tool", "program", "both")[number % 3], chance.uniform(0.02, LONGEST_S)) for number in range(KILLS)]
        for found in pool.map(lambda plan: kill_at_random(*plan), plans):
            kinds[found] += 1
    print(f"random kills: {kinds}")
    t.check(kinds["whole"] and kinds["checkpoint"], f"random kills: {kinds}")


def kill_at_random(which, after_s):
    what = f"{which} killed after {after_s:.2f} s"
    with STARTING:  # each takes a name for its files
        run = watch.start("run", "paced", LONGEST_S + 2)
        watch.wait_for_work(run, 1)
    time.sleep(after_s)
    if which != "program":
        os.kill(run.process.pid, signal.SIGKILL)
    if which != "tool":
        os.kill(run.pid, signal.SIGKILL)
    run.process.wait()
    t.check(t.wait_until(lambda: not os.path.exists(f"/proc/{run.pid}")), f"{what}: the program hangs")
    result = t.run_cairn("report", "--json", run.path)
    if result.status != 0 and which == "both" and after_s < 2:
        return "none"  # before the first checkpoint
    if not t.check_equal(f"{what}: the report's status {result.err}", result.status, 0):
        return "none"
    found = json.loads(result.out)
    if "checkpoint" in found["trust"]:
        t.check_equal(f"{what}: a checkpoint", which, "both")
        got = sum(stack["allocations"] for stack in t.stacks_through(found, "ledger_take"))
        done = run.account().allocations + 1
        t.check(0 <= got <= done, f"{what}: {got} allocations of {done}")
        check_said(what, run.path, found)
        return "checkpoint"
    ledger.check(what, found, run.account(), in_flight=2)
    t.check_equal(f"{what}: trust", (found["trust"]["exact"], found["trust"]["lost"]), (True, {}))
    return "whole"


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
                                                                          b"No such file or directory",
                                                                          b"not a directory"))
        t.check(is_refused or (status, last) == (0, [b"done"]),
                f"deleted after {number // 2} steps ({how}): {status}, {last}")
        shutil.rmtree("early.d", ignore_errors=True)


# Children of a shell: once the recording of the first is written, the disk is filled, or the directory goes.
SEVERAL = """{brief}
until [ -n "$(find {run} -name 'brief.*.cairn')" ]; do sleep 0.01; done
{loss}
for number in 1 2 3; do {brief} & echo $!; wait; done
exit 5
"""


def lose_several(run, loss, quiet=()):
    """Runs that; returns the pids of the last three and what the tool said."""
    script = SEVERAL.format(run=run, loss=loss, brief=" ".join(map(str, t.program("brief", 2, 1))))
    result = t.run_cairn("run", *quiet, "-o", run, "--", "sh", "-c", script)
    t.check_equal(f"several, {loss}: status", result.status, 5)
    return [line for line in result.out.decode().split() if line.isdigit()][-6:], result.err.decode()


def check_lost_of_several(place):
    """Each process whose recording is lost is named: by the tool, also under -q, later by the report, and in JSON."""
    for quiet in ((), ("-q",)):
        run = place / "several.cairn"
        words, said = lose_several(run, f"dd if=/dev/zero of={place}/filler bs=4096 2>/dev/null", quiet)
        (place / "filler").unlink()
        screen = t.run_cairn("report", run).out.decode()
        found = t.report(run)
        lost = {str(process["pid"]) for process in found["trust"]["lost_processes"]}
        pids = [pid for pid in words if pid in lost]
        t.check_equal(f"several: lost, of {words}", len(pids), 3)
        for pid in lost:
            t.check(f" {pid}" in said and f" {pid}" in screen, f"{pid} is lost, and not named: {said} {screen}")
        t.check("nothing lost" not in screen.split("highest peak")[0], f"several: {screen}")
        t.check_equal("several: trust", (found["trust"]["exact"], found["trust"]["lost"]["recording"]), (False, len(lost)))
        for process in found["processes"]:
            is_lost = str(process["process"]["pid"]) in lost  # all of it, or what came after a checkpoint
            t.check_equal("several: a process", process["trust"]["exact"], not is_lost)
            t.check(not is_lost or process["trust"]["lost"], f"several: {process['trust']}")
        shutil.rmtree(run)


def check_directory_gone():
    """The run's directory is removed between two of its processes."""
    run = pathlib.Path("gone.cairn").resolve()
    _, said = lose_several(run, f"rm -r {run}", ("-q",))
    t.check("recordings are lost" in said and f"{run} is gone" in said, f"gone: {said}")


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
        check_lost_of_several(place)
    finally:
        subprocess.run(["umount", str(place)], check=False)


begun = begin_checkpoint()
check_survivor()
check_deleted()
check_deleted_early()
check_random_kills()
check_directory_gone()
check_full()
check_copies()
check_checkpoint(*begun)
t.finish()
