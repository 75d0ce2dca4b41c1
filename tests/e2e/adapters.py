#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn check --adapter: the tests of CTest, Meson, cargo, pytest, GoogleTest, Google Benchmark and Catch2 by the real
runners, each a row of its own, and a call more in one of them found as a step of that one. `make check` leaves out
Google Benchmark and Catch2, whose protocols are like GoogleTest's, Meson, which is asked as CTest is, cargo, whose tests
docs/howto/rust.md checks, and the second run of pytest, whose own calls vary by more than one."""

import json
import pathlib
import shutil
import subprocess

import cairn_test as t

t.need("git")
SCRATCH = pathlib.Path.cwd()
# A test does what it is called for: so many calls, and more where the environment says so.
WORK = """#pragma once
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void work(const char *name, int count) {
    const char *more = getenv("WORK_MORE");
    if (more && strcmp(more, name) == 0) count++;
    for (int i = 0; i < count; i++) {
        void *volatile block = malloc(100);
        free(block);
    }
}
"""
PROGRAM = """#include "work.h"
int main(int argc, char **argv) {
    work(argv[1], atoi(argv[2]));
    return argc > 3 ? atoi(argv[3]) : 0;
}
"""
GTEST = """#include <gtest/gtest.h>
#include "work.h"
TEST(Parser, Short) { work("short", 10); }
TEST(Parser, Long) { work("long", 1000); }
TEST(Parser, Fails) { work("long", 5); FAIL(); }
TEST(Parser, DISABLED_Off) { abort(); }
"""
BENCHMARK = """#include <benchmark/benchmark.h>
#include "work.h"
static void BM_Work(benchmark::State &state) {
    for (auto _ : state) work(state.range(0) > 9 ? "long" : "short", (int)state.range(0));
}
BENCHMARK(BM_Work)->Arg(8)->Arg(800);
BENCHMARK_MAIN();
"""
CATCH = """#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include "work.h"
TEST_CASE("short, [and] *sweet*") { work("short", 20); CHECK(true); }
TEST_CASE("long", "[tag]") { work("long", 300); }
"""
CTEST = """cmake_minimum_required(VERSION 3.18)
project(adapted NONE)
enable_testing()
set(work ${CMAKE_SOURCE_DIR}/work)
add_test(NAME short COMMAND ${work} short 10)
add_test(NAME long COMMAND ${work} long 200)
add_test(NAME script COMMAND ${CMAKE_SOURCE_DIR}/script.sh ${work})
add_test(NAME fails COMMAND ${work} short 10 3)
"""
MESON = """project('adapted')
work = find_program('./work')
test('short', work, args: ['short', '10'])
test('long', work, args: ['long', '200'], suite: 'slow')
"""
RUST = """pub fn work(name: &str, count: usize) -> usize {
    let more = std::env::var("WORK_MORE").map(|wanted| wanted == name).unwrap_or(false);
    (0..count + more as usize).map(|i| vec![i as u8; 100].len()).sum()
}
#[cfg(test)]
mod tests {
    #[test] fn short() { assert!(crate::work("short", 10) > 0); }
    #[test] fn long() { assert!(crate::work("long", 500) > 0); }
}
"""
PYTHON = """import ctypes, os
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
def work(name, count):
    for i in range(count + (os.environ.get("WORK_MORE") == name)):
        libc.free(libc.malloc(77777))
