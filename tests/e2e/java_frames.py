#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=java: the Java frames of native allocations are those that Throwable tells at the same time, at
15,000 calls of every kind, which C2 compiles too, with 3,000 in interpreted code, and in `make check-long` at 100,000
of every kind in that, in C1 and in usual code; native code that calls Java back stands between. On virtual threads they
are those up to where frames still lie in Java's heap, and such a stack counts as incomplete. In this machine's JDKs, and in those of other Debians, in chroots that are in $CHROOTS/SUITE-java, or
that CAIRN_LONG=1 makes there (build/chroots). Sampled stacks have them, and those of a JVM that was attached to.
Without the option a line of the report says so, other JDKs are refused by name,
and stacks of methods that were met before are read without system calls."""

import collections
import glob
import os
import pathlib
import re
import shutil
import subprocess

import cairn_test as t
import chroots
from attached import Attached

CALLS = 100000 if t.IS_LONG else 15000
CALLS_BESIDE = CALLS if t.IS_LONG else CALLS // 5  # in other modes than the usual one
READ = (17, 21, 25)
OTHERS = {"trixie": ("21", "openjdk-21-jdk-headless"), "sid": ("25", "openjdk-25-jdk-headless")}
FLAGS = {25: ["--enable-native-access=ALL-UNNAMED"]}  # or it warns of System.load
MODES = ([], ["-XX:TieredStopAtLevel=1"], ["-Xint"]) if t.IS_LONG else ([], ["-Xint"])
# Throwable leaves these out, which the JDK has marked as hidden.
HIDDEN = {"java.lang.Thread.runWith", "java.lang.VirtualThread.runWith", "jdk.internal.vm.Continuation.enter",
          "jdk.internal.vm.Continuation.enter0"}
VIRTUAL_END = "java.lang.VirtualThread.run"
place = pathlib.Path(t.fresh_path("java")).absolute()
os.makedirs(place)
library = str(t.BUILD / "tests/programs/libcalls.so")


def java_version(java):
    found = re.search(rb'version "(\d+)', t.run([java, "-version"]).err)
    return int(found.group(1)) if found else 0


def told_stacks(path):
    """The lines of native methods are -2 there."""
    stacks = collections.Counter()
    for line in path.read_text().splitlines():
        count, *frames = line.replace(":-2", ":-1").split()
        stacks[tuple(frames)] += int(count)
    return stacks


def of_java(stack):
    return [frame for frame in stack["frames"] if (frame["file"] or "").endswith(".java")]


def stacks_of(found):
    """Of the blocks of Calls.allocate, with the place of the call as Calls.java tells it; and those that end on the way."""
    whole, cut = collections.Counter(), collections.Counter()
    for stack in found["stacks"]:
        frames = of_java(stack)
        functions = [frame["function"] for frame in stack["frames"]]
        if not frames or frames[0]["function"] != "Calls.allocate" or functions[:1] != ["Java_Calls_allocate"]:
            continue
        names = [frame["function"] for frame in frames]
        if VIRTUAL_END in names:
            del frames[names.index(VIRTUAL_END) + 1:]
        shown = tuple(f"{frame['function']}:{frame['line'] or -1}" for frame in frames[1:] if frame["function"] not in HIDDEN)
        (cut if stack["incomplete"] else whole)[shown] += stack["allocations"]
        natives = [frame for frame in functions if frame == "Java_Calls_back"]
        t.check_equal("each call back has its native frame", len(natives), names.count("Calls.back"))
    return whole, cut


def check_named(what, found):
    """Where the interpreter calls the JVM (to load a class, for one), its code is the method's: no address lies between."""
    bare = [stack["frames"] for stack in found["stacks"] if of_java(stack) and not stack["incomplete"]
            if any(not frame["function"] and not frame["module"] for frame in stack["frames"])]
    called = [stack for stack in found["stacks"] if of_java(stack) and any("InterpreterRuntime::" in (name or "") for name in t.functions(stack))]
    t.check(called or what.startswith("attached") or "-Xcomp" in what, f"{what}: the interpreter calls the JVM")
    t.check_equal(f"{what}: stacks with addresses that nothing names", (len(bare), bare[:1]), (0, []))


