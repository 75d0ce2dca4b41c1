// SPDX-License-Identifier: Apache-2.0
// `killed_at STEP PROGRAM ARGUMENTS`: starts a program and kills it by SIGKILL at one of the system
// calls by which it changes another process: ptrace, and pwrite64 to its memory. Two steps are one
// call: an odd one is its begin, an even one its end. STEP 0 kills it never; +BYTES as it writes
// that many bytes or more at once. Prints how many steps there were. The status is the program's,
// or 128 and the signal.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PTRACE_GET_SYSCALL_INFO
#define PTRACE_GET_SYSCALL_INFO 0x420e
#endif

enum { SYSTEM_CALL_STOP = SIGTRAP | 0x80, THREADS_MAX = 64, ENTRY = 1, EXIT = 2 };

// The beginning of the kernel's struct ptrace_syscall_info.
struct call_info {
    unsigned char op, unused[3];
    unsigned machine;
    unsigned long long pc, stack, number, arguments[6];
};
static unsigned long long least_bytes;  // that it is killed at; 0: by the number of the step

static struct {
    pid_t tid;
    unsigned long long number;
} inside[THREADS_MAX];  // the call that each thread is in

static int is_step(pid_t tid, int *is_large) {
    struct call_info info = {0};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof info, &info) <= 0) return 0;
    *is_large = least_bytes && info.op == ENTRY && info.number == SYS_pwrite64 &&
                info.arguments[2] >= least_bytes;
    size_t at = 0;
    while (at < THREADS_MAX - 1 && inside[at].tid && inside[at].tid != tid) at++;
    if (info.op == ENTRY) {
        inside[at].tid = tid;
        inside[at].number = info.number;
    }
    if (info.op != ENTRY && info.op != EXIT) return 0;
    return inside[at].number == SYS_ptrace || inside[at].number == SYS_pwrite64;
}

static pid_t start(char **words) {
    pid_t child = fork();
    if (child) return child;
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    execvp(words[0], words);
    _exit(127);
}

// Lets a thread go on from a stop; what it was stopped by.
static void go_on(pid_t tid, int status) {
    int signal = WSTOPSIG(status);
    int is_own = status >> 16 || signal == SYSTEM_CALL_STOP || signal == SIGSTOP;
    ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(long)(is_own ? 0 : signal));
}

int main(int count, char **words) {
    int status = 0, result = 0, is_large = 0;
    long step = count > 2 ? atol(words[1]) : 0, steps = 0;
    if (count < 3) return 2;
    if (*words[1] == '+') least_bytes = (unsigned long long)step;
    pid_t child = start(words + 2), tid;
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, NULL,
           (void *)(long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                          PTRACE_O_EXITKILL));
    go_on(child, status);
    while ((tid = waitpid(-1, &status, __WALL)) > 0) {
        if (tid == child && WIFEXITED(status)) result = WEXITSTATUS(status);
        if (tid == child && WIFSIGNALED(status)) result = 128 + WTERMSIG(status);
        if (!WIFSTOPPED(status)) continue;
        if (WSTOPSIG(status) == SYSTEM_CALL_STOP && is_step(tid, &is_large) &&
            (++steps == step || is_large))
            kill(child, SIGKILL);
        go_on(tid, status);
    }
    printf("%ld\n", steps);
    return result;
}
