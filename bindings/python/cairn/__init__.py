# SPDX-License-Identifier: Apache-2.0
"""Heap profiles of Python programs, and of the native code in them, by cairn.

    with cairn.Tracker("out.cairn") as tracker:
        work()
    print(tracker.report())

A process that `cairn run` records tells it regions, marks and snapshots, and asks for figures. In another one a Tracker
attaches `cairn` to the process for as long as it lasts. Nothing here is compiled.
"""
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import typing

from . import _library
from .contexts import carried, context, current_context, task_factory

__all__ = ["Error", "Region", "Stats", "Tracker", "carried", "context", "current_context", "is_recording", "mark",
           "region_stats", "snapshot", "stats", "task_factory", "tool"]


class Error(RuntimeError):
    """The tool is not there, or it could not do what was asked."""


class Stats(typing.NamedTuple):
    """What happened in a stretch of time: `live_bytes` is what it left, `peak_bytes` the most it held in between."""
    allocations: int
    frees: int
    allocated_bytes: int
    live_bytes: int
    peak_bytes: int


def _stats_of(record):
    return Stats(*(getattr(record, name) for name in Stats._fields))


def tool():
    """The path of the command `cairn`: $CAIRN_TOOL, that of a checkout this is part of, the one that came with
    this package, or in $PATH."""
    built = pathlib.Path(__file__).resolve().parents[3] / "build/cairn"
    beside = os.path.join(sysconfig.get_path("scripts"), "cairn")
    for path in (os.environ.get("CAIRN_TOOL"), str(built), beside, shutil.which("cairn")):
        if path and os.access(path, os.X_OK):
            return path
    raise Error("the command cairn is not in PATH (CAIRN_TOOL says where it is)")


def is_recording():
    """True if the library is in this process: it was started by `cairn run`."""
    return _library.table is not None


def stats(who="process"):
    """Figures since the start, of the process or of the calling "thread"; zeros where nothing is recorded."""
    record = _library.StatsRecord()
    which = {"process": _library.PROCESS, "thread": _library.THREAD}[who]
    if _library.table:
        _library.table.stats(which, record)
    return _stats_of(record)


def region_stats(name):
    """Figures of regions of this name, by all threads: `live_bytes` is what of it is left, `peak_bytes` the most that one
    thread grew in one of them; zeros where nothing is recorded."""
    record = _library.StatsRecord()
    if _library.table:
        _library.table.region_stats(name.encode(), record)
    return _stats_of(record)


def mark(label):
    """A snapshot that begins a new generation: `cairn report --since LABEL`. False where nothing is recorded."""
    return bool(_library.table and _library.table.snapshot(label.encode(), 1))


def snapshot(label):
    """Keeps what each stack holds now: `cairn report --at LABEL`. False where nothing is recorded."""
    return bool(_library.table and _library.table.snapshot(label.encode(), 0))


class Region:
    """Names what the calling thread allocates within: `cairn report --view regions`. Does nothing where nothing is
    recorded; `stats` is known afterwards."""

    def __init__(self, name):
        self.name = name
        self.stats = Stats(0, 0, 0, 0, 0)

    def __enter__(self):
        if _library.table:
            _library.table.region_begin(self.name.encode())
        return self

    def __exit__(self, *about):
        record = _library.StatsRecord()
        if _library.table:
            _library.table.region_end(record)
            self.stats = _stats_of(record)


def _environment():
    """Of the tool, which is not to be recorded itself."""
    return {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "CAIRN_SOCKET")}


def _run(*words):
    done = subprocess.run([tool(), *words], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          env=_environment())
    if done.returncode:
        raise Error(done.stderr.decode(errors="replace").strip() or f"{words[0]} failed")
    return done.stdout.decode(errors="replace")


class _Attached:
    """`cairn attach` to this process, from its first line to its end."""
    PATIENCE_S = 60

    def __init__(self, output, options):
        words = [tool(), "attach", "--exact", "--python", "--no-scan-heap", *options, "-o", output, str(os.getpid())]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, start_new_session=True, env=_environment())
        _let_trace(self.process.pid)
        said = b""
        while b"recording" not in said:
            ready = select.select([self.process.stderr], [], [], self.PATIENCE_S)[0]
            more = os.read(self.process.stderr.fileno(), 4096) if ready else b""
            said += more
            if not more:
                self.process.kill()
                self.process.wait()
                raise Error(said.decode(errors="replace").strip() or "cairn attach does not begin")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate()[1].decode(errors="replace")
        if self.process.returncode:
            raise Error(said.strip())


def _let_trace(pid):
    """Where the kernel lets only a parent trace (Yama), this child may too."""
    import ctypes
    PR_SET_PTRACER = 0x59616D61
    ctypes.PyDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)


class Tracker:
    """Records what happens within it. In a process that `cairn run` records, it is a region of that recording, named
    `name`. Elsewhere cairn is attached meanwhile, for some milliseconds, and writes the recording `output` (a temporary
    file if it is None). `options` are of `cairn attach`."""

    def __init__(self, output=None, *, name="tracker", options=()):
        self.name, self.options = name, tuple(options)
        self.output = os.fspath(output) if output is not None else None
        self.stats = None  # a Stats, where the process is recorded anyway
        self._region = self._attached = self._directory = None

    def __enter__(self):
        if is_recording():
            self._region = Region(self.name)
            self._region.__enter__()
            return self
        if self.output is None:
            self._directory = tempfile.TemporaryDirectory(prefix="cairn-")
            self.output = os.path.join(self._directory.name, "tracked.cairn")
        elif os.path.exists(self.output):
            raise FileExistsError(self.output)
        self._attached = _Attached(self.output, self.options)
        return self

    def __exit__(self, *about):
        if self._region:
            self._region.__exit__(*about)
            self.stats = self._region.stats
        if self._attached:
            self._attached.end()

    def report(self, *options):
        """The text of `cairn report` about what was tracked; `options` are of that command."""
        if self._region:
            import re
            return _run("report", str(os.getpid()), "--region", f"(^|/){re.escape(self.name)}(/|$)", *options)
        return _run("report", self.output, *options)
