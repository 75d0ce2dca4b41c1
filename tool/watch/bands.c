// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/bands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/bands.h"
#include "tool/base/array.h"
#include "tool/proc/remote.h"

enum { STEP_MS = 5, NS_PER_MS = 1000000 };
// The process looks at most every 50 ms. A look of its own takes a second for ten million blocks.
enum { BEGIN_MS = 100, FINISH_MS = 60000 };
enum { BATCH_BLOCKS = 256, BATCH_BYTES = 1 << 20 };
enum { LEAVES_MAX = 1 << 18 };  // 1 TiB of heap; the table may hold anything

// A block, and where its entry is.
struct guarded {
    struct bands_block block;
    uint64_t entry_address;
    struct bands_entry entry;
};

struct outside {
    struct remote remote;
    size_t band_bytes;
    uint8_t pattern[CAIRN_GUARD_MOST];
    unsigned leaves_left;
    uint64_t checked_blocks;
    struct guarded batch[BATCH_BLOCKS];
    size_t batch_count, batch_limit;
    uint8_t *bands;  // of the batch: before, behind, before, ...
    ARRAY(struct cairn_overrun) overruns;
};

static struct remote_span band_before(const struct outside *outside,
                                      const struct bands_block *block) {
    return (struct remote_span){block->address - outside->band_bytes, outside->band_bytes};
}

static struct remote_span band_behind(const struct outside *outside,
                                      const struct bands_block *block) {
    return (struct remote_span){block->address + block->size, outside->band_bytes};
}

static bool differs(const struct outside *outside, const struct guarded *guarded,
                    const uint8_t *bands, struct cairn_overrun *overrun) {
    *overrun = (struct cairn_overrun){0};
    return bands_differ(&guarded->block, bands, bands + outside->band_bytes, outside->pattern,
                        outside->band_bytes, overrun);
}

// A second time: the entry is the same and so are the bands, so that the block was not given back
// and its place used for something else in between.
static bool is_still_so(const struct outside *outside, const struct guarded *guarded,
                        const uint8_t *bands) {
    uint8_t again[2 * CAIRN_GUARD_MOST];
    struct bands_entry entry;
    const size_t bytes = 2 * outside->band_bytes;
    const struct remote_span spans[] = {band_before(outside, &guarded->block),
                                        band_behind(outside, &guarded->block)};
    return remote_gather(&outside->remote, spans, 2, again) == bytes &&
           !memcmp(again, bands, bytes) &&
           remote_read(&outside->remote, guarded->entry_address, &entry, sizeof entry) &&
           entry.word == guarded->entry.word;
}

static bool note(struct outside *outside, const struct guarded *guarded, const uint8_t *bands) {
    struct cairn_overrun overrun;
    outside->checked_blocks++;
    if (guarded->entry.word & BANDS_TOLD || !differs(outside, guarded, bands, &overrun))
        return true;
    if (outside->overruns.count == CAIRN_OVERRUN_LIMIT || !is_still_so(outside, guarded, bands))
        return true;
    struct cairn_overrun *noted = array_push(&outside->overruns);
    overrun.cell = guarded->entry.cell;
    if (noted) *noted = overrun;
    return noted != NULL;
}

// The bands of the blocks from `first` on: how many could be read before one that cannot be.
static size_t read_bands(const struct outside *outside, size_t first) {
    struct remote_span spans[2 * BATCH_BLOCKS];
    size_t count = outside->batch_count - first;
    for (size_t i = 0; i < count; i++) {
        spans[2 * i] = band_before(outside, &outside->batch[first + i].block);
        spans[2 * i + 1] = band_behind(outside, &outside->batch[first + i].block);
    }
    return remote_gather(&outside->remote, spans, 2 * count, outside->bands) /
           (2 * outside->band_bytes);
}

