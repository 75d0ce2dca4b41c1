// SPDX-License-Identifier: Apache-2.0
// The slots of a real namespace: libc's own lead to the ways afterwards, and all memory is
// protected as it was. Nothing is called there meanwhile: the ways of this test lead nowhere.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "runtime/inject/got_patch.h"

#if defined(__x86_64__)

#define WAYS 0x123450000u
enum { MALLOC = 0, FREE = 1, LINE_BYTES = 256, LINES_MAX = 64, WORDS_MAX = 64 };

struct protections {
    char lines[LINES_MAX][LINE_BYTES];
    size_t count;
};

// Of the mappings of every libc; the namespace's come and go with it.
static void look_at_maps(struct protections *maps) {
    FILE *file = fopen("/proc/self/maps", "re");
    assert_non_null(file);
    maps->count = 0;
    while (maps->count < LINES_MAX && fgets(maps->lines[maps->count], LINE_BYTES, file))
        if (strstr(maps->lines[maps->count], "libc.so.6")) maps->count++;
    fclose(file);
}

// Words of the module's writable segments that hold `value`.
static size_t find_words(const struct link_map *map, uintptr_t value, uintptr_t *found[WORDS_MAX]) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)map->l_addr;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(map->l_addr + header->e_phoff);
    size_t count = 0;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_W)) continue;
        uintptr_t *word = (uintptr_t *)((map->l_addr + segments[i].p_vaddr + 7) & ~7ul);
        for (size_t at = 0; at < segments[i].p_filesz / sizeof *word && count < WORDS_MAX; at++)
            if (word[at] == value) found[count++] = &word[at];
    }
    return count;
}

static void test_libc(void **state) {
    uintptr_t real[CAIRN_NAMESPACE_COUNT] = {0}, *slots[WORDS_MAX], *again[WORDS_MAX];
    struct protections before, after;
    (void)state;
    struct link_map *map = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    if (!map) skip();
    look_at_maps(&before);
    assert_true(before.count > 0);
    assert_true(got_patch_namespace(map, real, WAYS));
    assert_ptr_equal((void *)real[MALLOC], dlsym(map, "malloc"));
    assert_ptr_equal((void *)real[FREE], dlsym(map, "free"));
    assert_ptr_not_equal((void *)real[MALLOC], (void *)malloc);
    uintptr_t way_to_free = WAYS + FREE * CAIRN_NAMESPACE_WAY_BYTES;
    size_t count = find_words(map, way_to_free, slots);
    assert_true(count >= 1);
    assert_true(got_patch_namespace(map, real, WAYS));  // nothing is left to do
    assert_int_equal(find_words(map, way_to_free, again), count);
    look_at_maps(&after);
    assert_int_equal(after.count, before.count);
    for (size_t i = 0; i < after.count; i++) assert_string_equal(after.lines[i], before.lines[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_libc)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
    return 0;
}

#endif
