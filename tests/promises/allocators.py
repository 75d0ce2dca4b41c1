#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Beside other allocators and preloads: jemalloc, tcmalloc and mimalloc preloaded before and after the
library and linked into C and C++ programs, whoever starts them; libfaketime and eatmydata. Output and status
stay, blocks made through the program's malloc are counted exactly wherever the library is in the chain, and so
are those of the allocator's own operator new: of plugins too, and of a new handler that it calls."""

import glob
import os
import subprocess

import cairn_test as t
import ledger

LIBRARIES = "/usr/lib/*-linux-gnu"
ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4",
              "mimalloc": "libmimalloc.so.2"}
CXX = """
#include <cstdio>
#include <cstdlib>
#include <list>
#include <string>
__attribute__((noinline)) static void fill(std::list<std::string> &list) {
    for (int i = 0; i < 1000; i++) list.push_back(std::string(100, 'x'));
}
int main() {
    std::list<std::string> list;
    fill(list);
    void *aligned = std::aligned_alloc(64, 640);
    std::printf("%zu %d\\n", list.size(), aligned != nullptr);
    std::free(aligned);
    return 4;
}
"""
PLUGIN = """
#include <memory>
struct Kept {
    Kept() { for (auto &one : blocks) one.reset(new long(1)); }
    std::unique_ptr<long> blocks[300];
};
static Kept kept;
extern "C" void give_back() { for (int i = 0; i < 100; i++) kept.blocks[i].reset(); }
"""
HOST = """
#include <dlfcn.h>
int main(void) {
    void *plugin = dlopen("./plugin.so", RTLD_LAZY);
    void (*give_back)(void) = plugin ? (void (*)(void))dlsym(plugin, "give_back") : 0;
    if (!give_back) return 1;
    give_back();
    return 4;
}
"""
# The request is larger than any memory: the handler gives a reserve back, takes other blocks, and lets it fail.
HANDLER = """
#include <cstdio>
#include <cstdlib>
#include <new>
static void *reserve[80], *taken[30];
__attribute__((noinline)) static void put_aside() { for (auto &one : reserve) one = std::malloc(700); }
__attribute__((noinline)) static void help() {
    for (auto &one : reserve) std::free(one);
    for (auto &one : taken) one = std::malloc(900);
    std::set_new_handler(nullptr);
}
int main() {
    volatile std::size_t too_much = static_cast<std::size_t>(-1) / 4;
    put_aside();
    std::set_new_handler(help);
    try {
        std::printf("%p\\n", ::operator new(too_much));
    } catch (const std::bad_alloc &) {
        std::puts("none");
    }
    for (auto one : taken) if (!one) return 1;
    return 4;
}
"""
PROGRAMS = [("births", "fork"), ("short_threads", "many", 300), ("short_threads", "stacks"),
            ("doomed", "quick_exit")]
IS_CXX_NODE_AND_TEXT = 2  # allocations of an element of the list


def find(name):
    found = glob.glob(f"{LIBRARIES}/{name}")
    return found[0] if found else None


def check_accounts(name, result, plain, path, accounts):
    result.check_like(name, plain)
    found = ledger.reports(path)
    for pid, account in accounts.items():
        ledger.check(f"{name} {pid}", found.get(pid), account)


def check_preloaded(name, library):
    for program in PROGRAMS:
        argv = t.program(*program)
        what = f"{name}, {' '.join(map(str, program))}"
        plain = t.run(argv, env={"LEDGER": t.fresh_path("plain"), "LD_PRELOAD": library})
        result, path, accounts = ledger.recorded(argv, env={"LD_PRELOAD": library})
        check_accounts(f"{what}, run", result, plain, path, accounts)
        behind, path, accounts = ledger.recorded(
            argv, how=t.record_alone, env={"LD_PRELOAD": f"{t.RUNTIME}:{library}"})
        if program[0] != "births":  # children's files are beside
            check_accounts(f"{what}, after us", behind, plain, path, accounts)
        # In front of us it answers every call itself: nothing to record, nothing broken.
        front = t.run(argv, env={"LEDGER": t.fresh_path("plain"),
                                 "LD_PRELOAD": f"{library}:{t.RUNTIME}",
                                 "CAIRN_OUTPUT": t.fresh_path("front") + ".cairn"}, timeout=10)
        front.check_like(f"{what}, before us", plain)


def check_linked(name, library):
    argv = [os.path.abspath(f"doomed-{name}"), "quick_exit"]
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-fno-builtin", f"-I{t.SOURCE}", "-o",
                    argv[0], str(t.SOURCE / "tests/programs/doomed.c"), "-Wl,--no-as-needed",
                    library, "-pthread"], check=True)
    plain = t.run(argv, env={"LEDGER": t.fresh_path("plain")})
    result, path, accounts = ledger.recorded(argv)
    check_accounts(f"{name} linked", result, plain, path, accounts)


def check_linked_cxx(name, library):
    program = os.path.abspath(f"list-{name}")
    with open("list.cc", "w", encoding="ascii") as file:
        file.write(CXX)
    subprocess.run(["g++", "-O1", "-g", "-o", program, "list.cc", "-Wl,--no-as-needed", library],
                   check=True)
    plain = t.run([program])
    result, path = t.record([program])
    result.check_like(f"{name} linked in C++", plain)
    found = t.report(path)
    if found:
        inside = t.stacks_through(found, "fill")
        t.check_equal(f"{name} in C++: allocations of the list",
                      sum(s["allocations"] for s in inside), 1000 * IS_CXX_NODE_AND_TEXT)
        t.check_equal(f"{name} in C++: left of it", sum(s["at_exit_bytes"] for s in inside), 0)
        t.check_nothing_lost(f"{name} in C++", found)


