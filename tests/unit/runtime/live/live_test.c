// SPDX-License-Identifier: Apache-2.0
// The live map against an array of blocks. Blocks of the narrow mode are laid out as glibc does: a
// word before each with its chunk's size and flags; those of the wide mode are addresses alone.
#include "runtime/live/live.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"

enum { LEAF_BYTES = 1 << LIVE_LEAF_SHIFT, LEAVES = 6, AREA_BYTES = LEAVES * LEAF_BYTES };
enum { UNIT_BYTES = 8, UNITS = AREA_BYTES / UNIT_BYTES, BLOCKS_MAX = 60000, STEPS = 400000 };
enum { CHUNK_MIN = 32, FLAG_MMAPPED = 2, FLAG_IN_USE = 1, SLACK_MAX = 5000, RARE_PERCENT = 5 };

struct block {
    uintptr_t address;
    uint64_t extent;  // bytes up to which no other block begins
    uint64_t size;
    uint32_t id;
};

struct model {
    uintptr_t base;
    uint64_t seed;
    uint32_t count;
    struct block blocks[BLOCKS_MAX];
    uint32_t owner[UNITS];        // block index + 1 for each unit that one covers
    uint32_t left_behind[UNITS];  // at a block's first unit: id that was never taken out
};

static struct model *model;

static void model_start(uintptr_t base, uint64_t seed, bool is_wide) {
    memset(model, 0, sizeof *model);
    model->base = base;
    model->seed = seed;
    memset(live_narrow, 0, sizeof live_narrow);
    assert_true(live_init(is_wide));
}

static uint32_t unit_of(uintptr_t address) {
    return (uint32_t)((address - model->base) / UNIT_BYTES);
}

static bool is_room(uintptr_t address, uint64_t extent) {
    if (address + extent > model->base + AREA_BYTES) return false;
    for (uint32_t unit = unit_of(address); unit < unit_of(address + extent); unit++)
        if (model->owner[unit]) return false;
    return true;
}

static void model_cover(const struct block *block, uint32_t value) {
    uint32_t end = unit_of(block->address + block->extent);
    for (uint32_t unit = unit_of(block->address); unit < end; unit++) model->owner[unit] = value;
}

static void model_add(struct block block) {
    model->blocks[model->count++] = block;
    model_cover(&block, model->count);
}

static void model_remove(uint32_t index) {
    model_cover(&model->blocks[index], 0);
    model->blocks[index] = model->blocks[--model->count];
    if (index < model->count) model_cover(&model->blocks[index], index + 1);
}

// Half of the places lie around the borders of leaves.
static uintptr_t place_pick(uint64_t step_bytes) {
    const uint64_t around = 4096;
    uint64_t offset = random_below(&model->seed, AREA_BYTES);
    if (random_chance(&model->seed, 50))
        offset = (1 + random_below(&model->seed, LEAVES - 1)) * LEAF_BYTES - around / 2 +
                 random_below(&model->seed, around);
    return model->base + offset / step_bytes * step_bytes;
}

static uint64_t slack_pick(uint64_t usable) {
    static const uint64_t borders[] = {0, 61, 62, 63, 64, 126, 127, 128, 191};
    uint64_t slack = random_below(&model->seed, 25);
    if (random_chance(&model->seed, 20)) slack = random_below(&model->seed, SLACK_MAX + 1);
    if (random_chance(&model->seed, 20)) slack = borders[random_below(&model->seed, 9)];
    return slack < usable ? slack : usable;
}

static struct block narrow_pick(void) {
    const uint64_t step = 16;
    uint64_t flags = random_chance(&model->seed, RARE_PERCENT) ? FLAG_MMAPPED : FLAG_IN_USE;
    struct block block = {.address = place_pick(step)};
    block.extent = CHUNK_MIN + step * random_below(&model->seed, 12);
    if (random_chance(&model->seed, 20)) block.extent += step * random_below(&model->seed, 400);
    if (!is_room(block.address, block.extent) || block.address == model->base) return block;
    *(uint64_t *)(block.address - 8) = block.extent | flags;
    uint64_t usable = block.extent - (flags == FLAG_MMAPPED ? 16 : 8);
    block.size = usable - slack_pick(usable);
    block.id = 1 + (uint32_t)random_below(&model->seed, LIVE_ID_LIMIT - 1);
    return block;
}

