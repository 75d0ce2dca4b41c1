// SPDX-License-Identifier: Apache-2.0
#include "runtime/unwind/unwind_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/sys/object.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/unwind/code.h"

enum { ADDRESS_BITS = 47, ROUNDS = 1000000, STORED = 20000 };

// set and tag, put together again.
static uintptr_t address_of(uint32_t set, uint64_t tag) {
    uintptr_t high = (uintptr_t)(tag >> RULE_BITS);
    uintptr_t low = (set ^ high) & ((1u << RULE_LEAST_BITS) - 1);
    return high << RULE_LEAST_BITS | low;
}

static uintptr_t address_pick(uint64_t *seed) {
    return random_next(seed) >> (64 - ADDRESS_BITS);
}

// So many are in use, whatever is known.
static uint32_t use_sets(unsigned bits) {
    rule_cache.set_mask = (1u << bits) - 1;
    rule_cache.full_count = 0;
    return rule_cache.set_mask;
}

static void test_set_and_tag_give_the_address_back(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < ROUNDS; i++) {
        uintptr_t pc = address_pick(&seed);
        uintptr_t other = pc ^ (uintptr_t)1 << random_below(&seed, ADDRESS_BITS);
        uint32_t mask =
            use_sets(RULE_LEAST_BITS + (unsigned)i % (RULE_MOST_BITS - RULE_LEAST_BITS + 1));
        assert_true(rule_set(pc) <= mask);
        assert_int_equal(rule_tag(pc) & ((UINT64_C(1) << RULE_BITS) - 1), 0);
        assert_int_equal(address_of(rule_set(pc), rule_tag(pc)), pc);
        assert_false(rule_set(pc) == rule_set(other) && rule_tag(pc) == rule_tag(other));
    }
}

// Code that lies close together spreads over the sets.
static void test_neighbours_do_not_share_a_set(void **state) {
    (void)state;
    use_sets(RULE_LEAST_BITS);
    for (uintptr_t pc = 0x555555550000; pc < 0x555555550000 + (1u << RULE_LEAST_BITS) - 64; pc++)
        for (uintptr_t step = 1; step < 64; step *= 2)
            assert_int_not_equal(rule_set(pc), rule_set(pc + step));
}

// Only what was stored for an address is ever found for it; the newer of two in one set wins.
static void test_the_cache_gives_nothing_wrong(void **state) {
    (void)state;
    uint64_t seed = 2, found = 0;
    static uintptr_t pcs[STORED];
    rule_forget_all();
    use_sets(RULE_LEAST_BITS);
    for (int i = 0; i < STORED; i++) {
        pcs[i] = address_pick(&seed) | (uintptr_t)1 << (ADDRESS_BITS - 1);
        assert_int_equal(rule_look_up(pcs[i]), RULE_NONE);
        assert_int_equal(rule_kind(rule_find_slow(pcs[i])), RULE_NO_CFI);
        assert_int_equal(rule_kind(rule_look_up(pcs[i])), RULE_NO_CFI);
        assert_int_equal(rule_look_up(pcs[i] ^ 0x8000), RULE_NONE);
    }
    for (int i = 0; i < STORED; i++) found += rule_look_up(pcs[i]) != RULE_NONE;
    assert_true(found > STORED * 9 / 10);
    rule_forget_all();
    for (int i = 0; i < STORED; i++) assert_int_equal(rule_look_up(pcs[i]), RULE_NONE);
}

// Few addresses use few sets. When these become more, what is known stays known; a table of its own
// says what that is.
static void test_sets_grow_with_the_rules(void **state) {
    (void)state;
    enum { FEW = 100, EACH = 64 };  // addresses; so many bytes of code have one
    static uintptr_t pcs[STORED];
    uint64_t seed = 3;
    uint32_t sets = 0, known = 0;
    rule_forget_all();
    use_sets(RULE_LEAST_BITS);
    for (uint32_t i = 0; i < STORED; i++) {
        pcs[i] = 0x555555550000 + i * EACH + random_below(&seed, EACH);
        assert_int_equal(rule_kind(rule_find_slow(pcs[i])), RULE_NO_CFI);
        if (i == FEW) assert_int_equal(rule_cache.set_mask, (1u << RULE_LEAST_BITS) - 1);
        if (rule_cache.set_mask == sets) continue;
        sets = rule_cache.set_mask;
        for (uint32_t j = known = 0; j <= i; j++) known += rule_look_up(pcs[j]) != RULE_NONE;
        assert_in_range(known, i * 9 / 10, i + 1);
    }
    assert_int_equal(rule_cache.set_mask, RULE_SETS - 1);
    for (uint32_t i = known = 0; i < STORED; i++) {
        known += rule_look_up(pcs[i]) != RULE_NONE;
        assert_int_equal(rule_look_up(pcs[i] + EACH * STORED), RULE_NONE);
    }
    assert_in_range(known, STORED * 9 / 10, STORED);
}

