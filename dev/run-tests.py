#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs every test, one line each, and ends with the line `N passed, N failed`.

    dev/run-tests.py [--build-dir build] [NAME-PART ...]
    dev/run-tests.py --quick       those of tests/quick.txt, by what `make quick` builds; a line !NAME leaves one out
    dev/run-tests.py --tool FILE   those of tests/e2e and tests/promises, with FILE as the tool
    dev/run-tests.py --list        writes tests/list.txt anew
    dev/run-tests.py --costs       writes tests/costs.txt anew, after a run of all tests on a quiet machine

Tests: the build itself, the checks of dev/, unit binaries, tests/e2e/*, tests/promises/*, and a short
run of each fuzzer. A file is a test by its place and name, whatever its mode. tests/list.txt names all
tests: one that is missing there, or in the tree, fails every run, and so does a file in a test folder
that is neither a test nor a helper. Those that took longest the last time begin first (in a fresh tree
by tests/costs.txt), and a test begins as soon as what it needs is built: clang-tidy, by room, and the
fuzzers take their turns beside the others. Tests that mostly waited the last time run beside those
that compute, and take no turn from them. Each line has the seconds that a test took and those that it
kept a processor busy.

A test is a program; status 0 is a pass, 77 says that it cannot run here (its last line says why),
anything else is a failure. A test that cannot do a part of its work prints `skipped: REASON`. What was
skipped is listed before the end, and the last line becomes `N passed, N failed, N skipped`; a skipped
test is not counted as passed. Output is in build/test-logs/NAME.log, and the end of it is shown when a
test fails. Scripts run in a scratch directory of their own, all others in the root, with BUILD_DIR and
SOURCE_DIR set and the build directory in PATH. LC_ALL and TZ are the caller's."""

import argparse
import atexit
import concurrent.futures
import fnmatch
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
LIST = TOP / "tests/list.txt"
QUICK = TOP / "tests/quick.txt"
COSTS = TOP / "tests/costs.txt"  # what the longer tests took: the lines of SECONDS
COSTS_FROM_S = 4
# What lies in the folders of tests beside them.
HELPERS = {"unit": ("*.h",), "fuzz": ("*.h", "afl_main.c", "large_blocks.c", "corpus/*"), "promises": (), "e2e": ()}
NOT_HERE = 77
TOOL = "TOOL_FILE"  # variable with the tool's path, if it is not the one in the build directory
PART_SKIPPED = "skipped: "
TIMEOUT_S = {"build": 1800, "tidy": 1800, "unit": 300, "e2e": 600, "promises": 600, "fuzz": 300,
             "lint": 300}
LONG_FACTOR = 8  # for the long form of tests that have one: CAIRN_LONG=1
FUZZ_SECONDS = 30 if os.environ.get("CAIRN_LONG") else 2
SHOWN_LINES = 40
SECONDS = "seconds"  # beside the logs: how long each test took the last time, and how long it computed
MOSTLY_WAITS = 0.4  # of its time it computes less than this share
WAITING_JOBS = 2
UNKNOWN_S = {"tidy": 60, "promises": 30, "e2e": 20, "lint": 10, "fuzz": 9, "unit": 2, "build": 0}


class Test:
    def __init__(self, name, command, kind):
        self.name, self.command, self.kind = name, command, kind


def build_tests(build, is_quick):
    targets = ["quick-tests"] if is_quick else ["all", "check-runtime", "tests"]
    jobs = f"-j{(os.cpu_count() or 1) + 1}"  # one more than processors, as of the tests: some wait for the disk
    return [Test("build", make_command(build) + [jobs, *targets], "build")]


def make_command(build):
    place = build.relative_to(TOP) if build.is_relative_to(TOP) else build
    return ["make", "-k", "-s", f"BUILD={place}"]


def tidy_tests(build):
    """One for each room of the tool and of the runtime: together they take longest of all."""
    rooms, place = {}, make_command(build)[-1].removeprefix("BUILD=")
    for source in sorted([*TOP.glob("tool/**/*.c"), *TOP.glob("runtime/**/*.c")]):
        path = source.relative_to(TOP)
        rooms.setdefault(path.parent, []).append(f"{place}/tidy/{path.with_suffix('.ok')}")
    return [Test(f"lint/tidy/{room}", make_command(build) + ["BUILT=1"] + stamps, "tidy") for room, stamps in rooms.items()]


def lint_tests(build):
    return [
        Test("lint/style", ["dev/check-style.sh", "--since", f"{build}/style.ok"], "lint"),
        Test("lint/directions", ["dev/check-directions.py"], "lint"),
        Test("lint/runtime", ["dev/check-runtime.sh", f"{build}/libcairn.so"], "lint"),
        Test("lint/runtime-cxx", ["dev/check-runtime.sh", f"{build}/libcairn-cxx.so"], "lint"),
        Test("lint/runtime-musl", ["dev/check-runtime.sh", f"{build}/libcairn-musl.so"], "lint"),
        *tidy_tests(build),
    ]


