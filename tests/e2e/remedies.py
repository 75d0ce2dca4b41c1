#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn report --view remedies` of programs that are too large for one reason each: what it foretells of malloc_trim(0)
and of a block that pins the heap's end is what doing it gives back; what a setting saves at a start with it never exceeds
the bound; where nothing would help, that is what it says. Stopped, not stopped, and from a core dump; the program goes on.
The same of programs whose allocator is jemalloc, mimalloc or tcmalloc, which are asked to give back what is free (of the
last two `make check` has some ways in which memory is free)."""

import glob
import json
import os
import re
import shutil
import subprocess

import cairn_test as t

MIB = 1 << 20
SETTINGS = {
    "one_arena": {"MALLOC_ARENA_MAX": "1"},
    "two_arenas": {"MALLOC_ARENA_MAX": "2"},
    "threshold": {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072"},
}
# The way, the remedy that its sentence begins with (a pattern), and the settings to start it with.
WAYS = (
    ("live", r"nothing would help: the memory is live and touched", ()),
    ("holes", r"malloc_trim\(0\) would give back [\d.]+ MiB", ("threshold",)),
    ("fast", r"malloc_trim\(0\) would give back [\d.]+ MiB", ()),
    ("arenas", r"malloc_trim\(0\) would give back [\d.]+ MiB", ("one_arena", "two_arenas")),
    ("threshold", r"malloc_trim\(0\) would give back [\d.]+ MiB", ("threshold",)),
    ("pinned", r"malloc_trim\(0\) would give back [\d.]+ MiB", ()),
    ("mapped", r"nothing would help: most of it is not glibc's malloc's", ()),
    ("locked", r"its memory is locked \(mlock\): the kernel takes nothing back", ()),
    ("crumbs", r"[\d.]+ MiB are free, but between blocks in use: no page of it can go back", ("threshold",)),
    ("lazy", r"pages given back by MADV_FREE, still counted would give back at most [\d.]+ MiB", ()),
)


def resident(pid):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return int(re.search(r"^Rss: +(\d+)", rollup.read(), re.M).group(1)) << 10


def start(way, **settings):
    process = subprocess.Popen(t.program("remedies", way), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env={**os.environ, **settings})
    t.check_equal(f"{way}: ready", process.stdout.readline(), b"ready\n")
    return process


def end(process, way):
    process.communicate(b"", timeout=t.PATIENCE_S)
    t.check_equal(f"{way}: the program goes on to its end", process.returncode, 0, is_grave=True)


def gives_back(process, letter):
    before = resident(process.pid)
    process.stdin.write(letter)
    process.stdin.flush()
    process.stdout.readline()
    return before - resident(process.pid)


def ask(word, *options):
    result = t.run_cairn("report", "--json", "--view", "remedies", *options, str(word))
    t.check_equal(f"{word} {options}: status", result.status, 0)
    answer = json.loads(result.out)
    t.check_equal("schema, view", (answer["schema"], answer["view"]), (1, "remedies"))
    parts = {name: [row for row in answer["rows"] if row["part"] == part] for name, part in (("remedies", "remedy"), ("arenas", "arena"), ("huge", "huge_pages"))}
    return {**answer["facts"], **parts, "sentence": answer["claims"][0]["sentence"], "process": answer["process"]}


def bytes_of(answer):
    return {remedy["remedy"]: remedy["bytes"] for remedy in answer["remedies"]}


def check_near(what, foretold, truth):
    t.check(abs(foretold - truth) <= max(0.05 * truth, MIB), f"{what}: foretold {foretold}, truth {truth}", is_grave=True)


def check_way(way, sentence, settings):
    process = start(way)
    whole = resident(process.pid)
    answers = {"stopped": ask(process.pid), "running": ask(process.pid, "--no-stop")}
    t.check(answers["running"]["pause_ns"] is None and answers["stopped"]["pause_ns"], f"{way}: {answers}")
    screen = t.run_cairn("report", "--view", "remedies", str(process.pid)).out.decode()
    truths = {"malloc_trim": gives_back(process, b"t")}
    end(process, way)
    if way == "pinned":
        twin = start(way)
        truths["pinned_end"] = gives_back(twin, b"f")
        end(twin, way)
    for kind, answer in answers.items():
        t.check(re.fullmatch(sentence, answer["sentence"]), f"{way}, {kind}: {answer['sentence']}", is_grave=True)
        for remedy, truth in truths.items():
            check_near(f"{way}, {kind}: {remedy}", bytes_of(answer)[remedy], truth)
    t.check(answers["stopped"]["sentence"] in screen, f"{way}: {screen}")
    t.check("nothing would help" not in screen or "apply:" not in screen, f"{way}: {screen}")
    for setting in settings:
        twin = start(way, **SETTINGS[setting])
        saved = whole - resident(twin.pid)
        end(twin, way)
        for kind, answer in answers.items():
            bound = bytes_of(answer)[setting]
            t.check(saved <= bound + MIB, f"{way}, {kind}: {setting} saved {saved}, at most {bound}", is_grave=True)
    return answers["stopped"]


def check_thresholds(answer):
    t.check_equal("the raised threshold", answer["mmap_threshold"] // MIB, 20)
    t.check_equal("twice as much", answer["trim_threshold"] - 2 * answer["mmap_threshold"], 0)
    fixed = start("threshold", **SETTINGS["threshold"])
    answer = ask(fixed.pid)
    end(fixed, "threshold")
    t.check((answer["mmap_threshold"], answer["thresholds_fixed"], bytes_of(answer)["threshold"]) == (131072, True, 0),
            f"fixed: {answer}", is_grave=True)


def check_pieces(answers):
    """The bound of fixed thresholds is told where large blocks may have left free pieces, and not for small holes."""
    for way, is_told in (("threshold", True), ("crumbs", False)):
        threshold = next(remedy for remedy in answers[way]["remedies"] if remedy["remedy"] == "threshold")
        t.check(max(MIB, threshold["large_free_bytes"]) <= threshold["bytes"], f"{way}: {threshold}")
        t.check_equal(f"{way}: told", threshold["large_free_bytes"] > MIB, is_told)


def check_busy():
    """Of a heap that changes all the time a part is said to be one, and bounds the rest of nothing."""
    process = start("busy")
    t.wait_until(lambda: resident(process.pid) > 16 * MIB)
    answer = ask(process.pid, "--no-stop")
    t.check(answer["arenas"] and answer["not_known"] is None, f"busy: {answer}")
    if any(arena["at_least"] for arena in answer["arenas"]):
        t.check(not {"one_arena", "two_arenas", "threshold"} & set(bytes_of(answer)), f"busy: {answer}", is_grave=True)
        t.check(re.match("malloc_trim.* at least |not known: the heap changed", answer["sentence"]), f"busy: {answer}",
                is_grave=True)
    end(process, "busy")


def check_core():
    """A core does not say what was resident: nothing is said to be more than a bound."""
    process = start("holes")
    answer = ask(dump(process))
    truth = gives_back(process, b"t")
    end(process, "core")
    trim = next(remedy for remedy in answer["remedies"] if remedy["remedy"] == "malloc_trim")
    t.check(trim["class"] == "at most" and truth <= trim["bytes"] <= truth + MIB, f"core: {trim}, truth {truth}", is_grave=True)


def check_huge():
    """Of huge pages no more goes than was never written, and so much does; with the stacks whose blocks lie on them, of a
    process that is recorded."""
    process, small = start("huge"), start("small")
    whole, saved = resident(process.pid), resident(process.pid) - resident(small.pid)
    answer = ask(process.pid)
    overview = t.run_cairn("report", str(process.pid)).out.decode()
    end(small, "small")
    end(process, "huge")
    if not answer["huge_bytes"]:
        t.skip_part("huge pages, since this system gives none")
        return
    bound = bytes_of(answer)["huge_pages"]
    t.check("and touched" not in overview and "the largest part is 24.0 MiB" in overview, f"huge: {overview}", is_grave=True)
    t.check(whole >= answer["huge_bytes"] >= 12 * 2 * MIB, f"huge: {answer}")
    t.check(saved <= bound + MIB and bound <= 9 * 2 * MIB, f"huge: saved {saved}, at most {bound}", is_grave=True)
    t.check(answer["sentence"].startswith("no transparent huge pages (now 24.0 MiB) would give back at most 18.0 MiB"), f"huge: {answer}")
    argv = [t.CAIRN, "run", "-q", "-o", "huge.cairn", "--", *t.program("remedies", "huge")]
    tool = subprocess.Popen(argv, env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.check_equal("huge, recorded: ready", tool.stdout.readline(), b"ready\n")
    recorded = ask(t.children_of(tool.pid)[0])
    screen = t.run_cairn("report", "--view", "remedies", str(t.children_of(tool.pid)[0])).out.decode()
    end(tool, "huge, recorded")
    t.check_equal("huge, recorded: cairn's own pages are left out", bytes_of(recorded)["huge_pages"], bound)
    stacks = [(row["frames"][0]["function"], row["bytes"], row["live_bytes"]) for row in recorded["huge"]]
    t.check_equal("huge: stacks", stacks, [("spread", 24 * MIB, 24 * MIB)])
    t.check(re.search(r"live: +24\.0 MiB on +24\.0 MiB of huge pages:\n +24\.0 MiB on +24\.0 MiB, by spread ", screen), f"huge: {screen}")


def check_recorded():
    """Of a recorded process the stack of the block that pins the end is told, stopped or not; of another one it is not."""
    argv = [t.CAIRN, "run", "-q", "-o", "pinned.cairn", "--", *t.program("remedies", "pinned")]
    tool = subprocess.Popen(argv, env=t.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.check_equal("recorded: ready", tool.stdout.readline(), b"ready\n")
    pid = t.children_of(tool.pid)[0]
    for options in ((), ("--no-stop",)):
        pinned = next(remedy for remedy in ask(pid, *options)["remedies"] if remedy["remedy"] == "pinned_end")
        t.check([frame["function"] for frame in pinned["frames"]][:2] == ["put_pin", "main"], f"{options}: {pinned}", is_grave=True)
        screen = t.run_cairn("report", "--view", "remedies", *options, str(pid)).out.decode()
        t.check(re.search(r"block: +2\.0 KiB, by put_pin  remedies\.c:\d+", screen), screen)
    end(tool, "recorded")
    plain = start("pinned")
    pinned = next(remedy for remedy in ask(plain.pid)["remedies"] if remedy["remedy"] == "pinned_end")
    t.check("frames" not in pinned, f"not recorded: its frames: {pinned}")
    end(plain, "not recorded")


# Of another allocator: its library, what it is asked for, how it says that nothing of its memory would help, and the
# setting under which it keeps no free pages.
OTHERS = {
    "jemalloc": ("libjemalloc.so.2", r'mallctl\("arena.4096.purge"\)', {"MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"}),
    "tcmalloc": ("libtcmalloc_minimal.so.4", r"MallocExtension_ReleaseFreeMemory\(\)", {"TCMALLOC_AGGRESSIVE_DECOMMIT": "true"}),
    "mimalloc": ("libmimalloc.so.2.0", r"mi_collect\(true\)", {"MIMALLOC_DECOMMIT_DELAY": "0"}),
}
OTHER_WAYS = ("freed", "holes", "arenas", "threshold", "live")


def purge_of(answer):
    return next(remedy for remedy in answer["remedies"] if remedy["remedy"] == "purge")


def check_other(allocator, way):
    """What it gives back when it is asked, in each of its threads; under its setting no more is saved than foretold."""
    name, asked, setting = OTHERS[allocator]
    preload = {"LD_PRELOAD": next(iter(glob.glob(f"/usr/lib/*/{name}")))}
    what = f"{allocator}, {way}"
    process = start(way, **preload)
    # mimalloc gives nothing back for some ms after pages were freed, and the answer is a bound then
    t.wait_until(lambda: purge_of(ask(process.pid))["class"] == "now")
    answer = ask(process.pid)
    glance = ask(process.pid, "--no-stop")
    core = dump(process) if way == "freed" and shutil.which("gcore") else None
    whole = resident(process.pid)
    truth = gives_back(process, b"a")
    end(process, what)
    told = bytes_of(answer)
    check_near(f"{what}: asked", told["purge"], truth)
    wanted = rf"{asked} would give back [\d.]+ MiB" if truth > MIB else r"nothing would help: |[\d.]+ MiB are free, but between|\S+ would give back at most "
    t.check(re.match(wanted, answer["sentence"]), f"{what}: {answer['sentence']}", is_grave=True)
    t.check("such are read only stopped" in glance["sentence"] and not glance["arenas"], f"{what}: not stopped: {glance}")
    if core:
        bound = ask(core)
        purge = purge_of(bound)
        t.check(purge["class"] == "at most" and truth <= purge["bytes"] + MIB, f"{what}: core: {purge}, truth {truth}", is_grave=True)
    if way == "holes":
        twin = start(way, **preload, **setting)
        saved = whole - resident(twin.pid)
        end(twin, what)
        t.check(saved <= told["decay"] + MIB, f"{what}: {setting} saved {saved}, at most {told['decay']}", is_grave=True)


def dump(process):
    core = os.path.abspath("core")
    t.run(["gcore", "-o", core, str(process.pid)])
    return f"{core}.{process.pid}"


def check_refused():
    ended = subprocess.Popen(["true"])
    t.wait_until(lambda: t.is_in_state(ended.pid, "Z"))
    result = t.run_cairn("report", "--view", "remedies", str(ended.pid))
    t.check(result.status == 1 and result.err == f"cairn: process {ended.pid}: it has ended (a zombie)\n".encode(), f"zombie: {result}")
    ended.wait()
    result = t.run_cairn("report", "--view", "remedies", str(ended.pid))
    t.check(result.status == 1 and result.err == f"cairn: process {ended.pid}: it has ended\n".encode(), f"ended: {result}")


answers = {way: check_way(way, sentence, settings) for way, sentence, settings in WAYS}
check_thresholds(answers["threshold"])
check_pieces(answers)
t.check(bytes_of(answers["lazy"])["lazily_freed"] >= 19 * MIB, f"lazy: {answers['lazy']}", is_grave=True)
if shutil.which("gcore"):
    check_core()
for one, (library, _, _) in OTHERS.items():
    if not glob.glob(f"/usr/lib/*/{library}"):
        t.skip_part(f"{one}, since its library is not here")
        continue
    for other_way in OTHER_WAYS if t.IS_LONG or one == "jemalloc" else OTHER_WAYS[1:3]:
        check_other(one, other_way)
check_busy()
check_huge()
check_recorded()
check_refused()
t.finish()
