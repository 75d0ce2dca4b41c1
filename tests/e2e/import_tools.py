#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn import` of what other profilers wrote in this very test: jemalloc, gperftools, V8, Go as text; and of files
of tools that are not here (tests/fuzz/corpus/import): memray of Debian trixie and sid. Sums are those that the tools'
own reporters print; addresses get the names that cairn has for the same program."""

import json
import math
import pathlib
import re
import shutil
import subprocess

import cairn_test as t

CORPUS = t.SOURCE / "tests/fuzz/corpus/import"


def import_file(path, *arguments):
    name = t.fresh_path("imported") + ".cairn"
    result = t.run_cairn("import", "-o", name, *arguments, str(path))
    if not t.check_equal(f"import {path}: status", result.status, 0):
        print(result.err.decode(errors="replace"))
        return None, ""
    return t.report(name), result.err.decode()


def through(found, function, key):
    return sum(stack[key] for stack in t.stacks_through(found, function))


def corpus(name):
    pathlib.Path(name).write_bytes((CORPUS / name).read_bytes()[1:])
    return name


def in_use(found):
    return found["at_exit"]["blocks"], found["at_exit"]["bytes"]


def of_all_time(found):
    return found["totals"]["allocations"], found["totals"]["allocated_bytes"]


def check_refused(what, content, words):
    pathlib.Path("bad").write_bytes(content)
    result = t.run_cairn("import", "--force", "bad")
    t.check(result.status == 1 and words in result.err.decode(), f"{what}: {result.status} {result.err}")


SHOP = """
#include <cstdlib>
#include <cstdio>
#include <vector>
static std::vector<char *> kept;
static void *volatile sink;
__attribute__((noinline)) void fill(int n) { for (int i = 0; i < n; i++) kept.push_back((char *)malloc(1000)); }
struct Shop { __attribute__((noinline)) void stock() { for (int i = 0; i < 40; i++) kept.push_back(new char[3000]); } };
__attribute__((noinline)) void waste() { for (int i = 0; i < 100; i++) { sink = malloc(5000); free(sink); } }
int main() { kept.reserve(1000); fill(300); Shop().stock(); waste(); puts("done"); return 0; }
"""
pathlib.Path("shop.cc").write_text(SHOP)
t.check_equal("g++", t.run(["g++", "-g", "-O1", "-o", "shop", "shop.cc"]).status, 0)
SHOP_PATH = str(pathlib.Path("shop").absolute())


def library(name):
    """Path of a library that the dynamic linker finds, or None."""
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    found = re.search(rf"^\s*{re.escape(name)} .*=> (\S+)$", cache, re.M)
    return found[1] if found else None


def check_shop(what, found, has_waste):
    for function, blocks, size in (("fill", 300, 1000), ("Shop::stock", 40, 3000)):
        t.check(blocks * size <= through(found, function, "at_exit_bytes") <= blocks * size * 1.1,
                f"{what}: {function} holds {through(found, function, 'at_exit_bytes')}")
        t.check_equal(f"{what}: {function}: blocks", through(found, function, "at_exit_blocks"), blocks)
    inner = [f for f in t.stacks_through(found, "Shop::stock")[0]["frames"] if f["function"] == "main"]
    t.check(inner and inner[0]["file"].endswith("shop.cc") and inner[0]["line"], f"{what}: the line of main: {inner}")
    if has_waste:
        t.check(through(found, "waste", "allocations") == 100 and not through(found, "waste", "at_exit_bytes"),
                f"{what}: waste")


jemalloc = library("libjemalloc.so.2")
JEMALLOC_OPTIONS = "prof:true,prof_final:true,prof_accum:true,prof_prefix:je,lg_prof_sample:"
if not jemalloc or t.run(["./shop"], env={"LD_PRELOAD": jemalloc, "MALLOC_CONF": JEMALLOC_OPTIONS + "0"}).err:
    t.skip_part("no jemalloc that profiles is here")
else:
    dump = next(pathlib.Path().glob("je.*.heap"))
    text = dump.read_text()
    head = list(map(int, re.search(r"t\*: (\d+): (\d+) \[(\d+): (\d+)\]", text).groups()))
    found, told = import_file(dump)
    t.check_equal("jemalloc: in use", in_use(found), tuple(head[:2]))
    t.check_equal("jemalloc: of all time", of_all_time(found), tuple(head[2:]))
    t.check_equal("jemalloc: program", found["process"]["command"], SHOP_PATH)
    t.check(found["trust"]["exact"] and "the peak" in told, f"jemalloc: {told}")
    check_shop("jemalloc", found, True)
    if shutil.which("jeprof"):
        printed = t.run(["jeprof", "--text", "--show_bytes", "./shop", str(dump)]).out.decode()
        fill = re.search(r"(\d+) +[\d.]+% +\S+ +(\d+) +[\d.]+% fill$", printed, re.M)
        t.check_equal("jeprof's fill", through(found, "fill", "at_exit_bytes"), int(fill[2]))
    # sampled: scaled up as jeprof does it
    t.run(["./shop"], env={"LD_PRELOAD": jemalloc, "MALLOC_CONF": JEMALLOC_OPTIONS.replace(":je,", ":js,") + "14"})
    dump = next(pathlib.Path().glob("js.*.heap"))
    wanted = [0, 0]
    for n, size in re.findall(r"^@.*\n +t\*: (\d+): (\d+) ", dump.read_text(), re.M):
        n, size = int(n), int(size)
        factor = 1 / (1 - math.exp(-size / n / 16384)) if n else 0
        wanted = [wanted[0] + int(n * factor + 0.5), wanted[1] + int(size * factor + 0.5)]
    found, told = import_file(dump)
    t.check_equal("jemalloc, sampled: in use", in_use(found), tuple(wanted))
    t.check(not found["trust"]["exact"] and "every 16384 bytes" in told, f"jemalloc, sampled: {told}")
    # a file that is not the one that ran gives no names
    pathlib.Path("other").mkdir()
    t.run(["g++", "-g", "-O0", "-DPADDING", "-o", "other/shop", "shop.cc", "-static"])
    pathlib.Path("root" + SHOP_PATH).parent.mkdir(parents=True)
    shutil.copy("other/shop", "root" + SHOP_PATH)
    found, told = import_file(next(pathlib.Path().glob("je.*.heap")), "--sysroot", str(pathlib.Path("root").absolute()))
    t.check("names are missing" in told and "shop is not the file that was profiled" in told, f"another file: {told}")
    t.check(not t.stacks_through(found, "fill"), "another file gives no names")
    for cut, words in ((text.index("MAPPED"), "the list of mapped files is missing"),
                       (text.index("\n", text.index("@ ")) + 1, "a stack without numbers")):
        check_refused("jemalloc, cut off", text[:cut].encode(), words)

tcmalloc = library("libtcmalloc.so.4")
if tcmalloc:
    t.run(["./shop"], env={"LD_PRELOAD": tcmalloc, "HEAPPROFILE": "gp"})
    dump = sorted(pathlib.Path().glob("gp.*.heap"))[-1]
    head = list(map(int, re.match(r"heap profile: +(\d+): +(\d+) \[ *(\d+): +(\d+)\]", dump.read_text()).groups()))
    found, told = import_file(dump)
    t.check_equal("gperftools: in use", in_use(found), tuple(head[:2]))
    t.check_equal("gperftools: of all time", of_all_time(found), tuple(head[2:]))
    check_shop("gperftools", found, True)
else:
    t.skip_part("no tcmalloc with its heap profiler is here")

if shutil.which("node"):
    pathlib.Path("heap.js").write_text("""global.kept = [];
