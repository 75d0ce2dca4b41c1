# SPDX-License-Identifier: Apache-2.0
"""What the tests in tests/e2e and tests/promises share: run a program plainly, under cairn, under the
counting preload or under DHAT, and compare. A test calls check(...) as often as it likes and ends with
finish(); it runs in a scratch directory that the runner (dev/run-tests.py) makes and removes."""

import gc
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import counts
import dhat_totals
from patience import Patience, load_factor

SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", SOURCE / "build"))
BUILT_CAIRN = str(BUILD / "cairn")
CAIRN = os.environ.get("TOOL_FILE", BUILT_CAIRN)
RUNTIME = str(BUILD / "libcairn.so")
CHECK_RUNTIME = str(BUILD / "check/libcairn.so")
STEADY = str(BUILD / "tests/steady_preload.so")
COUNTER = str(BUILD / "tests/count_preload.so")
PROGRAMS = BUILD / "tests/programs"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"
NOT_HERE = 77
GRAVE = 70  # the runner (dev/run-tests.py) gives no second try: a figure is wrong, or the program was harmed
DEATHS = {int(one) for one in (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS)}


def load():
    """By how much what runs beside this test makes it slower."""
    return load_factor()


# Limits of a quiet machine, which only a hang reaches; they grow with the load. The runner has one for a whole test.
TIMEOUT_S = 240
PATIENCE_S = 120 * load()  # for what takes no time on a quiet machine
# `make check-long`: the whole of a test of which `make check` has a representative part.
IS_LONG = bool(os.environ.get("CAIRN_LONG"))

# Go's own packages, compiled once for all tests.
GO_CACHE = str(BUILD / "go-cache" if os.access(BUILD, os.W_OK) else pathlib.Path.cwd() / "go-cache")

_failures = []
_grave = []

# A report has up to 200 MB: to look for garbage while it is read takes half of the time, and a test ends soon.
gc.disable()

# Whoever started the tests in the background had SIGINT ignored; programs look at that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def format_number(name, header="format.h"):
    """What a header of the recording's format defines NAME as."""
    text = (SOURCE / "format" / header).read_text("utf-8")
    return int(re.search(rf"^#define {name} (\w+?)u?\b", text, re.M)[1], 0)


def program(name, *arguments):
    return [str(PROGRAMS / name), *map(str, arguments)]


def check(is_right, message, is_grave=False):
    """Notes a failure. `is_grave`: a wrong figure of the product, or harm to a program; once is too often."""
    if not is_right:
        _failures.append(message)
        _grave.extend([message] if is_grave else [])
        print("FAIL:", message, flush=True)
    return is_right


def check_equal(what, got, wanted, is_grave=False):
    # The words are made for a failure alone: those of large values take longer than to compare them.
    return got == wanted or check(False, f"{what}: {got!r}, should be {wanted!r}", is_grave or is_death(got))


def is_death(status):
    """A status, as subprocess or a shell says it, of a program that a fault ended."""
    return isinstance(status, int) and (-status in DEATHS or status - 128 in DEATHS)


def wait_until(is_true, seconds=120, pause=0.01):
    """Asks again and again; the last answer. Tests wait for what they need, never for a time; what does not come fails."""
    start, patience = time.monotonic(), Patience(seconds)
    while not (answer := is_true()) and patience.lasts():
        time.sleep(pause)
    caller = sys._getframe(1)
    waited = f"waited {time.monotonic() - start:.0f} s for what did not come"
    check(answer, f"{caller.f_code.co_filename}:{caller.f_lineno}: {waited}")
    return answer


def is_in_state(pid, letters):
    """By the kernel's letters: R runs, S sleeps, D waits in the kernel, T is stopped, Z has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in letters
    except OSError:
        return False


def is_called(pid, name):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read() == name + "\n"
    except OSError:
        return False


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def finish():
    if _failures:
        print(f"{len(_failures)} checks failed")
        sys.exit(GRAVE if _grave else 1)
    print("all checks hold")
    sys.exit(0)


def cannot_run_here(reason):
    print(reason)
    sys.exit(NOT_HERE)


def skip_part(reason):
    """The runner lists it; the rest of the test goes on."""
    print("skipped:", reason)


def need(*commands):
    for command in commands:
        if not shutil.which(command):
            cannot_run_here(f"{command} is not installed")


def need_attach():
    """Programs that run are changed on x86-64, and on emulated machines of aarch64 with a tool made for that
    (dev/check-machine.sh)."""
    if os.uname().machine != "x86_64" and "EMULATED_MACHINE" not in os.environ:
        cannot_run_here("cairn attach is tried on x86-64")


def environment(extra=None):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith("CAIRN_") and name not in ("LD_PRELOAD", "COUNT_PRELOAD_OUT")}
    env.update(PYTHONHASHSEED="0", GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null",
               XDG_CACHE_HOME=os.path.join(os.getcwd(), "cache"))
    env.update(extra or {})
    return env


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def check_like(self, what, other):
        """Status and both streams are those of `other`."""
        check_equal(f"{what}: status", self.status, other.status, is_grave=True)
        for name in ("out", "err"):
            mine, theirs = getattr(self, name), getattr(other, name)
            check(mine == theirs,
                  f"{what}: std{name} differs: {shorten(mine)} should be {shorten(theirs)}", is_grave=True)


class Process(subprocess.Popen):
    """A program that runs beside the test. A test that fails in its `with` does not wait for it."""

    def __exit__(self, kind, value, trace):
        if kind:
            self.kill()
        super().__exit__(kind, value, trace)


def shorten(data):
    return repr(data if len(data) <= 300 else data[:150] + b" ... " + data[-150:])


def communicate(process, stdin=None, seconds=PATIENCE_S):
    """As the process' own, but with a limit that gives way on a busy machine."""
    patience = Patience(seconds)
    while True:
        try:
            return process.communicate(stdin, timeout=min(seconds, 1))
        except subprocess.TimeoutExpired:
            stdin = None  # the process keeps what it was given
            if not patience.lasts():
                raise


