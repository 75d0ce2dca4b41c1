// SPDX-License-Identifier: Apache-2.0
// The hash table against plain arrays: what was entered is found, what was not is not, through
// every split of a bucket and with chains of any length.
#include "runtime/stack/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"

enum { ENTRIES = 200000, TWIN_HASHES = 50, CROWDED = 3000, CHECK_EVERY = 20000 };

static struct entry {
    uint64_t hash;
    uint32_t check;
} entries[ENTRIES + 1];  // by id

static bool is_it(uint32_t id, uint32_t check) {
    return entries[id].check == check;
}

// Most hashes are of their own. Some are the same for many ids, others share a bucket until the
// table is large.
static uint64_t hash_pick(uint64_t *seed, uint32_t id) {
    const uint64_t low_bits = 0x12345;
    const unsigned shared_bits = 20;
    uint64_t dice = random_below(seed, 100);
    if (dice < 15) {
        uint64_t twin = random_below(seed, TWIN_HASHES);
        return random_next(&twin);
    }
    if (dice < 17 && id < CROWDED * 50) return random_next(seed) << shared_bits | low_bits;
    if (dice < 18) return random_below(seed, 64);
    return random_next(seed);
}

static void check_finds(const struct table *table, uint32_t count) {
    for (uint32_t id = 1; id <= count; id++)
        assert_int_equal(table_find(table, entries[id].hash, is_it, entries[id].check), id);
}

// Walks all buckets: every entry lies in its own bucket or that one's chain, and none is lost.
static void check_structure(const struct table *table, uint32_t count) {
    uint32_t seen = 0;
    assert_true(table->bucket_count >= table->base && table->bucket_count < table->base * 2);
    for (uint32_t index = 0; index < table->bucket_count; index++) {
        const struct bucket *bucket = table_bucket_at(table->segments, index);
        for (;;) {
            for (int i = 0; i < BUCKET_ENTRIES; i++) {
                if (!bucket->id[i]) continue;
                assert_int_equal(bucket->hash[i], entries[bucket->id[i]].hash);
                assert_int_equal(table_index(table, bucket->hash[i]), index);
                seen++;
            }
            if (!bucket->overflow) break;
            assert_true(bucket->overflow <= table->pool_count);
            bucket = table_bucket_at(table->pool, bucket->overflow - 1);
        }
    }
    assert_int_equal(seen, count);
    assert_int_equal(table->entry_count, count);
}

static void test_random_inserts(void **state) {
    (void)state;
    struct arena arena = {0};
    struct table table = {0};
    uint64_t seed = 1;
    assert_true(table_init(&table, &arena));
    for (uint32_t id = 1; id <= ENTRIES; id++) {
        entries[id] = (struct entry){hash_pick(&seed, id), id};
        assert_int_equal(table_find(&table, entries[id].hash, is_it, id), 0);
        assert_true(table_insert(&table, &arena, entries[id].hash, id));
        if (id % CHECK_EVERY) continue;
        check_structure(&table, id);
        check_finds(&table, id);
    }
    for (int i = 0; i < ENTRIES; i++)
        assert_int_equal(table_find(&table, random_next(&seed), is_it, 1), 0);
    assert_true((uint64_t)table.bucket_count * 7 >= (uint64_t)ENTRIES * 2 - 7);
}

// Checked after every insertion while the table is small: each split is seen.
static void test_every_split(void **state) {
    (void)state;
    const uint32_t count = 1500;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct arena arena = {0};
        struct table table = {0};
        uint64_t random = seed;
        assert_true(table_init(&table, &arena));
        for (uint32_t id = 1; id <= count; id++) {
            entries[id] = (struct entry){hash_pick(&random, id), id};
            assert_true(table_insert(&table, &arena, entries[id].hash, id));
            check_structure(&table, id);
        }
        check_finds(&table, count);
    }
}

// A table in which nothing can be allocated any more keeps what it has.
static void test_without_memory(void **state) {
    (void)state;
    struct arena arena = {0};
    struct table table = {0};
    assert_true(table_init(&table, &arena));
    arena.at = arena.end;
    arena.next_bytes = (size_t)1 << 60;
    uint32_t count = 0, refused = 0;
    for (uint32_t id = 1; id <= 200; id++) {
        uint64_t seed = id;
        entries[count + 1] = (struct entry){random_next(&seed), count + 1};
        if (table_insert(&table, &arena, entries[count + 1].hash, count + 1))
            count++;
        else
            refused++;
    }
    assert_true(count > 20 && refused > 100);
    check_structure(&table, count);
    check_finds(&table, count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_inserts),
        cmocka_unit_test(test_every_split),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
