#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn attach --cgroup`: of a process that the kernel kills for want of memory there is evidence, taken from outside
before: heap, types, owners, and a recording from then on where enough is left. What was too fast is said. The cgroups
are made here; CAIRN_LONG=1: 100 kills at 50 MiB/s, all with evidence."""

import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import cairn_test as t
from memory_cgroup import MIB, Cgroup

GROWER = t.program("grower")


class Watch:
    def __init__(self, cgroup, directory, *options, env=None):
        self.directory = directory
        self.tool = subprocess.Popen([t.CAIRN, "attach", "--cgroup", str(cgroup.path), "--keep", directory, *options],
                                     env=t.environment(env), stderr=subprocess.DEVNULL)
        t.wait_until(lambda: "watching" in self.log())

    def log(self):
        path = pathlib.Path(self.directory) / "oom.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tool.send_signal(signal.SIGINT)
        t.check_equal("status of the watch", self.tool.wait(timeout=t.PATIENCE_S), 0)


def step(program):
    program.stdin.write("\n")
    program.stdin.flush()
    t.check_equal("step", program.stdout.readline(), "ready\n")


def end_by_kernel(program):
    """No more steps: it grows until it is killed."""
    program.stdin.close()
    program.stdin = None
    program.communicate(timeout=t.PATIENCE_S)
    t.check_equal("it was killed", program.returncode, -signal.SIGKILL)


def texts_of(directory, pid):
    return [path for path in glob.glob(f"{directory}/oom-grower-{pid}-*.txt")]


def check_evidence(directory, pid, least_bytes, allocator="glibc"):
    path, = texts_of(directory, pid) or [None]
    if not t.check(path, f"{directory}: a text about {pid}: {os.listdir(directory)}"):
        return
    text = pathlib.Path(path).read_text(encoding="utf-8")
    for wanted in ("== memory", "== heap", "== types", "== who keeps it", "== kept", " resident\n",
                   f"process {pid}: {GROWER[0]}", "was paused for"):
        t.check(wanted in text, f"{wanted} in {text}")
    # what is paused within malloc may have one free piece more: 0.0 %
    t.check(allocator != "glibc" or re.search(r"Fragmentation: 0(\.0)? %", text), f"fragmentation: {text}")
    t.check(re.search(r"100 % +[\d,]+  session\n", text), f"types: {text}")
    # jemalloc puts blocks side by side: where stdio's buffer ends, a session begins, of which that is an owner too, and all
    # that the list has behind it; the rest may be too little for a row
    owner = r"100\.0 % +[\d,]+  all_sessions\n" if allocator == "glibc" else r" % +[\d,]+  (all_sessions\n|session )"
    t.check(re.search(owner, text), f"owners: {text}")
    t.check("not known: " not in text, f"all is known: {text}")
    t.check("are not in these tables" not in text, f"malloc has nearly all of it: {text}")
    stack = re.search(r"== stacks of threads\nthread (\d+)\n((?:    .*\n)+)", text)
    t.check(stack and int(stack[1]) == pid and "    main+" in stack[2], f"the stack of its thread: {text}")
    found = t.report(path.removesuffix(".txt") + ".cairn", "--by", "exit")
    kept = sum(stack["at_exit_bytes"] for stack in found["stacks"] if allocator != "glibc" or "all_sessions" in t.functions(stack))
    t.check(kept >= least_bytes, f"what all_sessions keeps: {kept}, at least {least_bytes}")


def check_recorded_too():
    """Much is left: it is recorded from then on."""
    with Cgroup("wide", 200) as cgroup, Watch(cgroup, "wide", "--when", "rss>50%") as watch:
        program = cgroup.start(GROWER[0], "80", "5", "0")
        t.check_equal("ready", program.stdout.readline(), "ready\n")
        t.check("evidence of" not in watch.log(), f"nothing yet: {watch.log()}")
        for _ in range(6):
            step(program)
        pid = program.pid
        t.wait_until(lambda: f"recording grower {pid} to wide/oom-grower-{pid}-" in watch.log())
        t.wait_until(lambda: t.run_cairn("ctl", pid, "status").status == 0, pause=0.1)
        step(program)
        end_by_kernel(program)
        t.wait_until(lambda: f"grower {pid} was killed; what it had is in wide/oom-grower-{pid}-" in watch.log())
        t.wait_until(lambda: glob.glob(f"wide/oom-grower-{pid}-*-after.cairn"))
    check_evidence("wide", pid, 95 * MIB)
    after = t.report(glob.glob(f"wide/oom-grower-{pid}-*-after.cairn")[0])
    t.check(any("grow" in t.functions(stack) and stack["allocated_bytes"] for stack in after["stacks"]),
            "what it did from then on is recorded")


LIBRARIES = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2.0", "tcmalloc": "libtcmalloc_minimal.so.4"}


def check_narrow(allocator):
    """Little is left: evidence alone, of a program on another allocator. One that ends by itself is no kill."""
    library = next(iter(glob.glob(f"/usr/lib/*/{LIBRARIES[allocator]}")), None)
    if not library:
        return t.skip_part(f"{allocator}, since its library is not here")
    place = f"narrow-{allocator}"
    with Cgroup("narrow", 96) as cgroup, Watch(cgroup, place) as watch:
        other = cgroup.start(GROWER[0], "1", "1", "0")
        other.stdout.readline()
        program = cgroup.start(GROWER[0], "70", "4", "0", env={**os.environ, "LD_PRELOAD": library})
        program.stdout.readline()
        pid = program.pid
        for _ in range(4):
            step(program)
        t.wait_until(lambda: f"grower {pid} is not recorded from now on: less than 64.0 MiB are left" in watch.log())
        other.kill()
        other.communicate(timeout=t.PATIENCE_S)
        end_by_kernel(program)
        t.wait_until(lambda: f"grower {pid} was killed; what it had is in" in watch.log())
        t.check(not texts_of(place, other.pid) and f"{other.pid} was killed" not in watch.log(), "the small one is let be")
    check_evidence(place, pid, 72 * MIB, allocator)
    return None


KEEPER = """
import sys
kept = []
for line in sys.stdin:
    kept.append([(i, str(i)) for i in range(50000)])
    print("ready", flush=True)
