// SPDX-License-Identifier: Apache-2.0
// Names repeat heavily (a template's name in hundreds of units), so equal strings are kept once
// and demangling is remembered by the mangled text. Memory is cut from chunks: a large module
// yields hundreds of thousands of small blocks that all die together.
#include "tool/symbol/string_pool.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/symbol/name.h"

// A chunk has twice the bytes of the one before, up to the larger: there are many small pools where
// many processes are looked at.
#define FIRST_CHUNK_BYTES ((size_t)4 * 1024)
#define CHUNK_BYTES ((size_t)256 * 1024)
#define FIRST_SLOT_COUNT 128  // power of two

struct chunk {
    struct chunk *next;
    size_t used;
    size_t size;
    alignas(max_align_t) char bytes[];
};

struct text {
    uint64_t hash;
    const char *readable;  // NULL until asked for; only for texts that were used as mangled names
    char bytes[];
};

struct string_pool {
    struct chunk *chunks;
    struct text **slots;  // open addressing, at most three quarters full
    size_t slot_count;    // power of two
    size_t text_count;
};

struct string_pool *string_pool_open(void) {
    struct string_pool *store = calloc(1, sizeof *store);
    if (!store) return NULL;
    store->slots = calloc(FIRST_SLOT_COUNT, sizeof(struct text *));
    store->slot_count = FIRST_SLOT_COUNT;
    if (!store->slots) {
        free(store);
        return NULL;
    }
    return store;
}

void string_pool_close(struct string_pool *store) {
    if (!store) return;
    for (struct chunk *chunk = store->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(store->slots);
    free(store);
}

static size_t next_size(const struct string_pool *store, size_t bytes) {
    size_t size = store->chunks ? 2 * store->chunks->size : FIRST_CHUNK_BYTES;
    if (size > CHUNK_BYTES) size = CHUNK_BYTES;
    return bytes > size ? bytes : size;
}

void *string_pool_alloc(struct string_pool *store, size_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct chunk *chunk = store->chunks;
    if (!chunk || chunk->size - chunk->used < bytes) {
        size_t size = next_size(store, bytes);
        chunk = calloc(1, sizeof *chunk + size);
        if (!chunk) return NULL;
        chunk->size = size;
        chunk->next = store->chunks;
        store->chunks = chunk;
    }
    void *block = chunk->bytes + chunk->used;
    chunk->used += bytes;
    return block;
}

// FNV-1a, eight bytes a round while they last.
static uint64_t text_hash(const char *bytes, size_t length) {
    const uint64_t prime = 0x9e3779b97f4a7c15u;
    uint64_t hash = length * prime;
    for (; length >= sizeof hash; bytes += sizeof hash, length -= sizeof hash) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        hash = (hash ^ word) * prime;
        hash ^= hash >> 32;
    }
    for (; length; bytes++, length--) hash = (hash ^ (uint8_t)*bytes) * prime;
    return hash ^ (hash >> 29);
}

static bool string_pool_grow(struct string_pool *store) {
    size_t slot_count = store->slot_count * 2;
    struct text **slots = calloc(slot_count, sizeof(struct text *));
    if (!slots) return false;
    for (size_t i = 0; i < store->slot_count; i++) {
        if (!store->slots[i]) continue;
        size_t slot = store->slots[i]->hash & (slot_count - 1);
        while (slots[slot]) slot = (slot + 1) & (slot_count - 1);
        slots[slot] = store->slots[i];
    }
    free(store->slots);
    store->slots = slots;
    store->slot_count = slot_count;
    return true;
}

static struct text *string_pool_text(struct string_pool *store, const char *bytes, size_t length) {
    if (store->text_count >= store->slot_count / 4 * 3 && !string_pool_grow(store)) return NULL;
    uint64_t hash = text_hash(bytes, length);
    size_t slot = hash & (store->slot_count - 1);
    for (; store->slots[slot]; slot = (slot + 1) & (store->slot_count - 1)) {
        struct text *text = store->slots[slot];
        if (text->hash == hash && !strncmp(text->bytes, bytes, length) && !text->bytes[length])
            return text;
    }
    struct text *text = string_pool_alloc(store, sizeof *text + length + 1);
    if (!text) return NULL;
    text->hash = hash;
    memcpy(text->bytes, bytes, length);
    store->slots[slot] = text;
    store->text_count++;
    return text;
}

const char *string_pool_intern(struct string_pool *store, const char *text, size_t length) {
    struct text *found = string_pool_text(store, text, length);
    return found ? found->bytes : NULL;
}

const char *string_pool_readable(struct string_pool *store, const char *mangled) {
    struct text *text = string_pool_text(store, mangled, strlen(mangled));
    if (!text) return NULL;
    if (text->readable) return text->readable;
    char *name = name_readable(mangled);
    if (!name) return NULL;
    text->readable = string_pool_intern(store, name, strlen(name));
    free(name);
    return text->readable;
}

const char *string_pool_path(struct string_pool *store, const char *directory, const char *name) {
    size_t name_length = strlen(name);
    if (name[0] == '/' || !directory || !directory[0])
        return string_pool_intern(store, name, name_length);
    size_t directory_length = strlen(directory);
    if (directory_length > SIZE_MAX / 4 || name_length > SIZE_MAX / 4) return NULL;
    size_t length = directory_length + 1 + name_length;
    char *joined = malloc(length + 1);
    if (!joined) return NULL;
    snprintf(joined, length + 1, "%s/%s", directory, name);
    const char *path = string_pool_intern(store, joined, length);
    free(joined);
    return path;
}
