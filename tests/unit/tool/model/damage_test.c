// SPDX-License-Identifier: Apache-2.0
// Recordings cut off at every 17th byte (at every one in `make check-long`) and with bytes changed
// at random: never a crash (the tests run under sanitizers), never a number without end, and what
// is whole stays readable.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/answer/forms.h"
#include "tool/model/narrow.h"
#include "tool/model/profile.h"
#include "tool/render/chart.h"
#include "tool/render/groups_screen.h"
#include "tool/render/memory.h"
#include "tool/render/report_json.h"
#include "tool/render/stack_answers.h"
#include "tool/render/summary.h"
#include "tool/render/tree.h"

enum { SHORT_STEP = 17, SHORT_ROUNDS = 80, LONG_ROUNDS = 1000 };

static struct making making;
static FILE *nowhere;

static bool is_long(void) {
    return getenv("CAIRN_LONG") != NULL;
}

static const struct frame *nameless(void *context, uint32_t place, size_t *count) {
    enum { FRAMES = 256 };
    static struct frame frames[FRAMES];  // some places share one: recursion
    const struct profile *profile = context;
    struct frame *frame = &frames[place % FRAMES];
    frame->offset = profile->places.list.items[place].address;
    *count = 1;
    return frame;
}

static void print_answer(const struct terminal *terminal, struct answer *answer,
                         struct error *error) {
    assert_true(answer_print_text(terminal, answer, error));
    answer_close(answer);
}

static void read_views(const struct terminal *terminal, struct profile *profile,
                       const struct frame_names *names, const struct view_options *view,
                       struct error *error) {
    static const enum grouping_id groups[] = {GROUP_FUNCTIONS, GROUP_TYPES};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        struct answer answer;
        assert_true(groups_answer(&answer, &groupings[groups[i]], profile, names, view, error));
        print_answer(terminal, &answer, error);
    }
    struct answer threads;
    assert_true(threads_answer(&threads, profile, view, false, error));
    print_answer(terminal, &threads, error);
    struct answer timeline;
    assert_true(timeline_answer(&timeline, profile, names, view, error));
    print_answer(terminal, &timeline, error);
    struct answer stacks;
    assert_true(shapes_answer(&stacks, profile, names, view, SHAPES_SIZES, 1, error));
    print_answer(terminal, &stacks, error);
    struct answer memory;
    assert_true(memory_answer(&memory, profile, view, error));
    print_answer(terminal, &memory, error);
    struct answer tree;
    assert_true(tree_answer(&tree, profile, names, view, error));
    assert_true(answer_print_calls(terminal->out, &tree, error));
    answer_close(&tree);
    bool is_estimate, *are_kept = calloc(profile->thread_count + 1, sizeof *are_kept);
    if (profile->thread_count) are_kept[profile->thread_count / 2] = true;
    assert_true(profile_keep_threads(profile, are_kept, &is_estimate));
    profile_keep_lifespan(profile, LIFESPAN_GONE);
    assert_true(stacks_answer(&stacks, profile, names, view, error));
    print_answer(terminal, &stacks, error);
    free(are_kept);
}

// Reads and prints everything; true if the recording was accepted.
static bool read_all(const uint8_t *bytes, size_t size) {
    struct recording recording;
    struct profile profile;
    struct error error = {""};
    if (!recording_open_memory(bytes, size, &recording, &error)) {
        assert_true(error.text[0] != 0);
        return false;
    }
    assert_true(profile_build(&recording, &profile, &error));
    struct frame_names names = {.of_place = nameless, .context = &profile};
    struct terminal terminal = {.out = nowhere, .columns = 80};
    struct view_options view = {.top = 5, .depth = 5};
    struct summary summary = {
        .profile = &profile, .names = &names, .view = &view, .path = "x", .has_list = true};
    assert_true(summary_print_facts(&terminal, &summary, &error));
    summary_print_file(&terminal, &summary);
    struct answer stacks;
    assert_true(stacks_answer(&stacks, &profile, &names, &view, &error));
    print_answer(&terminal, &stacks, &error);
    assert_true(tree_answer(&stacks, &profile, &names, &view, &error));
    print_answer(&terminal, &stacks, &error);
    struct findings findings;
    assert_true(findings_find(&findings, &profile, &error));
    assert_true(findings_settle(&findings, &profile, &names, &error));
    assert_true(report_json_print(nowhere, &profile, &names, &findings, &view, &error));
    read_views(&terminal, &profile, &names, &view, &error);
    profile_free(&profile);
    recording_close(&recording);
    return true;
}

