// SPDX-License-Identifier: Apache-2.0
// Arenas: what is live of them, where some were not seen when they were made, and in great numbers.
#include "runtime/api/arena.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/api/heap_stacks.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/scope.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/stack/recording.h"

enum { SCOPES = 16, ROOT = 0x1000, FIRST = 0x2000, SECOND = 0x3000, BLOCKS = 0x100000 };
enum { ENTRIES = 64, BLOCKS_CHANGED = 64 };

static uint32_t heap;

static void open_heap_stacks(void) {
    const uint64_t bytes = 4 << 20;
    struct region region = recording_region(13, bytes);
    sink.header = &recording_header;
    recording_header.section_count = 1;
    recording_header.sections[0] =
        (struct cairn_section){.kind = CAIRN_SECTION_HEAP_STACKS,
                               .offset = (uint64_t)(region.base - (uint8_t *)&recording_header),
                               .capacity_bytes = bytes};
    assert_non_null(heap_stacks_region()->base);
}

static struct arenas *start(void) {
    recording_start(CELLS_SHARED, 64);
    assert_non_null(region_take(&modules.strings, 1));  // 0 is no text
    scopes.entries = recording_region(12, SCOPES * sizeof(struct cairn_scope));
    scopes.table = NULL;
    open_heap_stacks();
    heap = scope_of_name(CAIRN_SCOPE_POOL, 0, "heap");
    assert_int_not_equal(heap, 0);
    struct arenas *arenas = arenas_make(heap);
    assert_non_null(arenas);
    return arenas;
}

static uint64_t live_bytes(uint32_t scope) {
    return scope_at(scope)->allocated_bytes - scope_at(scope)->freed_bytes;
}

// What the entries of a scope hold together, now and at the heap's peak.
struct held {
    uint64_t calls, bytes;
    int64_t peak_bytes;
};

static struct held held_by(uint32_t scope) {
    const struct cairn_heap_stack *list =
        (const struct cairn_heap_stack *)recording_regions[13].base;
    struct held sum = {0};
    for (uint32_t i = 1; i < ENTRIES && list[i].is_ready; i++) {
        if (list[i].scope != scope) continue;
        uint64_t bytes = list[i].allocated_bytes - list[i].freed_bytes;
        bool is_saved = list[i].epoch == scope_at(heap)->heap_epoch;
        sum.calls += list[i].calls;
        sum.bytes += bytes;
        sum.peak_bytes += is_saved ? list[i].peak_bytes : (int64_t)bytes;
    }
    return sum;
}

static const void *block(uintptr_t number) {
    const uintptr_t step = 16;
    return (const void *)(BLOCKS + number * step);
}

static void test_parent_known_by_a_block(void **state) {
    (void)state;
    struct arenas *arenas = start();
    arena_open(arenas, FIRST, ROOT, 0);
    arena_add(arenas, ROOT, block(1), 10, 0);
    arena_clear(arenas, FIRST, true);
    arena_open(arenas, SECOND, ROOT, 0);
    arena_add(arenas, SECOND, block(2), 200, 0);
    assert_int_equal(live_bytes(heap), 210);
    arena_clear(arenas, ROOT, false);
    assert_int_equal(live_bytes(heap), 0);
}

static void test_parent_known_by_a_child(void **state) {
    (void)state;
    struct arenas *arenas = start();
    arena_open(arenas, FIRST, ROOT, 0);
    arena_open(arenas, SECOND, FIRST, 0);
    arena_add(arenas, SECOND, block(1), 100, 0);
    arena_clear(arenas, ROOT, true);
    assert_int_equal(live_bytes(heap), 0);
    assert_int_equal(scope_at(heap)->entries, scope_at(heap)->ended);
}

static void test_moved_to_an_unknown_parent(void **state) {
    (void)state;
    struct arenas *arenas = start();
    arena_open(arenas, FIRST, 0, 0);
    arena_add(arenas, FIRST, block(1), 100, 0);
    arena_move(arenas, FIRST, ROOT);
    arena_clear(arenas, ROOT, false);
    assert_int_equal(live_bytes(heap), 0);
}

// Parents in a ring end nothing but themselves, and the search for children ends.
static void test_ring(void **state) {
    (void)state;
    struct arenas *arenas = start();
    arena_open(arenas, FIRST, SECOND, 0);
    arena_open(arenas, SECOND, FIRST, 0);
    arena_add(arenas, SECOND, block(1), 100, 0);
    arena_clear(arenas, SECOND, true);
    assert_int_equal(live_bytes(heap), 0);
}

