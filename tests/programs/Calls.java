// SPDX-License-Identifier: Apache-2.0
import java.io.*;
import java.util.*;

/**
 * Allocates natively at the end of so many calls of many kinds and writes, by stack as Throwable has it, how often:
 * to the file arguments[1] lines of a count and frames, innermost first. arguments[0]: the library of libcalls.c;
 * arguments[2]: how many calls; arguments[3], if any: "virtual", on virtual threads, half of which yield; "wait",
 * between two lines that it is given, after some that it does not tell; or "die" and how (libcalls.c), in the last call.
 */
public class Calls {
    static final int BYTES = 7919;
    static final HashMap<List<String>, Integer> told = new HashMap<>();
    static int remaining;
    static boolean yields;
    static int death;

    static native void allocate(int bytes);
    static native void back(int depth, long seed);
    static native void die(int how);

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
        if (depth <= 0 || remaining <= 0) {
            if (--remaining == 0 && death > 0) die(death);
            leaf();
            return;
        }
        seed = seed * 6364136223846793005L + 1442695040888963407L;
        if (yields && (seed >>> 50) % 4 == 0) Thread.yield();
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

    // By reflection: JDK 17 has no virtual threads.
    static void callsOnVirtualThreads(int count) throws Exception {
        for (int done = 0; done < count; done += 500) {
            yields = done >= count / 2;
            Object thread = Thread.class.getMethod("startVirtualThread", Runnable.class)
                .invoke(null, (Runnable) () -> { calls(250, 100); deep(60, 250); });
            ((Thread) thread).join();
        }
    }
    static void deep(int depth, int count) {
        if (depth > 0) deep(depth - 1, count); else calls(count, 100);
    }

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        int count = Integer.parseInt(arguments[2]);
        String way = arguments.length > 3 ? arguments[3] : "";
        if (way.equals("wait")) {
            calls(count / 10, 500);
            told.clear();
            System.out.println("ready");
            System.in.read();
        }
        if (way.equals("die")) death = Integer.parseInt(arguments[4]);
        if (way.equals("virtual")) callsOnVirtualThreads(count);
        else calls(count, 500);
        for (int i = 0; i < 3; i++) {
            Thread thread = new Thread(() -> calls(50, 5));
            thread.start();
            thread.join();
        }
        try (PrintWriter out = new PrintWriter(arguments[1])) {
            for (Map.Entry<List<String>, Integer> entry : told.entrySet())
                out.println(entry.getValue() + " " + String.join(" ", entry.getKey()));
        }
        if (way.equals("wait")) {
            System.out.println("told");
            System.in.read();
        }
    }
}
