// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/huge_pages.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"
#include "tool/glibc/arenas.h"
#include "tool/proc/maps.h"
#include "tool/proc/remote.h"

// No more is read of a process: about half a second.
static const uint64_t read_most_bytes = UINT64_C(1) << 30;

// Mappings of cairn's own are smaller than this, as are arenas of glibc's.
static const uint64_t own_most_bytes = UINT64_C(64) << 20;

struct finding {
    struct remote remote;
    struct huge_pages *pages;
    bool is_recorded;
    uint8_t *copy;  // of a unit
};

static uint64_t zero_bytes_of(struct finding *finding, uint64_t start) {
    static const uint8_t zeros[1 << 12];
    struct huge_pages *pages = finding->pages;
    uint64_t bytes = 0;
    if (pages->bytes_left < HUGE_UNIT_BYTES ||
        !remote_read(&finding->remote, start, finding->copy, HUGE_UNIT_BYTES))
        return HUGE_UNIT_BYTES;
    pages->bytes_left -= HUGE_UNIT_BYTES;
    for (uint64_t at = 0; at < HUGE_UNIT_BYTES; at += sizeof zeros)
        if (!memcmp(finding->copy + at, zeros, sizeof zeros)) bytes += sizeof zeros;
    return bytes;
}

// Returns true of what cairn maps itself without reserving swap, which glibc does for arenas.
static bool is_own(const struct finding *finding, const struct mapping *mapping) {
    struct arena_heap heap;
    uint64_t at = mapping->start / ARENA_HEAP_BYTES * ARENA_HEAP_BYTES;
    if (!finding->is_recorded || !mapping->is_unreserved) return false;
    if (mapping->is_undumped) return true;
    bool is_arena = remote_read(&finding->remote, at, &heap, sizeof heap) &&
                    arena_heap_is_valid(&heap, at, at + ARENA_HEAP_BYTES);
    return !is_arena && mapping->end - mapping->start < own_most_bytes;
}

static int by_zero_bytes(const void *a, const void *b) {
    const struct huge_unit *left = a, *right = b;
    return (left->zero_bytes < right->zero_bytes) - (left->zero_bytes > right->zero_bytes);
}

static int by_address(const void *a, const void *b) {
    const struct huge_unit *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

// Adds the units of a mapping that may be huge pages: as many as it has.
static bool add_units(struct finding *finding, const struct mapping *mapping) {
    struct huge_pages *pages = finding->pages;
    const size_t first = pages->units.count;
    const size_t most = (size_t)(mapping->huge_bytes / HUGE_UNIT_BYTES);
    uint64_t at = (mapping->start + HUGE_UNIT_BYTES - 1) / HUGE_UNIT_BYTES * HUGE_UNIT_BYTES;
    for (; at + HUGE_UNIT_BYTES <= mapping->end; at += HUGE_UNIT_BYTES) {
        if (pagemap_resident_bytes(&finding->remote.pagemap, at, at + HUGE_UNIT_BYTES) <
            HUGE_UNIT_BYTES)
            continue;
        struct huge_unit *unit = array_push(&pages->units);
        if (!unit) return false;
        *unit = (struct huge_unit){at, zero_bytes_of(finding, at)};
    }
    const size_t found = pages->units.count - first;
    if (found < most) pages->unseen_bytes += (most - found) * HUGE_UNIT_BYTES;
    if (found <= most) return true;
    qsort(pages->units.items + first, found, sizeof *pages->units.items, by_zero_bytes);
    pages->units.count = first + most;
    qsort(pages->units.items + first, most, sizeof *pages->units.items, by_address);
    return true;
}

static bool find_all(struct finding *finding, struct maps *smaps) {
    struct mapping mapping;
    bool is_ok = true;
    while (is_ok && maps_next(smaps, &mapping)) {
        bool is_private = mapping.permissions[3] == 'p' && !mapping_is_file(&mapping);
        if (is_private && mapping.huge_bytes >= HUGE_UNIT_BYTES && !is_own(finding, &mapping))
            is_ok = add_units(finding, &mapping);
    }
    return is_ok;
}

bool huge_pages_find(pid_t pid, bool is_recorded, struct huge_pages *pages) {
    struct finding finding = {.remote = remote_of(pid),
                              .pages = pages,
                              .is_recorded = is_recorded,
                              .copy = malloc(HUGE_UNIT_BYTES)};
    struct maps smaps;
    struct error unused;
    pages->bytes_left = read_most_bytes;
    finding.remote.pagemap = pagemap_open(pid);
    bool is_open = finding.copy && finding.remote.pagemap.file >= 0 &&
                   maps_open(&smaps, pid, "smaps", &unused);
    bool is_ok = is_open && find_all(&finding, &smaps);
    if (is_open) maps_close(&smaps);
    pagemap_close(&finding.remote.pagemap);
    free(finding.copy);
    return is_ok;
}

void huge_pages_free(struct huge_pages *pages) {
    array_free(&pages->units);
}

uint64_t huge_pages_bytes(const struct huge_pages *pages) {
    return pages->units.count * HUGE_UNIT_BYTES + pages->unseen_bytes;
}

uint64_t huge_pages_zero_bytes(const struct huge_pages *pages) {
    uint64_t bytes = pages->unseen_bytes;
    for (size_t i = 0; i < pages->units.count; i++) bytes += pages->units.items[i].zero_bytes;
    return bytes;
}

const struct huge_unit *huge_pages_unit(const struct huge_pages *pages, uint64_t address) {
    size_t low;
    search_first(low, pages->units.count, pages->units.items[low].start > address);
    bool is_found = low && address - pages->units.items[low - 1].start < HUGE_UNIT_BYTES;
    return is_found ? &pages->units.items[low - 1] : NULL;
}
