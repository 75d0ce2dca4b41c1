// SPDX-License-Identifier: Apache-2.0
// The layout is that of glibc since 2.17, in 64-bit words around the bins:
//
//     … fastbins | top | last_remainder | bins 1 to 127, two words each | binmap (2 words) |
//     next | next_free | attached_threads (since 2.23) | system_mem | max_system_mem
//
// A bin is the head of a circle of free chunks: forward and backward, as if they were words 2 and 3
// of a chunk. A chunk is: size of the one before, its own size with three bits of flags, forward,
// backward.
#include "tool/watch/arenas.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tool/watch/pages.h"

enum {
    WORD = 8,
    BINS = 127,
    BIN_WORDS = 2 * BINS,
    NEXT = BIN_WORDS + 2,  // words behind the first bin
    COUNT_OR_SYSTEM = BIN_WORDS + 4,
    STATE_WORDS = BIN_WORDS + 8,  // from the first bin on
    TOP = -2,                     // from the first bin
    EMPTY_BINS_LEAST = 4,         // those of the largest sizes hardly ever hold anything
    THREADS_MAX = 1 << 16,
    ARENAS_MAX = 1024,
    CHUNKS_MAX = 4096,  // in all: each costs two system calls
};
static const uint64_t data_max_bytes = 1 << 20, size_flags = 7;
// From an arena's start to its first bin: since 2.26, and before.
static const uint64_t bins_offsets[] = {112, 104};

struct looking {
    pid_t pid;
    int pages;
    uint64_t bins_offset;
    unsigned chunks_left;
    uint64_t arena_bytes;  // of the arena at hand: no chunk is larger
    struct cairn_picture sums;
};

static bool read_words(pid_t pid, uint64_t address, uint64_t *words, size_t count) {
    struct iovec mine = {words, count * WORD};
    struct iovec theirs = {(void *)(uintptr_t)address, count * WORD};  // NOLINT: of the process
    return process_vm_readv(pid, &mine, 1, &theirs, 1, 0) == (ssize_t)(count * WORD);
}

// The address that an empty bin's two words hold.
static uint64_t bin_head(uint64_t bins_address, unsigned bin) {
    return bins_address + (uint64_t)bin * 2 * WORD - 2 * WORD;
}

static bool are_bins(const uint64_t *words, uint64_t address) {
    unsigned empty = 0;
    for (unsigned bin = 0; bin < BINS; bin++) {
        uint64_t head = bin_head(address, bin);
        bool is_empty = words[2 * bin] == head && words[2 * bin + 1] == head;
        if (is_empty) empty++;
        if (!is_empty && (!words[2 * bin] || words[2 * bin] % WORD)) return false;
    }
    return empty >= EMPTY_BINS_LEAST;
}

// First and last chunk of every bin point back to it. Looked at before chunks are followed: words a
// bin or two off look like bins too, and their circles have no end.
static bool are_circles(pid_t pid, const uint64_t *words, uint64_t address) {
    for (unsigned bin = 0; bin < BINS; bin++) {
        uint64_t head = bin_head(address, bin), forward, back;
        if (words[2 * bin] == head) continue;
        if (!read_words(pid, words[2 * bin] + 3 * WORD, &back, 1) || back != head ||
            !read_words(pid, words[2 * bin + 1] + 2 * WORD, &forward, 1) || forward != head)
            return false;
    }
    return true;
}

// Adds up the chunks of a bin. False: something makes no sense, such as a size that is none since
// the program has taken the chunk meanwhile.
static bool add_bin(struct looking *looking, uint64_t first, uint64_t head) {
    uint64_t chunk = first, words[3];
    while (chunk != head) {
        if (!looking->chunks_left) {
            looking->sums.is_cut = 1;
            return true;
        }
        looking->chunks_left--;
        if (chunk % (2 * WORD) || !read_words(looking->pid, chunk + WORD, words, 2)) return false;
        uint64_t size = words[0] & ~size_flags;
        if (size > looking->arena_bytes) return false;
        looking->sums.free_chunk_bytes += size;
        if (looking->sums.free_chunk_bytes > looking->sums.arena_bytes) return false;
        looking->sums.free_resident_bytes +=
            pages_present_bytes(looking->pages, chunk, chunk + size);
        chunk = words[1];
    }
    return true;
}

