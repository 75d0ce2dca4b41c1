#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run of static programs, of glibc and musl, at fixed addresses and at any, in C, C++ and Rust: what a counter that is
linked into each has counted, to the call and byte; whole stacks; the same output and status; forked children and
threads; a program that is killed, and a tool that is. What cannot be recorded is refused with the reason, and has not
begun then."""

import os
import pathlib
import shutil
import signal
import subprocess

import cairn_test as t
import counts
import static_counter

C = ("leak", "threads", "realloc_chain", "deep_recursion", "odd_arguments")
CXX = ("containers", "aligned", "exceptions", "objects")
WORDS = {"threads": ["short"]}


def builds():
    for libc in ("gcc", "musl-gcc"):
        for kind in ("-static", "-static-pie"):
            for name in C:
                if (name, libc) != ("odd_arguments", "musl-gcc"):  # the program itself dies there
                    yield f"{name}.c", libc, kind, libc
            for name in CXX if libc == "gcc" else ():
                yield f"{name}.cc", libc, kind, "g++"


def check_counted(what, argv):
    prefix = t.fresh_path("counted")
    plain = t.run(argv)
    result, path = t.record(argv, env={"COUNT_PRELOAD_OUT": prefix})
    result.check_like(what, plain)
    found, wanted = t.report(path), list(counts.read_all(prefix).values())
    t.check_equal(f"{what}: counted processes", len(wanted), 1)
    if not found or not wanted:
        return
    t.check_totals(what, found, wanted[0], with_peak=len(found["threads"]) == 1)
    t.check_sums(what, found)
    t.check_nothing_lost(what, found)
    t.check(found["trust"]["exact"], f"{what}: not exact")
    t.check_equal(f"{what}: stacks that are cut", found["trust"]["stacks_incomplete"], {})
    shown = t.run_cairn("report", path).out.decode()  # how threads begin is as internal as in a libc of its own
    t.check("start_thread" not in shown and "clone3" not in shown, f"{what}: {shown}")


def check_children(static, how, count):
    """Every process has a recording of its own, by whatever call it was made."""
    _, path = t.record([static, how, str(count)])
    files = sorted(pathlib.Path(path).glob("*.cairn"))
    t.check_equal(f"{how}: recordings", len(files), count + 1)
    blocks = []
    for file in files:
        found = t.report(file)
        t.check_sums(f"{how}: {file.name}", found)
        t.check_nothing_lost(f"{how}: {file.name}", found)
        blocks.append(sum(s["allocations"] for s in t.stacks_through(found, "child_work")))
    t.check_equal(f"{how}: blocks of each child", sorted(blocks), [0] + [1000] * count)


LOOKS = r"""
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <pthread.h>
static _Thread_local long first = 11, second = 22, empty;
static _Thread_local char wide[64] __attribute__((aligned(64))) = "wide";
static long kept = 5;
static _Thread_local long *volatile pointed = &kept;  // relocated, in programs that lie anywhere
static void *look(void *name) {
    printf("%s: locals %ld %ld %ld %ld %s %d\n", (char *)name, *pointed, first, second, empty, wide, (int)((size_t)wide % 64));
    first = second = empty = -1;
    memset(wide, 0, sizeof wide);
    return malloc(100);
}
int main(int count, char **words) {
    struct dirent *entry;
    sigset_t mask;
    DIR *files = opendir("/proc/self/fd");
    while ((entry = readdir(files))) printf("%s ", entry->d_name);
    closedir(files);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int i = 1; i < 65; i++) {
        struct sigaction action = {0};
        sigaction(i, NULL, &action);
        printf("%d%d ", sigismember(&mask, i), action.sa_handler != SIG_DFL);
    }
    for (int i = 0; i < 16; i++) {
        struct rlimit limit = {0, 0};
        getrlimit(i, &limit);
        printf("%lx/%lx ", (long)limit.rlim_cur, (long)limit.rlim_max);
    }
    printf("%o %d %d %s\n", umask(0), getpriority(PRIO_PROCESS, 0), count, words[count - 1]);
    pthread_t thread;
    void *block;
    for (int i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, look, "thread");
        pthread_join(thread, &block);
        free(block);
    }
    free(look("main"));
    return (int)*pointed;
}
"""


def check_identity():
    """Files, signals, limits and thread-locals, also of threads that take the stacks of others, are as they are without."""
    pathlib.Path("looks.c").write_text(LOOKS, "ascii")
    for libc in ("gcc", "musl-gcc"):
        for kind in ("-static", "-static-pie"):
            looks = static_counter.build("looks.c", f"looks{kind}-{libc}", kind, compiler=libc)
            plain = t.run([looks, "word"])
            t.check_equal(f"looks {libc} {kind}: status", plain.status, 5)
            t.record([looks, "word"])[0].check_like(f"looks {libc} {kind}", plain)
            t.record([looks, "word"], options=("--sample", "--rate=64"))[0].check_like(f"looks {libc} {kind}, a sample", plain)


SQLITE = r"""
#include <sqlite3.h>
#include <stdio.h>
static int row(void *sum, int count, char **values, char **names) {
    (void)names;
    for (int i = 0; i < count; i++) *(long *)sum += values[i] ? values[i][0] : 1;
    return 0;
}
int main(void) {
    long sum = 0;
    sqlite3 *data;
    if (sqlite3_open(":memory:", &data)) return 1;
    sqlite3_exec(data, "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)"
                       " insert into t select i, hex(i * 77) from n; create index u on t(b)", NULL, NULL, NULL);
    sqlite3_exec(data, "select b, count(*), group_concat(a) from t group by b order by b desc", row, &sum, NULL);
    sqlite3_close(data);
    printf("%ld\n", sum);
}
"""
RUST = """
use std::{collections::HashMap, thread};
fn main() {
    let words: HashMap<u32, String> = (0..2000).map(|i| (i, format!("word {}", i))).collect();
    let threads: Vec<_> = (0..3).map(|k| thread::spawn(move || (0..1000).map(|i| vec![k as u8; i % 90].len()).sum::<usize>())).collect();
    println!("{} {}", words.len(), threads.into_iter().map(|one| one.join().unwrap()).sum::<usize>());
}
"""


PYTHON = "int Py_BytesMain(int, char **);\nint main(int count, char **words) { return Py_BytesMain(count, words); }\n"
TCL = r"""
#include <stdio.h>
typedef struct Tcl_Interp Tcl_Interp;
Tcl_Interp *Tcl_CreateInterp(void);
int Tcl_Eval(Tcl_Interp *, const char *);
const char *Tcl_GetStringResult(Tcl_Interp *);
void Tcl_DeleteInterp(Tcl_Interp *), Tcl_FindExecutable(const char *);
int main(int count, char **words) {
    Tcl_FindExecutable(words[count - 1]);
    Tcl_Interp *tcl = Tcl_CreateInterp();
    Tcl_Eval(tcl, "set l {}; for {set k 0} {$k < 2000} {incr k} {lappend l [format %x [expr {$k * 77}]]; dict set d $k $l};"
                  "string length [lsort $l]");
    printf("%s\n", Tcl_GetStringResult(tcl));
    Tcl_DeleteInterp(tcl);
}
"""
XML = r"""
#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <stdio.h>
#include <string.h>
int main(void) {
    static char text[200000] = "<r>";
    for (int i = 0; i < 3000; i++) sprintf(text + strlen(text), "<a n='%d'>t%d</a>", i, i);
    xmlDocPtr read = xmlParseMemory(strcat(text, "</r>"), (int)strlen(text) + 4);
    xmlXPathContextPtr context = xmlXPathNewContext(read);
    xmlXPathObjectPtr found = xmlXPathEvalExpression(BAD_CAST "//a[@n>2990]", context);
    printf("%d\n", found->nodesetval->nodeNr);
    xmlXPathFreeObject(found);
    xmlXPathFreeContext(context);
    xmlFreeDoc(read);
    xmlCleanupParser();
}
"""
PACK = r"""
#include <bzlib.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
enum { BYTES = 300000 };
int main(void) {
    unsigned char *in = malloc(BYTES), *out = malloc(BYTES * 2);
    uLongf deflated = BYTES * 2;
    unsigned sorted = BYTES * 2;
    size_t xz = 0;
    for (size_t i = 0; i < BYTES; i++) in[i] = (unsigned char)(i * i >> 7);
    compress2(out, &deflated, in, BYTES, 9);
    size_t zstd = ZSTD_compress(out, BYTES * 2, in, BYTES, 12);
    lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, in, BYTES, out, &xz, BYTES * 2);
    BZ2_bzBuffToBuffCompress((char *)out, &sorted, (char *)in, BYTES, 9, 0, 30);
    printf("%lu %zu %zu %u\n", deflated, zstd, xz, sorted);
    free(in);
    free(out);
}
"""
# source, libraries, words
LIBRARIES = {
    "python": (PYTHON, "python3.11 expat z m", ["-ISc", "print(sum(len(str(i)) for i in range(3000)))"]),
    "tcl": (TCL, "tcl8.6 z m", []),
    "xml": (XML, "xml2 icuuc icudata z lzma m stdc++", []),
    "pack": (PACK, "z zstd lzma bz2", []),
}


def check_libraries(library):
    """What Debian has as static libraries, each with a main of its own."""
    for name, (source, needed, words) in LIBRARIES.items():
        if not all((library / f"lib{one}.a").exists() or one == "stdc++" for one in needed.split()):
            t.skip_part(f"{name}, since not all of {needed} are here as static libraries")
            continue
        pathlib.Path(f"{name}.c").write_text(source, "ascii")
        built = static_counter.build(f"{name}.c", f"{name}-static", "-static", "-w", "-I/usr/include/libxml2",
                                     objects=["-Wl,--start-group", *(f"-l{one}" for one in needed.split()), "-Wl,--end-group"])
        if built:
            check_counted(name, [built, *words])


def check_real():
    """SQLite, CPython and others; a program of Rust; allocators that are linked in place of libc's."""
    pathlib.Path("sqlite.c").write_text(SQLITE, "ascii")
    library = pathlib.Path("/usr/lib/x86_64-linux-gnu")
    if (library / "libsqlite3.a").exists():
        built = static_counter.build("sqlite.c", "sqlite", "-static", objects=["-lsqlite3", "-lm"])
        check_counted("sqlite", [built])
    else:
        t.skip_part("SQLite, since there is no libsqlite3.a")
    if shutil.which("rustc"):
        pathlib.Path("words.rs").write_text(RUST, "ascii")
        arguments = [f"-Clink-arg={word}" for word in [static_counter.judge("gcc"), *static_counter.LINK]]
        for model in ("pic", "static"):
            static_counter.must(["rustc", "-g", "-Ctarget-feature=+crt-static", f"-Crelocation-model={model}", *arguments,
                                 "words.rs", "-o", f"words-{model}"])
            check_counted(f"Rust, {model}", [os.path.abspath(f"words-{model}")])
    else:
        t.skip_part("Rust, since there is no rustc")
    check_libraries(library)
    _, path = t.record(t.program("containers"))
    plain = sum(s["allocations"] for s in t.stacks_through(t.report(path), "main"))
    for name in ("jemalloc", "tcmalloc_minimal"):
        if not (library / f"lib{name}.a").exists():
            t.skip_part(f"{name}, since there is no lib{name}.a")
            continue
        static_counter.must(["g++", "-O1", "-g", "-fno-builtin", "-static", t.SOURCE / "tests/programs/containers.cc", "-o", name,
                             library / f"lib{name}.a", "-lm", "-pthread"])
        _, path = t.record([os.path.abspath(name)])
        found = t.report(path)
        t.check_nothing_lost(name, found)
        t.check_equal(f"{name}: calls below main", sum(s["allocations"] for s in t.stacks_through(found, "main")), plain)


