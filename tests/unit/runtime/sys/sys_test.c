// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/sys.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static uint8_t *map_pages(size_t count) {
    uint8_t *pages = mmap(NULL, count * sys_page_bytes(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    return pages;
}

static void test_readable_up_to_the_byte(void **state) {
    (void)state;
    uint8_t *pages = map_pages(3);
    uint8_t *middle = pages + sys_page_bytes(), *after = middle + sys_page_bytes();
    assert_true(sys_is_readable(pages));
    mprotect(pages, sys_page_bytes(), PROT_NONE);
    munmap(after, sys_page_bytes());
    assert_false(sys_is_readable(middle - 1));
    assert_true(sys_is_readable(middle));
    assert_true(sys_is_readable(middle + 5));
    assert_true(sys_is_readable(after - 1));
    assert_false(sys_is_readable(after));
    mprotect(middle, sys_page_bytes(), PROT_READ);
    assert_true(sys_is_readable(middle));
    munmap(pages, 2 * sys_page_bytes());
    assert_false(sys_is_readable(middle));
}

// A null pointer as a signal mask means "no mask" to the kernel.
static void test_low_and_high_addresses_are_not_readable(void **state) {
    (void)state;
    const uintptr_t kernel = (uintptr_t)0xffff800000000000u, gap = (uintptr_t)1 << 47;
    for (uintptr_t address = 0; address < 64; address++)
        assert_false(sys_is_readable((const void *)address));
    assert_false(sys_is_readable((const void *)kernel));
    assert_false(sys_is_readable((const void *)gap));
    assert_false(sys_is_readable((const void *)(UINTPTR_MAX - 7)));
    assert_false(sys_is_readable((const void *)UINTPTR_MAX));
}

static void test_asking_changes_neither_mask_nor_errno(void **state) {
    (void)state;
    sigset_t before, after;
    sigprocmask(SIG_SETMASK, NULL, &before);
    errno = ERANGE;
    uint64_t all_signals = ~(uint64_t)0;
    assert_true(sys_is_readable(&all_signals));
    assert_false(sys_is_readable((const void *)(uintptr_t)SYS_PAGE_LEAST));
    assert_null(sys_map((size_t)1 << 60));
    assert_int_equal(errno, ERANGE);
    sigprocmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < 64; signal++)
        assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
}

static uint64_t clock_by_libc(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void check_clocks(void) {
    const uint64_t tick_ns = 20000000;
    uint64_t last = sys_clock_ns(), last_coarse = sys_clock_coarse_ns();
    for (int i = 0; i < 20000; i++) {
        uint64_t now = sys_clock_ns(), coarse = sys_clock_coarse_ns();
        assert_true(now >= last && coarse >= last_coarse);
        assert_true(coarse <= sys_clock_ns() && coarse + tick_ns >= now);
        last = now;
        last_coarse = coarse;
    }
    uint64_t before = clock_by_libc(CLOCK_MONOTONIC), mine = sys_clock_ns();
    assert_true(before <= mine && mine <= clock_by_libc(CLOCK_MONOTONIC));
    before = clock_by_libc(CLOCK_REALTIME), mine = sys_clock_wall_ns();
    assert_true(before <= mine && mine <= clock_by_libc(CLOCK_REALTIME));
}

static void test_clocks_agree_with_libc(void **state) {
    (void)state;
    check_clocks();  // by system call
    sys_clock_init();
    check_clocks();  // by the kernel's function
}

static void test_own_bytes_are_those_mapped(void **state) {
    (void)state;
    const size_t bytes = 3 * sys_page_bytes();
    uint64_t before = sys_own_bytes();
    uint8_t *memory = sys_map(bytes);
    assert_non_null(memory);
    assert_int_equal(sys_own_bytes() - before, bytes);
    void *reserved = sys_reserve((size_t)1 << 30);
    assert_non_null(reserved);
    assert_int_equal(sys_own_bytes() - before, bytes);
    sys_release(reserved, (size_t)1 << 30);
    sys_unmap(memory, bytes);
    assert_int_equal(sys_own_bytes(), before);
    assert_false(sys_is_readable(memory));
}

static void test_claim_of_missing_memory_fails(void **state) {
    (void)state;
    uint8_t *pages = map_pages(4);
    assert_true(sys_claim(pages, 4 * sys_page_bytes()));
    munmap(pages + 2 * sys_page_bytes(), sys_page_bytes());
    assert_true(sys_claim(pages, 2 * sys_page_bytes()));
    assert_false(sys_claim(pages, 4 * sys_page_bytes()));
    munmap(pages, 4 * sys_page_bytes());
}

static void *tid_of(void *argument) {
    *(int *)argument = sys_tid();
    return NULL;
}

static void test_threads_and_limits(void **state) {
    (void)state;
    pthread_t thread;
    int tid = 0;
    struct rlimit limit;
    assert_int_equal(sys_pid(), getpid());
    assert_int_equal(sys_tid(), (int)syscall(SYS_gettid));
    pthread_create(&thread, NULL, tid_of, &tid);
    pthread_join(thread, NULL);
    assert_true(tid != 0 && tid != sys_tid());
    // it is joined a moment before the kernel forgets it
    while (sys_is_thread_alive(sys_pid(), tid)) usleep(1000);
    assert_true(sys_is_thread_alive(sys_pid(), sys_tid()));
    getrlimit(RLIMIT_FSIZE, &limit);
    assert_true(sys_limit(RLIMIT_FSIZE) ==
                (limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur));
    assert_true(sys_random() != sys_random());
}

// The kernel below has small pages all the same, as below an emulator: no more than asked for may
// be written.
static void test_untouched_with_larger_pages(void **state) {
    (void)state;
    const size_t bytes = 36 << 20;
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    for (uint32_t page = SYS_PAGE_LEAST; page <= SYS_PAGE_MOST; page *= 4) {
        sys_page_known = page;
        assert_int_equal(sys_untouched_bytes(memory, bytes), bytes);
    }
    memset(memory, 1, bytes);
    for (uint32_t page = SYS_PAGE_LEAST; page <= SYS_PAGE_MOST; page *= 4) {
        sys_page_known = page;
        assert_int_equal(sys_untouched_bytes(memory, bytes), 0);
    }
    sys_page_known = 0;
    munmap(memory, bytes);
}

static void test_pages_are_the_kernels(void **state) {
    (void)state;
    sys_page_known = 0;
    assert_int_equal(sys_page_bytes(), sysconf(_SC_PAGESIZE));
    for (uint32_t page = SYS_PAGE_LEAST; page <= SYS_PAGE_MOST; page *= 4) {
        sys_page_known = page;
        assert_int_equal(sys_page_up(0), 0);
        assert_int_equal(sys_page_up(1), page);
        assert_int_equal(sys_page_up(page), page);
        assert_int_equal(sys_page_up((1ull << 40) + 1), (1ull << 40) + page);
    }
    sys_page_known = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readable_up_to_the_byte),
        cmocka_unit_test(test_low_and_high_addresses_are_not_readable),
        cmocka_unit_test(test_asking_changes_neither_mask_nor_errno),
        cmocka_unit_test(test_clocks_agree_with_libc),
        cmocka_unit_test(test_own_bytes_are_those_mapped),
        cmocka_unit_test(test_claim_of_missing_memory_fails),
        cmocka_unit_test(test_threads_and_limits),
        cmocka_unit_test(test_pages_are_the_kernels),
        cmocka_unit_test(test_untouched_with_larger_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
