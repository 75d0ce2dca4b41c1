// SPDX-License-Identifier: Apache-2.0
import java.io.*;
import java.util.*;

/**
 * Allocates natively at the end of so many calls of many kinds and writes, by stack as Throwable has it, how often:
 * to the file arguments[1] lines of a count and frames, innermost first. arguments[0]: the library of libcalls.c;
 * arguments[2]: how many calls.
 */
public class Calls {
    static final int BYTES = 7919;
    static final HashMap<List<String>, Integer> told = new HashMap<>();
    static int remaining;

    static native void allocate(int bytes);
    static native void back(int depth, long seed);

    static void leaf() {
        allocate(BYTES); StackTraceElement[] frames = new Throwable().getStackTrace();
        ArrayList<String> stack = new ArrayList<>();
        for (StackTraceElement f : frames)
            stack.add(f.getClassName() + "." + f.getMethodName() + ":" + f.getLineNumber());
        told.merge(stack, 1, Integer::sum);
    }

    interface Way { void go(int depth, long seed); }
    static class Thing implements Way {
        Thing() { }
        Thing(int depth, long seed) { step(depth - 1, seed); }
        public void go(int depth, long seed) { step(depth - 1, seed); }
        synchronized void locked(int depth, long seed) { step(depth - 1, seed); }
    }
    static class Other extends Thing {
        public void go(int depth, long seed) { super.go(depth, seed); }
    }
    static void failing(int depth, long seed) {
        try {
            throw new IllegalStateException();
        } catch (IllegalStateException caught) {
            step(depth - 1, seed);
        } finally {
            remaining += 0;
        }
    }
    static void many(int depth, long seed, long a, long b, long c, long d, double e, double f) {
        step(depth - 1, seed + a - b + c - d + (long) (e - f));
    }
    static final Thing thing = new Thing();
    static final Way other = new Other();

    static void step(int depth, long seed) {
        if (depth <= 0 || remaining <= 0) { remaining--; leaf(); return; }
        seed = seed * 6364136223846793005L + 1442695040888963407L;
        switch ((int) ((seed >>> 40) % 8)) {
        case 0: step(depth - 1, seed); break;
        case 1: thing.go(depth, seed); break;
        case 2: other.go(depth, seed); break;
        case 3: new Thing(depth, seed); break;
        case 4: thing.locked(depth, seed); break;
        case 5: failing(depth, seed); break;
        case 6: many(depth, seed, 1, 1, 2, 2, 3, 3); break;
        default: back(depth - 1, seed); break;
        }
    }

    static void calls(int count, int ways) {
        remaining = count;
        for (int i = 0; remaining > 0; i++) step(i % 6, i % ways);
    }

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        calls(Integer.parseInt(arguments[2]), 500);
        for (int i = 0; i < 3; i++) {
            Thread thread = new Thread(() -> calls(50, 5));
            thread.start();
            thread.join();
        }
        try (PrintWriter out = new PrintWriter(arguments[1])) {
            for (Map.Entry<List<String>, Integer> entry : told.entrySet())
                out.println(entry.getValue() + " " + String.join(" ", entry.getKey()));
        }
    }
}