"""


def check_python():
    """What malloc does not have is said, and whose it is as a rule."""
    with Cgroup("python", 150) as cgroup, Watch(cgroup, "python", "--when", "rss>40%") as watch:
        program = cgroup.start(sys.executable, "-c", KEEPER)
        for _ in range(10):
            step(program)
        t.wait_until(lambda: glob.glob("python/oom-*.cairn") and f"{program.pid} in " in watch.log(), pause=0.1)
        program.kill()
        program.communicate(timeout=t.PATIENCE_S)
    path, = glob.glob(f"python/oom-*-{program.pid}-*.txt")
    text = pathlib.Path(path).read_text(encoding="utf-8")
    missing = re.search(r"\n([\d.]+) MiB of the ([\d.]+) MiB of heap and other anonymous memory are not in these tables: "
                        r"Python's own allocator, pymalloc", text)
    t.check(missing and float(missing[2]) * 0.5 < float(missing[1]) < float(missing[2]), f"what is missing: {text}")


def check_go():
    """Go's own heap, which malloc knows nothing of: by size, by function, and its profile as a recording."""
    if not shutil.which("go"):
        return t.skip_part("Go is not installed (golang-go)")
    program = os.path.abspath("heap_of_go")
    sources = [f"{t.SOURCE}/tests/programs/{name}.go" for name in ("heap", "heap_profile")]
    made = t.run(["go", "build", "-o", program, *sources],
                 env={**os.environ, "GOCACHE": t.GO_CACHE, "GO111MODULE": "off", "GOFLAGS": "", "HOME": os.getcwd()})
    t.check_equal("heap.go is built", (made.status, made.err), (0, b""))
    with Cgroup("go", 150) as cgroup:
        run = cgroup.start(program, os.path.abspath("profile"), stderr=subprocess.PIPE)
        while run.stderr.readline() not in ("ready\n", ""):
            pass
        with Watch(cgroup, "go", "--when", "rss>8%") as watch:
            t.wait_until(lambda: f"evidence of heap_of_go {run.pid} in " in watch.log(), pause=0.1)
        run.communicate(timeout=t.PATIENCE_S)
    path, = glob.glob(f"go/oom-*-{run.pid}-*.txt")
    text = pathlib.Path(path).read_text(encoding="utf-8")
    for wanted in ("== Go's own heap\n", " objects of 112 bytes, ", "  main.fill\n", "  main.push\n", "\nKept: oom-heap_of_go-"):
        t.check(wanted in text, f"{wanted} in {text}")
    found = t.report(path.removesuffix(".txt") + ".go.cairn", "--by", "exit")
    held = sum(stack["at_exit_bytes"] for stack in found["stacks"] if "main.fill" in t.functions(stack))
    t.check(held > 30e6, f"what main.fill has in use: {held}")


