#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn report PID` of a process that nobody recorded: one sentence that is true of each of six twins and false of
the others, parts that add up to resident memory and agree with mallinfo2, within 40 lines of 80 columns; what cannot
be looked at is refused with the reason; the process goes on. `cairn report CORE` says the same of its core."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import cairn_test as t
from attached import Target

MIB = 1 << 20
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}
# Each twin, its sentence, and the view that is named next.
TWINS = {
    "used": (r"nothing stands out: .* are in use in glibc's malloc(?:, and touched)?", "owners"),
    "freed": (r".* of it \(.*\) are free in glibc's malloc", "remedies"),
    "mapped": (r"most of it, .*, is mapped by the program or another allocator", None),
    "untouched": (r"most of it, .*, is code, data and files", None),
    "equal": (r".* are in use in glibc's malloc, and .* there are redundant: zero, equal to others or unused", "waste"),
    "leaked": (r".* are in use in glibc's malloc, and .* there are leaked", "owners"),
}


def without_figures(sentence):
    """Another look finds other sizes: what the kernel has read of the program's file meanwhile is resident, too."""
    return re.sub(r"[\d.]+ (?:[KMG]iB|B|%)", "…", sentence)


def sentence_of(screen):
    """The first sentence, which may have two lines."""
    return " ".join(re.search(r"\n  (\S.*?)\n(?:resident memory|memory in it)\n", screen, re.S)[1].split())


