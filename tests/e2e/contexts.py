#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Contexts: labels of threads and tasks in C, C++ and Python, by key and as a filter, within regions and around them, in
pprof, beyond their limit, in forked children; without cairn nothing happens."""

import gzip
import pathlib

import cairn_test as t

KEPT = {"": 4000 + 32000, "tenant=8": 16000, "tenant=7": 8000, "endpoint=/b c tenant=7": 3000}


def contexts(recording, *options):
    found = (t.report(recording, *options) or {}).get("contexts", [])
    return {" ".join(f"{k}={v}" for k, v in sorted(one["labels"].items())): one for one in found}


def check_labels():
    result = t.run(t.program("contexts"))
    t.check_equal("without cairn", (result.status, result.out), (0, b"done\n"))
    result, recording = t.record(t.program("contexts"))
    t.check_equal("recorded", (result.status, result.out, result.err), (0, b"done\n", b""))
    found = contexts(recording)
    # a thread's own memory (allocated in the context that makes it) and stdio's buffer are no multiples of 1000
    sizes = {name: one["at_exit_bytes"] // 1000 * 1000 for name, one in found.items() if one["allocations"]}
    t.check_equal("what each holds", {name: size for name, size in sizes.items() if name}, {k: v for k, v in KEPT.items() if k})
    t.check(KEPT[""] <= sizes[""] < KEPT[""] + 8000, f"outside of all: {sizes}")
    t.check_equal("entered", {name: one["entered"] for name, one in found.items() if name},
                  {"tenant=8": 1, "tenant=7": 1, "endpoint=/b c tenant=7": 1, "endpoint=/a tenant=7": 1})
    seven = t.report(recording, "--context", "tenant=7")
    functions = {frame["function"] for stack in seven["stacks"] if stack["allocations"] for frame in stack["frames"]}
    t.check("work" in functions and "take" in functions, f"stacks with a label: {functions}")
    total = sum(stack["at_exit_bytes"] for stack in seven["stacks"])
    t.check(11000 <= total < 12000, f"of tenant 7: {total}")
    both = t.report(recording, "--context", "tenant=7", "--region", "parse$")
    t.check_equal("label and region", sum(stack["at_exit_bytes"] for stack in both["stacks"]), 2000)
    by_key = t.run_cairn("report", "--view", "contexts", "--context", "tenant", "--bytes", recording).out.decode()
    rows = {line.split()[-1]: int(line.split()[2]) for line in by_key.splitlines() if line.startswith("  ") or "%" in line
            if line.split()[-1] in ("7", "8", "(none)")}
    t.check(11000 <= rows.get("7", 0) < 12000 and rows.get("8") == 16000, f"by key: {by_key}")
    refused = t.run_cairn("report", "--context", "tenant=9", recording)
    t.check_equal("no such label", refused.status, 1)
    t.check(b"tenant=8" in refused.err, f"which there are: {refused.err}")
    for words in (["--context", "tenant"], ["--view", "contexts", "--context", ""]):
        refused = t.run_cairn("report", *words, recording)
        t.check_equal(f"{words}", (refused.status, b"KEY=VALUE" in refused.err), (2, True))
    none = t.run_cairn("report", "--view", "contexts", t.record(["sort", "/dev/null"])[1])
    t.check(b"0 contexts" in none.out and b"entered none" in none.out, f"none: {none.out}")


def fields(data):
    """The fields of a message of Protocol Buffers: (number, value)."""
    at, found = 0, []
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]; at += 1
            value |= (byte & 127) << shift; shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        found.append((tag >> 3, value))
    return found


def check_pprof():
    _, recording = t.record(t.program("contexts"))
    profile = fields(gzip.decompress(pathlib.Path(t.export_file(recording, "pprof")).read_bytes()))
    texts = [value.decode() for number, value in profile if number == 6]
    sums, whole = {}, 0
    for number, sample in profile:
        if number != 2:
            continue
        parts = fields(sample)
        packed = next(value for number, value in parts if number == 2)
        values, value, shift = [], 0, 0
        for byte in packed:
            value |= (byte & 127) << shift; shift += 7
            if byte < 128:
                values.append(value); value = shift = 0
        labels = [dict(fields(label)) for number, label in parts if number == 3]
        name = " ".join(f"{texts[label[1]]}={texts[label[2]]}" for label in labels if 2 in label and texts[label[1]] != "stack_incomplete")
        sums[name] = sums.get(name, 0) + values[1]
        whole += values[1]
    wanted = {name: one["allocated_bytes"] for name, one in contexts(recording).items() if one["allocations"]}
    t.check_equal("labels of pprof", sums, wanted)
    t.check_equal("all samples", whole, t.report(recording)["totals"]["allocated_bytes"])


def check_limit():
    result, recording = t.record(t.program("contexts", 6000))
    t.check_equal("many requests", (result.status, result.out, result.err), (0, b"done\n", b""))
    found = contexts(recording)
    requests = {name: one for name, one in found.items() if name.startswith("request=")}
    other = requests.pop("request=(other)")
    t.check(4000 < len(requests) <= 4096, f"kept: {len(requests)}")
    t.check_equal("all are counted", len(requests) + other["entered"], 6000)
    t.check_equal("their calls", sum(one["allocations"] for one in requests.values()) + other["allocations"], 6000)
    screen = t.run_cairn("report", "--view", "contexts", "--context", "request", recording).out.decode()
    t.check("(other): labels after the first 4096" in screen, f"it is said: {screen[-300:]}")


def check_tasks():
    result = t.run(t.program("context_tasks"))
    t.check_equal("tasks without cairn", (result.status, result.out), (0, b"done\n"))
    result, recording = t.record(t.program("context_tasks"))
    t.check_equal("tasks", (result.status, result.out, result.err), (0, b"done\n", b""))
    taken = {}
    for name in contexts(recording):
        if name:
            label = name.split()[-1]
            stacks = t.stacks_through(t.report(recording, "--context", label), "take")
            taken[label] = sum(stack["allocated_bytes"] for stack in stacks)
    t.check_equal("tasks of C++", taken, {"tenant=one": 3003, "tenant=two": 6003, "tenant=three": 12006, "tenant=four": 4000})


PYTHON = """
import asyncio, cairn, threading
kept = []
async def serve(size):
    kept.append(bytes(size)); await asyncio.sleep(0)
    kept.append(bytes(size)); await inner(size)
