#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn import` of LLVM XRay's logs, basic and FDR, that clang's own runtime writes here: calls and requested bytes by
stack as the program knows them and as llvm-xray reads the same logs (convert, account); stacks through recursion, tail
calls, exceptions and threads; no live, peak or leak figures anywhere; what is damaged or not the program's is refused."""

import collections
import csv
import io
import json
import pathlib
import re
import shutil
import struct

import cairn_test as t

SOURCE = r"""
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>
// A basic log begins by itself, a flight data recorder does not.
#define APART [[clang::xray_never_instrument]]
APART __attribute__((constructor)) static void begin() {
  const char *options = getenv("FDR");
  if (!options) return;
  __xray_log_select_mode("xray-fdr");
  if (__xray_log_init_mode("xray-fdr", options) != XRAY_LOG_INITIALIZED) abort();
  __xray_patch();
}
APART __attribute__((destructor)) static void end() {
  if (!getenv("FDR")) return;
  __xray_log_finalize();
  __xray_log_flushLog();
}
#define LOGS [[clang::xray_always_instrument, clang::xray_log_args(1)]] __attribute__((noinline))
#define SEEN [[clang::xray_always_instrument]] __attribute__((noinline))
extern "C" {
LOGS void *my_alloc(size_t bytes) { return malloc(bytes); }
LOGS void *my_zeroed(size_t bytes) { return calloc(1, bytes); }
LOGS void *my_kept(size_t bytes) { void *p = my_alloc(bytes + 1); __asm__("" ::: "memory"); return p; }
}
namespace shop {
struct store {
  SEEN void fill(int n) { for (int i = 0; i < n; i++) free(my_alloc(100 + i)); __asm__("" ::: "memory"); }
};
}
SEEN void again(int depth) { free(my_zeroed(10)); if (depth) again(depth - 1); __asm__("" ::: "memory"); }
SEEN void *tail(size_t n) { return my_kept(n); }
SEEN void throwing(int i) { if (i % 2) throw i; free(my_alloc(7)); __asm__("" ::: "memory"); }
SEEN void caught() { for (int i = 0; i < 10; i++) { try { throwing(i); } catch (int) { } } __asm__("" ::: "memory"); }
SEEN void *work(void *) { shop::store s; for (int i = 0; i < 20; i++) s.fill(50); return nullptr; }
SEEN int main(int argc, char **) {
  pthread_t threads[3];
  for (pthread_t &one : threads) pthread_create(&one, nullptr, work, nullptr);
  for (pthread_t &one : threads) pthread_join(one, nullptr);
  again(5);
  for (int i = 0; i < 4; i++) free(tail(1000));
  caught();
  if (argc > 1) again(100);
  return 0;
}
"""
FILL = (3 * 20 * 50, 3 * 20 * sum(100 + i for i in range(50)))
# Innermost first. A function that throws leaves no exit behind: it is over when its caller's next one is.
WANTED = {("my_alloc", "shop::store::fill", "work"): FILL,
          ("my_kept", "tail", "main"): None, ("my_alloc", "my_kept", "main"): None,
          **{("my_zeroed", *["again"] * n, "main"): (1, 10) for n in range(1, 7)}}


def tool(name):
    return shutil.which(f"{name}-14") or shutil.which(name)


def build():
    pathlib.Path("shop.cc").write_text(SOURCE, encoding="ascii")
    for name, flags in (("shop", ["-g"]), ("other", ["-g", "-DOTHER"]), ("fixed", ["-g", "-no-pie"])):
        text = SOURCE if name != "other" else "int main() { return 0; }\n"
        pathlib.Path(f"{name}.cc").write_text(text, encoding="ascii")
        made = t.run([tool("clang++"), "-O1", "-fxray-instrument", "-fxray-instruction-threshold=1", *flags, "-o", name,
                      f"{name}.cc", "-pthread"])
        if made.status:
            t.cannot_run_here(f"clang has no XRay runtime: {made.err.decode()[:200]}")


