# SPDX-License-Identifier: Apache-2.0
"""`pytest --cairn` runs the tests under `cairn run --python` and ends with a table of what each test allocated.

    @pytest.mark.limit_memory("24 MB")    the test's heap grows by at most so much at any time
    @pytest.mark.limit_leaks("1 MB")      so much is left after it and a garbage collection, at most

Each test is a region of the recording, and so is each Python thread that is started in it. Its peak is that of its
thread and of threads that ran at the same time, added up, or what the process rose by where that is less. Without
--cairn nothing is checked, and the header says so if a test has a limit."""
import _thread
import gc
import os
import re
import sys
import tempfile
import threading
import time

import pytest

import cairn

FACTORS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
PROPERTY, UNKNOWN = "cairn", "cairn_unknown"


def parse_size(text):
    """Bytes of "24 MB", "24MiB" or 24: multiples of 1024 in both spellings, as pytest-memray has them."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?\s*", str(text), re.IGNORECASE)
    if not found:
        raise pytest.UsageError(f"{text!r} is not a size such as \"24 MB\"")
    return int(float(found[1]) * FACTORS[found[2].upper()])


def show_size(size):
    amount, unit = float(size), 0
    while abs(amount) >= 1024 and unit < 4:
        amount, unit = amount / 1024, unit + 1
    return f"{size} B" if not unit else f"{amount:.1f} {'KMGT'[unit - 1]}iB"


def pytest_addoption(parser):
    group = parser.getgroup("cairn", "heap profiles by cairn")
    group.addoption("--cairn", action="store_true", help="record the tests' allocations and show a table of them")
    group.addoption("--cairn-output", metavar="FILE", help="keep the recording there, for cairn report and cairn open")
    group.addoption("--cairn-top", metavar="N", type=int, default=10, help="rows of the table (10)")


def pytest_configure(config):
    config.addinivalue_line("markers", "limit_memory(size): the test's heap may grow by so much (pytest --cairn)")
    config.addinivalue_line("markers", "limit_leaks(size): the test may leave so much behind (pytest --cairn)")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Starts pytest again under cairn."""
    if not config.getoption("--cairn") or cairn.is_recording() or hasattr(config, "workerinput"):
        return
    output = config.getoption("--cairn-output") or os.path.join(tempfile.mkdtemp(prefix="cairn-"), "pytest.cairn")
    if os.path.exists(output):
        raise pytest.UsageError(f"--cairn-output: {output} exists already")
    try:
        tool = cairn.tool()
    except cairn.Error as error:
        raise pytest.UsageError(f"--cairn: {error}") from error
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture:
        capture.stop_global_capturing()
    sys.stdout.flush()
    os.environ["CAIRN_PYTEST_OUTPUT"] = os.path.abspath(output)
    os.execv(tool, [tool, "run", "-q", "--python", "-o", output, "--", sys.executable, "-m", "pytest",
                    *map(str, config.invocation_params.args)])


def limit_of(item, name):
    marker = item.get_closest_marker(name)
    if not marker:
        return None
    if len(marker.args) != 1 or marker.kwargs:
        raise pytest.UsageError(f"{item.nodeid}: {name} takes one size")
    return parse_size(marker.args[0])


def places_of(nodeid, measure):
    """Where the test's memory comes from, as the report has it."""
    name = re.sub(r"\s", ".", re.escape(nodeid).replace("\\ ", "."))
    try:
        return cairn._run("report", str(os.getpid()), "--region", f"^{name}(/|$)", "--view", "stacks", "--top", "3",
                          "--depth", "6", "--by", measure)
    except cairn.Error as error:
        return f"(cairn report: {error})"


class Threads:
    """Takes threads that are started meanwhile into the region of a test."""

    def __init__(self, name):
        self.name, self.spans = name, []  # start, end, Stats of each thread; an end of None: it still runs

    def __enter__(self):
        start = self.start = threading.Thread.start
        start_raw = self.start_raw = _thread.start_new_thread
        threads = self

        def run_in_region(run, *arguments, **named):
            span = [time.monotonic(), None, None]
            threads.spans.append(span)
            with cairn.Region(threads.name) as region:
                run(*arguments, **named)
            span[1:] = time.monotonic(), region.stats

        def start_inside(thread):
            run = thread.run

            def run_inside():
                try:
                    run_in_region(run)
                finally:
                    del thread.run  # which refers to the thread

            thread.run = run_inside
            start(thread)

        def start_raw_inside(run, arguments, named=None):
            return start_raw(lambda: run_in_region(run, *arguments, **(named or {})), ())

        threading.Thread.start, _thread.start_new_thread = start_inside, start_raw_inside
        return self

    def __exit__(self, *about):
        threading.Thread.start, _thread.start_new_thread = self.start, self.start_raw

    def __len__(self):
        return len(self.spans)

    def ended(self):
        return [span for span in self.spans if span[1] is not None]

    def peak(self):
        """The most that they can have held together: of those that ran at one time the peaks, of earlier ones what they
        left. Threads that still run count as the one that grew most."""
        ended = self.ended()
        running = len(self.spans) - len(ended)
        most = cairn.region_stats(self.name).peak_bytes * running if running else 0

        def held_at(moment):
            return sum(stats.peak_bytes if start <= moment <= end else max(stats.live_bytes, 0)
                       for start, end, stats in ended if start <= moment)

        return most + max((held_at(start) for start, _, _ in ended), default=0)


