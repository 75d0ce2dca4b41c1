#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn export --format pprof` as `go tool pprof` reads it: sample types, sums, build-ids, inlined
functions, differences, and its web pages."""

import gzip
import os
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import cairn_test as t

t.need("go", "dot")
TYPES = ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes",
         "peak_objects/count", "peak_space/bytes"]
HOME = {"HOME": os.getcwd(), "GOFLAGS": "", "GOCACHE": os.getcwd() + "/go-cache"}


def pprof(*arguments):
    result = t.run(["go", "tool", "pprof", *arguments], env=HOME)
    if not t.check_equal(f"pprof {arguments[0]}: status", result.status, 0):
        print(result.err.decode(errors="replace"))
    return result.out.decode()


class Raw:
    """The text of `pprof -raw`: samples, and below them locations and mappings."""

    def __init__(self, path):
        text = pprof("-raw", path)
        head, rest = text.split("\nSamples:\n")
        samples, rest = rest.split("Locations\n")
        self.period = re.search(r"^Period: (\d+)$", head, re.M).group(1)
        self.comments = re.findall(r"^Comment: (.*)$", head, re.M)
        self.locations, mappings = rest.split("Mappings\n")
        self.mappings = mappings.splitlines()
        lines = samples.splitlines()
        self.types = [kind.removesuffix("[dflt]") for kind in lines[0].split()]
        self.usual = [kind.removesuffix("[dflt]") for kind in lines[0].split()
                      if kind.endswith("[dflt]")]
        self.stacks = [(list(map(int, values.split())), list(map(int, places.split())))
                       for values, places in (line.split(":") for line in lines[1:]
                                              if re.match(r" *-?\d[-\d ]*:", line))]

    def sums(self):
        return dict(zip(self.types, (sum(column) for column in zip(*(v for v, _ in self.stacks)))))


def check_sums(what, raw, found):
    t.check_equal(f"{what}: types", raw.types, TYPES)
    wanted = [found["totals"]["allocations"], found["totals"]["allocated_bytes"],
              found["at_exit"]["blocks"], found["at_exit"]["bytes"],
              found["peak"]["blocks"], found["peak"]["bytes"]]
    t.check_equal(f"{what}: sums", raw.sums(), dict(zip(TYPES, wanted)))


def build_id(path):
    notes = t.run(["readelf", "-n", path]).out.decode()
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


def serve(path):
    """Starts pprof's web pages; returns the process and their address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = ["go", "tool", "pprof", f"-http={address}", "-no_browser", path]
    return subprocess.Popen(command, env=t.environment(HOME), stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True), f"http://{address}"


def fetch(url):
    def page_or_none():
        try:
            with urllib.request.urlopen(url, timeout=t.PATIENCE_S) as page:
                return page.read().decode(errors="replace")
        except urllib.error.HTTPError as problem:
            return problem.read().decode(errors="replace")
        except OSError:
            return None
    return t.wait_until(page_or_none, pause=0.1) or ""


for command in (t.program("exceptions"), t.program("threads", "pipe"),
                ["sqlite3", ":memory:", "create table t(a); insert into t values(zeroblob(99999));"]):
    _, recording = t.record(command)
    found, path = t.report(recording), t.export_file(recording, "pprof")
    name = os.path.basename(command[0])
    raw = Raw(path)
    check_sums(name, raw, found)
    t.check_equal(f"{name}: period", raw.period, "1")
    t.check_equal(f"{name}: default", raw.usual, ["inuse_space/bytes"])
    t.check_equal(f"{name}: samples", len(raw.stacks), len(found["stacks"]))
    t.check(any("exact" in comment for comment in raw.comments), f"comments: {raw.comments}")
    # pprof drops frames by itself when it reads a file that names some to be dropped
    whole = Raw(t.export_file(recording, "pprof", "--all-frames"))
    used = {place for _, places in whole.stacks for place in places}
    t.check_equal(f"{name}: locations are 1 to n", used, set(range(1, len(used) + 1)))

sampled = "sampled.cairn"
t.run_cairn("run", "-q", "--sample", "--rate", "64KiB", "-o", sampled, "--", *t.program("mixed"))
raw = Raw(t.export_file(sampled, "pprof"))
found, sums = t.report(sampled), raw.sums()
t.check_equal("samples: in use and at the peak", [sums[kind] for kind in TYPES[2:]],
              [found["at_exit"]["blocks"], found["at_exit"]["bytes"], found["peak"]["blocks"], found["peak"]["bytes"]])
t.check_equal("samples: period", raw.period, str(64 << 10))

_, recording = t.record(t.program("exceptions"))
path = t.export_file(recording, "pprof")
raw = Raw(path)
program = os.path.realpath(t.program("exceptions")[0])
t.check(program in raw.mappings[0] and build_id(program) in raw.mappings[0],
        f"the first mapping is the program's: {raw.mappings[0]}")
t.check("exceptions.cc:" in raw.locations, "locations have lines")
frames = {frame["function"] for stack in t.report(recording)["stacks"] for frame in stack["frames"]}
whole = Raw(t.export_file(recording, "pprof", "--all-frames"))
missing = [frame for frame in frames if frame and frame not in whole.locations]
t.check_equal("functions that pprof does not know", missing, [])
t.check_equal("with --by", Raw(t.export_file(recording, "pprof", "--by", "peak")).usual,
              ["peak_space/bytes"])

same = pprof("-top", "-sample_index=alloc_space", f"-diff_base={path}", path)
t.check(re.search(r"Showing nodes accounting for 0, 0% of", same), f"no difference: {same}")
again = t.fresh_path("again")
pprof("-proto", f"-output={again}", path)
t.check_equal("read and written by pprof", Raw(again).sums(), raw.sums())

# its list names who allocates; every frame is in the file, and --all-frames keeps them on the screen
top = pprof("-top", "-sample_index=alloc_space", path).split("cum%\n")[1].splitlines()
t.check(top[0].split()[5:6] == ["thrower"] or "std::vector" in top[0], f"the first of -top: {top[0]}")
internal = [line for line in top if re.search(r"operator new|::_M_|__new_allocator|\bmalloc\b", line)]
t.check_equal("internal frames in -top", internal, [])
whole = pprof("-top", "-sample_index=alloc_space", t.export_file(recording, "pprof", "--all-frames"))
t.check("operator new" in whole, f"--all-frames: {whole}")
# a function of the library that calls back into the program is not dropped, nor is what it calls
_, calls_back = t.record(t.program("calls_back"))
top = pprof("-top", "-sample_index=alloc_space", t.export_file(calls_back, "pprof"))
t.check(re.search(r"\bfill_slot\b", top) and re.search(r"\bmain\b", top), f"a callback in -top: {top}")

server, address = serve(path)
try:
    page = fetch(address + "/top?si=alloc_space")
    t.check("main" in page and "alloc_space" in page, f"/top: {page[:300]}")
    t.check("main" in fetch(address + "/flamegraph?si=alloc_space"), "/flamegraph names main")
finally:
    os.killpg(server.pid, signal.SIGKILL)  # go has started another process
    server.wait()

content = open(path, "rb").read()
t.check_equal("as a stream", t.export(recording, "pprof"), content)
t.check(len(gzip.decompress(content)) > len(content), "is compressed")
t.finish()
