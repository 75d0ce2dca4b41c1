// SPDX-License-Identifier: Apache-2.0
// measure FILE PROGRAM [ARGUMENT...]: runs the program and writes to the file, in one line, wall
// and processor time in nanoseconds, the largest resident memory of a process in bytes, and the
// status as a shell gives it. bench/runner.py does not do this itself, since the kernel counts the
// memory of the process that forks, Python's 30 MB, as the child's.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOT_FOUND = 127, SIGNAL_BASE = 128, KIB = 1024 };

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static long long time_ns(struct timeval time) {
    return time.tv_sec * 1000000000ll + time.tv_usec * 1000ll;
}

static pid_t start_program(char **argv) {
    pid_t child = vfork();
    if (child == 0) {
        execvp(argv[0], argv);
        _exit(NOT_FOUND);
    }
    return child;
}

int main(int argc, char **argv) {
    struct rusage usage;
    int status;
    // Not by this process' own environment: a preload is for the program alone.
    int first = 2;
    while (first < argc && strchr(argv[first], '=')) putenv(argv[first++]);
    if (first >= argc) {
        fprintf(stderr, "usage: measure FILE [NAME=VALUE...] PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    long long start = now_ns();
    pid_t child = start_program(argv + first);
    if (child < 0) return 1;
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR) return 1;
    long long wall = now_ns() - start;
    FILE *out = fopen(argv[1], "w");
    if (!out) return 1;
    fprintf(out, "%lld %lld %lld %d\n", wall, time_ns(usage.ru_utime) + time_ns(usage.ru_stime),
            (long long)usage.ru_maxrss * KIB,
            WIFSIGNALED(status) ? SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status));
    return fclose(out) ? 1 : 0;
}
