// SPDX-License-Identifier: Apache-2.0
#include "tool/core/paths.h"

#include <elf.h>

#define NO_PARENT UINT32_MAX
#define ROOT (UINT32_MAX - 1)

void core_references_free(struct core_references *references) {
    array_free(&references->items);
}

const char *core_register_name(uint32_t machine, uint32_t number) {
    static const char *const x86[] = {"r15",     "r14",      "r13", "r12", "rbp",    "rbx", "r11",
                                      "r10",     "r9",       "r8",  "rax", "rcx",    "rdx", "rsi",
                                      "rdi",     "orig_rax", "rip", "cs",  "eflags", "rsp", "ss",
                                      "fs_base", "gs_base",  "ds",  "es",  "fs",     "gs"};
    static const char *const arm[] = {
        "x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",    "x10", "x11",
        "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",   "x22", "x23",
        "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",  "pc",  "pstate"};
    if (machine == EM_X86_64 && number < sizeof x86 / sizeof *x86) return x86[number];
    if (machine == EM_AARCH64 && number < sizeof arm / sizeof *arm) return arm[number];
    return "?";
}

// --- words that lead into one block

struct search {
    const struct core_reach *reach;
    struct core_references *found;
    uint64_t start, end;  // of the block that is looked for
    uint64_t from;        // address of the block that is looked through; 0: a root
    size_t most;          // references that are enough
};

static bool note_reference(void *context, uint64_t at, uint64_t word) {
    const struct search *search = context;
    if (word < search->start || word >= search->end) return true;
    struct core_reference *slot = array_push(&search->found->items);
    if (slot) *slot = (struct core_reference){.at = at, .to = word, .block = search->from};
    return slot && search->found->items.count < search->most;
}

static bool search_registers(const struct search *search) {
    const struct core_image *core = search->reach->core;
    for (size_t i = 0; i < core->threads.count; i++) {
        const struct core_thread *thread = &core->threads.items[i];
        for (uint32_t k = 0; k < thread->register_count; k++) {
            size_t before = search->found->items.count;
            bool is_ok = note_reference((void *)search, 0, thread->registers[k]);
            if (search->found->items.count > before) {
                search->found->items.items[before].thread = thread;
                search->found->items.items[before].register_number = k;
            }
            if (!is_ok) return false;
        }
    }
    return true;
}

static bool search_roots(const struct search *search, struct core_scan *scan) {
    const struct core_spans *roots = &search->reach->roots;
    for (size_t i = 0; i < roots->items.count; i++)
        if (!core_scan_words(scan, roots->items.items[i].start, roots->items.items[i].end))
            return false;
    return true;
}

static bool search_blocks(struct search *search, struct core_scan *scan) {
    const struct core_heap *heap = &search->reach->heap;
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct core_chunk *chunk = &heap->chunks.items[i];
        if (chunk_is_free(chunk) || chunk->address == search->start) continue;
        search->from = chunk->address;
        if (!core_scan_words(scan, chunk->address, chunk->address + chunk->size)) return false;
    }
    return true;
}

static const struct core_chunk *chunk_of(const struct core_reach *reach, uint64_t address) {
    uint64_t place;
    if (!reach->map.words || !block_map_find(&reach->map, address, &place)) return NULL;
    return core_chunk_of(&reach->heap, block_map_address(&reach->map, place));
}

// Only words that lead into the block are of interest: a map of nothing else.
static struct block_map only(const struct search *search) {
    return (struct block_map){.low = search->start, .high = search->end};
}

static bool find_references(struct search *search, bool are_roots_enough) {
    const struct block_map map = only(search);
    struct core_scan scan = {
        .core = search->reach->core, .map = &map, .see = note_reference, .context = search};
    if (!core_scan_open(&scan)) return false;
    bool is_ok = search_registers(search) && search_roots(search, &scan) &&
                 (are_roots_enough || search_blocks(search, &scan));
    core_scan_close(&scan);
    return is_ok || search->found->items.count >= search->most;
}

