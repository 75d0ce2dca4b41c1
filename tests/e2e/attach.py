#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn attach: what a program that runs already allocates from then on, exactly; a second time in the
same process; libraries that it loads meanwhile; leaving by time, by a signal and by cairn ctl; Python
and redis-server; and who cannot be attached to, in one line."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

from attached import Attached, Target
from cairn_test import (CAIRN, PATIENCE_S, PYTHON, Process, check, check_equal, children_of, finish, fresh_path,
                        is_called, is_in_state, need_attach, report, run, run_cairn, stacks_through, wait_until)
from ports import free_port


def check_kept(what, found, calls, size, kept):
    totals = found["totals"]
    check_equal(f"{what}: calls", totals["allocations"], calls)
    check_equal(f"{what}: allocated", totals["allocated_bytes"], calls * size)
    check_equal(f"{what}: left", found["at_exit"]["bytes"], kept * size)


def exactly():
    target = Target()
    target.tell("keep 50 100")  # unknown to cairn
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("keep 300 1000")
    found = attached.leave()
    check_kept("first time", found, 300, 1000, 300)
    check(stacks_through(found, "keep"), "the stack goes through keep")
    check("before not counted" in " ".join(attached.err.split()),
          f"what was there before is not counted, and the summary says so: {attached.err}")
    check("blocks at" in attached.err and ", since attach" in attached.err, f"its peak is one since then: {attached.err}")
    check("was left running" in attached.err, f"the summary says that it goes on: {attached.err}")
    check("at detach" in attached.err and "at exit" not in attached.err, f"its end is none: {attached.err}")

    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("keep 200 500")
    target.tell("drop")  # 550, of which 200 are known
    target.tell("keep 10 500")
    found = attached.leave(lambda: run_cairn("ctl", str(target.pid), "detach"))
    check_kept("again", found, 210, 500, 10)
    check_equal("again: pre-existing blocks that were freed", found["trust"]["earlier_frees"], 350)
    check_equal("again: nothing is lost", (found["trust"]["exact"], found["trust"]["lost"]), (True, {}))
    for words in ("exact since attach", "nothing lost", "350 frees of earlier blocks (expected)"):
        check(words in " ".join(attached.err.split()), f"again: \"{words}\" in {attached.err}")
    target.end("exactly")


def few_samples():
    """A sample that says little says how to take a better one, and no bound is below zero."""
    target = Target()
    attached = Attached(target.pid, "--no-scan-heap")
    for _ in range(40):
        target.tell("keep 125 1000")
    attached.leave()
    advice = " ".join(attached.err.split())
    check("little: take --rate" in advice and "--exact for all blocks" in advice, f"advice: {attached.err}")
    rate = attached.err.split("--rate ")[1].split()[0]
    for amount, interval in re.findall(r"([\d,]+) ± ([\d,]+) blocks", attached.err):
        check(int(amount.replace(",", "")) >= int(interval.replace(",", "")), f"{amount} ± {interval}")
    attached = Attached(target.pid, "--no-scan-heap", "--rate", rate)
    for _ in range(40):
        target.tell("keep 125 1000")
    attached.leave()
    check("little" not in attached.err, f"with {rate}: {attached.err}")
    attached = Attached(target.pid, "--no-scan-heap")
    target.tell("keep 1 1")
    attached.leave()
    said = " ".join(attached.err.split())
    check("say little" not in said and "before not counted" in said and f"next: cairn report {target.pid}" in said,
          f"nothing was allocated since: {attached.err}")
    for command, is_none in ((None, True), ("keep 10 1000", False)):
        attached = Attached(target.pid, "--exact", "--no-scan-heap")
        if command:
            target.tell(command)
        attached.leave()
        check_equal(f"{command}: made none since: {attached.err}", "the program made none since" in " ".join(attached.err.split()), is_none)
    target.end("few samples")


def left_behind():
    """What is in the file of a tool that was killed is of the last checkpoint, though the program goes on."""
    target = Target()
    attached = Attached(target.pid, "--exact")
    target.tell("keep 300 1000")
    # before its first checkpoint there is no file, and the report of that name is of the process itself
    wait_until(lambda: any(pathlib.Path(attached.path).glob("*.cairn")) and
               re.search(rb"in 30\d calls", run_cairn("report", attached.path).out), pause=0.2)
    running = run_cairn("report", attached.path).out.decode()
    attached.process.kill()
    attached.process.communicate()
    screen = run_cairn("report", attached.path).out.decode()
    check("no end in this recording" in screen and "live now" not in screen and "is running" not in screen, f"left behind: {screen}")
    check("is running" in running and "live now" not in running, f"a checkpoint: {running}")
    target.process.kill()
    target.process.wait()


def libraries_loaded_later():
    target = Target()
    attached = Attached(target.pid, "--exact")
    wait_until(lambda: target.tell("plugin 1 10") and
               run_cairn("report", "--json", target.pid).out.count(b"plugin_allocate"))
    target.tell("plugin 40 3000")
    found = attached.leave()
    through = stacks_through(found, "plugin_allocate")
    check(sum(stack["allocations"] for stack in through) >= 40, f"blocks of the plug-in: {through}")
    target.end("libraries")


