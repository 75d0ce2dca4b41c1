#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --python: the frames of Python code in the stacks of objects are those that Python itself
tells at the same time (sys._getframe) and that tracemalloc noted, in calls of every kind; with
threads, without the interpreter's lock, in forked children. Other Pythons are refused by name."""

import json
import os
import pathlib
import re
import subprocess

import cairn_test as t

SCRIPT = r'''
import ctypes, functools, json, os, sys, threading

if os.environ.get("TRACED"):
    import tracemalloc
    tracemalloc.start(200)

kept, told = [], {}
def tell(size):
    """The frames that called, innermost first, as Python knows them."""
    frame, frames = sys._getframe(1), []
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    told[size] = frames

def plain(size):
    kept.append(bytearray(size)); tell(size)

class Store:
    def __init__(self, size):
        self.size = size + 20
        kept.append(bytearray(size)); tell(size)
    @classmethod
    def make(cls, size):
        return cls(size)
    @property
    def large(self):
        kept.append(bytearray(100203)); tell(100203)
    def __enter__(self):
        kept.append(bytearray(100303)); tell(100303)
    def __exit__(self, *about):
        kept.append(bytearray(100403)); tell(100403)
    def __del__(self):
        kept.append(bytearray(self.size)); tell(self.size)

def generate(size):
    for i in range(2):
        if i: kept.append(bytearray(size)); tell(size)
        yield i

def recurse(depth, size):
    if depth: return recurse(depth - 1, size)
    kept.append(bytearray(size)); tell(size)

def key(x):
    if x == 3: kept.append(bytearray(100603)); tell(100603)
    return -x

def delegate(size):
    yield from generate(size)

def fail(size):
    try:
        raise ValueError
    except ValueError:
        kept.append(bytearray(size)); tell(size)
    finally:
        kept.append(bytearray(size + 100)); tell(size + 100)

def decorate(function):
    @functools.wraps(function)
    def outer(*arguments):
        return function(*arguments)
    return outer

@decorate
def decorated(size):
    return [plain(size) for _ in range(1)]

async def inner(size):
    kept.append(bytearray(size)); tell(size)
async def outer(size):
    await inner(size)

def größe(size):
    kept.append(bytearray(size)); tell(size)

def run():
    plain(100003)
    Store.make(100103).large
    with Store(100153): pass
    list(generate(100703))
    recurse(40, 100803)
    sorted(range(5), key=key)
    list(map(lambda size: plain(size), [100903]))
    list(delegate(101003))
    fail(101103)
    decorated(101303)
    functools.partial(plain, 101403)()
    try:
        outer(101503).send(None)
    except StopIteration:
        pass
    for number in range(50):
        space = {"plain": plain}
        exec(compile(f"def made_{number:02}(size):\n    plain(size)\n" + "\n" * number +
                     f"made_{number:02}({102003 + 2 * number})\n", f"made-{number:02}.py", "exec"), space)
    größe(103003)
    threads = [threading.Thread(target=plain, args=[104003]) for i in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

def without_lock(size):
    allocate = ctypes.CDLL(None).malloc  # gives the lock back meanwhile
    allocate.restype = ctypes.c_void_p
    allocate.argtypes = [ctypes.c_size_t]
    tell(size); kept.append(allocate(size))
run()
if os.environ.get("TRACED"):
    snapshot = tracemalloc.take_snapshot()
    traced = {trace.size: [[frame.filename, frame.lineno] for frame in reversed(trace.traceback)]
              for trace in snapshot.traces if trace.size > 100000}
    json.dump(traced, open(sys.argv[1], "w"))
    sys.exit()
without_lock(105003)
thread = threading.Thread(target=without_lock, args=[105103]); thread.start(); thread.join()
child = os.fork()
if not child:
    without_lock(106003)
    plain(106103)
    json.dump(told, open(sys.argv[1] + ".child", "w"))
    os._exit(0)
os.waitpid(child, 0)
json.dump(told, open(sys.argv[1], "w"))
'''
HERE = pathlib.Path.cwd()
script = HERE / "kinds.py"
script.write_text(SCRIPT)


def version_of(python):
    return subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                          capture_output=True, text=True, check=False).stdout.strip()


