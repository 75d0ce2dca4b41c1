#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn as PID 1 of a container: it reaps what is left to it, forwards the signals that end containers, and
passes the status on. And as the tool outside of containers whose processes cannot reach it: what they wrote
themselves is packed, and in the run's index. A program that can reach neither the tool nor a place for its file is
counted by who started it, and so is one of which the tool would not hear that it is not recorded."""

import os
import shutil
import subprocess

import cairn_test as t
import ledger
from attached import Attached, Target

if os.geteuid() != 0:
    t.cannot_run_here("a PID namespace needs root")
t.need("unshare")
NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
if subprocess.run(NAMESPACE + ["true"], check=False, stderr=subprocess.DEVNULL).returncode:
    t.cannot_run_here("this container may not make PID namespaces")

ORPHANS = """
for i in 1 2 3 4 5; do (sh -c 'sleep 0.1' &) ; done
sleep 0.5
ps=$(grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l)
echo "$ps zombies"
exit 6
"""
result = t.run([*NAMESPACE, t.CAIRN, "run", "-q", "-o", "orphans.cairn", "--", "sh", "-c", ORPHANS])
t.check_equal("orphans", (result.status, result.out), (6, b"0 zombies\n"))

script = "trap 'echo told; exit 8' TERM; echo ready; while :; do sleep 0.05; done"
with t.Process([*NAMESPACE, t.CAIRN, "run", "-q", "-o", "ended.cairn", "--", "sh", "-c", script],
                      env=t.environment(), stdout=subprocess.PIPE) as process:
    t.check_equal("starts", process.stdout.readline(), b"ready\n")
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)],
                              stdout=subprocess.PIPE, check=False).stdout.split()
    for child in children:
        os.kill(int(child), 15)  # what a container manager does to the container's PID 1
    try:
        out, _ = process.communicate(timeout=t.PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        t.check(False, "SIGTERM to PID 1 ended nothing")
t.check_equal("SIGTERM is forwarded", (process.returncode, out), (8, b"told\n"))

inner = "sh -c 'kill -9 $$'; sh -c 'exit 5'; exit 4"
result = t.run([t.CAIRN, "run", "-q", "-o", "apart.cairn", "--", *NAMESPACE, "--net", "sh", "-c", f"{inner}; :"])
t.check_equal("namespaces of their own", result.status, 4)
with open("apart.cairn/index", encoding="utf-8") as index:
    rows = [line.split("\t")[0] for line in index if not line.startswith("#")]
files = [name for name in os.listdir("apart.cairn") if name.endswith(".cairn")]
t.check(len(files) >= 3, f"recordings of the namespace: {files}")
t.check_equal("files in the index", sorted(row for row in rows if row != "-"), sorted(files))
for name in files:
    size = os.path.getsize(f"apart.cairn/{name}")
    t.check(size < 1 << 20, f"{name}: {size} bytes")


def unheard(name, script, count, status):
    """`script` runs in a network and mount namespace of its own."""
    argv = ["unshare", "--net", "--mount", "sh", "-c", script.format(run=os.path.abspath(f"{name}.cairn"))]
    t.check_equal(f"{name}: plain", t.run(argv).status, status)
    shutil.rmtree(f"{name}.cairn", ignore_errors=True)
    t.check_equal(f"{name}: end", t.run_cairn("run", "-q", "-o", f"{name}.cairn", "--", *argv).status, status)
    found = [one for file in ledger.files(f"{name}.cairn") if (one := t.report(file))]
    t.check_equal(name, sum(one["trust"]["lost"].get("processes", 0) for one in found), count, is_grave=True)
    words = t.run_cairn("report", "--summary", f"{name}.cairn").out.decode()
    t.check(("or a sandbox" in words) == bool(count), f"{name}: {words}")


app = t.program("leak")[0]
readonly = "mkdir -p {run}; mount -t tmpfs -o ro none {run}; "
unheard("no-place", readonly + f"{app}; exec {app}", 2, 3)
unheard("nothing-there", readonly + "exec /no/such/program", 0, 127)
unheard("not-heard", f"env -i {app}; exit 4", 1, 4)
unheard("own-place", f"{app}; exit 4", 0, 4)
# A program whose own file lies below what was mounted over its directory since.
hidden = os.path.realpath("hidden")
os.mkdir(hidden)
shutil.copy(t.program("attached")[0], hidden)
target = Target(1, path=f"{hidden}/attached", before=["unshare", "--mount", "sh", "-c", """
exec 9<"$0" && mount -t tmpfs none "${0%/*}" && exec /proc/self/fd/9 "$@" """])
attached = Attached(target.pid, "--exact", "--no-scan-heap")
t.check("paused" in attached.first, f"below a mount: {attached.first}")
target.tell("keep 7 1000")
found = attached.leave()
kept = [stack["allocations"] for stack in found["stacks"] if stack["allocated_bytes"] == 7000] if found else []
t.check_equal("below a mount: recorded", kept, [7])
target.end("below a mount")
t.finish()
