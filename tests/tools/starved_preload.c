// SPDX-License-Identifier: Apache-2.0
// Makes allocations of the tool fail: those numbered STARVED=FIRST-LAST, with 0 none. STARVED_SINCE
// is which are numbered: "stop": those made while it has stopped a process by ptrace; "end": those
// behind the end of a program that it waited for; "/FILE": those made while that file is there.
// STARVED=%N is every N-th of them. STARVED_TOLD names a file to which it writes, as it ends, how
// many were asked for.
//
// Libraries that fail where they should report, libdw and libelf, are let be: what the tool puts
// aside (tool/base/reserve.h) is for them. With STARVED=all nothing is left of malloc's memory, and
// the kernel gives none, from where the second stop of a process begins until it goes on: what was
// put aside is all that there is, for libraries too.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOOK __attribute__((visibility("default")))

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

enum { RANGES = 4 };
static struct { uintptr_t start, end; } ranges[RANGES];  // of code that is let be
static unsigned long first, last, every;
static const char *since;
static bool takes_all;
static pid_t tool;
static atomic_ulong asked;
static atomic_int stopped, stops;
static atomic_bool has_ended;
static bool is_exhausted;
static struct rlimit usual;

static int find_range(struct dl_phdr_info *module, size_t bytes, void *count) {
    size_t *used = count;
    (void)bytes;
    if (!strstr(module->dlpi_name, "/libdw") && !strstr(module->dlpi_name, "/libelf")) return 0;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || *used == RANGES) continue;
        uintptr_t start = module->dlpi_addr + part->p_vaddr;
        ranges[*used].start = start;
        ranges[(*used)++].end = start + part->p_memsz;
    }
    return 0;
}

static bool is_let_be(const void *caller) {
    for (size_t i = 0; i < RANGES; i++)
        if ((uintptr_t)caller - ranges[i].start < ranges[i].end - ranges[i].start) return true;
    return false;
}

__attribute__((constructor)) static void begin(void) {
    const char *numbers = getenv("STARVED"), *dash = numbers ? strchr(numbers, '-') : NULL;
    if (!numbers || strcmp(program_invocation_short_name, "cairn") != 0) return;
    since = getenv("STARVED_SINCE");
    takes_all = !strcmp(numbers, "all");
    if (*numbers == '%') every = strtoul(numbers + 1, NULL, 10);
    first = strtoul(numbers, NULL, 10);
    last = dash ? strtoul(dash + 1, NULL, 10) : first;
    size_t count = 0;
    dl_iterate_phdr(find_range, &count);
    tool = getpid();
}

__attribute__((destructor)) static void tell(void) {
    const char *path = getenv("STARVED_TOLD");
    if (!tool || tool != getpid() || !path) return;
    char text[32];
    int length = snprintf(text, sizeof text, "%lu\n", atomic_load(&asked));
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file >= 0 && write(file, text, (size_t)length) == length) close(file);
}

static bool is_counted(void) {
    if (!tool || tool != getpid()) return false;
    if (since && *since == '/') return !access(since, F_OK);
    return !since || strcmp(since, "stop") ? atomic_load(&has_ended) : atomic_load(&stopped) > 0;
}

static bool is_starved(const void *caller) {
    if (!is_counted() || is_let_be(caller)) return false;
    unsigned long number = atomic_fetch_add(&asked, 1) + 1;
    if (every ? number % every != 0 : number < first || number > last) return false;
    errno = ENOMEM;
    return true;
}

#define STARVE(allocation) (is_starved(__builtin_return_address(0)) ? NULL : (allocation))

HOOK void *malloc(size_t bytes) {
    return STARVE(__libc_malloc(bytes));
}

HOOK void *calloc(size_t count, size_t bytes) {
    return STARVE(__libc_calloc(count, bytes));
}

HOOK void *realloc(void *block, size_t bytes) {
    return STARVE(__libc_realloc(block, bytes));
}

HOOK void *reallocarray(void *block, size_t count, size_t bytes) {
    size_t whole;
    if (__builtin_mul_overflow(count, bytes, &whole)) return errno = ENOMEM, NULL;
    return STARVE(__libc_realloc(block, whole));
}

HOOK void *aligned_alloc(size_t alignment, size_t bytes) {
    return STARVE(__libc_memalign(alignment, bytes));
}

HOOK int posix_memalign(void **block, size_t alignment, size_t bytes) {
    void *got = STARVE(__libc_memalign(alignment, bytes));
    if (!got) return ENOMEM;
    *block = got;
    return 0;
}

static void exhaust(void) {
    enum { LARGEST = 1 << 20, SMALLEST = 16 };
    getrlimit(RLIMIT_DATA, &usual);
    const struct rlimit none = {1, usual.rlim_max};  // 0 would be no limit to the kernel
    is_exhausted = setrlimit(RLIMIT_DATA, &none) == 0;
    for (size_t bytes = LARGEST; bytes >= SMALLEST; bytes /= 2) {
        void *volatile block = __libc_malloc(bytes);
        while (block) block = __libc_malloc(bytes);
    }
}

// The tool looks so for the threads that it is about to stop.
HOOK DIR *opendir(const char *path) {
    static DIR *(*real)(const char *);
    size_t length = strlen(path);
    bool is_of_threads = length > 5 && !strcmp(path + length - 5, "/task");
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "opendir");
    if (takes_all && tool == getpid() && is_of_threads && !atomic_load(&stopped) &&
        atomic_load(&stops) && !is_exhausted)
        exhaust();
    return real(path);
}

HOOK long ptrace(enum __ptrace_request request, ...) {
    static long (*real)(int, ...);
    va_list rest;
    va_start(rest, request);
    pid_t pid = va_arg(rest, pid_t);
    void *address = va_arg(rest, void *), *data = va_arg(rest, void *);
    va_end(rest);
    if (!real) real = (long (*)(int, ...))dlsym(RTLD_NEXT, "ptrace");
    long result = real(request, pid, address, data);
    if (request == PTRACE_SEIZE && !result) atomic_fetch_add(&stopped, 1);
    if (request != PTRACE_DETACH || atomic_fetch_sub(&stopped, 1) != 1) return result;
    atomic_fetch_add(&stops, 1);
    if (is_exhausted) setrlimit(RLIMIT_DATA, &usual);
    is_exhausted = false;
    return result;
}

// The tool waits so for the program that it started.
HOOK pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    static pid_t (*real)(pid_t, int *, int, struct rusage *);
    if (!real) real = (pid_t(*)(pid_t, int *, int, struct rusage *))dlsym(RTLD_NEXT, "wait4");
    int own = 0;
    pid_t got = real(pid, &own, options, usage);
    if (status) *status = own;
    if (got > 0 && (WIFEXITED(own) || WIFSIGNALED(own))) atomic_store(&has_ended, true);
    return got;
}
