// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/table.h"

#include "runtime/sys/sys.h"

// Segments from this size on ask for large pages: a table that has come so far is filled evenly and
// looked up at random, and one that stays smaller would only waste them.
enum { HUGE_FROM_BYTES = 4 << 20 };

// Mean entries a bucket holds before the next one is split: 3.5 of 5.
enum { LOAD_NUMERATOR = 7, LOAD_DENOMINATOR = 2 };

static bool segment_make(struct bucket **segments, struct arena *arena, uint32_t index) {
    unsigned segment = 0;
    size_t buckets = TABLE_FIRST_BUCKETS;
    if (index >= TABLE_FIRST_BUCKETS) {
        segment = 29u - (unsigned)__builtin_clz(index);
        buckets = (size_t)TABLE_FIRST_BUCKETS << (segment - 1);
    }
    if (segment >= TABLE_SEGMENTS) return false;
    if (segments[segment]) return true;
    size_t bytes = buckets * sizeof(struct bucket);
    segments[segment] = arena_alloc(arena, bytes);
    if (segments[segment] && bytes >= HUGE_FROM_BYTES) sys_wish_huge(segments[segment], bytes);
    return segments[segment] != NULL;
}

bool table_init(struct table *table, struct arena *arena) {
    table->base = TABLE_FIRST_BUCKETS;
    table->bucket_count = TABLE_FIRST_BUCKETS;
    return segment_make(table->segments, arena, 0);
}

static struct bucket *overflow_of(const struct table *table, const struct bucket *bucket) {
    return bucket->overflow ? table_bucket_at(table->pool, bucket->overflow - 1) : NULL;
}

uint32_t table_find(const struct table *table, uint64_t hash,
                    bool (*is_it)(uint32_t id, uint32_t check), uint32_t check) {
    const struct bucket *bucket = table_bucket_at(table->segments, table_index(table, hash));
    for (; bucket; bucket = overflow_of(table, bucket)) {
#pragma GCC unroll 5
        for (int i = 0; i < BUCKET_ENTRIES; i++)
            if (unlikely(bucket->hash[i] == hash) && bucket->id[i] && is_it(bucket->id[i], check))
                return bucket->id[i];
    }
    return 0;
}

// Number + 1 of an empty overflow bucket, or 0.
static uint32_t pool_take(struct table *table, struct arena *arena) {
    uint32_t number = table->pool_free;
    if (number) {
        struct bucket *bucket = table_bucket_at(table->pool, number - 1);
        table->pool_free = bucket->overflow;
        *bucket = (struct bucket){.overflow = 0};
        return number;
    }
    if (!segment_make(table->pool, arena, table->pool_count)) return 0;
    return ++table->pool_count;
}

// Into the first free place of the bucket itself; false: it is full.
ALWAYS_INLINE bool bucket_put_near(struct bucket *bucket, uint64_t hash, uint32_t id) {
    int i = 0;
    while (i < BUCKET_ENTRIES && bucket->id[i]) i++;
    if (unlikely(i == BUCKET_ENTRIES)) return false;
    bucket->hash[i] = hash;
    compiler_barrier();
    bucket->id[i] = id;
    return true;
}

// Into one of its chain.
static NOINLINE bool bucket_put_far(struct table *table, struct arena *arena, struct bucket *bucket,
                                    uint64_t hash, uint32_t id) {
    do {
        if (!bucket->overflow) bucket->overflow = pool_take(table, arena);
        if (!bucket->overflow) return false;
        bucket = overflow_of(table, bucket);
    } while (!bucket_put_near(bucket, hash, id));
    return true;
}

// A bucket that is being filled, and how many entries it has.
struct filling {
    struct bucket *bucket;
    int count;
};

static struct filling filling_begin(struct bucket *bucket) {
    struct filling filling = {bucket, 0};
    while (filling.count < BUCKET_ENTRIES && bucket->id[filling.count]) filling.count++;
    return filling;
}

ALWAYS_INLINE bool filling_put(struct filling *filling, uint64_t hash, uint32_t id) {
    if (unlikely(filling->count == BUCKET_ENTRIES)) return false;
    filling->bucket->hash[filling->count] = hash;
    compiler_barrier();
    filling->bucket->id[filling->count++] = id;
    return true;
}

// Gives the entries of one bucket and its chain to it and the bucket `base` further.
static void bucket_split(struct table *table, struct arena *arena, uint32_t index) {
    struct bucket *place = table_bucket_at(table->segments, index);
    struct bucket part = *place;
    uint32_t number = 0;
    *place = (struct bucket){.overflow = 0};
    struct filling low = {place, 0};
    struct filling high = filling_begin(table_bucket_at(table->segments, index + table->base));
    for (;;) {
        for (int i = 0; i < BUCKET_ENTRIES; i++) {
            if (!part.id[i]) continue;
            struct filling *to = part.hash[i] & table->base ? &high : &low;
            if (!filling_put(to, part.hash[i], part.id[i]))
                bucket_put_far(table, arena, to->bucket, part.hash[i], part.id[i]);
        }
        if (number) {
            table_bucket_at(table->pool, number - 1)->overflow = table->pool_free;
            table->pool_free = number;
        }
        number = part.overflow;
        if (!number) return;
        part = *table_bucket_at(table->pool, number - 1);
    }
}

// The next split is that of the two buckets behind these: their lines come meanwhile. What lies
// behind a segment is nothing, which a prefetch may ask for.
static void split_prefetch(const struct table *table, uint32_t index) {
    __builtin_prefetch(table_bucket_at(table->segments, index) + 1, 1);
    __builtin_prefetch(table_bucket_at(table->segments, index + table->base) + 1, 1);
}

static void table_grow(struct table *table, struct arena *arena) {
    uint32_t index = table->bucket_count - table->base;
    if (!segment_make(table->segments, arena, table->bucket_count)) return;
    table->bucket_count++;
    bucket_split(table, arena, index);
    split_prefetch(table, index);
    if (table->bucket_count == table->base * 2) table->base *= 2;
}

bool table_insert(struct table *table, struct arena *arena, uint64_t hash, uint32_t id) {
    struct bucket *bucket = table_bucket_at(table->segments, table_index(table, hash));
    if (!bucket_put_near(bucket, hash, id) && !bucket_put_far(table, arena, bucket, hash, id))
        return false;
    table->entry_count++;
    if ((uint64_t)table->entry_count * LOAD_DENOMINATOR >
        (uint64_t)table->bucket_count * LOAD_NUMERATOR)
        table_grow(table, arena);
    return true;
}
