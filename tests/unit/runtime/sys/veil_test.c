// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/veil.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/sys/region.h"
#include "runtime/sys/sys.h"
#include "tests/unit/runtime/random.h"

enum { PAGES = 1024, OPEN_PAGES = 4, THREADS = 4, ROUNDS = 50 };

static uint8_t *memory;
static int memory_file;

static size_t page(void) {
    return sys_page_bytes();
}

static uint8_t *at(size_t number) {
    return memory + number * page();
}

static bool is_there(size_t number) {
    return sys_is_readable(at(number));
}

static void begin_shared(void) {
    memory_file = memfd_create("veil", 0);
    assert_int_equal(ftruncate(memory_file, (off_t)(PAGES * page())), 0);
    memory = mmap(NULL, PAGES * page(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                  memory_file, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    veil_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    assert_true(veil_draw(memory, PAGES * page(), OPEN_PAGES * page(), VEIL_SHARED));
    veil_close();
}

static void end(void) {
    assert_true(veil_leave((uintptr_t)memory, (uintptr_t)at(PAGES)));
    munmap(memory, PAGES * page());
    close(memory_file);
}

static size_t pages_there(void) {
    size_t count = 0;
    while (count < PAGES && is_there(count)) count++;
    return count;
}

// Writes a page's number to it by the file, as the tool would read it.
static void expect_number(size_t number) {
    uint64_t found = 0;
    assert_int_equal(pread(memory_file, &found, sizeof found, (off_t)(number * page())),
                     sizeof found);
    assert_int_equal(found, number);
}

static void test_shared_memory_is_uncovered_from_the_front(void **state) {
    (void)state;
    begin_shared();
    assert_int_equal(pages_there(), OPEN_PAGES);
    assert_int_equal(veil_readable_bytes(memory, PAGES * page()), OPEN_PAGES * page());
    assert_int_equal(veil_readable_bytes(memory, 10), 10);
    for (size_t number = 0; number < PAGES; number++) {
        assert_true(veil_lift(at(number) + 1));
        memcpy(at(number), &number, sizeof number);
        size_t there = pages_there();
        assert_in_range(there, number + 1, number < OPEN_PAGES / 2 ? OPEN_PAGES : 2 * number + 2);
        assert_int_equal(veil_readable_bytes(memory, PAGES * page()), there * page());
    }
    for (size_t number = 0; number < PAGES; number++) {
        assert_memory_equal(at(number), &number, sizeof number);
        expect_number(number);
    }
    end();
}

static void test_all_at_once(void **state) {
    (void)state;
    begin_shared();
    uint64_t number = PAGES - 1;
    assert_int_equal(pwrite(memory_file, &number, sizeof number, (off_t)(number * page())), 8);
    veil_lift_shared();
    assert_int_equal(pages_there(), PAGES);
    assert_memory_equal(at(number), &number, sizeof number);
    end();
}

static void test_private_memory_keeps_what_it_has(void **state) {
    (void)state;
    memory_file = -1;
    memory = mmap(NULL, PAGES * page(), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    veil_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    const size_t before = 100;  // what is covered need not begin with a page
    assert_true(veil_draw(memory + before, PAGES * page() - before, OPEN_PAGES * page() - before,
                          VEIL_PRIVATE));
    veil_close();
    for (size_t number = 0; number < PAGES; number++) {
        assert_true(veil_lift(at(number) + 1));
        assert_int_equal(*at(number), 0);
        memcpy(at(number), &number, sizeof number);
    }
    for (size_t number = 0; number < PAGES; number++)
        assert_memory_equal(at(number), &number, sizeof number);
    end();
}

static void test_nothing_is_covered_without_a_file(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    memory = malloc(PAGES * page());
    assert_false(veil_draw(memory, PAGES * page(), page(), VEIL_PRIVATE));
    veil_open(ends[0]);  // cannot be mapped
    assert_false(veil_draw(memory, PAGES * page(), page(), VEIL_PRIVATE));
    assert_int_equal(fcntl(ends[0], F_GETFD), -1);
    assert_true(veil_lift(at(PAGES)));
    assert_int_equal(veil_readable_bytes(memory, 100), 100);
    assert_null(veil_map(page()));
    close(ends[1]);
    free(memory);
}

static void *lift_some(void *seed) {
    uint64_t random = (uintptr_t)seed;
    for (int i = 0; i < ROUNDS; i++) veil_lift(at(random_below(&random, PAGES)) + 1);
    return NULL;
}

static void *lift_and_write(void *seed) {
    uint64_t random = (uintptr_t)seed;
    for (int i = 0; i < ROUNDS; i++) {
        size_t number = random_below(&random, PAGES);
        if (veil_lift(at(number) + 1)) memcpy(at(number), &number, sizeof number);
    }
    return NULL;
}

static void test_threads_at_once(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        begin_shared();
        for (uintptr_t i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, lift_and_write,
                           (void *)(i + 1 + (uintptr_t)round * THREADS));
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        for (size_t number = 1, count = pages_there(); number < count; number++)
            if (*at(number)) expect_number(number);
        end();
    }
}

// Gives memory back: it is the program's, and nobody uncovers it afterwards, not even who had
// begun.
static void test_given_back_meanwhile(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        begin_shared();
        uint64_t used = 0, space = PAGES * page();
        struct region region = {.base = memory,
                                .capacity_bytes = space,
                                .chunk_bytes = page(),
                                .used_bytes = &used,
                                .space_bytes = &space,
                                .claimed_bytes = (uint64_t)OPEN_PAGES * page()};
        for (uintptr_t i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, lift_some, (void *)(i + 1));
        region_shrink(&region, 0);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        assert_int_equal(region.capacity_bytes, OPEN_PAGES * page());
        assert_int_equal(pages_there(), OPEN_PAGES);
        end();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_memory_is_uncovered_from_the_front),
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_private_memory_keeps_what_it_has),
        cmocka_unit_test(test_nothing_is_covered_without_a_file),
        cmocka_unit_test(test_threads_at_once),
        cmocka_unit_test(test_given_back_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
