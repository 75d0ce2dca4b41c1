// SPDX-License-Identifier: Apache-2.0
// Each operation of a DWARF expression by a table of programs and results, then random bytes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "runtime/sys/sys.h"
#include "runtime/unwind/eh_frame.h"
#include "tests/unit/runtime/random.h"

enum { LENGTH_MAX = 24, ROUNDS = 300000, REFUSED = 0, GIVES = 1 };

static const uintptr_t stack_value = 0x7000, frame_value = 0x8000, pc_value = 0x401234;
static const uintptr_t initial = 0x1000;

struct program {
    uint8_t length, outcome;
    uint8_t bytes[LENGTH_MAX];
    uint64_t result;
};

static const struct program programs[] = {
    {0, GIVES, {0}, 0x1000},
    {1, GIVES, {0x96}, 0x1000},                                      // nop
    {1, GIVES, {0x30}, 0},                                           // lit0
    {1, GIVES, {0x4f}, 31},                                          // lit31
    {9, GIVES, {0x03, 1, 2, 3, 4, 5, 6, 7, 8}, 0x0807060504030201},  // addr
    {2, GIVES, {0x08, 0xff}, 255},                                   // const1u
    {2, GIVES, {0x09, 0xff}, UINT64_MAX},                            // const1s
    {3, GIVES, {0x0a, 0xfe, 0xff}, 65534},                           // const2u
    {3, GIVES, {0x0b, 0xfe, 0xff}, UINT64_MAX - 1},                  // const2s
    {5, GIVES, {0x0c, 0, 0, 0, 0x80}, 0x80000000},                   // const4u
    {5, GIVES, {0x0d, 0, 0, 0, 0x80}, 0xffffffff80000000},           // const4s
    {9, GIVES, {0x0e, 8, 7, 6, 5, 4, 3, 2, 1}, 0x0102030405060708},  // const8u
    {9, GIVES, {0x0f, 255, 255, 255, 255, 255, 255, 255, 255}, UINT64_MAX},
    {4, GIVES, {0x10, 0xe5, 0x8e, 0x26}, 624485},             // constu
    {4, GIVES, {0x11, 0xc0, 0xbb, 0x78}, (uint64_t)-123456},  // consts
    {2, GIVES, {0x12, 0x22}, 0x2000},                         // dup plus
    {2, GIVES, {0x31, 0x13}, 0x1000},                         // drop
    {3, GIVES, {0x31, 0x16, 0x1c}, (uint64_t)1 - 0x1000},     // swap minus
    {3, GIVES, {0x37, 0x33, 0x1a}, 3},                        // and
    {3, GIVES, {0x37, 0x33, 0x1c}, 4},                        // minus
    {3, GIVES, {0x37, 0x33, 0x1e}, 21},                       // mul
    {2, GIVES, {0x31, 0x1f}, UINT64_MAX},                     // neg
    {2, GIVES, {0x30, 0x20}, UINT64_MAX},                     // not
    {3, GIVES, {0x34, 0x33, 0x21}, 7},                        // or
    {3, GIVES, {0x23, 0x80, 0x02}, 0x1100},                   // plus_uconst
    {3, GIVES, {0x31, 0x34, 0x24}, 16},                       // shl
    {4, GIVES, {0x31, 0x08, 64, 0x24}, 0},                    // shl by 64
    {4, GIVES, {0x31, 0x1f, 0x34, 0x25}, UINT64_MAX >> 4},    // shr
    {5, GIVES, {0x31, 0x1f, 0x08, 200, 0x25}, 0},             // shr by 200
    {3, GIVES, {0x35, 0x33, 0x27}, 6},                        // xor
    {3, GIVES, {0x33, 0x33, 0x29}, 1},                        // eq
    {4, GIVES, {0x31, 0x1f, 0x30, 0x2a}, 0},                  // -1 >= 0
    {4, GIVES, {0x31, 0x1f, 0x30, 0x2b}, 0},                  // -1 > 0
    {4, GIVES, {0x31, 0x1f, 0x30, 0x2c}, 1},                  // -1 <= 0
    {4, GIVES, {0x31, 0x1f, 0x30, 0x2d}, 1},                  // -1 < 0
    {3, GIVES, {0x33, 0x34, 0x2e}, 1},                        // ne
    {2, GIVES, {0x77, 0x08}, 0x7008},                         // breg7 +8
    {2, GIVES, {0x76, 0x78}, 0x7ff8},                         // breg6 -8
    {2, GIVES, {0x80, 0x00}, 0x401234},                       // breg16 +0
    {3, GIVES, {0x92, 0x07, 0x10}, 0x7010},                   // bregx 7 +16
    // The PLT: rsp + 8 + ((rip & 15) >= 11) * 8
    {11, GIVES, {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 0x7008},
    {11, GIVES, {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x34, 0x2a, 0x33, 0x24, 0x22}, 0x7010},
    {2, REFUSED, {0x70, 0}, 0},                 // a register that a walk does not know
    {3, REFUSED, {0x92, 0x03, 0x00}, 0},        // the same, extended
    {1, REFUSED, {0x22}, 0},                    // plus of one value
    {2, REFUSED, {0x13, 0x13}, 0},              // drop of nothing
    {1, REFUSED, {0x13}, 0},                    // nothing left
    {1, REFUSED, {0x16}, 0},                    // swap of one value
    {2, REFUSED, {0x13, 0x12}, 0},              // dup of nothing
    {2, REFUSED, {0x30, 0x06}, 0},              // deref of a null pointer
    {4, REFUSED, {0x0a, 0x00, 0x10, 0x06}, 0},  // deref of an unmapped page
    {2, REFUSED, {0x30, 0xff}, 0},              // unknown operation
    {1, REFUSED, {0x00}, 0},
    {3, REFUSED, {0x2f, 0xfd, 0xff}, 0},  // skip: loops are not for us
    {1, REFUSED, {0x08}, 0},              // operand missing
    {4, REFUSED, {0x0c, 1, 2, 3}, 0},
    {8, REFUSED, {0x03, 1, 2, 3, 4, 5, 6, 7}, 0},
    {2, REFUSED, {0x10, 0x80}, 0},
    {1, REFUSED, {0x77}, 0},
    {16,
     REFUSED,
     {0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12,
      0x12},
     0},  // too many values
};

// Bytes before unreadable memory, so that a read past the end is a fault.
static const uint8_t *at_the_end(const uint8_t *bytes, size_t length) {
    static uint8_t *page;
    if (!page) {
        page = mmap(NULL, 2 * sys_page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);
        mprotect(page + sys_page_bytes(), sys_page_bytes(), PROT_NONE);
    }
    return memcpy(page + sys_page_bytes() - length, bytes, length);
}

static bool evaluate(const uint8_t *bytes, size_t length, bool is_frame_known, uintptr_t *result) {
    struct row_registers registers = {pc_value, stack_value, frame_value, is_frame_known};
    struct row_expression expression = {at_the_end(bytes, length), (uint32_t)length};
    return row_evaluate(&expression, &registers, initial, result);
}

static void test_operations(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        const struct program *program = &programs[i];
        uintptr_t result = 0;
        bool is_ok = evaluate(program->bytes, program->length, true, &result);
        if (is_ok != program->outcome || (is_ok && result != program->result))
            print_message("program %zu: %d %#lx\n", i, is_ok, result);
        assert_int_equal(is_ok, program->outcome);
        if (is_ok) assert_int_equal(result, program->result);
    }
}