static struct block wide_pick(void) {
    const uint64_t step = 8, four_gib = 1ull << 32;
    static const uint64_t around[] = {0xfffffffe, 0xffffffff, 0x100000000, 0x100000001, 1ull << 40};
    struct block block = {.address = place_pick(step)};
    block.size = random_below(&model->seed, 256);
    if (random_chance(&model->seed, 20)) block.size = random_below(&model->seed, four_gib);
    if (random_chance(&model->seed, 10)) block.size = around[random_below(&model->seed, 5)];
    block.extent = block.size < 32 ? (block.size + 7) / step * step + (block.size ? 0 : step) : 32;
    if (!is_room(block.address, block.extent)) return block;
    block.id = 1 + (uint32_t)random_below(&model->seed, UINT32_MAX - 1);
    return block;
}

static int fast_steps;  // in the wide mode

// What an unseen free left in the granule of the address; none when it was overwritten since.
static uint32_t left_behind_take(uintptr_t address, bool is_wide) {
    uintptr_t granule = is_wide ? address : address & ~(uintptr_t)31;
    uint32_t id = 0;
    for (uintptr_t at = granule; at < granule + (is_wide ? 8 : 32); at += UNIT_BYTES) {
        if (model->left_behind[unit_of(at)]) id = model->left_behind[unit_of(at)];
        model->left_behind[unit_of(at)] = 0;
    }
    return id;
}

static bool is_extended(const struct block *block, bool is_wide) {
    if (is_wide) return block->size >= LIVE_SIZE_ESCAPE;
    return live_room(block->address) - block->size >= LIVE_SLACK_ESCAPE;
}

// The fast way in, where it takes the block. It never does where something was left behind.
static bool wide_enter(const struct block *block, uint32_t expected) {
    uint64_t word, *slot = live_wide_insert_slot(block->address, block->id, block->size, &word);
    if (!slot) return false;
    assert_int_equal(expected, 0);
    *slot = word;
    fast_steps++;
    return true;
}

static bool wide_take(const struct block *block) {
    struct live_block taken;
    uint64_t *slot = live_wide_take_slot(block->address, &taken);
    assert_int_equal(!slot, block->size >= LIVE_SIZE_ESCAPE);
    if (!slot) return false;
    assert_int_equal(taken.id, block->id);
    assert_int_equal(taken.size, block->size);
    *slot = 0;
    fast_steps++;
    return true;
}

static void step_insert(bool is_wide) {
    struct block block = is_wide ? wide_pick() : narrow_pick();
    struct live_block stale = {0, 0};
    if (!block.id || model->count == BLOCKS_MAX) return;
    uint32_t expected = left_behind_take(block.address, is_wide);
    if (is_extended(&block, is_wide))
        left_behind_take(block.address + (is_wide ? 16 : 32), is_wide);
    bool is_entered = is_wide && random_chance(&model->seed, 70) && wide_enter(&block, expected);
    if (!is_entered) {
        assert_true(live_insert(block.address, block.id, block.size, &stale));
        assert_int_equal(stale.id, expected);
    }
    model_add(block);
}

static void step_take(void) {
    if (!model->count) return;
    uint32_t index = (uint32_t)random_below(&model->seed, model->count);
    struct block block = model->blocks[index];
    struct live_block taken;
    if (!live.is_wide || random_chance(&model->seed, 30) || !wide_take(&block)) {
        taken = live_take(block.address);
        assert_int_equal(taken.id, block.id);
        assert_int_equal(taken.size, block.size);
    }
    taken = live_take(block.address);
    assert_int_equal(taken.id, 0);
    model_remove(index);
}

// The allocator gets the block back behind the map's back.
static void step_leave_behind(bool is_wide) {
    if (!model->count) return;
    uint32_t index = (uint32_t)random_below(&model->seed, model->count);
    struct block block = model->blocks[index];
    if (is_extended(&block, is_wide)) return;
    model->left_behind[unit_of(block.address)] = block.id;
    model_remove(index);
}

