// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/own_map.h"

#include <elf.h>
#include <stdlib.h>

#include "format/live_map.h"
#include "tool/proc/remote.h"

// A look may not take for ever: these are 32 GiB of heap.
enum { LEAVES_MOST = 8192 };

struct looking {
    struct remote remote;
    unsigned shift;       // log2 of the heap's bytes that a slot stands for
    uint64_t slot_bytes;  // with its birth
    uint64_t birth_bytes;
    unsigned leaves_left;
    uint64_t bytes;
};

// Adds the leaves of a mid, the first of which is of the heap at `address`.
static void add_mid(struct looking *looking, const uint64_t *mid, uint64_t address) {
    const uint64_t slots = (UINT64_C(1) << LIVE_LEAF_SHIFT) >> looking->shift;
    for (int i = 0; i < LIVE_MID_COUNT && looking->leaves_left; i++) {
        uint64_t leaf = address + ((uint64_t)i << LIVE_LEAF_SHIFT);
        if (!mid[i]) continue;
        uint64_t start = mid[i] + (leaf >> looking->shift) * looking->slot_bytes;
        uint64_t end = start + slots * (looking->slot_bytes + looking->birth_bytes);
        looking->bytes += pagemap_resident_bytes(&looking->remote.pagemap, start, end);
        looking->leaves_left--;
    }
}

static void add_tops(struct looking *looking, const uint64_t *tops, size_t count, uint64_t *mid) {
    const size_t mid_bytes = LIVE_MID_COUNT * sizeof *mid;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = (uint64_t)(i % LIVE_TOP_COUNT) << LIVE_MID_SHIFT;
        if (tops[i] && remote_read(&looking->remote, tops[i], mid, mid_bytes))
            add_mid(looking, mid, address);
    }
}

uint64_t own_map_bytes(pid_t pid, const struct cairn_header *header) {
    const bool is_wide = header->slot_bytes == sizeof(uint64_t);
    const size_t count = is_wide ? 2 * LIVE_TOP_COUNT : LIVE_TOP_COUNT;
    struct looking looking = {.remote = remote_of(pid),
                              .shift = is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT,
                              .slot_bytes = is_wide ? sizeof(uint64_t) : sizeof(uint32_t),
                              .birth_bytes = header->has_births ? sizeof(uint64_t) : 0,
                              .leaves_left = LEAVES_MOST};
    uint64_t *tops = malloc(count * sizeof *tops), *mid = malloc(LIVE_MID_COUNT * sizeof *mid);
    looking.remote.pagemap = pagemap_open(pid);
    bool is_read = header->live_map && tops && mid && looking.remote.pagemap.file >= 0 &&
                   remote_read(&looking.remote, header->live_map, tops, count * sizeof *tops);
    if (is_read) add_tops(&looking, tops, count, mid);
    remote_close(&looking.remote);
    free(tops);
    free(mid);
    return looking.bytes;
}
