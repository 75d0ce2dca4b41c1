#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names belong to the recording: a program that is rebuilt in place, whose library is rebuilt, or that is
removed, keeps the names it had, whether it was run, attached to, or recorded without the tool. The judge
of names is addr2line, asked about a copy of the old files."""

import json
import os
import pathlib
import shutil

import cairn_test as t
from attached import Attached, Target

t.need("g++", "addr2line")
HERE = pathlib.Path.cwd()

LIBRARY = r"""
#include <cstdlib>
%(blank)s
extern "C" __attribute__((noinline)) void *store_get(size_t size) {
    void *block = malloc(size);
    __asm__ volatile("");
    return block;
}
"""
PROGRAM = r"""
#include <cstdio>
#include <unistd.h>
#include <vector>
extern "C" void *store_get(size_t size);
static void *volatile kept[1000];
static int count;
%(blank)s
static inline __attribute__((always_inline)) void put(size_t size) { kept[count++] = store_get(size); }
__attribute__((noinline, noclone)) static void parse(size_t size) {
    put(size);
    __asm__ volatile("");
}
__attribute__((noinline, noclone)) static void grow(std::vector<int> &list) {
    list.reserve(%(size)s);
    __asm__ volatile("");
}
static void wait_after(const char *word) {
    char line[64];
    puts(word);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) line[0] = 0;
}
int main(int argc, char **argv) {
    std::vector<int> list;
    if (argc > 1) wait_after("ready");
    for (int i = 0; i < 10; i++) parse(1000);
    grow(list);
    kept[999] = list.data();
    if (argc > 1) wait_after("done");
    return 0;
}
"""


def compile_to(name, source, *flags):
    """Puts a file in the place of the older one, as linkers do."""
    (HERE / f"{name}.cc").write_text(source)
    command = ["g++", "-g", "-O2", "-fno-toplevel-reorder", f"{name}.cc", *flags, "-o", f"{name}.new"]
    result = t.run(command)
    t.check_equal(" ".join(command), (result.status, result.err), (0, b""))
    os.rename(f"{name}.new", name)


def build(blank=0, size=100000, library_blank=0, flags=()):
    compile_to("libstore.so", LIBRARY % {"blank": "\n" * library_blank}, "-shared", "-fPIC", *flags)
    compile_to("app", PROGRAM % {"blank": "\n" * blank, "size": size}, *flags, "-L.", "-lstore",
               f"-Wl,-rpath,{HERE}")


def keep_files(directory):
    """Copies for the judge."""
    shutil.rmtree(directory, ignore_errors=True)
    os.mkdir(directory)
    for name in ("app", "libstore.so"):
        shutil.copy(name, directory)


def forget():
    """What earlier reports looked up."""
    shutil.rmtree("cache", ignore_errors=True)


def frames(path):
    """(module, offset, [(function, line), ...]) of each place in the program and its library."""
    result = t.run_cairn("report", "--json", "--all-frames", "--full-names", str(path))
    t.check_equal(f"report {path}", (result.status, result.err), (0, b""))
    places = {}
    for stack in json.loads(result.out)["stacks"] if not result.status else []:
        one_stack = {}
        for frame in stack["frames"]:
            if frame["module"] and frame["module"].startswith(str(HERE)):
                key = os.path.basename(frame["module"]), frame["offset"]
                one_stack.setdefault(key, []).append((frame["function"], frame["line"]))
        places.update(one_stack)
    return places


def judge(directory, module, offset):
    result = t.run(["addr2line", "-f", "-i", "-C", "-e", f"{directory}/{module}", hex(offset)])
    lines = result.out.decode().splitlines()
    return [(function, int(place.rsplit(":", 1)[1].split()[0].replace("?", "0")))
            for function, place in zip(lines[::2], lines[1::2])]


def plain(name):
    """A function's name without parameters and what compilers add."""
    return (name or "").split("(")[0].split("<")[0]


def check_names(what, path, directory="old"):
    """Each frame of the program and its library is what the judge says of the old files."""
    found = frames(path)
    seen = set()
    for (module, offset), inlined in found.items():
        wanted = judge(directory, module, offset)
        names = [plain(name) for name, _ in inlined]
        if names[-1] == "_start":
            continue
        t.check_equal(f"{what}: lines at {module}+{offset:#x}", [line for _, line in inlined],
                      [line for _, line in wanted])
        # of inlined functions it knows the lines, but says the outer one's name
        t.check_equal(f"{what}: name at {module}+{offset:#x}", names[-1], plain(wanted[-1][0]))
        seen.update(names)
    for name in ("store_get", "put", "parse", "grow", "main"):
        t.check(name in seen, f"{what}: {name} is not among {sorted(seen)}")


