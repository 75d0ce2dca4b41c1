// SPDX-License-Identifier: Apache-2.0
#include "tool/core/paths.h"

#include <elf.h>
#include <string.h>

#include "tool/core/graph.h"

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
    struct core_scan scan = {.core = search->reach->core,
                             .map = &map,
                             .see = note_reference,
                             .context = search,
                             .is_ascending = !are_roots_enough};
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

// --- blocks to go on from

// A set of numbers from which the smallest one is taken: a bit for each, and above each word of
// bits one that says whether there are any.
enum { STAGES = 6, STAGE_SHIFT = 6, STAGE_BITS = 1 << STAGE_SHIFT };

struct pending {
    uint64_t *words[STAGES];
};

static bool pending_open(struct pending *pending, uint32_t count) {
    uint64_t bits = (uint64_t)count + 1;
    for (int i = 0; i < STAGES; i++) {
        bits = (bits + STAGE_BITS - 1) / STAGE_BITS;
        pending->words[i] = calloc(bits, sizeof *pending->words[i]);
        if (!pending->words[i]) return false;
    }
    return true;
}

static void pending_close(struct pending *pending) {
    for (int i = 0; i < STAGES; i++) free(pending->words[i]);
}

static void pending_add(struct pending *pending, uint64_t number) {
    for (int i = 0; i < STAGES; i++, number >>= STAGE_SHIFT) {
        uint64_t *word = &pending->words[i][number >> STAGE_SHIFT], before = *word;
        *word |= (uint64_t)1 << number % STAGE_BITS;
        if (before) return;
    }
}

static bool pending_take(struct pending *pending, uint32_t *number) {
    uint64_t at = 0;
    if (!*pending->words[STAGES - 1]) return false;
    for (int i = STAGES - 1; i >= 0; i--)
        at = at << STAGE_SHIFT | (unsigned)__builtin_ctzll(pending->words[i][at]);
    *number = (uint32_t)at;
    for (int i = 0; i < STAGES; i++, at >>= STAGE_SHIFT) {
        uint64_t *word = &pending->words[i][at >> STAGE_SHIFT];
        *word &= *word - 1;
        if (*word) break;
    }
    return true;
}

// --- the shortest way

// Breadth first: each block is entered once, with the one that it was found in. All that are as far
// from a root are looked through in the order in which they lie in memory, then the next ones.
// Blocks are known by their numbers in the graph. A way is looked for in the core at first, as most
// are short; a walk that gets long begins anew when the graph has the edges.
struct walk {
    const struct core_reach *reach;
    struct core_graph graph;
    struct core_scan scan;
    uint32_t *parents;         // numbers
    struct pending levels[2];  // as far as the one that is looked through, and the next ones
    struct pending *next;
    uint64_t read;    // blocks whose words were read from the core
    uint32_t parent;  // whose words are looked at
    uint32_t target;
    bool is_found;
};
enum { READ_SHARE = 256 };  // of all blocks: more are not read in an order of their own

static bool enter(struct walk *walk, uint32_t number) {
    walk->is_found = number == walk->target;
    if (!walk->is_found && !core_graph_is_inner(&walk->graph, number)) return true;
    if (walk->parents[number] != NO_PARENT) return true;
    walk->parents[number] = walk->parent;
    pending_add(walk->next, number);
    return !walk->is_found;
}

static bool visit(void *context, uint64_t at, uint64_t word) {
    (void)at;
    struct walk *walk = context;
    uint64_t place;
    if (!block_map_find(&walk->reach->map, word, &place)) return true;
    return enter(walk, core_graph_number(&walk->graph, place));
}

static void visit_roots(struct walk *walk) {
    const struct core_image *core = walk->reach->core;
    const struct core_spans *roots = &walk->reach->roots;
    walk->parent = ROOT;
    for (size_t i = 0; i < core->threads.count; i++)
        for (uint32_t k = 0; k < core->threads.items[i].register_count; k++)
            if (!visit(walk, 0, core->threads.items[i].registers[k])) return;
    for (size_t i = 0; i < roots->items.count && !walk->is_found; i++)
        core_scan_words(&walk->scan, roots->items.items[i].start, roots->items.items[i].end);
}

static void visit_known(struct walk *walk, uint32_t number) {
    const struct core_graph *graph = &walk->graph;
    const uint32_t *starts = &graph->starts[number / GROUP_BLOCKS];
    const uint8_t *sources = graph->sources.items;
    uint32_t at = starts[0], end = starts[1];
    while (at < end && sources[at] < number % GROUP_BLOCKS) at++;
    for (; at < end && sources[at] == number % GROUP_BLOCKS; at++)
        if (!enter(walk, graph->targets.items[at])) return;
}