// Tells whether any word of a leaf could be taken for the address of a live block.
static void check_no_word_is_an_address(void) {
    size_t leaf_words =
        live.is_wide ? (LEAF_BYTES >> LIVE_WIDE_SHIFT) : (LEAF_BYTES >> LIVE_NARROW_SHIFT) / 2;
    for (int i = 0; i < LEAVES; i++) {
        const uint64_t *words = live_leaf(model->base + (uintptr_t)i * LEAF_BYTES);
        for (size_t k = 0; words && k < leaf_words; k++) {
            bool is_inside = words[k] >= model->base && words[k] < model->base + AREA_BYTES;
            assert_false(is_inside && model->owner[unit_of(words[k])]);
        }
    }
}

static uint64_t mix(uint32_t id, uint64_t size) {
    uint64_t state = size * 31 + id;
    return random_next(&state);
}

struct seen {
    uint64_t count, sum;
};

static void see(void *context, uintptr_t address, uint32_t id, uint64_t size) {
    struct seen *seen = context;
    seen->count++;
    seen->sum += mix(address ^ id, size);
}

static void check_each(void) {
    struct seen seen = {0, 0}, expected = {0, 0};
    live_each(see, &seen);
    for (uint32_t i = 0; i < model->count; i++)
        see(&expected, model->blocks[i].address, model->blocks[i].id, model->blocks[i].size);
    assert_int_equal(seen.count, expected.count);
    assert_int_equal(seen.sum, expected.sum);
}

static void run_steps(bool is_wide, unsigned unseen_percent) {
    const int checks = 8;
    for (int step = 0; step < STEPS; step++) {
        uint64_t dice = random_below(&model->seed, 100);
        if (dice < unseen_percent)
            step_leave_behind(is_wide);
        else if (dice < 45)
            step_take();
        else
            step_insert(is_wide);
        if (step % (STEPS / checks) == 0) check_no_word_is_an_address();
        if (step % (STEPS / checks) == 0 && !unseen_percent) check_each();
    }
    while (model->count) step_take();
    if (!unseen_percent) check_each();
}