def compare(what, told_path, recording, options=(), is_virtual=False, calls=CALLS):
    wanted, found = told_stacks(told_path), t.report(recording, *options)
    whole, cut = stacks_of(found)
    check_named(what, found)
    t.check(sum(wanted.values()) >= calls, f"{what}: {sum(wanted.values())} calls were told")
    lost, more = wanted - whole, whole - wanted
    t.check_equal(f"{what}: stacks that Throwable does not tell", dict(more.most_common(2)), {})
    if not is_virtual:
        t.check_equal(f"{what}: stacks that are not recorded", (dict(lost.most_common(2)), sum(cut.values())), ({}, 0))
        return
    t.check_equal(f"{what}: calls", sum(whole.values()) + sum(cut.values()), sum(wanted.values()))
    t.check(sum(whole.values()) >= calls / 2, f"{what}: {sum(whole.values())} stacks are whole")
    wrong = [shown for shown in cut if not any(told[:len(shown)] == shown for told in lost)]
    t.check_equal(f"{what}: stacks that end on the way and begin otherwise", wrong[:2], [])
    print(f"{what}: {sum(whole.values())} calls with all frames, {sum(cut.values())} that end where frames lie in the heap")


def ways(version):
    """Of each the mode of the JVM and the program's further words."""
    plain = [(mode + FLAGS.get(version, []), ()) for mode in MODES]
    return plain + ([(mode, ("virtual",)) for mode, _ in (plain[0], plain[-1])] if version > 20 else [])


def try_here(java):
    version = java_version(java)
    for mode, words in ways(version):
        what, calls = f"JDK {version} {' '.join([*mode, *words])}", CALLS_BESIDE if mode or words else CALLS
        result, recording = t.record([java, *mode, "-cp", str(place), "Calls", library, f"{place}/told", str(calls), *words],
                                     options=["--frames=java"])
        if t.check_equal(what, (result.status, result.out), (0, b"")):
            compare(what, place / "told", recording, is_virtual=bool(words), calls=calls)


def try_inside(suite, version, root):
    here = root / "tmp/cairn"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    for file in (t.RUNTIME, library, *place.glob("*.class")):
        shutil.copy(file, here)
    java = f"/usr/lib/jvm/java-{version}-openjdk-amd64/bin/java"
    for mode, words in ways(int(version)):
        what = f"{suite}: JDK {version} {' '.join([*mode, *words])}"
        result = t.run(chroots.inside(root, ["CAIRN_JAVA=1", "CAIRN_OUTPUT=/tmp/cairn/out.cairn", "LD_PRELOAD=/tmp/cairn/libcairn.so",
                                             java, *mode, "-cp", "/tmp/cairn", "Calls", "/tmp/cairn/libcalls.so", "/tmp/cairn/told",
                                             str(CALLS), *words]))
        outputs = sorted(here.glob("out*.cairn"), key=lambda path: path.stat().st_size)
        if t.check_equal(what, (result.status, result.err, bool(outputs)), (0, b"", True)):
            compare(what, here / "told", str(outputs[-1]), ["--sysroot", str(root)], is_virtual=bool(words))
        for output in outputs:
            output.unlink()


def check_sampled(what, told_path, recording):
    wanted = told_stacks(told_path)
    whole, cut = stacks_of(t.report(recording))
    t.check_equal(f"{what}: stacks that Throwable does not tell", [shown for shown in whole if shown not in wanted][:2], [])
    t.check(len(whole) > 50 and not cut, f"{what}: {len(whole)} stacks were sampled, {dict(cut)} end on the way")


def sampled(java):
    options = ["--frames=java", "--sample", "--rate", "64K", "--seed", "1"]
    result, recording = t.record([java, "-cp", str(place), "Calls", library, f"{place}/told", str(CALLS)], options=options)
    t.check_equal("sampled: status", (result.status, result.out), (0, b""))
    check_sampled("sampled", place / "told", recording)


