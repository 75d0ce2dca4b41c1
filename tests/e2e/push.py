#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn push`: what arrives in engines is what the report says, in each protocol; an engine that is away, busy, cut
off or no engine at all; what waits on disk; processes that come and go; samples with their bounds; bad input. The
engine is a stub (tests/tools/push_engine.py); pprof is also read by `go tool pprof`."""

import os
import pathlib
import signal
import subprocess
import time

import cairn_test as t
import push_engine as e
from commanded import Commanded

t.need("curl")
TYPES = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
STATE = os.path.abspath("state")
ENVIRONMENT = {"XDG_STATE_HOME": STATE, "no_proxy": "*"}
ENGINES = {"pyroscope": "/ingest", "pyroscope-push": "/push.v1.PusherService/Push", "parca": "/api/profiles/writeraw",
           "otlp": "/v1development/profiles"}


def check_place(labels):
    """Takes away the cgroup, which is the test's own; a container's id is a part of its path."""
    own = pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8")
    cgroup = labels.pop("cgroup", "/")
    t.check(f":{cgroup}\n" in own, f"cgroup {cgroup} in {own}")
    for name in ("container_id", "container.id"):
        t.check(labels.pop(name, "") in cgroup, f"{name} in {cgroup}")
    for name in ("pod_uid", "k8s.pod.uid"):
        t.check(labels.pop(name, "").replace("-", "_") in cgroup.replace("-", "_"), f"{name} in {cgroup}")


def push(*words, status=0):
    result = t.run_cairn("push", *map(str, words), env=ENVIRONMENT)
    t.check_equal(f"push {words}: status, {result.err.decode()}", result.status, status)
    return result.err.decode()


class Pushing:
    """`cairn push` that goes on; .end() asks it to end and has what it said."""

    def __init__(self, *words):
        self.tool = subprocess.Popen([t.CAIRN, "push", *map(str, words)], env=t.environment(ENVIRONMENT),
                                     stderr=subprocess.PIPE, text=True)
        self.said = self.tool.stderr.readline()  # the baseline is taken

    def end(self, signal_number=signal.SIGINT):
        if signal_number:
            self.tool.send_signal(signal_number)
        _, rest = self.tool.communicate(timeout=t.PATIENCE_S)
        t.check_equal(f"status, {rest}", self.tool.returncode, 0)
        return self.said + rest


def totals(engine, kind, function=None):
    return [request.profile()[1].values(kind, function) for request in engine.taken]


def check_deltas():
    """Every interval has what was allocated in it; together they are the report's figures."""
    with e.Engine() as engine, Commanded("deltas.cairn") as program:
        program.do("early 1000")
        before = t.report(program.pid)
        pushing = Pushing(program.pid, "--to", engine.url, "--format", "pyroscope", "--every", "1s", "--label", "env=prod",
                          "--label", "note=a {b}=c, d")
        program.do("early 2000", "late 500")
        t.wait_until(lambda: len(engine.taken) >= 1)
        program.do("again 2 9000")
        t.wait_until(lambda: sum(totals(engine, "alloc_space", "main")) >= 2000 + 500, pause=0.1)
        program.do("free 0", "late 77")
        said = pushing.end()
        after = t.report(program.pid)
        allocated = after["totals"]["allocated_bytes"] - before["totals"]["allocated_bytes"]
        calls = after["totals"]["allocations"] - before["totals"]["allocations"]
        t.check_equal("allocated in all intervals", sum(totals(engine, "alloc_space")), allocated)
        t.check_equal("calls in all intervals", sum(totals(engine, "alloc_objects")), calls)
        t.check_equal("held at the end", totals(engine, "inuse_space")[-1], after["at_exit"]["bytes"])
        t.check_equal("blocks at the end", totals(engine, "inuse_objects")[-1], after["at_exit"]["blocks"])
        labels, profile = engine.taken[-1].profile()
        check_place(labels)
        t.check_equal("labels", labels, {"service_name": "commands", "pid": program.pid, "env": "prod",
                                         "instance": os.uname().nodename, "note": "a _b__c_ d"})
        t.check_equal("types", (profile.types, profile.usual), (TYPES, "inuse_space"))
        t.check(not any("command" in comment for comment in profile.comments), f"no arguments: {profile.comments}")
        times = [(int(r.query["from"]), int(r.query["until"]), r.profile()[1]) for r in engine.taken]
        for (start, end, one), following in zip(times, [*times[1:], None]):
            t.check_equal("seconds", (start, end), (one.time_ns // 10**9, (one.time_ns + one.duration_ns) // 10**9))
            if following:
                t.check_equal("no time between", one.time_ns + one.duration_ns, following[2].time_ns)
        t.check(f"{len(engine.taken)} requests sent to {engine.url}/ingest" in said.replace("1 request ", "1 requests "),
                f"said: {said}")
        t.check(not os.path.exists(STATE) or not any(files for _, _, files in os.walk(STATE)), "nothing is left to send")
        with open("last.pb.gz", "wb") as file:
            file.write(engine.taken[-1].body)
    check_by_pprof(profile)


def check_by_pprof(profile):
    if t.run(["go", "version"], env={"HOME": os.getcwd()}).status:
        return t.skip_part("no go")
    result = t.run(["go", "tool", "pprof", "-top", "-sample_index=inuse_space", "-unit=B", "-nodecount=0", "last.pb.gz"],
                   env={"HOME": os.getcwd(), "GOFLAGS": ""})
    total = f"{profile.values('inuse_space')}B total"
    t.check(result.status == 0 and total in result.out.decode(), f"go tool pprof: {total} in {result.out}{result.err}")


def check_protocols():
    """One profile in each protocol: the same stacks and values."""
    with e.Engine() as engine, Commanded("protocols.cairn") as program:
        program.do("early 1000", "early 300", "late 500")
        found = t.report(program.pid)
        for name, path in ENGINES.items():
            for url in ([engine.url + path, engine.url + "/pyroscope" + path, engine.url + "/"] if name == "pyroscope"
                        else [engine.url + path]):
                named = () if url.endswith(path) else ("--format", name)
                before = time.monotonic_ns()
                said = push(program.pid, "--to", url, *named, "--once", "--every", "1s", "--label", "pid=", "--label", "x_1=ü")
                took_ns = time.monotonic_ns() - before
                t.check(f", {name}\n" in said, f"the engine is known: {said}")
                request = engine.taken[-1]
                t.check(request.path.endswith(path) and not request.path.endswith("//" + path), f"{name}: {request.path}")
                t.check(request.headers["User-Agent"].startswith("cairn/"), "user agent")
                labels, profile = request.profile()
                labels.pop("__name__", None)
                check_place(labels)
                # else Pyroscope makes differences of what is of an interval already
                t.check_equal(f"{name}: __delta__", labels.pop("__delta__", None), "false" if name == "pyroscope-push" else None)
                service, host = ("service.name", "host.name") if name == "otlp" else ("service_name", "instance")
                t.check_equal(f"{name}: labels", labels, {service: "commands", host: os.uname().nodename, "x_1": "ü"})
                t.check_equal(f"{name}: types", profile.types, TYPES)
                sums = [profile.values(kind) for kind in TYPES]
                t.check_equal(f"{name}: sums", sums, [0, 0, found["at_exit"]["blocks"], found["at_exit"]["bytes"]])
                stacks = {tuple(t.functions(one)): [0, 0, one["at_exit_blocks"], one["at_exit_bytes"]]
                          for one in found["stacks"] if one["at_exit_blocks"]}
                held = {names[-len(wanted):]: values for wanted in stacks for names, values in profile.stacks.items()
                        if names[-len(wanted):] == wanted}
                t.check_equal(f"{name}: stacks", held, stacks)
                t.check(10**9 <= profile.duration_ns <= took_ns, f"duration {profile.duration_ns} of {took_ns}")


def check_faults():
    """An engine that is away, busy or broken in every way is asked again; nothing is lost, and all comes in order."""
    with e.Engine() as engine, Commanded("faults.cairn") as program:
        engine.faults = [(503, b"starting", {}), e.CUT, (429, b"slow down", {"Retry_After": "1"}), e.GARBAGE]
        before = t.report(program.pid)["totals"]["allocated_bytes"]
        pushing = Pushing(program.pid, "--to", engine.url, "--format", "pyroscope-push", "--every", "1s")
        program.do("early 1000")
        t.wait_until(lambda: len(engine.seen) >= 2)
        program.do("early 500")
        t.wait_until(lambda: len(engine.taken) >= 3)
        said = pushing.end()
        allocated = t.report(program.pid)["totals"]["allocated_bytes"] - before
        t.check_equal("nothing is lost", sum(totals(engine, "alloc_space")), allocated)
        times = [request.profile()[1].time_ns for request in engine.taken]
        t.check_equal("order", times, sorted(times))
        t.check_equal("told once each", (said.count("it answers 503: starting"), said.count("takes it again")), (1, 1))
        t.check(len(times) == len(set(times)), "each once")


def check_refused():
    """What the engine will never take goes, and is counted; what may pass stays for the next push."""
    with e.Engine() as engine, Commanded("refused.cairn") as program:
        program.do("early 1000")
        words = (program.pid, "--to", engine.url, "--format", "pyroscope", "--once", "--every", "1s")
        engine.faults = [(400, b"bad \x1b[31mprofile\nmore", {})]
        said = push(*words, status=1)
        t.check("does not take a request: it answers 400: bad \\x1b[31mprofile\n" in said, f"refused: {said}")
        t.check("dropped: 1 request that the engine refused" in said and "left in" not in said, f"dropped: {said}")
        for fault, why in [(e.HTML, "it answers 200 with a page of HTML"), ((401, b"who are you", {}), "it answers 401: who"),
                           ((302, b"", {"Location": engine.url + "/x"}), "it answers 302"), (e.ENDLESS, "left in")]:
            taken = len(engine.taken)
            engine.faults = [fault]
            said = push(*words, status=1)
            t.check(why in said and "1 request left in " + STATE in said, f"{fault}: {said}")
            said = push(*words)
            t.check("1 request of an earlier push will be sent too" in said, f"after {fault}: {said}")
            t.check_equal(f"after {fault}", len(engine.taken), taken + 2)
        server = engine.url
    check_bounds(server)


def check_bounds(server):
    """Nobody listens. A queue that is full: the oldest goes, and that is said."""
    queue = ("--queue", "bounded", "--queue-size", "3K")
    with Commanded("bounds.cairn") as program:
        program.do("early 1000")
        words = (program.pid, "--to", server, "--format", "pyroscope", "--once", "--every", "1s")
        said = push(*words, status=1)
        t.check("Failed to connect" in said and "1 request left in" in said, f"{server} is away: {said}")
        said = [push(*words, *queue, status=1) for _ in range(5)]
        waiting = [name for name in os.listdir("bounded") if name.endswith(".body")]
        size = sum(os.path.getsize(f"bounded/{name}") for name in waiting)
        t.check(waiting and size <= 3072, f"{len(waiting)} wait, {size} bytes")
        t.check("for which the queue had no room" in "".join(said), f"said: {said}")
        t.check(all(os.stat(f"bounded/{name}").st_mode & 0o77 == 0 for name in os.listdir("bounded")), "nobody else's")
        said = push(*words, "--queue", "bounded", "--queue-size", "100", status=1)
        t.check("has no room in a queue of 100" in said, f"too small: {said}")


def check_lives():
    """By name: processes that come are pushed from their start on, those that end up to their end."""
    with e.Engine() as engine, Commanded("first.cairn"):
        pushing = Pushing("commands", "--to", engine.url, "--format", "pyroscope", "--every", "1s")
        t.check("pushing commands (" in pushing.said, f"by name: {pushing.said}")
        with Commanded("second.cairn") as second:
            second.do("early 12345", "late 600")
            of_second = lambda: [r.profile()[1] for r in engine.taken if r.profile()[0].get("pid") == second.pid]
            t.wait_until(of_second, pause=0.1)
            second.do("late 700")  # it ends in the midst of an interval
        whole = t.report("second.cairn")["totals"]
        t.wait_until(lambda: sum(one.values("alloc_space") for one in of_second()) >= whole["allocated_bytes"], pause=0.1)
        t.check_equal("all of its life", [sum(one.values(kind) for one in of_second()) for kind in TYPES[:2]],
                      [whole["allocations"], whole["allocated_bytes"]])
        pushing.end(signal.SIGTERM)
    with e.Engine() as engine:
        with Commanded("third.cairn") as third:
            pushing = Pushing(third.pid, "--to", engine.url, "--format", "pyroscope", "--every", "1s")
            third.do("early 4321")
        pushing.end(None)  # by itself: the process has ended
        t.check_equal("what it did last", sum(totals(engine, "alloc_space", "early")), 4321)


def check_group():
    """Of a cgroup: those in it and below, now and later. A directory with a cgroup.procs is one."""
    os.makedirs("group/below")
    with e.Engine() as engine, Commanded("inside.cairn") as inside, Commanded("outside.cairn") as outside:
        inside.do("early 1000"), outside.do("early 3000")
        for directory, pid in (("group", os.getpid()), ("group/below", inside.pid)):
            with open(f"{directory}/cgroup.procs", "w", encoding="ascii") as file:
                file.write(f"{pid}\n")
        pushing = Pushing("--cgroup", os.path.abspath("group"), "--to", engine.url + "/ingest", "--every", "1s")
        t.check(f"pushing {os.path.abspath('group')} (1 process) to" in pushing.said, pushing.said)
        t.wait_until(lambda: engine.taken, pause=0.1)
        t.check_equal("who", {request.profile()[0]["pid"] for request in engine.taken}, {inside.pid})
        with open("group/cgroup.procs", "a", encoding="ascii") as file:
            file.write(f"{outside.pid}\n")
        t.wait_until(lambda: outside.pid in {request.profile()[0]["pid"] for request in engine.taken}, pause=0.1)
        pushing.end()
    with e.Engine() as engine, Commanded("metrics_inside.cairn") as inside, Commanded("metrics_outside.cairn"):
        with open("group/below/cgroup.procs", "w", encoding="ascii") as file:
            file.write(f"{inside.pid}\n")
        push("--cgroup", os.path.abspath("group"), "--to", engine.url + "/api/v1/write", "--once")
        t.check_equal("rows", {dict(labels).get("pid") for labels in engine.taken[0].series()} - {None}, {inside.pid})


def check_sampled():
    with e.Engine() as engine, Commanded("sampled.cairn", "--sample", "--rate", "4K", "--seed", "7") as program:
        pushing = Pushing(program.pid, "--to", engine.url, "--format", "pyroscope", "--every", "1s")
        program.do("again 500 300")
        pushing.end()
        profiles = [request.profile()[1] for request in engine.taken]
        bounds = [f"{kind}_{end}" for kind in TYPES for end in ("low", "high")]
        t.check_equal("types", profiles[-1].types, TYPES + bounds)
        wide = 0
        for profile in profiles:
            for stack, values in profile.stacks.items():
                for at, value in enumerate(values[:4]):
                    low, high = values[4 + 2 * at:6 + 2 * at]
                    t.check(0 <= low <= value <= high, f"{profile.types[at]} of {stack}: {low} {value} {high}")
                    wide += low < high
        t.check(wide, "some interval has a width")
        held = t.report(program.pid)["at_exit"]["bytes"]
        t.check_equal("held", profiles[-1].values("inuse_space"), held)


def check_recording():
    """A recording is sent once."""
    with e.Engine() as engine:
        _, path = t.record(t.program("leak"))
        said = push(path, "--to", engine.url, "--format", "parca")
        found = t.report(path)
        _, profile = engine.taken[0].profile()
        t.check_equal("sums", [profile.values(kind) for kind in TYPES],
                      [found["totals"]["allocations"], found["totals"]["allocated_bytes"], found["at_exit"]["blocks"],
                       found["at_exit"]["bytes"]])
        t.check("1 request sent" in said, said)
        said = push(path, "--to", engine.url, "--format", "prometheus", status=1)
        t.check(f"{path}: metrics are of processes that run" in said, said)


def check_metrics():
    with e.Engine() as engine, Commanded("metrics.cairn") as program:
        program.do("early 1000", "late 500")
        push(program.pid, "--to", engine.url + "/api/v1/write", "--once", "--label", "job=mine", "--label", "cluster=a\"\\b")
        found, request = t.report(program.pid), engine.taken[0]
        series = {dict(labels)["__name__"]: (labels, value) for labels, (value, _) in request.series().items()}
        for name, value in [("cairn_inuse_bytes", found["at_exit"]["bytes"]),
                            ("cairn_allocations_total", found["totals"]["allocations"]),
                            ("cairn_allocated_bytes_total", found["totals"]["allocated_bytes"])]:
            t.check_equal(name, series[name][1], value)
        labels = dict(series["cairn_inuse_bytes"][0])
        check_place(labels)
        t.check_equal("labels", labels, {"__name__": "cairn_inuse_bytes", "job": "mine", "instance": os.uname().nodename,
                                         "name": "commands", "pid": program.pid, "cluster": "a\"\\b"})
        t.check_equal("version", request.headers["X-Prometheus-Remote-Write-Version"], "0.1.0")


def check_bad_input():
    away, unknown = "http://127.0.0.1:7070", "http://127.0.0.1:9"
    for words, wanted in [(("1", "--to", "x"), "\"x\" is no URL"), (("1",), "where to? --to URL"),
                          (("--to", away), "of what?"), (("1", "--all", "--to", away), "of what? Give one of"),
                          (("--cgroup", "/", "--all", "--to", away), "of what? Give one of"),
                          (("1", "--to", unknown), "does not say which engine"),
                          (("1", "--to", "ftp://a:4040"), "is no URL"), (("1", "--to", "http://a b:4040"), "is no URL"),
                          (("1", "--to", "http://:4040/"), "is no URL"),
                          (("1", "--to", away, "-f", "nope"), "no engine \"nope\"; --format is one of pyroscope, "),
                          (("1", "--to", away, "-f", "parca", "--label", "1x=2"), "--label is NAME=VALUE"),
                          (("1", "--to", away, "-f", "parca", "--label", "__name__=2"), "--label is NAME=VALUE"),
                          (("1", "--to", away, "-f", "parca", "--label", "novalue"), "--label is NAME=VALUE"),
                          (("1", "--to", away, "-f", "parca", "--headers", "none.txt"), "none.txt: No such file"),
                          (("1", "--to", away, "-f", "parca", "--every", "10ms"), "--every is from 1s to 1h")]:
        t.check(wanted in push(*words, status=2), f"{words}: {wanted}")
    for path, reason in (("no/such", "there is no such cgroup"), (os.getcwd(), "no cgroup: it has no cgroup.procs")):
        t.check(f"push: --cgroup: {path}: {reason}" in push("--cgroup", path, "--to", away, status=1), path)
    t.check("no process called" in push("no-such-name", "--to", "http://[::1]:4040", "--once", status=1), "no process")
    result = t.run_cairn("push", "1", "--to", "http://a:4040", env={**ENVIRONMENT, "PATH": "/nonexistent"})
    t.check_equal("without curl", (result.status, result.err.decode()),
                  (1, "cairn: the program curl is not installed (Debian: package curl)\n"))
    with e.Engine() as engine, Commanded("secret.cairn") as program:
        with open("headers", "w", encoding="ascii") as file:
            file.write("Authorization: Bearer secret\nX-Scope-OrgID: team\n")
        url = engine.url.replace("http://", "http://user:pass@")
        said = push(program.pid, "--to", url, "-f", "parca", "--once", "--every", "1s", "--headers", "headers")
        t.check_equal("headers", (engine.taken[0].headers["Authorization"], engine.taken[0].headers["X-Scope-OrgID"]),
                      ("Bearer secret", "team"))
        t.check("pass" not in said, f"the password is not said: {said}")


check_deltas()
check_protocols()
check_faults()
check_refused()
check_lives()
check_group()
check_sampled()
check_recording()
check_metrics()
check_bad_input()
t.finish()