static uintptr_t area_map(void) {
    uintptr_t at = (uintptr_t)mmap(NULL, AREA_BYTES + LEAF_BYTES, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_int_not_equal(at, (uintptr_t)MAP_FAILED);
    return (at + LEAF_BYTES - 1) & ~(uintptr_t)(LEAF_BYTES - 1);
}

static void test_narrow(void **state) {
    (void)state;
    model_start(area_map(), 1, false);
    run_steps(false, 0);
}

static void test_narrow_with_unseen_frees(void **state) {
    (void)state;
    model_start(area_map(), 2, false);
    run_steps(false, 10);
}

static void test_wide(void **state) {
    (void)state;
    model_start((uintptr_t)0x555540000000, 3, true);
    fast_steps = 0;
    run_steps(true, 0);
    assert_true(fast_steps > STEPS / 4);
}

static void test_wide_with_unseen_frees(void **state) {
    (void)state;
    model_start((uintptr_t)0x7f5540000000, 4, true);
    run_steps(true, 10);
}

static void test_what_does_not_fit_is_refused(void **state) {
    (void)state;
    struct live_block stale;
    model_start(area_map(), 5, false);
    uintptr_t address = model->base + 64;
    *(uint64_t *)(address - 8) = (1ull << 34) | FLAG_MMAPPED;
    assert_false(live_insert(address, LIVE_ID_LIMIT, 1ull << 33, &stale));
    assert_false(live_insert(address, 1, 8, &stale));
    assert_int_equal(live_take(address).id, 0);
    assert_int_equal(live_take((uintptr_t)1 << 46).id, 0);
}

// A block of glibc: chunk of `extent` bytes at the address.
static void chunk_write(uintptr_t address, uint64_t extent) {
    *(uint64_t *)(address - 8) = extent | FLAG_IN_USE;
}

// What memalign skipped at the beginning of a mapping, beyond the smallest mapping.
static void test_waste_of_a_mapping_is_in_whole_pages(void **state) {
    (void)state;
    static uint64_t chunk[4];
    const uint64_t size = 200000, most = SYS_PAGE_MOST;
    model_start(area_map(), 5, false);
    for (uint64_t page = SYS_PAGE_LEAST; page <= most; page *= 4) {
        sys_page_known = (uint32_t)page;
        uint64_t plain = (size + 16 + page - 1) / page * page;
        chunk[0] = 0;
        chunk[1] = plain | FLAG_MMAPPED;
        assert_int_equal(live_waste((uintptr_t)&chunk[2], size), 0);
        chunk[0] = 4 * page - 64;
        chunk[1] = (plain + 64) | FLAG_MMAPPED;
        assert_int_equal(live_waste((uintptr_t)&chunk[2], size), 4 * page);
    }
    sys_page_known = 0;
}

static long page_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

// The fast way into slots that were never touched: no page of them is mapped twice, on x86-64.
static void test_page_of_slots_is_one_fault(void **state) {
    (void)state;
    const uintptr_t step = (uintptr_t)sys_page_bytes() / sizeof(uint32_t) << LIVE_NARROW_SHIFT;
    const uint32_t first = 64, pages = LEAF_BYTES / step;
    struct live_block stale;
    struct live_near near = {.start = LIVE_NEAR_NONE};
    uint32_t slack = 0;
    uint64_t header;
#if !defined(__x86_64__)
    skip();
#endif
    model_start(area_map(), 6, false);
    for (uint32_t i = 0; i < pages; i++) chunk_write(model->base + first + i * step, CHUNK_MIN);
    assert_true(live_insert(model->base + first, 1, 20, &stale));  // makes the leaf
    long before = page_faults();
    for (uint32_t i = 1; i < pages; i++) {
        uintptr_t block = model->base + first + i * step;
        uint32_t *slot = live_insert_slot(&near, block, 20, &header, &slack);
        assert_non_null(slot);
        *slot = live_narrow_word(block, 1, slack);
    }
    long faults = page_faults() - before;
    assert_in_range(faults, 1, pages + pages / 4);
    assert_int_equal(live_take(model->base + first + step).size, 20);
}

// The last slot of a leaf extends a block; the first slot of the next leaf is another's own.
static void test_extension_before_a_border(void **state) {
    (void)state;
    struct live_block stale;
    struct seen seen = {0, 0}, expected = {0, 0};
    model_start(area_map(), 6, false);
    uintptr_t border = model->base + LEAF_BYTES, first = border - 64, second = border + 16;
    chunk_write(first, second - first);
    chunk_write(second, CHUNK_MIN);
    assert_true(live_insert(first, 11, live_room(first) - LIVE_SLACK_ESCAPE, &stale));
    assert_true(live_insert(second, 12, live_room(second), &stale));
    live_each(see, &seen);
    see(&expected, first, 11, live_room(first) - LIVE_SLACK_ESCAPE);
    see(&expected, second, 12, live_room(second));
    assert_int_equal(seen.count, expected.count);
    assert_int_equal(seen.sum, expected.sum);
}

// A block in the last slot of a leaf is extended by the first slot of the next one.
static void check_extension_over_a_border(uintptr_t block, uint64_t size) {
    struct live_block stale;
    struct seen seen = {0, 0}, expected = {0, 0};
    uintptr_t border = model->base + LEAF_BYTES, other = border + 4096;
    if (!live.is_wide) {
        chunk_write(block, 2048);
        chunk_write(other, CHUNK_MIN);
    }
    assert_true(live_insert(block, 11, size, &stale));
    assert_true(live_insert(other, 12, 20, &stale));
    live_each(see, &seen);
    see(&expected, block, 11, size);
    see(&expected, other, 12, 20);
    assert_int_equal(seen.count, expected.count);
    assert_int_equal(seen.sum, expected.sum);
    assert_int_equal(live_take(block).size, size);
}

static void test_extension_over_a_border(void **state) {
    (void)state;
    model_start(area_map(), 9, false);
    check_extension_over_a_border(model->base + LEAF_BYTES - 32, 100);
    model_start(model->base, 9, false);
    check_extension_over_a_border(model->base + LEAF_BYTES - 16, 1);
    model_start((uintptr_t)0x555540000000, 9, true);
    check_extension_over_a_border(model->base + LEAF_BYTES - 16, 1ull << 33);
    model_start((uintptr_t)0x555540000000, 9, true);
    check_extension_over_a_border(model->base + LEAF_BYTES - 8, 1ull << 33);
}

enum { THREADS = 4, SHARED_LEAVES = 400 };

// Each thread has blocks of its own in leaves that all of them need at the same time.
static void *fill_leaves(void *argument) {
    uintptr_t number = (uintptr_t)argument;
    struct live_block stale;
    for (uintptr_t leaf = 0; leaf < SHARED_LEAVES; leaf++) {
        uintptr_t address = model->base + leaf * LEAF_BYTES + 64 * (1 + number);
        if (!live_insert(address, (uint32_t)(leaf * THREADS + number + 1), 8, &stale) || stale.id)
            abort();
    }
    return NULL;
}

static void test_threads_share_leaves(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (int round = 0; round < 3; round++) {
        model_start((uintptr_t)0x555540000000 + (uintptr_t)round * SHARED_LEAVES * LEAF_BYTES, 10,
                    true);
        for (uintptr_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, fill_leaves, (void *)i), 0);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        for (uintptr_t i = 0; i < SHARED_LEAVES * THREADS; i++) {
            uintptr_t address = model->base + i / THREADS * LEAF_BYTES + 64 * (1 + i % THREADS);
            assert_int_equal(live_take(address).id, i + 1);
        }
        uint32_t leaves = 0;
        for (uintptr_t i = 0; i < SHARED_LEAVES; i++)
            leaves += live_leaf(model->base + i * LEAF_BYTES) != NULL;
        assert_int_equal(leaves, SHARED_LEAVES);
    }
}

