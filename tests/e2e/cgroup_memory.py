#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn report --cgroup`: parts that add up to what a cgroup uses, anonymous memory by process and kind, as a program
that knows its own says; the stacks of what is recorded; the kept files of version 2; and what cannot be answered."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t
from commanded import Commanded
from memory_cgroup import MIB, Cgroup

NOBODY = 65534
STAT = ("anon {anon}\nfile 400000000\nkernel 90000000\nkernel_stack 16000000\npagetables 8000000\npercpu 2000000\n"
        "sock 20000000\nvmalloc 4000000\nshmem 100000000\nzswap 0\nzswapped 0\nswapcached 0\nanon_thp 50000000\n"
        "slab_reclaimable 30000000\nslab_unreclaimable 10000000\nslab 40000000\n")


def ask(path):
    result = t.run_cairn("report", "--json", "--cgroup", str(path))
    t.check_equal(f"{path}: status, {result.err}", result.status, 0)
    answer = json.loads(result.out)
    t.check_equal("schema", answer["schema"], "cairn.cgroup/1")
    check_sums(answer)
    return answer


def check_sums(answer):
    """Whatever it is, it adds up, and nothing is negative."""
    parts = [bytes for bytes in answer["parts"].values() if bytes is not None]
    t.check_equal("parts", sum(parts), answer["used_bytes"] + answer["over_bytes"], is_grave=True)
    t.check_equal("anonymous memory by kind",
                  sum(answer["anonymous"].values()) + answer["anonymous_unread_bytes"] - answer["anonymous_elsewhere_bytes"],
                  answer["parts"]["anonymous"], is_grave=True)
    for process in answer["processes"]:
        t.check_equal(f"kinds of {process['pid']}", sum(process["anonymous"].values()), process["anonymous_bytes"], is_grave=True)
    t.check(all(bytes >= 0 for bytes in parts), f"negative: {answer['parts']}", is_grave=True)


def screen(path):
    result = t.run_cairn("report", "--cgroup", str(path), env=t.environment({"COLUMNS": "80"}))
    lines = result.out.decode().splitlines()
    t.check(result.status == 0 and 8 < len(lines) <= 40, f"{len(lines)} lines: {lines}")
    t.check(max(len(line) for line in lines[1:]) <= 80, f"wider than 80: {lines}")
    return result.out.decode()


def is_near(found, truth, most=2 * MIB):
    return abs(found - truth) <= most


def check_kinds(answer, pid, is_named):
    process = next(process for process in answer["processes"] if process["pid"] == pid)
    kinds, named = process["anonymous"], 8 * MIB if is_named else 0
    truths = {"heap_in_use": 24 * MIB, "heap_free": 8 * MIB, "mapped": 40 * MIB - named, "named": named, "stacks": 2 * MIB,
              "heap": 0, "cairn": 0}
    for kind, truth in truths.items():
        t.check(is_near(kinds[kind], truth), f"{kind}: {kinds[kind]}, truth {truth}", is_grave=True)
    t.check(not is_named or answer["named"][0]["name"] == "container pool", f"{answer['named']}")
    shared = [file for file in answer["files"] if file["name"] == "/memfd:container-shared"]
    t.check(len(shared) == 1 and shared[0]["shared_memory"] and is_near(shared[0]["bytes"], 16 * MIB, MIB), f"{shared}")
    t.check(is_near(answer["parts"]["shared"], 16 * MIB), f"shared: {answer['parts']}")
    unknown = answer["parts"]["not_known"] + answer["anonymous_unread_bytes"] + answer["over_bytes"]
    t.check(unknown <= 0.02 * answer["used_bytes"], f"{unknown} of {answer['used_bytes']} are not known", is_grave=True)


def check_kernel(answer, text):
    """Version 1 tells one sum of the kernel's memory: it is split by what the processes have."""
    kernel, pids = answer["kernel"], [process["pid"] for process in answer["processes"]]
    t.check_equal("threads", kernel["threads"], sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids))
    if answer["version"] == 2:
        t.check(kernel["rest"] is None and "in the kernel, about" not in text, f"{kernel}")
        return
    t.check_equal("its parts", kernel["page_tables"] + kernel["stacks_about"] + kernel["rest"], answer["parts"]["kernel"])
    t.check(0 < kernel["page_tables"] and kernel["stacks_about"] <= kernel["threads"] * max(16 << 10, os.sysconf("SC_PAGE_SIZE")),
            f"{kernel}")
    t.check("page tables of its processes" in text or kernel["page_tables"] < answer["used_bytes"] / 100, text)


def check_real():
    """In a cgroup with a limit: a program that knows what it has, and one that is recorded."""
    with Cgroup("report", 400) as cgroup:
        if not cgroup.path:
            t.skip_part(cgroup.reason)
            return
        program = cgroup.start(*t.program("container"))
        is_named = program.stdout.readline() == "named\n"
        if is_named:
            text = t.run_cairn("report", str(program.pid)).out.decode()
            t.check(re.search(r"8\.0 MiB  \[anon:container pool\]", text), text)
        else:
            t.skip_part("this kernel keeps no names of memory (CONFIG_ANON_VMA_NAME)")
        with Commanded("inside.cairn", before=cgroup.within()) as recorded:
            recorded.do("early 9000000")
            answer, text = ask(cgroup.path), screen(cgroup.path)
            check_kinds(answer, program.pid, is_named)
            check_kernel(answer, text)
            t.check_equal("limit", answer["limit_bytes"], 400 * MIB)
            row = next(process for process in answer["processes"] if process["pid"] == int(recorded.pid))
            t.check(row["recorded"] and row["live_bytes"] >= 9000000, f"{row}")
            t.check_equal("its largest stack", row["stacks"][0]["frames"][0]["function"], "early")
            t.check(re.search(r"heap of commands \(\d+\) by stack.*\n.* early ", text), text)
            t.check(f"next: cairn report {program.pid}" in text and " of 400 MiB in use" in text, text)
            program.communicate("")
            gone = ask(cgroup.path)
            t.check(program.pid not in [process["pid"] for process in gone["processes"]], f"{gone['processes']}")


