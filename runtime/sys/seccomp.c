// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/seccomp.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "format/settings.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/sys.h"

// What /proc/PID/status says. Filters are counted from Linux 5.9 on.
struct seccomp {
    long mode;          // 0: none; UNKNOWN
    long filter_count;  // UNKNOWN
};
enum { UNKNOWN = -1 };

// A list of groups in the middle of the file may be long: it is read in parts, whose lines are
// whole.
enum { PART_BYTES = 2048, PARTS_MAX = 512 };

static long number_after(const char *text, const char *name) {
    const char *at = strstr(text, name);
    long value = 0;
    if (!at) return UNKNOWN;
    for (at += strlen(name); *at >= '0' && *at <= '9'; at++) value = value * 10 + (*at - '0');
    return value;
}

static void note_lines(struct seccomp *found, const char *text) {
    long mode = number_after(text, "\nSeccomp:\t");
    long count = number_after(text, "\nSeccomp_filters:\t");
    if (mode != UNKNOWN) found->mode = mode;
    if (count != UNKNOWN) found->filter_count = count;
}

// Keeps the last line that began, for the next part; none is longer but that of the groups.
static size_t keep_rest(char *text, size_t length) {
    const char *last = memrchr(text, '\n', length);
    size_t kept = last ? length - (size_t)(last - text) : 0;
    if (kept > PART_BYTES) kept = 0;
    if (kept) memmove(text, last, kept);
    return kept;
}

// False if it cannot be read.
static bool read_status(const char *path, struct seccomp *found) {
    char text[2 * PART_BYTES + 1];
    size_t kept = 0;
    *found = (struct seccomp){UNKNOWN, UNKNOWN};
    long file = sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (sys_is_error(file)) return false;
    for (int i = 0; i < PARTS_MAX && found->filter_count == UNKNOWN; i++) {
        long got = sys_call(SYS_read, file, (long)(text + kept), PART_BYTES, 0, 0, 0);
        if (got <= 0) break;
        text[kept + (size_t)got] = 0;
        note_lines(found, text);
        kept = keep_rest(text, kept + (size_t)got);
    }
    sys_call(SYS_close, file, 0, 0, 0, 0, 0);
    return true;
}

static struct seccomp own_state(void) {
    struct seccomp found;
    if (read_status("/proc/self/status", &found)) return found;
    long mode = sys_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0);
    return (struct seccomp){sys_is_error(mode) ? 0 : mode, UNKNOWN};
}

// How many filters the surroundings have: the tool's, which says so; without a tool process 1's.
static long count_around(void) {
    const char *digits = environment_get(CAIRN_VARIABLE(FILTERS));
    const char *socket = environment_get(CAIRN_VARIABLE(SOCKET));
    struct seccomp first;
    long count = 0;
    if (!digits && !(socket && socket[0]))
        return read_status("/proc/1/status", &first) && first.mode > 0 ? first.filter_count : 0;
    for (; digits && *digits >= '0' && *digits <= '9'; digits++)
        count = count * 10 + (*digits - '0');
    return count;
}

bool seccomp_is_foreign(void) {
    struct seccomp own = own_state();
    if (likely(own.mode <= 0)) return false;
    long around = count_around();
    return own.filter_count == UNKNOWN ? around == 0
                                       : around != UNKNOWN && own.filter_count > around;
}
