// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/limits.h"

#include "tool/base/units.h"
#include "tool/watch/memory.h"

enum { FILES_USUAL = 1024 };

// Root may go beyond what is the most for others, up to `wanted`.
static void raise_one(int resource, rlim_t wanted, struct rlimit *old) {
    if (getrlimit(resource, old) != 0) return;
    const struct rlimit beyond = {wanted, wanted}, most = {old->rlim_max, old->rlim_max};
    if (most.rlim_cur >= wanted || setrlimit(resource, &beyond) != 0) setrlimit(resource, &most);
}

void limits_raise(struct limits *old) {
    raise_one(RLIMIT_NOFILE, FILES_USUAL, &old->files);
    raise_one(RLIMIT_FSIZE, RLIM_INFINITY, &old->file_bytes);
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
