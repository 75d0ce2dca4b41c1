// SPDX-License-Identifier: Apache-2.0
// The functions of three allocators, by name only, are found in this test's own executable; names
// that no allocator has, and a family without a free, are not.
#include "tool/attach/entries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FUNCTIONS(X)                                                                               \
    X(_rjem_aligned_alloc, ALIGNED)                                                                \
    X(_rjem_memalign, ALIGNED)                                                                     \
    X(_rjem_calloc, CALLOC)                                                                        \
    X(_rjem_cfree, FREE)                                                                           \
    X(_rjem_dallocx, FREE)                                                                         \
    X(_rjem_free, FREE)                                                                            \
    X(_rjem_free_aligned_sized, FREE)                                                              \
    X(_rjem_free_sized, FREE)                                                                      \
    X(_rjem_sdallocx, FREE)                                                                        \
    X(_rjem_malloc, ALLOC)                                                                         \
    X(_rjem_mallocx, ALLOC)                                                                        \
    X(_rjem_pvalloc, ALLOC)                                                                        \
    X(_rjem_valloc, ALLOC)                                                                         \
    X(_rjem_posix_memalign, MEMALIGN)                                                              \
    X(_rjem_rallocx, REALLOC)                                                                      \
    X(_rjem_realloc, REALLOC)                                                                      \
    X(_rjem_reallocarray, REARRAY)                                                                 \
    X(_rjem_xallocx, RESIZE)                                                                       \
    X(tc_aligned_alloc, ALIGNED)                                                                   \
    X(tc_memalign, ALIGNED)                                                                        \
    X(tc_calloc, CALLOC)                                                                           \
    X(tc_cfree, FREE)                                                                              \
    X(tc_delete, FREE)                                                                             \
    X(tc_delete_aligned, FREE)                                                                     \
    X(tc_delete_aligned_nothrow, FREE)                                                             \
    X(tc_delete_nothrow, FREE)                                                                     \
    X(tc_delete_sized, FREE)                                                                       \
    X(tc_delete_sized_aligned, FREE)                                                               \
    X(tc_deletearray, FREE)                                                                        \
    X(tc_deletearray_aligned, FREE)                                                                \
    X(tc_deletearray_aligned_nothrow, FREE)                                                        \
    X(tc_deletearray_nothrow, FREE)                                                                \
    X(tc_deletearray_sized, FREE)                                                                  \
    X(tc_deletearray_sized_aligned, FREE)                                                          \
    X(tc_free, FREE)                                                                               \
    X(tc_free_sized, FREE)                                                                         \
    X(tc_malloc, ALLOC)                                                                            \
    X(tc_new, ALLOC)                                                                               \
    X(tc_new_aligned, NEW)                                                                         \
    X(tc_new_aligned_nothrow, NEW)                                                                 \
    X(tc_new_nothrow, ALLOC)                                                                       \
    X(tc_newarray, ALLOC)                                                                          \
    X(tc_newarray_aligned, NEW)                                                                    \
    X(tc_newarray_aligned_nothrow, NEW)                                                            \
    X(tc_newarray_nothrow, ALLOC)                                                                  \
    X(tc_pvalloc, ALLOC)                                                                           \
    X(tc_valloc, ALLOC)                                                                            \
    X(tc_posix_memalign, MEMALIGN)                                                                 \
    X(tc_realloc, REALLOC)                                                                         \
    X(tc_reallocarray, REARRAY)                                                                    \
    X(mi_aligned_alloc, ALIGNED)                                                                   \
    X(mi_memalign, ALIGNED)                                                                        \
    X(mi_calloc, CALLOC)                                                                           \
    X(mi_calloc_aligned, CALLOC)                                                                   \
    X(mi_mallocn, CALLOC)                                                                          \
    X(mi_new_n, CALLOC)                                                                            \
    X(mi_cfree, FREE)                                                                              \
    X(mi_free, FREE)                                                                               \
    X(mi_free_aligned, FREE)                                                                       \
    X(mi_free_size, FREE)                                                                          \
    X(mi_free_size_aligned, FREE)                                                                  \
    X(mi_malloc, ALLOC)                                                                            \
    X(mi_malloc_aligned, NEW)                                                                      \
    X(mi_malloc_small, ALLOC)                                                                      \
    X(mi_new, ALLOC)                                                                               \
    X(mi_new_aligned, NEW)                                                                         \
    X(mi_new_aligned_nothrow, NEW)                                                                 \
    X(mi_new_nothrow, ALLOC)                                                                       \
    X(mi_pvalloc, ALLOC)                                                                           \
    X(mi_valloc, ALLOC)                                                                            \
    X(mi_zalloc, ALLOC)                                                                            \
    X(mi_zalloc_aligned, NEW)                                                                      \
    X(mi_zalloc_small, ALLOC)                                                                      \
    X(mi_new_realloc, REALLOC)                                                                     \
    X(mi_realloc, REALLOC)                                                                         \
    X(mi_realloc_aligned, REALLOC)                                                                 \
    X(mi_rezalloc, REALLOC)                                                                        \
    X(mi_rezalloc_aligned, REALLOC)                                                                \
    X(mi_new_reallocn, REARRAY)                                                                    \
    X(mi_reallocarray, REARRAY)                                                                    \
    X(mi_reallocn, REARRAY)                                                                        \
    X(mi_posix_memalign, MEMALIGN)