static void test_unknown_frame_pointer(void **state) {
    (void)state;
    static const uint8_t by_frame[] = {0x76, 0}, by_stack[] = {0x77, 0};
    uintptr_t result = 0;
    assert_false(evaluate(by_frame, 2, false, &result));
    assert_true(evaluate(by_stack, 2, false, &result));
}

static void test_memory_is_read(void **state) {
    (void)state;
    static const uint8_t deref[] = {0x06};
    uint8_t *pages = mmap(NULL, 2 * sys_page_bytes(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct row_expression expression = {deref, 1};
    struct row_registers registers = {0};
    uintptr_t result = 0, last = (uintptr_t)pages + sys_page_bytes() - 8;
    *(uint64_t *)last = 0x1122334455667788;
    mprotect(pages + sys_page_bytes(), sys_page_bytes(), PROT_NONE);
    assert_true(row_evaluate(&expression, &registers, last, &result));
    assert_int_equal(result, 0x1122334455667788);
    assert_true(row_evaluate(&expression, &registers, last - 3, &result));
    for (uintptr_t past = 1; past < 16; past++)
        assert_false(row_evaluate(&expression, &registers, last + past, &result));
    for (uintptr_t at = 0; at < 16; at++) {
        assert_false(row_evaluate(&expression, &registers, at, &result));
        assert_false(row_evaluate(&expression, &registers, 0 - at, &result));
    }
    munmap(pages, 2 * sys_page_bytes());
}

// Without reads of memory: random addresses would hit the sanitizer's own.
static void test_random_bytes_stay_inside(void **state) {
    (void)state;
    const uint8_t deref = 0x06, nop = 0x96;
    uint64_t seed = 1, good = 0;
    uint8_t bytes[LENGTH_MAX];
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = random_below(&seed, LENGTH_MAX + 1);
        uintptr_t result = 0;
        for (size_t i = 0; i < length; i++) {
            const struct program *some =
                &programs[random_below(&seed, sizeof programs / sizeof programs[0])];
            bytes[i] = some->bytes[random_below(&seed, 4)];
            if (random_chance(&seed, 10)) bytes[i] = (uint8_t)random_next(&seed);
            if (bytes[i] == deref) bytes[i] = nop;
        }
        good += evaluate(bytes, length, random_chance(&seed, 50), &result);
    }
    assert_true(good > ROUNDS / 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_unknown_frame_pointer),
        cmocka_unit_test(test_memory_is_read),
        cmocka_unit_test(test_random_bytes_stay_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