def check_unnamed(what, path):
    """No frame has a name, and none has one of another file."""
    for (module, offset), inlined in frames(path).items():
        t.check_equal(f"{what}: {module}+{offset:#x}", [name for name, _ in inlined], [None])


def said(*arguments):
    result = t.run_cairn(*arguments)
    t.check_equal(f"{arguments}: status", result.status, 0)
    return (result.out + result.err).decode()


def the_loop():
    """record, fix, rebuild in place, record, diff"""
    build()
    keep_files("old")
    _, before = t.record(["./app"])
    build(blank=3, size=300000, library_blank=2)
    keep_files("new")
    _, after = t.record(["./app"])
    forget()
    check_names("run", before)
    check_names("rebuilt", after, "new")
    text = said("diff", before, after)
    t.check("1 grown" in text and " new" not in text.split("stacks by")[1].split("\n")[0],
            f"diff finds the stacks again: {text}")
    os.remove("app")
    os.remove("libstore.so")
    forget()
    check_names("removed", before)
    check_names("removed", after, "new")
    for shown in (said("report", before), said("report", "--view", "tree", before)):
        unnamed = [line for line in shown.splitlines() if "without a name" in line]
        t.check(not any("app" in line or "libstore" in line for line in unnamed), shown)


def of_a_run_of_several():
    build()
    keep_files("old")
    _, path = t.record(["sh", "-c", "./app; ./app; exit 0"])
    build(blank=5)
    forget()
    kept = sorted(pathlib.Path(path).glob("app.*.cairn"))
    t.check_equal("recordings", len(kept), 2)
    for one in kept:
        check_names("of a run", one)


def after_attach():
    build()
    keep_files("old")
    target = Target(path=HERE / "app")
    attached = Attached(target.pid, "--exact", "--no-scan-heap")
    t.check_equal("the program goes on", target.tell("go"), "done")
    attached.leave()
    target.process.stdin.close()
    t.check_equal("its status", target.process.wait(60), 0)
    build(blank=5)
    forget()
    check_names("attach", attached.path)


def without_names():
    """--symbols none, and recordings made without the tool: the first read puts them into the cache."""
    build()
    keep_files("old")
    _, none = t.record(["./app"], options=("--symbols", "none"))
    alone = t.fresh_path("alone") + ".cairn"
    t.check_equal("--exec", t.run_cairn("run", "--exec", "-o", alone, "./app").status, 0)
    forget()
    for what, path in (("--symbols none", none), ("--exec", alone)):
        shown = said("report", path)
        t.check("cairn symbolize" in shown, f"{what}: the first report says where its names are: {shown}")
        build(blank=4, library_blank=4)
        check_names(f"{what}, from the cache", path)
        t.check("cairn symbolize" not in said("report", path), f"{what}: later reports do not")
        forget()
        check_unnamed(f"{what}, without the cache", path)
        shutil.copy("old/app", "app")
        shutil.copy("old/libstore.so", "libstore.so")
    t.check_equal("symbolize", t.run_cairn("symbolize", alone).status, 0)
    build(blank=4, library_blank=4)
    forget()
    check_names("symbolized", alone)


def what_is_said():
    """One side has no names: diff, check and the page say why, and what helps; a report's advice is true."""
    build()
    keep_files("old")
    _, before = t.record(["./app"], options=("--symbols", "none"))
    _, base = t.record(["./app"])
    build(blank=3, size=300000, library_blank=3)
    keep_files("new")
    _, after = t.record(["./app"])
    forget()
    for words in (("diff", before, after), ("open", "-o", "page.html", before, after)):
        shown = said(*words)
        lines = [line for line in shown.splitlines() if "no name" in line]
        t.check_equal(f"{words[0]}: lines that say so", len(lines), 1)
        t.check(lines and "of app have no name" in lines[0] and "build-id differs" in lines[0] and
                "--debug-dir" in lines[0], f"{words[0]} says why: {shown}")
    shown = said("report", before)
    t.check("-g" not in shown and "the file as it was, below --debug-dir, has them" in " ".join(shown.split()),
            f"the advice is true: {shown}")
    t.check("no name" not in said("diff", "--debug-dir", "old", before, after), "what diff says helps")
    forget()
    check_names("with the advice", before) if t.run_cairn(
        "symbolize", "--debug-dir", "old", before).status == 0 else t.check(False, "symbolize")
    # docs/howto/ci.md: the base is recorded, the program is rebuilt, and checked against it
    for old, blamed in ((base, "grown"), (before, "grown")):
        result = t.run_cairn("check", "--baseline", old, "--tolerance", "2%", "--", "./app")
        text = result.out.decode()
        t.check_equal("check: status", result.status, 1)
        t.check(" new " not in text and blamed in text and "grow \u2190 main" in text,
                f"check blames what grew: {text}")