#if defined(__x86_64__)
// The rule is that of the first nop.
CODE(code_plain, "");
CODE(code_largest, ".cfi_def_cfa_offset 262136");
CODE(code_too_large, ".cfi_def_cfa_offset 262144");
CODE(code_crooked, ".cfi_def_cfa_offset 20");
CODE(code_negative, ".cfi_def_cfa_offset -8");
CODE(code_saved, ".cfi_def_cfa_offset 16\n .cfi_offset 6, -16");
CODE(code_saved_far, ".cfi_def_cfa_offset 8192\n .cfi_offset 6, -4088");
CODE(code_saved_too_far, ".cfi_def_cfa_offset 8192\n .cfi_offset 6, -4096");
CODE(code_saved_above, ".cfi_offset 6, 8");
CODE(code_saved_absurdly,
     ".cfi_escape 0x11, 6, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10");  // -2^63
CODE(code_frame, ".cfi_def_cfa 6, 16\n .cfi_offset 6, -16");
CODE(code_frame_kept, ".cfi_def_cfa 6, 32");
CODE(code_other_register, ".cfi_def_cfa 3, 16");
CODE(code_return_elsewhere, ".cfi_offset 16, -16");
CODE(code_outermost, ".cfi_undefined 16");
CODE(code_signal, ".cfi_signal_frame");
CODE(code_expression, ".cfi_escape 0x0f, 2, 0x77, 8");
CODE(code_frame_lost, ".cfi_undefined 6");
CODE(code_frame_in_register, ".cfi_register 6, 3");

// Where the function of a fiber would return to, as Boost.Context has it; and code that is like it.
#define BARE(name, code)                                                                           \
    __asm__(".text\n" #name ": nop\n" code "\n.skip 16, 0x90\n");                                  \
    extern const uint8_t name[]
BARE(code_end_of_fiber, "xorq %rdi, %rdi\ncall _exit@PLT\nhlt");
BARE(code_call, "xorq %rdi, %rdi\ncall _exit@PLT\nnop");

static const struct {
    const uint8_t *code;
    uint64_t kind, cfa, saved;
} forms[] = {
    {code_end_of_fiber, RULE_END, 0, 0},
    {code_call, RULE_NO_CFI, 8, 0},  // no call lies before: RULE_NO_RETURN
    {code_plain, RULE_STACK, 8, 0},
    {code_largest, RULE_STACK, 262136, 0},
    {code_too_large, RULE_SLOW, 0, 0},
    {code_crooked, RULE_SLOW, 0, 0},
    {code_negative, RULE_SLOW, 0, 0},
    {code_saved, RULE_STACK_SAVED, 16, 16},
    {code_saved_far, RULE_STACK_SAVED, 8192, 4088},
    {code_saved_too_far, RULE_SLOW, 0, 0},
    {code_saved_above, RULE_SLOW, 0, 0},
    {code_saved_absurdly, RULE_SLOW, 0, 0},
    {code_frame, RULE_FRAME_SAVED, 16, 16},
    {code_frame_kept, RULE_FRAME, 32, 0},
    {code_other_register, RULE_SLOW, 0, 0},
    {code_return_elsewhere, RULE_SLOW, 0, 0},
    {code_outermost, RULE_END, 0, 0},
    {code_signal, RULE_SLOW, 0, 0},
    {code_expression, RULE_SLOW, 0, 0},
    {code_frame_lost, RULE_STACK, 8, 0},
    {code_frame_in_register, RULE_SLOW, 0, 0},
};

static void test_forms(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        uintptr_t pc = (uintptr_t)forms[i].code + 1;
        uint64_t rule = rule_find_slow(pc);
        if (rule_kind(rule) != forms[i].kind) print_message("form %zu\n", i);
        assert_int_equal(rule_kind(rule), forms[i].kind);
        assert_int_equal(rule_cfa_offset(rule), forms[i].cfa);
        assert_int_equal(rule_saved_offset(rule), forms[i].saved);
        assert_int_equal(rule_look_up(pc), rule);
    }
}
#else
static void test_forms(void **state) {
    (void)state;
    skip();
}
#endif

static void test_no_code(void **state) {
    (void)state;
    static const uintptr_t addresses[] = {0, 1, 4095, (uintptr_t)1 << 47, UINTPTR_MAX};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        assert_int_equal(rule_find_slow(addresses[i]), RULE_NO_CFI);
}

static int setup(void **state) {
    (void)state;
    object_init();
    return rule_init() ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_tag_give_the_address_back),
        cmocka_unit_test(test_neighbours_do_not_share_a_set),
        cmocka_unit_test(test_the_cache_gives_nothing_wrong),
        cmocka_unit_test(test_sets_grow_with_the_rules),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_no_code),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
