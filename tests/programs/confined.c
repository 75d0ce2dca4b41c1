// SPDX-License-Identifier: Apache-2.0
// Programs that take things away from themselves in the middle of their work: `confined HOW`.
//   closefrom close_range closes   close every descriptor from 3 on, by three ways
//   chdir chroot                   move away; chroot into an empty directory
//   setuid                         becomes the user nobody, as daemons do
//   fsize nofile space data        set RLIMIT_FSIZE, NOFILE, AS, DATA small
//   filter                         a seccomp filter that kills on anything but memory and write
//   strict                         seccomp's strict mode
//   far                            the same, with a heap of 24 MiB that was not touched before
//   mdwe seal                      no memory becomes executable from then on; nothing of what is
//   mapped
//                                  may change (mseal), where the kernel knows that
//   asks                           asks whether there is seccomp, by calls that fail: nothing is
//   taken away
// Before and after it they work on blocks, new code and new threads (where allowed) included.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/programs/ledger.h"

#define BLOCKS 400
#define NOBODY 65534

__attribute__((noinline)) static void work_before(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        void *block = ledger_take(i);
        if (i % 2) ledger_give(block, i);
    }
}

// New stacks, so that the runtime needs more of everything.
__attribute__((noinline)) static void descend(unsigned path, int depth) {
    if (depth == 0)
        ledger_give(ledger_take(path), path);
    else if (path >> depth & 1)
        descend(path, depth - 1);
    else
        descend(path ^ 1, depth - 1);
    __asm__ volatile("" ::"r"(path));
}

__attribute__((noinline)) static void work_after(void) {
    for (unsigned i = 0; i < BLOCKS; i++) descend(i, 12);
    for (size_t i = 0; i < BLOCKS; i++) ledger_take(i + 1);
}

static void *body(void *unused) {
    ledger_begin();
    work_after();
    return unused;
}

static void close_each(void) {
    for (int i = 3; i < 1024; i++) close(i);
}

static int move_away(const char *how) {
    if (chdir("/")) return 1;
    if (!strcmp(how, "chdir")) return 0;
    return chroot("/proc/self/fdinfo") || chdir("/");
}

static int limit(int resource, rlim_t value) {
    struct rlimit limit = {value, value};
    return setrlimit(resource, &limit);
}

#define ALLOW(call)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int filter(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(write),
        ALLOW(mmap),
        ALLOW(munmap),
        ALLOW(mremap),
        ALLOW(brk),
        ALLOW(futex),
        ALLOW(exit),
        ALLOW(exit_group),
        ALLOW(rt_sigreturn),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

// A stack over more pages than were looked at so far.
__attribute__((noinline)) static void ask_wide(int depth) {
    char room[3000];
    __asm__ volatile("" ::"r"(room) : "memory");
    if (depth)
        ask_wide(depth - 1);
    else
        ledger_take(77);
    __asm__ volatile("" ::"r"(room) : "memory");
}

static int ask(void) {
    if (!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) ||
        !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL))
        return 1;
    ask_wide(20);
    return 0;
}

static int deny_code(void) {
    const int mdwe = 65, refuse_exec_gain = 1;  // PR_SET_MDWE, Linux 6.3
    return prctl(mdwe, refuse_exec_gain, 0, 0, 0) && errno != EINVAL;
}

// The heap and the stack are left out, which grow; and so is what the kernel does not let seal.
static int seal(void) {
    enum { RANGES = 1000, LINE = 512, SYS_MSEAL = 462 };
    static unsigned long ranges[RANGES][2];
    char line[LINE];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps) return 1;
    while (count < RANGES && fgets(line, sizeof line, maps))
        if (!strchr(line, '[') &&
            sscanf(line, "%lx-%lx", &ranges[count][0], &ranges[count][1]) == 2)
            count++;
    fclose(maps);
    for (int i = 0; i < count; i++)
        syscall(SYS_MSEAL, ranges[i][0], ranges[i][1] - ranges[i][0], 0);
    return 0;
}

static int confine(const char *how) {
    if (!strcmp(how, "mdwe")) return deny_code();
    if (!strcmp(how, "seal")) return seal();
    if (!strcmp(how, "closefrom")) return closefrom(3), 0;
    if (!strcmp(how, "close_range")) return close_range(3, ~0u, 0);
    if (!strcmp(how, "closes")) return close_each(), 0;
    if (!strcmp(how, "chdir") || !strcmp(how, "chroot")) return move_away(how);
    if (!strcmp(how, "setuid")) return setgid(NOBODY) || setuid(NOBODY);
    if (!strcmp(how, "fsize")) return limit(RLIMIT_FSIZE, 0);
    if (!strcmp(how, "nofile")) return limit(RLIMIT_NOFILE, 3);
    if (!strcmp(how, "space")) return limit(RLIMIT_AS, (rlim_t)200 << 20);
    if (!strcmp(how, "data")) return limit(RLIMIT_DATA, (rlim_t)32 << 20);
    if (!strcmp(how, "filter")) return filter();
    if (!strcmp(how, "strict") || !strcmp(how, "far"))
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    if (!strcmp(how, "asks")) return ask();
    return 1;
}

static int is_secluded(const char *how) {
    return !strcmp(how, "filter") || !strcmp(how, "strict") || !strcmp(how, "far");
}

// Blocks that lie in other parts of the heap than any before.
__attribute__((noinline)) static void work_far(void) {
    const size_t bytes = 60000;
    for (int i = 0; i < 200; i++) {
        void *block = ledger_take(bytes);
        if (i % 2) ledger_give(block, bytes);
    }
}

int main(int argc, char **argv) {
    static const char done[] = "done\n";
    const char *how = argc > 1 ? argv[1] : "closes";
    const bool is_far = !strcmp(how, "far");
    if (is_far) mallopt(M_TOP_PAD, 24 << 20);
    ledger_open();
    work_before();
    if (confine(how)) {
        perror(how);
        return 2;
    }
    work_after();
    if (is_far) work_far();
    pthread_t thread;
    if (!is_secluded(how)) {
        if (pthread_create(&thread, NULL, body, NULL)) return 3;
        pthread_join(thread, NULL);
    }
    ssize_t written = write(STDOUT_FILENO, done, sizeof done - 1);
    if (is_far || !strcmp(how, "strict")) syscall(SYS_exit, 5);  // the only end that mode allows
    return written == sizeof done - 1 ? 5 : 4;
}
