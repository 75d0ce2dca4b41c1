#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=java changes nothing: a JVM has the same output, status, descriptors, masks of signals, directory
and environment as without cairn, also where it compiles, unloads classes, starts and ends threads; and a program
without a JVM is as it was. Of one that dies in native code that Java called, however, nothing is lost, and it dies as
without cairn. cairn attach leaves a JVM as it was. Interpreted code is left to `make check-long`."""

import glob
import os
import signal
import subprocess

import cairn_test as t
from attached import Attached, check_left, state_of

LOOK = """
import java.net.*;
import java.nio.*;
import java.nio.file.*;
import java.util.*;

public class Look {
    // Memory of malloc from code that is compiled, from threads that end, and from classes that are unloaded.
    public static class Work implements Runnable {
        public void run() {
            for (int i = 0; i < 2000; i++) {
                ByteBuffer.allocateDirect(64 + i % 7).put(0, (byte) i);
                new java.util.zip.Inflater().end();
            }
        }
    }

    static void unload(URL place) throws Exception {
        for (int i = 0; i < 20; i++) {
            try (URLClassLoader loader = new URLClassLoader(new URL[] {place}, null)) {
                ((Runnable) loader.loadClass("Look$Work").getDeclaredConstructor().newInstance()).run();
            }
            System.gc();
        }
    }

    static List<String> files() throws Exception {
        List<String> found = new ArrayList<>();
        try (DirectoryStream<Path> all = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
            for (Path one : all) {
                try {
                    String to = Files.readSymbolicLink(one).toString();
                    if (!to.startsWith("/proc") && !to.startsWith("pipe")) found.add(to.replaceAll(":.[0-9]+.$", ""));
                } catch (NoSuchFileException gone) {
                    // the listing's own
                }
            }
        }
        Collections.sort(found);
        return found;
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 50; i++) {
            Thread thread = new Thread(new Work());
            thread.start();
            thread.join();
        }
        unload(Path.of(args[0]).toUri().toURL());
        for (String line : Files.readAllLines(Path.of("/proc/thread-self/status")))
            if (line.startsWith("Sig") && !line.startsWith("SigQ") || line.startsWith("Shd")) System.out.println(line);
        System.out.println(files());
        System.out.println(Path.of(".").toRealPath());
        List<String> names = new ArrayList<>(System.getenv().keySet());
        names.removeIf(name -> name.startsWith("CAIRN_") || name.equals("LD_PRELOAD") || name.equals("_"));
        Collections.sort(names);
        System.out.println(names);
        System.exit(7);
    }
}
"""
OPTION = ["--frames=java"]
LIBRARY = str(t.BUILD / "tests/programs/libcalls.so")
CALLS, KEPT = 300, 1000
# Of libcalls.c: how, and the status. A fault is the JVM's to report.
DEATHS = {1: 128 + signal.SIGABRT, 2: 128 + signal.SIGKILL, 3: 1, 4: 5}


def blocks_of(found, native, java, value):
    """Of the blocks of a native method whose stacks have the Java method that called it, and main."""
    return sum(stack[value] for stack in found["stacks"] if stack["frames"] and stack["frames"][0]["function"] == native
               and {java, "Calls.main"} <= {frame["function"] for frame in stack["frames"]})


def dies(java, place):
    for how, status in DEATHS.items():
        argv = [java, "-XX:-CreateCoredumpOnCrash", f"-XX:ErrorFile={place}/error", "-cp", place, "Calls", LIBRARY, "/dev/null",
                str(CALLS), "die", str(how)]
        plain = t.run(argv)
        result, recording = t.record(argv, options=OPTION)
        t.check_equal(f"death {how}", (plain.status, result.status), (status, status))
        lines = [text.splitlines()[:3] for text in (plain.out, result.out)]
        t.check_equal(f"death {how}: what it says", lines[1], lines[0])
        found = t.report(recording)
        t.check_equal(f"death {how}: blocks kept", blocks_of(found, "Java_Calls_die", "Calls.die", "at_exit_blocks"), KEPT)
        t.check_equal(f"death {how}: calls before", blocks_of(found, "Java_Calls_allocate", "Calls.leaf", "allocations"), CALLS - 1)
        t.check_equal(f"death {how}: nothing is lost", found["trust"]["lost"], {})


def is_left(java, place):
    argv = [java, "-XX:+UseSerialGC", "-cp", place, "Calls", LIBRARY, "/dev/null", "2000", "wait"]
    with t.Process(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        t.check_equal("it starts", process.stdout.readline(), b"ready\n")
        before = state_of(process.pid)
        Attached(process.pid, "--exact", *OPTION).leave()
        t.check_equal("what attaching does not change", state_of(process.pid)["files"], before["files"])
        check_left("a JVM", process.pid)
        Attached(process.pid, "--exact", *OPTION).leave()
        t.check_equal("it tells and ends", process.communicate(b"\n\n")[0], b"told\n")
        t.check_equal("its status", process.wait(t.PATIENCE_S), 0)

shell = ["sh", "-c", "exec 7</dev/null; ls /proc/self/fd | wc -l; ulimit -a; trap; exit 3"]
t.record(shell, options=OPTION)[0].check_like("no JVM", t.run(shell))

compilers = glob.glob("/usr/lib/jvm/*17*/bin/javac")
if compilers:
    place = t.fresh_path("look")
    t.run(["mkdir", place])
    with open(f"{place}/Look.java", "w", encoding="utf-8") as source:
        source.write(LOOK)
    made = t.run([compilers[0], "-d", place, f"{place}/Look.java", f"{t.SOURCE}/tests/programs/Calls.java"])
    t.check_equal("the programs are compiled", (made.status, made.err), (0, b""))
    java = compilers[0].removesuffix("c")
    dies(java, place)
    if os.uname().machine == "x86_64":
        is_left(java, place)
    for mode in ([], ["-Xint"]) if t.IS_LONG else ([],):
        argv = [java, "-XX:+UseSerialGC", *mode, "-cp", place, "Look", place + "/"]
        plain = t.run(argv)
        t.check_equal(f"{mode}: plain", plain.status, 7)
        result, recording = t.record(argv, options=OPTION)
        result.check_like(f"{mode}: recorded", plain)
        found = t.report(recording, "--focus", r"^Look\$Work\.run$", "--top", "1")
        t.check(any(frame["function"] == "Look$Work.run" for stack in found["stacks"] for frame in stack["frames"]),
                f"{mode}: stacks have Java frames")
else:
    t.skip_part("JDK 17 is not installed (openjdk-17-jdk-headless)")
t.finish()