function fill(n) {
    for (let i = 0; i < n; i++) kept.push({ a: new Array(200).fill(i) });
}
fill(5000);
""")
    t.run(["node", "--heap-prof", "--heap-prof-interval=1024", "--heap-prof-name=heap.heapprofile", "heap.js"])
    root = json.loads(pathlib.Path("heap.heapprofile").read_text())["head"]

    def self_sizes(node):
        return node["selfSize"] + sum(map(self_sizes, node["children"]))

    found, told = import_file("heap.heapprofile")
    t.check_equal("V8: in use", found["at_exit"]["bytes"], self_sizes(root))
    held = through(found, "fill", "at_exit_bytes")
    t.check(held > 4000000, f"V8: fill holds {held}")
    loader = [frame for stack in t.stacks_through(found, "fill") for frame in stack["frames"]
              if frame["file"] == "node:internal/modules/cjs/loader"]
    t.check(loader and all(frame["line"] for frame in loader), "V8: where the loader calls")
    t.check("sampled" in told, f"V8: {told}")
    check_refused("V8, cut off", pathlib.Path("heap.heapprofile").read_bytes()[:2000], "v8: line")
else:
    t.skip_part("node is not here")

GO = """package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

var kept [][]byte

func fill(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 10000))
	}
}

func main() {
	runtime.MemProfileRate = RATE
	fill(300)
	runtime.GC()
	file, _ := os.Create("heap.txt")
	pprof.Lookup("heap").WriteTo(file, 1)
	file.Close()
}
"""
if shutil.which("go"):
    home = {"HOME": str(pathlib.Path.cwd()), "GO111MODULE": "off", "GOCACHE": str(pathlib.Path("go").absolute())}
    pathlib.Path("heap.go").write_text(GO.replace("RATE", "1"))
    t.check_equal("go build", t.run(["go", "build", "-o", "heap", "heap.go"], env=home).status, 0)
    t.run(["./heap"])
    head = list(map(int, re.match(r"heap profile: (\d+): (\d+) \[(\d+): (\d+)\]",
                                  pathlib.Path("heap.txt").read_text()).groups()))
    found, _ = import_file("heap.txt")
    t.check_equal("Go, as text: in use", in_use(found), tuple(head[:2]))
    t.check_equal("Go, as text: of all time", of_all_time(found), tuple(head[2:]))
    t.check(through(found, "main.fill", "at_exit_bytes") >= 3000000, "Go, as text: main.fill")
else:
    t.skip_part("go is not here")

# memray 1.17 of Debian trixie (version 11), 1.20 of sid (13); `memray stats` said so of them
MEMRAY = """kept = []
def fill(n):
    for i in range(n):
        kept.append(bytearray(20000))