// One block in each page of slots of all leaves but the last.
static void fill_all_but_last(uintptr_t base, uint32_t leaves, uint32_t each_bytes) {
    struct live_block stale;
    for (uintptr_t at = 64; at < (uintptr_t)leaves * LEAF_BYTES; at += each_bytes)
        assert_true(live_insert(base + at, 1, 20, &stale));
    assert_true(live_insert(base + (uintptr_t)leaves * LEAF_BYTES + 64, 2, 20, &stale));
}

static bool is_at_large_page(uintptr_t address) {
    return (uintptr_t)live_leaf(address) % (2 << 20) == 0;
}

// The wide mode, whose leaves are as large as such a page.
static void test_a_full_heap_goes_on_in_large_pages(void **state) {
    (void)state;
    const uint32_t before = 16, page_of_slots = 8192, more = 12;
    const uintptr_t base = 0x555540000000;
    uint32_t aligned = 0;
    model_start(base, 12, true);
    fill_all_but_last(base, before + more, page_of_slots);
    for (uint32_t i = 0; i <= more; i++)
        aligned += is_at_large_page(base + (uintptr_t)(before + i) * LEAF_BYTES);
    assert_int_equal(aligned, more + 1);
    assert_int_equal(live_take(base + (uintptr_t)(before + more) * LEAF_BYTES + 64).id, 2);
}

// Few blocks touch few pages of slots, and go on to.
static void test_a_heap_of_large_blocks_has_no_large_pages(void **state) {
    (void)state;
    const uint32_t before = 16, more = 12;
    const uintptr_t base = 0x555540000000;
    model_start(base, 12, true);
    fill_all_but_last(base, before + more, LEAF_BYTES / 4);
    uint64_t untouched = (uint64_t)live_untouched_bytes();
    uint64_t touched = (uint64_t)(before + more + 1) * LEAF_BYTES / 2 - untouched;
    assert_true(touched < (uint64_t)(before + more + 1) * 4 * SYS_PAGE_MOST);
}

// Four leaves of the narrow mode share one.
static void test_leaves_share_a_large_page(void **state) {
    (void)state;
    const uintptr_t group = 4 * LEAF_BYTES, bytes = 8 * group, step = 16384;
    uintptr_t at = (uintptr_t)mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_int_not_equal(at, (uintptr_t)MAP_FAILED);
    uintptr_t base = (at + group - 1) / group * group, last = base + 6 * group;
    model_start(base, 13, false);
    for (uintptr_t block = base + 64; block <= last + 64; block += step) {
        struct live_block stale;
        chunk_write(block, CHUNK_MIN);
        assert_true(live_insert(block, 1, 20, &stale));
    }
    for (uintptr_t i = 0; i < 4; i++)
        assert_ptr_equal(live_leaf(base + 4 * group + i * LEAF_BYTES),
                         (uint8_t *)live_leaf(base + 4 * group) + i * (LEAF_BYTES / 8));
    assert_true(is_at_large_page(last));
    assert_int_equal(live_take(base + 5 * group + 64).id, 1);
    munmap((void *)at, bytes);
}

