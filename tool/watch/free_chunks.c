// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/free_chunks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool/base/clock.h"
#include "tool/glibc/arenas.h"
#include "tool/glibc/chunks.h"
#include "tool/proc/remote.h"

enum {
    WORD = 8,
    PAGES = 256,     // kept, by their number
    RUN_MOST = 16,   // pages read at once
    NEAR_PAGES = 8,  // so far apart are chunks that follow one another
    REGIONS = 64,    // whose pages' flags are kept, by their number
    REGION_PAGES = 512,
    CLOCK_EVERY = 64,  // chunks
    TRIES = 3,
};

// Words of a chunk from the second one on.
struct links {
    uint64_t size, next, before;
};

struct sums {
    uint64_t bytes, resident_bytes;
};

// Memory that was read of the process.
struct kept {
    uint64_t pages[PAGES];  // numbers, plus one; 0: none
    uint64_t regions[REGIONS];
    uint8_t flags[REGIONS][REGION_PAGES];
    uint8_t bytes[];  // PAGES pages
};

struct walk {
    struct remote remote;
    struct memory_reader memory;
    struct arenas arenas;
    struct kept *kept;
    uint64_t page_bytes;
    uint64_t last_page;  // that was read
    uint64_t run;        // pages that followed one another, up or down
    unsigned chunk_count;
    uint64_t until_ns;
    uint64_t arena_bytes;  // of the arena at hand: no chunk is larger
    struct cairn_picture picture;
    struct giveback *giveback;        // NULL: only the picture is wanted
    ARRAY(struct free_chunk) chunks;  // of the arena at hand, for `giveback`
};

enum walk_end { WALK_DONE, WALK_LATE, WALK_CHANGED };

// --- pages

static bool is_resident(struct walk *walk, uint64_t page) {
    struct kept *kept = walk->kept;
    uint64_t region = page / REGION_PAGES, slot = region % REGIONS;
    if (kept->regions[slot] != region + 1) {
        pagemap_flags(&walk->remote.pagemap, region * REGION_PAGES * walk->page_bytes, REGION_PAGES,
                      kept->flags[slot]);
        kept->regions[slot] = region + 1;
    }
    return kept->flags[slot][page % REGION_PAGES] & PAGE_RESIDENT;
}

static uint64_t resident_bytes(struct walk *walk, uint64_t start, uint64_t bytes) {
    const uint64_t page_bytes = walk->page_bytes, end = start + bytes;
    uint64_t resident = 0;
    for (uint64_t at = start, next; at < end; at = next) {
        next = (at / page_bytes + 1) * page_bytes;
        if (next > end) next = end;
        if (is_resident(walk, at / page_bytes)) resident += next - at;
    }
    return resident;
}

// Counts the pages to read from `page` on, or up to it: twice as many as before while chunks follow
// one another. They lie side by side in what is kept.
static uint64_t run_length(struct walk *walk, uint64_t page, bool is_down) {
    uint64_t distance = is_down ? walk->last_page - page : page - walk->last_page;
    bool follows = distance <= NEAR_PAGES;
    uint64_t wanted = follows ? 2 * walk->run : 1, count = 1;
    if (wanted > RUN_MOST) wanted = RUN_MOST;
    for (; count < wanted; count++) {
        uint64_t next = is_down ? page - count : page + count;
        bool is_beside = is_down ? (next + 1) % PAGES != 0 : next % PAGES != 0;
        if (!is_beside || !is_resident(walk, next)) break;
    }
    walk->run = count;
    return count;
}

// False: the page is not there.
static bool bring(struct walk *walk, uint64_t page) {
    struct kept *kept = walk->kept;
    bool is_down = page < walk->last_page;
    uint64_t count = run_length(walk, page, is_down), first = is_down ? page - count + 1 : page;
    bool is_read =
        remote_read(&walk->remote, first * walk->page_bytes,
                    kept->bytes + first % PAGES * walk->page_bytes, count * walk->page_bytes);
    walk->last_page = is_down ? first : first + count - 1;
    for (uint64_t i = 0; i < count; i++)
        kept->pages[(first + i) % PAGES] = is_read ? first + i + 1 : 0;
    return is_read;
}

