// SPDX-License-Identifier: Apache-2.0
// The JSON report against another parser: every field of the schema, and the values of the sample.
#include "tool/render/report_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "tests/tools/make_recording.h"

static struct making making;

static const struct frame *frames_of(void *context, uint32_t place, size_t *count) {
    enum { PLACES_MAX = 16 };
    static struct frame frames[PLACES_MAX];
    const struct profile *profile = context;
    assert_true(place < PLACES_MAX);
    frames[place] = (struct frame){.function = place ? "f\xff" : NULL,
                                   .file = place ? "a \"b\".c" : NULL,
                                   .line = place,
                                   .module = "/m",
                                   .offset = profile->places.list.items[place].address};
    *count = 1;
    return &frames[place];
}

static json_t *report_with(const struct view_options *view) {
    size_t size, text_size;
    uint8_t *bytes = making_finish(&making, true, &size);
    struct recording recording;
    struct profile profile;
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_true(profile_build(&recording, &profile, NULL));
    struct frame_names names = {.of_place = frames_of, .context = &profile};
    char *text;
    FILE *out = open_memstream(&text, &text_size);
    assert_true(report_json_print(out, &profile, &names, NULL, view, NULL));
    fclose(out);
    json_error_t problem;
    json_t *report = json_loads(text, JSON_REJECT_DUPLICATES, &problem);
    if (!report) fail_msg("%s in line %d", problem.text, problem.line);
    free(text);
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
    return report;
}

// Follows a path such as "process.exit.status"; numbers are indexes of arrays.
static json_t *at(json_t *value, const char *path) {
    char copy[128];
    strcpy(copy, path);
    for (char *key = strtok(copy, "."); key; key = strtok(NULL, ".")) {
        bool is_index = *key >= '0' && *key <= '9';
        value = is_index ? json_array_get(value, (size_t)atoi(key)) : json_object_get(value, key);
        if (!value) fail_msg("no %s", path);
    }
    return value;
}

static void check_int(json_t *report, const char *path, json_int_t expected) {
    json_t *value = at(report, path);
    assert_true(json_is_integer(value));
    if (json_integer_value(value) != expected)
        fail_msg("%s is %" JSON_INTEGER_FORMAT, path, json_integer_value(value));
}

static void test_sample(void **state) {
    (void)state;
    making_sample(&making);
    struct view_options view = {.by = MEASURE_PEAK};
    json_t *report = report_with(&view);
    assert_string_equal(json_string_value(at(report, "schema")), "cairn.report/1");
    check_int(report, "process.pid", 4242);
    check_int(report, "process.ppid", 4241);
    assert_string_equal(json_string_value(at(report, "process.command")),
                        "/usr/bin/sample --quick");
    check_int(report, "process.start_unix_ns", 1700000000000000000);
    check_int(report, "process.duration_ns", 2000000000);
    check_int(report, "process.exit.status", 0);
    check_int(report, "process.exit.signal", 0);
    check_int(report, "totals.allocations", 17);
    check_int(report, "totals.frees", 9);
    check_int(report, "totals.allocated_bytes", 5260);
    check_int(report, "totals.freed_bytes", 4596);
    check_int(report, "totals.failed", 0);
    check_int(report, "peak.bytes", 4172);
    check_int(report, "peak.blocks", 14);
    check_int(report, "peak.at_ns", 1000000000);
    check_int(report, "peak.error_bytes", 1024);
    check_int(report, "at_exit.bytes", 664);
    check_int(report, "at_exit.blocks", 8);
    check_int(report, "rss.peak_bytes", 5 << 20);
    assert_true(json_is_true(at(report, "trust.exact")));
    assert_int_equal(json_object_size(at(report, "trust.lost")), 0);
    check_int(report, "trust.stacks_incomplete.no_cfi", 1);
    check_int(report, "trust.own_bytes", 2 << 20);
    assert_int_equal(json_array_size(at(report, "stacks")), 4);
    assert_int_equal(strlen(json_string_value(at(report, "stacks.0.id"))), 16);
    check_int(report, "stacks.0.allocations", 4);
    check_int(report, "stacks.0.allocated_bytes", 4096);
    check_int(report, "stacks.0.freed_bytes", 4096);
    check_int(report, "stacks.0.peak_bytes", 3072);
    check_int(report, "stacks.0.at_exit_bytes", 0);
    check_int(report, "stacks.0.at_exit_blocks", 0);
    assert_int_equal(json_array_size(at(report, "stacks.0.frames")), 3);
    check_int(report, "stacks.0.frames.0.offset", 0x5677);
    assert_string_equal(json_string_value(at(report, "stacks.0.frames.0.function")), "f\\xff");
    assert_string_equal(json_string_value(at(report, "stacks.0.frames.0.file")), "a \"b\".c");
    assert_string_equal(json_string_value(at(report, "stacks.0.frames.0.module")), "/m");
    assert_true(json_is_false(at(report, "stacks.0.frames.0.inlined")));
    assert_true(json_is_null(at(report, "stacks.0.frames.2.function")));
    assert_true(json_is_null(at(report, "stacks.0.frames.2.line")));
    assert_string_equal(json_string_value(at(report, "threads.1.name")), "worker");
    check_int(report, "threads.1.tid", 4243);
    check_int(report, "threads.1.start_ns", 0);
    assert_true(json_is_null(at(report, "threads.1.end_ns")));
    check_int(report, "threads.1.allocations", 7);
    check_int(report, "threads.1.allocated_bytes", 4260);
    check_int(report, "threads.1.at_exit_bytes", 164);
    json_decref(report);
}

