// SPDX-License-Identifier: Apache-2.0
// Any bytes as a core dump: the recording in it is looked for and copied, the live map followed,
// and glibc's heap walked; types are asked for, blocks marked, references followed.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/glibc/chunks.h"
#include "tool/heap/blocks.h"
#include "tool/heap/other_heaps.h"
#include "tool/heap/paths.h"
#include "tool/heap/recorded.h"
#include "tool/heap/references.h"
#include "tool/heap/types.h"

// Zeros follow the input, which segments may use: see tests/tools/make_core.h.
enum { CELLS = 1000, FILE_BYTES = 600 << 10 };

static void require(bool is_true) {
    if (!is_true) abort();
}

enum { ASKED_MOST = 4 };       // blocks whose references are followed
enum { REFERENCES_MOST = 8 };  // that are asked for

// The words of the blocks as they are, and the addresses of files that the notes tell of.
static void check_types(const struct core_image *core, const struct glibc_heap *heap) {
    static const struct symbol_options options;
    struct core_types *types = core_types_open(core, &options);
    char text[256];
    require(types);
    for (size_t i = 0; i < heap->chunks.count && i < ASKED_MOST; i++)
        core_type_of_block(types, heap->chunks.items[i].address, heap->chunks.items[i].size);
    for (size_t i = 0; i < core->files.count && i < ASKED_MOST; i++) {
        const struct core_type *type = core_type_of_word(types, core->files.items[i].start);
        require(!type || type->name);
        core_types_place(types, core->files.items[i].end - 1, text, sizeof text);
    }
    core_types_missing(types, text, sizeof text);
    core_types_close(types);
}

// What is reachable has a way from a root; what is not has none, and those that refer to it are as
// many as the index of them all says.
static void check_references(const struct core_reach *reach, struct core_ways *ways,
                             struct core_leaks *leaks, const struct glibc_chunk *chunk) {
    struct core_references one, other;
    const bool is_reachable = core_reach_of(reach, chunk->address) == CORE_REACHABLE;
    size_t count;
    require(core_find_path(reach, chunk->address, &one));
    require(core_ways_to(ways, chunk->address, &other));
    require(is_reachable == (one.items.count > 0));
    require(one.items.count == other.items.count);
    core_references_free(&one);
    core_references_free(&other);
    require(core_find_incoming(reach, chunk->address, &one));
    require(core_leaks_to(leaks, chunk->address, REFERENCES_MOST, &other, &count));
    require(!is_reachable || !count);
    require((other.items.count > 0) == (count > 0));
    require(other.items.count <= REFERENCES_MOST);
    core_references_free(&one);
    core_references_free(&other);
    require(core_find_outgoing(reach, chunk->address, chunk->size, &one));
    core_references_free(&one);
}

// Marked by the ways to all blocks, or by itself: the same.
static void check_marks(const struct core_reach *reach) {
    struct core_reach other = *reach;
    other.is_marked = false;
    size_t bytes = reach->map.place_count / PLACES_PER_WORD * sizeof *reach->map.words;
    other.map.words = calloc(1, bytes ? bytes : 1);
    require(other.map.words);
    if (!bytes) {
        free(other.map.words);
        return;
    }
    for (size_t i = 0; i < bytes / sizeof *reach->map.words; i++)
        other.map.words[i] = reach->map.words[i] & 0x3333333333333333;  // neither bit of a walk
    require(core_reach_mark(&other, NULL));
    require(!memcmp(other.map.words, reach->map.words, bytes));
    free(other.map.words);
}

static void check_blocks(struct core_reach *reach) {
    struct core_ways ways;
    struct core_leaks leaks;
    require(core_ways_open(reach, &ways, NULL));
    require(core_leaks_open(reach, &leaks));
    check_marks(reach);
    for (size_t i = 0; i < reach->heap.chunks.count && i < ASKED_MOST; i++) {
        const struct glibc_chunk *chunk = &reach->heap.chunks.items[i];
        if (!chunk_is_free(chunk)) check_references(reach, &ways, &leaks, chunk);
    }
    core_leaks_close(&leaks);
    core_ways_close(&ways);
}

// Takes over the heap.
static void check_reach(const struct core_image *core, struct glibc_heap *heap,
                        bool are_all_glibc) {
    struct core_reach reach;
    const struct spans others = {0};
    check_types(core, heap);
    for (size_t i = 1; i < heap->chunks.count; i++)
        require(heap->chunks.items[i].address >= heap->chunks.items[i - 1].address);
    if (core_reach_open(core, heap, are_all_glibc, &others, &reach, NULL)) {
        check_blocks(&reach);
        core_reach_close(&reach);
    }
    glibc_heap_free(heap);
}

static void check_heap(const struct core_image *core) {
    struct glibc_heap heap;
    const struct memory_view view = core_view(core);
    bool has_glibc = glibc_heap_read(&view, &heap, NULL);
    require(core_add_other_heaps(core, &heap));
    if (has_glibc || heap.other.name) check_reach(core, &heap, !heap.other.name);
}

static void check_core(const struct core_image *core) {
    struct cairn_header header;
    struct core_blocks blocks;
    char path[PATH_MAX];
    int file;
    for (size_t i = 1; i < core->segments.count; i++)
        require(core->segments.items[i].start >= core->segments.items[i - 1].end);
    check_heap(core);
    if (!core_find_recording(core, &header)) return;
    if (core_copy_recording(core, &header, path, NULL) &&
        sscanf(path, "/proc/self/fd/%d", &file) == 1)
        close(file);
    if (!core_read_blocks(core, &header, CELLS, NULL, &blocks, NULL)) return;
    struct core_block_cursor cursor = {.blocks = &blocks};
    struct core_block block;
    for (uint64_t before = 0; core_blocks_next(&cursor, &block); before = block.address)
        require(block.cell && block.cell < CELLS && block.address >= before);
    struct glibc_heap heap = {0};
    bool are_all_glibc = true;
    if (core_add_blocks(core, &blocks, &heap, &are_all_glibc))
        check_reach(core, &heap, are_all_glibc);
    core_free_blocks(&blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static int file;
    char path[64];
    struct core_image core;
    if (!file) file = memfd_create("core", MFD_CLOEXEC);
    require(file > 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (size > FILE_BYTES) return 0;
    require(!ftruncate(file, 0) && !ftruncate(file, FILE_BYTES));
    require(pwrite(file, bytes, size, 0) == (ssize_t)size);
    if (!core_open(path, &core, NULL)) return 0;
    check_core(&core);
    core_close(&core);
    return 0;
}
