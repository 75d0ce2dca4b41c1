// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/recorded.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/live_map.h"
#include "format/sample.h"
#include "tool/base/unnamed_file.h"

enum { COPY_BYTES = 1 << 16 };

// A recording begins on a page and says where it is.
static bool read_header_at(const struct core_image *core, uint64_t address,
                           struct cairn_header *header) {
    if (!core_read(core, address, header, sizeof *header)) return false;
    return !memcmp(header->magic, CAIRN_MAGIC, sizeof header->magic) &&
           header->self_address == address && header->version == CAIRN_VERSION;
}

// At every page: a recording is a mapping of its own, but may be one segment with its neighbours.
static bool search_segment(const struct core_image *core, const struct memory_segment *segment,
                           struct cairn_header *header) {
    char magic[CAIRN_MAGIC_BYTES];
    uint64_t places = 0;
    for (uint64_t at = 0; at + sizeof magic <= segment->bytes; at += core_page_bytes(core)) {
        if (!core_read(core, segment->start + at, magic, sizeof magic)) return false;
        core_place_done(core, 0, &places);
        if (memcmp(magic, CAIRN_MAGIC, sizeof magic) != 0) continue;
        if (read_header_at(core, segment->start + at, header)) return true;
    }
    return false;
}

bool core_find_recording(const struct core_image *core, struct cairn_header *header) {
    bool is_found = false;
    for (size_t i = 0; i < core->segments.count; i++) {
        struct cairn_header candidate;
        if (!search_segment(core, &core->segments.items[i], &candidate)) continue;
        bool is_own = candidate.pid == core->pid;
        if (!is_found || is_own) *header = candidate;
        is_found = true;
        if (is_own) break;
    }
    return is_found;
}

static bool is_empty(const char *bytes, size_t size) {
    return !*bytes && !memcmp(bytes, bytes + 1, size - 1);
}

// The part of a segment that belongs to the recording.
static bool copy_part(const struct core_image *core, const struct memory_segment *segment,
                      const struct cairn_header *header, int file) {
    uint64_t from = header->self_address, to = from + header->mapped_bytes;
    if (from < segment->start) from = segment->start;
    if (to > segment->start + segment->bytes) to = segment->start + segment->bytes;
    for (uint64_t at = from; at < to;) {
        char bytes[COPY_BYTES];
        size_t size = to - at < sizeof bytes ? (size_t)(to - at) : sizeof bytes;
        if (!core_read(core, at, bytes, size)) return true;  // cut off: what is there is there
        off_t offset = (off_t)(at - header->self_address);
        if (!is_empty(bytes, size) && pwrite(file, bytes, size, offset) != (ssize_t)size)
            return false;
        at += size;
    }
    return true;
}

bool core_copy_recording(const struct core_image *core, const struct cairn_header *header,
                         char path[PATH_MAX], struct error *error) {
    const uint64_t most = 1ull << 36;
    if (header->mapped_bytes > most || header->mapped_bytes < sizeof *header)
        return error_set(error, "the recording in it is damaged");
    int file = unnamed_file_make("cairn core");
    bool is_ok = file >= 0 && !ftruncate(file, (off_t)header->mapped_bytes);
    for (size_t i = 0; i < core->segments.count && is_ok; i++) {
        const struct memory_segment *segment = &core->segments.items[i];
        bool is_outside = segment->end <= header->self_address ||
                          segment->start >= header->self_address + header->mapped_bytes;
        if (!is_outside) is_ok = copy_part(core, segment, header, file);
    }
    if (!is_ok) {
        error_set(error, "no memory for the recording in it: %s", strerror(errno));
        if (file >= 0) close(file);
        return false;
    }
    snprintf(path, PATH_MAX, "/proc/self/fd/%d", file);  // open as long as this program runs
    return true;
}

// --- samples

enum { PLACES_AT_ONCE = 512 };
static const uint64_t places_most = 1 << 24;

// One over the chance of a block of that size (docs/explain/sampling.md).
static double weight_of(const struct cairn_live_sample *entry) {
    if (entry->size_bytes >= entry->rate_bytes) return 1;
    uint64_t size = entry->size_bytes ? entry->size_bytes : 1;
    return -1 / expm1(-(double)size / (double)entry->rate_bytes);
}

static bool add_sample(struct core_samples *samples, uint64_t key,
                       const struct cairn_live_sample *entry, size_t cell_count) {
    const uint64_t most = 1ull << LIVE_ADDRESS_BITS_AARCH64;
    bool is_right = key & 1 && ~key < most && entry->cell && entry->cell < cell_count &&
                    entry->size_bytes < most;
    if (!is_right) {
        samples->rejected_count++;
        return true;
    }
    struct core_sample *sample = array_push(&samples->items);
    if (sample)
        *sample = (struct core_sample){~key, entry->size_bytes, weight_of(entry), entry->cell};
    return sample != NULL;
}

// `count` places of the table from number `first` on.
static bool read_places(const struct core_image *core, const struct cairn_live_samples *table,
                        uint64_t first, size_t count, size_t cell_count,
                        struct core_samples *samples, struct error *error) {
    uint64_t keys[PLACES_AT_ONCE];
    struct cairn_live_sample entry;
    if (!core_read(core, table->keys + first * sizeof *keys, keys, count * sizeof *keys))
        return error_set(error, "the table of its samples is not in it");
    for (size_t i = 0; i < count; i++) {
        if (!keys[i]) continue;
        if (!core_read(core, table->entries + (first + i) * sizeof entry, &entry, sizeof entry))
            return error_set(error, "the table of its samples is not in it");
        if (!add_sample(samples, keys[i], &entry, cell_count))
            return error_set(error, "out of memory");
    }
    return true;
}

static int compare_addresses(const void *a, const void *b) {
    const struct core_sample *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

bool core_read_samples(const struct core_image *core, const struct cairn_header *header,
                       size_t cell_count, struct core_samples *samples, struct error *error) {
    struct cairn_live_samples table;
    bool is_ok = true;
    *samples = (struct core_samples){0};
    if (!header->live_samples || !core_read(core, header->live_samples, &table, sizeof table) ||
        table.count > places_most)
        return true;
    for (uint64_t at = 0; at < table.count && is_ok; at += PLACES_AT_ONCE) {
        uint64_t left = table.count - at;
        size_t count = left < PLACES_AT_ONCE ? (size_t)left : PLACES_AT_ONCE;
        is_ok = read_places(core, &table, at, count, cell_count, samples, error);
    }
    if (samples->items.count)
        qsort(samples->items.items, samples->items.count, sizeof *samples->items.items,
              compare_addresses);
    if (!is_ok) core_free_samples(samples);
    return is_ok;
}

void core_free_samples(struct core_samples *samples) {
    array_free(&samples->items);
}
