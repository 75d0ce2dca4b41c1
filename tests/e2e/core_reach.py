#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types and reachability in cores: as the program itself counts, as LeakSanitizer, malloc_info and chap's
guide say, the same with a recording and without; cores of static and foreign programs, damaged ones, and
without the files of the program."""

import glob
import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t

t.need("gcore", "g++")
SUM = re.compile(rb"(\d+) allocations use 0x([0-9a-f]+) \([\d,]+\) bytes\.\n$")
SIGNATURE = re.compile(rb"Signature [0-9a-f]+ \((.*)\) has (\d+) instances")
HEADER = 8  # of a used chunk, beside what can be used
TOP_HEADER = 16
# The program of chap's guide (USERGUIDE.md, "An Example of Used and Free Allocations"), and what it documents.
GUIDE = "#include <malloc.h>\n#include <unistd.h>\nint main(void) { int *p = (int *)malloc(2 * sizeof(int));\n" \
        "p[0] = 92; p[1] = 93; write(1, \"x\\n\", 2); pause(); return p[0]; }\n"
GUIDE_SAYS = {"allocations": (3, 0x20fe0), "used": (2, 0x2a0), "free": (1, 0x20d40)}


def child_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])


def dump(name, argv, under=(), is_child=True):
    """A core of a program when it has said its line; returns its path and the line's words. `under`: what runs it,
    as a child or in its own place."""
    is_child = is_child and under
    with t.Process([*under, *argv], env=t.environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        line = child.stdout.readline().decode()
        pid = child_of(child.pid) if is_child else child.pid
        done = subprocess.run(["gcore", "-o", name, str(pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        t.check(os.path.exists(f"{name}.{pid}"), f"{name}: {done.stdout.decode()[-300:]}")
        if not is_child:
            child.kill()
        child.stdin.close()
    return f"{name}.{pid}", dict(word.split("=") for word in line.split() if "=" in word)


def ask(core, *words, status=0):
    result = t.run_cairn("core", core, *words)
    t.check_equal(f"{core} {' '.join(words)}: status ({result.err.decode()[-200:]})", result.status, status)
    return result.out


def count(core, *words):
    found = SUM.search(ask(core, "count", *words))
    return (int(found[1]), int(found[2], 16)) if t.check(found, f"{core} {words}: no sum") else (0, 0)


def check_leaks(what, core, line):
    wanted = int(line["leaked"])
    t.check_equal(f"{what}: leaked", count(core, "leaked")[0], wanted)
    t.check_equal(f"{what}: unreferenced", count(core, "unreferenced")[0], int(line["unreferenced"]))
    used, anchored = count(core, "used"), count(core, "anchored")
    t.check_equal(f"{what}: used, less what is leaked", anchored[0], used[0] - wanted)
    t.check_equal(f"{what}: addresses of leaked blocks", len(ask(core, "enumerate", "leaked").split()), wanted)


def check_types(what, core, line):
    found = {name.decode(): int(number) for name, number in SIGNATURE.findall(ask(core, "summarize", "used"))}
    for name, word in (("zoo::Dog", "dogs"), ("zoo::Box<int>", "boxes"), ("zoo::(anon)::Hidden", "hidden"),
                       ("run_task", "tasks"), ("label_text+0x2", "labels")):
        t.check_equal(f"{what}: blocks of {name}", found.get(name), int(line[word]))
        t.check_equal(f"{what}: count used {name}", count(core, "used", name)[0], int(line[word]))
    listed = ask(core, "list", "used", "zoo::Dog")
    t.check_equal(f"{what}: signatures in the list", len(re.findall(rb"\.\.\. with signature [0-9a-f]+\(zoo::Dog\)\n",
                                                                    listed)), int(line["dogs"]))
    t.check_equal(f"{what}: with and without a type", count(core, "used", "-")[0] + sum(found.values()),
                  count(core, "used")[0])


def check_ways(core, line):
    last = line["last"].encode()
    way = re.findall(rb"references (?:anchor point )?0x([0-9a-f]+)\n", ask(core, "explain", line["last"]))
    t.check(len(way) == 4 and way[-1] == last, f"explain: {way}")
    for referring, block in zip(way, way[1:]):
        t.check_equal("incoming", ask(core, "enumerate", "incoming", block.decode()).split(), [referring])
        t.check_equal("outgoing", ask(core, "enumerate", "outgoing", referring.decode()).split(), [block])
    t.check(b"(chain) references anchor point 0x" + way[0] in ask(core, "explain", line["last"]), "explain: no root")
    about = ask(core, "explain", line["interior"])
    t.check(b"is at offset 60 of\nan anchored" in about and b"(inside) references" in about, f"interior: {about}")
    lost = ask(core, "enumerate", "leaked").split()[-2].decode()
    t.check(re.search(rb"a leaked allocation .*\n(?:.*\n)?The leaked allocation at 0x[0-9a-f]+ references 0x"
                      + lost.encode(), ask(core, "explain", lost)), f"ring: {ask(core, 'explain', lost)}")


def check_explained_sets(core):
    """What `explain` says of a block in a set is what it says of it alone."""
    for words, most in ((("leaked",), 40), (("used",), 25), (("anchored", "zoo::Dog"), 5)):
        blocks = ask(core, "explain", *words).split(b"\n\n")[:-1]
        t.check_equal(f"explain {words}: blocks", len(blocks), count(core, *words)[0])
        for block in blocks[::len(blocks) // most + 1]:
            address = re.search(rb"allocation at ([0-9a-f]+)", block)[1].decode()
            alone = ask(core, "explain", "allocation", address).split(b"\n\n")[0]
            t.check_equal(f"explain {words}: {address}", block, alone)


def check_malloc_info(core, path):
    """Chunks and bytes that glibc itself counts, at the same time."""
    text = pathlib.Path(path).read_text(encoding="ascii")
    totals = {kind: (int(number), int(size)) for kind, number, size in
              re.findall(r'<total type="(\w+)" count="(\d+)" size="(\d+)"/>', text)}  # the last: of all arenas
    arenas = len(re.findall("<heap nr=", text))
    blocks, size = count(core, "free")
    cached = re.search(rb"(\d[\d,]*) +\S+ \S+  free, in caches", ask(core))
    t.check_equal("malloc_info: nothing in caches", cached and cached[1], b"0")
    t.check_equal("malloc_info: free chunks", blocks, totals["fast"][0] + totals["rest"][0])
    t.check_equal("malloc_info: free bytes", size + HEADER * (blocks - arenas) + TOP_HEADER * arenas,
                  totals["fast"][1] + totals["rest"][1])
    large = [int(size, 16) for size in re.findall(rb" of size ([0-9a-f]+)\n", ask(core, "list", "used"))
             if int(size, 16) >= 128 << 10]
    t.check_equal("malloc_info: chunks with mappings", (len(large), sum(large) + 16 * len(large)), totals["mmap"])


def check_sanitizer(line):
    """LeakSanitizer's leaks are leaked; its direct ones are those that no other leaked block refers to."""
    source = t.SOURCE / "tests/programs/reach.cc"
    built = subprocess.run(["g++", "-g", "-O1", "-fno-builtin", "-fsanitize=leak", "-pthread", "-o", "sanitized",
                            str(source)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if built.returncode:
        t.skip_part("LeakSanitizer, which cannot be built with here")
        return
    said = t.run(["./sanitized"]).err.decode(errors="replace")
    if "fatal error" in said:
        t.skip_part("LeakSanitizer, which does not run here")
        return
    whole = re.search(r"SUMMARY: LeakSanitizer: (\d+) byte\(s\) leaked in (\d+) allocation", said)
    direct = sum(map(int, re.findall(r"Direct leak of \d+ byte\(s\) in (\d+) object", said)))
    t.check_equal("LeakSanitizer: leaked", whole and (int(whole[2]), int(whole[1])),
                  (int(line["leaked"]), int(line["leaked_bytes"])))
    t.check_equal("LeakSanitizer: direct", direct, int(line["unreferenced"]))


def check_guide():
    pathlib.Path("guide.c").write_text(GUIDE, encoding="ascii")
    subprocess.run(["g++", "-O0", "-w", "-x", "c", "-o", "guide", "guide.c"], check=True)
    core, _ = dump("guide", ["./guide"])
    for which, wanted in GUIDE_SAYS.items():
        t.check_equal(f"chap's guide: {which}", count(core, which), wanted)


def check_static():
    """Thread-local data of the main thread lies in front of its heap there."""
    source = str(t.SOURCE / "tests/programs/reach.cc")
    built = subprocess.run(["g++", "-O1", "-fno-builtin", "-static", "-pthread", "-o", "standalone", source],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if built.returncode:
        t.skip_part("a static program, which cannot be built here")
        return
    core, line = dump("standalone", ["./standalone"])
    check_leaks("static", core, line)
    check_types("static", core, line)


def check_foreign():
    core, _ = dump("python", [t.PYTHON, "-c", "import json, sys; held = [str(n) for n in range(1000)]; "
                                              "print('ready', flush=True); sys.stdin.read()"])
    t.check(count(core, "used")[0] > 200, "python: hardly a block")
    t.check(count(core, "leaked")[0] < count(core, "used")[0] / 20, "python: much is leaked")


def check_other_allocator():
    """The blocks of jemalloc have types without a recording, too; with one they have sizes as requested, and stacks."""
    library = glob.glob("/usr/lib/*/libjemalloc.so.2")
    if not library:
        t.skip_part("another allocator, since libjemalloc.so.2 is not here")
        return
    core, line = dump("unrecorded", t.program("reach"), ["env", f"LD_PRELOAD={library[0]}"], is_child=False)
    check_types("jemalloc, not recorded", core, line)
    core, line = dump("jemalloc", t.program("reach"), ["env", f"LD_PRELOAD={library[0]}", t.CAIRN, "run", "-q", "-o",
                                                       "jemalloc.cairn", "--"])
    check_types("another allocator", core, line)
    # the allocator's own lists are no roots, or hardly one would be leaked
    result, wanted = t.run_cairn("core", core, "count", "leaked"), int(line["leaked"])
    found = count(core, "leaked")[0]
    t.check(result.status == 0 and b"itself" not in result.err, f"another allocator: {result.err}")
    t.check(wanted * 0.9 <= found <= wanted, f"another allocator: {found} leaked of {wanted}")


def check_damaged(core):
    data = pathlib.Path(core).read_bytes()
    for size in (5000, len(data) // 10, len(data) // 2, len(data) - 5000):
        pathlib.Path("cut").write_bytes(data[:size])
        for words in (("count", "leaked"), ("summarize", "used"), ("describe", "used"), ()):
            result = t.run_cairn("core", "cut", *words)
            t.check(result.status in (0, 1), f"cut to {size}, {words}: {result.status} {result.err}")
            t.check(result.status == 0 or re.fullmatch(rb"cairn: cut: [^\n]+\n", result.err),
                    f"cut to {size}, {words}: {result.err}")


def check_missing_files(line):
    """What the core has is enough to find blocks; classes need the program's file, and its absence is said."""
    shutil.copy(t.program("reach")[0], "moved")
    core, _ = dump("moved", ["./moved"])
    check_types("a copy", core, line)
    os.remove("moved")
    result = t.run_cairn("core", core, "summarize", "used")
    t.check(result.status == 0 and b"moved: the file is missing" in result.err, f"missing file: {result.err}")
    t.check(b"run_task" not in result.out, "missing file: names out of nowhere")
    shutil.copy(t.program("hold")[0], "moved")
    result = t.run_cairn("core", core, "summarize", "used")
    t.check(result.status == 0 and b"build-id differs" in result.err, f"another file: {result.err}")
    check_leaks("a copy", core, line)
    os.makedirs("root" + os.getcwd())
    shutil.copy(t.program("reach")[0], "root" + os.getcwd() + "/moved")
    found = t.run_cairn("core", "--sysroot", "root", core, "summarize", "used")
    t.check(b"zoo::Dog" in found.out and b"run_task" in found.out, f"sysroot: {found.out}")


program = t.program("reach", "info.xml")
plain, ledger = dump("plain", program)
check_leaks("plain", plain, ledger)
check_types("plain", plain, ledger)
check_ways(plain, ledger)
check_explained_sets(plain)
check_malloc_info(plain, "info.xml")
check_sanitizer(ledger)
recorded, ledger = dump("recorded", program, [t.CAIRN, "run", "-q", "-o", "run.cairn", "--"])
check_leaks("recorded", recorded, ledger)
check_types("recorded", recorded, ledger)
t.check_equal("recorded: bytes leaked", count(recorded, "leaked")[1], int(ledger["leaked_bytes"]))
t.check(b"main" in ask(recorded, "describe", "leaked"), "recorded: leaked blocks have no stacks")
of_heap = set(re.findall(rb"Used allocation at ([0-9a-f]+) ", ask(recorded, "list", "allocations")))
missing = set(ask(recorded, "enumerate", "used").split()) - of_heap
t.check(not missing, f"recorded blocks that glibc has not in use: {missing}")
t.check(len(of_heap) < count(recorded, "used")[0] + 20, "glibc has many blocks in use that were not recorded")
sampled, _ = dump("sampled", t.program("reach"), [t.CAIRN, "run", "-q", "--sample", "-o", "sample.cairn", "--"])
t.check(b"a sample was recorded" in t.run_cairn("core", sampled, "count", "used").err, "sampled: not said")
check_guide()
check_static()
check_foreign()
check_other_allocator()
check_damaged(plain)
check_missing_files(ledger)
t.finish()