def start(static, *words, **variables):
    """The tool with a program that says a word once it holds its blocks, and waits for the end of its input."""
    path, word = t.fresh_path("held") + ".cairn", t.fresh_path("word")
    with open(word, "wb") as out:
        tool = subprocess.Popen([t.CAIRN, "run", "-q", "-o", path, "--", static, *words], env=t.environment(variables),
                                stdin=subprocess.PIPE, stdout=out)
    t.wait_until(lambda: os.path.getsize(word) > 0)
    children = [pid for pid in t.children_of(tool.pid) if pathlib.Path(f"/proc/{pid}/exe").resolve() == pathlib.Path(static)]
    t.check_equal("one process of it", len(children), 1)
    return tool, children[0], path


def check_killed(static):
    """The counter and the recording are both in memory that is shared: they agree however it ends."""
    prefix = t.fresh_path("counted")
    tool, child, path = start(static, COUNT_PRELOAD_OUT=prefix)
    os.kill(child, signal.SIGKILL)
    t.check_equal("killed: status", tool.wait(), 128 + signal.SIGKILL)
    found, wanted = t.report(path), list(counts.read_all(prefix).values())
    if found and t.check_equal("killed: counted processes", len(wanted), 1):
        t.check_totals("killed", found, wanted[0])


def check_tool_killed(static):
    """Without the tool the program goes on, and writes its recording itself when it ends."""
    prefix = t.fresh_path("counted")
    tool, child, path = start(static, COUNT_PRELOAD_OUT=prefix)
    tool.kill()
    tool.wait()
    t.check(not t.is_in_state(child, "ZX"), "the program ended with the tool", is_grave=True)
    tool.stdin.close()
    t.check(t.wait_until(lambda: not os.path.exists(f"/proc/{child}")), "the program hangs")
    found, wanted = t.report(path), list(counts.read_all(prefix).values())
    if found and wanted:
        t.check_totals("the tool killed", found, wanted[0])