static bool finish_batch(struct outside *outside) {
    bool is_ok = true;
    for (size_t first = 0; first < outside->batch_count && is_ok;) {
        size_t count = read_bands(outside, first);
        for (size_t i = 0; i < count && is_ok; i++)
            is_ok = note(outside, &outside->batch[first + i],
                         outside->bands + 2 * i * outside->band_bytes);
        first += count + 1;  // the next one is gone
    }
    outside->batch_count = 0;
    return is_ok;
}

// The entries of 4 MiB of heap from `start` on.
static bool look_at_leaf(struct outside *outside, struct bands_entry *entries, uint64_t leaf,
                         uint64_t start) {
    const size_t bytes = BANDS_LEAF_ENTRIES * sizeof *entries;
    if (!remote_read(&outside->remote, leaf, entries, bytes)) return true;
    for (size_t i = 0; i < BANDS_LEAF_ENTRIES; i++) {
        uint64_t word = entries[i].word, granule = start + ((uint64_t)i << BANDS_GRANULE_SHIFT);
        if ((word & BANDS_STATE) != BANDS_OWNED) continue;
        outside->batch[outside->batch_count++] =
            (struct guarded){bands_block_at(bands_address(granule, word), word, 0),
                             leaf + i * sizeof *entries, entries[i]};
        if (outside->batch_count == outside->batch_limit && !finish_batch(outside)) return false;
    }
    return finish_batch(outside);
}

static bool look_at_mid(struct outside *outside, struct bands_entry *entries, uint64_t mid,
                        uint64_t start) {
    uint64_t leaves[BANDS_MIDS];
    if (!remote_read(&outside->remote, mid, leaves, sizeof leaves)) return true;
    for (uint64_t i = 0; i < BANDS_MIDS; i++) {
        if (!leaves[i] || !outside->leaves_left) continue;
        outside->leaves_left--;
        if (!look_at_leaf(outside, entries, leaves[i], start + (i << LIVE_LEAF_SHIFT)))
            return false;
    }
    return true;
}

static bool look(struct outside *outside, uint64_t table, struct error *error) {
    uint64_t mids[BANDS_TOPS];
    struct bands_entry *entries = malloc(BANDS_LEAF_ENTRIES * sizeof *entries);
    bool is_ok = entries && outside->bands;
    if (is_ok && !remote_read(&outside->remote, table, mids, sizeof mids)) {
        free(entries);
        return error_set(error,
                         "it has not allocated or freed anything since, and its memory may not be "
                         "read from outside: %s",
                         strerror(errno));
    }
    for (uint64_t i = 0; is_ok && i < BANDS_TOPS; i++)
        if (mids[i]) is_ok = look_at_mid(outside, entries, mids[i], i << LIVE_MID_SHIFT);
    free(entries);
    return is_ok || error_set(error, "no memory to look at its blocks");
}

// The table of damaged blocks. Its values are read once: they may change at any time.
struct table {
    struct cairn_overrun *entries;
    uint64_t capacity_bytes, *used_bytes;
};

static bool find_table(const struct control *control, struct table *table) {
    struct cairn_section *section = control_section(control, CAIRN_SECTION_OVERRUNS);
    uint64_t offset = section ? section->offset : 0, end = control->bytes;
    const uint64_t bytes = CAIRN_OVERRUN_LIMIT * sizeof *table->entries;
    if (!offset || offset % sizeof(uint64_t) || offset > end || end - offset < bytes) return false;
    *table = (struct table){(struct cairn_overrun *)((uint8_t *)control->header + offset), bytes,
                            &section->used_bytes};
    return true;
}

static bool is_told(const struct table *table, const struct cairn_overrun *overrun) {
    for (size_t i = 0; i < CAIRN_OVERRUN_LIMIT; i++) {
        const struct cairn_overrun *entry = &table->entries[i];
        if (__atomic_load_n(&entry->is_unmet, __ATOMIC_ACQUIRE) &&
            entry->address == overrun->address && entry->size == overrun->size)
            return true;
    }
    return false;
}

