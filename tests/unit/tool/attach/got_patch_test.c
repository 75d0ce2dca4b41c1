// SPDX-License-Identifier: Apache-2.0
// Slots of made-up modules, whose tables lie in this process: which are taken over, which are left,
// and that all of them are as they were afterwards.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/attachment.h"
#include "tool/attach/got_patch.h"

enum { HOOK_MALLOC = 0x10, HOOK_FREE = 0x20, REAL_MALLOC = 0x30, REAL_FREE = 0x40, OTHER = 0x50 };
#define CODE 0x700000u  // of the program, in no memory: where slots lead is only compared
enum { SLOTS = 8 };

static struct remote remote;
static struct loaded_modules modules;
static struct got_patch slots;

// A name, then the two that are looked for.
static const char texts[] = "\0malloc\0free\0puts\0cairn_attachment\0zend_mm_get_heap";
enum { TEXT_MALLOC = 1, TEXT_FREE = 8, TEXT_PUTS = 13, TEXT_ATTACHMENT = 18, TEXT_HEAP = 35 };

static Elf64_Sym symbol(unsigned name, uint64_t value) {
    return (Elf64_Sym){.st_name = name,
                       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                       .st_shndx = value ? 1 : SHN_UNDEF,
                       .st_value = value};
}

static uint64_t address_of(const void *place) {
    return (uint64_t)(uintptr_t)place;
}

// A module with these symbols, which its hash table (of one bucket) counts.
static struct loaded_module *add_module(const Elf64_Sym *symbols, const uint32_t hash[2]) {
    struct loaded_module *module = array_push(&modules.items);
    assert_non_null(module);
    *module = (struct loaded_module){.symbols = address_of(symbols),
                                     .texts = address_of(texts),
                                     .text_bytes = sizeof texts,
                                     .hash = address_of(hash),
                                     .start = CODE,
                                     .end = CODE + 0x1000};
    return module;
}

static const Elf64_Sym *library_symbols(void) {
    static Elf64_Sym symbols[3];
    symbols[1] = symbol(TEXT_MALLOC, HOOK_MALLOC);
    symbols[2] = symbol(TEXT_FREE, HOOK_FREE);
    return symbols;
}

static const Elf64_Sym *libc_symbols(void) {
    static Elf64_Sym symbols[3];
    symbols[1] = symbol(TEXT_MALLOC, REAL_MALLOC);
    symbols[2] = symbol(TEXT_FREE, REAL_FREE);
    return symbols;
}

static const Elf64_Sym *program_symbols(void) {
    static Elf64_Sym symbols[4];
    symbols[1] = symbol(TEXT_MALLOC, 0);
    symbols[2] = symbol(TEXT_FREE, 0);
    symbols[3] = symbol(TEXT_PUTS, 0);
    return symbols;
}

static const uint32_t three[] = {1, 3}, four[] = {1, 4};
static uint64_t words[SLOTS];
static Elf64_Rela relocations[SLOTS];
enum { MALLOC = 1, FREE = 2, PUTS = 3 };  // indexes of the program's symbols

static void slot(unsigned at, unsigned kind, unsigned which, uint64_t value) {
    words[at] = value;
    relocations[at] = (Elf64_Rela){.r_offset = address_of(&words[at]),
                                   .r_info = ELF64_R_INFO((uint64_t)which, kind)};
}

static void find(void) {
    struct error error;
    struct loaded_module *program = add_module(program_symbols(), four);
    program->relocations[0] = address_of(relocations);
    program->relocation_bytes[0] = sizeof relocations;
    add_module(libc_symbols(), three);
    add_module(library_symbols(), three);
    struct loaded_module *library = &modules.items.items[2];
    assert_true(got_patch_find_functions(&slots, &modules, library, NULL, 0, &remote, &error));
    assert_true(got_patch_find(&slots, &modules, library, &remote, &error));
}

static int set_up(void **state) {
    struct error error;
    (void)state;
    memset(words, 0, sizeof words);
    memset(relocations, 0, sizeof relocations);
    modules.linker = OTHER;  // none of the modules
    return !remote_open(&remote, getpid(), &error);
}