def is_python(frame):
    return frame["function"] and frame["file"] and (
        frame["file"].endswith(".py") or frame["file"].startswith("<frozen"))


def found_frames(recording):
    """By size of the block: the frames of Python code, innermost first."""
    report = t.report(recording, "--focus", "PyByteArray_Resize|without_lock") or {"stacks": []}
    found = {}
    for stack in report["stacks"]:
        size = stack["allocated_bytes"] // max(stack["allocations"], 1)
        frames = [[f["function"], f["file"], f["line"]] for f in stack["frames"] if is_python(f)]
        if size > 100000 and frames:
            found[size] = (frames, stack["frames"])
    return found


def check_frames(what, found, told):
    for size, frames in told.items():
        size = int(size)
        got = found.get(size + 1) or found.get(size) or (None, None)  # a bytearray ends in a NUL
        t.check_equal(f"{what}: frames of the block of {size}", got[0], frames)


def check_program(python):
    result, recording = t.record([python, str(script), str(HERE / "told")], python=True)
    if not t.check_equal(f"{python}: status", (result.status, result.err), (0, b"")):
        return
    parts = sorted(pathlib.Path(recording).glob("*.cairn"))
    t.check_equal("processes", len(parts), 2)
    told = json.loads((HERE / "told").read_text())
    child = json.loads((HERE / "told.child").read_text())
    founds = [found_frames(part) for part in parts]
    parent = next(found for found in founds if 100004 in found and 106104 not in found)
    forked = next(found for found in founds if 106104 in found)
    t.check(len(told) > 70, f"blocks told of: {len(told)}")
    check_frames("parent", parent, told)
    check_frames("child", forked, {size: child[size] for size in ("106003", "106103")})
    # the interpreter's C functions stand where they belong: sorted between its caller and the key
    names = [frame["function"] for frame in parent[100604][1]]
    python_names = [name for name in names if name in ("key", "run", "<module>")]
    t.check_equal("order around sorted", python_names, ["key", "run", "<module>"])
    between = names[names.index("key") + 1:names.index("run")]
    t.check(len(between) >= 2, f"native frames between key and run: {names}")
    shown = t.run_cairn("report", "--view", "tree", "--print", str(parts[0])).out.decode()
    t.check("_PyEval" not in shown, "CPython's own functions are internal frames")
    check_traced(python, parent)
    check_combined(recording)


def check_traced(python, found):
    traced = t.run([python, str(script), str(HERE / "traced")], env={"TRACED": "1"})
    t.check_equal("traced run", (traced.status, traced.err), (0, b""))
    compared = 0
    for size, frames in json.loads((HERE / "traced").read_text()).items():
        if int(size) not in found or frames[-1][0] != str(script):
            continue
        got = [frame[1:] for frame in found[int(size)][0]]
        # thread starters differ in lines where tracing is on
        t.check_equal(f"tracemalloc: the block of {size}", got, frames)
        compared += 1
    t.check(compared > 60, f"blocks compared with tracemalloc: {compared}")


def check_combined(recording):
    both = t.run_cairn("report", "--json", recording)
    t.check_equal("both processes together", (both.status, both.err), (0, b""))
    for name in ("collapsed", "speedscope", "sqlite"):
        out = HERE / f"out.{name}"
        done = t.run_cairn("export", "-f", name, "-o", str(out), recording)
        t.check_equal(f"export {name}", (done.status, done.err), (0, b""))
        t.check(b"Store.large" in out.read_bytes(), f"{name} has names of Python code")