def log_of(form, program="shop", options="", arguments=()):
    base = t.fresh_path(form) + "."
    env = {"XRAY_OPTIONS": f"xray_logfile_base={base} verbosity=0"}
    if form == "basic":
        env["XRAY_OPTIONS"] += " patch_premain=true xray_mode=xray-basic"
        env["XRAY_BASIC_OPTIONS"] = f"func_duration_threshold_us=0 {options}"
    else:
        env["FDR"] = f"func_duration_threshold_us=0 buffer_max=2000 {options}"
    ran = t.run([f"./{program}", *arguments], env=env)
    t.check_equal(f"{form}: the program: {ran.err.decode()}", ran.status, 0)
    logs = sorted(pathlib.Path(base).parent.glob(pathlib.Path(base).name + "*"))
    if not t.check_equal(f"{form}: logs", len(logs), 1):
        t.finish()
    return str(logs[0])


def imported(log, *options, program="shop"):
    name = t.fresh_path("imported") + ".cairn"
    result = t.run_cairn("import", *([] if program is None else ["--program", program]), *options, "-o", name, log)
    if not t.check_equal(f"import {log}: {result.err.decode()}", result.status, 0):
        t.finish()
    return name, result.err.decode()


def stacks_of(report):
    found = collections.Counter(), collections.Counter()
    for stack in report["stacks"]:
        key = tuple(frame["function"] for frame in stack["frames"])
        found[0][key] += stack["allocations"]
        found[1][key] += stack["allocated_bytes"]
    return {key: (found[0][key], found[1][key]) for key in found[0]}


def plain(name):
    return re.sub(r"\(.*\)$", "", name.strip("'\""))


def converted(log, program="shop"):
    """What llvm-xray says the log's records are, made stacks of in another way than cairn does it."""
    ran = t.run([tool("llvm-xray"), "convert", "-f", "yaml", "-symbolize", "-m", program, log])
    if not t.check_equal(f"llvm-xray convert: {ran.err.decode()}", ran.status, 0):
        return None
    entry = re.compile(r"function: (.*?), (?:args: \[ (\d+) \], )?cpu: \d+, thread: (\d+), .*?kind: ([a-z-]+),")
    threads, sums = collections.defaultdict(list), collections.defaultdict(lambda: [0, 0])
    for name, argument, thread, kind in entry.findall(ran.out.decode()):
        stack, name = threads[thread], plain(name)
        if kind.startswith("function-enter"):
            stack.append(name)
            if argument:
                one = sums[tuple(reversed(stack))]
                one[0], one[1] = one[0] + 1, one[1] + int(argument)
        elif name in stack:
            while stack.pop() != name:
                pass
    return {key: tuple(value) for key, value in sums.items()}


def counted(log):
    """llvm-xray account: calls of each function."""
    ran = t.run([tool("llvm-xray"), "account", "-k", "-f", "csv", "-m", "shop", log])
    t.check_equal(f"llvm-xray account: {ran.err.decode()}", ran.status, 0)
    rows = [line.split(",") for line in ran.out.decode().splitlines()[1:]]
    return {plain(row[-1]): int(row[1]) for row in rows}


def check_log(what, log, program="shop"):
    name, told = imported(log, program=program)
    report = t.report(name)
    found = stacks_of(report)
    if tool("llvm-xray"):
        t.check_equal(f"{what}: as llvm-xray has it", found, converted(log, program))
    for key, wanted in WANTED.items():
        if key[1] != "tail" and wanted:
            t.check_equal(f"{what}: {key}", found.get(key), wanted)
    t.check_equal(f"{what}: through my_kept", [sum(v[i] for k, v in found.items() if "my_kept" in k) for i in (0, 1)],
                  [8, 4 * 1000 + 4 * 1001])
    t.check_equal(f"{what}: what throws", sum(v[0] for k, v in found.items() if "throwing" in k and k[0] == "my_alloc"), 5)
    t.check_equal(f"{what}: totals", (report["totals"]["allocations"], report["totals"]["allocated_bytes"]),
                  tuple(sum(value[i] for value in found.values()) for i in (0, 1)))
    t.check_equal(f"{what}: program", report["process"]["command"], program)
    for part, key in (("peak", "bytes"), ("peak", "blocks"), ("at_exit", "bytes"), ("totals", "frees"),
                      ("totals", "freed_bytes")):
        t.check_equal(f"{what}: {part}.{key}", report[part][key], None)
    t.check(all(stack["peak_bytes"] is None and stack["at_exit_bytes"] is None for stack in report["stacks"]),
            f"{what}: figures of stacks that nobody knows")
    t.check("no returned address" in told and "no returned address" in report["trust"]["imported"], f"{what}: {told}")
    frame = next(f for s in report["stacks"] for f in s["frames"] if f["function"] == "shop::store::fill")
    t.check(frame["file"].endswith(f"{program}.cc"), f"{what}: where fill is: {frame}")
    return name, told, report


