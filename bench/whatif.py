#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cairn replay predicts, beside what is: programs are really run on each allocator, and their allocator's
resident memory at its peak is read from /proc/PID/smaps every 2 ms; beside it what a replay says of a log that was
recorded with glibc alone: blocks are touched as far as they were then (--touch recorded, where the log knows it; else
all). Both are the most of several runs: where memory is given back after a time, as in jemalloc, and where it lies in a
place that is drawn, no run is like the other, and a look can miss a peak, but makes none.
Times would depend on how busy the machine is, and are not taken.

    make && bench/whatif.py [FILE [PROGRAM ...]]

Writes a table to FILE, by default bench/results/whatif.md. Programs and allocators that are not here are left out."""

import itertools
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
CAIRN = str(TOP / "build/cairn")
ALLOCATORS = {"glibc": [], "jemalloc": ["libjemalloc.so.2"], "mimalloc": ["libmimalloc.so.2", "libmimalloc.so.3"],
              "tcmalloc": ["libtcmalloc_minimal.so.4"]}
PLACES = ["/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
SQL = """create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i+1 from n where i<150000)
insert into t select i, hex(randomblob(40)), i*0.5 from n; create index tb on t(b);
select count(*) from t a join t b on a.a=b.a+1;"""
SERVED = "redis.socket"
NEAR = 10  # percent
RUNS = 3
# Ends by itself, so that the same calls are made each time.
REDIS = ["redis-server", "--port", "0", "--unixsocket", SERVED, "--save", "", "--appendonly", "no",
         "--activedefrag", "no"]
COMPILER = next(iter(sorted(pathlib.Path("/usr/lib/gcc").glob("*/*/cc1plus"))), pathlib.Path("cc1plus"))
PROGRAMS = {
    "sqlite3": ["sqlite3", ":memory:", SQL],
    "python3": ["/usr/bin/python3", "-c", "import json\nd=[{'a':i,'b':str(i)*3,'c':[i]*5} for i in range(80000)]\n"
                "e=json.loads(json.dumps(d))\nprint(len(e))"],
    "perl": ["perl", "-e", "my %h; for (1..300000) { $h{$_} = 'x' x ($_ % 90); delete $h{$_ - 9} if $_ % 3 == 0 }"],
    "jq": ["jq", "[.[] | {a: .a, c: (.c | add)}] | length", "data.json"],
    "xmllint": ["xmllint", "--noout", "data.xml"],
    "git": ["git", "-C", str(TOP), "log", "--stat", "-n", "300"],
    "cc1plus": [str(COMPILER), "-quiet", "-O1", "-o", "/dev/null", "source.cc"],
    "redis": REDIS,
    "C++ server": ["./server", "60000"],
    "ripgrep": ["rg", "-c", "--no-ignore", "-j", "1", "-i", "-f", "words.txt", str(TOP / "runtime")],
    # Chosen by nobody: what a Debian happens to have.
    "lua": ["lua5.4", "-e", "local t={} for i=1,200000 do t[i]={i,tostring(i)..'x'} if i%3==0 then t[i-2]=nil end end"],
    "php": ["php", "-n", "-r", "$a=[]; for($i=0;$i<200000;$i++){$a[$i%50000]=['n'=>$i,'t'=>str_repeat('x',$i%90)];}"],
    "gawk": ["gawk", "BEGIN{for(i=0;i<250000;i++){a[i%60000]=a[i%60000] i; b[i%977]=sprintf(\"%040d\",i)}}"],
    "tclsh": ["tclsh", "tree.tcl"],
    "xz": ["xz", "-k", "-c", "-6", "data.xml"],
    "dot": ["dot", "-Tsvg", "graph.dot"],
    "openssl": ["openssl", "crl2pkcs7", "-nocrl", "-certfile", "/etc/ssl/certs/ca-certificates.crt"],
    "vim": ["vim", "-u", "NONE", "-es", "-c", "set ul=1000", "-c", "%s/a/bb/g", "-c", "%s/e/ff/g", "-c", "q!", "data.xml"],
    "cmake": ["cmake", "-P", "list.cmake"],
}
# Allocate in arenas of their own otherwise, which no other allocator would see.
OF_OTHERS = {"PYTHONMALLOC": "malloc", "USE_ZEND_ALLOC": "0"}
PRELOADED = {"redis": ["libc.so.6"]}  # in place of the allocator that Debian links it with


def library(names):
    for place in PLACES:
        for name in names:
            if pathlib.Path(place, name).exists():
                return f"{place}/{name}"
    return None


def make_data():
    pathlib.Path("tree.tcl").write_text("for {set i 0} {$i < 120000} {incr i} {\n  set t($i) [list $i [string repeat x "
                                        "[expr {$i % 70}]]]\n  if {$i % 3 == 0} { unset t($i) }\n}\n", encoding="ascii")
    pathlib.Path("list.cmake").write_text("foreach(i RANGE 40000)\n  list(APPEND l item_${i})\n  set(v_${i} \"${i};${i}\")\n"
                                          "endforeach()\nlist(SORT l)\nlist(LENGTH l n)\n", encoding="ascii")
    pathlib.Path("graph.dot").write_text("digraph {" + "".join(f"n{i}->n{i * 7 % 400};" for i in range(600)) + "}",
                                         encoding="ascii")
    with open("words.txt", "w", encoding="ascii") as file:
        file.write("".join(f"{i * 2654435761 % 2**32:08x}{i * 7919 % 4096:x}\n" for i in range(1, 2500)))
    with open("data.json", "w", encoding="ascii") as file:
        file.write("[" + ",".join(f'{{"a":{i},"b":"{i}x","c":[{i},{i},2]}}' for i in range(60000)) + "]")
    with open("data.xml", "w", encoding="ascii") as file:
        file.write("<r>" + "".join(f"<e a='{i}'><b>text {i}</b><c/></e>" for i in range(60000)) + "</r>")


# Memory that the program itself maps is none of its allocator's: as a file's it can be told apart.
OWN_MAPPINGS = r"""#define _GNU_SOURCE
#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static int is_of_program(unsigned long at) {
    const Elf64_Phdr *part = (const void *)getauxval(AT_PHDR);
    unsigned long base = 0;
    for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++)
        if (part[i].p_type == PT_PHDR) base = (unsigned long)part - part[i].p_vaddr;
    for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++)
        if (part[i].p_type == PT_LOAD && at - base - part[i].p_vaddr < part[i].p_memsz) return 1;
    return 0;
}
void *mmap(void *at, size_t bytes, int access, int flags, int file, off_t offset) {
    if ((flags & MAP_ANONYMOUS) && (flags & MAP_PRIVATE) && is_of_program((unsigned long)__builtin_return_address(0))) {
        int own = memfd_create("own", MFD_CLOEXEC);
        if (own >= 0 && ftruncate(own, (off_t)bytes) == 0)
            at = (void *)syscall(SYS_mmap, at, bytes, access, flags & ~MAP_ANONYMOUS, own, 0L);
        close(own);
        return at;
    }
    return (void *)syscall(SYS_mmap, at, bytes, access, flags, file, offset);
}
void *mmap64(void *at, size_t bytes, int access, int flags, int file, off_t offset)
    __attribute__((alias("mmap")));
