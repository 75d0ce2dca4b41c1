#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""include/cairn: the examples as C11 and C++17, with and without cairn, with the stub, position-independent
or not, from an installed tree (each compiler and each kind once, and all of each in `make check-long`); the edges of the interface (tests/programs/api_cases.c); regions and pools
in views, filters and JSON."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t

WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-O1", "-fno-builtin"]
LANGUAGES = {"c11": ["gcc", "-std=c11", "-x", "c"], "c++17": ["g++", "-std=c++17", "-x", "c++"],
             "clang c11": ["clang", "-std=c11", "-x", "c"]}
KINDS = {"pie": [], "no pie": ["-no-pie", "-fno-pie"], "static": ["-static"]}


def install():
    """Puts what an installation has of the interface below `root`, by the Makefile itself."""
    root = pathlib.Path.cwd() / "root"
    made = subprocess.run(["make", "-s", "-C", str(t.SOURCE), "BUILT=1", f"BUILD={t.BUILD}", "install-api",
                           "PREFIX=/usr", f"DESTDIR={root}"], capture_output=True, check=False)
    t.check_equal("make install-api", made.returncode, 0)
    return root


def flags(root, package, *what):
    found = subprocess.run(["pkg-config", *what, f"--define-variable=prefix={root}/usr", package],
                           env={**os.environ, "PKG_CONFIG_PATH": f"{root}/usr/lib/pkgconfig"},
                           capture_output=True, check=False)
    t.check_equal(f"pkg-config {package}", found.returncode, 0)
    return found.stdout.decode().split()


def build(name, compiler, options, libraries=()):
    output = str(pathlib.Path.cwd() / t.fresh_path("program").rsplit("/", 1)[1])
    made = subprocess.run([*compiler, *WARNINGS, *options, "-o", output, str(t.SOURCE / "examples" / name),
                           "-x", "none", *libraries], capture_output=True, check=False)
    t.check(made.returncode == 0, f"{name} with {compiler} {options}: {made.stderr.decode()}")
    return output


def check_regions(what, program):
    alone = t.run([program])
    t.check_equal(f"{what}: without cairn", (alone.status, alone.out), (0, b"done\n"))
    result, path = t.record([program])
    t.check_equal(f"{what}: with cairn", (result.status, result.out.decode().splitlines()), (0, [
        "load: 2000 allocations of 120000 bytes, 40000 bytes more, 40080 at most",
        "nodes: 12000 bytes in 500 parts", "parse: 0 bytes of 120000 left", "done"]))
    return path


def check_views(path):
    found = t.report(path)
    if not found:
        return
    regions = {row["name"]: row for row in found["regions"]}
    t.check_equal("names of regions", sorted(regions), ["load", "load/parse"])
    for name, begun, rise in (("load", 1, 40080), ("load/parse", 1000, 120)):
        row = regions[name]
        t.check_equal(name, (row["begun"], row["rise_bytes"], row["allocations"], row["allocated_bytes"],
                             row["at_exit_bytes"]), (begun, rise, 2000, 120000, 0))
    kept = t.run_cairn("check", "--series", "regions.db", "--commit", "1", path)
    t.check_equal("a history keeps regions", kept.status, 0)
    kept = json.loads(t.run_cairn("history", "regions.db", "--json").out)["series"]
    t.check_equal("regions of the history", {row["region"]: row["points"][0]["calls"] for row in kept if row["region"]},
                  {"load": 2000, "load/parse": 2000})
    pools = found["pools"]
    t.check_equal("pools", [(p["name"], p["made"], p["destroyed"], p["peak_bytes"], p["at_exit_bytes"])
                            for p in pools], [("nodes", 1, 1, 12000, 0)])
    t.check_sums("regions", found)
    t.check_nothing_lost("regions", found)
    inside = t.report(path, "--region", "parse$")
    if inside:
        t.check_equal("calls in the region", sum(s["allocations"] for s in inside["stacks"]), 2000)
    for limits, status in (('["region:load/parse"]\nmax-calls = 2000', 0), ('["region:load*"]\nmax-calls = 1999', 1),
                           ('["region:nowhere"]\nmax-peak = 1', 1)):
        pathlib.Path("regions.toml").write_text(limits + "\n", encoding="utf-8")
        checked = t.run_cairn("check", "--budgets", "regions.toml", path)
        t.check_equal(f"check {limits}: {checked.out}", checked.status, status)
        t.check(b"region " in checked.out, f"check {limits}: {checked.out}")
        if "1999" in limits:
            t.check(re.search(rb"100 % +2,000 calls +\S", checked.out), f"no guilty stack: {checked.out}")
    wrong = t.run_cairn("report", "--region", "nowhere", path)
    t.check(wrong.status != 0 and b"there are: load, load/parse" in wrong.err, f"no region: {wrong.err}")
    for view, words in (("regions", b"load/parse"), ("pools", b"nodes")):
        shown = t.run_cairn("report", "--view", view, path)
        t.check(shown.status == 0 and words in shown.out, f"--view {view}: {shown.out}")