def check_screens(recording):
    shown = t.run_cairn("report", recording)
    text = shown.out.decode()
    t.check_equal("report", shown.status, 0)
    t.check("peak heap" not in text and "at exit" not in text and "at the end" not in text, f"a figure that nobody knows: {text}")
    t.check("no returned address" in text and "3,0" in text, f"report: {text}")
    for view in ("stacks", "tree", "functions", "lines", "files", "modules"):
        shown = t.run_cairn("report", "--view", view, "--all-frames", recording)
        t.check(shown.status == 0 and b"fill" in shown.out or view in ("lines", "files", "modules"), f"--view {view}: {shown}")
        t.check(b"peak" not in shown.out.replace(b"or the peak", b""), f"--view {view}: {shown.out}")
    for words in (["--view", "leaks"], ["--view", "timeline"], ["--view", "growth"], ["--by", "peak"], ["--by", "exit"],
                  ["--view", "temporary"], ["--view", "tree", "--by", "exit"]):
        refused = t.run_cairn("report", *words, recording)
        t.check(refused.status == 1 and b"does not say what was freed" in refused.err, f"{words}: {refused}")
    refused = t.run_cairn("leaks", recording)
    t.check(refused.status == 1 and b"does not say what was freed" in refused.err, f"leaks: {refused}")
    budget = t.run_cairn("check", "--max-peak", "1GiB", recording)
    t.check(budget.status == 1 and b"does not say what was freed" in budget.out + budget.err, f"check: {budget}")
    budget = t.run_cairn("check", "--max-calls", "1000000", recording)
    t.check_equal(f"check --max-calls: {budget.err.decode()}", budget.status, 0)
    refused = t.run_cairn("open", "-o", "page.html", recording)
    t.check(refused.status == 1 and b"does not say what was freed" in refused.err, f"open: {refused.err}")
    t.check_equal("export", t.run_cairn("export", "-f", "pprof", "-o", "shop.pb.gz", recording).status, 0)
    back = t.run_cairn("import", "-o", "back.cairn", "shop.pb.gz")
    t.check_equal(f"pprof and back: {back.err.decode()}", back.status, 0)


def check_kept():
    """A log that is kept here needs no clang: no figure of what was live leaves by any way."""
    pathlib.Path("kept").write_bytes((t.SOURCE / "tests/fuzz/corpus/import/xray_basic").read_bytes()[1:])
    name, _ = imported("kept", program=None)
    shown = t.run_cairn("info", name).out.decode()
    t.check(re.search(r"^peak +unknown: the imported file", shown, re.M) and " left" not in shown
            and re.search(r"^started +-$", shown, re.M), f"info: {shown}")
    rows = list(csv.DictReader(io.StringIO(t.export(name, "csv").decode())))
    t.check(rows and all(row["allocations"] and row["allocated_bytes"] and not row["peak_bytes"] and not row["frees"]
                         and not row["at_exit_blocks"] for row in rows), f"csv: {rows[:2]}")
    flights = json.loads(t.export(name, "speedscope"))
    t.check_equal("speedscope", (len(flights["profiles"]), flights["activeProfileIndex"]), (2, 0))
    costs = t.export(name, "callgrind").decode()
    t.check(re.search(r"^events: allocated calls$", costs, re.M), f"callgrind: {costs[:300]}")
    for form in ("sqlite", "dhat", "massif", "parquet", "perfetto", "firefox", "mptrace", "heaptrack"):
        refused = t.run_cairn("export", "--format", form, "-o", f"kept.{form}", name)
        t.check(refused.status == 1 and b"does not say what was freed" in refused.err, f"{form}: {refused}")
    t.check_equal("threads", [(one["peak_bytes"], one["at_exit_bytes"]) for one in t.report(name)["threads"]], [(None, None)])
    refused = t.run_cairn("report", "--view", "threads", name)
    t.check(refused.status == 1 and b"does not say what was freed" in refused.err, f"threads: {refused}")
    refused = t.run_cairn("sql", name, "select * from top")
    t.check(refused.status == 1 and b"does not say what was freed" in refused.err, f"sql: {refused}")
    shown = t.run_cairn("diff", "--by", "allocated", name, name)
    t.check(shown.status == 0 and b"allocated" in shown.out and b"peak heap" not in shown.out
            and b"at exit" not in shown.out, f"diff: {shown}")
    found = json.loads(t.run_cairn("diff", "--json", "--by", "calls", name, name).out)
    t.check_equal("diff --json", (found["peak_bytes"], found["at_exit_bytes"]), (None, None))


