// SPDX-License-Identifier: Apache-2.0
// A tool that ends in the middle of a call, and the thread that it has borrowed: that goes on with
// all its registers, its signal mask and its errno, and has no memory and no file more than before.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/attach/call.h"

#if defined(__x86_64__)

enum ending {
    END_BEGUN,        // the thread stands at the stub
    END_SYSTEM_CALL,  // after a system call
    END_OPENED,       // with a file
    END_CLOSED,       // after it was closed
    END_MAPPED,       // with memory for what a function is given
    END_FUNCTION,     // after a function
    END_IN_FUNCTION,  // it is in a function
    END_WHOLE,        // nothing is cut off
    ENDINGS,
};

enum { GIVEN_BYTES = 1 << 20, LEFT_BYTES = 64 << 10 };
enum { MASKED = SIGUSR2, SLOW_US = 200000, ERRNO_BEFORE = 77, FAILED = 9 };

// Shared with the children.
static struct { volatile int is_ready, is_over; } * shared;

// Holds values in registers of all kinds until `over` is set. How many were different then.
static uint64_t hold_registers(volatile int *over) {
    uint64_t wrong;
    __asm__ volatile(
        "mov $0x1111111111111111, %%rax\n mov %%rax, %%r8\n not %%r8\n"
        "mov %%rax, %%r9\n mov %%r8, %%r10\n mov %%r8, %%r11\n mov %%rax, %%r12\n"
        "mov %%r8, %%r13\n mov %%rax, %%r14\n mov %%r8, %%r15\n"
        "movq %%rax, %%xmm0\n movq %%r8, %%xmm7\n movq %%rax, %%xmm15\n"
        "1: cmpl $0, (%[over])\n je 1b\n"
        "mov $0x1111111111111111, %%rsi\n xor %%ecx, %%ecx\n"
        "cmp %%rsi, %%rax\n je 2f\n inc %%rcx\n 2: cmp %%rsi, %%r9\n je 2f\n inc %%rcx\n"
        "2: cmp %%rsi, %%r12\n je 2f\n inc %%rcx\n 2: cmp %%rsi, %%r14\n je 2f\n inc %%rcx\n"
        "2: movq %%xmm0, %%rax\n cmp %%rsi, %%rax\n je 2f\n inc %%rcx\n"
        "2: movq %%xmm15, %%rax\n cmp %%rsi, %%rax\n je 2f\n inc %%rcx\n"
        "2: not %%rsi\n cmp %%rsi, %%r8\n je 2f\n inc %%rcx\n 2: cmp %%rsi, %%r10\n je 2f\n"
        "inc %%rcx\n 2: cmp %%rsi, %%r11\n je 2f\n inc %%rcx\n 2: cmp %%rsi, %%r13\n je 2f\n"
        "inc %%rcx\n 2: cmp %%rsi, %%r15\n je 2f\n inc %%rcx\n 2: movq %%xmm7, %%rax\n"
        "cmp %%rsi, %%rax\n je 2f\n inc %%rcx\n 2:\n"
        : "=&c"(wrong)
        : [over] "D"(over)
        : "rax", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm7",
          "xmm15", "cc", "memory");
    return wrong;
}

__attribute__((noinline)) static long spoil(long seconds_us) {
    __asm__ volatile("pxor %%xmm0, %%xmm0\n pxor %%xmm7, %%xmm7\n pxor %%xmm15, %%xmm15"
                     :
                     :
                     : "xmm0", "xmm7", "xmm15");
    errno = EDOM;
    if (seconds_us) usleep((useconds_t)seconds_us);
    return ERRNO_BEFORE + 1;
}

// All that is mapped in this process.
static long mapped_bytes(void) {
    char line[64] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    ssize_t count = read(file, line, sizeof line - 1);
    close(file);
    return count > 0 ? strtol(line, NULL, 10) * sysconf(_SC_PAGESIZE) : 0;
}