def unit_tests(build, sources):
    names = [source.relative_to(TOP / "tests").with_suffix("") for source in sources]
    return [Test(str(name), [str(build / "tests" / name)], "unit") for name in names]


def script_tests(_, sources):
    return [Test(f"{source.parent.name}/{source.stem}", [sys.executable, str(source)],
                 source.parent.name) for source in sources]


def fuzz_tests(build, sources):
    names = [source.stem.removesuffix("_fuzz") for source in sources]
    return [Test(f"fuzz/{name}", ["dev/fuzz.sh", str(build), str(FUZZ_SECONDS), name], "fuzz")
            for name in names]


FOLDERS = {"unit": (unit_tests, "**/*_test.c"), "promises": (script_tests, "*.py"),
           "e2e": (script_tests, "*.py"), "fuzz": (fuzz_tests, "*_fuzz.c")}


def find_tests(build):
    tests = lint_tests(build)
    for folder, (make_tests, pattern) in FOLDERS.items():
        tests += make_tests(build, sorted((TOP / "tests" / folder).glob(pattern)))
    return tests


def stray_files():
    """Files in the folders of tests that are nobody's."""
    for folder, (_, pattern) in FOLDERS.items():
        place = TOP / "tests" / folder
        tests = set(place.glob(pattern))
        for path in sorted(set(place.rglob("*")) - tests):
            below = path.relative_to(place)
            is_helper = "__pycache__" in below.parts or any(
                fnmatch.fnmatch(str(below), helper) for helper in HELPERS[folder])
            if path.is_file() and not is_helper:
                yield path.relative_to(TOP)


def list_problems(tests):
    """What is wrong with the set of tests, a line each."""
    found, listed = sorted(test.name for test in tests), LIST.read_text().splitlines()
    lines = [f"{path}: neither a test by its name nor a helper (HELPERS in dev/run-tests.py)"
             for path in stray_files()]
    lines += [f"tests/list.txt lacks a test that is here: add the line {name}"
              for name in found if name not in listed]
    lines += [f"tests/list.txt has a test that is not here: restore it, or remove the line {name}"
              for name in listed if name not in found]
    if not lines and listed != found:
        lines = ["tests/list.txt is not sorted, or has a line twice: run dev/run-tests.py --list"]
    return lines


@functools.cache
def plain_top():
    """The tree, by a name without blanks and colons, which LD_PRELOAD and shell scripts divide."""
    if not re.search(r"[\s:]", str(TOP)):
        return TOP
    place = pathlib.Path(tempfile.mkdtemp(prefix="cairn-tree."))
    atexit.register(shutil.rmtree, place)
    place.chmod(0o755)
    (place / "tree").symlink_to(TOP)
    return place / "tree"


