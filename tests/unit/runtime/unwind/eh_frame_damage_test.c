// SPDX-License-Identifier: Apache-2.0
// Unwind information cut off at every byte, and with random bytes changed, in a copy that ends at
// an unreadable page and begins after one: nothing outside is ever read.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "runtime/sys/sys.h"
#include "runtime/unwind/eh_frame.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/unwind/image.h"

enum { PIECE_MAX = 1 << 17, FLIP_ROUNDS = 200000, PROBES = 4 };

// The stretch of this program's memory from .eh_frame_hdr to the end of .eh_frame.
static struct image image;
static uint64_t piece_from, piece_bytes;
static uint8_t *pages;  // unreadable page, PIECE_MAX bytes, unreadable page

// Instead of the runtime's own: expressions read nothing but the pages (random addresses would hit
// the sanitizer's memory).
bool sys_is_readable(const void *address) {
    uintptr_t start = (uintptr_t)pages + SYS_PAGE_LEAST;
    return (uintptr_t)address - start < PIECE_MAX;
}

static uint64_t entry_end(uint64_t entry) {
    uint32_t length;
    memcpy(&length, image.memory + entry, sizeof length);
    return entry + 4 + length;
}

static int setup(void **state) {
    (void)state;
    if (!image_load(&image, "/proc/self/exe")) return -1;
    piece_from = (uint64_t)(image.source.eh_frame_hdr - image.memory);
    uint64_t end = 0;
    for (uint32_t i = 0; i < image_function_count(&image); i++) {
        uint64_t entry = image_function(&image, i).entry;
        if (entry_end(entry) > end) end = entry_end(entry);
    }
    piece_bytes = end - piece_from;
    pages = mmap(NULL, PIECE_MAX + 2 * SYS_PAGE_LEAST, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages, SYS_PAGE_LEAST, PROT_NONE);
    mprotect(pages + PIECE_MAX + SYS_PAGE_LEAST, SYS_PAGE_LEAST, PROT_NONE);
    return end <= piece_from || piece_bytes > PIECE_MAX;
}

// The first `bytes` bytes of the piece, at the very end of the readable pages.
static struct row_source source_cut(uint64_t bytes) {
    uint8_t *end = pages + SYS_PAGE_LEAST + PIECE_MAX;
    memcpy(end - bytes, image.memory + piece_from, bytes);
    return (struct row_source){end - bytes, end, end - bytes};
}

static void evaluate(const struct row_expression *expression, struct row_registers *registers) {
    uintptr_t result;
    row_evaluate(expression, registers, registers->stack, &result);
}

// Looks for the row of a function's code as it would lie beside the piece.
static bool probe(const struct row_source *source, uint64_t address) {
    struct row row;
    uintptr_t pc = (uintptr_t)source->start + address - piece_from;
    if (!row_find(source, pc, &row)) return false;
    struct row_registers registers = {pc, (uintptr_t)pages + SYS_PAGE_LEAST,
                                      (uintptr_t)pages + SYS_PAGE_LEAST + 512, true};
    if (row.is_cfa_expression) evaluate(&row.cfa_expression, &registers);
    if (row.frame.how == ROW_AT_EXPRESSION) evaluate(&row.frame.expression, &registers);
    if (row.ret.how == ROW_AT_EXPRESSION) evaluate(&row.ret.expression, &registers);
    return true;
}

static uint64_t address_pick(uint64_t *seed) {
    uint32_t count = image_function_count(&image);
    uint64_t start = image_function(&image, (uint32_t)random_below(seed, count)).start;
    return start + random_below(seed, 64);
}

static void test_cut_at_every_byte(void **state) {
    (void)state;
    uint64_t seed = 1, found = 0;
    for (uint64_t bytes = 0; bytes <= piece_bytes; bytes++) {
        struct row_source source = source_cut(bytes);
        for (int i = 0; i < PROBES; i++) found += probe(&source, address_pick(&seed));
    }
    assert_true(found > piece_bytes / 10);
}

// Bytes change to values that mean much: large numbers, lengths, common codes.
static void damage(struct row_source *source, uint64_t *seed) {
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, 0x0f, 0x10, 0x16, 0x2f, 0x0a, 0x0b};
    uint8_t *bytes = (uint8_t *)source->start;
    uint64_t size = (uint64_t)(source->end - source->start);
    uint64_t where = random_below(seed, size), count = 1 + random_below(seed, 12);
    for (uint64_t i = 0; i < count; i++) {
        if (random_chance(seed, 30)) where = random_below(seed, size);
        uint8_t value = values[random_below(seed, sizeof values)];
        bytes[where] = random_chance(seed, 50) ? value : (uint8_t)random_next(seed);
        where = (where + 1) % size;
    }
}

static void test_changed_bytes(void **state) {
    (void)state;
    uint64_t seed = 2, found = 0;
    for (int round = 0; round < FLIP_ROUNDS; round++) {
        uint32_t header_bytes = 12 + 8 * image_function_count(&image);
        struct row_source source = source_cut(piece_bytes);
        uint64_t entry =
            image_function(&image, (uint32_t)random_below(&seed, image_function_count(&image)))
                .entry;
        struct row_source part = source;  // half of the damage goes to what the probe will read
        if (random_chance(&seed, 50)) {
            part.start += entry - piece_from;
            part.end = source.start + entry_end(entry) - piece_from;
        } else if (random_chance(&seed, 50)) {
            part.end = source.start + header_bytes;
        }
        damage(&part, &seed);
        for (int i = 0; i < PROBES; i++) found += probe(&source, address_pick(&seed));
    }
    assert_true(found > FLIP_ROUNDS / 10);
}

static void test_header_outside(void **state) {
    (void)state;
    struct row row;
    struct row_source source = source_cut(piece_bytes);
    uintptr_t pc = (uintptr_t)source.start;
    const uint8_t *hdr[] = {NULL, source.end, source.end - 1, source.start - 1, source.end + 1};
    for (int i = 0; i < 5; i++) {
        source.eh_frame_hdr = hdr[i];
        assert_false(row_find(&source, pc, &row));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_header_outside),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