def attached(java, *options):
    """Code that was compiled before, and threads that ran before, are read like others."""
    what = " ".join(["attached", *options])
    argv = [java, "-cp", str(place), "Calls", library, f"{place}/told", str(CALLS), "wait"]
    with t.Process(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        t.check_equal(f"{what}: it starts", process.stdout.readline(), b"ready\n")
        beside = Attached(process.pid, "--frames=java", *options)
        process.stdin.write(b"\n")
        process.stdin.flush()
        t.check_equal(f"{what}: it goes on", process.stdout.readline(), b"told\n")
        beside.leave()
        if "--exact" in options:
            compare(what, place / "told", beside.path)
        else:
            check_sampled(what, place / "told", beside.path)
        t.check_equal(f"{what}: it ends", process.communicate(b"\n")[0], b"")
        t.check_equal(f"{what}: its status", process.wait(t.PATIENCE_S), 0)


def reads(java, calls):
    """How often the kernel was asked for words of memory, with so many calls."""
    result, asked = t.asked_calls("process_vm_readv", [
        t.CAIRN, "run", "-q", "-o", f"{place}/asked.cairn", "--frames=java", "--",
        java, "-Xint", "-cp", str(place), "Calls", library, f"{place}/told", str(calls)])
    t.check_equal(f"{calls} calls beside strace", result.status, 0)
    return asked


def asked_seldom(java):
    """A stack whose methods were met before needs no system call."""
    if not shutil.which("strace"):
        t.skip_part("no strace")
        return
    few, many = reads(java, CALLS // 50), reads(java, CALLS // 5)
    print(f"memory is asked for {few} times with {CALLS // 50} calls, {many} times with {CALLS // 5}")
    more = CALLS // 5 - CALLS // 50
    # what a start asks for differs by a thousand of some 25,000 beside busy processes: other methods are met first
    t.check(many - few < more // 2, f"{many - few} questions for {more} stacks more")


def without(java):
    argv = [java, "-cp", str(place), "Calls", library, f"{place}/told", "100"]
    _, recording = t.record(argv)
    text = t.run_cairn("report", recording).out.decode()
    t.check("Java: its own frames are missing, --frames=java records them" in text, text)
    _, recording = t.record(argv, options=["--frames=java"])
    text = t.run_cairn("report", "--view", "stacks", "--by", "allocated", "--top", "0", recording).out.decode()
    t.check("Java: its own frames" not in text and "Calls.leaf" in text, text[:2000])
    t.check("stacks have its frames" in t.run_cairn("info", recording).out.decode(), "cairn info says so")


def refused():
    """A library that says that it is of JDK 22 (libjvm.c), whose tables are not known."""
    code = f"import ctypes; ctypes.CDLL('{t.BUILD}/tests/programs/libjvm.so').allocate()"
    result, recording = t.record([t.PYTHON, "-c", code], options=["--frames=java"])
    t.check_equal("JDK 22: status", (result.status, result.err), (0, b""))
    text = t.run_cairn("report", recording).out.decode()
    t.check("JDK 22: Java frames are missing, cairn reads those of JDK 17, 21 and 25" in text, text)
    t.check("JDK 22, native frames only" in t.run_cairn("info", recording).out.decode(), "cairn info says so")


result = t.run_cairn("run", "--frames=cobol", "--", "true")
t.check_equal("another language", result.status, 2)
t.check(b"--frames=cobol: java, go, js, php, ruby or async" in result.err, result.err)
refused()
javas = {java_version(java): java for java in sorted(glob.glob("/usr/lib/jvm/*/bin/java"))}
readable = [java for version, java in sorted(javas.items()) if version in READ and os.path.exists(f"{java}c")]
if not readable:
    t.cannot_run_here("no JDK that is read is installed (openjdk-17-jdk-headless)")
made = t.run([f"{readable[0]}c", "-d", str(place), f"{t.SOURCE}/tests/programs/Calls.java"])
t.check_equal("the program", (made.status, made.err), (0, b""))
without(readable[0])
asked_seldom(readable[0])
for java in readable:
    try_here(java)
sampled(readable[0])
for options in (["--exact"], ["--rate", "64K", "--seed", "1"]) if t.IS_LONG else (["--exact"],):
    attached(readable[0], *options)
for suite, (version, package) in OTHERS.items():
    root = chroots.find(suite, "java", [package])
    if root:
        try_inside(suite, version, root)
t.finish()
