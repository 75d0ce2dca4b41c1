// SPDX-License-Identifier: Apache-2.0
// Answers made of JSON (jansson), taken down as a whole: what docs/howto/pools.md gives an arena.
//
//     cc -O2 -g documents.c -ljansson -o documents
//     ./documents             with malloc and free
//     ./documents arena       with the arena below for all that jansson allocates
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The arena of docs/howto/pools.md: chunks of 32 KiB, of which the first 16 bytes are its own.
// Blocks are cut from them one after the other, in units of 16 bytes. When the last block dies, the
// first chunk is begun again. For one thread.
enum { UNIT = 16, CHUNK_BYTES = 32768, BLOCK_MOST = 4096 };

struct chunk {
    struct chunk *next;
    size_t used;
};

static struct {
    struct chunk *first, *present;
    size_t live;
} arena;

static struct chunk *next_chunk(void) {
    struct chunk *next = arena.present ? arena.present->next : arena.first;
    if (!next) {
        next = malloc(CHUNK_BYTES);
        if (!next) return NULL;
        next->next = NULL;
        if (arena.present)
            arena.present->next = next;
        else
            arena.first = next;
    }
    next->used = UNIT;
    arena.present = next;
    return next;
}

static void *arena_allocate(size_t bytes) {
    struct chunk *chunk = arena.present;
    if (bytes > BLOCK_MOST) return malloc(bytes);
    bytes = bytes ? (bytes + UNIT - 1) / UNIT * UNIT : UNIT;
    if (!chunk || CHUNK_BYTES - chunk->used < bytes) chunk = next_chunk();
    if (!chunk) return NULL;
    void *block = (char *)chunk + chunk->used;
    chunk->used += bytes;
    arena.live++;
    return block;
}

static bool is_in_arena(const void *block) {
    for (struct chunk *chunk = arena.first; chunk; chunk = chunk->next)
        if ((uintptr_t)block - (uintptr_t)chunk < CHUNK_BYTES) return true;
    return false;
}

static void arena_release(void *block) {
    if (!block) return;
    if (!is_in_arena(block))
        free(block);
    else if (!--arena.live)
        arena.present = NULL;
}

enum { REQUESTS = 400, SHELVES = 8, ARTICLES = 8 };

static json_t *make_article(int number) {
    json_t *article = json_object();
    char name[32];
    snprintf(name, sizeof name, "article %d", number);
    json_object_set_new(article, "name", json_string(name));
    json_object_set_new(article, "price", json_real(number % 64 * 1.25));
    json_object_set_new(article, "in_stock", json_integer(number % 7));
    return article;
}

static json_t *make_answer(int request) {
    json_t *answer = json_array();
    for (int i = 0; i < SHELVES; i++) {
        json_t *shelf = json_array();
        json_array_append_new(answer, shelf);
        for (int j = 0; j < ARTICLES - request % 2; j++)
            json_array_append_new(shelf, make_article((request * SHELVES + i) * ARTICLES + j));
    }
    return answer;
}

static double sum_up(const json_t *answer) {
    double sum = 0;
    for (size_t i = 0; i < json_array_size(answer); i++) {
        const json_t *shelf = json_array_get(answer, i);
        for (size_t j = 0; j < json_array_size(shelf); j++) {
            const json_t *article = json_array_get(shelf, j);
            sum += json_real_value(json_object_get(article, "price")) *
                   (double)json_integer_value(json_object_get(article, "in_stock"));
        }
    }
    return sum;
}

int main(int argc, char **argv) {
    double sum = 0;
    if (argc > 1 && !strcmp(argv[1], "arena")) json_set_alloc_funcs(arena_allocate, arena_release);
    for (int request = 0; request < REQUESTS; request++) {
        json_t *answer = make_answer(request);
        sum += sum_up(answer);
        json_decref(answer);
    }
    printf("%.2f\n", sum);
    return 0;
}
