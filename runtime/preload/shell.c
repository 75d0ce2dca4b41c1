// SPDX-License-Identifier: Apache-2.0
// Wrapped functions by which libc starts a shell on its own. Each calls the real one with the
// program's own arguments: the shell gets the variables that the process has. If the library is not
// in its LD_PRELOAD any more, or a filter is in force, the shell is not recorded, and that is said.
// If it cannot open the library (another root directory or user), the dynamic linker would print a
// line: our entries in the process' own LD_PRELOAD are separators for the time of the call.
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "format/run_mark.h"
#include "runtime/preload/exec.h"
#include "runtime/preload/variables.h"
#include "runtime/process/real.h"
#include "runtime/sys/sys.h"

#define EXPORT __attribute__((visibility("default"), used))

static struct exec_shell note(void) {
    int saved_errno = errno;
    if (unlikely(!real_is_resolved())) real_resolve();
    struct exec_shell shell = exec_note_shell();
    errno = saved_errno;
    return shell;
}

static COLD void forget(struct exec_shell shell) {
    int saved_errno = errno;
    exec_forget_shell(shell);
    errno = saved_errno;
}

// LD_PRELOAD as it was.
struct hidden {
    char *value;  // in the environment; NULL: nothing was hidden
    size_t length;
    char text[PATH_MAX];
};

// By the kernel: a program may have put a constant there.
static void write_by_kernel(char *place, const char *text, size_t length) {
    const struct iovec here = {.iov_base = (void *)(uintptr_t)text, .iov_len = length};
    const struct iovec there = {.iov_base = place, .iov_len = length};
    sys_call(SYS_process_vm_writev, sys_pid(), (long)&here, 1, (long)&there, 1, 0);
}

static void hide(struct hidden *hidden) {
    char text[PATH_MAX];
    hidden->value = variables_preload(environ);
    if (!hidden->value) return;
    hidden->length = strnlen(hidden->value, sizeof text);
    if (hidden->length == sizeof text) hidden->value = NULL;
    if (!hidden->value) return;
    memcpy(hidden->text, hidden->value, hidden->length);
    memcpy(text, hidden->value, hidden->length);
    for (size_t at = 0, end; at < hidden->length; at = end + 1) {
        for (end = at; end < hidden->length && text[end] != ':' && text[end] != ' ';) end++;
        if (cairn_is_own_entry(text + at, end - at)) memset(text + at, ':', end - at);
    }
    write_by_kernel(hidden->value, text, hidden->length);
}

// Puts it back, unless the program has set another value meanwhile.
static void show(const struct hidden *hidden) {
    if (hidden->value && variables_preload(environ) == hidden->value &&
        strlen(hidden->value) == hidden->length)
        write_by_kernel(hidden->value, hidden->text, hidden->length);
}

typedef int system_call(const char *command);
typedef void *popen_call(const char *command, const char *mode);

static COLD int system_without_us(system_call *real_system, const char *command) {
    struct hidden hidden;
    hide(&hidden);
    int result = real_system(command), saved_errno = errno;
    show(&hidden);
    errno = saved_errno;
    return result;
}

static COLD void *popen_without_us(popen_call *real_popen, const char *command, const char *mode) {
    struct hidden hidden;
    hide(&hidden);
    void *result = real_popen(command, mode);
    int saved_errno = errno;
    show(&hidden);
    errno = saved_errno;
    return result;
}

int system(const char *command);
void *popen(const char *command, const char *mode);

// With NULL it asks whether there is a shell. ECHILD: it ran, and SIGCHLD is ignored. The real ones
// are looked for at each call: a pointer that is kept would cost every program memory.
EXPORT int system(const char *command) {
    struct exec_shell shell = note();
    system_call *real_system;
    *(void **)&real_system = real_find("system");
    bool is_lost = unlikely(shell.reason == CAIRN_UNRECORDED_LIBRARY);
    int result = is_lost ? system_without_us(real_system, command) : real_system(command);
    if (unlikely(!command || (result == -1 && errno != ECHILD))) forget(shell);
    return result;
}

EXPORT void *popen(const char *command, const char *mode) {
    struct exec_shell shell = note();
    popen_call *real_popen;
    *(void **)&real_popen = real_find("popen");
    bool is_lost = unlikely(shell.reason == CAIRN_UNRECORDED_LIBRARY);
    void *result =
        is_lost ? popen_without_us(real_popen, command, mode) : real_popen(command, mode);
    if (unlikely(!result)) forget(shell);
    return result;
}
