#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The views heap and pages, of processes and of cores: blocks as many as the program holds, resident pages as
/proc says it by another way, who keeps them, estimates of samples, the picture in the page of `cairn open`; and
processes that cannot be looked at, with nothing left behind in any; and the memory that it takes to look at many blocks,
which is the same for large and small ones (33 million where CAIRN_LONG is set)."""

import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
from types import SimpleNamespace

import cairn_test as t
import death_watch
import pagemap
from page_data import read_page

PAGES, THREAD_PAGES = 10000, 1000
SIZE, PAGE = 64, 4096
TURNS = 8 if t.IS_LONG else 3
KINDS = ("used", "mapped", "free_bins", "free_fast", "free_cached", "free_top")
BLOCK_COST, COST_NOISE = 64, 8 << 20  # bytes
PTRACE_SEIZE = 0x4206


class Fragmented:
    """tests/programs/fragmented.c, recorded or not, as it waits."""

    def __init__(self, env=None, run=(), pages=PAGES, blocks=0):
        self.process = subprocess.Popen([*run, *t.program("fragmented", pages, blocks)], env=t.environment(env),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        words = self.process.stdout.readline().decode().split()
        self.facts = {name: int(value) for name, value in (word.split("=") for word in words)}
        self.pid = self.process.pid
        if run:
            children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii")
            self.pid = int(children.split()[0])

    def end(self, what):
        check_state(what, self.pid, "S")
        self.process.stdin.close()
        t.check_equal(f"{what}: ends well", self.process.wait(timeout=t.PATIENCE_S), 0)


def status_of(pid, name):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").split("\n"):
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip()
    return ""


def check_state(what, pid, letters):
    """What it does once it has been let go: it may take a moment to be back there."""
    is_there = t.wait_until(lambda: status_of(pid, "State")[:1] in letters)
    t.check(is_there, f"{what}: {status_of(pid, 'State')}, should be of {letters}")
    t.check_equal(f"{what}: nobody traces it", status_of(pid, "TracerPid"), "0")


def asked(subject, view, *options):
    result = t.run_cairn("report", "--json", "--view", view, *options, str(subject))
    if not t.check_equal(f"{view} of {subject}: status", result.status, 0):
        print(result.err.decode(errors="replace"))
        return None
    return json.loads(result.out)


def parts_of(answer):
    """The rows of the view heap, by part."""
    rows = {part: [row for row in answer["rows"] if row["part"] == part] for part in ("size", "state", "arena", "range", "area", "cell")}
    sizes = [{"from": row["size_from"], **{kind: {"blocks": row[f"{kind}_blocks"], "bytes": row[f"{kind}_bytes"]}
                                           for kind in ("used", "free", "live")}} for row in rows["size"]]
    states = {row["name"]: {"blocks": row.get("blocks"), "bytes": row["bytes"]} for row in rows["state"]}
    areas = [{"start": row["address"], "end": row["address"] + row["bytes"]} for row in rows["range"]]
    cells = [-1 if row["live_share"] is None else round(100 * row["live_share"]) for row in rows["cell"]]
    strips = [{"kind": row["name"], **row} for row in rows["area"]]
    return {**states, **answer["facts"], "sizes": sizes, "arenas": rows["arena"]}, areas, {"strips": strips, "cells": cells}


def look(subject, view, *options):
    """What both views say: of the view heap alone, without pages."""
    heap = asked(subject, "heap", *options)
    pages = asked(subject, "pages", *options) if heap and view == "pages" else heap
    if not heap or not pages:
        return None
    sums, areas, picture = parts_of(heap)
    return {**pages["facts"], "pid": (pages["process"] or {}).get("pid"), "heap": sums, "map": picture,
            "pages": {**pages["facts"], "areas": areas, "owners": pages["rows"]}}


def check_residency(pid, found):
    """Every area against pagemap; what brk moves and each arena also against smaps."""
    wanted = sum(pagemap.resident_bytes(pid, area["start"], area["end"]) for area in found["pages"]["areas"])
    t.check_equal("resident by pagemap", found["pages"]["resident_bytes"], wanted)
    heap = [one for one in pagemap.mappings(pid) if one[3] == "[heap]"]
    strips = {strip["kind"]: strip for strip in found["map"]["strips"]}
    t.check_equal("main arena: Rss of [heap]", strips["main"]["resident_bytes"], sum(one[4] for one in heap))
    arenas = [area for area in found["pages"]["areas"] if area["start"] % (64 << 20) == 0]
    t.check_equal("an arena of the thread", len(arenas), 1)
    for area in arenas:
        # the kernel makes one mapping of the arena and of a block's own mapping right in front of it
        around = [one for one in pagemap.mappings(pid) if one[0] <= area["start"] < one[1]]
        t.check(len(around) == 1, f"arena {area}: {around}")
        for start, end, _, _, size in around:
            others = pagemap.resident_bytes(pid, start, area["start"]) + pagemap.resident_bytes(pid, area["end"], end)
            t.check_equal("arena: its mapping's Rss", strips["arenas"]["resident_bytes"], size - others)
    cells = found["map"]["cells"]
    t.check(cells and all(-1 <= cell <= 100 for cell in cells), f"cells of the map: {set(cells)}")


def check_sums(what, found):
    pages = found["pages"]
    t.check_equal(f"{what}: owners add up", sum(one["kept_bytes"] for one in pages["owners"]), pages["kept_bytes"])
    t.check_equal(f"{what}: all resident", pages["kept_bytes"] + pages["empty_bytes"], pages["resident_bytes"])
    strips = found["map"]["strips"]
    if pages["residency_known"]:
        t.check_equal(f"{what}: strips", sum(one["resident_bytes"] for one in strips), pages["resident_bytes"])
    t.check_equal(f"{what}: live", sum(one["live_bytes"] for one in strips), pages["live_bytes"])


def check_heap(what, heap, facts):
    sizes = {one["from"]: one for one in heap["sizes"]}
    t.check(sizes[64]["used"]["blocks"] >= facts["kept"], f"{what}: {sizes[64]} of {facts}")
    t.check(sizes[64]["used"]["blocks"] < facts["kept"] + 100, f"{what}: {sizes[64]} of {facts}")
    t.check(sizes[2048]["free"]["blocks"] >= facts["kept"] - 100, f"{what}: {sizes[2048]} of {facts}")
    t.check(heap["mapped"]["bytes"] >= facts["large"], f"{what}: {heap['mapped']}")
    t.check_equal(f"{what}: arenas", len(heap["arenas"]), 2)
    for arena in heap["arenas"]:
        told = arena["used_bytes"] + arena["free_bytes"] + arena["top_bytes"]
        t.check(0.9 * arena["bytes"] < told <= arena["bytes"], f"{what}: {arena}")
    t.check(facts["kept"] * 4000 < heap["free_bytes"], f"{what}: free {heap['free_bytes']}")
    t.check(heap["largest_free_bytes"] < heap["free_bytes"] / 10, f"{what}: {heap['largest_free_bytes']}")


def unrecorded():
    target = Fragmented()
    found = look(target.pid, "pages", "--top", "0")
    if found:
        t.check_equal("unrecorded", (found["recorded"], found["allocator"], found["pid"]),
                      (False, "glibc", target.pid))
        check_residency(target.pid, found)
        check_sums("unrecorded", found)
        check_heap("unrecorded", found["heap"], target.facts)
        first = found["pages"]["owners"][0]
        t.check_equal("unrecorded: blocks from 64 bytes keep most", first["size_from"], 64)
        t.check(first["kept_bytes"] > 0.99 * target.facts["kept"] * PAGE, f"unrecorded: {first}")
        again = look(target.pid, "heap")
        t.check_equal("looking changes nothing", {**again["heap"], "pause_ns": 0}, {**found["heap"], "pause_ns": 0})
    screen = t.run_cairn("report", "--view", "heap", str(target.pid)).out.decode()
    for word in ("paused for", "main arena", "\u2591", "fragmentation", "free, in bins", "2 arenas"):
        t.check(word in screen, f"heap: no {word} in {screen}")
    t.check(max(map(len, screen.split("\n"))) <= 80, f"heap: wider than 80 columns: {screen}")
    target.end("unrecorded")


def types():
    """Blocks of classes by the class, as in a core of the same process."""
    with t.Process(t.program("reach"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        found = look(child.pid, "pages")
        subprocess.run(["gcore", "-o", "types", str(child.pid)], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        child.stdin.close()
        child.wait(timeout=t.PATIENCE_S)
    blocks = {one["type"]: one["live_blocks"] for one in found["pages"]["owners"] if "type" in one}
    t.check(blocks.get("zoo::Dog", 0) >= 3, f"types: {blocks}")
    core = look(f"types.{child.pid}", "pages")
    if core:
        t.check_equal("types: of the core", {one["type"]: one["live_blocks"] for one in core["pages"]["owners"]
                                             if "type" in one}, blocks)
        for part in ("sizes", *KINDS):  # of a process it has the heads of blocks, of a core all of them
            t.check_equal(f"types: {part} of the core", core["heap"][part], found["heap"][part])


def check_recorded(what, target):
    found = look(target.pid, "pages")
    if not found:
        return
    check_residency(target.pid, found)
    check_sums(what, found)
    t.check(found["recorded"] and not found["sampled"], f"{what}: recorded exactly")
    t.check_equal(f"{what}: rejected", (found["broken_stretches"], found["rejected_slots"]), (0, 0))
    check_heap(what, found["heap"], target.facts)
    # two stacks, of the main thread and of the other; one block a page
    little = [one for one in found["pages"]["owners"] if "keep_little" in t.functions({"frames": one.get("frames", [])})]
    t.check_equal(f"{what}: first", little[:1], found["pages"]["owners"][:1])
    t.check_equal(f"{what}: live", sum(one["live_bytes"] for one in little), target.facts["kept"] * SIZE)
    t.check_equal(f"{what}: blocks", sum(one["live_blocks"] for one in little), target.facts["kept"])
    kept = sum(one["kept_bytes"] for one in little)
    t.check(0.99 * target.facts["kept"] * PAGE < kept <= target.facts["kept"] * PAGE, f"{what}: {kept}")
    t.check(sum(one["alone_bytes"] for one in little) > 0.99 * kept, f"{what}: alone: {little}")
    full = [one for one in found["pages"]["owners"] if "keep_full" in t.functions({"frames": one.get("frames", [])})]
    t.check(full and abs(full[0]["kept_bytes"] / target.facts["full"] - 1) < 0.1, f"{what}: full blocks: {full}")
    large = [one for one in found["pages"]["owners"] if one["live_bytes"] == target.facts["large"]]
    least = target.facts["large"] // 4  # was touched, which may have made a huge page at its end
    t.check(large and least <= large[0]["kept_bytes"] <= least + (2 << 20) + PAGE, f"{what}: large: {large}")
    screen = t.run_cairn("report", "--view", "pages", str(target.pid)).out.decode()
    t.check("keeps 39.1 MiB resident with 625 KiB live in 10,000 blocks" in screen and "fragmented.c" in screen,
            f"{what}: {screen}")
    t.check(max(map(len, screen.split("\n"))) <= 80, f"{what}: wider than 80 columns: {screen}")


def recorded():
    target = Fragmented(run=[t.CAIRN, "run", "-q", "-o", "run.cairn", "--"])
    check_recorded("run", target)
    page = t.run_cairn("open", "-o", "page.html", str(target.pid))
    t.check_equal("open: status", (page.status, page.err), (0, b""))
    chunks = dict(read_page("page.html")[1])
    t.check("heap" in chunks, f"open: {list(chunks)}")
    if "heap" in chunks:
        heap = chunks["heap"]
        stack, kept, live = heap["owners"][0]
        t.check_equal("open: live of the first", (live, chunks["stack.at_exit_bytes"][stack]), (PAGES * SIZE, PAGES * SIZE))
        t.check(0.99 * PAGES * PAGE < kept <= PAGES * PAGE, f"open: kept {kept}")
        t.check_equal("open: strips", [one["kind"] for one in heap["map"]["strips"]], ["main", "arenas", "blocks"])
    subprocess.run(["gcore", "-o", "held", str(target.pid)], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
    core = f"held.{target.pid}"
    alive, dead = look(target.pid, "pages"), look(core, "pages")
    if alive and dead:
        for known in ("used", "mapped", "free_bins", "free_fast", "free_cached", "live", "largest_free_bytes"):
            t.check_equal(f"core: {known}", dead["heap"][known], alive["heap"][known])
        t.check_equal("core: residency", (dead["pages"]["residency_known"], dead["pause_ns"]), (False, None))
        t.check_equal("core: first", dead["pages"]["owners"][0]["live_bytes"], PAGES * SIZE)
        # gcore writes zeros for pages that were never touched: three quarters of the large blocks
        touched = target.facts["large"] // 4
        large = [one["kept_bytes"] for one in dead["pages"]["owners"] if one["live_bytes"] == target.facts["large"]]
        t.check(len(large) == 1 and touched <= large[0] <= touched + PAGE, f"core: zero pages count: {large}, touched {touched}")
        check_sums("core", dead)
    t.check(b"does not tell which pages" in t.run_cairn("report", "--view", "pages", core).out, "core: said")
    target.end("run")
    alone = Fragmented({"LD_PRELOAD": t.RUNTIME, "CAIRN_OUTPUT": os.path.abspath("alone.cairn")})
    check_recorded("alone", alone)
    alone.end("alone")


def sampled():
    """What samples keep is scaled: within a fifth, with one block in sixteen or so sampled."""
    run = [t.CAIRN, "run", "-q", "--sample", "--rate", "1K", "--seed", "7", "-o", "sampled.cairn", "--"]
    target = Fragmented(run=run)
    found = look(target.pid, "pages")
    if found:
        t.check_equal("sampled", (found["recorded"], found["sampled"]), (True, True))
        little = [one for one in found["pages"]["owners"]
                  if "keep_little" in t.functions({"frames": one.get("frames", [])})]
        for what, wanted in (("kept_bytes", PAGE), ("live_bytes", SIZE), ("live_blocks", 1)):
            got = sum(one[what] for one in little)
            t.check(abs(got / (target.facts["kept"] * wanted) - 1) < 0.2, f"sampled: {what} {got} of {target.facts}")
        t.check(all(one["alone_bytes"] is None for one in little), f"sampled: {little}")
        live = found["heap"]["live"]["bytes"] / (target.facts["kept"] * SIZE + target.facts["full"] + target.facts["large"])
        t.check(0.8 < live < 1.2, f"sampled: live {found['heap']['live']}")
    said = t.run_cairn("report", "--view", "pages", str(target.pid)).out
    subprocess.run(["gcore", "-o", "sampled", str(target.pid)], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
    core = look(f"sampled.{target.pid}", "pages")
    if core and found:
        t.check_equal("sampled: live in the core", core["heap"]["live"], found["heap"]["live"])
    t.check(b"what stacks hold and keep is estimated" in said and b"keeps about" in said, f"sampled: {said}")
    target.end("sampled")


def taken_by(*words):
    """The most memory of a tool that is asked, and its processor time."""
    with open("answer", "wb") as out, subprocess.Popen([t.CAIRN, "report", *words], stdout=out, stderr=subprocess.STDOUT) as tool:
        _, status, used = os.wait4(tool.pid, 0)
        tool.returncode = os.waitstatus_to_exitcode(status)
    t.check_equal(f"{words}: status", tool.returncode, 0)
    return used.ru_maxrss << 10, used.ru_utime + used.ru_stime


def many():
    """Memory grows with the number of blocks, and not with the heap."""
    for view in ("heap", "remedies"):
        taken = []
        for pages in (20000, 50000):
            target = Fragmented(pages=pages)
            taken.append((taken_by("--view", view, "--no-copy-limit", str(target.pid))[0], 2 * target.facts["kept"]))
            target.end("many")
        (few_bytes, few), (most_bytes, most) = taken
        t.check(most_bytes - few_bytes < BLOCK_COST * (most - few) + COST_NOISE, f"{view}: {few_bytes} for {few} blocks, {most_bytes} for {most}")


def most():
    """33 million blocks of 16 to 32 bytes, and beside them a heap of larger ones."""
    target = Fragmented(pages=100000, blocks=33000000)
    for words in (["--view", "heap"], ["--view", "pages"], ["--view", "remedies", "--no-copy-limit"], ["--view", "remedies"], ["--view", "waste"], []):
        taken, seconds = taken_by(*words, str(target.pid))
        t.check(taken < 1.5 * (1 << 30) and seconds < 60, f"most: {words}: {taken} bytes, {seconds} s of a processor")
    heap = look(target.pid, "heap")["heap"]
    t.check(heap["used"]["blocks"] > 33000000 and heap["broken_stretches"] == 0, f"most: {heap['used']}")
    target.end("most")


def busy():
    """Threads that are inside of malloc when they are stopped: read all the same."""
    for run in ([], [t.CAIRN, "run", "-q", "-o", "busy.cairn", "--"]):
        account = t.fresh_path("account")
        with t.Process([*run, *t.program("doomed", "loop", 3)],
                              env=t.environment({"LEDGER": account})) as child:
            try:
                at_work = SimpleNamespace(account_path=account)
                death_watch.wait_for_work(at_work, 20000)
                pid = at_work.pid
                for turn in range(TURNS):
                    found = look(pid, "pages", "--top", "3")
                    if found:
                        check = found["heap"]["used"]["blocks"] > 0 and found["rejected_slots"] <= 20
                        t.check(check, f"busy {turn}: {found['heap']['used']} {found['rejected_slots']}")
                for turn in range(TURNS):  # killed at any moment: the process goes on
                    with t.Process([t.CAIRN, "report", "--view", "heap", str(pid)],
                                          stdout=subprocess.DEVNULL) as one:
                        time.sleep(random.Random(turn).uniform(0.001, 0.03))
                        one.kill()
                    check_state(f"killed {turn}", pid, "RSD")
            finally:  # it works until it is ended
                if run:
                    subprocess.run(["pkill", "-KILL", "-P", str(child.pid)], check=False)
                else:
                    child.kill()
                child.wait(timeout=t.PATIENCE_S)


def check_refused(what, pid, word, **how):
    for view in ("heap", "pages"):
        result = t.run(how.get("argv") or [t.CAIRN, "report", "--view", view, str(pid)])
        text = result.err.decode()
        t.check(result.status == 1 and text.count("\n") == 1 and word in text and not result.out,
                f"{what}: {result.status} {text!r}")


def i386_program():
    """A program that waits, of a machine of 32 bits: pause() in a loop."""
    code = bytes.fromhex("b81d000000cd80ebf7")
    start = 0x08048000
    header = (b"\x7fELF\1\1\1" + bytes(9) + (2).to_bytes(2, "little") + (3).to_bytes(2, "little")
              + b"".join(value.to_bytes(4, "little") for value in (1, start + 84, 52, 0, 0))
              + b"".join(value.to_bytes(2, "little") for value in (52, 32, 1, 0, 0, 0)))
    size = 84 + len(code)
    program = b"".join(value.to_bytes(4, "little") for value in (1, 0, start, start, size, size, 5, PAGE))
    pathlib.Path("i386").write_bytes(header + program + code)
    os.chmod("i386", 0o755)
    try:
        return subprocess.Popen(["./i386"])
    except OSError:
        return None


def refused():
    check_refused("no process", 2 ** 22 - 7, "no such process")
    check_refused("itself", 0, "cairn itself", argv=["sh", "-c", f"exec {t.CAIRN} report --view heap $$"])
    check_refused("no core", "nothing", "nothing: No such file or directory; no process is called")
    pathlib.Path("text").write_text("text\n", encoding="ascii")
    check_refused("a text", "text", "text: is not a cairn recording")
    if os.path.exists("/proc/2/comm") and pathlib.Path("/proc/2/comm").read_text(encoding="ascii") == "kthreadd\n":
        check_refused("kernel", 2, "thread of the kernel")
    with t.Process(["sleep", "60"]) as process:
        t.wait_until(lambda: t.is_in_state(process.pid, "S"))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(PTRACE_SEIZE, process.pid, None, None) == 0:
            check_refused("traced", process.pid, f"traced already, by process {os.getpid()}")
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        check_refused("zombie", process.pid, "has ended")
    with t.Process(["sleep", "60"]) as process:
        t.wait_until(lambda: t.is_in_state(process.pid, "S"))
        process.send_signal(signal.SIGSTOP)
        t.wait_until(lambda: t.is_in_state(process.pid, "T"))
        t.check(look(process.pid, "heap") is not None, "stopped: it can be read")
        check_state("stopped", process.pid, "T")
        process.kill()
    machine = i386_program()
    if machine:
        t.wait_until(lambda: t.is_in_state(machine.pid, "SZ"))
        if machine.poll() is None:
            check_refused("i386", machine.pid, "another architecture")
        machine.kill()
        machine.wait()
    if os.geteuid() == 0 and shutil.which("setpriv"):
        with t.Process(["sleep", "60"]) as process:
            t.wait_until(lambda: t.is_in_state(process.pid, "S"))
            argv = ["setpriv", "--reuid", "65534", "--clear-groups", "--regid", "65534", "--inh-caps=-all",
                    t.CAIRN, "report", "--view", "heap", str(process.pid)]
            if t.run([*argv[:-5], "test", "-x", t.CAIRN]).status == 0:
                check_refused("of another user", process.pid, "belongs to user 0", argv=argv)
            process.kill()
    for options in (("--view", "pages", "--focus", "x"), ("--view", "heap", "--at", "1s"), ("--view", "heap", "--by", "calls")):
        result = t.run_cairn("report", *options, "1")
        t.check(result.status == 2 and b"--view heap or pages and --" in result.err, f"{options}: {result.err}")


if os.uname().machine != "x86_64":
    t.cannot_run_here("stopping a process to look at it is for x86-64")
t.need("gcore")
unrecorded()
types()
recorded()
sampled()
many()
if t.IS_LONG:
    most()
busy()
refused()
t.finish()
