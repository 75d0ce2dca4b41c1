// SPDX-License-Identifier: Apache-2.0
// The heap's part of resident memory is divided by what was measured; what nothing tells apart
// stays one part, and a reading far from the peak is known as one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tool/model/figures.h"

#define MIB (UINT64_C(1) << 20)

// 138 MiB of heap of which 97 MiB are free, and 158 MiB asked for: rooms that were never touched.
static const struct cairn_picture reserved = {.at_ns = 1,
                                              .rss_bytes = 150 * MIB,
                                              .heap_bytes = 138 * MIB,
                                              .files_bytes = 12 * MIB,
                                              .live_bytes = 158 * MIB,
                                              .live_blocks = 22500,
                                              .free_chunk_bytes = 97 * MIB,
                                              .free_resident_bytes = 97 * MIB,
                                              .arena_bytes = 256 * MIB,
                                              .arena_count = 1,
                                              .slack_bytes = MIB,
                                              .knows = CAIRN_PICTURE_KNOWS_MAPPED |
                                                       CAIRN_PICTURE_KNOWS_SLACK};

static struct recording_section samples;

static struct picture split(const struct cairn_picture *raw, uint64_t peak_bytes) {
    struct recording recording;
    struct picture picture;
    uint64_t sum = 0;
    memset(&recording, 0, sizeof recording);
    recording.header.rss_peak_bytes = peak_bytes;
    recording.sections[CAIRN_SECTION_PICTURES] = (struct recording_section){
        .bytes = (const uint8_t *)raw, .size = sizeof *raw, .entry_bytes = sizeof *raw, .count = 1};
    recording.sections[CAIRN_SECTION_SAMPLING] = samples;
    assert_true(picture_of(&recording, CAIRN_PICTURE_AT_PEAK, &picture));
    for (int part = 0; part < PICTURE_PARTS; part++) sum += picture.bytes[part];
    assert_int_equal(sum, raw->rss_bytes);
    return picture;
}

// Live memory without a sample is not known; a heap that never shrank has no peak yet.
static void test_samples(void **state) {
    (void)state;
    const struct cairn_sampling sampling = {.is_on = 1};
    struct cairn_picture raw = reserved;
    raw.live_bytes = 39 * MIB;
    samples = (struct recording_section){.bytes = (const uint8_t *)&sampling,
                                         .size = sizeof sampling,
                                         .entry_bytes = sizeof sampling,
                                         .count = 1};
    struct picture picture = split(&raw, 0);
    assert_true(picture.is_sampled && picture.is_live_part && !picture.is_live_unseen);
    assert_int_equal(picture.bytes[PICTURE_LIVE], 39 * MIB);
    raw.live_bytes = raw.live_blocks = 0;
    picture = split(&raw, 0);
    assert_true(picture.is_live_unseen && !picture.is_live_part);
    samples = (struct recording_section){0};
}

static void test_free_is_measured(void **state) {
    (void)state;
    struct picture picture = split(&reserved, 0);
    assert_int_equal(picture.bytes[PICTURE_FREE], 97 * MIB);
    assert_int_equal(picture.bytes[PICTURE_LIVE], 41 * MIB);
    assert_int_equal(picture.bytes[PICTURE_REST], 0);
    assert_true(picture.is_live_part && picture.has_live_slack && picture.is_live_partly);
    assert_false(picture.is_slack_part);
}

// Of the rest it is not known what is free.
static void test_not_all_counted(void **state) {
    (void)state;
    struct cairn_picture raw = reserved;
    raw.free_chunk_bytes = raw.free_resident_bytes = 10 * MIB;
    raw.is_cut = 1;
    struct picture picture = split(&raw, 0);
    assert_false(picture.is_live_part || picture.is_slack_part);
    assert_int_equal(picture.bytes[PICTURE_LIVE], 0);
    assert_int_equal(picture.bytes[PICTURE_REST], 128 * MIB);
    raw.arena_count = 0;
    raw.free_resident_bytes = 0;
    picture = split(&raw, 0);
    assert_false(picture.is_live_part || picture.is_free_part);
    assert_int_equal(picture.bytes[PICTURE_REST], 138 * MIB);
}

static void test_all_touched(void **state) {
    (void)state;
    struct cairn_picture raw = reserved;
    raw.live_bytes = 39 * MIB;
    struct picture picture = split(&raw, 0);
    assert_int_equal(picture.bytes[PICTURE_LIVE], 39 * MIB);
    assert_int_equal(picture.bytes[PICTURE_SLACK], MIB);
    assert_int_equal(picture.bytes[PICTURE_REST], MIB);
    assert_false(picture.has_live_slack || picture.is_live_partly);
    // it grew a little while it was looked at
    raw.live_bytes = 41 * MIB + MIB / 4;
    picture = split(&raw, 0);
    assert_int_equal(picture.bytes[PICTURE_LIVE], 41 * MIB);
    assert_false(picture.is_live_partly);
}

static void test_moment(void **state) {
    (void)state;
    static const struct {
        uint64_t peak_bytes;
        bool is_of_peak, is_far;
    } rows[] = {{0, true, false},          {150 * MIB, true, false},  {153 * MIB, true, false},
                {154 * MIB, false, false}, {187 * MIB, false, false}, {188 * MIB, false, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct picture picture = split(&reserved, rows[i].peak_bytes);
        assert_int_equal(picture_is_of_peak(&picture), rows[i].is_of_peak);
        assert_int_equal(picture_is_far_from_peak(&picture), rows[i].is_far);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_is_measured), cmocka_unit_test(test_samples),
        cmocka_unit_test(test_not_all_counted),  cmocka_unit_test(test_all_touched),
        cmocka_unit_test(test_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
