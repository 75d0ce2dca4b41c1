// SPDX-License-Identifier: Apache-2.0
// Every format on the sample recording, with names that would break out of a careless writer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/export/export.h"

static struct making making;
static const char hostile[] = "f;<b>\"'&\n\t\\ \xff](,)%s-->";

static const struct frame *frames_of(void *context, uint32_t place, size_t *count) {
    enum { PLACES_MAX = 16, FRAMES = 2 };
    static struct frame frames[PLACES_MAX][FRAMES];
    const struct profile *profile = context;
    assert_true(place < PLACES_MAX);
    uint64_t offset = profile->places.list.items[place].address;
    frames[place][0] = (struct frame){.function = place ? hostile : NULL,
                                      .file = place ? "a;\n<.c" : NULL,
                                      .line = place,
                                      .module = "/m",
                                      .offset = offset,
                                      .is_inlined = true};
    frames[place][1] =
        (struct frame){.function = "outer", .module = "/m", .offset = offset, .is_hidden = true};
    *count = FRAMES;
    return frames[place];
}

struct text {
    char *bytes;
    size_t size;
};

static struct text write_format(const struct export_format *format, enum measure by) {
    size_t size;
    uint8_t *bytes = making_finish(&making, true, &size);
    struct recording recording;
    struct profile profile;
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_true(profile_build(&recording, &profile, NULL));
    struct frame_names names = {.of_place = frames_of, .context = &profile};
    static const char *const keys[] = {"host", "region"}, *const values[] = {hostile, NULL};
    const struct export_labels labels = {.count = 2, .keys = keys, .values = values};
    const struct export export = {.profile = &profile,
                                  .names = &names,
                                  .by = by,
                                  .is_by_chosen = true,
                                  .process_count = 1,
                                  .program = "sample",
                                  .command = hostile,
                                  .trust = "exact",
                                  .tool_version = "0",
                                  .series_labels = &labels,
                                  .has_snapshots = true};
    struct text text = {0};
    struct error error = {""};
    FILE *out = open_memstream(&text.bytes, &text.size);
    assert_non_null(out);
    if (!export_stream(format, out, &export, &error)) fail_msg("%s: %s", format->name, error.text);
    fclose(out);
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
    return text;
}

// A name can end no line and no text.
static void check_text(const struct export_format *format, const struct text *text) {
    for (size_t i = 0; i < text->size; i++) {
        unsigned char byte = (unsigned char)text->bytes[i];
        if (byte < ' ' && byte != '\n') fail_msg("%s: byte %u", format->name, byte);
    }
    if (strstr(text->bytes, "f;<b>\"'&\n")) fail_msg("%s: a bare name", format->name);
}

static void test_every_format(void **state) {
    (void)state;
    making_sample(&making);
    for (const struct export_format *format = export_formats; format->name; format++) {
        assert_int_equal(!!format->write + !!format->write_file + !!format->series, 1);
        assert_ptr_equal(export_format_find(format->name), format);
        for (int by = 0; !format->write_file && by < EXPORT_MEASURES; by++) {
            struct text text = write_format(format, (enum measure)by);
            if (!text.size) fail_msg("%s is empty", format->name);
            if (!format->is_binary) check_text(format, &text);
            free(text.bytes);
        }
    }
}

static void test_no_stacks(void **state) {
    (void)state;
    making_start(&making);
    for (const struct export_format *format = export_formats; format->name; format++) {
        if (format->write_file) continue;
        struct text text = write_format(format, MEASURE_PEAK);
        free(text.bytes);
    }
}

static void test_format_of_path(void **state) {
    (void)state;
    assert_string_equal(export_format_of_path("a/b.pb.gz")->name, "pprof");
    assert_string_equal(export_format_of_path("x.speedscope.json")->name, "speedscope");
    assert_null(export_format_of_path("x.speedscope"));
    assert_null(export_format_of_path(".pb.gz"));
    assert_null(export_format_of_path(""));
    assert_null(export_format_find("pprofs"));
}

// Values, and stacks as a reader splits them: the sample's stacks by hand.
static void test_collapsed(void **state) {
    (void)state;
    making_sample(&making);
    struct text text = write_format(export_format_find("collapsed"), MEASURE_PEAK);
    const char *name = "f,<b>\"'&\\x0a\\x09\\ \\xff](,)%s-->";
    char expected[512];
    snprintf(expected, sizeof expected, "[incomplete: code without unwind information];%s;%s 100\n",
             name, name);
    if (!strstr(text.bytes, expected)) fail_msg("no %s in %s", expected, text.bytes);
    long long sum = 0;
    size_t lines = 0;
    for (char *line = strtok(text.bytes, "\n"); line; line = strtok(NULL, "\n")) {
        sum += strtoll(strrchr(line, ' '), NULL, 10);
        lines++;
    }
    assert_int_equal(lines, 3);
    assert_int_equal(sum, 4172);
    free(text.bytes);
}

// More bytes than there are numbers, as a damaged recording may claim.
static void test_sums_without_end(void **state) {
    (void)state;
    making_sample(&making);
    for (uint32_t id = 0; id < making.cell_count; id++)
        if (making.cells[id].calls) making.cells[id].allocated_bytes = INT64_MAX;
    for (const struct export_format *format = export_formats; format->name; format++) {
        // heaptrack's is a log of events, and refuses what no events can have led to
        if (format->write_file || !strcmp(format->name, "heaptrack")) continue;
        struct text text = write_format(format, MEASURE_ALLOCATED);
        if (!strcmp(format->name, "speedscope"))
            assert_non_null(strstr(text.bytes, "\"endValue\":9223372036854775807"));
        free(text.bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format),     cmocka_unit_test(test_no_stacks),
        cmocka_unit_test(test_sums_without_end), cmocka_unit_test(test_format_of_path),
        cmocka_unit_test(test_collapsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
