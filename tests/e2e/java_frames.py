#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=java: the Java frames of native allocations are those that Throwable tells at the same time, at
100,000 calls of every kind, in interpreted code, C1's and C2's; native code that calls Java back stands between. Without
the option a line of the report says so, and other JDKs are refused by name. A program is none the wiser."""

import collections
import glob
import os
import pathlib
import re

import cairn_test as t

CALLS = 100000
place = t.fresh_path("java")
os.makedirs(place)
library, told = str(t.BUILD / "tests/programs/libcalls.so"), f"{place}/told"


def java_version(java):
    found = re.search(rb'version "(\d+)', t.run([java, "-version"]).err)
    return int(found.group(1)) if found else 0


def told_stacks():
    stacks = collections.Counter()
    for line in pathlib.Path(told).read_text().splitlines():
        count, *frames = line.split()
        stacks[tuple(frames)] += int(count)
    return stacks


def stacks_of(found):
    """Of the blocks of Calls.allocate, with the place of the call as Calls.java tells it."""
    stacks = collections.Counter()
    for stack in found["stacks"]:
        frames = [frame for frame in stack["frames"] if (frame["file"] or "").endswith(".java")]
        functions = [frame["function"] for frame in stack["frames"]]
        if not frames or frames[0]["function"] != "Calls.allocate" or functions[:1] != ["Java_Calls_allocate"]:
            continue
        stacks[tuple(f"{frame['function']}:{frame['line'] or -1}" for frame in frames[1:])] += stack["allocations"]
        natives = [frame for frame in functions if frame == "Java_Calls_back"]
        backs = [frame["function"] for frame in frames if frame["function"] == "Calls.back"]
        t.check_equal("each call back has its native frame", len(natives), len(backs))
    return stacks


def compare(java, mode):
    argv = [java, *mode, "-cp", place, "Calls", library, told, str(CALLS)]
    result, recording = t.record(argv, options=["--frames=java"])
    t.check_equal(f"{mode}: status", (result.status, result.out), (0, b""))
    # the lines of native methods are -2 there
    wanted = collections.Counter()
    for stack, count in told_stacks().items():
        wanted[tuple(frame.replace(":-2", ":-1") for frame in stack)] += count
    found = stacks_of(t.report(recording))
    t.check(sum(wanted.values()) >= CALLS, f"{mode}: {sum(wanted.values())} calls were told")
    lost, more = wanted - found, found - wanted
    t.check_equal(f"{mode}: stacks that differ", (sum(lost.values()), sum(more.values())), (0, 0))
    for stack in list(lost)[:2] + list(more)[:2]:
        print(mode, "told" if stack in lost else "recorded", stack)


def without(java):
    argv = [java, "-cp", place, "Calls", library, told, "100"]
    _, recording = t.record(argv)
    text = t.run_cairn("report", recording).out.decode()
    t.check("Java: its own frames are missing, --frames=java records them" in text, text)
    _, recording = t.record(argv, options=["--frames=java"])
    text = t.run_cairn("report", "--view", "stacks", "--by", "allocated", "--top", "0", recording).out.decode()
    t.check("Java: its own frames" not in text and "Calls.leaf" in text, text[:2000])
    t.check("stacks have its frames" in t.run_cairn("info", recording).out.decode(), "cairn info says so")


def refused(java, version):
    argv = [java, "-cp", place, "Calls", library, told, "100"]
    result, recording = t.record(argv, options=["--frames=java"])
    t.check_equal(f"JDK {version}: status", result.status, 0)
    text = t.run_cairn("report", recording).out.decode()
    t.check(f"JDK {version}: Java frames are missing, cairn reads those of JDK 17" in text, text)


result = t.run_cairn("run", "--frames=cobol", "--", "true")
t.check_equal("another language", result.status, 2)
t.check(b"--frames=cobol: java, go or js" in result.err, result.err)
javas = sorted(glob.glob("/usr/lib/jvm/*/bin/java"))
readable = [java for java in javas if java_version(java) == 17]
compiler = next((javac for javac in (f"{os.path.dirname(java)}/javac" for java in readable) if os.path.exists(javac)), None)
if not compiler:
    t.cannot_run_here("JDK 17 is not installed (openjdk-17-jdk-headless)")
made = t.run([compiler, "-d", place, f"{t.SOURCE}/tests/programs/Calls.java"])
t.check_equal("the program", (made.status, made.err), (0, b""))
for mode in (["-Xint"], ["-XX:TieredStopAtLevel=1"], []):
    compare(readable[0], mode)
without(readable[0])
others = {java_version(java): java for java in javas if java_version(java) > 17}
for version, java in others.items():
    refused(java, version)
if not others:
    t.skip_part("no JDK but 17 is installed")
t.finish()