static int tear_down(void **state) {
    (void)state;
    got_patch_free(&slots);
    modules_free(&modules);
    modules = (struct loaded_modules){0};
    remote_close(&remote);
    return 0;
}

static void test_taken_and_put_back(void **state) {
    (void)state;
    slot(0, R_X86_64_JUMP_SLOT, MALLOC, REAL_MALLOC);  // a call, bound
    slot(1, R_X86_64_JUMP_SLOT, FREE, CODE + 0x16);    // not bound yet: leads back into the program
    slot(2, R_X86_64_GLOB_DAT, FREE, REAL_FREE);       // -fno-plt
    slot(3, R_X86_64_64, MALLOC, REAL_MALLOC);         // an address in data
    find();
    assert_int_equal(slots.items.count, 4);
    assert_int_equal(got_patch_take(&slots, &remote), 4);
    const uint64_t hooked[] = {HOOK_MALLOC, HOOK_FREE, HOOK_FREE, HOOK_MALLOC};
    assert_memory_equal(words, hooked, sizeof hooked);
    assert_int_equal(got_patch_take(&slots, &remote), 0);  // nothing is left to do
    got_patch_put_back(&slots, &remote);
    const uint64_t before[] = {REAL_MALLOC, CODE + 0x16, REAL_FREE, REAL_MALLOC};
    assert_memory_equal(words, before, sizeof before);
}

static void test_left_alone(void **state) {
    (void)state;
    slot(0, R_X86_64_JUMP_SLOT, PUTS, REAL_MALLOC);   // another function
    slot(1, R_X86_64_JUMP_SLOT, MALLOC, OTHER);       // somebody else has it
    slot(2, R_X86_64_GLOB_DAT, MALLOC, CODE + 0x16);  // no call: its own malloc
    slot(3, R_X86_64_RELATIVE, MALLOC, REAL_MALLOC);  // no symbol's address
    slot(4, R_X86_64_64, MALLOC, REAL_MALLOC);
    relocations[4].r_addend = 8;                  // behind the function
    slot(5, R_X86_64_GLOB_DAT, 99, REAL_MALLOC);  // a symbol that does not exist
    relocations[6] = (Elf64_Rela){.r_offset = 16, .r_info = ELF64_R_INFO(1ul, R_X86_64_64)};
    relocations[7] =
        (Elf64_Rela){.r_offset = address_of(words) + 3, .r_info = ELF64_R_INFO(1ul, R_X86_64_64)};
    uint64_t before[SLOTS];
    memcpy(before, words, sizeof words);
    find();
    assert_int_equal(slots.items.count, 0);
    assert_int_equal(got_patch_take(&slots, &remote), 0);
    assert_memory_equal(words, before, sizeof words);
}

// What the program changed meanwhile stays as it made it.
static void test_changed_meanwhile(void **state) {
    (void)state;
    slot(0, R_X86_64_JUMP_SLOT, MALLOC, REAL_MALLOC);
    slot(1, R_X86_64_JUMP_SLOT, FREE, REAL_FREE);
    find();
    got_patch_take(&slots, &remote);
    words[0] = OTHER;
    got_patch_put_back(&slots, &remote);
    assert_int_equal(words[0], OTHER);
    assert_int_equal(words[1], REAL_FREE);
}

// A library that a killed tool has left: its slots lead to the hooks already.
static void test_left_behind(void **state) {
    (void)state;
    slot(0, R_X86_64_JUMP_SLOT, MALLOC, HOOK_MALLOC);
    find();
    got_patch_put_back(&slots, &remote);
    assert_int_equal(words[0], REAL_MALLOC);
}

static void test_other_namespace(void **state) {
    struct error error;
    (void)state;
    slot(0, R_X86_64_JUMP_SLOT, MALLOC, REAL_MALLOC);
    find();
    modules.items.items[0].namespace = 1;
    assert_true(got_patch_find(&slots, &modules, &modules.items.items[2], &remote, &error));
    assert_int_equal(slots.items.count, 0);
    assert_int_equal(slots.elsewhere_count, 1);
}

