// SPDX-License-Identifier: Apache-2.0
#include "tool/go/buckets.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "tool/go/pages.h"

// As they lie in memory.
struct head {
    uint64_t next, next_of_all, kind, sum, size, depth;
};
struct counts {
    uint64_t allocs, frees, allocated_bytes, freed_bytes;
};
enum { CYCLES = 3, RECORDS = 1 + CYCLES, COUNTS_OF_BLOCKS = 2 };
struct record {
    struct counts published, future[CYCLES];
};

enum { KIND_MEMORY = 1, DEPTH_MOST = 1024 + 2, BUCKETS_MOST = 1 << 22 };

struct reading {
    struct go_pages pages;
    struct go_profile *profile;
    unsigned cycle;
    bool has_bytes;
    bool has_published;          // some bucket has
    struct counts *unpublished;  // of each, all cycles: what counts before the first collection
    size_t unpublished_room;
};

static bool bad(struct error *error, uint64_t address, const char *what) {
    return error_set(error, "the memory profile of Go in it cannot be read: at 0x%" PRIx64 " %s",
                     address, what);
}

static bool no_memory(struct error *error) {
    return error_set(error, "no memory for the profile of Go");
}

// The sum of runtime.stkbucket.
static uint64_t sum_of(const uint64_t *stack, size_t depth, uint64_t size) {
    enum { UP = 10, DOWN = 6, LAST_UP = 3, LAST_DOWN = 11 };
    uint64_t sum = 0;
    for (size_t i = 0; i <= depth; i++) {
        sum += i < depth ? stack[i] : size;
        sum += sum << UP;
        sum ^= sum >> DOWN;
    }
    sum += sum << LAST_UP;
    return sum ^ sum >> LAST_DOWN;
}

static void add(struct counts *sum, const struct counts *counts) {
    sum->allocs += counts->allocs;
    sum->frees += counts->frees;
    sum->allocated_bytes += counts->allocated_bytes;
    sum->freed_bytes += counts->freed_bytes;
}

static struct go_bucket bucket_of(const struct counts *counts, size_t first, size_t depth) {
    return (struct go_bucket){.first = first,
                              .depth = (uint32_t)depth,
                              .allocs = counts->allocs,
                              .frees = counts->frees,
                              .allocated_bytes = counts->allocated_bytes,
                              .freed_bytes = counts->freed_bytes};
}

static bool add_stack(struct reading *reading, const uint64_t *stack, size_t depth) {
    for (size_t i = 0; i < depth; i++) {
        uint64_t *slot = array_push(&reading->profile->addresses);
        if (!slot) return false;
        *slot = stack[i];
    }
    return true;
}

static bool keep_unpublished(struct reading *reading, const struct counts *counts) {
    const size_t index = reading->profile->buckets.count - 1;
    if (index >= reading->unpublished_room) {
        const size_t room = reading->unpublished_room ? 2 * reading->unpublished_room : 256;
        struct counts *grown = realloc(reading->unpublished, room * sizeof *grown);
        if (!grown) return false;
        reading->unpublished = grown;
        reading->unpublished_room = room;
    }
    reading->unpublished[index] = *counts;
    return true;
}

// More than a process can have had.
static bool is_impossible(const struct counts *counts) {
    const uint64_t most = UINT64_C(1) << 53;
    return counts->allocs > most || counts->frees > most || counts->allocated_bytes > most ||
           counts->freed_bytes > most;
}

static bool add_bucket(struct reading *reading, const struct record *record, const uint64_t *stack,
                       size_t depth) {
    struct counts published = record->published, all = published;
    add(&published, &record->future[reading->cycle]);
    for (size_t i = 0; i < CYCLES; i++) add(&all, &record->future[i]);
    if (published.allocs || published.frees) reading->has_published = true;
    const size_t first = reading->profile->addresses.count;
    struct go_bucket *bucket = array_push(&reading->profile->buckets);
    if (!bucket) return false;
    *bucket = bucket_of(&published, first, depth);
    return add_stack(reading, stack, depth) && keep_unpublished(reading, &all);
}

// Works bytes out from blocks, which all have the size of their bucket.
static void fill_bytes(const uint64_t *blocks, uint64_t size, struct record *record) {
    struct counts *all[RECORDS] = {&record->published, &record->future[0], &record->future[1],
                                   &record->future[2]};
    for (size_t i = 0; i < RECORDS; i++) {
        const uint64_t allocs = blocks[i * COUNTS_OF_BLOCKS];
        const uint64_t frees = blocks[i * COUNTS_OF_BLOCKS + 1];
        *all[i] = (struct counts){.allocs = allocs, .frees = frees};
        if (__builtin_mul_overflow(allocs, size, &all[i]->allocated_bytes) ||
            __builtin_mul_overflow(frees, size, &all[i]->freed_bytes))
            all[i]->allocated_bytes = UINT64_MAX;  // which cannot be true
    }
}

static bool read_record(struct reading *reading, uint64_t address, uint64_t size,
                        struct record *record) {
    uint64_t blocks[RECORDS * COUNTS_OF_BLOCKS];
    if (reading->has_bytes) return go_pages_read(&reading->pages, address, record, sizeof *record);
    if (!go_pages_read(&reading->pages, address, blocks, sizeof blocks)) return false;
    fill_bytes(blocks, size, record);
    return true;
}

