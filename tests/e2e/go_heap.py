#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Go's own heap, of a process and of its core: what each stack allocated and has in use is what `go tool pprof` says of the
profile that the program wrote itself after two collections, row by row; the objects of each size are those of
runtime.MemStats. The same of a program without symbols, and of a library of Go in another program. One without a profile is named.
With this machine's Go, those whose directories are in $GO_ROOTS (compiled into $GO_ROOTS_CACHE), and those of other Debians, in
chroots that are in $CHROOTS/SUITE-go, or that CAIRN_LONG=1 makes there (build/chroots)."""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import cairn_test as t
import chroots

place = pathlib.Path(t.fresh_path("go")).absolute()
os.makedirs(place)
SOURCES = [f"{t.SOURCE}/tests/programs/heap.go", f"{t.SOURCE}/tests/programs/heap_profile.go"]
WAYS = {"plain": SOURCES, "anywhere": ["-buildmode=pie", *SOURCES], "without": SOURCES[:1], "stripped": ["-ldflags=-s -w", *SOURCES]}


def build(name, root):
    environment = {**os.environ, "GOCACHE": t.GO_CACHE, "GO111MODULE": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local", "HOME": str(place)}
    if root:
        environment |= {"GOROOT": root, "GOCACHE": os.environ.get("GO_ROOTS_CACHE", t.GO_CACHE)}
    go = f"{root}/bin/go" if root else "go"
    made = t.run([go, "build", "-o", f"{place}/{name}", *WAYS[name]], env=environment)
    t.check_equal(f"{name} is built", (made.status, made.err), (0, b""))
    return f"{place}/{name}"


class Running:
    def __init__(self, program):
        self.profile = f"{place}/profile"
        self.process = subprocess.Popen([program, self.profile], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.sizes, self.all = {}, 0
        for line in self.process.stderr:
            word, *numbers = line.split()
            if word == "ready":
                break
            if word == "all":
                self.all = int(numbers[0])
            else:
                self.sizes[int(numbers[0])] = int(numbers[1])
        self.pid = self.process.pid

    def end(self, what):
        out, err = self.process.communicate("", timeout=t.PATIENCE_S)
        t.check_equal(f"{what}: goes on as before", (self.process.returncode, out, err), (0, "2300 20000 0\n", ""), is_grave=True)


def told(profile):
    """Rows of `go tool pprof -raw`: values by stacks of functions and lines."""
    text = subprocess.run(["go", "tool", "pprof", "-raw", profile], check=True, text=True, capture_output=True).stdout
    samples, rest = text.split("Samples:\n")[1].split("Locations\n")
    places, last = {}, None
    for line in rest.split("Mappings\n")[0].splitlines():
        first = re.match(r" *(\d+): 0x\w+ (?:M=\d+ )?(.*)", line)
        if first:
            last = places.setdefault(int(first[1]), [])
        frame = re.match(r" *(\S+) \S+?:(\d+)(?::\d+)? s=\d+", first[2] if first else line)
        if frame:
            last.append((frame[1], int(frame[2])))
    stacks = collections.defaultdict(lambda: [0, 0, 0, 0])
    for line in samples.splitlines():
        found = re.match(r" *(\d+) +(\d+) +(\d+) +(\d+): ([\d ]+)$", line)
        if found:
            key = tuple(frame for one in found[5].split() for frame in places[int(one)])
            for i in range(4):
                stacks[key][i] += int(found[i + 1])
    return dict(stacks)


def shown(what, word):
    found = t.report(word, "--top", "100000")
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for stack in found["stacks"] if found else []:
        key = tuple((frame["function"], frame["line"]) for frame in stack["frames"])
        for i, name in enumerate(("allocations", "allocated_bytes", "at_exit_blocks", "at_exit_bytes")):
            rows[key][i] += stack[name]
    t.check(found and "Go's own profile (go1." in found["trust"]["imported"], f"{what}: its source is named: {found and found['trust']}")
    return dict(rows)


def compare(what, word, wanted, least=4):
    rows = shown(what, word)
    t.check(len(wanted) >= least and sum(row[3] for row in wanted.values()) > 20e6, f"{what}: the profile is not empty")
    t.check_equal(f"{what}: stacks that differ", (sorted(set(rows) - set(wanted)), sorted(set(wanted) - set(rows))), ([], []))
    for key in set(rows) & set(wanted):
        t.check_equal(f"{what}: {key[0]}", rows[key], wanted[key])


def overview(what, word, running):
    found = json.loads(t.run_cairn("report", "--json", word).out)
    t.check_equal(f"{what}: all spans", sum(row["bytes"] for row in found["go_spans"]), running.all)
    sizes = [re.match(r"([\d,]+) objects? of (\d+) bytes", row["what"]) for row in found["go_spans"]]
    counts = {int(one[2]): int(one[1].replace(",", "")) for one in sizes if one}
    t.check(112 in counts and len(counts) >= 3, f"{what}: sizes are shown: {counts}")
    t.check_equal(f"{what}: objects by size", counts, {size: running.sizes[size] for size in counts})
    t.check("main.fill" in [row["what"] for row in found["go_functions"]], f"{what}: functions: {found['go_functions']}")
    t.check("cairn report --view functions" in found["next"], f"{what}: {found['next']}")


def build_inside(name, root):
    """By the Go of another Debian; the program has no need of that system when it runs."""
    here, inside = root / "tmp/cairn-go-heap", "/tmp/cairn-go-heap"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    for file in SOURCES:
        shutil.copy(file, here)
    variables = [f"GOCACHE={inside}/cache", "GO111MODULE=off", "GOFLAGS=", "GOTOOLCHAIN=local", "CGO_ENABLED=0", f"HOME={inside}"]
    words = [one.replace(f"{t.SOURCE}/tests/programs", inside) for one in WAYS[name]]
    made = t.run(chroots.inside(root, [*variables, "go", "build", "-o", f"{inside}/{name}", *words]))
    t.check_equal(f"{name} is built", (made.status, made.err), (0, b""))
    return str(here / name)


def with_profile(name, root=None, is_chroot=False):
    what = f"{name} {os.path.basename(root or '')}".strip()
    running = Running(build_inside(name, root) if is_chroot else build(name, root))
    wanted = told(running.profile)
    compare(what, str(running.pid), wanted)
    overview(what, str(running.pid), running)
    if not shutil.which("gcore"):
        t.skip_part("gcore is not installed (gdb)")
    elif not root:
        core = f"{place}/core.{running.pid}"
        made = t.run(["gcore", "-o", f"{place}/core", str(running.pid)])
        if t.check(os.path.exists(core), f"{what}: a core is made: {made.err}"):
            compare(f"{what}, core", core, wanted)
            overview(f"{what}, core", core, running)
            os.remove(core)
    if name == "plain" and not root:
        removed(running, wanted)
    running.end(what)
    refused = t.run_cairn("run", f"{place}/{name}", str(running.profile)) if name in ("anywhere", "stripped") and not root else None
    if refused:  # and what helps is said, without symbols as well
        t.check(refused.status == 125 and b"it is a static Go program" in refused.err and b"cairn report PID" in refused.err
                and b"cairn help go" in refused.err, f"{what}: cairn run: {refused}")


def removed(running, wanted):
    """The executable is replaced: the kernel has the one that runs."""
    os.rename(f"{place}/plain", f"{place}/moved")
    shutil.copy("/bin/true", f"{place}/plain")
    os.remove(f"{place}/moved")
    compare("replaced", str(running.pid), wanted)
    exported = f"{place}/exported.pb.gz"
    made = t.run_cairn("open", "-o", f"{place}/page.html", str(running.pid))
    t.check(f"cairn: {running.pid}: " in made.err.decode() and "/fd/" not in made.err.decode(), f"the page's name: {made.err.decode()}")
    text = t.run_cairn("info", str(running.pid)).out.decode()
    t.check_equal("the name of info", text.split()[:2], ["recording", str(running.pid)])
    made = t.run_cairn("export", "-f", "pprof", "-o", exported, str(running.pid))
    t.check_equal("export of a process", made.status, 0)
    top = t.run(["go", "tool", "pprof", "-sample_index=inuse_space", "-unit=B", "-top", exported]).out.decode()
    total = sum(row[3] for row in wanted.values())
    t.check(f"of {total}B total" in top and "main.fill" in top, f"export: {total} bytes in {top[:600]}")


def without_profile(name, sentence):
    running = Running(build(name, None))
    found = t.run_cairn("report", "--view", "functions", str(running.pid))
    t.check_equal(f"{name}: refused", found.status, 1)
    t.check(re.search(sentence, found.err.decode()), f"{name}: it says why: {found.err.decode()}")
    text = t.run_cairn("report", str(running.pid)).out.decode()
    t.check(re.search(sentence, text), f"{name}: the overview says why: {text}")
    t.check("objects of 112 bytes" in text, f"{name}: spans are shown: {text}")
    command = text.splitlines()[-1].removeprefix("next: cairn ").split()
    t.check(command[:3] == ["report", "--view", "memory"] and t.run_cairn(*command).status == 0, f"{name}: next: {command}")
    running.end(name)


LIBRARY = """package main