def check_other_python():
    t.need("gcc")
    for version, text in (("0x031001f0", "3.16"), ("0x03070000", "3.7"), ("0x030b02f0", None), ("0x030e02f0", None)):
        (HERE / "other.c").write_text(
            "#include <stdlib.h>\nconst unsigned long Py_Version = " + version + ";\n"
            "int main(void) { return !malloc(5000); }\n")
        built = t.run(["gcc", "-rdynamic", "-o", "other", "other.c"])
        t.check_equal("gcc", built.status, 0)
        result, recording = t.record([str(HERE / "other")], python=True)
        if text:
            t.check_equal(f"Python {text}", result.status, 125)
            t.check(f"Python {text}".encode() in result.err and b"CPython 3.8 to 3.15" in result.err,
                    f"refused by name: {result.err}")
        else:  # says that it is one, and has nothing of it
            t.check_equal("a false one", (result.status, result.err), (0, b""))
            shown = t.run_cairn("report", recording)
            t.check(b"this build" in shown.out + shown.err, f"named in the report: {shown.out[-600:]}")
    # as a child it is recorded, and the report says what is missing
    (HERE / "other.c").write_text(
        "#include <stdlib.h>\nconst unsigned long Py_Version = 0x031001f0;\n"
        "int main(void) { for (int i = 0; i < 2000; i++) if (!malloc(5000)) return 1; return 0; }\n")
    t.run(["gcc", "-rdynamic", "-o", "other", "other.c"])
    result, recording = t.record(["sh", "-c", "./other; true"], python=True)
    child = next(iter(pathlib.Path(recording).glob("other.*.cairn")), recording)
    screen = t.run_cairn("report", str(child))
    t.check(b"Python 3.16.1" in screen.out + screen.err, f"named in the report: {screen.out[-600:]}")


def functions_of(recording):
    return {frame["function"] for stack in (t.report(recording) or {"stacks": []})["stacks"]
            for frame in stack["frames"]}


def check_when():
    """Samples have frames without a word, everything has them with one, and nothing with another."""
    (HERE / "work.py").write_text("def work():\n    return [bytearray(5000) for _ in range(2000)]\nwork()\n")
    words = [t.PYTHON, str(HERE / "work.py")]
    for options, has_frames in ((["--sample", "--rate", "64K"], True), (["--sample", "--rate", "64K", "--python=off"], False),
                                (["--sample", "--rate", "64K", "--python=auto"], True), (["--sample", "--rate", "64K", "--python"], True),
                                ([], False), (["--python=auto"], False), (["--python=on"], True), (["--python=off"], False)):
        result, recording = t.record(words, options=options)
        t.check_equal(f"{options}: status", (result.status, result.err), (0, b""))
        t.check_equal(f"{options}: frames of Python", "work" in functions_of(recording), has_frames)
    refused = t.run_cairn("run", "--python=sometimes", "true")
    t.check_equal("--python=sometimes", (refused.status, refused.out), (2, b""))
    t.check(b"sometimes" in refused.err, f"named: {refused.err}")


def recurse(depth):
    script = ("import sys\nsys.setrecursionlimit(9000)\ndef f(n):\n x = bytearray(600)\n y = [n] * 200\n"
              f" return f(n - 1) if n else 0\nf({depth})\n")
    return t.record([t.PYTHON, "-S", "-c", script], options=["--python"])[1]


def check_recursion():
    """A stack is kept as what differs from the last one, though the interpreter's own frame is at another instruction."""
    found = t.report(recurse(100))
    t.check_equal("recursion: frames of the deepest stack", max(t.functions(stack).count("f") for stack in found["stacks"]), 101)
    own = {}
    for depth in (500, 1000):
        said = t.run_cairn("info", recurse(depth)).out.decode()
        number, unit = re.search(r"^own memory +([\d.]+) (\w+)", said, re.M).groups()
        own[depth] = float(number) * {"KiB": 1, "MiB": 1024}[unit]
    t.check(own[1000] - own[500] < 4096, f"recursion: cairn's own memory grows as the square of the depth: {own} KiB")


for option in ("--ages", "--free-stacks"):
    refused = t.run_cairn("run", "--python", option, "true")
    t.check_equal(f"--python {option}", (refused.status, refused.out), (2, b""))
    t.check(option.encode() in refused.err, f"named: {refused.err}")
totals = t.run_cairn("run", "-q", "--python", "--no-stacks", "-o", "totals.cairn", t.PYTHON, "-c", "pass")
t.check_equal("--python --no-stacks", (totals.status, totals.err), (0, b""))
t.check(all(not stack["frames"] for stack in (t.report("totals.cairn") or {"stacks": []})["stacks"]),
        "--no-stacks has no frames")
check_other_python()
check_when()
check_recursion()
for python in os.environ.get("CAIRN_TEST_PYTHONS", t.PYTHON).split(":"):
    check_program(python)
t.finish()
