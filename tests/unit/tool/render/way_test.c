// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tool/render/calls.h"
#include "tool/render/groups.h"
#include "tool/render/way.h"

// Places by number: the first frame is the innermost, a second one what it is inlined into.
enum spot_name {
    MAIN,
    LOAD,
    STORE,
    PARSE,
    VECTOR,
    NO_NAME,
    SHORT,
    LIBRARY,
    NO_CODE,
    OTHER,
    OTHER_LOAD,
    WRAPPER,
    PLACES
};
static const struct frame frames[PLACES][2] = {
    [MAIN] = {{.function = "main", .file = "a.c", .is_own = true}},
    [LOAD] = {{.function = "load", .file = "a.c", .is_own = true}},
    [STORE] = {{.function = "store", .file = "a.c", .is_own = true}},
    [PARSE] = {{.function = "parse", .file = "a.c", .is_own = true}},
    [VECTOR] = {{.function = "std::vector<int>::resize", .is_hidden = true}},
    [NO_NAME] = {{.module = "/bin/program", .offset = 0x1234, .is_own = true}},
    [SHORT] = {{.function = "push", .file = "a.c", .is_own = true, .is_inlined = true},
               {.function = "append", .file = "a.c", .is_own = true}},
    [OTHER] = {{.function = "other", .file = "a.c", .is_own = true}},
    [OTHER_LOAD] = {{.function = "load", .file = "b.c", .is_own = true}},
    [NO_CODE] = {{.function = "allocated before attach", .is_own = true}},
    [LIBRARY] = {{.function = "xmlReadFile", .module = "/lib/libxml2.so"}},
    [WRAPPER] = {{.function = "PL_malloc_atomic", .module = "/lib/libswipl.so"}},
};

static const struct frame *frames_of(void *context, uint32_t place, size_t *count) {
    (void)context;
    *count = frames[place][1].function ? 2 : 1;
    return frames[place];
}

static const struct frame_names names = {.of_place = frames_of};
static struct recording recording;
static struct profile profile;
static struct stack stacks[64];
static struct place code_places[PLACES];

static int setup(void **state) {
    (void)state;
    memset(stacks, 0, sizeof stacks);
    profile = (struct profile){.recording = &recording, .stacks = stacks};
    profile.places.list.items = code_places;
    profile.places.list.count = PLACES;
    return tree_start(&profile.tree) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    tree_free(&profile.tree);
    return 0;
}

// A stack from the outermost place inwards, which held so many bytes at the peak.
static void add(int64_t bytes, const enum spot_name *places, size_t count) {
    uint32_t node = TREE_ROOT;
    for (size_t i = 0; i < count; i++)
        assert_true(tree_child(&profile.tree, node, places[i], &node));
    stacks[profile.stack_count++] = (struct stack){.node = node, .peak_bytes = bytes};
    profile.built_stack_count = profile.stack_count;
    profile.peak.bytes += bytes;
}
#define ADD(bytes, ...)                                                                            \
    add(bytes, (const enum spot_name[]){__VA_ARGS__},                                              \
        sizeof((const enum spot_name[]){__VA_ARGS__}) / sizeof(enum spot_name))

static void check(const char *expected) {
    struct claim claim;
    bool has_any;
    char sentence[CLAIM_SENTENCE_BYTES];
    assert_true(claim_of_way(&claim, &profile, &names, &has_any));
    assert_int_equal(has_any, expected != NULL);
    if (!expected) return;
    claim_sentence(&claim, false, sentence);
    assert_string_equal(sentence, expected);
}

static void test_nothing(void **state) {
    (void)state;
    check(NULL);
    ADD(0, MAIN, LOAD);
    check(NULL);
    ADD(1000, NO_NAME, NO_NAME);
    ADD(1000, NO_CODE);
    check(NULL);
}

static void test_one_function(void **state) {
    (void)state;
    ADD(900, MAIN, LOAD, VECTOR);
    ADD(100, MAIN, STORE);
    check("90 % of the peak heap, 900 B, came through main \u2192 load");
}

static void test_calls_of_two_lines_are_one_function(void **state) {
    (void)state;
    ADD(450, MAIN, VECTOR, LOAD);
    ADD(450, MAIN, LOAD, VECTOR);
    ADD(100, MAIN, STORE);
    check("90 % of the peak heap, 900 B, came through main \u2192 load");
}

static void test_the_way_parts(void **state) {
    (void)state;
    ADD(400, MAIN, LOAD);
    ADD(350, MAIN, STORE);
    ADD(200, MAIN, PARSE);
    ADD(50, MAIN, VECTOR);
    check("100 % of the peak heap, 1000 B, came through main: load 40 %, store 35 %, parse 20 %");
}

// Three of many that are as large say so.
static void test_the_way_parts_in_many(void **state) {
    (void)state;
    ADD(300, MAIN, LOAD);
    ADD(210, MAIN, STORE);
    ADD(200, MAIN, PARSE);
    ADD(190, MAIN, OTHER);
    ADD(100, MAIN, NO_NAME);
    check("100 % of the peak heap, 1000 B, came through main: load 30 %, store 21 %, parse 20 %, "
          "and 1 more");
}