def test_short(): work("short", 10)
def test_long(): work("long", 300)
"""


def git(*words):
    subprocess.run(["git", *words], check=True, stdout=subprocess.DEVNULL, cwd=SCRATCH, env=t.environment(
        {"GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "e"}))


def check(file, command, adapter="auto", env=None, status=0, cwd=None, options=()):
    result = t.run([t.CAIRN, "check", "--series", str(SCRATCH / file), "--adapter", adapter, *options, "--", *command],
                   cwd=cwd, env=env)
    text = (result.out + result.err).decode(errors="replace")
    t.check_equal(f"--adapter {adapter} -- {command}: status ({text})", result.status, status)
    return text


def history(file):
    return json.loads(t.run_cairn("history", file, "--json").out)


def check_adapter(name, command, short, long, difference, *, program=None, has_stack=True, status=0, cwd=None):
    """Two commits, the second with a call more in the long test."""
    file = f"{name}.db"
    check(file, command, env={"WORK_MORE": "none"}, status=status, cwd=cwd)
    if t.IS_LONG or has_stack:
        git("commit", "-q", "--allow-empty", "-m", name)
        check(file, command, env={"WORK_MORE": "long"}, status=status, cwd=cwd)
    found = history(file)
    rows = {(s["test"], s["program"]): s["points"] for s in found["series"]}
    names = {test for test, _ in rows}
    t.check(names >= {short, long}, f"{name}: tests {sorted(rows)}")
    calls = {test: points[0]["calls"] for (test, which), points in rows.items()
             if not program or which == program}
    if difference is not None:
        t.check_equal(f"{name}: calls of each", calls.get(long, 0) - calls.get(short, 0), difference)
    steps = [s for s in found["steps"] if s["measure"] == "calls"]
    if has_stack:
        t.check_equal(f"{name}: the step", [(s["test"], s["after"] - s["before"]) for s in steps], [(long, 1)])
        t.check(steps and "work" in steps[0]["stacks"][0]["frames"], f"{name}: the stack {steps}")
    return names


def write(name, text):
    path = SCRATCH / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def built(words, cwd=None):
    result = t.run(words, cwd=cwd)
    return t.check_equal(f"{words[:3]}: {result.err.decode(errors='replace')[-300:]}", result.status, 0)


def has_header(name):
    return any((pathlib.Path(top) / name).exists() for top in ("/usr/include", "/usr/local/include"))


def test_ctest():
    write("c/CMakeLists.txt", CTEST)
    write("c/work.h", WORK)
    write("c/work.c", PROGRAM)
    write("c/script.sh", '#!/bin/sh\n"$1" script 30\n"$1" script 40\n').chmod(0o755)
    if not built(["gcc", "-g", "c/work.c", "-o", "c/work"]) or not built(["cmake", "-S", "c", "-B", "c/build"]):
        return
    names = check_adapter("ctest", ["ctest", "--test-dir", "c/build", "-j2"], "short", "long", 190, program="work",
                          status=1)
    t.check_equal("ctest: tests that passed", names, {"short", "long", "script"})
    rows = {(s["test"], s["program"]): s["points"][0]["calls"] for s in history("ctest.db")["series"]}
    t.check_equal("ctest: what a script started is its own", rows.get(("script", "work")), 70)
    text = check("ctest.db", ["ctest", "--test-dir", "c/build", "-R", "fails"], status=1)
    t.check("1 test failed, and is not in the history" in text and "nothing was appended" in text, f"ctest: a test that fails: {text}")


def test_meson():
    write("m/meson.build", MESON)
    write("m/work.h", WORK)
    write("m/work.c", PROGRAM)
    if built(["gcc", "-g", "m/work.c", "-o", "m/work"]) and built(["meson", "setup", "m/build", "m"]):
        check_adapter("meson", ["meson", "test", "-C", "m/build", "--no-rebuild"], "short", "slow / long", 190,
                      has_stack=t.IS_LONG)


def test_gtest():
    write("g/work.h", WORK)
    write("g/g.cc", GTEST)
    if not built(["g++", "-g", "g/g.cc", "-o", "g/g", "-lgtest_main", "-lgtest", "-lpthread"]):
        return
    names = check_adapter("gtest", ["g/g"], "Parser.Short", "Parser.Long", 990, status=1)
    t.check_equal("gtest: tests that passed", names, {"Parser.Short", "Parser.Long"})
    text = check("failed.db", ["g/g", "--gtest_filter=*Fails"], status=1)
    t.check("FAIL Parser.Fails command: it ended with status 1\n      g/g" in text and "nothing was appended" in text,
            f"gtest: how to see what a test that fails prints: {text}")
    line, = [line.strip() for line in text.splitlines() if line.startswith("      g/g")]
    pasted = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=False)
    t.check_equal(f"gtest: the printed command, pasted: {line}",
                  (pasted.returncode, b"Parser.Fails" in pasted.stdout, b"Parser.Long" in pasted.stdout), (1, True, False))
    text = check("gtest.db", ["g/g", "--gtest_filter=*Long"], options=["--max-calls", "5"], status=1)
    t.check("FAIL Parser.Long" in text and "Short" not in text, f"gtest: a budget is of each test: {text}")


def test_benchmark():
    write("b/work.h", WORK)
    write("b/b.cc", BENCHMARK)
    if built(["g++", "-g", "b/b.cc", "-o", "b/b", "-lbenchmark", "-lpthread"]):
        check_adapter("benchmark", ["b/b"], "BM_Work/8", "BM_Work/800", None)


def test_catch2():
    write("k/work.h", WORK)
    write("k/k.cc", CATCH)
    if built(["g++", "k/k.cc", "-o", "k/k"]):
        check_adapter("catch2", ["k/k"], "short, [and] *sweet*", "long", None)


def test_cargo():
    write("r/Cargo.toml", '[package]\nname = "adapted"\nversion = "0.1.0"\nedition = "2018"\n')
    write("r/src/lib.rs", RUST)
    check_adapter("cargo", ["cargo", "test", "--offline"], "adapted tests::short", "adapted tests::long", None,
                  program="adapted", has_stack=False, cwd=SCRATCH / "r")
    steps = [s for s in history("cargo.db")["steps"] if s["measure"] == "calls"]
    print("cargo: steps", [(s["test"], s["after"] - s["before"]) for s in steps])


def test_pytest():
    write("p/test_work.py", PYTHON)
    names = check_adapter("pytest", [t.PYTHON, "-m", "pytest", "-q", "-v", "."], "test_work.py::test_short",
                          "test_work.py::test_long", None, has_stack=False, cwd=SCRATCH / "p")
    t.check_equal("pytest: tests", len(names), 2)
    write("q/test_work.py", PYTHON)
    check("chosen.db", [t.PYTHON, "-m", "pytest", "-k", "short"], cwd=SCRATCH / "q")
    t.check_equal("pytest: -k chooses", [s["test"] for s in history("chosen.db")["series"]],
                  ["test_work.py::test_short"])


def test_refusals():
    for words, what in ((["--adapter", "auto", "--", "true"], "is no runner"),
                        (["--adapter", "nose", "--", "true"], "auto, ctest"),
                        (["--adapter", "gtest", "some.cairn"], "for a command"),
                        (["--adapter", "pytest", "--gone", "left", "--baseline", "b.cairn", "--", "pytest"], "--gone"),
                        (["--adapter", "pytest", "--test", "x", "--", "pytest"], "--test")):
        result = t.run_cairn("check", "--series", "r.db", *words)
        text = (result.out + result.err).decode()
        t.check_equal(f"{words}: {text}", result.status, 2)
        t.check(what in text, f"{words}: {text}")
    text = check("r.db", ["ctest", "--test-dir", "nowhere"], status=1)
    t.check("lists no tests" in text or "does not list" in text, f"a runner without tests: {text}")


git("init", "-q", ".")
git("commit", "-q", "--allow-empty", "-m", "first")
HAS_PYTEST = t.run([t.PYTHON, "-c", "import pytest"]).status == 0
LEFT_OUT = () if t.IS_LONG else (test_benchmark, test_catch2, test_meson, test_cargo)
for is_here, test, what in (
        (shutil.which("cmake") and shutil.which("ctest"), test_ctest, "cmake"),
        (shutil.which("meson") and shutil.which("ninja"), test_meson, "meson"),
        (has_header("gtest/gtest.h"), test_gtest, "libgtest-dev"),
        (has_header("benchmark/benchmark.h"), test_benchmark, "libbenchmark-dev"),
        (has_header("catch2/catch.hpp"), test_catch2, "catch2 2"),
        (shutil.which("cargo"), test_cargo, "cargo"), (HAS_PYTEST, test_pytest, "python3-pytest")):
    if test in LEFT_OUT:
        continue
    if is_here:
        test()
    else:
        t.skip_part(f"{what} is not installed")
test_refusals()
t.finish()
