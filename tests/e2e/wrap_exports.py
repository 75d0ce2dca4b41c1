#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All heaps at once, in exports (`--heap ''`) and in what `cairn push` sends: each stack says which heap it is of, the
figures of each are those of `--heap NAME`, and what a heap took from malloc is told apart, so that nothing counts twice.
Formats that cannot say it refuse."""

import json
import os
import shutil
import subprocess

import cairn_test as t
import push_engine as e
import wrapped_heaps
from wrapped_heaps import ROWS

HEAPS = "mine", "areas/red", "areas/blue"
STATE = {"XDG_STATE_HOME": os.path.abspath("state"), "no_proxy": "*"}
ENGINES = {"pyroscope": "/ingest", "pyroscope-push": "/push.v1.PusherService/Push", "parca": "/api/profiles/writeraw",
           "otlp": "/v1development/profiles"}


def figures(found):
    """Calls, bytes allocated, blocks and bytes left, of all stacks: as push sends them."""
    keys = "allocations", "allocated_bytes", "at_exit_blocks", "at_exit_bytes"
    return [sum(one[key] for one in found["stacks"]) for key in keys]


def wanted_of(subject):
    return {heap: figures(t.report(subject, "--heap", heap)) for heap in HEAPS}


def check_all(what, found, subject):
    """`found`: figures by heap."""
    t.check_equal(f"{what}: heaps by name", {heap: found.get(heap) for heap in HEAPS}, wanted_of(subject))
    whole = figures(t.report(subject))
    ours = [a + b for a, b in zip(found.get("malloc", [0] * 4), found["malloc (backing)"])]
    t.check_equal(f"{what}: malloc's heap in two parts", ours, whole)
    t.check(set(found) <= {*HEAPS, "malloc", "malloc (backing)"}, f"{what}: no other: {found}")
    t.check(found["malloc (backing)"][1] >= 1 << 20, f"{what}: the chunk is backing: {found}")


def check_ndjson(recording):
    lines = [json.loads(line) for line in t.export(recording, "ndjson", "--heap", "").splitlines()]
    found = {heap: figures({"stacks": [one for one in lines if one["heap"] == heap]}) for heap in {one["heap"] for one in lines}}
    check_all("ndjson", found, recording)
    one = json.loads(t.export(recording, "ndjson", "--heap", "mine").splitlines()[0])
    t.check_equal("of one heap", one["heap"], "mine")
    t.check("heap" not in json.loads(t.export(recording, "ndjson").splitlines()[0]), "of malloc's nothing is said")


def check_collapsed(recording):
    found = {}
    for line in t.export(recording, "collapsed", "--heap", "", "--by", "exit").decode().splitlines():
        stack, value = line.rsplit(" ", 1)
        frames = stack.split(";")
        t.check(frames[0].startswith("[heap ") and frames[1] == "main", line)
        found[frames[0][6:-1]] = found.get(frames[0][6:-1], 0) + int(value)
    t.check_equal("collapsed", {heap: found.get(heap, 0) for heap in HEAPS}, {heap: wanted[3] for heap, wanted in wanted_of(recording).items()})


def check_pprof(recording):
    made = t.run_cairn("export", "--heap", "", "--format", "pprof", "-o", "all.pb.gz", recording)
    t.check_equal(f"pprof: {made.err}", made.status, 0)
    with open("all.pb.gz", "rb") as file:
        profile = e.Profile(file.read())
    at = [profile.types.index(kind) for kind in ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")]
    check_all("pprof", {heap: [values[i] for i in at] for heap, values in profile.heaps.items()}, recording)
    t.check("all heaps, each at its own peak" in profile.comments[-1], profile.comments)
    if not shutil.which("go"):
        t.skip_part("go is not installed")
        return
    shown = t.run(["go", "tool", "pprof", "-top", "-sample_index=inuse_space", "-tagfocus", "heap=mine", "all.pb.gz"], env={"HOME": os.getcwd()})
    t.check("fill_early" in shown.out.decode() and "take_blue" not in shown.out.decode(), shown.out)


def check_refused(recording):
    for words, said in ((("--format", "dhat", "-o", "x"), "dhat does not say which heap a stack is of"),
                        (("--format", "ndjson", "--thread", "program"), "is of whole heaps"),
                        (("--format", "ndjson", "--lifespan", "gone"), "is of whole heaps")):
        refused = t.run_cairn("export", "--heap", "", *words, recording)
        t.check(refused.status != 0 and said in refused.err.decode(), f"{words}: {refused.err}")
    _, plain = t.record(["true"])
    refused = t.run_cairn("export", "--heap", "", "--format", "ndjson", plain)
    t.check("no allocator by name was recorded" in refused.err.decode(), refused.err)
    filtered = [json.loads(line) for line in t.export(recording, "ndjson", "--heap", "", "--focus", "take_blue").splitlines()]
    t.check_equal("narrowed by frames", {one["heap"] for one in filtered}, {"areas/red", "areas/blue", "malloc (backing)"})


def push(*words):
    result = t.run_cairn("push", *words, env=STATE)
    t.check_equal(f"push {words}: {result.err.decode()}", result.status, 0)


def pushed(request):
    _, profile = request.profile()
    at = [profile.types.index(kind) for kind in ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")]
    return {heap: [values[i] for i in at] for heap, values in profile.heaps.items()}


def check_push_of_recording(recording):
    for form, path in ENGINES.items():
        with e.Engine() as engine:
            push(recording, "--to", engine.url + path, "--format", form)
            check_all(f"{form}", pushed(engine.taken[0]), recording)


def check_push_of_process():
    """What it allocated since the last request, and what it holds; a heap's stacks, as malloc's."""
    tool = subprocess.Popen([t.CAIRN, "run", "-q", "-o", "waiting.cairn", *ROWS, "--", "./program", "wait"], env=t.environment(),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.check_equal("it waits", tool.stdout.readline(), b"ready\n")
    pid = str(next(child for child in t.children_of(tool.pid) if t.is_called(child, "program")))
    with e.Engine() as engine:
        pushing = subprocess.Popen([t.CAIRN, "push", pid, "--to", engine.url, "--format", "pyroscope", "--every", "1s"],
                                   env=t.environment(STATE), stderr=subprocess.PIPE, text=True)
        t.check("pushing" in pushing.stderr.readline(), "it begins")
        for _ in range(3):
            tool.stdin.write(b"+")
            tool.stdin.flush()
            t.check_equal("it takes more", tool.stdout.readline(), b"taken\n")
        allocated = lambda heap: sum(pushed(one).get(heap, [0] * 4)[1] for one in engine.taken)
        t.wait_until(lambda: allocated("areas/red") >= 3000, pause=0.1)
        t.check_equal("since it began", (allocated("areas/red"), allocated("mine")), (3000, 0))
        # malloc's stacks of all that is held come with each
        held = {heap: values[2:] for heap, values in pushed(engine.taken[-1]).items()}
        wanted = {heap: values[2:] for heap, values in wanted_of(pid).items()}
        t.check_equal("held", {heap: held.get(heap) for heap in HEAPS}, wanted)
        t.check_equal("held of malloc's", [a + b for a, b in zip(held.get("malloc", [0, 0]), held["malloc (backing)"])], figures(t.report(pid))[2:])
        pushing.terminate()
        pushing.communicate(timeout=t.PATIENCE_S)
    tool.communicate(timeout=t.PATIENCE_S)


t.need("gcc")
if os.uname().machine != "x86_64":
    t.cannot_run_here("--wrap is for x86-64")
wrapped_heaps.make()
_, RECORDING = t.record(["./program"], options=ROWS)
check_ndjson(RECORDING)
check_collapsed(RECORDING)
check_pprof(RECORDING)
check_refused(RECORDING)
if shutil.which("curl"):
    check_push_of_recording(RECORDING)
    check_push_of_process()
else:
    t.skip_part("curl is not installed")
t.finish()