def write_version_2(path, pids, anon):
    path.mkdir()
    files = {"cgroup.procs": "".join(f"{pid}\n" for pid in pids), "memory.current": "600000000\n", "memory.max": "max\n",
             "memory.events": "low 0\nhigh 0\nmax 0\noom 1\noom_kill 1\n", "memory.stat": STAT.format(anon=anon),
             "memory.swap.current": "5000000\n"}
    for name, text in files.items():
        (path / name).write_text(text, encoding="ascii")


def check_version_2():
    """Kept files, with processes of here: one that goes on, one that has ended, and one of another name space."""
    program = subprocess.Popen(t.program("container"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdout.readline()
    ended = subprocess.Popen(["true"])
    t.wait_until(lambda: t.is_in_state(ended.pid, "Z"))
    path = pathlib.Path("new").absolute()
    write_version_2(path, (program.pid, ended.pid, 0), 80000000)
    answer, text = ask(path), screen(path)
    t.check_equal("version", (answer["version"], answer["limit_bytes"], answer["oom_kills"]), (2, None, 1))
    wanted = {"anonymous": 80000000, "files": 300000000, "shared": 100000000, "slab": 40000000, "kernel_stacks": 16000000,
              "page_tables": 8000000, "per_cpu": 2000000, "vmalloc": 4000000, "compressed": 0, "kernel": 20000000,
              "sockets": 20000000, "hugetlb": None}
    parts = answer["parts"]
    t.check_equal("the rest", parts.pop("ahead") + parts.pop("not_known"), 10000000, is_grave=True)
    t.check_equal("parts", parts, wanted, is_grave=True)
    t.check_equal("swap", answer["beside"]["swap"], 5000000)
    t.check((answer["processes_ended"], answer["processes_hidden"]) == (1, 1), f"{answer}")
    for words in ("page cache of files", "slab: objects of the kernel", "buffers of sockets", "swapped out beside it",
                  "1 kill for want of memory", "of another PID name space", "1 ended meanwhile", "the largest part, 286 MiB"):
        t.check(words in text, f"no \"{words}\": {text}")
    shutil.rmtree(path)
    # pages of another group
    write_version_2(path, (program.pid,), 1000000)
    answer, text = ask(path), screen(path)
    t.check(answer["anonymous_elsewhere_bytes"] > 60 * MIB and "charged to another cgroup" in text, text)
    check_nobody(path)
    program.communicate(b"", timeout=t.PATIENCE_S)
    ended.wait()
    t.check_equal("it goes on to its end", program.returncode, 0, is_grave=True)
    (path / "cgroup.procs").write_text("", encoding="ascii")
    t.check("no process of it could be read" in screen(path), "an empty one")
    for used in ("0\n", "9223372036854775807\n"):
        (path / "memory.current").write_text(used, encoding="ascii")
        t.check("100 %" in screen(path), f"in use: {used}")
        ask(path)


def check_nobody(path):
    """A process of another user is counted, and what to do is said."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        t.skip_part("another user takes root and setpriv")
        return
    become = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"]
    if t.run([*become, "cat", f"{path}/cgroup.procs"]).status or t.run([*become, t.CAIRN, "help"]).status:
        t.skip_part("another user cannot read this directory")
        return
    result = t.run([*become, t.CAIRN, "report", "--cgroup", str(path)], env=t.environment())
    t.check(result.status == 0 and b"1 may not be read: ask as root (sudo)" in result.out, f"nobody: {result}")


def check_refused():
    here = pathlib.Path("old").absolute()
    here.mkdir()
    for path, words in (("nowhere", "there is no such cgroup"), (here, "has no cgroup.procs")):
        result = t.run_cairn("report", "--cgroup", str(path))
        t.check(result.status == 1 and words in result.err.decode() and result.err.count(b"\n") == 1, f"{path}: {result.err}")
    (here / "cgroup.procs").write_text("", encoding="ascii")
    for name, words in ((None, "it is of another controller: name the one below /sys/fs/cgroup/memory"),
                        ("cgroup.controllers", "its memory controller is off: echo +memory >cgroup.subtree_control"),
                        ("memory.stat", "the root of version 2, for which the kernel keeps no sum: name one below it")):
        if name:
            (here / name).write_text("anon 1\n", encoding="ascii")
        result = t.run_cairn("report", "--cgroup", str(here))
        t.check(result.status == 1 and words in result.err.decode(), f"{name}: {result.err}")
    for words, text in ((("1",), b"report: --cgroup PATH or 1, not both"), (("--view", "tree"), b"exclude each other"),
                        (("--no-copy-limit",), b"nothing is copied")):
        result = t.run_cairn("report", "--cgroup", str(here), *words)
        t.check(result.status == 2 and text in result.err, f"{words}: {result.err}")


check_real()
check_version_2()
check_refused()
t.finish()
