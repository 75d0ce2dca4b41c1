#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of a Django project, with its data base in memory, under `cairn run --python`: they pass as without it; labels
that a middleware enters say what each endpoint allocated, and add up to the whole; stacks show views, models and tests,
not how unittest and Django call them; SQLite's blocks, allocated without the interpreter's lock, have their frames too,
by few system calls."""

import pathlib
import re
import shutil
import sys
import zipfile

import cairn_test as t
import django_shop

REQUESTS = {"catalog": 3, "search": 24, "orders": 4, "report/<int:year>.csv": 2, "none": 1}
VIEWS = {"catalog": "catalog", "search": "search", "orders": "order", "report/<int:year>.csv": "report"}
PLUMBING = ("TestCase.run", "TestSuite.run", "convert_exception_to_response", "BaseHandler", "BaseCommand", "render_annotated")
ENV = {"PYTHONPATH": "installed", "PYTHONDONTWRITEBYTECODE": "1"}
TESTS = [t.PYTHON, "manage.py", "test"]


def set_up():
    django_shop.make(".")
    sys.path.insert(0, str(t.SOURCE / "bindings/python"))
    sys.dont_write_bytecode = True
    import build_wheel
    zipfile.ZipFile(build_wheel.build_wheel(".")).extractall("installed")


def folded(recording, *options):
    """Stacks as (functions from the outermost on, calls): there are too many for a report of all of them."""
    text = t.run_cairn("export", "--format", "collapsed", "--by", "calls", *options, "-o", "-", recording).out.decode()
    return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in text.splitlines()]


def check_endpoints(recording):
    found = t.report(recording, "--top", "1")
    contexts = {one["labels"].get("endpoint"): one for one in found["contexts"]}
    t.check_equal("requests", {name: one["entered"] for name, one in contexts.items() if name}, REQUESTS)
    for key in ("allocations", "allocated_bytes"):
        t.check_equal(f"endpoints add up: {key}", sum(one[key] for one in contexts.values()), found["totals"][key])
    for endpoint, view in VIEWS.items() if t.IS_LONG else [("catalog", "catalog")]:
        stacks = folded(recording, "--context", f"endpoint={endpoint}")
        inside, whole = sum(calls for names, calls in stacks if view in names), sum(calls for _, calls in stacks)
        t.check_equal(f"{endpoint}: calls", whole, contexts[endpoint]["allocations"])
        t.check(inside > 0.8 * whole, f"{endpoint}: {inside} of {whole} calls are below {view}()")
    screen = t.run_cairn("report", "--view", "contexts", "--context", "endpoint", "--by", "allocated", recording).out.decode()
    t.check(re.search(r"\n +\d+ % .* 3  catalog\n", screen), f"by endpoint: {screen}")


def check_screens(recording):
    below = ("--view", "stacks", "--focus", "^catalog$", "--top", "4", "--depth", "0", recording)
    screen, whole = (t.run_cairn("report", *more, *below, env={"COLUMNS": "200"}).out.decode() for more in ((), ("--all-frames",)))
    for name in PLUMBING:
        t.check(name not in screen and name in whole, f"{name}: hidden by default: {screen[:3000]}")
    t.check(re.search(r"\n +catalog +views\.py:13\n +Labels\.__call__ +middleware\.py:15\n +CatalogTest\.test_\w+ +tests\.py:\d+\n",
                      screen), f"from a view to its test: {screen[:3000]}")
    t.check("catalog  views.py:13" in t.run_cairn("report", recording).out.decode(), "a row of the summary is named after the view")
    functions = t.run_cairn("report", "--view", "functions", recording).out.decode()
    t.check(re.search(r"<module> \w+/\w+\.py\n", functions), f"code of modules is told apart: {functions}")


def check_sqlite(recording):
    """Each has the frames of Python outside of it."""
    stacks = folded(recording, "--module", "libsqlite3")
    inside, whole = sum(calls for names, calls in stacks if "<module>" in names), sum(calls for _, calls in stacks)
    t.check(whole > 1000 and inside == whole, f"{inside} of {whole} calls of SQLite have code in Python")


def check_packages():
    """What lies in a package is not the program's own, wherever Python is installed."""
    place = pathlib.Path("venv/lib/python3.11/site-packages")
    place.mkdir(parents=True)
    (place / "bought.py").write_text("def make(n): return [bytearray(2000) for _ in range(n)]\n", encoding="ascii")
    pathlib.Path("own.py").write_text("import bought\ndef want(): return bought.make(500)\nkept = want()\n", encoding="ascii")
    _, recording = t.record([t.PYTHON, "own.py"], options=["--python"], env={**ENV, "PYTHONPATH": str(place.absolute())})
    rows = re.search(r"at the peak.*\n.*", t.run_cairn("report", recording).out.decode())
    t.check(rows and "want  own.py:2" in rows[0], f"the caller of a package: {rows and rows[0]}")


def check_calls():
    if not shutil.which("strace"):
        return t.skip_part("strace is not installed")
    result, asked = t.asked_calls("process_vm_readv", [t.CAIRN, "run", "-q", "--python", "-o", "few.cairn", "--", *TESTS,
                                                       "shop.tests.OrderTest"], env=ENV)
    if not t.check_equal(f"strace: {result.err[-300:]}", result.status, 0):
        return None
    allocations = t.report("few.cairn", "--top", "1")["totals"]["allocations"]
    t.check(0 < asked < allocations, f"{asked} reads by system calls for {allocations} allocations")
    return None


if t.run([t.PYTHON, "-c", "import django"]).status:
    t.cannot_run_here("Django is not installed")
set_up()
plain = t.run(TESTS, env=ENV)
done, path = t.record(TESTS, options=["--python"], env=ENV)
t.check_equal(f"as without cairn: {done.err[-500:]}", (plain.status, done.status, b"Ran 12 tests" in done.err and b"\nOK\n" in done.err), (0, 0, True))
check_endpoints(path)
check_screens(path)
check_sqlite(path)
check_calls()
check_packages()
t.finish()