def run(argv, env=None, stdin=None, timeout=TIMEOUT_S, cwd=None):
    """Runs argv; returns its Result, with 128+N for a signal as a shell says it."""
    with subprocess.Popen(argv, env=environment(env), cwd=cwd, stdout=subprocess.PIPE,
                          stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as process:
        try:
            out, err = communicate(process, stdin, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            check(False, f"{' '.join(argv)[:200]}: no end after {timeout} s")
    status = process.returncode
    return Result(128 - status if status < 0 else status, out, err)


def run_cairn(*arguments, **options):
    return run([CAIRN, *(str(one) if isinstance(one, int) else one for one in arguments)], **options)


def asked_calls(call, argv, env=None):
    """Runs argv under strace; returns its Result and how often it asked the kernel for `call`. Lines are counted:
    strace 6.1 may end by SIGSEGV where it counts itself (-c)."""
    lines = fresh_path("strace")
    result = run(["strace", "-f", "-qq", "-e", f"trace={call}", "-e", "signal=none", "-o", lines, *argv], env=env)
    with open(lines, encoding="utf-8", errors="replace") as file:
        return result, sum(f" {call}(" in line for line in file)


def fresh_path(name):
    """A path that does not exist yet, in the scratch directory."""
    for number in range(1000):
        path = pathlib.Path.cwd() / f"{name}.{number}"
        if not path.exists() and not list(path.parent.glob(path.name + ".*")):
            return str(path)
    raise RuntimeError("no free name")


def record(argv, python=False, options=(), **how):
    """Runs argv under `cairn run -q`; returns (Result, path of the recording)."""
    path = fresh_path("recording") + ".cairn"
    wanted = [*options, "--python"] if python else options
    return run([CAIRN, "run", "-q", *wanted, "-o", path, "--", *argv], **how), path


def loaded_library():
    """The library that the tool preloads: its own file, or the one beside it."""
    if CAIRN == BUILT_CAIRN:
        return RUNTIME
    return run_cairn("env").out.decode().split("'")[1]


def own_tool():
    """From now on the tool and its libraries are copies, files of this test alone: the kernel sets a tracer's probes in
    all processes that have the file, and valgrind would execute them in another test. Returns the library."""
    global CAIRN
    directory = pathlib.Path(fresh_path("tool"))
    directory.mkdir()
    for file in [loaded_library(), *pathlib.Path(CAIRN).parent.glob("libcairn*.so"), CAIRN]:
        shutil.copy(file, directory)
    CAIRN = str(directory / "cairn")
    return str(directory / "libcairn.so")


def record_alone(argv, env=None, preload=RUNTIME, **options):
    """Runs argv with the preload alone; returns (Result, path of the recording)."""
    path = fresh_path("alone") + ".cairn"
    extra = {"LD_PRELOAD": preload, "CAIRN_OUTPUT": path, **(env or {})}
    return run(argv, env=extra, **options), path


def report(path, *arguments):
    """The JSON report of a recording; an empty one after a failed check if there is none."""
    result = run_cairn("report", "--json", *arguments, str(path))
    if not check_equal(f"cairn report {path}: status", result.status, 0):
        print(result.err.decode(errors="replace"))
        return None
    return json.loads(result.out)


def answer(path, view, *arguments):
    """The answer of a view (docs/reference/json.md#answers) as one dictionary: the rows by the view's name, what is known
    of all of it by its keys, and so the evidence of the first claim; empty after a failed check."""
    found = report(path, "--view", view, *arguments)
    if not found:
        return None
    evidence = found["claims"][0]["evidence"] if found["claims"] else {}
    return {**evidence, **found["facts"], view: found["rows"], "title": found["title"], "claims": found["claims"]}


def export(path, form, *arguments):
    """The recording in another tool's format, as bytes; empty after a failed check."""
    result = run_cairn("export", "--format", form, *arguments, str(path))
    if not check_equal(f"cairn export --format {form} {path}: status", result.status, 0):
        print(result.err.decode(errors="replace"))
    return result.out


def export_file(path, form, *arguments):
    """The same as a new file in the scratch directory; its path."""
    name = fresh_path(form)
    result = run_cairn("export", "--format", form, "-o", name, *arguments, str(path))
    if not check_equal(f"cairn export --format {form} -o: status", result.status, 0):
        print(result.err.decode(errors="replace"))
    return name


def sums_by_measure(found):
    """What the stacks of a report add up to, by the name of the measure."""
    stacks = found["stacks"]
    return {"peak": sum(s["peak_bytes"] for s in stacks),
            "exit": sum(s["at_exit_bytes"] for s in stacks),
            "allocated": sum(s["allocated_bytes"] for s in stacks),
            "calls": sum(s["allocations"] for s in stacks)}


def count(argv, env=None, **options):
    """Runs argv with the counting preload; returns (Result, {file suffix: counts})."""
    prefix = fresh_path("count")
    result = run(argv, env={"LD_PRELOAD": COUNTER, "COUNT_PRELOAD_OUT": prefix, **(env or {})},
                 **options)
    return result, counts.read_all(prefix)


def dhat(argv, env=None, **options):
    """Runs argv under DHAT with whole stacks; returns its list of stacks. Only libc's allocation
    functions are replaced by DHAT's, not those of a preload in `env`."""
    path = fresh_path("dhat")
    command = ["valgrind", "--tool=dhat", "--run-libc-freeres=no", "--run-cxx-freeres=no",
               "--num-callers=500", "--soname-synonyms=somalloc=nouserintercepts",
               f"--dhat-out-file={path}", "--", *argv]
    result = run(command, env=env, **options)
    if not os.path.exists(path):
        raise RuntimeError("no output of DHAT: " + result.err.decode(errors="replace"))
    return dhat_totals.read_stacks(path)


def check_totals(what, found, wanted, with_peak=True):
    """Totals of a report against one process' counts of the counting preload."""
    if found is None:
        return
    totals = found["totals"]
    pairs = [
        ("allocations", totals["allocations"], wanted["allocations"]),
        ("allocated bytes", totals["allocated_bytes"], wanted["allocated_bytes"]),
        ("frees", totals["frees"], wanted["frees"]),
        ("freed bytes", totals["freed_bytes"], wanted["freed_bytes"]),
        ("failed", totals["failed"], wanted["failed"]),
        ("bytes at exit", found["at_exit"]["bytes"], wanted["live_bytes"]),
        ("blocks at exit", found["at_exit"]["blocks"], wanted["live_blocks"]),
    ]
    if with_peak:
        pairs += [("peak bytes", found["peak"]["bytes"], wanted["peak_bytes"]),
                  ("peak blocks", found["peak"]["blocks"], wanted["peak_blocks"])]
    for name, got, expected in pairs:
        check_equal(f"{what}: {name}", got, expected, is_grave=True)


def check_sums(what, found):
    """The stacks of a whole report add up to its totals, and the threads do."""
    if found is None:
        return
    stacks, threads, totals = found["stacks"], found["threads"], found["totals"]
    pairs = [
        ("allocations", sum(s["allocations"] for s in stacks), totals["allocations"]),
        ("allocated_bytes", sum(s["allocated_bytes"] for s in stacks), totals["allocated_bytes"]),
        ("freed_bytes", sum(s["freed_bytes"] for s in stacks), totals["freed_bytes"]),
        ("peak_bytes", sum(s["peak_bytes"] for s in stacks), found["peak"]["bytes"]),
        ("at_exit_bytes", sum(s["at_exit_bytes"] for s in stacks), found["at_exit"]["bytes"]),
        ("at_exit_blocks", sum(s["at_exit_blocks"] for s in stacks), found["at_exit"]["blocks"]),
        ("threads' allocations", sum(t["allocations"] for t in threads), totals["allocations"]),
        ("threads' allocated_bytes", sum(t["allocated_bytes"] for t in threads),
         totals["allocated_bytes"]),
    ]
    for name, got, expected in pairs:
        check_equal(f"{what}: sum of {name}", got, expected, is_grave=True)


def check_nothing_lost(what, found):
    if found is None:
        return
    lost = {reason: number for reason, number in found["trust"]["lost"].items() if number}
    check_equal(f"{what}: lost", lost, {}, is_grave=True)


def functions(stack):
    """Names of a stack's frames, innermost first; '?' where there is none."""
    return [frame.get("function") or "?" for frame in stack["frames"]]


def stacks_through(found, *names):
    """Stacks on which all the functions occur."""
    return [stack for stack in found["stacks"] if set(names) <= set(functions(stack))]