// Reads only resident pages: links that lead elsewhere are of a chunk that was taken meanwhile.
static bool read_links(struct walk *walk, uint64_t chunk, struct links *links) {
    uint64_t at = chunk + WORD, page = at / walk->page_bytes, offset = at % walk->page_bytes;
    if (at > INT64_MAX || chunk % CHUNK_HEADER_BYTES || !is_resident(walk, page)) return false;
    if (offset + sizeof *links > walk->page_bytes)
        return is_resident(walk, page + 1) && remote_read(&walk->remote, at, links, sizeof *links);
    if (walk->kept->pages[page % PAGES] != page + 1 && !bring(walk, page)) return false;
    memcpy(links, walk->kept->bytes + page % PAGES * walk->page_bytes + offset, sizeof *links);
    return true;
}

static void forget(struct walk *walk) {
    memset(walk->kept->pages, 0, sizeof walk->kept->pages);
    memset(walk->kept->regions, 0, sizeof walk->kept->regions);
}

// --- bins

static bool is_late(struct walk *walk) {
    return walk->chunk_count++ % CLOCK_EVERY == 0 &&
           clock_ns(CLOCK_THREAD_CPUTIME_ID) > walk->until_ns;
}

// False: there is no memory.
static bool keep_chunk(struct walk *walk, uint64_t chunk, uint64_t bytes) {
    struct free_chunk *slot = array_push(&walk->chunks);
    if (slot) *slot = (struct free_chunk){chunk, bytes};
    return slot != NULL;
}

// Adds up the chunks of a bin from `first` on.
static enum walk_end walk_bin(struct walk *walk, uint64_t first, uint64_t head, struct sums *sums) {
    const uint64_t most = walk->picture.arena_bytes - walk->picture.free_chunk_bytes;
    struct links links;
    *sums = (struct sums){0};
    for (uint64_t chunk = first, before = head; chunk != head; before = chunk, chunk = links.next) {
        if (is_late(walk)) return WALK_LATE;
        if (!read_links(walk, chunk, &links) || links.before != before) return WALK_CHANGED;
        uint64_t size = links.size & ~(uint64_t)CHUNK_FLAGS;
        sums->bytes += size;
        if (size > walk->arena_bytes || sums->bytes > most) return WALK_CHANGED;
        if (walk->giveback && !keep_chunk(walk, chunk, size)) return WALK_LATE;
        sums->resident_bytes += resident_bytes(walk, chunk, size);
    }
    return WALK_DONE;
}

static void add_bin(struct walk *walk, const struct arena *arena, unsigned bin) {
    struct cairn_picture *picture = &walk->picture;
    uint64_t first = arena->bins[2 * (size_t)bin], head = arena_bin_head(arena, bin);
    const uint64_t place = head + 2 * (uint64_t)WORD;  // the head is as if in a chunk
    const size_t kept = walk->chunks.count;
    enum walk_end end = WALK_CHANGED;
    struct sums sums;
    for (int i = 0; i < TRIES && end == WALK_CHANGED; i++) {
        walk->chunks.count = kept;
        if (i) forget(walk);
        if (i && !memory_read_word(&walk->memory, place, &first)) break;
        end = walk_bin(walk, first, head, &sums);
    }
    picture->is_cut |= end != WALK_DONE;
    if (end == WALK_CHANGED) walk->chunks.count = kept;
    if (end == WALK_CHANGED) return;
    picture->free_chunk_bytes += sums.bytes;
    picture->free_resident_bytes += sums.resident_bytes;
}

// --- fastbins

enum { FASTBINS = 10, FAST_LEAST = 32, FAST_STEP = 16, PROTECT_SHIFT = 12 };

static bool is_fast_chunk(struct walk *walk, uint64_t chunk, uint64_t bytes) {
    struct links links;
    return read_links(walk, chunk, &links) && (links.size & ~(uint64_t)CHUNK_FLAGS) == bytes;
}