def debuggers():
    target = Target()
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("keep 300 1000")
    made = subprocess.run(["gcore", "-o", "attached", str(target.pid)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=PATIENCE_S)
    check_equal(f"gcore: {made.stdout.decode()}", made.returncode, 0)
    subprocess.run(["gcore", "-a", "-o", "all", str(target.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True, timeout=PATIENCE_S)
    more_bytes = os.stat(f"all.{target.pid}").st_size - os.stat(f"attached.{target.pid}").st_size
    check(more_bytes < 32 << 20, f"gcore -a: {more_bytes} bytes more")
    lists = run_cairn("core", f"attached.{target.pid}", "count", "used")
    check("300 allocations use 0x493e0 (300,000) bytes." in lists.out.decode(), f"its core: {lists.out} {lists.err}")
    attached.leave()
    check_equal("the linker's list names the library", listed(target.pid), ["/memfd:libcairn"])
    target.end("debuggers")


def listed(pid):
    """What gdb finds in the dynamic linker's list as cairn's library."""
    words = ["set print address off", "info sharedlibrary"]
    said = subprocess.run(["gdb", "-batch", "-nx", "-p", str(pid), *(word for line in words for word in ("-ex", line))],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                          timeout=PATIENCE_S, text=True).stdout
    return [line.split()[-1] for line in said.splitlines() if "libcairn" in line or "/proc" in line]


def under_load():
    """A turn is short: on a busy machine the target may not have run in it. In one of eight it has."""
    target, recorded = Target(8), 0
    before = open_files(target.pid)
    for turn in range(8):
        attached = Attached(target.pid, *([] if turn % 2 else ["--exact"]), "--record-for", "30ms")
        found = attached.leave(lambda: None)
        recorded += found["totals"]["allocations"]
        check_equal(f"turn {turn}: nothing of ours is left open", open_files(target.pid), before)
    check(recorded > 0, "something is recorded")
    check_equal("a child goes its own way", target.tell("fork 100 100"), "child 7")
    target.end("under load")


def open_files(pid):
    directory = f"/proc/{pid}/fd"
    return sorted(os.readlink(f"{directory}/{name}") for name in os.listdir(directory))


def forks_and_ends():
    target = Target(2)
    attached = Attached(target.pid, "--exact")
    check_equal("a child of a recorded process", target.tell("fork 100 100"), "child 7")
    target.tell("keep 100 100")
    target.end("ends while it is recorded")
    found = attached.leave(lambda: None)
    check(found["totals"]["allocations"] >= 100, "what an ended process allocated is kept")

    target = Target(1)
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    target.tell("keep 20 20")
    target.process.stdin.write("exec /bin/sleep\n")
    target.process.stdin.flush()
    found = attached.leave(lambda: None)
    check_equal("calls before exec", found["totals"]["allocations"], 20)
    target.process.kill()
    target.process.wait()


def first_thread_ends():
    """The process goes on when its first thread ends, and is no other program then: its status is that of its own end."""
    source = ("#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nstatic char *volatile kept;\n"
              "static void *rest(void *p) { while (getchar() == 'k') kept = malloc(100); _exit(3); return p; }\n"
              "int main(void) { pthread_t t; puts(\"ready\"); fflush(stdout); getchar(); pthread_create(&t, 0, rest, 0); pthread_exit(0); }\n")
    if not build("first_thread_ends", source, "gcc", "-pthread"):
        return
    with Process(["./first_thread_ends"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        check_equal("it starts", process.stdout.readline(), b"ready\n")
        attached = Attached(process.pid, "--exact", "--no-scan-heap")
        process.stdin.write(b"g")
        process.stdin.flush()
        wait_until(lambda: is_in_state(process.pid, "Z"))
        process.stdin.write(b"kkk")
        process.stdin.close()
        found = attached.leave(lambda: None)
    check("ended with status 3" in attached.err, f"first thread: {attached.err}")
    calls = sum(stack["allocations"] for stack in stacks_through(found, "rest"))
    check_equal("what other threads allocate when the first one has ended", calls, 3)


def has_allocated(pid):
    return report(pid)["totals"]["allocations"] > 0


def forked_children():
    """A child of a recorded process is not recorded with it, but can be attached to, and both left."""
    target = Target()
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    child = int(target.tell("child"))
    of_child = Attached(child, "--exact", "--no-scan-heap")
    check_refused("twice", child, "being recorded by process")
    target.tell("keep 100 100")
    wait_until(lambda: has_allocated(child))
    found = of_child.leave()
    check(found["totals"]["allocations"] > 0, "the child is recorded")
    check_equal("what it allocates", found["totals"]["allocated_bytes"],
                1000 * found["totals"]["allocations"])
    check_kept("its parent", attached.leave(), 100, 100, 100)
    of_child = Attached(child, "--exact", "--no-scan-heap")
    wait_until(lambda: has_allocated(child))
    check(of_child.leave()["totals"]["allocations"] > 0, "a second time, when the parent was left")
    check_equal("it lived until it was ended", target.tell("end-child"), str(int(signal.SIGTERM)))

    # longer than a thread is waited for that does not stop
    target.process.stdin.write("vfork 4000\n")
    target.process.stdin.flush()
    wait_until(lambda: is_in_state(target.pid, "D"))
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    check_equal("it starts a program", target.process.stdout.readline(), "done\n")
    target.tell("keep 30 100")
    check_kept("a process that waits for its child", attached.leave(), 30, 100, 30)
    target.end("forked children")


def python():
    code = "import time\nkeep = []\nprint('ready', flush=True)\nwhile True:\n" \
           "    keep.append(bytearray(50000)); time.sleep(0.005)\n" \
           "    if len(keep) > 100: keep.clear()\n"
    with Process([PYTHON, "-c", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        attached = Attached(process.pid, "--exact", "--record-for", "700ms")
        found = attached.leave(lambda: None)
        large = stacks_through(found, "PyByteArray_Resize") or found["stacks"]
        check(sum(stack["allocated_bytes"] for stack in large) > 50000, "the program's objects")
        check_equal("python runs on", process.poll(), None)
        process.kill()


def idle_interpreter():
    """Of a process that allocates nothing meanwhile it is known by its executable that frames of a language are missing."""
    if not shutil.which("ruby"):
        return
    with Process(["ruby", "-e", "puts :ready; $stdout.flush; sleep"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        attached = Attached(process.pid, "--record-for", "50ms", "--scan-heap")
        attached.leave(lambda: None)
        process.kill()
    check("Ruby: its own frames are missing" in attached.err, f"idle Ruby: {attached.err}")


def redis():
    if not shutil.which("redis-server"):
        return
    port = free_port()
    process = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"],
                               stdout=subprocess.DEVNULL)
    ping = ["redis-cli", "-p", str(port), "ping"]
    wait_until(lambda: run(ping).out == b"PONG\n")
    attached = Attached(process.pid, "--exact")
    for number in range(20):
        run(["redis-cli", "-p", str(port), "set", f"key{number}", "x" * 10000])
    found = attached.leave()
    check(found["at_exit"]["bytes"] >= 20 * 10000, "redis' values are there")
    check_equal("redis answers", run(ping).out, b"PONG\n")
    process.terminate()
    process.wait()


def check_refused(what, pid, *words):
    result = run_cairn("attach", str(pid), "--record-for", "10ms")
    text = result.err.decode()
    check_equal(f"{what}: status", result.status, 1)
    check_equal(f"{what}: one line", text.count("\n"), 1)
    for word in words:
        check(word in text, f"{what}: \"{word}\" in {text!r}")
    check(not list(pathlib.Path.cwd().glob("*.cairn.*")), f"{what}: nothing is left")


def build(name, source, *options):
    pathlib.Path(name + ".c").write_text(source)
    return shutil.which(options[0]) and run([*options, "-o", name, name + ".c"]).status == 0


def refused():
    check_refused("no process", 2 ** 22 - 7, "no such process")
    check_refused("no name", "no-such-program", "no process is called")
    check_equal("no words", run_cairn("attach").status, 2)
    with Process(["sleep", "60"]) as process:
        wait_until(lambda: is_in_state(process.pid, "S"))
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_in_state(process.pid, "T"))
        check_refused("stopped", process.pid, "is stopped")
        process.send_signal(signal.SIGCONT)
        attached = Attached(process.pid)
        check_refused("twice", process.pid, "being recorded by process")
        attached.leave()
        process.kill()
        wait_until(lambda: is_in_state(process.pid, "Z"))
        check_refused("zombie", process.pid, "has ended")
    if os.path.exists("/proc/2/comm") and pathlib.Path("/proc/2/comm").read_text() == "kthreadd\n":
        check_refused("kernel", 2, "thread of the kernel")
    leaderless = ("#include <pthread.h>\n#include <unistd.h>\nstatic void *rest(void *p) { for (;;) pause(); return p; }\n"
                  "int main(void) { pthread_t t; pthread_create(&t, 0, rest, 0); pthread_exit(0); }\n")
    if build("leaderless", leaderless, "gcc", "-pthread"):
        with Process(["./leaderless"]) as process:
            wait_until(lambda: is_in_state(process.pid, "Z"))
            check_refused("leaderless", process.pid, "first thread has ended")
            told = run_cairn("report", process.pid)
            check(told.status == 1 and b"first thread has ended" in told.err, f"report of leaderless: {told}")
            process.kill()
    path = fresh_path("run") + ".cairn"
    with Process([CAIRN, "run", "-q", "-o", path, "sleep", "60"]) as process:
        child = wait_until(lambda: [pid for pid in children_of(process.pid) if is_called(pid, "sleep")])
        if child and wait_until(lambda: run_cairn("ctl", child[0], "status").status == 0):
            check_refused("under cairn run", child[0], "records already")
        process.terminate()


need_attach()
exactly()
few_samples()
left_behind()
libraries_loaded_later()
debuggers()
under_load()
forks_and_ends()
first_thread_ends()
forked_children()
python()
idle_interpreter()
redis()
refused()
finish()