def check_headers():
    """Every standard that is promised, strict, by both compilers, also with warnings that few ask for."""
    text = ("#include <cairn/cairn.h>\n#include <cairn/expect.h>\n"
            "int f(void);\nint f(void) { CAIRN_EXPECT_NO_GROWTH {\nCAIRN_EXPECT_AT_MOST(1, 2) { cairn_mark(\"x\"); } }\n"
            "    struct cairn_stats s;\n    return cairn_stats_of(CAIRN_THREAD, &s) + cairn_snapshot(NULL); }\n")
    profiler = "#include <cairn/mallocProfiler.h>\nint main() { return mallocProfiler::loaded(); }\n"
    strict = ["-Wpedantic", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-fsyntax-only"]
    for compiler, language, standards in (
            ("gcc", "c", ("c11", "c17")), ("clang", "c", ("c11", "c17")),
            ("g++", "c++", ("c++11", "c++14", "c++17", "c++20")), ("clang++", "c++", ("c++11", "c++17", "c++20"))):
        for standard in standards:
            for source in [text] + [profiler] * (standard in ("c++17", "c++20")):
                made = subprocess.run([compiler, f"-std={standard}", *strict, *cflags, "-x", language, "-"],
                                      input=source.encode(), capture_output=True, check=False)
                t.check(made.returncode == 0, f"{compiler} -std={standard}: {made.stderr.decode()}")


def check_sampled():
    """Calls and bytes allocated are exact where allocations are sampled; the rest is near, sizes are not known."""
    result, path = t.record(t.program("api_cases", "sampled"), env={"CAIRN_SAMPLE": "1", "CAIRN_RATE": "4096", "CAIRN_SEED": "5"})
    t.check_equal("sampled", (result.status, result.out.decode()), (0, ""))
    t.check(t.report(path)["sampling"], "sampled: no samples")


def check_expect(program):
    for argv, env, status, words in (([program], {}, 0, b"passed, unchecked"),
                                     ([program], {"LD_PRELOAD": t.RUNTIME}, 0, b"passed\n"),
                                     ([program, "more"], {}, 0, b"passed, unchecked"),
                                     ([program, "more"], {"LD_PRELOAD": t.RUNTIME}, 134, b"")):
        result = t.run(argv, env=env)
        t.check(result.status == status and words in result.out, f"{argv} {env}: {result.status} {result.out}")
    t.check(b"bytes left; at most 0 bytes left" in result.err and b"examples/expect.c:" in result.err,
            f"what an expectation says: {result.err}")


def check_instrumented():
    """The same code with and without reserve(): fewer calls and bytes, and dumps that add up to its own figures."""
    calls = []
    for define in ([], ["-DRESERVE"]):
        program = build("instrumented.cc", ["g++", "-std=c++17", "-x", "c++", "-g"], [*cflags, *define])
        t.check_equal("instrumented, without cairn", t.run([program]).out, b"filled 20000\n")
        result = t.run([program], env={"LD_PRELOAD": t.RUNTIME, "CAIRN_OFF": "1"})
        lines = result.out.decode().splitlines()
        words = lines[0].split()
        dumped = [list(map(int, line.split("$")[1:])) for line in lines
                  if line.startswith("_mpTrace_;main;") and "unordered_map" in line]
        t.check_equal("stacks of the map", len(dumped), 2)
        t.check_equal("calls and bytes dumped", [sum(row[0] for row in dumped), sum(row[1] for row in dumped)],
                      [int(words[0]), int(words[2])])
        t.check_equal("ranked by most", dumped, sorted(dumped, key=lambda row: -row[3]))
        t.check(any("instrumented.cc:" in line for line in lines), f"no line of the source: {lines}")
        t.check(not any(line.strip().startswith("main ") for line in lines), "details go on beyond the caller")
        calls.append(int(words[0]))
    t.check_equal("calls with reserve()", calls[1], 20001)
    t.check(calls[0] > calls[1], f"calls without and with reserve(): {calls}")


def check_configured():
    """A library preloaded behind cairn is asked first, and sets things up for a program that knows nothing."""
    pathlib.Path("configure.c").write_text(
        "#include <cairn/cairn.h>\n"
        "__attribute__((constructor)) static void configure(void) { cairn_region_begin(\"whole\"); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", *cflags, "configure.c", "-o", "configure.so"], check=True)
    result, path = t.record_alone(t.program("leak"), env={"LD_PRELOAD": f"{t.RUNTIME}:./configure.so"})
    found = t.report(path)
    if found:
        whole = [row for row in found.get("regions", []) if row["name"] == "whole"]
        t.check_equal("allocations in the region", [row["allocations"] for row in whole],
                      [found["totals"]["allocations"]])