def test_environment(build):
    build = plain_top() / build.relative_to(TOP) if build.is_relative_to(TOP) else build
    environment = {name: value for name, value in os.environ.items() if name == "CAIRN_LONG" or
                   not name.startswith(("CAIRN_", "MAKE", "LD_PRELOAD", "GLIBC_TUNABLES"))}
    environment.update(
        BUILD_DIR=str(build), SOURCE_DIR=str(plain_top()), LC_ALL=os.environ.get("LC_ALL", "C.UTF-8"),
        PATH=f"{pathlib.Path(os.environ.get(TOOL, build / 'cairn')).parent}:{environment.get('PATH', '/usr/bin:/bin')}",
        PYTHONPATH=str(plain_top() / "tests/tools"), PYTHONDONTWRITEBYTECODE="1",
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
    late = threading.Event()
    limit = threading.Timer(time_limit_s(test), lambda: (late.set(), end_session(process.pid)))
    limit.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    limit.cancel()
    end_session(process.pid)
    shutil.rmtree(scratch, ignore_errors=True)
    if late.is_set():
        log.write(f"\nended by the runner after {time_limit_s(test)} s\n".encode())
    return None if late.is_set() else process.returncode, used.ru_utime + used.ru_stime


def end_session(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_test(test, build, logs):
    """Returns (status, seconds, seconds of a processor, path of the log)."""
    path = logs / (test.name.replace("/", "-") + ".log")
    start = time.monotonic()
    with open(path, "wb", buffering=0) as log:
        try:
            status, used = run_process(test, build, log)
        except OSError as problem:
            log.write(f"{problem}\n".encode())
            status, used = 1, 0
    return status, time.monotonic() - start, used, path


def last_lines(path, count):
    return path.read_text(errors="replace").splitlines()[-count:]


def read_costs(path):
    """Of each test: (seconds, seconds of a processor)."""
    try:
        return {name: (float(seconds), float(used)) for name, seconds, used in map(str.split, path.read_text().splitlines())}
    except (OSError, ValueError):
        return {}


def costs_of_last_run(logs):
    return {**read_costs(COSTS), **read_costs(logs / SECONDS)}


def cost_lines(costs):
    return "".join(f"{name} {seconds:.1f} {used:.1f}\n" for name, (seconds, used) in sorted(costs.items()))


def longest_first(tests, costs):
    """What is not known is taken for long."""
    return sorted(tests, key=lambda test: -costs.get(test.name, (UNKNOWN_S[test.kind],))[0])


def mostly_waits(test, costs):
    seconds, used = costs.get(test.name, (0, 0))
    return used < MOSTLY_WAITS * seconds


class Tally:
    def __init__(self, logs):
        self.logs, self.costs = logs, costs_of_last_run(logs)
        self.passed, self.failed, self.skipped = 0, 0, []

    def add(self, test, status, seconds, used, log):
        word = {0: "ok", NOT_HERE: "skipped"}.get(status, "FAIL")
        self.costs[test.name] = seconds, used
        print(f"{word:8}  {test.name:44} {seconds:6.1f} s {used:6.1f} s of a processor", flush=True)
        if word == "skipped":
            self.skipped.append((test.name, "".join(last_lines(log, 1)) or "no reason given"))
            return
        self.skipped += [(test.name + " in part", line.removeprefix(PART_SKIPPED))
                         for line in log.read_text(errors="replace").splitlines()
                         if line.startswith(PART_SKIPPED)]
        if word == "ok":
            self.passed += 1
        else:
            self.fail("\n".join("    | " + line for line in last_lines(log, SHOWN_LINES)))
            print(f"    log: {log}", flush=True)

    def fail(self, words):
        self.failed += 1
        print(words, flush=True)

    def finish(self):
        """Prints the last lines; returns the status of the run."""
        (self.logs / SECONDS).write_text(cost_lines(self.costs))
        for name, reason in self.skipped:
            print(f"skipped: {name}: {reason}")
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{skipped}")
        return 1 if self.failed or not self.passed else 0


def run_all(tests, options, build, tally):
    fuzzers = Test("build/fuzzers", make_command(build) + ["fuzzers"], "build")
    needs_fuzzers = any(test.kind == "fuzz" for test in tests) and not options.no_build
    costs = dict(tally.costs)
    with (concurrent.futures.ThreadPoolExecutor(options.jobs) as pool,
          concurrent.futures.ThreadPoolExecutor(WAITING_JOBS) as beside):
        # First in the queue, its tests last in it: nobody waits for it but they.
        making = pool.submit(run_test, fuzzers, build, tally.logs) if needs_fuzzers else None
        running = {making: fuzzers} if making else {}

        def run_after(test):
            if test.kind == "fuzz" and making:
                making.result()
            return run_test(test, build, tally.logs)
        for test in sorted(tests, key=lambda test: test.kind == "fuzz"):
            place = beside if options.jobs > 1 and mostly_waits(test, costs) else pool
            running[place.submit(run_after, test)] = test
        for done in concurrent.futures.as_completed(running):
            tally.add(running[done], *done.result())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--quick", action="store_true", help="only the tests of tests/quick.txt, without fuzzers")
    parser.add_argument("--tool", type=pathlib.Path, help="this tool, called cairn; only the tests with programs")
    parser.add_argument("--no-build", action="store_true", help="what is to be tested has been built")
    parser.add_argument("--except", action="append", default=[], dest="left_out", metavar="PART",
                        help="leave out tests whose name contains this")
    parser.add_argument("--logs", type=pathlib.Path, help="where logs go; build/test-logs")
    parser.add_argument("--list", action="store_true", help="write tests/list.txt anew and end")
    parser.add_argument("--costs", action="store_true", help="write tests/costs.txt anew and end")
    parser.add_argument("names", nargs="*", help="run only tests whose name contains one of these")
    options = parser.parse_args()
    build = (TOP / options.build_dir).resolve()
    place = build / "quick" if options.quick else build
    tests = find_tests(place)
    if options.list:
        LIST.write_text("".join(sorted(f"{test.name}\n" for test in tests)))
        return 0
    logs = options.logs or place / "test-logs"
    logs.mkdir(parents=True, exist_ok=True)
    if options.costs:
        names, costs = {test.name for test in tests}, costs_of_last_run(logs)
        COSTS.write_text(cost_lines({name: cost for name, cost in costs.items()
                                     if name in names and cost[0] >= COSTS_FROM_S}))
        return 0

    tally = Tally(logs)
    for problem in list_problems(tests):
        tally.fail(f"FAIL      {problem}")
    if options.quick:
        parts = QUICK.read_text().split()
        tests = [test for test in tests if any(map(test.name.startswith, parts)) and "!" + test.name not in parts]
    if options.names:
        tests = [test for test in tests if any(part in test.name for part in options.names)]
    tests = [test for test in tests if not any(part in test.name for part in options.left_out)]
    if options.tool:
        os.environ[TOOL] = str(options.tool.absolute())
        tests = [test for test in tests if test.kind in ("e2e", "promises")]
    if not options.no_build:
        for test in build_tests(build, options.quick):
            tally.add(test, *run_test(test, build, logs))
    run_all(longest_first(tests, tally.costs), options, place, tally)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
