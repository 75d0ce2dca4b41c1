// SPDX-License-Identifier: Apache-2.0
// Writes the recording as a compact file: header, then the used part of every section. The file
// gets a temporary name first and takes its place by rename, so that a reader never sees half.
#include "runtime/sink/compact.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "format/compact.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/veil.h"

static bool write_at(long file, const void *bytes, uint64_t count, uint64_t at) {
    const uint8_t *from = bytes;
    while (count) {
        long done = sys_call(SYS_pwrite64, file, (long)from, (long)count, (long)at, 0, 0);
        if (done == -EINTR) continue;
        if (done <= 0) return false;
        from += done;
        at += (uint64_t)done;
        count -= (uint64_t)done;
    }
    return true;
}

static bool compact_write(long file, const struct cairn_header *header,
                          const struct cairn_header *copy) {
    if (sys_call(SYS_ftruncate, file, (long)copy->mapped_bytes, 0, 0, 0, 0) < 0) return false;
    for (uint32_t i = 0; i < copy->section_count; i++) {
        const uint8_t *from = (const uint8_t *)header + header->sections[i].offset;
        uint64_t used = veil_readable_bytes(from, copy->sections[i].used_bytes);
        if (!write_at(file, from, used, copy->sections[i].offset)) return false;
    }
    return write_at(file, copy, sizeof *copy, 0);
}

static bool compact_create(const struct cairn_header *header, const struct cairn_header *copy,
                           const char *temporary, const char *path) {
    long file = sys_call(SYS_openat, AT_FDCWD, (long)temporary,
                         O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600, 0, 0);
    if (file < 0) return false;
    bool is_done = compact_write(file, header, copy);
    sys_call(SYS_close, file, 0, 0, 0, 0, 0);
    if (is_done &&
        sys_call(SYS_renameat, AT_FDCWD, (long)temporary, AT_FDCWD, (long)path, 0, 0) == 0)
        return true;
    sys_call(SYS_unlinkat, AT_FDCWD, (long)temporary, 0, 0, 0, 0);
    return false;
}

COLD bool compact_save(const struct cairn_header *header, const char *path) {
    static const char suffix[] = ".part";
    char temporary[CAIRN_TEXT_PATH + sizeof suffix];
    size_t length = strnlen(path, CAIRN_TEXT_PATH - 1);
    struct cairn_header *copy = sys_map(sizeof *copy);
    if (!copy) return false;
    memcpy(temporary, path, length);
    memcpy(temporary + length, suffix, sizeof suffix);
    memcpy(copy, header, sizeof *copy);
    uint64_t bytes = cairn_compact_layout(copy);
    bool is_done =
        length && bytes <= sys_limit(RLIMIT_FSIZE) && compact_create(header, copy, temporary, path);
    sys_unmap(copy, sizeof *copy);
    return is_done;
}