// Static functions of two files.
static void test_one_name_in_two_files(void **state) {
    (void)state;
    ADD(600, MAIN, LOAD);
    ADD(400, MAIN, OTHER_LOAD);
    check("100 % of the peak heap, 1000 B, came through main: load (a.c) 60 %, load (b.c) 40 %");
}

// The same in the list of functions and in the tree of calls.
static void test_one_name_in_two_rows(void **state) {
    (void)state;
    const struct view_options view = {.by = MEASURE_PEAK};
    struct group_list list;
    struct calls calls;
    ADD(600, MAIN, LOAD);
    ADD(400, MAIN, OTHER_LOAD);
    assert_true(
        group_list_build(&list, &groupings[GROUP_FUNCTIONS], &profile, &names, &view, NULL));
    assert_int_equal(list.groups.count, 3);
    assert_string_equal(list.groups.items[0].location, "a.c");
    assert_string_equal(list.groups.items[1].location, "b.c");
    assert_int_equal(list.groups.items[1].self.value, 400);
    assert_true(list.groups.items[0].is_ambiguous && list.groups.items[1].is_ambiguous);
    assert_false(list.groups.items[2].is_ambiguous);
    group_list_free(&list);
    assert_true(calls_build(&calls, &profile, &names, &view, NULL));
    assert_int_equal(calls.nodes.count, 1 + 3);  // the root, main and two
    calls_free(&calls);
}

static void test_several_beginnings(void **state) {
    (void)state;
    ADD(400, LOAD);
    ADD(350, STORE);
    ADD(250, PARSE);
    check("the peak heap came through several functions: load 40 %, store 35 %, parse 25 %");
}

static void test_what_is_inlined(void **state) {
    (void)state;
    ADD(900, MAIN, SHORT);
    ADD(100, MAIN, STORE);
    check("90 % of the peak heap, 900 B, came through append \u2192 push");
}

static void test_a_recursion_is_told_once(void **state) {
    (void)state;
    ADD(100, MAIN, LOAD);
    ADD(100, MAIN, LOAD, LOAD);
    ADD(800, MAIN, LOAD, LOAD, LOAD);
    check("100 % of the peak heap, 1000 B, came through main \u2192 load");
}

static void test_a_library_is_told_by_the_function_that_was_called(void **state) {
    (void)state;
    ADD(900, NO_NAME, LIBRARY, LIBRARY, VECTOR);
    ADD(100, NO_NAME, NO_NAME);
    check("90 % of the peak heap, 900 B, came through xmlReadFile");
}

static void test_a_wrapper_of_malloc_tells_nothing(void **state) {
    (void)state;
    ADD(900, NO_NAME, WRAPPER);
    ADD(100, NO_NAME, NO_NAME);
    check(NULL);
}

// Most of it has no name, so that what has one may not be the largest.
static void test_few_names(void **state) {
    (void)state;
    ADD(300, LOAD);
    ADD(200, STORE);
    ADD(500, NO_NAME);
    check(NULL);
}

// A stack that was cut begins nobody knows where: shares are at least so much.
static void test_cut_stacks(void **state) {
    (void)state;
    ADD(900, MAIN, LOAD);
    ADD(100, LOAD);
    stacks[1].cut = 1;
    check("at least 90 % of the peak heap, 900 B, came through main \u2192 load");
    stacks[1].peak_bytes = 700;
    stacks[0].peak_bytes = 300;
    check("at least 70 % of the peak heap, 700 B, came through load");
}

static void test_all_in_main(void **state) {
    (void)state;
    ADD(600, MAIN);
    ADD(400, MAIN, STORE);
    check("100 % of the peak heap, 1000 B, came through main");
}

static void test_what_was_allocated(void **state) {
    (void)state;
    recording.header.has_no_frees = true;
    ADD(0, MAIN, LOAD);
    stacks[0].allocated_bytes = 500;
    profile.totals.allocated_bytes = 500;
    check("100 % of all that was allocated, 500 B, came through main \u2192 load");
    recording.header.has_no_frees = false;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_nothing),
        TEST(test_one_function),
        TEST(test_calls_of_two_lines_are_one_function),
        TEST(test_the_way_parts),
        TEST(test_the_way_parts_in_many),
        TEST(test_one_name_in_two_files),
        TEST(test_one_name_in_two_rows),
        TEST(test_several_beginnings),
        TEST(test_what_is_inlined),
        TEST(test_a_recursion_is_told_once),
        TEST(test_a_library_is_told_by_the_function_that_was_called),
        TEST(test_a_wrapper_of_malloc_tells_nothing),
        TEST(test_few_names),
        TEST(test_cut_stacks),
        TEST(test_all_in_main),
        TEST(test_what_was_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
