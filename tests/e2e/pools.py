#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn report --view pool-candidates: programs get the pools that it proposes, for exactly those stacks, and a judge
that shares no code with cairn counts the calls of malloc and free and the bytes that are left: as many as were said.
A program with an arena of its own (examples/documents.c, jansson), and real ones, in which a preload gives each
stack its pool. What the view says of logs that are cut, and without one."""

import pathlib
import shutil

import cairn_test as t
import real_programs
from page_data import read_page

POOLS = str(t.BUILD / "tests/pool_preload.so")


def logged(argv, env=None):
    result, path = t.record(argv, options=["--events", "--events-wait"], env=env)
    t.check_equal(f"{argv[0]}: status", result.status, 0)
    return path, str(path).removesuffix(".cairn") + ".events"


def found_in(path):
    """The candidates, each with the ids of its stacks, what is known of the log, and all stacks."""
    answer = t.answer(path, "pool-candidates")
    candidates = []
    for row in answer["pool-candidates"]:
        if not row["level"]:
            candidates.append({**row, "stacks": []})
        candidates[-1]["stacks"].append(row["id"])
    return {**answer, "candidates": candidates, "stacks": t.report(path)["stacks"]}


def calls_and_bytes(counted):
    only = list(counted.values())
    t.check_equal("processes", len(only), 1)
    return only[0]["allocations"] + only[0]["frees"], only[0]["allocated_bytes"]


# --- a program that is rewritten

def check_documents():
    made = t.run(["gcc", "-O2", "-g", "-o", "documents", str(t.SOURCE / "examples/documents.c"), "-ljansson"])
    t.check_equal("documents.c: compiled", (made.status, made.err), (0, b""))
    path, log = logged(["./documents"])
    found = found_in(path)
    candidates = found["candidates"]
    t.check_equal("documents: kinds", [c["kind"] for c in candidates], ["arena"])
    arena = candidates[0]
    of_library = {s["id"] for s in found["stacks"] if any("libjansson" in (f["module"] or "") for f in s["frames"])}
    t.check_equal("documents: stacks of the arena", set(arena["stacks"]), of_library)
    plain, plain_counts = t.count(["./documents"])
    pooled, pooled_counts = t.count(["./documents", "arena"])
    pooled.check_like("documents arena", plain)
    before, after = calls_and_bytes(plain_counts), calls_and_bytes(pooled_counts)
    t.check_equal("documents: calls that went", before[0] - after[0], arena["calls_gone"])
    t.check_equal("documents: bytes that went", before[1] - after[1], arena["bytes_gone"])
    t.check(arena["calls_gone"] > 0.99 * before[0], f"documents: {arena} of {before}")
    _, again = t.record(["./documents", "arena"])
    totals = t.report(again)["totals"]
    t.check_equal("documents: cairn of the arena", (totals["allocations"] + totals["frees"], totals["allocated_bytes"]),
                  after)
    shown = t.run_cairn("report", "--view", "pool-candidates", log, env={"COLUMNS": "120"}).out.decode()
    for text in ("1 candidate for a pool: 100 % of 446,401 calls would go", "446,398 calls: an arena",
                 "223,200 blocks of 13 stacks, which die together, 400 times", "with 2 chunks of 32.0 KiB",
                 "make_article", "594 blocks followed at a time, of at most 2,097,152"):
        t.check(text in shown, f"screen: {text} is not in {shown}")
    t.check_equal("by log and by recording", t.run_cairn("report", "--view", "pool-candidates", str(path),
                                                         env={"COLUMNS": "120"}).out.decode(), shown)
    return path, log


# --- real programs, whose stacks get pools by a preload

def plan_of(found, file):
    """Writes the pools of all candidates whose stacks are known to their outermost frame; these candidates."""
    stacks = {s["id"]: s for s in found["stacks"]}
    planned = []
    with open(file, "w", encoding="ascii") as out:
        for number, candidate in enumerate(found["candidates"]):
            own = [stacks[i] for i in candidate["stacks"]]
            if any(s["incomplete"] or not all(f["module"] for f in s["frames"]) for s in own):
                continue
            planned.append(candidate)
            letter = {"stack_buffer": "b", "arena": "a", "lifo_arena": "l", "slab": "s"}[candidate["kind"]]
            size = candidate["kept_bytes"] if letter == "b" else candidate["block_bytes"]
            for stack in own:
                frames = [f for f in stack["frames"] if not f["inlined"]]
                out.write(f"{number} {letter} {size} " +
                          " ".join(f"{f['offset']}@{pathlib.Path(f['module']).name}" for f in frames) + "\n")
    return planned


def check_real(name, argv, env):
    path, _ = logged(argv, env)
    found = found_in(path)
    tables = {t.run_cairn("report", "--view", "pool-candidates", "--format", "csv", path).out for _ in range(4)}
    t.check_equal(f"{name}: tables of four reports", len(tables), 1)
    plan = t.fresh_path(f"plan-{name}")
    planned = plan_of(found, plan)
    plain, plain_counts = t.count(argv, env=env)
    pooled, pooled_counts = t.count(argv, env={**env, "LD_PRELOAD": f"{POOLS}:{t.COUNTER}", "POOL_PRELOAD": plan})
    pooled.check_like(f"{name} with pools", plain)
    before, after = calls_and_bytes(plain_counts), calls_and_bytes(pooled_counts)
    chunks = sum(c["chunks"] for c in planned)
    calls, size = sum(c["calls_gone"] for c in planned), sum(c["bytes_gone"] for c in planned)
    kinds = {kind: sum(c["kind"] == kind for c in planned) for kind in ("stack_buffer", "arena", "lifo_arena", "slab")}
    print(f"{name}: {before[0]} calls, {calls} to go by {kinds}, {before[0] - after[0]} went")
    # pools that several stacks share may need fewer chunks than said
    most = calls + chunks if any(len(c["stacks"]) > 1 for c in planned) else calls
    t.check(calls <= before[0] - after[0] <= most, f"{name}: {before[0] - after[0]} calls went, {calls} were to go")
    spare, little = (before[1] - after[1]) - size, before[1] / 1000  # what depends on the environment
    t.check(-little <= spare <= chunks * 32768 + little, f"{name}: {spare} more bytes went than {size}")
    return kinds


path, log = check_documents()
page = t.fresh_path("page") + ".html"
t.check_equal("open", t.run_cairn("open", "-o", page, log).status, 0)
pools = [f for f in dict(read_page(page)[1])["findings"] if f["kind"] == "pool"]
t.check_equal("page", [(f["text"], f["saves"]) for f in pools],
              [("446,398 calls of malloc and free (100 %) would go with an arena",
                "223,200 blocks of 13 stacks, which die together, 400 times")])
kinds = {}
for name in "sqlite3", "jq", "git_log":
    argv, env = getattr(real_programs, name)()
    if not shutil.which(argv[0]):
        t.skip_part(f"{argv[0]} is not installed")
        continue
    for kind, count in check_real(name, argv, env).items():
        kinds[kind] = kinds.get(kind, 0) + count
t.check(all(kinds[kind] for kind in ("stack_buffer", "arena", "slab")), f"pools of each kind: {kinds}")

# --- what it cannot say

shown = t.run_cairn("report", "--view", "pool-candidates", str(t.record(t.program("mixed"))[1]))
t.check(shown.status == 1 and b"no event log" in shown.err and b"cairn run --events" in shown.err, f"none: {shown.err}")
# Of a run those of each process that has a log; small ones have none.
_, run = t.record(["sh", "-c", "sqlite3 :memory: 'select 1'; perl -e 'print 1'; true"], options=["--events"])
for name in ("sqlite3", "perl"):
    t.check(t.answer(run, "pool-candidates", "-p", name)["calls"] > 0, f"run: {name}")
whole = pathlib.Path(log).read_bytes()
pathlib.Path(log).write_bytes(whole[:len(whole) // 2])
shown = t.run_cairn("report", "--view", "pool-candidates", str(path))
t.check(shown.status == 0 and b"the log lacks events" in shown.out, f"cut: {shown.status} {shown.out} {shown.err}")
t.check_equal("cut: JSON", found_in(path)["complete_log"], False)
pathlib.Path(log).write_bytes(whole[:3000] + bytes([whole[3000] ^ 0xff]) + whole[3001:])
shown = t.run_cairn("report", "--view", "pool-candidates", str(path))
t.check(shown.status == 1 and b"damaged" in shown.err, f"damaged: {shown.status} {shown.err}")

t.finish()