def check_fast():
    """As fast as it can: evidence, or what was missed; a word in any case."""
    with Cgroup("fast", 64) as cgroup, Watch(cgroup, "fast") as watch:
        program = cgroup.start(GROWER[0], "200", "1", "0")
        program.communicate(timeout=t.PATIENCE_S)
        t.check_equal("it was killed", program.returncode, -signal.SIGKILL)
        t.wait_until(lambda: re.search(r"was killed; what|was killed before its heap could be taken: |had not been seen yet",
                                       watch.log()), pause=0.1)


def check_starved(every):
    """While allocations of the guard fail it goes on, and so do the processes; what happens afterwards is told."""
    starve = pathlib.Path(f"starve-{every}").absolute()
    env = {"LD_PRELOAD": str(t.BUILD / "tests/starved_preload.so"), "STARVED": f"%{every}", "STARVED_SINCE": str(starve)}
    with Cgroup("starved", 96) as cgroup, Watch(cgroup, f"starved-{every}", env=env) as watch:
        starve.touch()
        program = cgroup.start(GROWER[0], "70", "4", "0")
        program.stdout.readline()
        for _ in range(3):
            step(program)
        t.check_equal(f"each {every}th: the guard goes on", watch.tool.poll(), None)
        starve.unlink()
        step(program)
        t.wait_until(lambda: f"{program.pid}" in watch.log())
        end_by_kernel(program)
        t.wait_until(lambda: f"grower {program.pid} was killed" in watch.log())


def check_rate(count, mebibytes, rate):
    with Cgroup("rate", mebibytes) as cgroup, Watch(cgroup, f"rate-{rate}") as watch:
        for _ in range(count):
            program = cgroup.start(GROWER[0], str(mebibytes * 3 // 4), "1", str(rate))
            end_by_kernel(program)
            t.wait_until(lambda: f" {program.pid} was killed" in watch.log())
        t.check_equal(f"of {count} kills at {rate} MiB/s, with evidence", watch.log().count("was killed; what it had"), count)


def check_bad_input():
    for words, wanted in [(("--cgroup", "x"), "where to? --keep DIR"), (("--keep", "x"), "--when, --keep and --no-copy-limit are for --cgroup"),
                          (("1", "--cgroup", "x", "--keep", "k"), "--cgroup or \"1\", not both"),
                          (("1", "--when", "rss>1G"), "--when, --keep and --no-copy-limit are for --cgroup"),
                          (("--cgroup", "x", "--keep", "k", "--when", "heap>1G"), "--when is about rss"),
                          (("--cgroup", "x", "--keep", "k", "--when", "rss<1G"), "--when needs rss"),
                          (("--cgroup", "x", "--keep", "k", "--exact"), "--cgroup and --exact exclude each other"),
                          (("--cgroup", "x", "--keep", "k", "--ages"), "--cgroup and --ages exclude each other")]:
        result = t.run_cairn("attach", *words)
        t.check(result.status == 2 and wanted in result.err.decode(), f"{words}: {wanted} in {result.err}")
    for path, wanted in [("no-such-cgroup", "no-such-cgroup: there is no such cgroup"),
                         ("/tmp", "/tmp: no cgroup whose memory is accounted for")]:
        result = t.run_cairn("attach", "--cgroup", path, "--keep", "k")
        t.check(result.status == 1 and wanted in result.err.decode(), f"{path}: {result.err}")


check_bad_input()
with Cgroup("probe", 16) as probe:
    pass
if not probe.path:
    t.skip_part(probe.reason)
else:
    check_recorded_too()
    for one in LIBRARIES:
        check_narrow(one)
    check_python()
    check_go()
    check_fast()
    for number in 1, 2, 3, 5:
        check_starved(number)
    check_rate(2, 96, 10)
    if os.environ.get("CAIRN_LONG"):
        check_rate(100, 256, 50)
t.finish()
