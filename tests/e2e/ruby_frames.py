#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=ruby: the frames of Ruby code of native allocations are those that caller_locations tells at the same
time, at calls of many kinds, with and without its JIT compilers (CAIRN_LONG=1: at 100,000 calls each way); Ractors and
sampled stacks have them, and those of a ruby that was attached to. The native frames between are where they belong.
Without the option a line of the report says so, and other versions are refused by name."""

import collections
import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t
from attached import Attached
from told_frames import is_code, told_stacks

IS_LONG = bool(os.environ.get("CAIRN_LONG"))
CALLS = 100000 if IS_LONG else 4000
UNDER_JIT = CALLS if IS_LONG else 1500
BYTES = 12345  # of each block that calls.rb allocates by native code
place = t.fresh_path("ruby")
os.makedirs(place)
told, program = f"{place}/told", f"{place}/calls.rb"
MODES = {"plain": [], "YJIT": ["--yjit", "--yjit-call-threshold=5"]}
if IS_LONG:
    MODES["MJIT"] = ["--mjit", "--mjit-min-calls=20"]
BEFORE = r"(?:(?:block(?: \(\d+ levels\))?|rescue|ensure) in )*"


def said(frames):
    """Of methods in C Ruby says where they were called."""
    words, where = [], ":0"
    for frame in reversed(frames):
        where = f"{frame['file']}:{frame['line']}" if frame["file"] else where
        words.append(f"{frame['function']}:{where}")
    return "\t".join(reversed(words))


def without_classes(stack):
    names = [re.sub(rf"^({BEFORE})(?!<)[^\t]*?[#.](?=[^#./<>]+:[^\t]*:\d*$)", r"\1", word) for word in stack.split("\t")]
    return "\t".join(names)


def stacks_of(recording, mode):
    """Of the blocks of calls.rb, without the method that calls native code."""
    stacks = collections.Counter()
    for stack in t.report(recording, "--by", "calls")["stacks"]:
        frames = [frame for frame in stack["frames"] if is_code(frame)]
        if stack["allocated_bytes"] != BYTES * stack["allocations"] or not frames:
            continue
        t.check_equal(f"{mode}: the innermost", frames[0]["function"], "Fiddle::Function#call")
        stacks[said(frames[1:])] += stack["allocations"]
    return stacks


def differences(wanted, found):
    """Where the classes are not known for sure they are not compared."""
    sure = collections.Counter({stack: count for stack, count in wanted.items() if stack[0] != "?"})
    rest, bare, others = found - sure, collections.Counter(), collections.Counter()
    for stack, count in rest.items():
        bare[without_classes(stack)] += count
    for stack, count in (wanted - sure).items():
        others[without_classes(stack[2:])] += count
    return (sure - found) + (others - bare), bare - others


def compare(ruby, mode, options):
    calls = UNDER_JIT if options else CALLS
    only = ["--min-size", str(BYTES), "--max-size", str(BYTES)]
    result, recording = t.record([ruby, *options, program, told, str(calls)], options=["--frames=ruby", *only])
    t.check_equal(f"{mode}: status", (result.status, result.out, result.err), (0, b"", b""))
    wanted, found = told_stacks(told), stacks_of(recording, mode)
    t.check(sum(wanted.values()) >= calls and len(wanted) > 200, f"{mode}: {sum(wanted.values())} calls, {len(wanted)} stacks")
    lost, more = differences(wanted, found)
    t.check_equal(f"{mode}: stacks that differ", (sum(lost.values()), sum(more.values())), (0, 0))
    for stack in list(lost)[:3] + list(more)[:3]:
        print(mode, "told" if stack in lost else "recorded", stack)


def order(ruby):
    """Each call of Ruby's loop has the methods inside that it runs: sort_by stands between its caller and its block, and so
    do native frames."""
    script = pathlib.Path(place) / "order.rb"
    script.write_text("require 'fiddle'\n"
                      "Native = Fiddle::Function.new(Fiddle.dlopen(nil)['malloc'], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_VOIDP)\n"
                      "def leaf = Native.call(54321)\ndef sorts = [2, 1].sort_by { |one| leaf; one }\nsorts\n", encoding="ascii")
    _, recording = t.record([ruby, str(script)], options=["--frames=ruby"])
    stack = next(stack for stack in t.report(recording)["stacks"] if stack["allocated_bytes"] == 54321 * 2)
    kinds = [frame["function"] if is_code(frame) else "native" for frame in stack["frames"]]
    names = [kind for kind, before in zip(kinds, [None] + kinds) if kind != before]
    t.check_equal("order", names, ["native", "Fiddle::Function#call", "Object#leaf", "block in Object#sorts", "native",
                                   "Array#each", "Enumerable#sort_by", "Object#sorts", "<main>", "native"])


def ractors(ruby):
    script = pathlib.Path(place) / "ractors.rb"
    script.write_text("def leaf = ('x' * 54321).size\n"
                      "3.times.map { Ractor.new { 100.times { leaf } } }.each(&:take)\n", encoding="ascii")
    _, recording = t.record([ruby, "-W0", str(script)], options=["--frames=ruby"])
    found = collections.Counter()
    for stack in t.report(recording)["stacks"]:
        if stack["allocated_bytes"] >= 54321 * stack["allocations"]:
            found["\t".join(frame["function"] for frame in stack["frames"] if is_code(frame))] += stack["allocations"]
    t.check_equal("Ractors", found["String#*\tObject#leaf\tblock (3 levels) in <main>\tInteger#times\tblock (2 levels) in <main>"],
                  300)


def sampled(ruby):
    options = ["--frames=ruby", "--sample", "--rate", "100K", "--seed", "1"]
    _, recording = t.record([ruby, program, told, "2000"], options=options)
    wanted, found = {without_classes(stack.removeprefix("?\t")) for stack in told_stacks(told)}, set()
    for stack in t.report(recording, "--focus", r"^Object#leaf$")["stacks"]:
        frames = [frame for frame in stack["frames"] if is_code(frame)]
        if [frame["function"] for frame in frames[:2]] == ["Fiddle::Function#call", "Object#leaf"]:
            found.add(without_classes(said(frames[1:])))
    t.check(len(found) > 10, f"sampled: {len(found)} stacks")
    t.check_equal("sampled: stacks that were not told", [stack for stack in found if stack not in wanted][:2], [])


def attached(ruby):
    script = pathlib.Path(place) / "waits.rb"
    script.write_text("$kept = []\ndef leaf(i) = $kept << 'x' * 20000\ndef rounds = 3000.times { |i| leaf(i) }\n"
                      "rounds\nputs 'ready'\n$stdout.flush\ngets\nrounds\nputs 'done'\n$stdout.flush\ngets\n", encoding="ascii")
    with t.Process([ruby, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        t.check_equal("attached: it starts", process.stdout.readline(), b"ready\n")
        beside = Attached(process.pid, "--frames=ruby", "--exact")
        process.stdin.write(b"\n")
        process.stdin.flush()
        t.check_equal("attached: it goes on", process.stdout.readline(), b"done\n")
        beside.leave()
        found = collections.Counter()
        for stack in t.report(beside.path)["stacks"]:
            found[said([frame for frame in stack["frames"] if is_code(frame)])] += stack["allocations"]
        wanted = (f"String#*:{script}:2\tObject#leaf:{script}:2\tblock in Object#rounds:{script}:3\t"
                  f"Integer#times:{script}:3\tObject#rounds:{script}:3\t<main>:{script}:8")
        t.check(3000 <= found[wanted] < 3100, f"attached: {found[wanted]} calls with their methods and lines")
        t.check_equal("attached: it ends", process.communicate(b"\n")[0], b"")
        t.check_equal("attached: its status", process.wait(t.PATIENCE_S), 0)


def without(ruby):
    _, recording = t.record([ruby, program, told, "100"])
    text = t.run_cairn("report", recording).out.decode()
    t.check("Ruby: its own frames are missing, --frames=ruby records them" in text, text)
    _, recording = t.record([ruby, program, told, "100"], options=["--frames=ruby"])
    text = t.run_cairn("report", "--view", "stacks", "--by", "calls", "--top", "0", recording).out.decode()
    t.check("Ruby: its own frames" not in text and "Object#leaf" in text, text[:2000])
    t.check("stacks have its frames" in t.run_cairn("info", recording).out.decode(), "cairn info says so")


def other_versions():
    """What says that it is another Ruby, one without what is read, and one that keeps its frames otherwise."""
    source, false = pathlib.Path(place) / "false.c", f"{place}/false"
    for version, context, text in (("3.7.1", "ruby_current_ec", "Ruby 3.7: its frames are missing, cairn reads those of 3."),
                                   ("3.1.2", "others", "Ruby of unknown version or layout: its frames are missing"),
                                   ("3.1.2", "ruby_current_ec", "Ruby of unknown version or layout: its frames are missing")):
        source.write_text("#include <stdlib.h>\n"
                          f"const char ruby_version[] = \"{version}\";\n__thread long *{context};\nlong stack[100];\n"
                          "long context[3] = {(long)stack, 100, (long)(stack + 92)};\n"
                          "void ruby_init(void) {}\nvoid rb_vm_exec(void) {}\nvoid rb_nogvl(void) {}\n"
                          "void rb_thread_call_without_gvl(void) {}\nvoid rb_thread_call_without_gvl2(void) {}\n"
                          "void rb_thread_io_blocking_region(void) {}\n"
                          f"int main(void) {{ {context} = context; for (int i = 0; i < 2000; i++) if (!malloc(5000)) return 1; return 0; }}\n",
                          encoding="ascii")
        t.check_equal("gcc", t.run(["gcc", "-w", "-rdynamic", "-o", false, str(source)]).status, 0)
        result, recording = t.record([false], options=["--frames=ruby"])
        t.check_equal(f"{version}, {context}: status", (result.status, result.err), (0, b""))
        shown = t.run_cairn("report", recording).out.decode()
        t.check(text in shown, f"{version}, {context}: {shown[-800:]}")


t.need("gcc")
other_versions()
found_ruby = shutil.which("ruby")
if not found_ruby:
    t.cannot_run_here("ruby is not installed")
found_version = t.run([found_ruby, "-r", "fiddle", "-e", "print RUBY_ENGINE, RUBY_VERSION"]).out.decode()
if not found_version.startswith("ruby3.1."):
    t.cannot_run_here(f"this ruby ({found_version}) is not one of those that are read, or it has no Fiddle")
shutil.copy(f"{t.SOURCE}/tests/programs/calls.rb", program)
for name, arguments in MODES.items():
    compare(found_ruby, name, arguments)
order(found_ruby)
ractors(found_ruby)
sampled(found_ruby)
attached(found_ruby)
without(found_ruby)
t.finish()