NO_BUILD_ID = "-Wl,--build-id=none"


def build_reordered():
    """The same sizes, other functions at the old addresses."""
    source = PROGRAM % {"blank": "", "size": 100000}
    first, second = (source.index(f"__attribute__((noinline, noclone)) static void {name}") for name in ("parse", "grow"))
    end = source.index("static void wait_after")
    source = source[:first] + source[second:end] + source[first:second] + source[end:]
    compile_to("libstore.so", LIBRARY % {"blank": "#include <cstdio>\nextern \"C\" void other(void) { puts(\"\"); }\n"},
               "-shared", "-fPIC", NO_BUILD_ID)
    compile_to("app", source, NO_BUILD_ID, "-L.", "-lstore", f"-Wl,-rpath,{HERE}")


def without_build_id():
    """The code decides: names of a file that took the old one's place are never shown."""
    build(flags=(NO_BUILD_ID,))
    keep_files("old")
    _, kept = t.record(["./app"])
    _, none = t.record(["./app"], options=("--symbols", "none"))
    alone, read = t.fresh_path("alone") + ".cairn", t.fresh_path("read") + ".cairn"
    for path in (alone, read):
        t.check_equal("--exec", t.run_cairn("run", "--exec", "-o", path, "./app").status, 0)
    forget()
    for path in (kept, none, alone):
        check_names("before it is rebuilt", path)
    for name in ("app", "libstore.so"):  # another file with the same code
        shutil.copy(name, f"{name}.copy")
        os.rename(f"{name}.copy", name)
    forget()
    for path in (kept, none):
        check_names("copied", path)
    check_unnamed("copied, and nothing but the file's time is known", alone)
    shown = said("report", alone)
    t.check("the file was written since it was recorded, and has no build-id" in shown, shown)
    forget()
    check_names("copied, read", none)  # puts names into the cache
    build_reordered()
    check_names("rebuilt, from the cache", none)
    forget()
    check_names("rebuilt", kept)
    for path in (none, alone, read):
        check_unnamed("rebuilt", path)
    keep_files("new")
    swapped = [key for key in frames(kept) if plain(judge("old", *key)[-1][0]) != plain(judge("new", *key)[-1][0])]
    t.check(len(swapped) >= 2, f"other functions are at the old addresses: {swapped}")
    shown = said("diff", none, kept)
    t.check("its code differs" in shown, f"one line says why: {shown}")
    check_names("the old files", none) if not t.run_cairn(
        "symbolize", "--debug-dir", "old", none).status else t.check(False, "symbolize")


def replaced_while_it_runs():
    """The files that lie there at the end are not those that were recorded."""
    for flags in ((), (NO_BUILD_ID,)) if t.IS_LONG else ((),):
        build(flags=flags)
        keep_files("old")
        path = t.fresh_path("replaced") + ".cairn"
        target = Target(path=HERE / "app", before=(t.CAIRN, "run", "-q", "-o", path, "--"))
        t.check_equal("the program goes on", target.tell("go"), "done")
        wait_until_held(target.pid)
        build_reordered()
        target.process.stdin.close()
        t.check_equal("its status", target.process.wait(60), 0)
        forget()
        check_names(f"replaced while it ran {flags}", path)


def wait_until_held(pid):
    """cairn has looked at the program."""
    names = {str(HERE / "app"), str(HERE / "libstore.so")}

    def holds_them():
        held = set()
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                held.add(os.readlink(link))
            except OSError:
                pass  # closed meanwhile
        return names <= held
    t.check(t.wait_until(holds_them), f"cairn holds {names}")


the_loop()
of_a_run_of_several()
after_attach()
without_names()
what_is_said()
without_build_id()
replaced_while_it_runs()
t.finish()