static void visit_read(struct walk *walk, uint32_t number) {
    const struct block_map *map = &walk->reach->map;
    uint64_t place = core_graph_place(&walk->graph, number);
    core_scan_words(&walk->scan, block_map_address(map, place), block_map_end(map, place));
    walk->read++;
}

static bool is_too_long(const struct walk *walk) {
    return !walk->graph.is_filled && walk->read > walk->graph.count / READ_SHARE;
}

static void visit_blocks(struct walk *walk) {
    bool was_any = true;
    for (unsigned turn = 0; was_any && !walk->is_found && !is_too_long(walk); turn++) {
        walk->next = &walk->levels[(turn + 1) % 2];
        was_any = false;
        while (!walk->is_found && pending_take(&walk->levels[turn % 2], &walk->parent)) {
            was_any = true;
            if (walk->parent < walk->graph.known)
                visit_known(walk, walk->parent);
            else
                visit_read(walk, walk->parent);
        }
    }
}

// The word of a parent that leads to the child: the first one.
static bool add_step(const struct walk *walk, uint32_t parent, uint32_t child,
                     struct core_references *path) {
    const struct block_map *places = &walk->reach->map;
    uint64_t place = core_graph_place(&walk->graph, child);
    const struct core_chunk *to =
        core_chunk_of(&walk->reach->heap, block_map_address(places, place));
    if (!to) return false;
    struct search search = {.reach = walk->reach,
                            .found = path,
                            .start = to->address,
                            .end = to->address + to->size,
                            .most = path->items.count + 1};
    if (parent == ROOT) return find_references(&search, true);
    place = core_graph_place(&walk->graph, parent);
    search.from = block_map_address(places, place);
    const struct block_map map = only(&search);
    struct core_scan scan = {
        .core = walk->reach->core, .map = &map, .see = note_reference, .context = &search};
    if (!core_scan_open(&scan)) return false;
    core_scan_words(&scan, search.from, block_map_end(places, place));
    core_scan_close(&scan);
    return path->items.count == search.most;
}

// From the target back to the root, then turned around.
static bool collect(const struct walk *walk, struct core_references *path) {
    uint32_t child = walk->target;
    for (uint32_t parent = 0; parent != ROOT; child = parent) {
        parent = walk->parents[child];
        if (!add_step(walk, parent, child, path)) return false;
        core_forget(walk->reach->core);  // steps lie far apart
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

static bool make_room(struct walk *walk) {
    size_t bytes = (size_t)(walk->graph.count + 1) * sizeof *walk->parents;
    walk->parents = malloc(bytes);
    if (walk->parents) memset(walk->parents, UINT8_MAX, bytes);  // NO_PARENT
    return walk->parents && pending_open(&walk->levels[0], walk->graph.count) &&
           pending_open(&walk->levels[1], walk->graph.count) && core_scan_open(&walk->scan);
}

static void leave_room(struct walk *walk) {
    core_scan_close(&walk->scan);
    pending_close(&walk->levels[0]);
    pending_close(&walk->levels[1]);
    free(walk->parents);
    walk->parents = NULL;
    walk->levels[0] = walk->levels[1] = (struct pending){0};
}

static bool walk_once(struct walk *walk, struct core_references *path) {
    walk->scan = (struct core_scan){
        .core = walk->reach->core, .map = &walk->reach->map, .see = visit, .context = walk};
    bool is_ok = make_room(walk);
    if (is_ok) {
        walk->next = &walk->levels[0];
        visit_roots(walk);
        visit_blocks(walk);
    }
    if (walk->is_found) is_ok = collect(walk, path);
    leave_room(walk);
    return is_ok;
}

static bool walk_to(struct walk *walk, uint64_t place, struct core_references *path) {
    bool is_ok = core_graph_open(walk->reach, &walk->graph);
    if (is_ok) {
        walk->target = core_graph_number(&walk->graph, place);
        is_ok = walk_once(walk, path);
    }
    if (is_ok && !walk->is_found && is_too_long(walk))
        is_ok = core_graph_fill(&walk->graph) && walk_once(walk, path);
    core_graph_close(&walk->graph);
    return is_ok;
}

bool core_find_path(const struct core_reach *reach, uint64_t address,
                    struct core_references *path) {
    struct walk walk = {.reach = reach};
    uint64_t place;
    *path = (struct core_references){0};
    if (core_reach_of(reach, address) != CORE_REACHABLE) return true;
    if (block_map_find(&reach->map, address, &place) && walk_to(&walk, place, path)) return true;
    core_references_free(path);
    return false;
}
