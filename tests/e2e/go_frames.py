#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=go: the Go frames of memory that C allocates are those that runtime.Callers tells at the same
time, at 20,000 calls of every kind (4,000 in all but the plain way of building; `make check-long`: 100,000 in each),
also where C calls Go back, on its own threads too, in a stripped program, and in one at any address (`make check-long`,
since all of Go's library is compiled anew for it). With this machine's Go, and with those of other Debians, in chroots
that are in $CHROOTS/SUITE-go, or that CAIRN_LONG=1 makes there (build/chroots). Without the option a line of the
report says so. The statements that a program over SQLite forgets are those of its function that makes them."""

import collections
import os
import pathlib
import re
import shutil

import cairn_test as t
import chroots

CALLS = 50000 if t.IS_LONG else 10000  # walk() allocates about twice each
CALLS_BESIDE = CALLS if t.IS_LONG else CALLS // 5  # in other ways than the plain one
OTHERS = ("trixie", "sid")
WAYS = {"plain": [], "anywhere": ["-buildmode=pie"], "unoptimized": ["-gcflags=-N -l"], "stripped": ["-ldflags=-s -w"]}
place = pathlib.Path(t.fresh_path("go")).absolute()
os.makedirs(place)
told, source = place / "told", t.SOURCE / "tests/programs/calls.go"


def is_plumbing(function):
    return function.startswith(("runtime.", "_cgo", "main._Cfunc_", "crosscall2"))


def told_stacks(path):
    stacks = collections.Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        count, *frames = line.split(" ")
        stacks[tuple(frame for frame in frames if not is_plumbing(frame))] += int(count)
    return stacks


def stacks_of(found, has_names_of_c):
    stacks, without_c = collections.Counter(), []
    for stack in found["stacks"]:
        if "main.place.leaf" not in [frame["function"] for frame in stack["frames"]]:
            continue
        frames = [frame for frame in stack["frames"] if (frame["file"] or "").endswith("calls.go")]
        # types of generic functions are not in what Callers says
        names = [(re.sub(r"\[.*\]", "[...]", frame["function"]), frame["line"]) for frame in frames]
        shown = [f"{name}:{line}" for name, line in names if "." in name]
        stacks[tuple(frame for frame in shown if not is_plumbing(frame))] += stack["allocations"]
        callbacks = [frame["function"] for frame in stack["frames"] if frame["function"] == "call_back"]
        backs = [frame for frame in shown if frame.startswith("main.goBack:")]
        if has_names_of_c and len(backs) - len(callbacks) not in (0, 1):
            without_c.append(shown)
    t.check(not without_c, f"each call back has its frame of C: {without_c[:2]}")
    return stacks


def compare(name, told_path, recording, has_names_of_c, *options, calls=CALLS):
    wanted, found = told_stacks(told_path), stacks_of(t.report(recording, *options), has_names_of_c)
    t.check(sum(wanted.values()) >= 1.9 * calls, f"{name}: {sum(wanted.values())} calls were told")
    lost, more = wanted - found, found - wanted
    t.check_equal(f"{name}: stacks that differ", (sum(lost.values()), sum(more.values())), (0, 0))
    for stack in list(lost)[:2] + list(more)[:2]:
        print(name, "told" if stack in lost else "recorded", stack)


def settings(where):
    return {"GOCACHE": t.GO_CACHE if where == place else f"{where}/cache", "GO111MODULE": "off", "GOFLAGS": "", "HOME": str(where)}


def try_here(name):
    made = t.run(["go", "build", *WAYS[name], "-o", f"{place}/{name}", str(source)], env={**os.environ, **settings(place)})
    t.check_equal(f"{name} is built", made.status, 0)
    calls = CALLS if name == "plain" else CALLS_BESIDE
    result, recording = t.record([f"{place}/{name}", str(told), str(calls)], options=["--frames=go"])
    t.check_equal(f"{name}: status", (result.status, result.out), (0, b""))
    compare(name, told, recording, name != "stripped", calls=calls)


def try_inside(suite, root, name):
    here, inside = root / "tmp/cairn-go", "/tmp/cairn-go"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    for file in (t.RUNTIME, source):
        shutil.copy(file, here)
    made = t.run(chroots.inside(root, [*(f"{key}={value}" for key, value in settings(inside).items()), "go", "build", *WAYS[name],
                                       "-o", f"{inside}/{name}", f"{inside}/{source.name}"]))
    t.check_equal(f"{suite}: {name} is built", (made.status, made.err), (0, b""))
    result = t.run(chroots.inside(root, ["CAIRN_GO=1", f"CAIRN_OUTPUT={inside}/out.cairn", f"LD_PRELOAD={inside}/libcairn.so",
                                         f"{inside}/{name}", f"{inside}/told", str(CALLS)]))
    outputs = sorted(here.glob("out*.cairn"))
    if t.check_equal(f"{suite}: {name}", (result.status, result.err, len(outputs)), (0, b"", 1)):
        compare(f"{suite}: {name}", here / "told", str(outputs[0]), name != "stripped", "--sysroot", str(root))


def without(program):
    _, recording = t.record([program, str(told), "100"])
    text = t.run_cairn("report", recording).out.decode()
    t.check("Go: its own frames are missing, --frames=go records them" in text, text)
    _, recording = t.record([program, str(told), "100"], options=["--frames=go"])
    text = t.run_cairn("report", "--view", "stacks", "--by", "calls", recording).out.decode()
    t.check("Go: its own frames" not in text and "main.walk" in text and "runtime.cgocall" not in text, text[:2000])
    t.check("stacks have its frames" in t.run_cairn("info", recording).out.decode(), "cairn info says so")


def go_command():
    """Debian's go is linked by Go itself, without unwind information: its C has no caller that some word on the stack names."""
    result, recording = t.record(["go", "version"])
    t.check_equal("go version", result.status, 0)
    names = [[frame["function"] for frame in stack["frames"]] for stack in t.report(recording)["stacks"]]
    starts = [one[one.index("_cgo_try_pthread_create") + 1:] for one in names if "_cgo_try_pthread_create" in one]
    if not starts:
        return t.skip_part("the go command has no C of its own")
    t.check(all((one or "runtime.").startswith("runtime.") for outer in starts for one in outer), f"who starts threads: {starts}")


def forgotten_statements():
    made = t.run(["go", "build", "-o", f"{place}/notes", f"{t.SOURCE}/tests/programs/notes.go"],
                 env={**os.environ, **settings(place)})
    if made.status:
        return t.skip_part("SQLite is not installed (libsqlite3-dev)")
    result, recording = t.record([f"{place}/notes"], options=["--frames=go"])
    t.check_equal("notes", (result.status, result.out), (0, b"8756\n"))
    left = [stack for stack in t.report(recording)["stacks"] if stack["at_exit_blocks"] == 200]
    names = [[frame["function"] for frame in stack["frames"]] for stack in left]
    t.check(left and all("sqlite3_prepare_v2" in one and "main.(*Store).Search" in one and "main.main" in one for one in names),
            f"the statements of Search are left: {names[:1]}")


WAITS = """package main

// #include <stdlib.h>
// #include <unistd.h>
import "C"

func work() { C.free(C.malloc(1000)) }

func main() {
	println("begun")
	for C.access(C.CString("waits.go"), 0) == 0 {
		work()
		C.usleep(5000)
	}
}
"""


def attached():
    """A thread that is in C for nearly all of the time, behind which Go's stack is another one."""
    (place / "waits.go").write_text(WAITS, encoding="ascii")
    made = t.run(["go", "build", "-o", f"{place}/waits", f"{place}/waits.go"], env={**os.environ, **settings(place)})
    t.check_equal("waits is built", made.status, 0)
    with t.Process([f"{place}/waits"], cwd=place, stderr=-1) as process:
        t.check_equal("it is loaded", process.stderr.readline(), b"begun\n")
        path = t.fresh_path("attached") + ".cairn"
        result = t.run_cairn("attach", "--frames=go", "--exact", "--record-for", "1s", "-o", path, str(process.pid))
        (place / "waits.go").unlink()
        if t.check_equal(f"attach: {result.err.decode()}", result.status, 0):
            found = t.report(path)
            names = [[frame["function"] for frame in stack["frames"]] for stack in found["stacks"]]
            t.check(any("main.work" in one and "main.main" in one for one in names), f"attached: {names[:3]}")
        t.check_equal("it goes on, and ends well", process.wait(t.PATIENCE_S), 0)


if t.run(["sh", "-c", "go version && gcc --version"]).status != 0:
    t.cannot_run_here("Go is not installed (golang-go)")
for name in WAYS:
    if name != "anywhere" or t.IS_LONG:
        try_here(name)
without(f"{place}/plain")
go_command()
forgotten_statements()
attached()
for suite in OTHERS:
    root = chroots.find(suite, "go", ["golang-go", "gcc", "libc6-dev"])
    for name in WAYS if root else []:
        try_inside(suite, root, name)
t.finish()