import "C"
import ("os"; "runtime"; "runtime/pprof")

var kept [][]byte

//export Fill
func Fill(count C.int) {
	for i := 0; i < int(count); i++ {
		kept = append(kept, make([]byte, 5000))
	}
	runtime.GC()
	runtime.GC()
	file, _ := os.Create("library.profile")
	pprof.WriteHeapProfile(file)
	file.Close()
}
func main() {}
"""


def library():
    """A library of Go in another program, here Python: its heap is read beside malloc's."""
    (place / "library.go").write_text(LIBRARY, encoding="ascii")
    built = t.run(["go", "build", "-buildmode=c-shared", "-o", f"{place}/library.so", f"{place}/library.go"],
                  env={**os.environ, "GOCACHE": t.GO_CACHE, "GO111MODULE": "off", "GOFLAGS": "", "HOME": str(place)})
    if built.status:
        return t.skip_part(f"Go makes no libraries here (gcc): {built.err[-200:]}")
    script = "import ctypes, sys; ctypes.CDLL('./library.so').Fill(8000); print('ready', flush=True); sys.stdin.read()"
    with t.Process([sys.executable, "-c", script], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        t.check_equal("library: filled", process.stdout.readline(), b"ready\n")
        compare("library", str(process.pid), told(f"{place}/library.profile"), least=1)
        found = json.loads(t.run_cairn("report", "--json", str(process.pid)).out)
        rows = [row["what"] for row in found["go_spans"] + found["go_functions"]]
        t.check(any(re.match(r"8,00\d objects of 5376 bytes", row) for row in rows) and "main.Fill" in rows, f"library: {rows}")
        text = t.run_cairn("report", str(process.pid)).out.decode()
        t.check("in use in glibc's malloc" in text and "spans of Go's heap" in text, f"library: both heaps: {text}")
        t.check("not read: Go's heap" not in text, f"library: it is read: {text}")
        process.communicate(b"", timeout=t.PATIENCE_S)
        t.check_equal("library: it ends well", process.returncode, 0)


BOTH = """package main

// #include <stdlib.h>
import "C"
import ("os"; "runtime"; "runtime/pprof")

var kept [][]byte

func main() {
	for i := 0; i < 8000; i++ {
		kept = append(kept, make([]byte, 5000))
		C.malloc(1000)
	}
	runtime.GC()
	runtime.GC()
	pprof.Lookup("heap")
	os.Stdout.WriteString("ready\\n")
	os.Stdin.Read(make([]byte, 1))
}
"""


def recorded():
    """A program with cgo that is being recorded: both heaps, one below the other, and side by side in JSON."""
    (place / "both.go").write_text(BOTH, encoding="ascii")
    built = t.run(["go", "build", "-o", f"{place}/both", f"{place}/both.go"],
                  env={**os.environ, "GOCACHE": t.GO_CACHE, "GO111MODULE": "off", "GOFLAGS": "", "HOME": str(place)})
    if built.status:
        return t.skip_part(f"Go has no cgo here (gcc): {built.err[-200:]}")
    with t.Process([t.CAIRN, "run", "-q", "-o", f"{place}/both.cairn", "--", f"{place}/both"], stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE) as process:
        t.check_equal("recorded: filled", process.stdout.readline(), b"ready\n")
        pid = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()[0]
        text = t.run_cairn("report", pid).out.decode()
        t.check(text.count("\n") <= 40, f"recorded: one screen: {text}")
        for wanted in (r"live now +7\.\d MiB in 8,0\d\d blocks", r"spans of Go's heap by size of objects, 4\d\.\d MiB in all\n",
                       r" 8,00\d objects of 5376 bytes, ", r"by Go's samples, .* in all\n .* main\.main\n"):
            t.check(re.search(wanted, text), f"recorded: {wanted} in {text}")
        document = t.report(pid)
        largest = {kind: max(document[kind], key=lambda row: row["bytes"]) for kind in ("go_spans", "go_functions")}
        t.check_equal("recorded: JSON has malloc's heap", document["at_exit"]["blocks"] // 10, 800)
        t.check(largest["go_spans"]["what"].startswith("8,00") and " of 5376 bytes" in largest["go_spans"]["what"],
                f"recorded: JSON has Go's spans: {largest}")
        t.check_equal("recorded: JSON has Go's functions", largest["go_functions"]["what"], "main.main")
        process.communicate(b"", timeout=t.PATIENCE_S)
        t.check_equal("recorded: it ends well", process.returncode, 0)


t.need("go")
with_profile("plain")
recorded()
library()
without_profile("without", r"keeps no profile of its heap \(MemProfileRate 0\)")
with_profile("stripped")
for each in os.environ.get("GO_ROOTS", "").split():
    with_profile("plain", each)
    with_profile("stripped", each)
for suite in ("trixie", "sid"):
    chroot = chroots.find(suite, "go", ["golang-go", "gcc", "libc6-dev"])
    for each in ("plain", "stripped") if chroot else ():
        with_profile(each, chroot, is_chroot=True)
if t.IS_LONG:
    with_profile("anywhere")
t.finish()