// A namespace with a libc of its own, and a library that has ways for it.
enum { WAYS = 0x100000, REAL_ELSEWHERE_MALLOC = 0x60, REAL_ELSEWHERE_FREE = 0x70 };
static uint64_t told[CAIRN_NAMESPACES_MAX][CAIRN_NAMESPACE_COUNT];
static struct cairn_attachment attachment = {
    .magic = CAIRN_ATTACHMENT_MAGIC, .struct_bytes = sizeof attachment, .namespace_ways = WAYS};

static void find_elsewhere(const char *name_of_libc) {
    static Elf64_Sym of_library[4], of_libc[3];
    struct error error;
    attachment.namespace_real = address_of(told);
    memset(told, 0, sizeof told);
    memcpy(of_library, library_symbols(), 3 * sizeof *of_library);
    of_library[3] = symbol(TEXT_ATTACHMENT, address_of(&attachment));
    of_libc[1] = symbol(TEXT_MALLOC, REAL_ELSEWHERE_MALLOC);
    of_libc[2] = symbol(TEXT_FREE, REAL_ELSEWHERE_FREE);
    add_module(libc_symbols(), three);
    add_module(of_library, four);
    struct loaded_module *program = add_module(program_symbols(), four);
    program->namespace = 2;
    program->relocations[0] = address_of(relocations);
    program->relocation_bytes[0] = sizeof relocations;
    struct loaded_module *libc = add_module(of_libc, three);
    libc->namespace = 2;
    strcpy(libc->name, name_of_libc);
    struct loaded_module *library = &modules.items.items[1];
    assert_true(got_patch_find_functions(&slots, &modules, library, NULL, 0, &remote, &error));
    assert_true(got_patch_find(&slots, &modules, library, &remote, &error));
}

static uint64_t way(unsigned namespace, unsigned function) {
    return WAYS + (uint64_t)((namespace - 1) * CAIRN_NAMESPACE_COUNT + function) *
                      CAIRN_NAMESPACE_WAY_BYTES;
}

static void test_ways_of_namespace(void **state) {
    (void)state;
    slot(0, R_X86_64_JUMP_SLOT, MALLOC, REAL_ELSEWHERE_MALLOC);
    slot(1, R_X86_64_GLOB_DAT, FREE, REAL_ELSEWHERE_FREE);
    slot(2, R_X86_64_GLOB_DAT, MALLOC, REAL_MALLOC);  // of the program's own libc: nobody knows why
    slot(3, R_X86_64_JUMP_SLOT, FREE, CODE + 0x16);
    uint64_t before[SLOTS];
    memcpy(before, words, sizeof words);
    find_elsewhere("/lib/libc.so.6");
    assert_int_equal(slots.elsewhere_count, 0);
    got_patch_tell(&slots, &remote);
    assert_int_equal(got_patch_take(&slots, &remote), 3);
    const uint64_t taken[] = {way(2, 0), way(2, 1), REAL_MALLOC, way(2, 1)};
    assert_memory_equal(words, taken, sizeof taken);
    assert_int_equal(told[1][0], REAL_ELSEWHERE_MALLOC);
    assert_int_equal(told[1][1], REAL_ELSEWHERE_FREE);
    assert_true(got_patch_hold(&slots, &remote));
    words[1] = REAL_ELSEWHERE_FREE;  // its module was loaded anew
    assert_false(got_patch_hold(&slots, &remote));
    got_patch_put_back(&slots, &remote);
    assert_memory_equal(words, before, sizeof words);
}

static void test_other_allocator(void **state) {
    (void)state;
    slot(0, R_X86_64_JUMP_SLOT, MALLOC, REAL_ELSEWHERE_MALLOC);
    find_elsewhere("/lib/libjemalloc.so.2");
    assert_int_equal(slots.items.count, 0);
    assert_int_equal(slots.elsewhere_count, 2);
}

#if defined(__x86_64__)

