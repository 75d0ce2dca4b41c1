// SPDX-License-Identifier: Apache-2.0
// Sums of recordings that brought names of their own (SYMBOLS): frames of a place are those of the
// recording, all of them, whichever of them has no name.
#include "tool/query/merged.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/model/rewrite.h"
#include "tool/query/name_options.h"
#include "tool/symbol/bundle.h"

#define PATH "merged_test.cairn"
#define INLINED 2u  // frames at the address that is asked for

// The place at 0x1233 of /usr/bin/sample, as making_sample has it.
static const uint64_t address = 0x1233;

// Leaves a recording whose names of that place are these, innermost first; NULL: none.
static void make_named(const char *const functions[INLINED]) {
    static struct making making;
    uint8_t build_id[20];
    struct symbol_frame frames[INLINED] = {{.linkage = functions[0], .is_inlined = true},
                                           {.linkage = functions[1]}};
    struct symbol_query query = {
        .address = address, .frames = frames, .frame_count = INLINED, .is_known = true};
    memset(build_id, 0x11, sizeof build_id);
    const struct bundle_part part = {.module = {.path = "/usr/bin/sample",
                                                .build_id = build_id,
                                                .build_id_bytes = sizeof build_id},
                                     .source = SYMBOL_SOURCE_DWARF,
                                     .queries = &query,
                                     .count = 1};
    struct error error;
    void *names;
    size_t size, names_size;
    making_sample(&making);
    uint8_t *bytes = making_finish(&making, true, &size);
    making_write(PATH, bytes, size);
    assert_true(bundle_make(&part, 1, &names, &names_size));
    assert_true(recording_set_section(PATH, CAIRN_SECTION_SYMBOLS, 1, names, names_size, &error));
    free(names);
    free(bytes);
}

// Adds the recording up with itself, and checks the names of that place.
static void check_sum(bool is_by_names, const char *inner, const char *outer) {
    char *words[] = {PATH, PATH, NULL};
    const struct opening opening = {.words = words, .count = 2, .is_by_names = is_by_names};
    struct opened opened;
    struct error error;
    size_t found = 0;
    if (!merged_open(&opening, &opened, &error)) fail_msg("%s", error.text);
    assert_int_equal(opened.process_count, 2);
    const struct frame_names names = names_frames(opened.names);
    for (uint32_t i = 0; i < opened.profile.places.list.count; i++) {
        size_t count;
        if (opened.profile.places.list.items[i].cut) continue;
        const struct frame *frames = names.of_place(names.context, i, &count);
        if (count != INLINED) continue;
        assert_string_equal(frames[0].function ? frames[0].function : "none", inner);
        assert_string_equal(frames[1].function ? frames[1].function : "none", outer);
        found++;
    }
    assert_int_equal(found, 1);
    opened_close(&opened);
}

static void test_names_of_a_place_are_kept(void **state) {
    (void)state;
    make_named((const char *const[]){"inner", "outer"});
    check_sum(true, "inner", "outer");
    check_sum(false, "inner", "outer");
}

// The linker's name of a function may be missing where those that were inlined into it have one.
static void test_the_outermost_has_no_name(void **state) {
    (void)state;
    make_named((const char *const[]){"inner", NULL});
    check_sum(true, "inner", "sample+0x1233");
}

static void test_an_inner_one_has_no_name(void **state) {
    (void)state;
    make_named((const char *const[]){NULL, "outer"});
    check_sum(true, "none", "outer");
    check_sum(false, "none", "outer");
}

static int tear_down(void **state) {
    (void)state;
    unlink(PATH);
    return 0;
}

int main(void) {
    name_options_symbols()->is_closed = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_a_place_are_kept),
        cmocka_unit_test(test_the_outermost_has_no_name),
        cmocka_unit_test(test_an_inner_one_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
