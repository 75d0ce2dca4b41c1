// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/control.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format/sample.h"

static bool check(const struct control *control, struct error *error) {
    const struct cairn_header *header = control->header;
    if (memcmp(header->magic, CAIRN_MAGIC, CAIRN_MAGIC_BYTES) != 0)
        return error_set(error, "is not a cairn recording");
    if (header->version != CAIRN_VERSION)
        return error_set(error, "is recorded by another version of cairn (format %u, not %u)",
                         header->version, CAIRN_VERSION);
    if (header->state == CAIRN_STATE_STOPPED)
        return error_set(error, "is not recorded any more: cairn switched itself off in it");
    return header->state == CAIRN_STATE_RUNNING || error_set(error, "has ended");
}

bool control_open(const char *path, struct control *control, struct error *error) {
    struct stat status;
    *control = (struct control){0};
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (file < 0 && (errno == EACCES || errno == EPERM))
        return error_set(error, "belongs to somebody else: only its user and root may");
    if (file < 0) return error_set(error, "cannot be reached: %s", strerror(errno));
    bool is_whole = fstat(file, &status) == 0 && status.st_size >= (off_t)CAIRN_HEADER_BYTES;
    void *mapping = MAP_FAILED;
    control->bytes = is_whole ? (uint64_t)status.st_size : 0;
    if (is_whole)
        mapping =
            mmap(NULL, control->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    if (!is_whole) return error_set(error, "is not a cairn recording");
    if (mapping == MAP_FAILED) return error_set(error, "cannot be mapped: %s", strerror(errno));
    control->header = mapping;
    if (check(control, error)) return true;
    control_close(control);
    return false;
}

void control_close(struct control *control) {
    if (control->header) munmap(control->header, control->bytes);
    *control = (struct control){0};
}

bool control_set_off(struct cairn_header *header, bool is_off) {
    if (is_off) __atomic_store_n(&header->control.was_off, 1, __ATOMIC_RELAXED);
    return __atomic_exchange_n(&header->control.is_off, is_off, __ATOMIC_RELEASE) != 0;
}

// The only entry of a section; NULL: the recording has none.
static void *find_entry(const struct control *control, uint32_t kind, size_t entry_bytes) {
    const struct cairn_header *header = control->header;
    uint32_t count = header->section_count;
    if (count > CAIRN_SECTION_MAX) count = CAIRN_SECTION_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct cairn_section *section = &header->sections[i];
        uint64_t offset = section->offset;
        bool has_room = offset % sizeof(uint64_t) == 0 && offset < control->bytes &&
                        control->bytes - offset >= entry_bytes;
        if (section->kind == kind && section->used_bytes && has_room)
            return (uint8_t *)control->header + offset;
    }
    return NULL;
}

bool control_set_rate(const struct control *control, uint64_t rate_bytes, struct error *error) {
    struct cairn_sampling *sampling = find_entry(control, CAIRN_SECTION_SAMPLING, sizeof *sampling);
    if (!sampling || !__atomic_load_n(&sampling->is_on, __ATOMIC_RELAXED))
        return error_set(error, "it records every block, not samples (cairn run --sample)");
    __atomic_store_n(&sampling->wanted_bytes, rate_bytes, __ATOMIC_RELAXED);
    return true;
}

bool control_check_bands(const struct control *control, unsigned wait_ms, struct cairn_guard *guard,
                         struct error *error) {
    enum { STEP_MS = 5, NS_PER_MS = 1000000 };
    const struct timespec step = {0, STEP_MS * NS_PER_MS};
    struct cairn_guard *shared = find_entry(control, CAIRN_SECTION_GUARD, sizeof *shared);
    if (!shared) return error_set(error, "its blocks have no guard bands (cairn run --guard)");
    uint32_t wanted = __atomic_add_fetch(&shared->checks_wanted, 1, __ATOMIC_ACQ_REL);
    for (unsigned waited_ms = 0; waited_ms < wait_ms; waited_ms += STEP_MS) {
        if ((int32_t)(__atomic_load_n(&shared->checks_done, __ATOMIC_ACQUIRE) - wanted) >= 0) {
            *guard = *shared;
            return true;
        }
        nanosleep(&step, NULL);
    }
    return error_set(error,
                     "it has not allocated or freed anything since; it looks at its blocks when "
                     "it does");
}
