// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/census.h"

#include <stdlib.h>
#include <string.h>

#include "tool/attach/extents.h"
#include "tool/core/glibc.h"

#define GROUP_NAME "allocated before cairn was attached"
enum { KIND_UNKNOWN = 0, PLACES_MAX = CAIRN_CENSUS_KINDS_MAX / 2 };
static const char unknown_name[] = "unknown type";

// An image of the process' files whose offsets are addresses: its source is the process.
static bool open_files(struct census *census, struct error *error) {
    struct core_image *files = &census->files;
    struct extents extents = {0};
    bool is_ok = extents_look(census->remote->pid, &extents, error) &&
                 extents_look_files(census->remote->pid, files, error);
    for (size_t i = 0; is_ok && i < extents.items.count; i++) {
        const struct extent *extent = &extents.items.items[i];
        if (extent->kind != EXTENT_CONSTANT && extent->kind != EXTENT_DATA) continue;
        struct core_segment *segment = array_push(&files->segments);
        if (segment)
            *segment = (struct core_segment){.start = extent->start,
                                             .end = extent->end,
                                             .offset = extent->start,
                                             .bytes = extent->end - extent->start,
                                             .is_writable = extent->kind == EXTENT_DATA};
        is_ok = segment || error_set(error, "out of memory");
    }
    array_free(&extents.items);
    files->source = (struct source){.descriptor = census->remote->memory, .size = INT64_MAX};
    return is_ok;
}

bool census_open(struct census *census, const struct remote *remote, uint64_t libc_start,
                 uint64_t libc_end, const struct symbol_options *symbols, struct error *error) {
    *census =
        (struct census){.remote = remote, .copy = {.libc_start = libc_start, .libc_end = libc_end}};
    if (!open_files(census, error)) return false;
    census->types = core_types_open(&census->files, symbols);
    const char **unknown = array_push(&census->kinds);
    if (unknown) *unknown = unknown_name;
    return (census->types && unknown) || error_set(error, "out of memory");
}

void census_close(struct census *census) {
    core_types_close(census->types);
    census->files.source.descriptor = -1;  // the remote's
    core_close(&census->files);
    array_free(&census->kinds);
    array_free(&census->blocks);
    index_table_free(&census->kind_table);
    heap_copy_free(&census->copy);
    *census = (struct census){0};
}

bool census_measure(struct census *census, uint64_t *bytes, struct error *error) {
    return heap_copy_measure(&census->copy, census->remote, bytes, error);
}

void census_clear(struct census *census) {
    heap_copy_clear(&census->copy);
    census->blocks.count = 0;
    census->room_bytes = 0;
}

// Number of the type's kind; KIND_UNKNOWN if there are too many. Equal names are at one address.
static uint32_t kind_of_type(struct census *census, const struct core_type *type) {
    uint64_t hash = hash_mix((uintptr_t)type->name, index_table_seed());
    struct index_probe probe = index_probe_start(&census->kind_table, hash);
    for (uint32_t kind; index_probe_next(&census->kind_table, &probe, &kind);)
        if (census->kinds.items[kind] == type->name) return kind;
    size_t most = type->kind == CORE_TYPE_CLASS ? CAIRN_CENSUS_KINDS_MAX : PLACES_MAX;
    const char **slot = census->kinds.count < most ? array_push(&census->kinds) : NULL;
    if (!slot) return KIND_UNKNOWN;
    *slot = type->name;
    uint32_t kind = (uint32_t)census->kinds.count - 1;
    if (index_table_insert(&census->kind_table, hash, kind)) return kind;
    census->kinds.count--;
    return KIND_UNKNOWN;
}

static bool add_block(struct census *census, const struct core_chunk *chunk) {
    uint64_t word = 0;
    core_read(&census->copy.image, chunk->address, &word, sizeof word);
    struct cairn_census_block *slot = array_push(&census->blocks);
    if (!slot) return false;
    const struct core_type *type = core_type_of_word(census->types, word);
    uint64_t kind = type ? kind_of_type(census, type) : KIND_UNKNOWN;
    *slot = (struct cairn_census_block){chunk->address,
                                        (uint64_t)chunk->size << CAIRN_CENSUS_KIND_BITS | kind};
    census->room_bytes += chunk->size;
    return true;
}

bool census_take(struct census *census, struct error *error) {
    struct core_heap heap;
    if (!heap_copy_take(&census->copy, census->remote, error) ||
        !core_read_heap(&census->copy.image, &heap, error))
        return false;
    bool is_ok = true;
    census->broken_count = heap.broken_count;
    for (size_t i = 0; i < heap.chunks.count && is_ok; i++)
        if (!chunk_is_free(&heap.chunks.items[i])) is_ok = add_block(census, &heap.chunks.items[i]);
    core_free_heap(&heap);
    return is_ok || error_set(error, "out of memory");
}

char *census_texts(const struct census *census, size_t *bytes) {
    *bytes = sizeof GROUP_NAME;
    for (size_t i = 0; i < census->kinds.count; i++) *bytes += strlen(census->kinds.items[i]) + 1;
    char *texts = malloc(*bytes), *at = texts;
    if (!texts) return NULL;
    at = mempcpy(at, GROUP_NAME, sizeof GROUP_NAME);
    for (size_t i = 0; i < census->kinds.count; i++)
        at = mempcpy(at, census->kinds.items[i], strlen(census->kinds.items[i]) + 1);
    return texts;
}