async def inner(size):
    await asyncio.sleep(0); kept.append(bytes(size))
async def fail():
    try: await asyncio.sleep(10)
    except asyncio.CancelledError: kept.append(bytes(500000)); raise
async def main():
    asyncio.get_running_loop().set_task_factory(cairn.task_factory)
    tasks = []
    for tenant in (1, 2):
        with cairn.context(tenant=tenant):
            tasks.append(asyncio.ensure_future(serve(100000 * tenant)))
    await asyncio.gather(*tasks)
    with cairn.context(tenant=3): carried = cairn.carried(serve(300000))
    await carried
    with cairn.context(tenant=5): task = asyncio.ensure_future(fail())
    await asyncio.sleep(0)
    task.cancel()
    try: await task
    except asyncio.CancelledError: pass
    assert cairn.current_context() == 0
asyncio.run(main())
with cairn.context(tenant="four", kind="thread"):
    thread = threading.Thread(target=cairn.carried(lambda: kept.append(bytes(400000))))
thread.start(); thread.join()
print("done")
"""


def check_python():
    pathlib.Path("tasks.py").write_text(PYTHON, encoding="utf-8")
    path = {"PYTHONPATH": str(t.SOURCE / "bindings/python"), "PYTHONDONTWRITEBYTECODE": "1"}
    result = t.run([t.PYTHON, "tasks.py"], env=path)
    t.check_equal("Python without cairn", (result.status, result.out, result.err), (0, b"done\n", b""))
    result, recording = t.record([t.PYTHON, "tasks.py"], env=path)
    t.check_equal("Python", (result.status, result.out, result.err), (0, b"done\n", b""))
    found = {name: round(one["allocated_bytes"], -5) for name, one in contexts(recording).items() if name}
    t.check_equal("tasks of Python", found, {"tenant=1": 300000, "tenant=2": 600000, "tenant=3": 900000, "tenant=5": 500000,
                                             "kind=thread tenant=four": 400000})


check_labels()
check_pprof()
check_limit()
check_tasks()
check_python()
t.finish()