static void add_top(struct looking *looking, uint64_t top, uint64_t size, uint64_t system_bytes) {
    if (size > system_bytes) return;
    looking->sums.free_top_bytes += size;
    looking->sums.free_resident_bytes += pages_present_bytes(looking->pages, top, top + size);
}

static bool add_arena(struct looking *looking, uint64_t arena, uint64_t *next) {
    uint64_t words[STATE_WORDS + 2], size;
    uint64_t bins_address = arena + looking->bins_offset;
    if (!read_words(looking->pid, bins_address - 2 * WORD, words, STATE_WORDS + 2)) return false;
    const uint64_t *bins = words + 2;
    if (!are_bins(bins, bins_address) || !are_circles(looking->pid, bins, bins_address))
        return false;
    *next = bins[NEXT];
    bool has_threads = bins[COUNT_OR_SYSTEM] < THREADS_MAX;
    uint64_t system_bytes = bins[COUNT_OR_SYSTEM + has_threads], top = bins[TOP];
    looking->sums.arena_count++;
    looking->sums.arena_bytes += system_bytes;
    looking->arena_bytes = system_bytes;
    if (system_bytes && read_words(looking->pid, top + WORD, &size, 1))
        add_top(looking, top, size & ~size_flags, system_bytes);
    for (unsigned bin = 0; bin < BINS; bin++)
        if (!add_bin(looking, bins[2 * bin], bin_head(bins_address, bin))) return false;
    return true;
}

static bool walk(struct looking *looking, uint64_t bins_address) {
    uint64_t arena = bins_address - looking->bins_offset, first = arena;
    looking->chunks_left = CHUNKS_MAX;
    looking->sums = (struct cairn_picture){0};
    for (unsigned i = 0; i < ARENAS_MAX; i++) {
        if (!add_arena(looking, arena, &arena)) return false;
        if (arena == first) return true;
    }
    return false;
}

// Words that look like bins may be a bin or two off: the circle of arenas has to close.
static bool walk_from(struct looking *looking, uint64_t bins_address) {
    for (size_t i = 0; i < sizeof bins_offsets / sizeof *bins_offsets; i++) {
        looking->bins_offset = bins_offsets[i];
        if (walk(looking, bins_address)) return true;
    }
    return false;
}

static bool find_and_walk(struct looking *looking, const struct mapped_range *data) {
    uint64_t size = data->end - data->start;
    if (!data->start || size > data_max_bytes) return false;
    uint64_t *words = malloc(size);
    size_t count = size / WORD;
    bool is_read = words && read_words(looking->pid, data->start, words, count), is_found = false;
    for (size_t i = 0; is_read && !is_found && i + STATE_WORDS <= count; i++) {
        uint64_t address = data->start + i * WORD;
        is_found = are_bins(words + i, address) && walk_from(looking, address);
    }
    free(words);
    return is_found;
}

bool arenas_look(pid_t pid, const struct mappings *mappings, struct cairn_picture *picture) {
    struct looking looking = {.pid = pid, .pages = pages_open(pid)};
    const struct cairn_picture *sums = &looking.sums;
    bool is_found = find_and_walk(&looking, &mappings->libc_data) && sums->arena_bytes;
    if (looking.pages >= 0) close(looking.pages);
    if (!is_found) return false;
    picture->free_resident_bytes = sums->free_resident_bytes;
    picture->free_chunk_bytes = sums->free_chunk_bytes;
    picture->free_top_bytes = sums->free_top_bytes;
    picture->arena_bytes = sums->arena_bytes;
    picture->arena_count = sums->arena_count;
    picture->is_cut = sums->is_cut;
    return true;
}
