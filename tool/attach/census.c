// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/census.h"

#include <stdlib.h>
#include <string.h>

#include "tool/core/glibc.h"

#define GROUP_NAME "allocated before cairn was attached"
enum { KIND_UNKNOWN = 0 };

void census_open(struct census *census, const struct remote *remote, uint64_t libc_start,
                 uint64_t libc_end, const struct census_names *names) {
    *census = (struct census){.remote = remote,
                              .names = *names,
                              .copy = {.libc_start = libc_start, .libc_end = libc_end}};
}

void census_close(struct census *census) {
    for (size_t i = 0; i < census->kinds.count; i++) free(census->kinds.items[i]);
    array_free(&census->kinds);
    array_free(&census->words);
    array_free(&census->blocks);
    index_table_free(&census->word_table);
    heap_copy_free(&census->copy);
}

bool census_measure(struct census *census, uint64_t *bytes, struct error *error) {
    return heap_copy_measure(&census->copy, census->remote, bytes, error);
}

void census_clear(struct census *census) {
    heap_copy_clear(&census->copy);
    census->blocks.count = 0;
    census->room_bytes = 0;
}

// The mapping that `address` lies in, or NULL.
static const struct map_range *mapping_of(const struct maps *maps, uint64_t address) {
    size_t low = 0, high = maps->items.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct map_range *mapping = &maps->items.items[middle];
        if (address >= mapping->start && address < mapping->end) return mapping;
        if (address < mapping->start)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

// Number of the kind with that name, which is taken over; KIND_UNKNOWN if there are too many.
static uint32_t kind_named(struct census *census, char *name) {
    for (size_t i = 0; i < census->kinds.count; i++) {
        if (strcmp(census->kinds.items[i], name) != 0) continue;
        free(name);
        return (uint32_t)i;
    }
    char **slot = census->kinds.count < CAIRN_CENSUS_KINDS_MAX ? array_push(&census->kinds) : NULL;
    if (!slot) {
        free(name);
        return KIND_UNKNOWN;
    }
    *slot = name;
    return (uint32_t)census->kinds.count - 1;
}

static uint32_t kind_of_symbol(struct census *census, const char *symbol) {
    static const char vtable_for[] = "vtable for ";
    char *readable = symbol ? census->names.readable(symbol) : NULL;
    if (!readable) return KIND_UNKNOWN;
    size_t skipped = strncmp(readable, vtable_for, strlen(vtable_for)) ? 0 : strlen(vtable_for);
    char *name = strdup(readable + skipped);
    free(readable);
    return name ? kind_named(census, name) : KIND_UNKNOWN;
}

// In a file's memory that the program does not write.
static bool is_constant(const struct census *census, uint64_t address) {
    const struct map_range *mapping = mapping_of(&census->copy.maps, address);
    return mapping && mapping->kind == MAPS_FILE && !mapping->is_writable;
}

// Symbols are slow to look up: each word is, once.
static uint32_t kind_of_word(struct census *census, uint64_t word) {
    uint32_t index;
    if (!is_constant(census, word)) return KIND_UNKNOWN;
    uint64_t hash = hash_mix(word, index_table_seed());
    struct index_probe probe = index_probe_start(&census->word_table, hash);
    while (index_probe_next(&census->word_table, &probe, &index))
        if (census->words.items[index].word == word) return census->words.items[index].kind;
    const char *symbol = census->names.symbol_at(census->names.context, word);
    uint32_t kind = kind_of_symbol(census, symbol);
    struct word_kind *slot = array_push(&census->words);
    if (slot) {
        *slot = (struct word_kind){word, kind};
        index_table_insert(&census->word_table, hash, (uint32_t)census->words.count - 1);
    }
    return kind;
}

static bool add_block(struct census *census, const struct core_chunk *chunk) {
    uint64_t word = 0;
    core_read(&census->copy.image, chunk->address, &word, sizeof word);
    struct cairn_census_block *slot = array_push(&census->blocks);
    if (!slot) return false;
    uint64_t kind = kind_of_word(census, word);
    *slot =
        (struct cairn_census_block){chunk->address, chunk->size << CAIRN_CENSUS_KIND_BITS | kind};
    census->room_bytes += chunk->size;
    return true;
}

bool census_take(struct census *census, struct error *error) {
    struct core_heap heap;
    char *unknown = census->kinds.count ? NULL : strdup("unknown type");
    if (unknown) kind_named(census, unknown);
    if (!census->kinds.count) return error_set(error, "out of memory");
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
