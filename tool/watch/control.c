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

uint64_t control_age_ns(const struct cairn_header *header) {
    const uint64_t ns_per_s = 1000000000u;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t clock_ns = (uint64_t)now.tv_sec * ns_per_s + (uint64_t)now.tv_nsec;
    return clock_ns > header->start_clock_ns ? clock_ns - header->start_clock_ns : 0;
}

struct cairn_section *control_section(const struct control *control, uint32_t kind) {
    struct cairn_header *header = control->header;
    uint32_t count = header->section_count;
    if (count > CAIRN_SECTION_MAX) count = CAIRN_SECTION_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (header->sections[i].kind == kind) return &header->sections[i];
    return NULL;
}

void *control_entry(const struct control *control, uint32_t kind, size_t entry_bytes) {
    const struct cairn_section *section = control_section(control, kind);
    uint64_t offset = section && section->used_bytes ? section->offset : 0;
    bool has_room = offset && offset % sizeof(uint64_t) == 0 && offset < control->bytes &&
                    control->bytes - offset >= entry_bytes;
    return has_room ? (uint8_t *)control->header + offset : NULL;
}

bool control_set_rate(const struct control *control, uint64_t rate_bytes, struct error *error) {
    struct cairn_sampling *sampling =
        control_entry(control, CAIRN_SECTION_SAMPLING, sizeof *sampling);
    if (!sampling || !__atomic_load_n(&sampling->is_on, __ATOMIC_RELAXED))
        return error_set(error, "it records every block, not samples (cairn run --sample)");
    __atomic_store_n(&sampling->wanted_bytes, rate_bytes, __ATOMIC_RELAXED);
    return true;
}
