#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bindings/python: the wheel that pip makes of it, Tracker inside `cairn run` and by attaching to itself, regions and
figures, limits of tests under pytest with their table, cells of IPython."""

import json
import os
import pathlib
import re
import sys
import zipfile

import cairn_test as t

PACKAGE = t.SOURCE / "bindings/python"
HERE = pathlib.Path.cwd()
INSTALLED = HERE / "installed"


def variables(**more):
    return {"PYTHONPATH": str(INSTALLED), "CAIRN_TOOL": t.CAIRN, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(HERE), **more}


def python(text, **more):
    (HERE / "program.py").write_text(text, encoding="utf-8")
    return t.run([t.PYTHON, "program.py"], env=variables(**more))


def check_wheel():
    sys.path.insert(0, str(PACKAGE))
    sys.dont_write_bytecode = True
    import build_wheel
    name = build_wheel.build_wheel(str(HERE))
    with zipfile.ZipFile(name) as wheel:
        t.check_equal("files", {os.path.basename(n) for n in wheel.namelist()} -
                      {"METADATA", "WHEEL", "RECORD", "entry_points.txt"},
                      {path.name for path in (PACKAGE / "cairn").glob("*.py")})
        wheel.extractall(INSTALLED)
    version = t.run_cairn("--version").out.decode().split()[1]
    t.check(f"cairn_heap-{version.split('+')[0].split('-')[0]}-py3" in name, f"the tool's version: {name}, {version}")
    if t.run([t.PYTHON, "-m", "pip", "--version"]).status:
        return t.skip_part("pip is not installed")
    result = t.run([t.PYTHON, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", "by-pip", str(PACKAGE)],
                   env={"HOME": str(HERE), "PIP_ROOT_USER_ACTION": "ignore"})
    if t.check_equal(f"pip: {result.err.decode()}", result.status, 0):
        t.check_equal("by pip", sorted(path.name for path in pathlib.Path("by-pip/cairn").glob("*.py")),
                      sorted(path.name for path in (INSTALLED / "cairn").glob("*.py")))


WORK = """
import cairn, json, sys
def work(): return [bytearray(5000) for _ in range(1000)]
def elsewhere(): return [bytearray(5000) for _ in range(1000)]
"""


def check_tracker():
    result = python(WORK + """
before = elsewhere()
with cairn.Tracker("out.cairn") as tracker:
    kept = work()
after = elsewhere()
text = tracker.report("--top", "1")
assert "work" in text and "program.py" in text and "elsewhere" not in text, text
assert not cairn.is_recording() and tracker.stats is None and not cairn.mark("x")
with cairn.Tracker() as again: del kept; kept = work()
assert "work" in again.report()
try:
    with cairn.Tracker("out.cairn"): pass
except FileExistsError: print("done")
""")
    t.check_equal("Tracker attaches", (result.status, result.out, result.err), (0, b"done\n", b""))
    calls = [s["allocations"] for s in t.stacks_through(t.report("out.cairn"), "work") if s["allocated_bytes"] > 4000000]
    t.check_equal("its recording", calls, [1000])
    result = python(WORK + """
with cairn.Tracker(): pass
""", CAIRN_TOOL="/nowhere/cairn", PATH="/usr/bin:/bin")
    t.check_equal("without the tool", (result.status, b"cairn is not in PATH" in result.err), (1, True))


def check_recorded():
    (HERE / "program.py").write_text(WORK + """
with cairn.Region("outer"):
    with cairn.Tracker(name="inner part") as tracker:
        kept = work()
    with cairn.Region("left") as left: work()
