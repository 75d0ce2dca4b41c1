// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/environment.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/sys/sys.h"

static const char *given;

void environment_give(const char *words) {
    given = words;
}

bool environment_is_given(void) {
    return given != NULL;
}

static const char *given_get(const char *name, size_t length) {
    for (const char *entry = given; *entry; entry += strlen(entry) + 1)
        if (strncmp(entry, name, length) == 0 && entry[length] == '=') return entry + length + 1;
    return NULL;
}

static char **lent;

void environment_lend(char **variables) {
    lent = variables;
}

static char **variables_now(void) {
    return environ ? environ : lent;
}

bool environment_is_ready(void) {
    return variables_now() != NULL;
}

const char *environment_get(const char *name) {
    size_t length = strlen(name);
    if (given) return given_get(name, length);
    for (char **entry = variables_now(); entry && *entry; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

size_t environment_read(const char *path, char *text, size_t size) {
    size_t used = 0;
    long file = sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0) return 0;
    for (;;) {
        long got = sys_call(SYS_read, file, (long)(text + used), (long)(size - used), 0, 0, 0);
        if (got <= 0) break;
        used += (size_t)got;
    }
    sys_call(SYS_close, file, 0, 0, 0, 0, 0);
    return used;
}

void environment_executable(char *path, size_t size) {
    long length = sys_call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path,
                           (long)size - 1, 0, 0);
    path[length > 0 ? length : 0] = 0;
}

void environment_directory(char *path, size_t size) {
    if (sys_call(SYS_getcwd, (long)path, (long)size, 0, 0, 0, 0) <= 0) path[0] = 0;
}
