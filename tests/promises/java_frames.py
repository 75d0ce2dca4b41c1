#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=java changes nothing: a JVM has the same output, status, descriptors, masks of signals, directory
and environment as without cairn, also where it compiles, unloads classes, starts and ends threads; and a program
without a JVM is as it was."""

import glob

import cairn_test as t

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
shell = ["sh", "-c", "exec 7</dev/null; ls /proc/self/fd | wc -l; ulimit -a; trap; exit 3"]
t.record(shell, options=OPTION)[0].check_like("no JVM", t.run(shell))

compilers = glob.glob("/usr/lib/jvm/*17*/bin/javac")
if compilers:
    place = t.fresh_path("look")
    t.run(["mkdir", place])
    with open(f"{place}/Look.java", "w", encoding="utf-8") as source:
        source.write(LOOK)
    made = t.run([compilers[0], "-d", place, f"{place}/Look.java"])
    t.check_equal("the program is compiled", (made.status, made.err), (0, b""))
    java = compilers[0].removesuffix("c")
    for mode in ([], ["-Xint"]):
        argv = [java, "-XX:+UseSerialGC", *mode, "-cp", place, "Look", place + "/"]
        plain = t.run(argv)
        t.check_equal(f"{mode}: plain", plain.status, 7)
        result, recording = t.record(argv, options=OPTION)
        result.check_like(f"{mode}: recorded", plain)
        found = t.report(recording)
        t.check(any(frame["function"] == "Look$Work.run" for stack in found["stacks"] for frame in stack["frames"]),
                f"{mode}: stacks have Java frames")
else:
    t.skip_part("JDK 17 is not installed (openjdk-17-jdk-headless)")
t.finish()