bool core_find_incoming(const struct core_reach *reach, uint64_t address,
                        struct core_references *references) {
    const struct core_chunk *chunk = chunk_of(reach, address);
    *references = (struct core_references){0};
    if (!chunk) return true;
    struct search search = {.reach = reach,
                            .found = references,
                            .start = chunk->address,
                            .end = chunk->address + chunk->size,
                            .most = SIZE_MAX};
    if (find_references(&search, false)) return true;
    core_references_free(references);
    return false;
}

// --- words of one block

static bool note_outgoing(void *context, uint64_t at, uint64_t word) {
    const struct search *search = context;
    const struct core_chunk *target = chunk_of(search->reach, word);
    if (!target || target->address == search->from) return true;
    struct core_reference *slot = array_push(&search->found->items);
    if (slot) *slot = (struct core_reference){.at = at, .to = word, .block = search->from};
    return slot;
}

bool core_find_outgoing(const struct core_reach *reach, uint64_t address, uint64_t size,
                        struct core_references *references) {
    *references = (struct core_references){0};
    struct search search = {.reach = reach, .found = references, .from = address};
    struct core_scan scan = {
        .core = reach->core, .map = &reach->map, .see = note_outgoing, .context = &search};
    bool is_ok = core_scan_open(&scan) && core_scan_words(&scan, address, address + size);
    core_scan_close(&scan);
    if (!is_ok) core_references_free(references);
    return is_ok;
}

// --- the shortest way

// Breadth first: each block is entered once, with the one that it was found in. Blocks are known by
// their places in the map, and numbered by how many blocks in use come before.
struct walk {
    const struct core_reach *reach;
    uint32_t *ranks;    // number of the first block of each RANK_WORDS words of the map
    uint32_t *parents;  // places, by number of the block
    uint32_t *queue;    // places
    size_t count;       // in the queue
    uint32_t parent;    // whose words are looked at
    uint64_t target;    // place
    bool is_found;
};
enum { RANK_WORDS = 8 };

static uint32_t count_blocks(uint64_t word) {
    const uint64_t starts = 0x1111111111111111;
    return (uint32_t)__builtin_popcountll(word & word >> 1 & starts);
}

static uint32_t number_of(const struct walk *walk, uint64_t place) {
    const uint64_t *words = walk->reach->map.words;
    uint64_t at = place / PLACES_PER_WORD, first = at / RANK_WORDS * RANK_WORDS;
    uint32_t number = walk->ranks[at / RANK_WORDS];
    for (uint64_t i = first; i < at; i++) number += count_blocks(words[i]);
    uint64_t before = ((uint64_t)1 << (place % PLACES_PER_WORD * PLACE_BITS)) - 1;
    return number + count_blocks(words[at] & before);
}

// The directory of numbers, and room for as many blocks.
static bool make_room(struct walk *walk) {
    const struct block_map *map = &walk->reach->map;
    uint64_t words = map->place_count / PLACES_PER_WORD;
    uint32_t count = 0;
    walk->ranks = calloc(words / RANK_WORDS + 1, sizeof *walk->ranks);
    for (uint64_t i = 0; walk->ranks && i < words; i++) {
        if (i % RANK_WORDS == 0) walk->ranks[i / RANK_WORDS] = count;
        count += count_blocks(map->words[i]);
    }
    walk->parents = malloc((size_t)(count + 1) * sizeof *walk->parents);
    walk->queue = malloc((size_t)(count + 1) * sizeof *walk->queue);
    if (!walk->ranks || !walk->parents || !walk->queue) return false;
    for (uint32_t i = 0; i < count; i++) walk->parents[i] = NO_PARENT;
    return true;
}

static bool visit(void *context, uint64_t at, uint64_t word) {
    (void)at;
    struct walk *walk = context;
    uint64_t place;
    if (!block_map_find(&walk->reach->map, word, &place)) return true;
    uint32_t number = number_of(walk, place);
    if (walk->parents[number] != NO_PARENT) return true;
    walk->parents[number] = walk->parent;
    walk->queue[walk->count++] = (uint32_t)place;
    walk->is_found = place == walk->target;
    return !walk->is_found;
}

