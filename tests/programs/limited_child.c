// SPDX-License-Identifier: Apache-2.0
// `limited_child HOW space|data MEBIBYTES`: a process whose memory is limited so before it has
// allocated anything since it began, and allocates then by every function. Prints how many calls
// failed and ends with 3.
//   fork, clone, grandchild   the child of fork, of the clone instruction, of another child
//   threads                   the same of a process with eight threads
//   call, raw                 a child that limits itself through syscall(), by an instruction
//   outside                   a child whose parent limits it by prlimit
//   exec                      what a limited child becomes
//   self, self-raw            the process itself
//   vfork                     a child of vfork limits itself and ends; its parent allocates
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 4000, SIZES = 1500, KEPT_EVERY = 20, THREADS = 8, LARGE_BYTES = 150000 };

static int resource;
static struct rlimit limit;

static long raw(long number, long a, long b, long c, long d) {
    long result;
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    result = x0;
#endif
    return result;
}

static int is_given(void *volatile block, int number) {
    if (block) memset(block, number, 1);
    if (number % KEPT_EVERY) free(block);
    return block != NULL;
}

// What failed of the calls of each function.
static int work(void) {
    int failed = 0;
    for (int i = 0; i < CALLS; i++) {
        size_t size = (size_t)(i % SIZES + 1);
        void *aligned = NULL;
        failed += !is_given(malloc(size), i);
        failed += !is_given(calloc(1, size), 1);
        failed += !is_given(realloc(malloc(1), size), 1);
        failed += posix_memalign(&aligned, 64, size) != 0;
        free(aligned);
    }
    failed += !is_given(realloc(malloc(1), LARGE_BYTES), 1);
    void *mapped =
        mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return failed + (mapped == MAP_FAILED);
}

static int say_work(void) {
    char text[64];
    int length = snprintf(text, sizeof text, "%d failed\n", work());
    return write(STDOUT_FILENO, text, (size_t)length) == length ? 3 : 4;
}

static void limit_by(const char *how) {
    int is_raw = !strcmp(how, "raw") || !strcmp(how, "self-raw");
    if (is_raw)
        raw(SYS_prlimit64, 0, resource, (long)&limit, 0);
    else if (!strcmp(how, "call"))
        syscall(SYS_prlimit64, 0, resource, &limit, NULL);
    else if (!strcmp(how, "grandchild"))
        prlimit(getpid(), resource, &limit, NULL);
    else
        setrlimit(resource, &limit);
}

static int ended(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// The child waits until its parent has limited it.
static int outside(void) {
    int ready[2];
    char byte = 0;
    if (pipe(ready)) return 1;
    pid_t child = fork();
    if (child == 0) {
        if (read(ready[0], &byte, 1) != 1) _exit(5);
        _exit(say_work());
    }
    if (prlimit(child, resource, &limit, NULL) || write(ready[1], &byte, 1) != 1) return 1;
    return ended(child);
}

static int limited_vfork(void) {
    pid_t child = vfork();
    if (child == 0) {
        setrlimit(resource, &limit);
        _exit(0);
    }
    return ended(child) ? 1 : say_work();
}

static void *wait_for_ever(void *unused) {
    free(malloc(100));
    pause();
    return unused;
}

static void begin_threads(void) {
    pthread_t thread;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, NULL, wait_for_ever, NULL)) exit(1);
}

static pid_t make_child(const char *how) {
    if (!strcmp(how, "clone")) return (pid_t)raw(SYS_clone, SIGCHLD, 0, 0, 0);
    if (!strcmp(how, "threads")) begin_threads();
    return fork();
}

int main(int count, char **words) {
    if (count < 4) return say_work();  // after exec
    const char *how = words[1];
    resource = words[2][0] == 's' ? RLIMIT_AS : RLIMIT_DATA;
    limit.rlim_cur = limit.rlim_max = (rlim_t)atol(words[3]) << 20;
    free(malloc(1000));
    if (!strcmp(how, "outside")) return outside();
    if (!strcmp(how, "vfork")) return limited_vfork();
    if (!strncmp(how, "self", 4)) {
        limit_by(how);
        return say_work();
    }
    pid_t child = make_child(how);
    if (child) return ended(child);
    if (!strcmp(how, "grandchild") && (child = fork())) _exit(ended(child));
    limit_by(how);
    if (!strcmp(how, "exec")) execl(words[0], words[0], NULL);
    _exit(say_work());
}