static void test_every_length(void **state) {
    (void)state;
    making_sample(&making);
    size_t size;
    uint8_t *bytes = making_finish(&making, true, &size);
    for (size_t length = 0; length <= size; length += is_long() ? 1 : SHORT_STEP) {
        // a copy of that size, so that reading beyond it is seen
        uint8_t *cut = malloc(length + 1);
        memcpy(cut, bytes, length);
        bool is_accepted = read_all(cut, length);
        assert_int_equal(is_accepted, length >= CAIRN_HEADER_BYTES);
        free(cut);
        if (length < CAIRN_HEADER_BYTES && length % 64 == 8) length += 55;  // all alike
    }
    free(bytes);
}

static void flip_bytes(const uint8_t *bytes, size_t size, unsigned *seed, size_t from, size_t to,
                       unsigned flips) {
    uint8_t *copy = malloc(size);
    memcpy(copy, bytes, size);
    for (unsigned i = 0; i < flips; i++)
        copy[from + (size_t)rand_r(seed) % (to - from)] = (uint8_t)rand_r(seed);
    read_all(copy, size);
    free(copy);
}

static void test_random_bytes(void **state) {
    (void)state;
    enum { FLIPS_MAX = 40 };
    making_sample(&making);
    size_t size;
    uint8_t *bytes = making_finish(&making, true, &size);
    unsigned seed = 4242;
    size_t table = offsetof(struct cairn_header, windows);
    for (int round = 0; round < (is_long() ? LONG_ROUNDS : SHORT_ROUNDS); round++) {
        unsigned flips = (unsigned)rand_r(&seed) % FLIPS_MAX + 1;
        // in the facts and the section table, in the totals, behind the header, anywhere
        flip_bytes(bytes, size, &seed, 16, table, 2);
        flip_bytes(bytes, size, &seed, table, offsetof(struct cairn_header, control), 3);
        flip_bytes(bytes, size, &seed, CAIRN_HEADER_BYTES, size, flips);
        flip_bytes(bytes, size, &seed, 16, size, flips);
    }
    free(bytes);
}

// Deep stacks built upon each other and cut back again must not cost depth times cells.
static void test_deep_stacks(void **state) {
    (void)state;
    enum { CHUNK = 200, CHUNKS = 30, SHORT_CELLS = 800 };
    making_start(&making);
    making_thread(&making, 1, "deep");
    uint32_t codes[CHUNK], cell = 0;
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
        for (uint32_t i = 0; i < CHUNK; i++)
            codes[i] = making_code(&making, 0x400000 + chunk * 0x1000 + i);
        cell = making_cell(&making, 0, cell, chunk * CHUNK, codes, CHUNK, CHUNK);
        making_book(&making, cell, 1, 1, 0, 0);
    }
    for (uint32_t i = 0; i < SHORT_CELLS; i++)
        making_book(&making, making_cell(&making, 0, cell, i % 7, NULL, 0, 0), 1, 1, 0, 0);
    size_t size;
    uint8_t *bytes = making_finish(&making, true, &size);
    assert_true(read_all(bytes, size));
    free(bytes);
}

// Code that names a module by its number, where that module's entry is not finished.
static void test_unfinished_module(void **state) {
    (void)state;
    struct recording recording;
    struct profile profile;
    making_sample(&making);
    for (uint32_t i = 0; i < making.module_count; i++) making.modules[i].is_ready = 0;
    size_t size;
    uint8_t *bytes = making_finish(&making, true, &size);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_true(profile_build(&recording, &profile, NULL));
    for (size_t i = 0; i < profile.places.list.count; i++)
        assert_int_equal(profile.places.list.items[i].module, MODULE_NONE);
    profile_free(&profile);
    recording_close(&recording);
    assert_true(read_all(bytes, size));
    free(bytes);
}

static int open_nowhere(void **state) {
    (void)state;
    nowhere = fopen("/dev/null", "w");
    return nowhere ? 0 : -1;
}

static int close_nowhere(void **state) {
    (void)state;
    return fclose(nowhere);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_deep_stacks),
        cmocka_unit_test(test_unfinished_module),
    };
    return cmocka_run_group_tests(tests, open_nowhere, close_nowhere);
}