def check_thresholds():
    """Thresholds that a program sets while recording is off hold when it is on."""
    pathlib.Path("thresholds.c").write_text(
        "#include <cairn/cairn.h>\n#include <stdlib.h>\nvoid *volatile kept[2];\n"
        "int main(void) { cairn_set_thresholds(1000, 0); kept[0] = malloc(10); cairn_enable(CAIRN_PROCESS);\n"
        "    kept[0] = malloc(50); kept[1] = malloc(5000); return 0; }\n")
    subprocess.run(["gcc", "-O1", *cflags, "thresholds.c", "-o", "thresholds"], check=True)
    _, path = t.record(["./thresholds"], env={"CAIRN_OFF": "1"})
    found = t.report(path)
    if found:
        t.check_equal("stacks", sorted((s["allocated_bytes"], "main" in t.functions(s)) for s in found["stacks"]),
                      [(50, False), (5000, True)])


t.need("gcc", "g++", "clang", "pkg-config", "make")
ROOT = install()
cflags, stub = flags(ROOT, "cairn", "--cflags"), flags(ROOT, "cairn-stub", "--cflags", "--libs")
for language, compiler in LANGUAGES.items():
    for kind, options in KINDS.items():
        if not t.IS_LONG and (language, kind) not in (("c11", "static"), ("c++17", "no pie"), ("clang c11", "pie")):
            continue
        program = build("regions.c", compiler, [*cflags, *options])
        if kind == "static":
            t.check_equal(f"{language}, static", t.run([program]).out, b"done\n")
        else:
            recorded = check_regions(f"{language}, {kind}", program)
check_views(recorded)
libraries = [word for word in stub if word.startswith(("-l", "-L"))]
compile_words = [word for word in stub if word not in libraries]
check_regions("stub", build("regions.c", LANGUAGES["c11"], compile_words, libraries))
t.check_equal("static stub", t.run([build("regions.c", LANGUAGES["c11"], [*compile_words, "-static"], libraries)]).out,
              b"done\n")
for language in ("c11", "c++17"):
    check_expect(build("expect.c", LANGUAGES[language], cflags))



def check_drop_in():
    """What allocators report to heaptrack and Perfetto is in pools; the child of a fork goes on with them."""
    plain = t.run(t.program("drop_in"))
    t.check_equal("without cairn", (plain.status, plain.out), (0, b"0\n"))
    result, path = t.record(t.program("drop_in", "fork"))
    t.check_equal("its output", (result.status, result.out), (0, b"1\n"))
    runs = [t.report(file) for file in sorted(pathlib.Path(path).glob("*.cairn"))] or [t.report(path)]
    runs.sort(key=lambda found: found["process"]["pid"])
    rows = [{p["name"]: (p["made"], p["allocations"], p["allocated_bytes"], p["peak_bytes"], p["at_exit_bytes"])
             for p in found["pools"]} for found in runs]
    textures = (1, 50, 50_000, 50_000, 30_000)
    t.check_equal("the parent", rows[0], {"heaptrack_api": (1, 110, 5760, 5280, 2400), "textures": textures})
    # what it had at the fork is allocated, and the peak, of the child's
    t.check_equal("the child", rows[1:], [{"heaptrack_api": (1, 41, 2407, 2400, 967),
                                           "textures": (1, 30, 30_000, 30_000, 30_000)}])


check_headers()
check_drop_in()
check_sampled()
check_instrumented()
check_configured()
check_thresholds()
for case in ("nesting", "rises", "threads", "switching", "pools", "forks", "reports", "snapshots"):
    result, path = t.record(t.program("api_cases", case))
    t.check_equal(case, (result.status, result.out.decode()), (0, ""))
    if t.IS_LONG or case in ("threads", "forks", "snapshots"):
        alone, _ = t.record_alone(t.program("api_cases", case))
        t.check_equal(f"{case}, alone", (alone.status, alone.out.decode()), (0, ""))
    if case not in ("forks", "switching"):
        found = t.report(path)
        t.check_sums(case, found)
        t.check_nothing_lost(case, found)
    if case == "snapshots":
        at = t.run_cairn("report", "--at", "full", path)
        t.check(at.status == 0 and b"full" in at.out, f"--at full: {at.out} {at.err}")
    if t.IS_LONG or case in ("nesting", "switching"):
        verified, _ = t.record(t.program("api_cases", case), env={"CAIRN_VERIFY": "1"})
        t.check_equal(f"{case}, verified", (verified.status, verified.out.decode()), (0, ""))
_, path = t.record([build("regions.c", LANGUAGES["c11"], cflags)], env={"CAIRN_STACKS": "0"})
check_views(path)
shutil.rmtree(ROOT, ignore_errors=True)
t.finish()
