#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs every test, one line each, and ends with the line `N passed, N failed`.

    dev/run-tests.py [--build-dir build] [NAME-PART ...]
    dev/run-tests.py --strict      without second tries
    dev/run-tests.py --quick       those of tests/quick.txt, by what `make quick` builds; a line !NAME leaves one out
    dev/run-tests.py --tool FILE   those of tests/e2e and tests/promises, with FILE as the tool
    dev/run-tests.py --list        writes tests/list.txt anew
    dev/run-tests.py --costs       writes tests/costs.txt anew, after a run of all tests on a quiet machine

Tests: the build itself, the checks of dev/, unit binaries, tests/e2e/*, tests/promises/*, and a short
run of each fuzzer. A file is a test by its place and name, whatever its mode. tests/list.txt names all
tests: one that is missing there, or in the tree, fails every run, and so does a file in a test folder
that is neither a test nor a helper. Those that took longest the last time begin first (in a fresh tree
by tests/costs.txt), and a test begins as soon as what it needs is built: clang-tidy, by room, and the
fuzzers take their turns beside the others. Of the tool clang-tidy sees what has changed since the commit before the
last one; all of it in `make check-long`, and where a test is asked for by name. Tests that mostly waited the last time run beside those
that compute, and take no turn from them. Each line has the seconds that a test took and those that it
kept a processor busy; build/test-costs.tsv has those of all tests that ran there, the dearest first.

A test is a program; status 0 is a pass, 77 says that it cannot run here (its last line says why),
anything else is a failure. A test that cannot do a part of its work prints `skipped: REASON`. What was
skipped and what failed is listed before the end, and the last line becomes `N passed, N failed, N
skipped`; a skipped test is not counted as passed. Output is in build/test-logs/NAME.log, and the end of it is shown when a
test fails. Scripts run in a scratch directory of their own, all others in the root, with BUILD_DIR and
SOURCE_DIR set and the build directory in PATH. LC_ALL and TZ are the caller's.

A test of tests/e2e that failed runs once more, alone, after all others: at most three in a run, and none
that died of a signal, reached its time limit, printed a sanitizer's report, or ended with status 70 (a
wrong figure, a program that was harmed). If it passes then, it counts as passed and is named above the
last line (`N unsteady: NAMES`); the log of the first try stays as NAME.first.log. tests/unsteady.tsv gets
a row for it: name, date, cause. A row without a cause fails every run from the second commit after it on.

Limits of time run slower on a busy machine (tests/tools/patience.py). A test that reaches its limit is ended
with all that it started. When the disk is full the run ends and says so."""

import argparse
import atexit
import concurrent.futures
import datetime
import errno
import fnmatch
import functools
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests/tools"))
sys.dont_write_bytecode = True
from patience import Patience  # noqa: E402

LIST = TOP / "tests/list.txt"
QUICK = TOP / "tests/quick.txt"
COSTS = TOP / "tests/costs.txt"  # how long the longer tests took and how long they computed, a line each
COSTS_FROM_S = 4
UNSTEADY = TOP / "tests/unsteady.tsv"
COMMITS_WITHOUT_CAUSE = 2
SECOND_TRIES = 3
GRAVE = 70  # status of a test that shows a wrong figure, or harm (tests/tools/cairn_test.py)
SANITIZER_REPORT = re.compile(rb"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|: runtime error: ")
FULL_BYTES = 32 << 20  # a disk with less room than this is full
# What lies in the folders of tests beside them.
HELPERS = {"unit": ("*.h",), "fuzz": ("*.h", "afl_main.c", "large_blocks.c", "corpus/*"), "promises": (), "e2e": ()}
NOT_HERE = 77
TOOL = "TOOL_FILE"  # variable with the tool's path, if it is not the one in the build directory
PART_SKIPPED = "skipped: "
TIMEOUT_S = {"build": 1800, "tidy": 1800, "unit": 300, "e2e": 600, "promises": 600, "fuzz": 300,
             "lint": 300}
IS_LONG = bool(os.environ.get("CAIRN_LONG"))  # make check-long
LONG_FACTOR = 8  # for the long form of tests that have one
FUZZ_SECONDS = 30 if IS_LONG else 1  # beside all that it starts from
SHOWN_LINES = 40
NAMED_LINES = 5  # the same once more, before the last line
LAST_COSTS = "test-costs.tsv"  # beside the logs' directory: the same of each test, as it ran last
COSTS_HEAD = "test\twall\tcpu\n"
MOSTLY_WAITS = 0.4  # of its time it computes less than this share
WAITING_JOBS = 2
UNKNOWN_S = {"tidy": 60, "promises": 30, "e2e": 20, "lint": 10, "fuzz": 6, "unit": 2, "build": 0}


def git(*arguments):
    """The answer of git; nothing where there is none, or it does not know."""
    try:
        done = subprocess.run(["git", *arguments], cwd=TOP, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


class Test:
    def __init__(self, name, command, kind, is_left=False):
        """`is_left`: to `make check-long`, or to who asks for it by name."""
        self.name, self.command, self.kind, self.is_left = name, command, kind, is_left
        self.limit_s = TIMEOUT_S[kind] * (LONG_FACTOR if IS_LONG else 1)


def build_tests(build, is_quick):
    targets = ["quick-tests"] if is_quick else ["all", "check-runtime", "tests"]
    jobs = f"-j{(os.cpu_count() or 1) + 1}"  # one more than processors, as of the tests: some wait for the disk
    return [Test("build", make_command(build) + [jobs, *targets], "build")]


def make_command(build):
    place = build.relative_to(TOP) if build.is_relative_to(TOP) else build
    return ["make", "-k", "-s", f"BUILD={place}"]


def changed_sources():
    """Paths of the tool that this change is about: what differs from the commit before the last one (of a merge, the
    branch that it was made on), and what git does not know yet. None without git."""
    found = set()
    for command in (["diff", "--name-only", "--diff-filter=d", "HEAD^", "--", "tool"],
                    ["ls-files", "--others", "--exclude-standard", "--", "tool"]):
        found.update(git(*command).splitlines())
    return found


def tidy_tests(build, is_whole):
    """One for each room of the tool and of the runtime: together they take longest of all. `make check` has all of the
    runtime, which lives in the programs of others, and of the tool what has changed."""
    rooms, place = {}, make_command(build)[-1].removeprefix("BUILD=")
    changed = set() if is_whole else changed_sources()
    for source in sorted([*TOP.glob("tool/**/*.c"), *TOP.glob("runtime/**/*.c")]):
        path = source.relative_to(TOP)
        stamps = rooms.setdefault(path.parent, [])
        if is_whole or path.parts[0] == "runtime" or str(path) in changed:
            stamps.append(f"{place}/tidy/{path.with_suffix('.ok')}")
    return [Test(f"lint/tidy/{room}", make_command(build) + ["BUILT=1"] + stamps, "tidy", is_left=not stamps)
            for room, stamps in rooms.items()]