// Adds up a fastbin, whose chunks have one size and are linked by their second word: from glibc
// 2.32 on that is XORed with its own address / 4096.
static enum walk_end walk_fastbin(struct walk *walk, uint64_t chunk, uint64_t bytes,
                                  struct sums *sums) {
    struct links links;
    *sums = (struct sums){0};
    for (uint64_t left = walk->arena_bytes / bytes; chunk; left--) {
        uint64_t place = chunk + CHUNK_HEADER_BYTES;
        if (is_late(walk)) return WALK_LATE;
        if (!left || !is_fast_chunk(walk, chunk, bytes)) return WALK_CHANGED;
        if (!read_links(walk, chunk, &links)) return WALK_CHANGED;
        if (walk->giveback && !keep_chunk(walk, chunk, bytes)) return WALK_LATE;
        sums->bytes += bytes;
        sums->resident_bytes += resident_bytes(walk, chunk, bytes);
        uint64_t xored = links.next ^ place >> PROTECT_SHIFT;
        chunk = !xored || is_fast_chunk(walk, xored, bytes) ? xored : links.next;
    }
    return WALK_DONE;
}

static bool add_fastbin(struct walk *walk, uint64_t place, uint64_t bytes) {
    struct cairn_picture *picture = &walk->picture;
    const size_t kept = walk->chunks.count;
    enum walk_end end = WALK_CHANGED;
    struct sums sums = {0};
    uint64_t head;
    for (int i = 0; i < TRIES && end == WALK_CHANGED; i++) {
        walk->chunks.count = kept;
        if (i) forget(walk);
        if (!memory_read_word(&walk->memory, place, &head)) break;
        end = walk_fastbin(walk, head, bytes, &sums);
    }
    if (end == WALK_CHANGED) {
        walk->chunks.count = kept;
        return false;
    }
    picture->free_chunk_bytes += sums.bytes;
    picture->free_resident_bytes += sums.resident_bytes;
    return end == WALK_DONE;
}

// Their chunks are marked as in use. False: they are not all that there are.
static bool add_fastbins(struct walk *walk, const struct arena *arena) {
    bool are_whole = true;
    for (unsigned i = 0; i < FASTBINS; i++)
        are_whole &= add_fastbin(walk, arena->fastbins_address + WORD * i,
                                 FAST_LEAST + FAST_STEP * (uint64_t)i);
    return are_whole;
}

// Returns the size of an arena's end; 0: it has none.
static uint64_t top_bytes(const struct walk *walk, const struct arena *arena) {
    uint64_t word, size;
    if (!arena->system_bytes || !memory_read_word(&walk->memory, arena->top + WORD, &word))
        return 0;
    size = word & ~(uint64_t)CHUNK_FLAGS;
    return size <= arena->system_bytes ? size : 0;
}

static void add_top(struct walk *walk, const struct arena *arena) {
    uint64_t size = top_bytes(walk, arena);
    walk->picture.free_top_bytes += size;
    if (size) walk->picture.free_resident_bytes += resident_bytes(walk, arena->top, size);
}

// --- what goes back to the system

static bool read_resident(const void *context, uint64_t address, void *bytes, size_t size) {
    struct walk *walk = (struct walk *)(uintptr_t)context;
    return is_resident(walk, address / walk->page_bytes) &&
           is_resident(walk, (address + size - 1) / walk->page_bytes) &&
           remote_read(&walk->remote, address, bytes, size);
}

static uint64_t resident_between(void *context, uint64_t start, uint64_t end) {
    return resident_bytes(context, start, end - start);
}

// Adds an arena whose bins were kept. False: there is no memory.
static bool add_giveback(struct walk *walk, const struct arena *arena, bool is_whole) {
    struct giveback *giveback = walk->giveback;
    struct arena_free *free = array_push(&giveback->arenas);
    const struct memory_reader memory = {.read = read_resident, .context = walk};
    const struct resident_source resident = {resident_between, walk, walk->page_bytes};
    if (!free) return false;
    *free = (struct arena_free){.address = arena->address,
                                .is_main = arena->address == walk->arenas.addresses.items[0],
                                .system_bytes = arena->system_bytes,
                                .top = arena->top,
                                .top_bytes = top_bytes(walk, arena)};
    free->is_cut = !is_whole;
    giveback_settle(free, walk->chunks.items, walk->chunks.count,
                    giveback->has_parameters ? &giveback->parameters : NULL, &memory, &resident);
    return true;
}