"""


def make_programs():
    pathlib.Path("own.c").write_text(OWN_MAPPINGS, encoding="ascii")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", "own.so", "own.c"], check=True)
    pathlib.Path("source.cc").write_text("#include <map>\n#include <regex>\n#include <string>\n"
                                         "bool f(const std::string &s) { return std::regex_match(s, std::regex(s)); }\n"
                                         "std::map<std::string, std::map<int, std::string>> m;\n"
                                         "int g(const std::string &s) { return m[s][3].size(); }\n", encoding="ascii")
    subprocess.run(["g++", "-O2", "-o", "server", TOP / "examples/server.cc"], check=True)


def connect():
    """To redis, which is being started: it listens some time after its socket is there."""
    while True:
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(SERVED)
            return client
        except (FileNotFoundError, ConnectionRefusedError):
            client.close()
            time.sleep(0.01)


def serve():
    """What clients of redis do: fill it, throw half of it away, fill it with other sizes."""
    with connect() as client:
        def ask(commands):
            client.sendall("".join(f"{command}\r\n" for command in commands).encode())
            for _ in commands:
                reader.readline()

        reader = client.makefile("rb")
        for start in range(0, 120000, 500):
            ask([f"SET key:{i} {'v' * (20 + i * 37 % 300)}" for i in range(start, start + 500)])
        for start in range(0, 120000, 500):
            ask([f"DEL key:{i}" for i in range(start, start + 500) if i % 2])
        for start in range(0, 60000, 500):
            ask([f"HSET hash:{i % 3000} field:{i} {'w' * (40 + i * 53 % 500)}" for i in range(start, start + 500)])
        client.sendall(b"SHUTDOWN NOSAVE\r\n")
        reader.read()


def anonymous(pid):
    """Bytes of heap and unnamed mappings that are resident, without the program's .bss, which follows its data; 0 if
    the process is gone."""
    total, counts, end_of_data = 0, False, ""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps").read_text(encoding="ascii", errors="replace")
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return 0
    for line in text.splitlines():
        fields = line.split()
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            name = fields[5] if len(fields) > 5 else ""
            start, end = fields[0].split("-")
            counts = name == "[heap]" or name.startswith("[anon") or (not name and start != end_of_data)
            end_of_data = end if name == program else ""
        elif counts and fields[0] == "Anonymous:":
            total += int(fields[1]) * 1024
    return total


def started(argv, preload, command=()):
    """The program, with its client where it is a server."""
    env = {**os.environ, **OF_OTHERS}
    if preload:
        env["LD_PRELOAD"] = preload
    pathlib.Path(SERVED).unlink(missing_ok=True)
    process = subprocess.Popen([*command, *argv], env=env, stdout=subprocess.DEVNULL)
    if argv is REDIS:
        threading.Thread(target=serve, daemon=True).start()
    return process


def real_peak(argv, preload):
    peak = 0
    with started(argv, f"{os.getcwd()}/own.so {preload}") as process:
        while process.poll() is None:
            peak = max(peak, anonymous(process.pid))
            time.sleep(0.0002)
    return peak


def predicted_peak(log, preload):
    shown = subprocess.run([CAIRN, "replay", "--bytes", *(["-a", preload] if preload else []), log],
                           capture_output=True, text=True, check=True).stdout
    return int(re.search(r"peak.*live +(\d+) resident", shown).group(1))


def measure(name, argv, rows):
    base = name.replace(" ", "-")
    usual = library(PRELOADED[name]) if name in PRELOADED else ""
    with started(argv, usual, [CAIRN, "run", "-q", "--events", "--events-wait", "-o", f"{base}.cairn", "--"]) as recorded:
        recorded.wait()
    pairs = {}
    for allocator, names in ALLOCATORS.items():
        preload = library(names) if names else ""
        if preload is not None:
            real = max(real_peak(argv, preload or usual) for _ in range(RUNS))
            predicted = max(predicted_peak(f"{base}.events", preload) for _ in range(RUNS))
            pairs[allocator] = (real, predicted)
    for allocator, (real, predicted) in pairs.items():
        rows.append((name, allocator, real, predicted, 100 * (predicted - real) / real))
        print(f"{name:10} {allocator:10} {real / 2**20:8.1f} {predicted / 2**20:8.1f} {rows[-1][4]:+6.1f} %", flush=True)
    return is_ranked(pairs)


def is_ranked(pairs):
    """Whether each two allocators are in the order that they really have; those nearer than 2 % have none."""
    nearest = 1.02
    for a, b in itertools.permutations(pairs, 2):
        if pairs[a][0] * nearest < pairs[b][0] and pairs[a][1] > pairs[b][1]:
            return False
    return True


def write_table(target, rows, right):
    within = sum(abs(row[4]) <= NEAR for row in rows)
    wrong = [name for name, is_right in right if not is_right]
    with open(target, "w", encoding="utf-8") as out:
        out.write("# What a replay predicts, and what is\nResident memory of the allocator at its peak, MiB "
                  "(`bench/whatif.py`): really, and as `cairn replay`\nsays of a log made with glibc, where blocks are "
                  f"touched as far as they were then. Each is the most of {RUNS} runs.\n\n"
                  "| program | allocator | real | predicted | difference |\n|---|---|--:|--:|--:|\n")
        for name, allocator, real, predicted, difference in rows:
            mark = "" if abs(difference) <= NEAR else "**"
            out.write(f"| {name} | {allocator} | {real / 2**20:.1f} | {predicted / 2**20:.1f} | "
                      f"{mark}{difference:+.1f} %{mark} |\n")
        out.write(f"\nWithin {NEAR} %: {within} of {len(rows)}. All pairs of allocators that lie 2 % or more apart are in\n"
                  f"the order predicted for {len(right) - len(wrong)} of {len(right)} programs")
        out.write(f"; not for {', '.join(wrong)}.\n" if wrong else ".\n")


def main():
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else TOP / "bench/results/whatif.md").resolve()
    rows, right = [], []
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        make_data()
        make_programs()
        for name, argv in PROGRAMS.items():
            if shutil.which(argv[0]) and name in (sys.argv[2:] or PROGRAMS):
                right.append((name, measure(name, argv, rows)))
                write_table(target, rows, right)


if __name__ == "__main__":
    main()