static void test_many(void **state) {
    (void)state;
    const uintptr_t arenas_most = 1000, each = 20;
    struct arenas *arenas = start();
    struct heap_block taken;
    arena_open(arenas, ROOT, 0, 0);
    for (uintptr_t i = 0; i < arenas_most; i++) {
        arena_open(arenas, SECOND + i, i % 2 ? ROOT : 0, 0);
        for (uintptr_t k = 0; k < each; k++)
            arena_add(arenas, SECOND + i, block(i * each + k), k, 0);
    }
    assert_int_equal(live_bytes(heap), arenas_most * each * (each - 1) / 2);
    assert_true(arena_take(arenas, block(3), &taken));
    assert_int_equal(taken.bytes, 3);
    assert_int_equal(taken.arena, SECOND);
    assert_false(arena_take(arenas, block(3), &taken));
    arena_clear(arenas, ROOT, true);
    assert_int_equal(live_bytes(heap), arenas_most / 2 * each * (each - 1) / 2 - 3);
    assert_false(arena_take(arenas, block(each + 1), &taken));  // of one that is gone
    for (uintptr_t i = 0; i < arenas_most; i += 2) arena_clear(arenas, SECOND + i, true);
    assert_int_equal(live_bytes(heap), 0);
    assert_int_equal(scope_at(heap)->ended, arenas_most + 1);
}

// The plainest account of the same: who lies in whom, and which block is whose.
enum { TWINS = 24, TWIN_BLOCKS = 200 };
static struct {
    bool is_there[TWINS];
    unsigned parent[TWINS];                           // 0: none, or that number
    unsigned owner[TWIN_BLOCKS], bytes[TWIN_BLOCKS];  // 0: nobody
} twin;

static void twin_drop(unsigned number, bool is_over) {
    for (unsigned i = 1; i < TWINS; i++)
        if (twin.is_there[i] && twin.parent[i] == number) twin_drop(i, true);
    for (unsigned i = 0; i < TWIN_BLOCKS; i++)
        if (twin.owner[i] == number) twin.owner[i] = 0;
    if (is_over) twin.is_there[number] = false;
    if (is_over) twin.parent[number] = 0;
}

static bool twin_is_within(unsigned number, unsigned of) {
    for (; number; number = twin.parent[number])
        if (number == of) return true;
    return false;
}

static uint64_t twin_bytes(void) {
    uint64_t bytes = 0;
    for (unsigned i = 0; i < TWIN_BLOCKS; i++) bytes += twin.owner[i] ? twin.bytes[i] : 0;
    return bytes;
}

static uintptr_t twin_handle(unsigned number) {
    return number ? ROOT + number * 64 : 0;
}

static void twin_step(struct arenas *arenas, uint32_t kind, unsigned one, unsigned other,
                      unsigned number) {
    enum { MAKE, MOVE, CLEAR, DESTROY, TAKE };
    struct heap_block taken;
    bool may_lie = twin.is_there[other] && !twin_is_within(other, one);
    if (kind == MAKE && !twin.is_there[one] && (!other || twin.is_there[other])) {
        arena_open(arenas, twin_handle(one), twin_handle(other), 0);
        twin.is_there[one] = true;
        twin.parent[one] = other;
    } else if (kind == MOVE && twin.is_there[one] && (!other || may_lie)) {
        arena_move(arenas, twin_handle(one), twin_handle(other));
        twin.parent[one] = other;
    } else if ((kind == CLEAR || kind == DESTROY) && twin.is_there[one]) {
        arena_clear(arenas, twin_handle(one), kind == DESTROY);
        twin_drop(one, kind == DESTROY);
    } else if (kind == TAKE) {
        bool has_it = arena_take(arenas, block(number), &taken);
        assert_int_equal(has_it, twin.owner[number] != 0);
        if (has_it) assert_int_equal(taken.bytes, twin.bytes[number]);
        if (has_it) assert_int_equal(taken.arena, twin_handle(twin.owner[number]));
        twin.owner[number] = 0;
    } else if (kind > TAKE && twin.is_there[one]) {
        arena_add(arenas, twin_handle(one), block(number), one + number, 0);
        twin.owner[number] = one;
        twin.bytes[number] = one + number;
    }
}

