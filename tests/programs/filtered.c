// SPDX-License-Identifier: Apache-2.0
// `filtered ACTION WAY START PROGRAM WORDS…`: forbids itself by seccomp what hardly any program
// calls but a profiler does, and starts PROGRAM, which inherits that. Without words it works on
// blocks, prints "done" and ends with 5.
//   ACTION   kill: a forbidden call ends the process; spare: the same for two of them; refuse:
//   these
//            two fail, with EPERM
//   WAY      prctl, seccomp (through syscall()), raw (an instruction), thread (another thread sets
//            it for all)
//   START    exec; spawn; many: three children by fork and exec; fork: a child that works itself;
//            system
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { BLOCKS = 3000, CHILDREN = 3, DONE = 5 };

static const int forbidden[] = {
    SYS_mincore, SYS_madvise, SYS_getpid,        SYS_socket,     SYS_connect,
    SYS_sendto,  SYS_recvmsg, SYS_setsockopt,    SYS_getcwd,     SYS_getuid,
    SYS_geteuid, SYS_getppid, SYS_clock_gettime, SYS_readlinkat, SYS_process_vm_readv,
    SYS_kcmp,    SYS_tgkill,  SYS_sched_yield,   SYS_ftruncate,  SYS_sigaltstack,
};
enum { FORBIDDEN = sizeof forbidden / sizeof *forbidden };

static struct sock_filter rules[2 * FORBIDDEN + 2];
static struct sock_fprog program = {0, rules};

static void make_filter(const char *action) {
    const int is_deadly = strcmp(action, "refuse") != 0, is_whole = !strcmp(action, "kill");
    unsigned result = is_deadly ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | (unsigned)EPERM;
    unsigned short length = 0;
    rules[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                   (unsigned)offsetof(struct seccomp_data, nr));
    for (int i = 0; i < (is_whole ? FORBIDDEN : 2); i++) {
        rules[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)forbidden[i], 0, 1);
        rules[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result);
    }
    rules[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = length;
}

static long raw_seccomp(void) {
    long result;
#if defined(__x86_64__)
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_seccomp), "D"(SECCOMP_SET_MODE_FILTER), "S"(0), "d"(&program)
                     : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = SYS_seccomp;
    register long x0 __asm__("x0") = SECCOMP_SET_MODE_FILTER;
    register long x1 __asm__("x1") = 0;
    register long x2 __asm__("x2") = (long)&program;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    result = x0;
#endif
    return result;
}

// It never ends: that would take madvise.
static void *set_for_all(void *result) {
    long set = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    __atomic_store_n((long *)result, set, __ATOMIC_RELEASE);
    for (;;) pause();
    return NULL;
}

static long set_by_thread(void) {
    static long result = 1;  // (atomic)
    pthread_t thread;
    if (pthread_create(&thread, NULL, set_for_all, &result)) return -1;
    while (__atomic_load_n(&result, __ATOMIC_ACQUIRE) == 1) poll(NULL, 0, 1);
    return result;
}

static long set_filter(const char *way) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    if (!strcmp(way, "prctl")) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    if (!strcmp(way, "seccomp")) return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    return !strcmp(way, "raw") ? raw_seccomp() : set_by_thread();
}

static int work(void) {
    static char *kept[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) kept[i] = calloc(1, (size_t)i + 1);
    for (int i = 0; i < BLOCKS; i += 2) free(kept[i]);
    puts("done");
    fflush(stdout);
    return DONE;
}

static int ended(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int start(const char *how, char **words) {
    int status = DONE;
    pid_t child = 0;
    if (!strcmp(how, "exec")) execv(words[0], words);
    if (!strcmp(how, "spawn"))
        return posix_spawn(&child, words[0], NULL, NULL, words, environ) ? 2 : ended(child);
    if (!strcmp(how, "system")) return WEXITSTATUS(system(words[0]));
    int count = !strcmp(how, "many") ? CHILDREN : 1;
    for (int i = 0; i < count && status == DONE; i++) {
        child = fork();
        if (child == 0 && count == 1) _exit(work());
        if (child == 0) execv(words[0], words);
        status = ended(child);
    }
    return status;
}

int main(int count, char **words) {
    if (count < 5) return work();
    free(malloc(100));
    make_filter(words[1]);
    if (set_filter(words[2])) return 3;
    return start(words[3], words + 4);
}
