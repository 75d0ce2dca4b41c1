// SPDX-License-Identifier: Apache-2.0
#include "tool/glibc/resync.h"

#include <string.h>

#include "tool/glibc/chunks.h"

enum {
    WORD = 8,
    CHUNK_LEAST = 32,
    STEP = CHUNK_HEADER_BYTES,
    OF_THREAD = 4,     // a chunk's flag: its arena is no main one
    LINKS_BEHIND = 4,  // that are looked at to believe a chain
    PLACES_MAX = RESYNC_BYTES_MAX / STEP,
    EXITS_MAX = 250,    // chains that leave a piece
    FENCE_ROOM = 4096,  // at the end of a heap that is not its arena's newest, where chunks of 16
                        // bytes are
};

// The arena's end, which says of itself that it is a main one's, or the chunks at a heap's end.
static bool is_end(const struct resync *resync, uint64_t address, uint64_t word) {
    const uint64_t size = word & ~(uint64_t)CHUNK_FLAGS, whole = resync->range_end - address;
    return !(word & CHUNK_HAS_MAPPING) && (size == whole || (size == STEP && whole <= FENCE_ROOM));
}

// Of a chunk that begins at `address` and whose second word is `word`; 0: there is none.
static uint64_t size_of(const struct resync *resync, uint64_t address, uint64_t word) {
    const uint64_t size = word & ~(uint64_t)CHUNK_FLAGS;
    bool is_of_thread = word & OF_THREAD;  // free chunks do not say so
    bool is_chunk = size >= CHUNK_LEAST && size % STEP == 0 && !(word & CHUNK_HAS_MAPPING) &&
                    !(is_of_thread && resync->is_main) && size <= resync->range_end - address;
    if (is_end(resync, address, word)) return resync->range_end - address;
    return is_chunk ? size : 0;
}

bool resync_read(const struct resync *resync, uint64_t address, struct resync_chunk *chunk) {
    uint64_t word, behind[2];
    if (address < resync->range_start || resync->range_end - address < CHUNK_LEAST ||
        address >= resync->range_end || !memory_read_word(resync->memory, address + WORD, &word))
        return false;
    bool is_last = is_end(resync, address, word);
    *chunk = (struct resync_chunk){address, size_of(resync, address, word), !is_last, is_last};
    if (!chunk->size) return false;
    if (is_last || !memory_read(resync->memory, address + chunk->size, behind, sizeof behind))
        return true;
    chunk->is_used = behind[1] & CHUNK_USED_BEFORE;
    return chunk->is_used || behind[0] == chunk->size;
}

// --- chains

// Chains of one piece: what of its places lead to which place behind it.
struct chains {
    const struct resync *resync;
    uint64_t words[2 * PLACES_MAX];  // the two words of a chunk that may begin at each place
    uint8_t exits[PLACES_MAX + 1];   // number of the exit that a place leads to + 1; 0: to none
    struct {
        uint64_t address, members;
    } list[EXITS_MAX];
    unsigned count;
};

static uint8_t exit_at(struct chains *chains, uint64_t address) {
    unsigned i = 0;
    while (i < chains->count && chains->list[i].address != address) i++;
    if (i == EXITS_MAX) return 0;
    if (i == chains->count) {
        chains->list[i].address = address;
        chains->list[i].members = 0;
        chains->count++;
    }
    return (uint8_t)(i + 1);
}

// The exit that a place leads to; 0: to none.
static uint8_t exit_of(struct chains *chains, uint64_t address) {
    const struct resync *resync = chains->resync;
    const uint64_t *words = &chains->words[(address - resync->start) / WORD];
    uint64_t size = size_of(resync, address, words[1]), next = address + size;
    if (!size) return 0;
    if (next >= resync->end) return exit_at(chains, next);
    // a free chunk leaves its size in front of the next one
    const uint64_t *behind = &chains->words[(next - resync->start) / WORD];
    bool is_right = behind[1] & CHUNK_USED_BEFORE || behind[0] == size;
    return is_right ? chains->exits[(next - resync->start) / STEP] : 0;
}

// From the last place to the first, so that where a chunk leads is known before it.
static void find_exits(struct chains *chains) {
    const struct resync *resync = chains->resync;
    for (uint64_t at = resync->end; at > resync->start;) {
        at -= STEP;
        uint8_t exit = exit_of(chains, at);
        chains->exits[(at - resync->start) / STEP] = exit;
        if (exit) chains->list[exit - 1].members++;
    }
}

static bool goes_on(const struct resync *resync, uint64_t address) {
    struct resync_chunk chunk;
    for (unsigned i = 0; i < LINKS_BEHIND; i++) {
        if (address == resync->range_end) return true;
        if (!resync_read(resync, address, &chunk)) return false;
        if (chunk.is_last) return true;
        address += chunk.size;
    }
    return true;
}

// The exit that most places lead to, + 1, of those whose chains go on, or of all; 0: there is none.
static unsigned best_exit(struct chains *chains, bool are_sure) {
    unsigned best = 0;
    for (unsigned i = 0; i < chains->count; i++) {
        const uint64_t address = chains->list[i].address;
        bool has_more = !best || chains->list[i].members > chains->list[best - 1].members;
        if (has_more &&
            (!are_sure || address == chains->resync->behind || goes_on(chains->resync, address)))
            best = i + 1;
    }
    return best;
}

static bool read_words(struct chains *chains) {
    const struct resync *resync = chains->resync;
    static const uint64_t at_once = 4096;
    bool has_any = false;
    for (uint64_t at = resync->start, part; at < resync->end; at += part) {
        uint64_t *words = &chains->words[(at - resync->start) / WORD];
        part = at_once - at % at_once;
        if (part > resync->end - at) part = resync->end - at;
        bool is_there = memory_read(resync->memory, at, words, part);
        if (!is_there) memset(words, 0, part);
        has_any |= is_there;
    }
    return has_any;
}

bool resync_find(const struct resync *resync, struct resync_found *found) {
    struct chains chains = {.resync = resync};
    if (resync->end <= resync->start || resync->end - resync->start > RESYNC_BYTES_MAX ||
        resync->start % STEP || resync->end % STEP || !read_words(&chains))
        return false;
    find_exits(&chains);
    unsigned best = best_exit(&chains, true);
    *found = (struct resync_found){.is_sure = best};
    if (!best && resync->is_copy) best = best_exit(&chains, false);
    for (uint64_t at = resync->start; best && at < resync->end; at += STEP)
        if (chains.exits[(at - resync->start) / STEP] == best) {
            found->first = at;
            found->behind = chains.list[best - 1].address;
            return true;
        }
    return false;
}