def check_limits(basic, fdr):
    name, told = imported(basic, program=None)
    t.check("names of functions (--program FILE)" in told, f"without --program: {told}")
    frames = {f["function"] for s in t.report(name)["stacks"] for f in s["frames"]}
    t.check(all(re.fullmatch(r"function \d+", one) for one in frames), f"without --program: {frames}")
    deep, told = imported(log_of("basic", options="max_stack_depth=20", arguments=["deep"]))
    report = t.report(deep)
    t.check_equal("beyond max_stack_depth: calls", sum(s["allocations"] for s in report["stacks"]
                                                       if s["frames"][0]["function"] == "my_zeroed"), 6 + 101)
    t.check("max_stack_depth" in told, f"beyond max_stack_depth: {told}")
    _, told = imported(log_of("fdr", options="buffer_size=4096 buffer_max=4"))
    t.check("older than the log" in told or "are older" in told, f"few buffers: {told}")
    for program, words in (("other", "is not the one that wrote the log"), ("/bin/true", "no instrumentation map"),
                           ("shop.cc", "no ELF file"), ("missing", "cannot be opened")):
        refused = t.run_cairn("import", "--force", "-o", "bad.cairn", "--program", program, basic)
        t.check(refused.status == 1 and words in refused.err.decode(), f"--program {program}: {refused}")
    pathlib.Path("heaptrack").write_bytes((t.SOURCE / "tests/fuzz/corpus/import/heaptrack").read_bytes()[1:])
    refused = t.run_cairn("import", "--force", "-o", "bad.cairn", "--program", "shop", "heaptrack")
    t.check(refused.status == 1 and b"--program is for logs of xray" in refused.err, f"--program of heaptrack: {refused}")
    check_damaged(pathlib.Path(basic).read_bytes(), pathlib.Path(fdr).read_bytes())


def check_damaged(basic, fdr):
    two = basic + basic[32:64][:20] + struct.pack("<I", 7) + basic[32:64][24:]
    for what, content, words in (
            ("a record cut off", basic[:-5], "a record is cut off"), ("no event", basic[:32] + basic[32:64] * 0, "no known format"),
            ("no argument", basic[:32] + struct.pack("<HBBiQII8x", 0, 0, 0, 1, 5, 7, 7), "logs its argument"),
            ("an unknown record", basic + struct.pack("<H30x", 9), "a record of a kind"),
            ("two processes", two, "events of the processes"), ("FDR, cut off", fdr[:-5], "a buffer is cut off"),
            ("FDR, no buffer", fdr + bytes(16), "no buffer begins there"),
            ("FDR of LLVM 6", struct.pack("<HH", 1, 1) + fdr[4:], "version 1")):
        pathlib.Path("bad").write_bytes(content)
        refused = t.run_cairn("import", "--force", "-o", "bad.cairn", "bad")
        t.check(refused.status == 1 and words in refused.err.decode(), f"{what}: {refused}")
    pid = struct.unpack_from("<I", basic, 32 + 20)[0]
    pathlib.Path("two").write_bytes(two)
    t.check_equal("--process", t.run_cairn("import", "-o", "one.cairn", "--process", str(pid), "two").status, 0)


check_kept()
if not tool("clang++"):
    t.cannot_run_here("clang is not installed")
build()
if not tool("llvm-xray"):
    t.skip_part("llvm-xray (llvm-14) is not installed")
BASIC, FDR = log_of("basic"), log_of("fdr")
recording, _, report = check_log("basic", BASIC)
_, _, of_fdr = check_log("fdr", FDR)
check_log("basic, at fixed addresses", log_of("basic", "fixed"), "fixed")
t.check_equal("both logs of one program", stacks_of(report), stacks_of(of_fdr))
if tool("llvm-xray"):
    calls = counted(BASIC)
    found = collections.Counter()
    for key, (count, _) in stacks_of(report).items():
        found[key[0]] += count
    # account leaves out calls that it cannot pair with an exit, as of a thread that changed its processor
    t.check(all(0 < calls.get(name, 0) <= found[name] for name in found), f"llvm-xray account: {calls}, found {found}")
check_screens(recording)
check_limits(BASIC, FDR)
t.finish()