// PHP's own heap: a number that says if it calls malloc, others, and the words of three functions.
static uint64_t heap[64], heap_at;
enum { FUNCTIONS = 40, OWN = CODE + 0x16 };

// `mov heap_at(%rip), %rax; ret`, with or without an endbr64 in front.
static uint64_t code_of_get_heap(bool has_landing) {
    static uint8_t code[12];
    static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa}, load[] = {0x48, 0x8b, 0x05};
    uint8_t *at = code;
    if (has_landing) at = (uint8_t *)memcpy(at, landing, sizeof landing) + sizeof landing;
    memcpy(at, load, sizeof load);
    int32_t distance = (int32_t)((uint8_t *)&heap_at - (at + sizeof load + sizeof distance));
    memcpy(at + sizeof load, &distance, sizeof distance);
    at[sizeof load + sizeof distance] = 0xc3;
    return address_of(code);
}

static void find_php(uint64_t is_custom, uint64_t allocate, uint64_t release, uint64_t resize,
                     bool has_landing) {
    static Elf64_Sym symbols[3];
    struct error error;
    symbols[2] = symbol(TEXT_HEAP, code_of_get_heap(has_landing));
    heap_at = address_of(heap);
    memset(heap, 0, sizeof heap);
    heap[0] = is_custom;
    heap[FUNCTIONS - 3] = REAL_FREE;  // of something else
    heap[FUNCTIONS] = allocate;
    heap[FUNCTIONS + 1] = release;
    heap[FUNCTIONS + 2] = resize;
    add_module(symbols, three);
    add_module(libc_symbols(), three);
    add_module(library_symbols(), three);
    struct loaded_module *library = &modules.items.items[2];
    assert_true(got_patch_find_functions(&slots, &modules, library, NULL, 0, &remote, &error));
    assert_true(got_patch_find(&slots, &modules, library, &remote, &error));
}

static void test_stored_by_php(void **state) {
    find_php(1, OWN, REAL_FREE, OWN, false);
    assert_int_equal(slots.items.count, 1);
    assert_int_equal(got_patch_take(&slots, &remote), 1);
    assert_int_equal(heap[FUNCTIONS + 1], HOOK_FREE);
    assert_int_equal(heap[FUNCTIONS - 3], REAL_FREE);
    got_patch_put_back(&slots, &remote);
    assert_int_equal(heap[FUNCTIONS + 1], REAL_FREE);
    heap[FUNCTIONS + 1] = OTHER;  // its heap went while the process ran
    assert_int_equal(got_patch_take(&slots, &remote), 0);
    assert_int_equal(heap[FUNCTIONS + 1], OTHER);
    tear_down(state);
    set_up(state);
    find_php(1, REAL_MALLOC, HOOK_FREE, OWN, true);  // one of them is left from a killed tool
    assert_int_equal(slots.items.count, 2);
    assert_int_equal(got_patch_take(&slots, &remote), 1);
    got_patch_put_back(&slots, &remote);
    assert_int_equal(heap[FUNCTIONS], REAL_MALLOC);
    assert_int_equal(heap[FUNCTIONS + 1], REAL_FREE);
}

static void test_not_stored_by_php(void **state) {
    const uint64_t cases[][4] = {{0, OWN, REAL_FREE, OWN},    // PHP's own allocator
                                 {1, OWN, OWN, OWN},          // nothing is called directly
                                 {1, OTHER, REAL_FREE, OWN},  // not these three
                                 {1, OWN, OWN, REAL_FREE}};   // nor in this order
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        find_php(cases[i][0], cases[i][1], cases[i][2], cases[i][3], i % 2 == 0);
        assert_int_equal(slots.items.count, 0);
        tear_down(state);
        set_up(state);
    }
}

#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_taken_and_put_back),
        TEST(test_left_alone),
        TEST(test_changed_meanwhile),
        TEST(test_left_behind),
        TEST(test_other_namespace),
        TEST(test_ways_of_namespace),
        TEST(test_other_allocator),
#if defined(__x86_64__)
        TEST(test_stored_by_php),
        TEST(test_not_stored_by_php),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
