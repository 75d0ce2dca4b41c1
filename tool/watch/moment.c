// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/moment.h"

#include <stdio.h>
#include <time.h>

#include "format/moments.h"

enum { ATTEMPTS = 200 };
static const struct timespec pause_ns = {.tv_nsec = 1000000};
static const uint64_t second_ns = 1000000000;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

// The process wrote the section table; it is not believed beyond the mapping.
static bool find_table(struct cairn_header *header, uint64_t mapped_bytes,
                       struct cairn_moment_table *table) {
    const uint64_t needed = CAIRN_MOMENT_LIMIT * sizeof(struct cairn_moment);
    uint32_t count = header->section_count;
    for (uint32_t i = 0; i < count && i < CAIRN_SECTION_MAX; i++) {
        struct cairn_section *section = &header->sections[i];
        uint64_t offset = section->offset;
        if (section->kind != CAIRN_SECTION_MOMENTS) continue;
        if (section->capacity_bytes < needed || section->entry_bytes != sizeof *table->moments ||
            mapped_bytes < needed || offset < CAIRN_HEADER_BYTES ||
            offset > mapped_bytes - needed || offset % _Alignof(struct cairn_moment))
            return false;
        *table = (struct cairn_moment_table){
            .header = header,
            .moments = (struct cairn_moment *)((uint8_t *)header + offset),
            .used_bytes = &section->used_bytes};
        return true;
    }
    return false;
}

static struct cairn_moment describe(const struct cairn_header *header,
                                    enum cairn_moment_reason reason, const char *label) {
    const struct cairn_totals *totals = &header->totals;
    uint64_t now = now_ns();
    struct cairn_moment moment = {
        .reason = reason,
        .time_ns = now > header->start_clock_ns ? now - header->start_clock_ns : 0,
        .live_bytes = __atomic_load_n(&totals->live_bytes, __ATOMIC_RELAXED),
        .live_blocks = __atomic_load_n(&totals->live_blocks, __ATOMIC_RELAXED),
        .allocated_bytes = __atomic_load_n(&totals->allocated_bytes, __ATOMIC_RELAXED),
        .allocations = __atomic_load_n(&totals->allocations, __ATOMIC_RELAXED)};
    snprintf(moment.label, sizeof moment.label, "%s", label);
    return moment;
}

bool moment_ask(struct cairn_header *header, uint64_t mapped_bytes, enum cairn_moment_reason reason,
                const char *label, struct error *error) {
    struct cairn_moment_table table;
    if (header->is_compact || !find_table(header, mapped_bytes, &table))
        return error_set(error, "is not a running recording that can remember moments");
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const struct cairn_moment wanted = describe(header, reason, label);
        switch (cairn_moment_take(&table, &wanted, CAIRN_PACE_TOOL)) {
        case CAIRN_MOMENT_TAKEN:
            return true;
        case CAIRN_MOMENT_FULL:
            return error_set(error,
                             "has no room for another moment: it remembers %u that were "
                             "asked for",
                             CAIRN_MOMENT_LIMIT);
        case CAIRN_MOMENT_BUSY:
            nanosleep(&pause_ns, NULL);
        }
    }
    return error_set(error, "cannot take a moment: the process takes one itself, and is stopped");
}