// As the process tells of one; it does not tell of this one again.
static void tell(const struct control *control, struct cairn_guard *guard,
                 const struct cairn_overrun *overrun) {
    struct table table;
    if (!find_table(control, &table) || is_told(&table, overrun)) return;
    uint64_t number = __atomic_fetch_add(&guard->overrun_blocks, 1, __ATOMIC_RELAXED);
    if (number >= CAIRN_OVERRUN_LIMIT) return;
    uint64_t at = __atomic_fetch_add(table.used_bytes, sizeof *overrun, __ATOMIC_RELAXED);
    if (at % sizeof *overrun || at > table.capacity_bytes - sizeof *overrun) return;
    struct cairn_overrun *entry = &table.entries[at / sizeof *overrun];
    *entry = *overrun;
    entry->found_ns = control_age_ns(control->header);
    __atomic_store_n(&entry->is_unmet, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->found_at, CAIRN_OVERRUN_ASKED, __ATOMIC_RELEASE);
}

static bool is_reached(const uint32_t *counter, uint32_t wanted) {
    return (int32_t)(__atomic_load_n(counter, __ATOMIC_ACQUIRE) - wanted) >= 0;
}

static bool wait_for(const uint32_t *counter, uint32_t wanted, unsigned most_ms) {
    const struct timespec step = {0, STEP_MS * NS_PER_MS};
    for (unsigned ms = 0; ms < most_ms && !is_reached(counter, wanted); ms += STEP_MS)
        nanosleep(&step, NULL);
    return is_reached(counter, wanted);
}

// What is found counts if the process did not begin to look itself meanwhile; else `is_done` is
// false, and so it is without a right to look.
static bool look_from_outside(const struct control *control, pid_t pid, struct cairn_guard *guard,
                              uint32_t wanted, bool *is_done, struct error *error) {
    uint32_t band_bytes = guard->band_bytes;
    *is_done = false;
    if (band_bytes < CAIRN_GUARD_LEAST || band_bytes > CAIRN_GUARD_MOST)
        return error_set(error, "its recording is damaged: bands of %u bytes", band_bytes);
    struct outside *outside = calloc(1, sizeof *outside);
    if (!outside) return error_set(error, "no memory to look at its blocks");
    outside->remote = remote_of(pid);
    outside->band_bytes = band_bytes;
    outside->leaves_left = LEAVES_MAX;
    outside->batch_limit = BATCH_BYTES / (2 * band_bytes);
    if (outside->batch_limit > BATCH_BLOCKS) outside->batch_limit = BATCH_BLOCKS;
    outside->bands = malloc(2 * outside->batch_limit * band_bytes);
    bands_paint(outside->pattern);
    bool is_ok = look(outside, guard->bands_table, error);
    *is_done = is_ok && !is_reached(&guard->checks_begun, wanted);
    for (size_t i = 0; *is_done && i < outside->overruns.count; i++)
        tell(control, guard, &outside->overruns.items[i]);
    if (*is_done) {
        guard->checked_blocks = outside->checked_blocks;
        guard->checked_ns = control_age_ns(control->header);
    }
    array_free(&outside->overruns);
    free(outside->bands);
    free(outside);
    return is_ok;
}

bool bands_check(const struct control *control, pid_t pid, struct bands_check *check,
                 struct error *error) {
    struct cairn_guard *guard = control_entry(control, CAIRN_SECTION_GUARD, sizeof *guard);
    bool is_done = false, is_ok = true;
    if (!guard) return error_set(error, "its blocks have no guard bands (cairn run --guard)");
    uint32_t wanted = __atomic_add_fetch(&guard->checks_wanted, 1, __ATOMIC_ACQ_REL);
    if (!wait_for(&guard->checks_begun, wanted, BEGIN_MS))
        is_ok = look_from_outside(control, pid, guard, wanted, &is_done, error);
    if (!is_done && !is_ok && !is_reached(&guard->checks_begun, wanted)) return false;
    if (!is_done && !wait_for(&guard->checks_done, wanted, FINISH_MS))
        return error_set(error, "it was stopped while it looks at its blocks");
    *check = (struct bands_check){guard->checked_blocks, guard->overrun_blocks};
    return true;
}