static int be_target(void) {
    sigset_t mask, now;
    long before = mapped_bytes();
    close(STDIN_FILENO);  // the number of the next file
    sigemptyset(&mask);
    sigaddset(&mask, MASKED);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    errno = ERRNO_BEFORE;
    shared->is_ready = 1;
    if (hold_registers(&shared->is_over)) return 1;
    if (errno != ERRNO_BEFORE) return 2;
    if (mapped_bytes() >= before + LEFT_BYTES) return 4;
    if (fcntl(STDIN_FILENO, F_GETFD) != -1) return 5;
    sigprocmask(SIG_SETMASK, NULL, &now);
    return sigismember(&now, MASKED) == 1 && sigismember(&now, SIGUSR1) == 0 ? 0 : 3;
}

static void end_now(void *unused) {
    (void)unused;
    _exit(0);
}

// The name's address is the target's as well.
static bool make_file(struct caller *caller, bool is_closed) {
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {(uint64_t)(uintptr_t) "file"};
    struct error error;
    int64_t file = -1;
    return caller_open(caller, SYS_memfd_create, arguments, &file, &error) &&
           file == STDIN_FILENO && (!is_closed || caller_close(caller, file, &error));
}

static bool make_calls(struct caller *caller, enum ending ending, uint64_t stack) {
    const uint64_t none[REGISTERS_ARGUMENTS] = {0}, slow[REGISTERS_ARGUMENTS] = {SLOW_US};
    struct error error;
    int64_t pid = 0;
    uint64_t result = 0, room = 0;
    if (ending == END_BEGUN) return true;
    if (!caller_system_call(caller, SYS_getpid, none, &pid, &error) || pid != caller->remote->pid)
        return false;
    if (ending == END_SYSTEM_CALL) return true;
    if (ending == END_OPENED || ending == END_CLOSED)
        return make_file(caller, ending == END_CLOSED);
    if (ending != END_FUNCTION && !caller_map(caller, GIVEN_BYTES, &room, &error)) return false;
    if (ending == END_MAPPED) return true;
    caller_keep_errno(caller, stack, ERRNO_BEFORE);
    const uint64_t *arguments = ending == END_IN_FUNCTION ? slow : none;
    if (!caller_function(caller, (uint64_t)(uintptr_t)spoil, arguments, &result, &error) ||
        result != ERRNO_BEFORE + 1)
        return false;
    if (room && ending == END_WHOLE) caller_unmap(caller, room, GIVEN_BYTES);
    return true;
}

// What becomes of its thread when a tool ends so: 0 if everything is as it was.
static int be_tool(pid_t target, enum ending ending, uint64_t errno_at) {
    struct caller caller = {.when_slow = ending == END_IN_FUNCTION ? end_now : NULL};
    struct threads threads = {0};
    struct call_site site = {0};
    struct remote remote;
    struct error error;
    Dl_info libc;
    uint64_t syscall_at = (uint64_t)(uintptr_t)syscall;
    if (!remote_open(&remote, target, &error) || !dladdr((void *)(uintptr_t)getppid, &libc) ||
        !stub_find(&site.stub_at, &remote, (uint64_t)(uintptr_t)libc.dli_fbase))
        return FAILED;
    site.system_call_at = syscall_at;
    if (!threads_stop(&threads, target, &error) ||
        !caller_begin(&caller, &remote, threads_without_signal(&threads), &site, &error) ||
        !make_calls(&caller, ending, errno_at))
        return FAILED;
    if (ending != END_WHOLE) return 0;
    if (!remote_write(&remote, errno_at, &(int){ERRNO_BEFORE}, sizeof(int)) ||
        !caller_end(&caller, &error))
        return FAILED;
    threads_go(&threads, 0);
    return 0;
}

static int status_of(pid_t pid) {
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void test_tool_ends(void **state) {
    (void)state;
    for (enum ending ending = 0; ending < ENDINGS; ending++) {
        shared->is_ready = shared->is_over = 0;
        uint64_t errno_at = (uint64_t)(uintptr_t)&errno;
        pid_t target = fork();
        if (!target) _exit(be_target());
        while (!shared->is_ready) usleep(1000);
        pid_t tool = fork();
        if (!tool) _exit(be_tool(target, ending, errno_at));
        assert_int_equal(status_of(tool), 0);
        shared->is_over = 1;
        assert_int_equal(status_of(target), 0);
    }
}

static int prepare(void **state) {
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED;
}

#endif

int main(void) {
#if defined(__x86_64__)
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tool_ends)};
    return cmocka_run_group_tests(tests, prepare, NULL);
#else
    return 0;
#endif
}