static void test_limits_and_losses(void **state) {
    (void)state;
    making_sample(&making);
    making.header.has_exit = 0;
    making.header.lost[CAIRN_LOST_NESTED] = 2;
    making.header.lost[CAIRN_LOSS_MAX - 1] = 5;
    struct view_options view = {.by = MEASURE_CALLS, .top = 1, .depth = 1};
    json_t *report = report_with(&view);
    assert_true(json_is_null(at(report, "process.exit")));
    assert_true(json_is_false(at(report, "trust.exact")));
    check_int(report, "trust.lost.nested", 2);
    check_int(report, "trust.lost.unknown", 5);
    assert_int_equal(json_array_size(at(report, "stacks")), 1);
    check_int(report, "stacks.0.allocations", 10);
    assert_int_equal(json_array_size(at(report, "stacks.0.frames")), 1);
    json_decref(report);
}

static void test_unresolved(void **state) {
    (void)state;
    making_sample(&making);
    struct view_options view = {.by = MEASURE_PEAK};
    json_t *report = report_with(&view);
    check_int(report, "trust.frames_unresolved", 0);
    json_decref(report);
}

// A process that is only in the index has the same fields, and one more: its file.
static void test_row(void **state) {
    (void)state;
    struct run_row row = {.name = "s\xff", .pid = 7, .has_exit = true, .exit_signal = 9};
    row.figures = (struct figures){.allocations = 10,
                                   .allocated_bytes = 1000,
                                   .inherited_blocks = 1,
                                   .inherited_bytes = 50,
                                   .exit_bytes = 50,
                                   .peak_bytes = 600,
                                   .lost = 3};
    char *text;
    size_t size;
    struct json json;
    FILE *out = open_memstream(&text, &size);
    json_start(&json, out);
    report_json_put_row(&json, &row);
    fclose(out);
    json_t *found = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(found);
    making_sample(&making);
    json_t *report = report_with(&(struct view_options){.by = MEASURE_PEAK});
    const char *key;
    json_t *value;
    json_object_foreach(report, key, value) if (!json_object_get(found, key))
        fail_msg("no %s", key);
    assert_int_equal(json_object_size(found), json_object_size(report) + 1);
    assert_true(json_is_null(at(found, "file")));
    check_int(found, "totals.allocations", 10);
    check_int(found, "totals.allocated_bytes", 1000);
    check_int(found, "inherited.blocks", 1);
    check_int(found, "inherited.bytes", 50);
    check_int(found, "totals.freed_bytes", 1000);
    check_int(found, "peak.bytes", 600);
    check_int(found, "process.exit.signal", 9);
    check_int(found, "trust.lost.unknown", 3);
    assert_true(json_is_false(at(found, "trust.exact")));
    json_decref(report);
    json_decref(found);
    free(text);
}

static void test_command_is_quoted(void **state) {
    (void)state;
    static const char command[] = "sh\0-c\0echo it's \"x\"; exit\0\0last";
    making_start(&making);
    memcpy(making.header.command, command, sizeof command);
    struct view_options view = {.by = MEASURE_PEAK};
    json_t *report = report_with(&view);
    assert_string_equal(json_string_value(at(report, "process.command")),
                        "sh -c 'echo it'\\''s \"x\"; exit' '' last");
    assert_int_equal(json_array_size(at(report, "stacks")), 0);
    json_decref(report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_limits_and_losses),
        cmocka_unit_test(test_command_is_quoted),
        cmocka_unit_test(test_unresolved),
        cmocka_unit_test(test_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