def build(source, name, *options):
    """The path of a program or library made of `source`."""
    path, text = os.path.abspath(name), os.path.abspath("built.cc" if "#include <dlfcn.h>" not in source else "built.c")
    if os.path.exists(path):
        return path
    with open(text, "w", encoding="ascii") as file:
        file.write(source)
    subprocess.run(["g++" if text.endswith("cc") else "gcc", "-O1", "-g", "-fno-builtin", "-o", path, text,
                    *options], check=True)
    return path


def check_list(what, found):
    if not t.check(found, f"{what}: nothing was recorded"):
        return
    inside = t.stacks_through(found, "fill")
    t.check_equal(f"{what}: allocations of the list", sum(s["allocations"] for s in inside),
                  1000 * IS_CXX_NODE_AND_TEXT)
    t.check_equal(f"{what}: left of it", sum(s["at_exit_bytes"] for s in inside), 0)
    t.check_nothing_lost(what, found)


def check_started_by_others(name, library):
    """The tool starts something else, or nothing at all."""
    linked = build(CXX, f"linked-{name}", "-Wl,--no-as-needed", library)
    plain = build(CXX, "plain-list")
    preloads = f"LD_PRELOAD=$LD_PRELOAD:{library} exec {plain}"
    for how, argv in (("env", ["env", linked]), ("a shell", ["sh", "-c", f"exec {linked}"]),
                      ("a preload behind ours", ["sh", "-c", preloads])):
        result, path = t.record(argv)
        t.check_equal(f"{name} by {how}: end", (result.status, result.out), (4, b"1000 1\n"))
        check_list(f"{name} by {how}", next(iter(ledger.reports(path).values()), None))
    path = t.fresh_path("variables") + ".cairn"
    result = t.run(["sh", "-c", f'eval "$({t.CAIRN} env -o {path})"; exec {linked}'])
    t.check_equal(f"{name} by cairn env: end", (result.status, result.out), (4, b"1000 1\n"))
    check_list(f"{name} by cairn env", t.report(path))


def check_plugin(name, library):
    """A library that is loaded later: its constructors, and its calls that are bound late."""
    build(PLUGIN, "plugin.so", "-shared", "-fPIC")
    host = build(HOST, f"host-{name}", "-Wl,--no-as-needed", library, "-ldl")
    result, path = t.record(["env", host])
    t.check_equal(f"{name}, plugin: end", result.status, 4)
    found = next(iter(ledger.reports(path).values()), None)
    if t.check(found, f"{name}, plugin: nothing was recorded"):
        made = t.stacks_through(found, "Kept::Kept")
        t.check_equal(f"{name}, plugin: blocks", sum(s["allocations"] for s in made), 300)
        t.check_nothing_lost(f"{name}, plugin", found)


def check_new_handler(name, library):
    """The allocator's operator new calls it; what it frees and takes is the program's."""
    program = build(HANDLER, f"handler")
    plain = t.run([program], env={"LD_PRELOAD": library})
    if (plain.status, plain.out) != (4, b"none\n"):
        return t.skip_part(f"{name}'s operator new calls no handler here")
    for options in [], ["--sample", "--rate", "1"]:
        result, path = t.record([program], env={"LD_PRELOAD": library}, options=options)
        result.check_like(f"{name}, new handler", plain)
        found = t.report(path)
        for function, calls, left in ("put_aside", 80, 0), ("help", 30, 30):
            stacks = t.stacks_through(found, function) if found else []
            t.check_equal(f"{name}, new handler {options}: {function}",
                          (sum(s["allocations"] for s in stacks), sum(s["at_exit_blocks"] for s in stacks)),
                          (calls, left))
        if found:
            t.check_nothing_lost(f"{name}, new handler {options}", found)
    return None


def check_other_preload(name, library, env, argv):
    plain = t.run(argv, env={**env, "LD_PRELOAD": library})
    for order in (f"{library}:{t.RUNTIME}", f"{t.RUNTIME}:{library}"):
        path = t.fresh_path(name) + ".cairn"
        result = t.run(argv, env={**env, "LD_PRELOAD": order, "CAIRN_OUTPUT": path})
        result.check_like(f"{name} as {order[-30:]}", plain)
        t.check(t.report(path)["totals"]["allocations"] > 0, f"{name}: nothing was recorded")
    result, path = t.record(argv, env={**env, "LD_PRELOAD": library})
    result.check_like(f"{name} under run", plain)
    found = t.report(path)
    if found:
        # Times are the kernel's, not the faked ones.
        t.check(found["process"]["start_unix_ns"] > 1_600_000_000 * 10 ** 9, f"{name}: faked time")


t.need("gcc", "g++")
missing = []
for allocator, file_name in ALLOCATORS.items():
    path_of_it = find(file_name)
    if not path_of_it:
        missing.append(allocator)
        continue
    check_preloaded(allocator, path_of_it)
    check_linked(allocator, path_of_it)
    check_linked_cxx(allocator, path_of_it)
    check_started_by_others(allocator, path_of_it)
    check_plugin(allocator, path_of_it)
    check_new_handler(allocator, path_of_it)
faketime, eatmydata = find("faketime/libfaketime.so.1"), find("libeatmydata.so")
if faketime:
    check_other_preload("faketime", faketime, {"FAKETIME": "2001-02-03 04:05:06"},
                        ["date", "+%Y-%m-%d %H"])
if eatmydata:
    check_other_preload("eatmydata", eatmydata, {}, ["dd", "if=/dev/zero", "of=d", "bs=1k", "count=4",
                                                     "conv=fsync", "status=none"])
missing += [name for name, path in (("faketime", faketime), ("eatmydata", eatmydata)) if not path]
if missing:
    t.skip_part("not installed: " + ", ".join(missing))
t.finish()
