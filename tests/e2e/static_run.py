#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run of static programs, of glibc and musl, at fixed addresses and at any, in C, C++ and Rust: what a counter that is
linked into each has counted, to the call and byte; whole stacks; the same output and status; forked children and
threads; a program that is killed, and a tool that is. What cannot be recorded is refused with the reason, and has not
begun then."""

import os
import pathlib
import signal
import subprocess

import cairn_test as t
import counts
import static_counter

C = ("leak", "threads", "realloc_chain", "deep_recursion", "odd_arguments")
CXX = ("containers", "aligned", "exceptions", "objects")
WORDS = {"threads": ["short"]}


def builds():
    for libc in ("gcc", "musl-gcc"):
        for kind in ("-static", "-static-pie"):
            for name in C:
                if (name, libc) != ("odd_arguments", "musl-gcc"):  # the program itself dies there
                    yield f"{name}.c", libc, kind, libc
            for name in CXX if libc == "gcc" else ():
                yield f"{name}.cc", libc, kind, "g++"


def check_counted(what, argv):
    prefix = t.fresh_path("counted")
    plain = t.run(argv)
    result, path = t.record(argv, env={"COUNT_PRELOAD_OUT": prefix})
    result.check_like(what, plain)
    found, wanted = t.report(path), list(counts.read_all(prefix).values())
    t.check_equal(f"{what}: counted processes", len(wanted), 1)
    if not found or not wanted:
        return
    t.check_totals(what, found, wanted[0], with_peak=len(found["threads"]) == 1)
    t.check_sums(what, found)
    t.check_nothing_lost(what, found)
    t.check(found["trust"]["exact"], f"{what}: not exact")
    t.check_equal(f"{what}: stacks that are cut", found["trust"]["stacks_incomplete"], {})


def check_children(static, how, count):
    """Every process has a recording of its own, by whatever call it was made."""
    _, path = t.record([static, how, str(count)])
    files = sorted(pathlib.Path(path).glob("*.cairn"))
    t.check_equal(f"{how}: recordings", len(files), count + 1)
    blocks = []
    for file in files:
        found = t.report(file)
        t.check_sums(f"{how}: {file.name}", found)
        t.check_nothing_lost(f"{how}: {file.name}", found)
        blocks.append(sum(s["allocations"] for s in t.stacks_through(found, "child_work")))
    t.check_equal(f"{how}: blocks of each child", sorted(blocks), [0] + [1000] * count)


def start(static, *words, **variables):
    """The tool with a program that says a word once it holds its blocks, and waits for the end of its input."""
    path, word = t.fresh_path("held") + ".cairn", t.fresh_path("word")
    with open(word, "wb") as out:
        tool = subprocess.Popen([t.CAIRN, "run", "-q", "-o", path, "--", static, *words], env=t.environment(variables),
                                stdin=subprocess.PIPE, stdout=out)
    t.wait_until(lambda: os.path.getsize(word) > 0)
    children = [pid for pid in t.children_of(tool.pid) if pathlib.Path(f"/proc/{pid}/exe").resolve() == pathlib.Path(static)]
    t.check_equal("one process of it", len(children), 1)
    return tool, children[0], path


def check_killed(static):
    """The counter and the recording are both in memory that is shared: they agree however it ends."""
    prefix = t.fresh_path("counted")
    tool, child, path = start(static, COUNT_PRELOAD_OUT=prefix)
    os.kill(child, signal.SIGKILL)
    t.check_equal("killed: status", tool.wait(), 128 + signal.SIGKILL)
    found, wanted = t.report(path), list(counts.read_all(prefix).values())
    if found and t.check_equal("killed: counted processes", len(wanted), 1):
        t.check_totals("killed", found, wanted[0])


def check_tool_killed(static):
    """Without the tool the program goes on, and writes its recording itself when it ends."""
    prefix = t.fresh_path("counted")
    tool, child, path = start(static, COUNT_PRELOAD_OUT=prefix)
    tool.kill()
    tool.wait()
    t.check(not t.is_in_state(child, "ZX"), "the program ended with the tool", is_grave=True)
    tool.stdin.close()
    t.check(t.wait_until(lambda: not os.path.exists(f"/proc/{child}")), "the program hangs")
    found, wanted = t.report(path), list(counts.read_all(prefix).values())
    if found and wanted:
        t.check_totals("the tool killed", found, wanted[0])


def check_refused(what, argv, *said, options=()):
    """It is named, and has not begun: nothing was written."""
    result = t.run_cairn("run", "-q", *options, "-o", t.fresh_path("refused"), "--", *argv)
    text = result.err.decode()
    t.check(result.status in (125, 126, 2) and result.out == b"", f"{what}: status {result.status}, output {result.out!r}")
    t.check(all(word in text for word in said), f"{what}: said {text!r}, not {said}")


def damaged(static, what, change):
    path = pathlib.Path(t.fresh_path(what))
    data = bytearray(pathlib.Path(static).read_bytes())
    change(data)
    path.write_bytes(data)
    path.chmod(0o755)
    return str(path)


def check_refusals(static):
    stripped = t.fresh_path("stripped")
    subprocess.run(["strip", "-o", stripped, static], check=True)
    check_refused("stripped", [stripped], "statically linked", "no symbol")
    result = t.run_cairn("run", "-q", "--ignore-checks", "-o", t.fresh_path("anyway"), "--", stripped)
    t.check_equal("stripped, nevertheless", (result.status, result.out), (3, t.run([static]).out))
    for option in ("--exec", "--mmap", "--guard", "--signal=USR1=mark", "--wrap=postgresql"):
        check_refused(option, [static], option.split("=", 1)[0], "statically linked", options=[option])
    # as packers leave it: no section headers
    check_refused("no sections", [damaged(static, "sections", lambda data: data.__setitem__(slice(40, 48), bytes(8)))],
                  "statically linked")


t.need("gcc", "g++", "musl-gcc", "objcopy", "strip")
for source, libc, kind, compiler in builds():
    stem = source.split(".", maxsplit=1)[0]
    built = static_counter.build(t.SOURCE / "tests/programs" / source, f"{stem}{kind}-{libc}", kind, compiler=compiler, libc=libc)
    if built:
        check_counted(f"{stem} {libc} {kind}", [built, *WORDS.get(stem, [])])
plain_leak = static_counter.build(t.SOURCE / "tests/programs/leak.c", "plain-leak", "-static")
processes = static_counter.build(t.SOURCE / "tests/programs/processes.c", "processes", "-static")
check_children(processes, "fork", 4)
check_children(processes, "clone", 1)
for kind in ("-static", "-static-pie"):
    hold = static_counter.build(t.SOURCE / "tests/programs/hold.c", f"hold{kind}", kind)
    check_killed(hold)
    check_tool_killed(hold)
check_refusals(plain_leak)
t.finish()
