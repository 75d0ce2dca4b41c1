// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format/sample.h"
#include "format/snapshots.h"
#include "tool/base/clock.h"

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
    uint64_t now = clock_now_ns();
    return now > header->start_clock_ns ? now - header->start_clock_ns : 0;
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

// --- snapshots

enum { ATTEMPTS = 200 };
static const struct timespec pause_ns = {.tv_nsec = 1000000};

// The process wrote the section table; it is not believed beyond the mapping.
static bool find_table(struct cairn_header *header, uint64_t mapped_bytes,
                       struct cairn_snapshot_table *table) {
    const uint64_t needed = CAIRN_SNAPSHOT_LIMIT * sizeof(struct cairn_snapshot);
    uint32_t count = header->section_count;
    for (uint32_t i = 0; i < count && i < CAIRN_SECTION_MAX; i++) {
        struct cairn_section *section = &header->sections[i];
        uint64_t offset = section->offset;
        if (section->kind != CAIRN_SECTION_SNAPSHOTS) continue;
        if (section->capacity_bytes < needed || section->entry_bytes != sizeof *table->snapshots ||
            mapped_bytes < needed || offset < CAIRN_HEADER_BYTES ||
            offset > mapped_bytes - needed || offset % _Alignof(struct cairn_snapshot))
            return false;
        *table = (struct cairn_snapshot_table){
            .header = header,
            .snapshots = (struct cairn_snapshot *)((uint8_t *)header + offset),
            .used_bytes = &section->used_bytes};
        return true;
    }
    return false;
}

static struct cairn_snapshot describe(const struct cairn_header *header,
                                      enum cairn_snapshot_reason reason, const char *label) {
    const struct cairn_totals *totals = &header->totals;
    uint64_t now = clock_now_ns();
    struct cairn_snapshot snapshot = {
        .reason = reason,
        .time_ns = now > header->start_clock_ns ? now - header->start_clock_ns : 0,
        .live_bytes = __atomic_load_n(&totals->live_bytes, __ATOMIC_RELAXED),
        .live_blocks = __atomic_load_n(&totals->live_blocks, __ATOMIC_RELAXED),
        .allocated_bytes = __atomic_load_n(&totals->allocated_bytes, __ATOMIC_RELAXED),
        .allocations = __atomic_load_n(&totals->allocations, __ATOMIC_RELAXED)};
    snprintf(snapshot.label, sizeof snapshot.label, "%s", label);
    return snapshot;
}

bool control_take_snapshot(struct cairn_header *header, uint64_t mapped_bytes,
                           enum cairn_snapshot_reason reason, const char *label,
                           struct error *error) {
    struct cairn_snapshot_table table;
    if (header->is_compact || !find_table(header, mapped_bytes, &table))
        return error_set(error, "is not a running recording that can remember snapshots");
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const struct cairn_snapshot wanted = describe(header, reason, label);
        switch (cairn_snapshot_take(&table, &wanted, CAIRN_PACE_TOOL)) {
        case CAIRN_SNAPSHOT_TAKEN:
            return true;
        case CAIRN_SNAPSHOT_FULL:
            return error_set(error,
                             "has no room for another snapshot: it remembers %u that were "
                             "asked for",
                             CAIRN_SNAPSHOT_LIMIT);
        case CAIRN_SNAPSHOT_BUSY:
            nanosleep(&pause_ns, NULL);
        }
    }
    return error_set(error, "cannot take a snapshot: the process takes one itself, and is stopped");
}