// Sets `*next` to the following one.
static bool read_bucket(struct reading *reading, uint64_t address, uint64_t *next,
                        struct error *error) {
    struct head head;
    struct record record;
    uint64_t stack[DEPTH_MOST];
    if (!go_pages_read(&reading->pages, address, &head, sizeof head))
        return bad(error, address, "is no memory");
    if (head.kind != KIND_MEMORY || head.depth > DEPTH_MOST)
        return bad(error, address, "is no bucket of it");
    const size_t stack_bytes = head.depth * sizeof *stack;
    if (!go_pages_read(&reading->pages, address + sizeof head, stack, stack_bytes) ||
        !read_record(reading, address + sizeof head + stack_bytes, head.size, &record))
        return bad(error, address, "a bucket is cut off");
    if (sum_of(stack, head.depth, head.size) != head.sum)
        return bad(error, address, "is no bucket of it, or of an unknown form");
    bool is_odd = is_impossible(&record.published);
    for (size_t i = 0; i < CYCLES; i++) is_odd = is_odd || is_impossible(&record.future[i]);
    if (is_odd) return bad(error, address, "a bucket says more than there can be");
    *next = head.next_of_all;
    return add_bucket(reading, &record, stack, head.depth) || no_memory(error);
}

bool go_profile_is_bucket(const struct memory_reader *memory, uint64_t address) {
    struct head head;
    uint64_t stack[DEPTH_MOST];
    return memory_read(memory, address, &head, sizeof head) && head.kind == KIND_MEMORY &&
           head.depth && head.depth <= DEPTH_MOST &&
           memory_read(memory, address + sizeof head, stack, head.depth * sizeof *stack) &&
           sum_of(stack, head.depth, head.size) == head.sum;
}

// One that turns in a circle is met again at a power of two of steps.
static bool read_list(struct reading *reading, uint64_t address, struct error *error) {
    uint64_t mark = 0;
    for (size_t steps = 1, turn = 1; address; steps++) {
        if (address == mark) return bad(error, address, "its list turns in a circle");
        if (steps > BUCKETS_MOST) return bad(error, address, "its list has no end");
        if (steps == turn) {
            mark = address;
            turn *= 2;
        }
        if (!read_bucket(reading, address, &address, error)) return false;
    }
    return true;
}

// Before the first collection nothing is published, and everything counts.
static void settle(struct reading *reading) {
    struct go_profile *profile = reading->profile;
    if (reading->has_published) return;
    for (size_t i = 0; i < profile->buckets.count; i++) {
        struct go_bucket *bucket = &profile->buckets.items[i];
        *bucket = bucket_of(&reading->unpublished[i], bucket->first, bucket->depth);
    }
}

static bool read_all(struct reading *reading, const struct go_profile_place *place,
                     struct error *error) {
    uint64_t first;
    uint32_t cycle;
    if (!place->buckets)
        first = 0;  // a search found none
    else if (!go_pages_read(&reading->pages, place->buckets, &first, sizeof first))
        return bad(error, place->buckets, "the variables are not there");
    if (!go_pages_read(&reading->pages, place->cycle, &cycle, sizeof cycle) ||
        !go_pages_read(&reading->pages, place->rate, &reading->profile->rate,
                       sizeof reading->profile->rate))
        return bad(error, place->buckets, "the variables are not there");
    if (reading->profile->rate > INT64_MAX) reading->profile->rate = 0;  // negative: as 0
    reading->has_bytes = place->has_bytes;
    reading->cycle = (place->is_shifted ? cycle >> 1 : cycle) % CYCLES;
    if (!read_list(reading, first, error)) return false;
    settle(reading);
    return true;
}

bool go_profile_read(const struct memory_reader *memory, const struct go_profile_place *place,
                     struct go_profile *profile, struct error *error) {
    struct reading *reading = malloc(sizeof *reading);
    *profile = (struct go_profile){0};
    if (!reading) return no_memory(error);
    *reading = (struct reading){.profile = profile};
    go_pages_start(&reading->pages, memory);
    bool is_ok = read_all(reading, place, error);
    free(reading->unpublished);
    free(reading);
    if (!is_ok) go_profile_free(profile);
    return is_ok;
}

void go_profile_free(struct go_profile *profile) {
    array_free(&profile->addresses);
    array_free(&profile->buckets);
    *profile = (struct go_profile){0};
}

// Bounds what no memory can hold.
static uint64_t number_of(double value) {
    const double most = (double)(UINT64_C(1) << 62);
    return value < most ? (uint64_t)value : (uint64_t)most;
}

void go_profile_scale(uint64_t rate, uint64_t *count, uint64_t *bytes) {
    if (!*count || !*bytes) {
        *count = *bytes = 0;
        return;
    }
    if (rate <= 1) return;
    const double average = (double)*bytes / (double)*count;
    const double scale = 1 / (1 - exp(-average / (double)rate));
    *count = number_of((double)*count * scale);
    *bytes = number_of((double)*bytes * scale);
}