fill(5)
"""
for name, calls, allocated, peak in (("memray11", 98, 663524, 381671), ("memray11native", 98, 663524, 381671),
                                     ("memray13native", 96, 1166415, 381382)):
    found, told = import_file(corpus(name))
    t.check_equal(f"{name}: calls, bytes, peak", (*of_all_time(found), found["peak"]["bytes"]),
                  (calls, allocated, peak))
    fill = [stack for stack in t.stacks_through(found, "fill")]
    t.check_equal(f"{name}: fill", sum(stack["at_exit_blocks"] for stack in fill), 5)
    t.check_equal(f"{name}: where fill is called", [(frame["file"], frame["line"]) for frame in fill[0]["frames"]][:2],
                  [("m2.py", 4), ("m2.py", 5)])
    libz = [stack for stack in found["stacks"] if any("libz" in frame["module"] for frame in stack["frames"])]
    t.check_equal(f"{name}: stacks of native code", bool(libz), "native" in name)
    t.check(all(stack["frames"][-1]["function"] == fill[0]["frames"][-1]["function"] for stack in libz),
            f"{name}: native code below Python's")
for name, peak in (("memray11sums", 381671), ("memray13sums", 381382)):
    found, told = import_file(corpus(name))
    t.check_equal(f"{name}: peak", found["peak"]["bytes"], peak)
    t.check("freed before the peak" in told and not found["trust"]["exact"], f"{name}: {told}")
whole = (CORPUS / "memray13native").read_bytes()[1:]
pathlib.Path("killed").write_bytes(whole[:-500])
found, told = import_file("killed")
t.check(found and "the end (the file is cut off)" in told and not found["trust"]["exact"], f"memray, killed: {told}")
check_refused("memray, sums without an end", (CORPUS / "memray13sums").read_bytes()[1:-200], "sums without their trailer")
check_refused("memray, its head", whole[:40], "its head is cut off")
check_refused("memray, too new", whole[:7] + b"\x63" + whole[8:], "file version 99, but 11 to 13 are read")

for content, words in ((b"heap profile: 1: 2 [3: 4] @ growthz/1\n", 'of the kind "growthz"'),
                       (b"heap profile: one\n", '"blocks: bytes [blocks: bytes]" is missing'),
                       (b"heap_v2/0\n", "a distance of samples of 0"),
                       (b"heap_v2/1\n t*: 1: 1 [0: 0]\n@ 0x1 zz\n", "line 3: an address that is none"),
                       (b'{"head":{"callFrame":{}}}', "v8: a node without its selfSize")):
    check_refused(str(content), content, words)
t.finish()
