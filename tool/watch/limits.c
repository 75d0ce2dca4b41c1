// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/limits.h"

#include "tool/base/units.h"
#include "tool/watch/memory.h"

static void raise_one(int resource, struct rlimit *old) {
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit wanted;
    if (getrlimit(resource, old) != 0) return;
    wanted = *old;
    wanted.rlim_cur = wanted.rlim_max;
    // root may go beyond; of descriptors the kernel has a limit of its own
    if (resource != RLIMIT_FSIZE || setrlimit(resource, &none) != 0) setrlimit(resource, &wanted);
}

void limits_raise(struct limits *old) {
    raise_one(RLIMIT_NOFILE, &old->files);
    raise_one(RLIMIT_FSIZE, &old->file_bytes);
}

void limits_restore(const struct limits *old) {
    setrlimit(RLIMIT_NOFILE, &old->files);
    setrlimit(RLIMIT_FSIZE, &old->file_bytes);
}

bool limits_leave_room(struct error *error) {
    struct rlimit now;
    if (getrlimit(RLIMIT_FSIZE, &now) != 0 || now.rlim_cur >= MEMORY_LEAST_BYTES) return true;
    return error_set(error, "files may become no larger than %s (ulimit -f), and cairn needs %s",
                     units_size((int64_t)now.rlim_cur).text,
                     units_size((int64_t)MEMORY_LEAST_BYTES).text);
}
