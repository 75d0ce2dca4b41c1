#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs every test, one line each, and ends with the line `N passed, N failed`.

    dev/run-tests.py [--build-dir build] [NAME-PART ...]

Tests: the build itself, the checks of dev/, unit binaries, tests/e2e/*, tests/promises/*, and a short
run of each fuzzer. A test is a program; status 0 is a pass, 77 says that it cannot run here (its last
line says why: it is listed before the end and is not counted as passed), anything else is a failure.
Its output is in build/test-logs/NAME.log, and the end of it is shown when it fails. Scripts run in a
scratch directory of their own, all others in the root, with BUILD_DIR and SOURCE_DIR set and the build
directory in PATH."""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
NOT_HERE = 77
TIMEOUT_S = {"build": 1800, "tidy": 1800, "unit": 120, "e2e": 300, "promises": 300, "fuzz": 120,
             "lint": 120}
LONG_FACTOR = 8  # for the long form of tests that have one: CAIRN_LONG=1
FUZZ_SECONDS = 5
SHOWN_LINES = 40


class Test:
    def __init__(self, name, command, kind):
        self.name, self.command, self.kind = name, command, kind


def build_tests(build):
    jobs = f"-j{os.cpu_count() or 1}"
    make = ["make", "-k", "-s", jobs, f"BUILD={build}"]
    return [Test("build", make + ["all", "check-runtime", "tests", "fuzzers"], "build")]


def lint_tests(build):
    return [
        Test("lint/style", ["dev/check-style.sh"], "lint"),
        Test("lint/directions", ["dev/check-directions.py"], "lint"),
        Test("lint/runtime", ["dev/check-runtime.sh", f"{build}/libcairn.so"], "lint"),
        Test("lint/runtime-cxx", ["dev/check-runtime.sh", f"{build}/libcairn-cxx.so"], "lint"),
        Test("lint/tidy", ["make", "-k", "-s", f"BUILD={build}", "tidy"], "tidy"),
    ]


def unit_tests(build):
    tests = []
    for source in sorted((TOP / "tests/unit").rglob("*_test.c")):
        path = source.relative_to(TOP / "tests").with_suffix("")
        tests.append(Test(str(path), [str(build / "tests" / path)], "unit"))
    return tests


def script_tests(kind):
    scripts = sorted((TOP / "tests" / kind).glob("*"))
    return [Test(f"{kind}/{script.stem}", [str(script)], kind)
            for script in scripts if script.suffix in (".sh", ".py") and os.access(script, os.X_OK)]


def fuzz_tests(build):
    names = [source.stem.removesuffix("_fuzz")
             for source in sorted((TOP / "tests/fuzz").glob("*_fuzz.c"))]
    return [Test(f"fuzz/{name}", ["dev/fuzz.sh", str(build), str(FUZZ_SECONDS), name], "fuzz")
            for name in names]


def test_environment(build):
    environment = {name: value for name, value in os.environ.items() if name == "CAIRN_LONG" or
                   not name.startswith(("CAIRN_", "MAKE", "LD_PRELOAD", "GLIBC_TUNABLES"))}
    environment.update(
        BUILD_DIR=str(build), SOURCE_DIR=str(TOP), LC_ALL="C.UTF-8",
        PATH=f"{build}:{environment.get('PATH', '/usr/bin:/bin')}",
        PYTHONPATH=str(TOP / "tests/tools"), PYTHONDONTWRITEBYTECODE="1",
        ASAN_OPTIONS="detect_leaks=1:abort_on_error=0", UBSAN_OPTIONS="print_stacktrace=1")
    return environment


def time_limit_s(test):
    return TIMEOUT_S[test.kind] * (LONG_FACTOR if os.environ.get("CAIRN_LONG") else 1)


def run_process(test, build, log):
    """Runs the test in a session of its own; returns its status, or None after the time limit."""
    in_tree = test.kind in ("build", "lint", "tidy", "unit", "fuzz")
    scratch = tempfile.mkdtemp(prefix="cairn-test.")
    process = subprocess.Popen(test.command, cwd=TOP if in_tree else scratch, stdout=log,
                               stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                               env=test_environment(build), start_new_session=True)
    try:
        return process.wait(timeout=time_limit_s(test))
    except subprocess.TimeoutExpired:
        log.write(f"\nended by the runner after {time_limit_s(test)} s\n".encode())
        return None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        shutil.rmtree(scratch, ignore_errors=True)


def run_test(test, build):
    """Returns (status, seconds, path of the log)."""
    path = build / "test-logs" / (test.name.replace("/", "-") + ".log")
    path.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with open(path, "wb", buffering=0) as log:
        try:
            status = run_process(test, build, log)
        except OSError as problem:
            log.write(f"{problem}\n".encode())
            status = 1
    return status, time.monotonic() - start, path


def last_lines(path, count):
    return path.read_text(errors="replace").splitlines()[-count:]


class Tally:
    def __init__(self):
        self.passed, self.failed, self.not_here = 0, 0, []

    def add(self, test, status, seconds, log):
        word = {0: "ok", NOT_HERE: "not here"}.get(status, "FAIL")
        print(f"{word:8}  {test.name:44} {seconds:6.1f} s", flush=True)
        if word == "ok":
            self.passed += 1
        elif word == "not here":
            self.not_here.append((test.name, "".join(last_lines(log, 1)) or "no reason given"))
        else:
            self.failed += 1
            print("\n".join("    | " + line for line in last_lines(log, SHOWN_LINES)))
            print(f"    log: {log}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("names", nargs="*", help="run only tests whose name contains one of these")
    options = parser.parse_args()
    build = (TOP / options.build_dir).resolve()
    build.mkdir(parents=True, exist_ok=True)

    tally = Tally()
    for test in build_tests(build):
        tally.add(test, *run_test(test, build))
    tests = lint_tests(build) + unit_tests(build) + script_tests("promises") + script_tests("e2e")
    tests += fuzz_tests(build)
    if options.names:
        tests = [test for test in tests if any(part in test.name for part in options.names)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(run_test, test, build): test for test in tests}
        for done in concurrent.futures.as_completed(running):
            tally.add(running[done], *done.result())
    for name, reason in tally.not_here:
        print(f"cannot run here: {name}: {reason}")
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