static void test_twin(void **state) {
    (void)state;
    const uint32_t steps = 200000, kinds = 20;
    struct arenas *arenas = start();
    uint64_t seed = 7;
    for (uint32_t i = 0; i < steps; i++) {
        uint64_t random = random_next(&seed);
        twin_step(arenas, (uint32_t)(random % kinds), (unsigned)(1 + (random >> 8) % (TWINS - 1)),
                  (unsigned)((random >> 24) % TWINS), (unsigned)((random >> 40) % TWIN_BLOCKS));
        assert_int_equal(live_bytes(heap), twin_bytes());
    }
}

// A child that ends costs the same, however many there are beside it.
static void test_many_children_end(void **state) {
    (void)state;
    const uintptr_t children = 200000;
    struct arenas *arenas = start();
    arena_open(arenas, ROOT, 0, 0);
    for (uintptr_t i = 0; i < children; i++) {
        arena_open(arenas, SECOND + i * 2, ROOT, 0);
        arena_open(arenas, SECOND + i * 2 + 1, SECOND + i * 2, 0);
    }
    for (uintptr_t i = 0; i < children; i++) arena_clear(arenas, SECOND + i * 2, i % 2);
    arena_clear(arenas, ROOT, true);
    assert_int_equal(scope_at(heap)->entries, scope_at(heap)->ended);
}

// What a name had goes to the name that comes later, also as it was at the heap's peak.
static void test_named_late(void **state) {
    (void)state;
    struct arenas *arenas = start();
    uint32_t name = scope_of_name(CAIRN_SCOPE_POOL, heap, "late");
    arena_open(arenas, FIRST, 0, 0);
    for (uintptr_t i = 0; i < 10; i++) arena_add(arenas, FIRST, block(i), 100, 7);
    arena_open(arenas, SECOND, 0, 0);
    arena_add(arenas, SECOND, block(10), 5000, 8);
    arena_clear(arenas, SECOND, true);  // the peak is left
    arena_add(arenas, FIRST, block(11), 1, 9);
    arena_name(arenas, FIRST, name);
    struct held was = held_by(heap), is = held_by(name);
    assert_int_equal(was.bytes, 0);
    assert_int_equal(is.bytes, 1001);
    assert_int_equal(is.calls, 11);
    assert_int_equal(is.peak_bytes, 1000);
    assert_int_equal(was.peak_bytes, 5000);
    arena_clear(arenas, FIRST, true);
    assert_int_equal(held_by(name).bytes, 0);
    assert_int_equal(live_bytes(name), 0);
}

struct changer {
    struct arenas *arenas;
    volatile bool is_over;
};

static void *change_always(void *context) {
    struct changer *changer = context;
    for (uintptr_t i = 0; !changer->is_over; i = (i + 1) % BLOCKS_CHANGED) {
        arena_add(changer->arenas, FIRST, block(i), 8, 0);
        if (i == BLOCKS_CHANGED - 1) arena_clear(changer->arenas, FIRST, false);
    }
    return NULL;
}

// What a child finds of its parent's heap, whatever another thread was at, and that it can use it.
static int child_of_a_change(struct arenas *arenas) {
    scopes_inherit();
    heap_stacks_inherit();
    arenas_inherit();
    uint64_t before = live_bytes(heap);
    if (before != held_by(heap).bytes || before > BLOCKS_CHANGED * 8) return 1;
    arena_add(arenas, SECOND, block(BLOCKS_CHANGED + 1), 100, 0);
    arena_clear(arenas, FIRST, true);
    if (live_bytes(heap) != 100 || held_by(heap).bytes != 100) return 2;
    arena_clear(arenas, SECOND, true);
    return live_bytes(heap) ? 3 : 0;
}

// A lock that another thread held at the fork is nobody's in the child.
static void test_forked_while_changed(void **state) {
    (void)state;
    enum { FORKS = 200 };
    struct changer changer = {.arenas = start()};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, change_always, &changer), 0);
    for (int i = 0; i < FORKS; i++) {
        int status;
        pid_t pid = fork();
        if (!pid) _exit(child_of_a_change(changer.arenas));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    changer.is_over = true;
    pthread_join(thread, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forked_while_changed),  // while there is one heap
        cmocka_unit_test(test_parent_known_by_a_block),
        cmocka_unit_test(test_parent_known_by_a_child),
        cmocka_unit_test(test_moved_to_an_unknown_parent),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_twin),
        cmocka_unit_test(test_many_children_end),
        cmocka_unit_test(test_named_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