// The free of a block with much slack is not seen; a small block lands on its second slot. What
// that slot holds is no block.
static void test_block_on_a_forgotten_extension(void **state) {
    (void)state;
    struct live_block stale;
    static const uint64_t slacks[] = {63, 64, 126, 127, 190, 191, 5000};
    for (size_t i = 0; i < sizeof slacks / sizeof slacks[0]; i++) {
        model_start(area_map(), 7, false);
        uintptr_t old = model->base + LEAF_BYTES - 64, new = old + 32;
        chunk_write(old, 8192);
        assert_true(live_insert(old, 21, live_room(old) - slacks[i], &stale));
        chunk_write(new, CHUNK_MIN);
        assert_true(live_insert(new, 22, 20, &stale));
        assert_true(stale.id == 21);
        assert_int_equal(live_take(new).id, 22);
        assert_int_equal(live_take(new).id, 0);
        assert_int_equal(live_take(old).id, 0);
    }
}

static void test_wide_block_on_a_forgotten_extension(void **state) {
    (void)state;
    struct live_block stale;
    model_start((uintptr_t)0x555540000000, 8, true);
    uintptr_t old = model->base + LEAF_BYTES - 32, new = old + 16;
    assert_true(live_insert(old, 21, (7ull << 32) + 9, &stale));
    assert_true(live_insert(new, 22, 20, &stale));
    assert_int_equal(stale.id, 21);
    assert_int_equal(live_take(new).id, 22);
    assert_int_equal(live_take(old).id, 0);
}

// A birth for each granule of a leaf, each in a place of its own behind all slots; that of a block
// outlives what is entered beside it.
static void check_births(bool is_wide, uintptr_t base) {
    struct live_block stale;
    model_start(base, 10, is_wide);
    live.has_births = true;
    assert_null(live_birth(base));
    uintptr_t step = is_wide ? 1 << LIVE_WIDE_SHIFT : 1 << LIVE_NARROW_SHIFT, last = LEAF_BYTES;
    if (!is_wide) chunk_write(base + step, CHUNK_MIN);
    assert_true(live_insert(base + step, 11, 20, &stale));
    uint32_t *slots = live_leaf(base), count = (uint32_t)(LEAF_BYTES / step);
    struct birth *births = live_birth(base);
    assert_ptr_equal(births, (uint8_t *)slots + (size_t)count * (is_wide ? 8 : 4));
    assert_ptr_equal(live_birth(base + step), births + 1);
    assert_ptr_equal(live_birth(base + last - step), births + count - 1);
    assert_null(live_birth(base + last));
    births[0] = births[2] = births[count - 1] = (struct birth){UINT32_MAX, UINT32_MAX};
    births[1] = (struct birth){7, 8};
    assert_int_equal(live_take(base + step).id, 11);
    for (uint32_t i = 0; !is_wide && i < count; i++)
        assert_ptr_equal(live_narrow_birth(slots + i, base + i * step), births + i);
    assert_int_equal(births[1].call, 7);
    assert_int_equal(births[1].ms, 8);
    live.has_births = false;
}

static void test_births(void **state) {
    (void)state;
    check_births(false, area_map());
    check_births(true, (uintptr_t)0x555540000000);
}

static int setup(void **state) {
    (void)state;
    model = mmap(NULL, sizeof *model, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return model == MAP_FAILED;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_narrow_with_unseen_frees),
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_wide_with_unseen_frees),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
        cmocka_unit_test(test_page_of_slots_is_one_fault),
        cmocka_unit_test(test_extension_before_a_border),
        cmocka_unit_test(test_extension_over_a_border),
        cmocka_unit_test(test_threads_share_leaves),
        cmocka_unit_test(test_a_full_heap_goes_on_in_large_pages),
        cmocka_unit_test(test_a_heap_of_large_blocks_has_no_large_pages),
        cmocka_unit_test(test_leaves_share_a_large_page),
        cmocka_unit_test(test_block_on_a_forgotten_extension),
        cmocka_unit_test(test_wide_block_on_a_forgotten_extension),
        cmocka_unit_test(test_births),
        cmocka_unit_test(test_waste_of_a_mapping_is_in_whole_pages),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