def bytes_of(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def parts_of(screen):
    """Bytes by the beginning of what a part is called."""
    section = re.split("types of blocks|would give back", screen.split("resident memory\n")[1])[0]
    rows = re.findall(r"^ +([\d.]+) % +([\d.]+ [KMG]?i?B)  (.*)$", section, re.M)
    return {name.split(",")[0]: bytes_of(size) for _, size, name in rows}


def report(subject, *options):
    return t.run_cairn("report", *options, str(subject), env={**os.environ, "COLUMNS": "80"})


def check_core(way, pid, used, free):
    """The same answer from the core alone, where the sentence is of the heap."""
    subprocess.run(["gcore", "-o", "dump", str(pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    core = f"dump.{pid}"
    result = report(core)
    lines = result.out.decode().splitlines()
    t.check_equal(f"{way}, core: status", result.status, 0)
    sentence = sentence_of(result.out.decode())
    t.check(re.fullmatch(TWINS[way][0], sentence) and "touched" not in sentence, f"{way}, core: {sentence}", is_grave=True)
    t.check_equal(f"{way}, core: next", lines[-1], f"next: cairn report --view {TWINS[way][1]} {core}")
    t.check(len(lines) <= 40 and "resident" not in result.out.decode(), f"{way}, core: {result.out.decode()}")
    answer = json.loads(report(core, "--json").out)
    parts = {row["what"].split(",")[0]: row["bytes"] for row in answer["resident"]}
    t.check_equal(f"{way}, core: parts add up", (sum(parts.values()), answer["rss_bytes"]), (answer["dump_bytes"], None),
                  is_grave=True)
    for name, truth in (("in use in glibc's malloc", used), ("free in glibc's malloc", free)):
        t.check(abs(parts.get(name, 0) - truth) <= 0.02 * (used + free) + 2 * 64 * 1024,
                f"{way}, core: {name}: {parts.get(name, 0)}, truth {truth}", is_grave=True)
    with open(core, "r+b") as file:
        file.truncate(os.path.getsize(core) // 2)
    head = report(core).out.decode().splitlines()[0]
    t.check("cut off, " in head and json.loads(report(core, "--json").out)["missing_bytes"] > 0, f"{way}, a core cut off: {head}")
    os.unlink(core)


def check_threads_core():
    """gdb writes the stacks as they are reserved. What of them is used is that of the process; the rest is told as zeros."""
    target = Target(4)
    subprocess.run(["gcore", "-o", "threads", str(target.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    core = f"threads.{target.pid}"
    live, dumped = ({row["what"]: row["bytes"] for row in json.loads(report(subject, "--json").out)["resident"]}
                    for subject in (target.pid, core))
    os.unlink(core)
    used, name = live["stacks of threads"], "stacks of threads"
    t.check(dumped[name] <= used, f"stacks in a core: {dumped}, of the process {used}")
    t.check(dumped["zero pages of stacks, perhaps never used"] > 16 << 20, f"stacks in a core: {dumped}")
    target.end("threads")


def check_closed_core():
    """What may not be written is a part of its own in a core, which no sentence leads with: it may be kept for later."""
    closed, mapped = "not writable: constants", "mapped by the program or another allocator"
    for way in ("closed", "mapped"):
        with t.Process(t.program("why_big", way), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            subprocess.run(["gcore", "-o", way, str(process.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            answer = json.loads(report(f"{way}.{process.pid}", "--json").out)
            os.unlink(f"{way}.{process.pid}")
            process.communicate(b"", timeout=t.PATIENCE_S)
        parts = {row["what"].split(",")[0]: row["bytes"] for row in answer["resident"]}
        large = [name for name in (closed, mapped) if parts.get(name, 0) >= 40 * MIB]
        t.check_equal(f"{way}, core: {parts}", (large, mapped in answer["sentence"], closed in answer["sentence"]),
                      ([closed if way == "closed" else mapped], way == "mapped", False))


def check_joined_stacks(program):
    """Memory that the kernel joined with stacks of threads below it is none of these, of a process and of its core."""
    with t.Process([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        mapped = int(process.stdout.readline())
        subprocess.run(["gcore", "-o", "joined", str(process.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for subject in (process.pid, f"joined.{process.pid}"):
            answer = json.loads(report(subject, "--json").out)
            parts = {row["what"]: row["bytes"] for row in answer["resident"]}
            others = sum(size for what, size in parts.items() if "mapped" in what or "anonymous" in what)
            t.check(mapped - MIB / 16 <= others <= mapped + MIB and parts["stacks of threads"] < MIB, f"{program}, {subject}: {parts}", is_grave=True)
            t.check(re.match("most of it, .* is (mapped by|heap and other)", answer["sentence"]), f"{program}, {subject}: {answer['sentence']}")
        os.unlink(f"joined.{process.pid}")
        process.communicate(b"", timeout=t.PATIENCE_S)


def check_joined():
    check_joined_stacks(*t.program("joined_stacks"))
    if shutil.which("musl-gcc"):
        made = t.run(["musl-gcc", "-O1", "-o", "joined_musl", f"{t.SOURCE}/tests/programs/joined_stacks.c"])
        if t.check_equal(f"built with musl: {made.err.decode()}", made.status, 0):
            check_joined_stacks("./joined_musl")


def check_twin(way):
    wanted, view = TWINS[way]
    program = subprocess.Popen(t.program("why_big", way), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    used, free = map(int, program.stdout.readline().split())
    result = report(program.pid)
    screen = result.out.decode()
    t.check_equal(f"{way}: status", result.status, 0)
    lines = screen.splitlines()
    t.check(len(lines) <= 40 and max(map(len, lines)) <= 80, f"{way}: too large:\n{screen}")
    t.check("paused for" in result.err.decode(), f"{way}: {result.err}")
    said = sentence_of(screen)
    t.check(re.fullmatch(wanted, said) and (way != "used" or said.endswith(", and touched")), f"{way}: {said}", is_grave=True)
    for other, (sentence, _) in TWINS.items():
        t.check(other == way or not re.fullmatch(sentence, said), f"{way}: said of {other}: {said}", is_grave=True)
    t.check_equal(f"{way}: next", lines[-1], f"next: cairn {f'report --view {view}' if view else 'attach'} {program.pid}")
    parts = parts_of(screen)
    resident = bytes_of(re.search(r" · ([\d.]+ \w+) resident", lines[0]).group(1))
    t.check(abs(sum(parts.values()) - resident) <= 0.02 * resident + 2 * 0.05 * MIB, f"{way}: {parts} are not {resident}", is_grave=True)
    for name, truth in (("in use in glibc's malloc", used), ("free in glibc's malloc", free)):
        if way in ("used", "freed", "equal", "leaked"):
            t.check(abs(parts.get(name, 0) - truth) <= 0.02 * (used + free) + 2 * 64 * 1024,
                    f"{way}: {name}: {parts.get(name, 0)}, truth {truth}", is_grave=True)
    glance = report(program.pid, "--no-stop")
    t.check(b"paused" not in glance.err and b"not known: it was not stopped" in glance.out, f"{way}: {glance}")
    answer = json.loads(report(program.pid, "--json").out)
    t.check_equal(f"{way}: the same sentence and next command",
                  (answer["schema"], without_figures(answer["sentence"]), answer["next"]),
                  ("cairn.overview/1", without_figures(said), lines[-1].removeprefix("next: ")))
    shown = re.findall(r"^ +[\d.]+ % +[\d.]+ [KMG]?i?B  (?:(?:now|at most): )?(.*)$", screen, re.M)
    rows = [row["what"] for key in ("resident", "types", "waste", "owners", "remedies") for row in answer[key] or ()]
    t.check_equal(f"{way}: the same rows", [row[:40] for row in rows], [row[:40] for row in shown])
    for options in (("--focus", "main"), ("--by", "calls")) if way == "used" else ():
        refused = report(program.pid, *options)
        t.check((refused.status, refused.out) == (1, b"") and f"is not being recorded: cairn attach {program.pid}".encode() in refused.err,
                f"{way}: {options} need a recording: {refused}")
    if way in ("used", "freed", "equal"):
        check_core(way, program.pid, used, free)
    program.communicate(b"", timeout=t.PATIENCE_S)
    t.check_equal(f"{way}: the program goes on", program.returncode, 0, is_grave=True)


def check_refused():
    ended = subprocess.Popen(["true"])
    t.wait_until(lambda: t.is_in_state(ended.pid, "Z"))
    result = report(ended.pid)
    t.check(result.status == 1 and b"it has ended" in result.err, f"zombie: {result}")
    for command in ("leaks", "info", "open"):  # nothing is promised that it cannot give
        result = t.run_cairn(command, str(ended.pid))
        t.check(result.status == 1 and b"it has ended" in result.err and b"cairn " not in result.err.removeprefix(b"cairn: "),
                f"{command} of a zombie: {result}")
        kernel = t.run_cairn(command, "2")
        t.check(b"kthreadd" not in pathlib.Path("/proc/2/comm").read_bytes() or b"it is the kernel's" in kernel.err,
                f"{command} of the kernel's: {kernel}")
    ended.wait()
    result = report(4194305)
    t.check(result.status == 1 and b"no process 4194305" in result.err, f"nobody: {result}")
    if os.geteuid() == 0:
        result = t.run(["setpriv", "--reuid=65534", "--clear-groups", str(t.CAIRN), "report", "1"])
        t.check(result.status == 1 and b"it belongs to user 0; ask as root" in result.err, f"another's: {result}")


def child_of(pid):
    t.wait_until(lambda: os.path.exists(f"/proc/{pid}/task/{pid}/children")
                 and pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii"))
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])


def check_ending():
    """A process that has given its memory up and is not a zombie yet, nor the kernel's: the first one of a namespace waits
    for the others, of which one is a zombie that is traced from here."""
    if os.geteuid() or not shutil.which("unshare"):
        return
    ptrace_seize, wait_all = 0x4206, 0x40000000
    with t.Process(["unshare", "--pid", "--fork", "sh", "-c", "sleep 300 & wait"], stderr=subprocess.DEVNULL) as outside:
        first = child_of(outside.pid)
        traced = child_of(first)
        t.check_equal("traced", ctypes.CDLL(None).ptrace(ptrace_seize, traced, None, None), 0)
        os.kill(first, signal.SIGKILL)
        t.wait_until(lambda: "VmSize" not in pathlib.Path(f"/proc/{first}/status").read_text(encoding="utf-8"))
        for view in ((), ("--view", "heap"), ("--view", "remedies"), ("--view", "owners")):
            result = report(first, *view)
            t.check((result.status, result.out) == (1, b"") and result.err.endswith(b": it is ending: its memory is gone already\n"),
                    f"ending: {view}: {result}", is_grave=True)
        os.waitpid(traced, wait_all)
        outside.wait(timeout=t.PATIENCE_S)


def check_several():
    """Of several processes of one name the pids are told."""
    name = t.fresh_path("twins")
    shutil.copy(shutil.which("sleep"), name)
    base = os.path.basename(name)
    with t.Process([name, "1000"]) as one, t.Process([name, "1001"]) as other:
        t.wait_until(lambda: all(pathlib.Path(f"/proc/{process.pid}/comm").read_text() == base + "\n" for process in (one, other)))
        os.rename(name, "elsewhere")
        result = report(base)
        t.check(result.status == 1 and all(f"{process.pid} (".encode() in result.err for process in (one, other)),
                f"several: {result}")
        result = report(one.pid, "--format", "csv")
        t.check(result.status == 0 and result.out.startswith(b"part,share,bytes,class,what\n\"resident\","), f"a form: {result}")
        one.kill()
        other.kill()


FOREIGN = """#include <string.h>
#include <sys/mman.h>
#ifdef AT
__attribute__((constructor)) static void map(void) {
    memset(mmap((void *)AT, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), 1, 8 << 20);
}
#endif
"""


def check_foreign():
    """Whose memory is told that is not read, by the name of a library or by where it is, and which tool of theirs to ask."""
    pathlib.Path("foreign.c").write_text(FOREIGN, encoding="ascii")
    for library, option, wanted in (("libsnmallocshim.so", "-DNO", "not read: snmalloc's heap, as a rule (get_malloc_info_v1)"),
                                    ("libplain.so", "-DAT=0xc000000000", "not read: Go's heap, as a rule (go tool pprof)"),
                                    ("libplain.so", "-DNO", None)):
        subprocess.run(["gcc", "-shared", "-fPIC", option, "-o", library, "foreign.c"], check=True)
        program = subprocess.Popen(t.program("why_big", "mapped"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env={**os.environ, "LD_PRELOAD": os.path.abspath(library)})
        program.stdout.readline()
        lines = report(program.pid).out.decode().splitlines()
        told = json.loads(report(program.pid, "--json").out)["not_read"]
        t.check_equal(f"{library} {option}", (f"not read: {told}" if told else None, wanted in lines), (wanted, bool(wanted)), is_grave=True)
        # of a process that is not copied malloc's blocks are not read either
        told = json.loads(report(program.pid, "--json", "--no-stop").out)["not_read"]
        in_all = wanted and wanted.replace("not read: ", "malloc's blocks, and ")
        t.check_equal(f"{library} {option}, not stopped", told, in_all)
        program.communicate(b"", timeout=t.PATIENCE_S)


LINKED = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
void NAME(void) {}
int main(void) {
    memset(mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 8 << 20);
    puts("ready");
    fflush(stdout);
    return getchar() == 'x';
}
"""


def check_linked():
    """The same of an allocator that is a part of the program, by a name that it defines; of a core nothing is known of that."""
    pathlib.Path("linked.c").write_text(LINKED, encoding="ascii")
    for name, wanted in (("__scudo_print_stats", "Scudo's heap, as a rule (__scudo_print_stats)"),
                         ("_ZN8snmalloc9Allocator5allocEm", "snmalloc's heap, as a rule (get_malloc_info_v1)"),
                         ("_ZN5Hoard9HoardHeap6mallocEm", "Hoard's heap, as a rule"),
                         ("_ZN15partition_alloc13PartitionRoot5AllocEm", "PartitionAlloc's heap, as a rule (chrome://tracing, category memory-infra)"),
                         ("_rjem_mallctl", "another jemalloc's heap, as a rule (malloc_stats_print)"), ("plain", None)):
        subprocess.run(["gcc", f"-DNAME={name}", "-o", "linked", "linked.c"], check=True)
        with t.Process(["./linked"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            program.stdout.readline()
            t.check_equal(f"linked in: {name}", json.loads(report(program.pid, "--json").out)["not_read"], wanted, is_grave=True)
            if wanted and shutil.which("gcore") and name.startswith("__"):
                subprocess.run(["gcore", "-o", "linked", str(program.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                t.check_equal("linked in, of a core", json.loads(report(f"linked.{program.pid}", "--json").out)["not_read"], None)


def check_read():
    """An allocator whose heap is read has no second one in what the program maps itself."""
    library = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
    if not os.path.exists(library):
        t.skip_part("a program on jemalloc, which is not installed")
        return
    with t.Process(t.program("why_big", "mapped"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "LD_PRELOAD": library}) as program:
        program.stdout.readline()
        told = json.loads(report(program.pid, "--json").out)
        t.check(any("in use in jemalloc" in row["what"] for row in told["resident"]), f"jemalloc was not read: {told['resident']}")
        t.check_equal("jemalloc, and memory of the program's own", told["not_read"], None)
        program.communicate(b"", timeout=t.PATIENCE_S)


def check_static():
    """What attach would refuse is no next command."""
    with open("static.c", "w", encoding="ascii") as file:
        file.write("#include <unistd.h>\nint main(void) { return (int)read(0, &(char){0}, 1); }\n")
    if subprocess.run(["gcc", "-static", "-s", "-o", "static", "static.c"], stderr=subprocess.DEVNULL, check=False).returncode:
        t.skip_part("a static program, since there is no static libc")
        return
    with t.Process(["./static"], stdin=subprocess.PIPE) as program:
        result = report(program.pid)
        t.check(result.status == 0 and b"next:" not in result.out, f"static: {result}")
        t.check_equal("static: next", json.loads(report(program.pid, "--json").out)["next"], None)
        remedies = report(program.pid, "--view", "remedies", "--json").out
        t.check(b"cairn run --events" not in remedies and b"a log of its events cannot be had: it is statically linked" in remedies,
                f"static: remedies: {remedies}")
        program.stdin.close()


def check_reserved():
    """What a process has reserved and never touched takes neither memory nor time of who asks."""
    with t.Process(t.program("why_big", "reserved"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        for view in ((), ("--view", "owners"), ("--view", "waste")):
            tool = subprocess.Popen([t.CAIRN, "report", *view, str(program.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            screen = tool.stdout.read().decode()
            _, status, used = os.wait4(tool.pid, 0)
            t.check(status == 0 and "in use in glibc's malloc" in screen or view, f"reserved: {view}: {screen}")
            t.check(used.ru_maxrss << 10 < 256 * MIB, f"reserved: {view}: {used.ru_maxrss} KiB for 18 GiB that are not resident",
                    is_grave=True)
        program.stdin.close()


PYTHON = """
import sys
kept = [str(i) * 3 for i in range(200000)]
del kept[::2]
sys._debugmallocstats()
print("ready", flush=True)
sys.stdin.read()
"""


def check_python():
    """Memory of Python's own allocator has its name, and as much of it is free as that says itself."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONMALLOC"}
    program = subprocess.Popen([t.PYTHON, "-c", PYTHON], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=settings)
    t.check_equal("python: begins", program.stdout.readline(), b"ready\n")
    screen = report(program.pid).out.decode()
    rows = json.loads(report(program.pid, "--view", "memory", "--json").out)["rows"]
    memory = report(program.pid, "--view", "memory").out.decode()
    as_csv = report(program.pid, "--view", "memory", "--format", "csv").out.decode()
    _, said = program.communicate(b"", timeout=t.PATIENCE_S)
    wanted = int(re.search(rb"# bytes in allocated blocks\s+=\s+([\d,]+)", said)[1].replace(b",", b""))
    found = re.search(r"([\d.]+ [KM]iB)  in Python's pymalloc, ([\d.]+ [KM]iB) of it free", screen)
    if t.check(found, f"python: {screen}"):
        used = bytes_of(found[1]) - bytes_of(found[2])
        t.check(abs(used - wanted) <= 0.02 * wanted + 0.2 * MIB, f"python: {found[0]}, truth {wanted}", is_grave=True)
    t.check(re.search(r"most of it, .*, is in Python's pymalloc", screen), f"python: {screen}")
    t.check(all(f"  {row['what']}" in memory and row["what"] in as_csv for row in rows), f"memory: {memory} {as_csv} {rows}")
    t.check(len(rows) >= 4 and re.search(r" · [\d.]+ MiB resident, not recorded", memory), f"memory: {memory}")


for twin in TWINS:
    check_twin(twin)
check_python()
check_refused()
check_ending()
check_several()
check_foreign()
check_linked()
check_read()
check_static()
check_reserved()
check_reserved()
if shutil.which("gcore"):
    check_threads_core()
    check_closed_core()
    check_joined()
t.finish()