def check_refused(what, argv, *said, options=()):
    """It is named, and has not begun: nothing was written."""
    result = t.run_cairn("run", "-q", *options, "-o", t.fresh_path("refused"), "--", *argv)
    text = result.err.decode()
    t.check(result.status in (125, 126, 2) and result.out == b"", f"{what}: status {result.status}, output {result.out!r}")
    t.check(all(word in text for word in said), f"{what}: said {text!r}, not {said}")


def damaged(static, what, change):
    path = pathlib.Path(t.fresh_path(what))
    data = bytearray(pathlib.Path(static).read_bytes())
    change(data)
    path.write_bytes(data)
    path.chmod(0o755)
    return str(path)


def check_refusals(static):
    stripped = t.fresh_path("stripped")
    subprocess.run(["strip", "-o", stripped, static], check=True)
    check_refused("stripped", [stripped], "statically linked", "no symbol")
    result = t.run_cairn("run", "-q", "--ignore-checks", "-o", t.fresh_path("anyway"), "--", stripped)
    t.check_equal("stripped, nevertheless", (result.status, result.out), (3, t.run([static]).out))
    for option in ("--exec", "--mmap", "--guard", "--signal=USR1=mark", "--wrap=postgresql"):
        check_refused(option, [static], option.split("=", 1)[0], "statically linked", options=[option])
    # the kernel finds out when nothing of the tool is left of it: data at an address that no process has
    broken = damaged(static, "broken", lambda data: data.__setitem__(slice(64 + 56 + 16, 64 + 56 + 24), b"\xff" * 8))
    result = t.run_cairn("run", "-q", "--ignore-checks", "-o", t.fresh_path("broken"), "--", broken)
    t.check(result.status >= 125 and result.out == b"", f"a file that cannot be loaded: {result.status}, {result.err!r}")
    # as packers leave it: no section headers
    check_refused("no sections", [damaged(static, "sections", lambda data: data.__setitem__(slice(40, 48), bytes(8)))],
                  "statically linked")


t.need("gcc", "g++", "musl-gcc", "objcopy", "strip")
for source, libc, kind, compiler in builds():
    stem = source.split(".", maxsplit=1)[0]
    built = static_counter.build(t.SOURCE / "tests/programs" / source, f"{stem}{kind}-{libc}", kind, compiler=compiler, libc=libc)
    if built:
        check_counted(f"{stem} {libc} {kind}", [built, *WORDS.get(stem, [])])
check_identity()
check_real()
plain_leak = static_counter.build(t.SOURCE / "tests/programs/leak.c", "plain-leak", "-static")
processes = static_counter.build(t.SOURCE / "tests/programs/processes.c", "processes", "-static")
check_children(processes, "fork", 4)
check_children(processes, "clone", 1)
for kind in ("-static", "-static-pie"):
    hold = static_counter.build(t.SOURCE / "tests/programs/hold.c", f"hold{kind}", kind)
    check_killed(hold)
    check_tool_killed(hold)
check_refusals(plain_leak)
t.finish()