def judge(item, peak, left, together):
    """What broke a limit, as text; None: nothing did. `together`: of how many threads the peak is a sum."""
    memory, leaks = limit_of(item, "limit_memory"), limit_of(item, "limit_leaks")
    said = []
    if memory is not None and peak > memory:
        of = f"the test and {together} of its threads held up to" if together > 1 else \
            "the test and its thread held up to" if together else "the test held"
        said.append(f"{of} {show_size(peak)} at its peak; limit_memory({show_size(memory)})")
    if leaks is not None and left > leaks:
        said.append(f"the test left {show_size(left)} behind; limit_leaks({show_size(leaks)})")
    measure = "peak" if memory is not None and peak > memory else "exit"
    return "\n".join(said + ["", places_of(item.nodeid, measure)]) if said else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    if not cairn.is_recording():
        yield
        return
    has_leaks = item.get_closest_marker("limit_leaks") is not None
    if has_leaks:
        gc.collect()
    before = cairn.stats()
    with Threads(item.nodeid) as threads, cairn.Region(item.nodeid) as region:
        outcome = yield
        if has_leaks:
            gc.collect()
    after = cairn.stats()
    inside = region.stats
    risen = after.peak_bytes - before.live_bytes if after.peak_bytes > before.peak_bytes else 0
    alone = max(inside.peak_bytes, risen)
    together = min(inside.peak_bytes + threads.peak(), after.peak_bytes - before.live_bytes) if threads else 0
    peak, left = max(alone, together), after.live_bytes - before.live_bytes
    allocated = [sum(figures) for figures in zip((inside.allocated_bytes, inside.allocations),
                                                 *((stats.allocated_bytes, stats.allocations)
                                                   for _, _, stats in threads.ended()))]
    item.user_properties.append((PROPERTY, [peak, *allocated, left]))
    # of threads that were there before, or that C code started, it is known alone what they allocated
    others = after.allocated_bytes - before.allocated_bytes - cairn.region_stats(item.nodeid).allocated_bytes
    limit = limit_of(item, "limit_memory")
    if limit is not None and peak <= limit < peak + others:
        item.user_properties.append((UNKNOWN, show_size(others)))
    if not outcome.excinfo:
        item.cairn_broken = judge(item, peak, left, len(threads) if together > alone else 0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    broken = getattr(item, "cairn_broken", None)
    report = outcome.get_result()
    if call.when == "call" and broken and report.passed:
        report.outcome, report.longrepr = "failed", broken


def pytest_collection_modifyitems(config, items):
    limited = sum(1 for item in items if any(item.iter_markers("limit_memory")) or any(item.iter_markers("limit_leaks")))
    config.cairn_unchecked = 0 if cairn.is_recording() else limited


def pytest_terminal_summary(terminalreporter, config):
    if getattr(config, "cairn_unchecked", 0):
        terminalreporter.write_line(f"cairn: the memory limits of {config.cairn_unchecked} tests were not checked "
                                    "(pytest --cairn)")
    if not config.getoption("--cairn"):
        return
    rows, unknown = [], []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                rows += [(*value, report.nodeid) for name, value in report.user_properties if name == PROPERTY]
                unknown += [(report.nodeid, value) for name, value in report.user_properties if name == UNKNOWN]
    rows.sort(reverse=True)
    terminalreporter.write_sep("=", "heap by test (cairn)")
    terminalreporter.write_line(f"{'peak':>10}  {'allocated':>10}  {'calls':>10}  {'left':>10}  test")
    for peak, allocated, calls, left, nodeid in rows[:config.getoption("--cairn-top")]:
        terminalreporter.write_line(f"{show_size(peak):>10}  {show_size(allocated):>10}  {calls:>10,}  "
                                    f"{show_size(left):>10}  {nodeid}")
    for nodeid, others in unknown:
        terminalreporter.write_line(f"cairn: whether {nodeid} kept to its limit_memory is not known: threads that it did not "
                                    f"start through Python allocated {others} meanwhile")
    output = os.environ.get("CAIRN_PYTEST_OUTPUT")
    if output:
        terminalreporter.write_line(f"recording: {output} (cairn report, cairn open; --region NAME for one test)")
