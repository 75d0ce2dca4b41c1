// SPDX-License-Identifier: Apache-2.0
// The view memory of a process that goes on: what it mapped with a name is told by name, out of the
// part in which it is, so that the parts still add up.
#include "tool/answer/forms.h"
#include "tool/render/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/model/figures.h"

#define MIB (UINT64_C(1) << 20)

static struct recording recording;
static struct profile profile = {.recording = &recording};

static void set_picture(uint32_t knows) {
    struct cairn_picture now = {.at_ns = 1000000000,
                                .rss_bytes = 20 * MIB,
                                .heap_bytes = 16 * MIB,
                                .files_bytes = 4 * MIB,
                                .live_bytes = (int64_t)(4 * MIB),
                                .mapped_bytes = 10 * MIB,
                                .arena_count = 1,
                                .knows = knows};
    const struct cairn_picture pictures[CAIRN_PICTURE_COUNT] = {now, now};
    memset(&recording, 0, sizeof recording);
    recording.header.rss_peak_bytes = 20 * MIB;
    assert_true(pictures_set(&recording, pictures));
    *array_push(&recording.names) = (struct recording_name){"tensors", 7 * MIB};
    *array_push(&recording.names) = (struct recording_name){"bad\tname", 6 * MIB};
}

static char *print(void) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const struct terminal terminal = {.out = out, .columns = 80};
    const struct view_options view = {.top = 0};
    assert_non_null(out);
    struct answer answer;
    struct error error;
    assert_true(memory_answer(&answer, &profile, &view, &error));
    assert_true(answer_print_text(&terminal, &answer, &error));
    answer_close(&answer);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void has(const char *text, const char *line) {
    if (!strstr(text, line)) fail_msg("no \"%s\" in %s", line, text);
}

static void test_names(void **state) {
    (void)state;
    set_picture(CAIRN_PICTURE_KNOWS_MAPPED);
    char *text = print();
    has(text, "35 %    7.0 MiB  [anon:tensors]");
    has(text, "15 %    3.0 MiB  [anon:bad\\x09name]");  // no more than is mapped
    assert_null(strstr(text, "mapped by the program itself"));
    has(text, "20 %    4.0 MiB  live heap");
    free(text);
    recording_close(&recording);
    assert_int_equal(recording.names.count, 0);
}

// Counts what is free in malloc as heap, unless it is the most itself.
static void test_not_heap(void **state) {
    (void)state;
    for (int is_most = 0; is_most < 2; is_most++) {
        struct cairn_picture now = {.at_ns = 1,
                                    .rss_bytes = 100 * MIB,
                                    .heap_bytes = 60 * MIB,
                                    .files_bytes = (is_most ? 10 : 40) * MIB,
                                    .stacks_bytes = (is_most ? 30 : 0) * MIB,
                                    .live_bytes = (int64_t)(25 * MIB),
                                    .free_resident_bytes = 35 * MIB,
                                    .arena_count = 1,
                                    .knows = CAIRN_PICTURE_KNOWS_MAPPED};
        const struct cairn_picture pictures[CAIRN_PICTURE_COUNT] = {now, now};
        struct claim claim;
        memset(&recording, 0, sizeof recording);
        recording.header.rss_peak_bytes = 100 * MIB;
        assert_true(pictures_set(&recording, pictures));
        assert_int_equal(claim_of_not_heap(&claim, &profile), is_most);
        recording_close(&recording);
    }
}

// Names are taken out of the rest if nobody knows what of it is mapped.
static void test_within_rest(void **state) {
    (void)state;
    set_picture(0);
    char *text = print();
    has(text, "35 %    7.0 MiB  [anon:tensors]");
    has(text, "25 %    5.0 MiB  [anon:bad\\x09name]");
    free(text);
    recording_close(&recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_not_heap),
                                       cmocka_unit_test(test_within_rest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