#define OTHERS(X)                                                                                  \
    X(mi_malloc_of_mine, ALLOC) X(tc_newer, ALLOC) X(je_malloc, ALLOC) X(my_free, FREE)

// Each calls another one, as a real one does.
static volatile int calls;
__attribute__((noinline)) static void note(const char *name) {
    calls += (int)strlen(name);
}
#define DEFINE(name, kind)                                                                         \
    void name(void);                                                                               \
    void name(void) {                                                                              \
        note(#name);                                                                               \
        calls++;                                                                                   \
    }
FUNCTIONS(DEFINE)
OTHERS(DEFINE)

#define ROW(name, kind) {#name, CAIRN_ENTRY_##kind, name},
static const struct {
    const char *name;
    enum cairn_entry_kind kind;
    void (*function)(void);
} expected[] = {FUNCTIONS(ROW)};
enum { EXPECTED = sizeof expected / sizeof *expected };

static void names_are_found(void **state) {
    struct remote remote;
    struct entries entries;
    struct error error = {.text = ""};
    (void)state;
    assert_true(remote_open(&remote, getpid(), &error));
    if (!entries_find(&entries, &remote, &error)) fail_msg("%s", error.text);
    for (size_t i = 0; i < EXPECTED; i++) {
        const struct entry *entry = entries_at(&entries, (uint64_t)(uintptr_t)expected[i].function);
        if (!entry) fail_msg("%s was not found", expected[i].name);
        assert_string_equal(entry->name, expected[i].name);
        assert_int_equal(entry->kind, expected[i].kind);
    }
    assert_int_equal(entries.items.count, EXPECTED);
    assert_false(entries.is_malloc);
    assert_non_null(entries.allocator);
    entries_free(&entries);
    remote_close(&remote);
}

static void code_is_told_apart(void **state) {
    const struct entries entries = {.low = 100, .high = 1000, .heart = 200, .heart_end = 300};
    (void)state;
    assert_true(entries_may_hold(&entries, 250, "anything"));
    assert_false(entries_may_hold(&entries, 350, "anything"));
    assert_true(entries_may_hold(&entries, 350, NULL));
    assert_false(entries_may_hold(&entries, 1350, NULL));
    assert_true(entries_may_hold(&entries, 350, "je_arena_dalloc"));
    assert_true(entries_may_hold(&entries, 350, "_mi_page_retire"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(code_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