// Says how many bins an arena may have that do not lead back: where a part of the sum will do, any,
// since each bin is checked as it is walked, and the circle of arenas has to close.
static unsigned broken_most(const struct walk *walk) {
    return walk->giveback ? ARENA_BINS : 0;
}

static bool read_arena(const struct walk *walk, uint64_t address, struct arena *arena) {
    for (int i = 0; i < TRIES; i++)
        if (arenas_read(&walk->arenas, &walk->memory, address, broken_most(walk), arena))
            return true;
    return false;
}

static bool add_arena(struct walk *walk, uint64_t address) {
    struct arena arena;
    if (!read_arena(walk, address, &arena)) return false;
    walk->picture.arena_count++;
    walk->picture.arena_bytes += arena.system_bytes;
    walk->arena_bytes = arena.system_bytes;
    walk->chunks.count = 0;
    bool was_cut = walk->picture.is_cut;
    walk->picture.is_cut = false;
    add_top(walk, &arena);
    for (unsigned bin = 0; bin < ARENA_BINS && !(is_late(walk) && walk->picture.is_cut); bin++)
        add_bin(walk, &arena, bin);
    walk->picture.is_cut |= !add_fastbins(walk, &arena);
    bool is_whole = !walk->picture.is_cut;
    walk->picture.is_cut |= was_cut;
    return !walk->giveback || add_giveback(walk, &arena, is_whole);
}

static bool find_arenas(struct walk *walk, uint64_t data, uint64_t data_end) {
    for (int i = 0; i < TRIES && data; i++)
        if (arenas_find(&walk->arenas, &walk->memory, data, data_end, broken_most(walk)))
            return true;
    return false;
}

static bool walk_all(struct walk *walk, uint64_t data, uint64_t data_end) {
    if (!find_arenas(walk, data, data_end)) return false;
    for (size_t i = 0; i < walk->arenas.addresses.count; i++)
        if (!add_arena(walk, walk->arenas.addresses.items[i])) return false;
    return walk->picture.arena_bytes;
}

// Walks all arenas of the process. False: they cannot be read.
static bool look(struct walk *walk, pid_t pid, uint64_t data, uint64_t data_end, uint64_t most_ns) {
    walk->remote = remote_of(pid);
    walk->until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + most_ns;
    walk->remote.pagemap = pagemap_open(pid);
    walk->page_bytes = walk->remote.pagemap.page_bytes;
    walk->memory = remote_reader(&walk->remote);
    walk->kept = calloc(1, sizeof *walk->kept + PAGES * walk->page_bytes);
    if (walk->giveback)
        walk->giveback->has_parameters =
            malloc_parameters_find(&walk->memory, data, data_end, &walk->giveback->parameters);
    bool is_found = walk->kept && walk_all(walk, data, data_end);
    remote_close(&walk->remote);
    arenas_free(&walk->arenas);
    array_free(&walk->chunks);
    free(walk->kept);
    return is_found;
}

bool free_chunks_find(pid_t pid, uint64_t data, uint64_t data_end, uint64_t most_ns,
                      struct cairn_picture *picture) {
    struct walk walk = {0};
    const struct cairn_picture *found = &walk.picture;
    if (!look(&walk, pid, data, data_end, most_ns)) return false;
    picture->free_resident_bytes = found->free_resident_bytes;
    picture->free_chunk_bytes = found->free_chunk_bytes;
    picture->free_top_bytes = found->free_top_bytes;
    picture->arena_bytes = found->arena_bytes;
    picture->arena_count = found->arena_count;
    picture->is_cut = found->is_cut;
    return true;
}

bool free_chunks_giveback(pid_t pid, uint64_t data, uint64_t data_end, uint64_t most_ns,
                          struct giveback *giveback) {
    struct walk walk = {.giveback = giveback};
    *giveback = (struct giveback){0};
    if (look(&walk, pid, data, data_end, most_ns)) return true;
    giveback_free(giveback);
    return false;
}