assert cairn.is_recording() and cairn.mark("now") and cairn.snapshot("then")
text = tracker.report("--top", "1")
assert "work" in text, text
print(json.dumps([tracker.stats, left.stats, cairn.stats(), cairn.stats("thread")]))
""", encoding="utf-8")
    result, recording = t.record([t.PYTHON, "program.py"], env=variables(), options=["--python"])
    if not t.check_equal("recorded", (result.status, result.err), (0, b"")):
        return
    inner, left, process, thread = json.loads(result.out)
    t.check(inner[0] >= 1000 and inner[3] >= 5001000 and inner[4] >= inner[3], f"what the tracker held: {inner}")
    t.check(left[3] < 100000 and left[4] > 5000000, f"what was left: {left}")
    t.check(process[2] >= inner[2] + left[2] and thread[0] >= process[0], f"process: {process}, then thread: {thread}")
    regions = t.run_cairn("report", "--view", "regions", recording).out.decode()
    t.check("outer/inner part" in regions and "outer/left" in regions, regions)


TESTS = '''
import _thread, ctypes, pytest, threading, time
from concurrent.futures import ThreadPoolExecutor
kept = []
def grow(n): return [bytearray(1000) for _ in range(n)]
@pytest.mark.limit_memory("1 MB")
def test_small(): grow(100)
@pytest.mark.limit_memory("1 MB")
def test_large(): grow(3000)
@pytest.mark.limit_leaks("10 KB")
def test_leaks(): kept.extend(grow(100))
@pytest.mark.limit_leaks("100 KB")
def test_cyclic():
    a = grow(500); a.append(a)
def test_fails(): assert 0
def keep(n): kept.extend(grow(n))
@pytest.mark.limit_memory("1 MB")
def test_pooled():
    with ThreadPoolExecutor(2) as pool: list(pool.map(lambda n: len(grow(n)), [4000, 10]))
@pytest.mark.limit_memory("1 MB")
def test_pooled_small():
    with ThreadPoolExecutor(2) as pool: list(pool.map(lambda n: len(grow(n)), [100, 10]))
@pytest.mark.limit_leaks("100 KB")
def test_thread_leaks():
    thread = threading.Thread(target=keep, args=(500,)); thread.start(); thread.join()
@pytest.mark.limit_memory("1 MB")
def test_raw():
    done = threading.Lock(); done.acquire()
    _thread.start_new_thread(lambda n: (grow(n), done.release()), (4000,)); done.acquire()
    time.sleep(0.1)
@pytest.mark.parametrize("x", ["a b", "c/d"])
def test_param(x): grow(10)
def test_most(): bytearray(40 << 20)
@pytest.mark.limit_memory("1 MB")
def test_foreign():
    c, thread, block = ctypes.CDLL(None), ctypes.c_void_p(), ctypes.c_void_p()
    c.pthread_create(ctypes.byref(thread), None, c.malloc, ctypes.c_void_p(20 << 20))
    c.pthread_join(thread, ctypes.byref(block)); c.free(block)
'''


def check_pytest():
    if t.run([t.PYTHON, "-c", "import pytest"]).status:
        return t.skip_part("python3-pytest is not installed")
    (HERE / "tests").mkdir()
    (HERE / "tests/test_it.py").write_text(TESTS, encoding="utf-8")
    words = [t.PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    result = t.run(words, env=variables())
    text = result.out.decode()
    t.check("1 failed, 12 passed" in text and "limits of 9 tests were not checked" in text, f"without --cairn: {text}")
    result = t.run([*words, "--cairn", "--cairn-output", "tests.cairn", "--cairn-top", "5"], env=variables())
    text = result.out.decode()
    t.check_equal(f"pytest --cairn: {text[-600:]} {result.err.decode()}", result.status, 1)
    t.check("6 failed, 7 passed" in text, text[-400:])
    t.check(re.search(r"the test held 3\.\d MiB at its peak; limit_memory\(1\.0 MiB\)", text), text)
    t.check(re.search(r"the test left 10\d\.\d KiB behind; limit_leaks\(10\.0 KiB\)", text), text)
    failure = text[text.index("the test left"):text.index("test_fails ___")]
    t.check("test_leaks" in failure and "test_it.py:5" in failure, f"where it was left: {failure}")
    pooled = text[text.index("_ test_pooled _"):text.index("_ test_thread_leaks _")]
    t.check(re.search(r"held (up to )?4\.\d MiB at its peak; limit_memory\(1\.0 MiB\)", pooled), pooled)
    t.check("grow" in pooled and "test_it.py:5" in pooled, f"where threads held it: {pooled}")
    leak = text[text.index("_ test_thread_leaks _"):text.index("heap by test")]
    t.check(re.search(r"left 5\d\d\.\d KiB behind", leak) and "keep" in leak, f"where a thread left it: {leak}")
    table = text[text.index("heap by test"):]
    names = re.findall(r"^ .*test_it\.py::(\S+)", table[:table.index("recording:")], re.M)
    t.check_equal("the table", (names[0], set(names[1:4])), ("test_most", {"test_pooled", "test_raw", "test_large"}))
    t.check_equal("threads of C", re.findall(r"whether (\S+) kept to its limit_memory is not known: .* allocated 20\.\d MiB", table),
                  ["tests/test_it.py::test_foreign"])
    t.check_equal("its length", len(names), 5)
    parts = sorted(HERE.glob("tests.cairn/*.cairn")) if (HERE / "tests.cairn").is_dir() else [HERE / "tests.cairn"]
    regions = b"".join(t.run_cairn("report", "--view", "regions", "--top", "0", str(part), env={"COLUMNS": "200"}).out for part in parts)
    t.check(b"test_it.py::test_cyclic" in regions, f"regions: {regions[-400:]}")
    result = t.run([*words, "--cairn", "--cairn-output", "tests.cairn"], env=variables())
    t.check_equal("an output that is there", (result.status, b"exists already" in result.err), (4, True))


def check_ipython():
    if t.run([t.PYTHON, "-c", "import IPython"]).status:
        return t.skip_part("python3-ipython is not installed")
    result = python("""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "cairn.jupyter")
shell.run_cell("def work(): return [bytearray(5000) for _ in range(1000)]")
shell.run_cell_magic("cairn", "--top 1", "kept = work()")
assert len(shell.user_ns["kept"]) == 1000
""")
    t.check_equal(f"IPython: {result.err.decode()}", result.status, 0)
    t.check(b"work" in result.out and b"MiB" in result.out, f"a cell: {result.out.decode()}")


check_wheel()
check_tracker()
check_recorded()
check_pytest()
check_ipython()
t.finish()
