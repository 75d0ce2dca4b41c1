// SPDX-License-Identifier: Apache-2.0
// locked HOW FLAGS LIMIT: calls mlockall for each of the comma-separated FLAGS (0: munlockall) and
// prints what came of it: the results, whether memory of before is there, and by how much what is
// mapped afterwards adds to the locked memory. On stderr: "resident KIB locked KIB size KIB", the
// last as it was before.
//   HOW    libc, number (syscall), raw (an instruction of its own), each with "-child": a forked
//   child does it; with "-filtered": under a seccomp filter that ends it for one call. LIMIT  of
//   locked memory in KiB, without the right to more; 0: as found. Status 4: it cannot be set
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, PAGE = 4096, THREADS = 4, CALLS = 400, DEPTH = 100, STACK_BYTES = 256 << 10 };

static long status_kib(const char *name) {
    char text[4096];
    FILE *file = fopen("/proc/self/status", "r");
    long kib = -1;
    while (file && fgets(text, sizeof text, file))
        if (!strncmp(text, name, strlen(name))) kib = strtol(text + strlen(name) + 1, NULL, 10);
    if (file) fclose(file);
    return kib;
}

static long raw_call(long number, long argument) {
    long result;
#if defined(__x86_64__)
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(argument)
                     : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = argument;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8) : "memory");
    result = x0;
#endif
    if (result >= 0) return result;
    errno = (int)-result;
    return -1;
}

static long lock(const char *how, int flags) {
    if (!strncmp(how, "raw", 3)) return raw_call(flags ? SYS_mlockall : SYS_munlockall, flags);
    if (!strncmp(how, "number", 6))
        return flags ? syscall(SYS_mlockall, flags) : syscall(SYS_munlockall);
    return flags ? mlockall(flags) : munlockall();
}

static int pages_there(void *memory) {
    unsigned char pages[MIB / PAGE];
    int there = 0;
    mincore(memory, MIB, pages);
    for (int i = 0; i < MIB / PAGE; i++) there += pages[i] & 1;
    return there;
}

__attribute__((noinline)) static void *deep(int depth, size_t bytes) {
    void *block = depth ? deep(depth - 1, bytes) : malloc(bytes);
    __asm__ volatile("" : "+r"(block));
    return block;
}

static void *work(void *argument) {
    (void)argument;
    for (int i = 0; i < CALLS; i++) free(deep(i % DEPTH, (size_t)(i % 2000 + 1)));
    return NULL;
}

static pthread_attr_t small_stack;

static void work_in_threads(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &small_stack, work, NULL)) threads[i] = 0;
    for (int i = 0; i < THREADS; i++)
        if (threads[i]) pthread_join(threads[i], NULL);
}

static pthread_barrier_t barrier;

static void *wait_there(void *argument) {
    (void)argument;
    free(malloc(100));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void say_more(const char *name, long *before) {
    long now = status_kib("VmLck");
    printf("%s: %ld KiB\n", name, now - *before);
    *before = now;
}

static void map_more(void) {
    long before = status_kib("VmLck");
    pthread_t thread;
    void *memory = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say_more(memory == MAP_FAILED ? "mmap refused" : "mmap", &before);
    if (memory != MAP_FAILED) printf("of it there: %d pages\n", pages_there(memory));
    say_more(sbrk(MIB) == (void *)-1 ? "brk refused" : "brk", &before);
    int problem = pthread_create(&thread, &small_stack, wait_there, NULL);
    if (!problem) pthread_barrier_wait(&barrier);
    say_more(problem ? "thread refused" : "thread", &before);
    if (!problem) pthread_barrier_wait(&barrier), pthread_join(thread, NULL);
}

static void limit_to(long kib) {
    const struct rlimit limit = {(rlim_t)kib << 10, (rlim_t)kib << 10};
    const uid_t nobody = 65534;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) || setresuid(nobody, nobody, nobody)) exit(4);
}

static void forbid_one(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        exit(4);
}

static int locked(const char *how, char *flags, long limit_kib) {
    void *memory = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long size_kib = status_kib("VmSize");
    if (limit_kib) limit_to(limit_kib);
    if (strstr(how, "-filtered")) forbid_one();
    for (char *flag = strtok(flags, ","); flag; flag = strtok(NULL, ",")) {
        errno = 0;
        long result = lock(how, atoi(flag));
        printf("mlockall(%s): %ld, %s\n", flag, result, result ? strerror(errno) : "");
    }
    printf("there before: %d pages\n", pages_there(memory));
    map_more();
    fflush(stdout);
    work_in_threads();
    fprintf(stderr, "resident %ld locked %ld size %ld\n", status_kib("VmRSS"), status_kib("VmLck"),
            size_kib);
    return 3;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TOP_PAD, MIB / 2);
    mallopt(M_TRIM_THRESHOLD, 64 * MIB);
    free(malloc(MIB / 16));
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, STACK_BYTES);
    pthread_barrier_init(&barrier, NULL, 2);
    work_in_threads();
    if (strstr(words[1], "-told")) {
        puts("ready");
        fflush(stdout);
        while (getchar() != '\n') continue;
    }
    if (!strstr(words[1], "-child")) return locked(words[1], words[2], strtol(words[3], NULL, 10));
    int status = 0;
    fflush(stdout);
    if (fork() == 0) {
        int result = locked(words[1], words[2], strtol(words[3], NULL, 10));
        fflush(stdout);
        _exit(result);
    }
    wait(&status);
    return WEXITSTATUS(status);
}