static void visit_roots(struct walk *walk, struct core_scan *scan) {
    const struct core_image *core = walk->reach->core;
    const struct core_spans *roots = &walk->reach->roots;
    walk->parent = ROOT;
    for (size_t i = 0; i < core->threads.count; i++)
        for (uint32_t k = 0; k < core->threads.items[i].register_count; k++)
            if (!visit(walk, 0, core->threads.items[i].registers[k])) return;
    for (size_t i = 0; i < roots->items.count && !walk->is_found; i++)
        core_scan_words(scan, roots->items.items[i].start, roots->items.items[i].end);
}

static int compare_places(const void *a, const void *b) {
    const uint32_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

// All that are as far from a root, in the order in which they lie in memory; then the next ones.
static void visit_blocks(struct walk *walk, struct core_scan *scan) {
    const struct block_map *map = &walk->reach->map;
    for (size_t next = 0, level = 0; next < walk->count && !walk->is_found; next++) {
        if (next == level) {
            qsort(walk->queue + next, walk->count - next, sizeof *walk->queue, compare_places);
            level = walk->count;
        }
        walk->parent = walk->queue[next];
        core_scan_words(scan, block_map_address(map, walk->parent),
                        block_map_end(map, walk->parent));
    }
}

// The word of a parent that leads to the child: the first one.
static bool add_step(const struct walk *walk, uint32_t parent, uint64_t child,
                     struct core_references *path) {
    const struct block_map *places = &walk->reach->map;
    const struct core_chunk *to =
        core_chunk_of(&walk->reach->heap, block_map_address(places, child));
    if (!to) return false;
    struct search search = {.reach = walk->reach,
                            .found = path,
                            .start = to->address,
                            .end = to->address + to->size,
                            .most = path->items.count + 1};
    if (parent == ROOT) return find_references(&search, true);
    search.from = block_map_address(places, parent);
    const struct block_map map = only(&search);
    struct core_scan scan = {
        .core = walk->reach->core, .map = &map, .see = note_reference, .context = &search};
    if (!core_scan_open(&scan)) return false;
    core_scan_words(&scan, search.from, block_map_end(places, parent));
    core_scan_close(&scan);
    return path->items.count == search.most;
}

// From the target back to the root, then turned around.
static bool collect(const struct walk *walk, struct core_references *path) {
    uint64_t child = walk->target;
    for (uint32_t parent = 0; parent != ROOT; child = parent) {
        parent = walk->parents[number_of(walk, child)];
        if (!add_step(walk, parent, child, path)) return false;
    }
    for (size_t i = 0; i < path->items.count / 2; i++) {
        struct core_reference *first = &path->items.items[i];
        struct core_reference *last = &path->items.items[path->items.count - 1 - i];
        struct core_reference kept = *first;
        *first = *last;
        *last = kept;
    }
    return true;
}

static bool walk_to(struct walk *walk, struct core_references *path) {
    struct core_scan scan = {
        .core = walk->reach->core, .map = &walk->reach->map, .see = visit, .context = walk};
    bool is_ok = make_room(walk) && core_scan_open(&scan);
    if (is_ok) {
        visit_roots(walk, &scan);
        visit_blocks(walk, &scan);
        if (walk->is_found) is_ok = collect(walk, path);
    }
    core_scan_close(&scan);
    free(walk->ranks);
    free(walk->parents);
    free(walk->queue);
    return is_ok;
}

bool core_find_path(const struct core_reach *reach, uint64_t address,
                    struct core_references *path) {
    struct walk walk = {.reach = reach};
    *path = (struct core_references){0};
    if (core_reach_of(reach, address) != CORE_REACHABLE) return true;
    if (block_map_find(&reach->map, address, &walk.target) && walk_to(&walk, path)) return true;
    core_references_free(path);
    return false;
}
