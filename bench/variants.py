# SPDX-License-Identifier: Apache-2.0
"""The columns of the benchmark: how a program is run plainly, under cairn and under each peer. What each
does and why that is fair is told in bench/README.md. `{place}` stands for the directory in memory that
takes all output."""

import atexit
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", TOP / "build")).resolve()
CAIRN = str(BUILD / "cairn")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
HEAPTRACK_PRELOADS = ["/usr/lib/heaptrack/libheaptrack_preload.so",
                      f"{LIBRARIES}/heaptrack/libheaptrack_preload.so"]
PLAIN, FLOOR, PRELOAD, RUN = "plain", "floor", "cairn", "cairn run"
HEAPTRACK_RAW, HEAPTRACK = "heaptrack raw", "heaptrack"


def preloadable(library):
    """LD_PRELOAD is divided at blanks and colons: then a link whose path has none."""
    if not re.search("[ :]", library):
        return library
    place = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, place)
    link = os.path.join(place, os.path.basename(library))
    os.symlink(library, link)
    return link


@dataclasses.dataclass(frozen=True)
class Variant:
    name: str
    prefix: tuple = ()
    env: dict = dataclasses.field(default_factory=dict)
    needs: str = ""  # a file without which the peer is not installed
    has_helpers: bool = False  # processes beside the program belong to its cost
    is_reduced: bool = False  # so slow that it gets the small input, and is compared with plain on that
    is_once: bool = False  # so slow that one round is enough for a figure
    skips: str = ""  # a group of rows where it has nothing to say
    report: tuple = ()  # the command that reads the output; {file} the largest one, {program} the program

    def is_here(self):
        return not self.needs or os.path.exists(self.needs)

    def command(self, argv, place):
        return [part.format(place=place) for part in self.prefix] + argv

    def environment(self, place):
        return {name: value.format(place=place) for name, value in self.env.items()}


def heaptrack_preload():
    return next((path for path in HEAPTRACK_PRELOADS if os.path.exists(path)), HEAPTRACK_PRELOADS[0])


def jemalloc(name, sample_log2, **options):
    library = f"{LIBRARIES}/libjemalloc.so.2"
    conf = f"prof:true,lg_prof_sample:{sample_log2},prof_final:true,prof_prefix:{{place}}/jeprof"
    return Variant(name, env={"LD_PRELOAD": library, "MALLOC_CONF": conf}, needs=library,
                   report=("jeprof", "--text", "{program}", "{file}"), **options)


def valgrind(name, tool, out_option, **options):
    return Variant(name, ("valgrind", "-q", f"--tool={tool}", f"--{out_option}={{place}}/{tool}.%p"),
                   needs="/usr/bin/valgrind", is_reduced=True, is_once=True, skips="pairs", **options)


def has_option(command, option):
    shown = subprocess.run([CAIRN, command, "--help"], capture_output=True, text=True, check=False).stdout
    return any(word.rstrip(",") == option for word in shown.split())


def cairn_with(name, option):
    """cairn with an option, by the preload alone if `cairn env` knows the option; () if nothing does."""
    out = "{place}/option.%p.cairn"
    if has_option("env", option):
        lines = subprocess.run([CAIRN, "env", option, "-o", "/OUT"], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        words = [word for line in lines for word in shlex.split(line) if "=" in word]
        env = dict(word.split("=", 1) for word in words)
        return (Variant(name, env={key: out if value == "/OUT" else value
                                   for key, value in env.items()}),)
    if has_option("run", option):
        return (Variant(name, (CAIRN, "run", "-q", option, "-o", "{place}/option.cairn", "--"),
                        has_helpers=True),)
    return ()


def all_variants():
    """Every variant whose tool is installed, plain first."""
    floor = preloadable(str(BUILD / "bench/floor_preload.so"))
    heaptrack = heaptrack_preload()
    tcmalloc = f"{LIBRARIES}/libtcmalloc.so.4"
    report = (CAIRN, "report", "{file}")
    found = [
        Variant(PLAIN),
        Variant(FLOOR, env={"LD_PRELOAD": floor, "FLOOR_OUT": "{place}/floor"}),
        Variant(PRELOAD, env={"LD_PRELOAD": preloadable(str(BUILD / "libcairn.so")),
                              "CAIRN_OUTPUT": "{place}/alone.%p.cairn"}, report=report),
        Variant(RUN, (CAIRN, "run", "-q", "-o", "{place}/run.cairn", "--"), has_helpers=True,
                report=report),
        *cairn_with("cairn totals", "--no-stacks"),
        *cairn_with("cairn off", "--off"),
        *cairn_with("cairn sampling", "--sample"),
        Variant(HEAPTRACK_RAW, env={"LD_PRELOAD": heaptrack,
                                    "DUMP_HEAPTRACK_OUTPUT": "{place}/heaptrack.$$"}, needs=heaptrack),
        Variant(HEAPTRACK, ("heaptrack", "-o", "{place}/whole.%p"), needs="/usr/bin/heaptrack",
                has_helpers=True, report=("heaptrack_print", "{file}")),
        jemalloc("jemalloc 512 KiB", 19),
        Variant("gperftools 512 KiB", env={"LD_PRELOAD": tcmalloc, "TCMALLOC_SAMPLE_PARAMETER": "524288"},
                needs=tcmalloc),
        jemalloc("jemalloc every", 0, is_reduced=True),
        Variant("gperftools", env={"LD_PRELOAD": tcmalloc, "HEAPPROFILE": "{place}/gperf"},
                needs=tcmalloc, is_reduced=True,
                report=("google-pprof", "--text", "{program}", "{file}")),
        valgrind("massif", "massif", "massif-out-file", report=("ms_print", "{file}")),
        valgrind("DHAT", "dhat", "dhat-out-file"),
    ]
    return [variant for variant in found if variant.is_here()]


def program_path(argv):
    return shutil.which(argv[0]) or argv[0]