def lint_tests(build, is_whole):
    return [
        Test("lint/style", ["dev/check-style.sh", "--since", f"{build}/style.ok"], "lint"),
        Test("lint/directions", ["dev/check-directions.py"], "lint"),
        Test("lint/spelling", ["dev/check-spelling.sh"], "lint"),
        Test("lint/prose", ["dev/check-prose.sh"], "lint"),
        Test("lint/runtime", ["dev/check-runtime.sh", f"{build}/libcairn.so"], "lint"),
        Test("lint/runtime-cxx", ["dev/check-runtime.sh", f"{build}/libcairn-cxx.so"], "lint"),
        Test("lint/runtime-musl", ["dev/check-runtime.sh", f"{build}/libcairn-musl.so"], "lint"),
        *([Test("lint/runtime-bare", ["dev/check-runtime.sh", f"{build}/libcairn-bare.so"], "lint")]
          if platform.machine() == "x86_64" else []),
        *tidy_tests(build, is_whole),
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


def find_tests(build, is_whole=True):
    tests = lint_tests(build, is_whole)
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
    return lines + list(unsteady_problems(found))


def read_unsteady():
    """The rows of tests/unsteady.tsv: [name, date, cause]."""
    return [line.split("\t") for line in UNSTEADY.read_text().splitlines()[1:]]


def commits_since(words):
    """Commits after the one that wrote the words into tests/unsteady.tsv; 0 where that is not known."""
    commit = git("log", "-1", "--format=%H", f"-S{words}", "--", str(UNSTEADY))
    return int(git("rev-list", "--count", f"{commit}..HEAD") or 0) if commit else 0


def unsteady_problems(found):
    for row in read_unsteady():
        name, _, cause = row if len(row) == 3 else (row[0], "", "")
        if len(row) != 3 or name not in found:
            yield f"tests/unsteady.tsv: \"{name}\": a row is the name of a test, a date and a cause, by tabs"
        elif not cause.strip() and commits_since("\t".join(row[:2])) >= COMMITS_WITHOUT_CAUSE:
            yield f"tests/unsteady.tsv: {name} was unsteady and is so without a cause: find it, mend it, write it down"


def note_unsteady(names):
    """Adds a row without a cause for each that is not there; what is there has its cause, or is waited for."""
    known = {row[0] for row in read_unsteady()}
    today = datetime.date.today().isoformat()
    with open(UNSTEADY, "a", encoding="utf-8") as file:
        file.writelines(f"{name}\t{today}\t\n" for name in names if name not in known)


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


def run_process(test, build, log):
    """Runs the test in a session of its own; returns its status, or None after the time limit, and the processor
    seconds that it took."""
    in_tree = test.kind in ("build", "lint", "tidy", "unit", "fuzz")
    scratch = tempfile.mkdtemp(prefix="cairn-test.")
    process = subprocess.Popen(test.command, cwd=TOP if in_tree else scratch, stdout=log,
                               stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                               env=test_environment(build), start_new_session=True)
    over, late = threading.Event(), threading.Event()
    watcher = threading.Thread(target=end_at_limit, args=(process.pid, scratch, Patience(test.limit_s), over, late))
    watcher.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    over.set()
    watcher.join()
    end_session(process.pid)
    shutil.rmtree(scratch, ignore_errors=True)
    if late.is_set():
        log.write(f"\nended by the runner after {test.limit_s} s\n".encode())
    return None if late.is_set() else process.returncode, used.ru_utime + used.ru_stime


def end_at_limit(pid, scratch, patience, over, late):
    while not over.wait(1):
        if not patience.lasts():
            late.set()
            for one in started_by(pid, scratch):
                end_process(one)
            end_session(pid)
            return


def started_by(pid, scratch):
    """The test's processes that run: its descendants, and whatever works in its scratch directory."""
    parents, found = {}, {pid}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
            if pathlib.Path(os.readlink(path / "cwd")).is_relative_to(scratch):
                found.add(int(path.name))
        except (OSError, ValueError, IndexError):
            pass
    size = 0
    while len(found) > size:
        size = len(found)
        found |= {one for one, parent in parents.items() if parent in found}
    return found


def end_process(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def end_session(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_test(test, build, logs):
    """Returns (status, seconds, seconds of a processor, path of the log)."""
    path = logs / (test.name.replace("/", "-") + ".log")
    start = time.monotonic()
    status, used = 1, 0
    try:
        with open(path, "wb", buffering=0) as log:
            try:
                status, used = run_process(test, build, log)
            except OSError as problem:
                log.write(f"{problem}\n".encode())
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            raise
    return status, time.monotonic() - start, used, path


def full_place(logs):
    """A directory of the run on whose disk there is no room; None if there is none."""
    for place in (logs, tempfile.gettempdir()):
        if shutil.disk_usage(place).free < FULL_BYTES:
            return place
    return None


def may_run_again(test, status, log):
    """A failure that may be the machine's and not the product's."""
    return (test.kind == "e2e" and status is not None and status > 0 and status != GRAVE
            and not SANITIZER_REPORT.search(log.read_bytes()))


def last_lines(path, count):
    return path.read_text(errors="replace").splitlines()[-count:]


def read_costs(path):
    """Of each test: (seconds, seconds of a processor)."""
    try:
        rows = path.read_text().removeprefix(COSTS_HEAD).splitlines()
        return {name: (float(seconds), float(used)) for name, seconds, used in map(str.split, rows)}
    except (OSError, ValueError):
        return {}


def costs_of_last_run(logs):
    return {**read_costs(COSTS), **read_costs(logs.with_name(LAST_COSTS))}


def write_last_costs(logs, costs):
    """Renews the rows of these tests."""
    path = logs.with_name(LAST_COSTS)
    rows = sorted({**read_costs(path), **costs}.items(), key=lambda row: -row[1][1])
    path.write_text(COSTS_HEAD + "".join(f"{name}\t{seconds:.1f}\t{used:.1f}\n" for name, (seconds, used) in rows))


def cost_lines(costs):
    return "".join(f"{name} {seconds:.1f} {used:.1f}\n" for name, (seconds, used) in sorted(costs.items()))


def longest_first(tests, costs):
    """What is not known is taken for long."""
    return sorted(tests, key=lambda test: -costs.get(test.name, (UNKNOWN_S[test.kind],))[0])


def mostly_waits(test, costs):
    seconds, used = costs.get(test.name, (0, 0))
    return used < MOSTLY_WAITS * seconds


class Tally:
    def __init__(self, logs, is_strict):
        self.logs, self.is_strict, self.costs = logs, is_strict, {}
        self.passed, self.failed, self.skipped = 0, 0, []
        self.again, self.unsteady, self.failures, self.left, self.not_run = [], [], [], [], 0

    def add(self, test, status, seconds, used, log):
        word = {0: "ok", NOT_HERE: "skipped"}.get(status, "FAIL")
        self.costs[test.name] = seconds, used
        print(f"{word:8}  {test.name:44} {seconds:6.1f} s {used:6.1f} s of a processor", flush=True)
        if word == "skipped":
            self.skipped.append((test.name, "".join(last_lines(log, 1)) or "no reason given"))
            return
        if word == "FAIL":
            self.show(log)
            if len(self.again) < SECOND_TRIES and not self.is_strict and may_run_again(test, status, log):
                self.again.append(test)
            else:
                self.failed += 1
                self.failures.append((test.name, last_lines(log, NAMED_LINES) if log.exists() else []))
            return
        self.skipped += [(test.name + " in part", line.removeprefix(PART_SKIPPED))
                         for line in log.read_text(errors="replace").splitlines()
                         if line.startswith(PART_SKIPPED)]
        self.passed += 1

    def show(self, log):
        if log.exists():
            print("\n".join("    | " + line for line in last_lines(log, SHOWN_LINES)))
        print(f"    log: {log}", flush=True)

    def try_again(self, build):
        """Gives those that may their second try; nothing else runs meanwhile."""
        tests, self.again, self.is_strict = self.again, [], True
        for test in tests:
            log = self.logs / (test.name.replace("/", "-") + ".log")
            log.rename(log.with_suffix(".first.log"))
            before = self.failed
            self.add(test, *run_test(test, build, self.logs))
            if self.failed == before:
                self.unsteady.append(test.name)

    def fail(self, words):
        self.failed += 1
        print(words, flush=True)

    def finish(self):
        """Prints the last lines; returns the status of the run."""
        if place := full_place(self.logs):
            self.fail(f"FAIL      the disk of {place} is full: {self.not_run} tests did not run; make room and begin anew")
        else:
            write_last_costs(self.logs, self.costs)
        print(f"{sum(used for _, used in self.costs.values()):.0f} s of a processor in all")
        if self.left:
            print(f"left to make check-long: {' '.join(self.left)}")
        for name, reason in self.skipped:
            print(f"skipped: {name}: {reason}")
        for name, lines in self.failures:  # once more, since the first part of a long output may be cut off
            print(f"failed: {name}")
            print("\n".join("    | " + line for line in lines))
        if self.unsteady:
            note_unsteady(self.unsteady)
            print(f"{len(self.unsteady)} unsteady: {' '.join(self.unsteady)}")
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{skipped}")
        return 1 if self.failed or not self.passed else 0


def run_all(tests, options, build, tally):
    fuzzers = Test("build/fuzzers", make_command(build) + ["fuzzers"], "build")
    needs_fuzzers = any(test.kind == "fuzz" for test in tests) and not options.no_build
    costs = costs_of_last_run(tally.logs)
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
            if done.cancelled():
                continue
            tally.add(running[done], *done.result())
            if full_place(tally.logs):
                tally.not_run += sum(one.cancel() for one in running)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--quick", action="store_true", help="only the tests of tests/quick.txt, without fuzzers")
    parser.add_argument("--strict", action="store_true", help="a test that failed gets no second try")
    parser.add_argument("--tool", type=pathlib.Path, help="this tool, called cairn; only the tests with programs")
    parser.add_argument("--no-build", action="store_true", help="what is to be tested has been built")
    parser.add_argument("--except", action="append", default=[], dest="left_out", metavar="PART",
                        help="leave out tests whose name contains this")
    parser.add_argument("--limit", type=float, help="the most seconds that a test may take, in place of its kind's")
    parser.add_argument("--logs", type=pathlib.Path, help="where logs go; build/test-logs")
    parser.add_argument("--list", action="store_true", help="write tests/list.txt anew and end")
    parser.add_argument("--costs", action="store_true", help="write tests/costs.txt anew and end")
    parser.add_argument("names", nargs="*", help="run only tests whose name contains one of these")
    options = parser.parse_args()
    build = (TOP / options.build_dir).resolve()
    place = build / "quick" if options.quick else build
    tests = find_tests(place, IS_LONG or bool(options.names) or options.list or options.costs)
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

    tally = Tally(logs, options.strict)
    for problem in list_problems(tests):
        tally.fail(f"FAIL      {problem}")
    if options.quick:
        parts = QUICK.read_text().split()
        tests = [test for test in tests if any(map(test.name.startswith, parts)) and "!" + test.name not in parts]
    if options.names:
        tests = [test for test in tests if any(part in test.name for part in options.names)]
    tests = [test for test in tests if not any(part in test.name for part in options.left_out)]
    tally.left, tests = [test.name for test in tests if test.is_left], [test for test in tests if not test.is_left]
    for test in tests:
        test.limit_s = options.limit or test.limit_s
    if options.tool:
        os.environ[TOOL] = str(options.tool.absolute())
        tests = [test for test in tests if test.kind in ("e2e", "promises")]
    if not options.no_build:
        for test in build_tests(build, options.quick):
            tally.add(test, *run_test(test, build, logs))
    run_all(longest_first(tests, costs_of_last_run(logs)), options, place, tally)
    tally.try_again(place)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
