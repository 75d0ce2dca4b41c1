// SPDX-License-Identifier: Apache-2.0
// Each rule at its limit: a recording for which it holds, and ones for which it just does not.
#include "tool/render/findings.h"
#include "tool/render/findings_find.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"

enum { PROGRAM = 0x400000, MAIN = PROGRAM + 0x10, KIB = 1024, MIB = 1024 * 1024 };

static struct making making;
static struct recording recording;
static struct profile profile;
static struct findings findings;
static struct cairn_waste waste;
static struct cairn_picture picture, pictures[CAIRN_PICTURE_COUNT];
static struct cairn_resident residents[8];
static size_t resident_count;
static uint8_t *bytes;
static uint32_t booked;  // the cell that a test is about

static void start(void) {
    making_start(&making);
    making.has_use = true;
    making.header.allocator = CAIRN_ALLOCATOR_GLIBC;
    making_module(&making, "/usr/bin/example", PROGRAM, 0x10000, 0, 0x11);
    making_thread(&making, 4242, "producer");
    making_thread(&making, 4243, "consumer");
    picture = (struct cairn_picture){0};
    waste = (struct cairn_waste){0};
    resident_count = 0;
}

static uint32_t stack_of(uint64_t function) {
    const uint64_t addresses[] = {MAIN, function};
    return making_stack(&making, 0, addresses, 2);
}

// The finding of a kind; NULL: the rule does not hold. The recording is open until close_made.
static const struct finding *find(enum finding_kind kind) {
    size_t size;
    bytes = making_finish(&making, true, &size);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    for (size_t i = 0; i < CAIRN_PICTURE_COUNT; i++) pictures[i] = picture;
    if (picture.at_ns) {
        recording.sections[CAIRN_SECTION_PICTURES] =
            (struct recording_section){.bytes = (const uint8_t *)pictures,
                                       .size = sizeof pictures,
                                       .entry_bytes = sizeof picture,
                                       .count = CAIRN_PICTURE_COUNT};
    }
    if (resident_count) {
        recording.sections[CAIRN_SECTION_RESIDENT] =
            (struct recording_section){.bytes = (const uint8_t *)residents,
                                       .size = sizeof *residents * resident_count,
                                       .entry_bytes = sizeof *residents,
                                       .count = resident_count};
    }
    if (waste.held_bytes)
        recording.sections[CAIRN_SECTION_WASTE] =
            (struct recording_section){.bytes = (const uint8_t *)&waste,
                                       .size = sizeof waste,
                                       .entry_bytes = sizeof waste,
                                       .count = 1};
    assert_true(profile_build(&recording, &profile, NULL));
    assert_true(findings_find(&findings, &profile, NULL));
    for (size_t i = 0; i < findings.count; i++)
        if (findings.list[i].kind == kind) return &findings.list[i];
    return NULL;
}

static void close_made(void) {
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
}

static void check_absent(enum finding_kind kind) {
    assert_null(find(kind));
    close_made();
}

static void book_alike(uint32_t blocks, uint32_t size, uint32_t freed) {
    start();
    uint32_t cell = booked = stack_of(PROGRAM + 0x20);
    making_book(&making, cell, blocks, (uint64_t)blocks * size, freed, (uint64_t)freed * size);
    making.cells[cell].slack_bytes = (uint32_t)blocks * 8;
}

static void test_alike(void **state) {
    (void)state;
    book_alike(20000, 24, 0);
    const struct finding *finding = find(FINDING_ALIKE);
    assert_non_null(finding);
    assert_int_equal(finding->count, 20000);
    assert_int_equal(finding->bytes, 24);
    assert_int_equal(finding->saved_bytes, 20000 * (8 + 8));  // room and header
    assert_int_equal(finding->saved_calls, 20000 - 20000 / 64);
    close_made();
    book_alike(9999, 64, 0);
    check_absent(FINDING_ALIKE);
    book_alike(20000, 300, 0);
    check_absent(FINDING_ALIKE);
    book_alike(40000, 24, 25000);  // most are gone
    check_absent(FINDING_ALIKE);
    book_alike(20000, 8, 0);  // little memory
    check_absent(FINDING_ALIKE);
    book_alike(20000, 24, 0);  // several sizes
    making_sizes(&making, booked)->buckets[4] = 20;
    check_absent(FINDING_ALIKE);
    book_alike(20000, 24, 0);  // beside something much larger
    making_book(&making, stack_of(PROGRAM + 0x30), 1, 100 * MIB, 0, 0);
    check_absent(FINDING_ALIKE);
}

static void book_temporary(uint32_t blocks, uint32_t temporary) {
    start();
    uint32_t cell = booked = stack_of(PROGRAM + 0x20);
    making_book(&making, cell, blocks, (uint64_t)blocks * 32, blocks, (uint64_t)blocks * 32);
    making.cells[cell].temporary = temporary;
}

static void test_temporary(void **state) {
    (void)state;
    book_temporary(40000, 10000);
    const struct finding *finding = find(FINDING_TEMPORARY);
    assert_non_null(finding);
    assert_int_equal(finding->saved_calls, 10000);
    assert_false(finding->is_estimate);
    close_made();
    book_temporary(40004, 10000);  // less than a quarter
    check_absent(FINDING_TEMPORARY);
    book_temporary(9999, 9999);
    check_absent(FINDING_TEMPORARY);
    book_temporary(40000, 0);
    making.rare[booked].watched = 40;
    making.rare[booked].short_lived = 30;
    finding = find(FINDING_TEMPORARY);
    assert_true(finding && finding->is_estimate);
    assert_int_equal(finding->saved_calls, 30000);
    close_made();
}

static void book_ages(uint64_t young) {
    start();
    uint32_t cell = booked = stack_of(PROGRAM + 0x20);
    making_book(&making, cell, 40000, 40000 * 32, 40000, 40000 * 32);
    making_ages(&making, cell)->ms[0] = young;
}

static void test_ages(void **state) {
    (void)state;
    book_ages(10000);
    const struct finding *finding = find(FINDING_AGES);
    assert_non_null(finding);
    assert_int_equal(finding->saved_calls, 10000);
    close_made();
    book_ages(9999);
    check_absent(FINDING_AGES);
    book_ages(30000);  // all of them are better than a sample
    making.rare[booked].watched = 40;
    making.rare[booked].short_lived = 30;
    assert_non_null(find(FINDING_AGES));
    assert_int_equal(findings.count, 1);
    close_made();
    book_ages(30000);
    making.cells[booked].temporary = 20000;
    assert_non_null(find(FINDING_AGES));
    assert_int_equal(findings.count, 2);
    close_made();
}

static void book_reallocs(uint64_t grown, uint64_t copied_bytes) {
    start();
    uint32_t cell = booked = stack_of(PROGRAM + 0x20);
    making_book(&making, cell, (uint32_t)grown + 1, 1000 * (grown + 1), (uint32_t)grown,
                1000 * grown);
    struct cairn_reallocs *reallocs = making_reallocs(&making, cell);
    reallocs->calls = reallocs->grown = grown;
    reallocs->copied_bytes = copied_bytes;
}

static void test_growing_buffer(void **state) {
    (void)state;
    book_reallocs(8, 256 * KIB);
    const struct finding *finding = find(FINDING_REALLOC);
    assert_non_null(finding);
    assert_int_equal(finding->count, 8);
    assert_int_equal(finding->saved_calls, 8);
    assert_int_equal(finding->bytes, 256 * KIB);
    // none of its blocks is short-lived, which the view of those would not show
    assert_int_equal(findings.count, 1);
    assert_string_equal(findings_view(&findings), "findings");
    close_made();
    book_reallocs(8, 256 * KIB);
    making.cells[booked].temporary = 1;
    assert_non_null(find(FINDING_REALLOC));
    assert_string_equal(findings_view(&findings), "temporary");
    close_made();
    book_reallocs(7, 256 * KIB);
    check_absent(FINDING_REALLOC);
    book_reallocs(8, 256 * KIB - 1);
    check_absent(FINDING_REALLOC);
    book_reallocs(200, 0);  // never copied, but so often
    assert_non_null(find(FINDING_REALLOC));
    close_made();
}

// The consumer frees `there` of what the producer allocated, the producer `here`.
static void book_hand_over(uint32_t here, uint32_t there) {
    const uint32_t size = 1024;
    start();
    making.header.totals.is_threaded = 1;
    uint32_t cell = booked = stack_of(PROGRAM + 0x20);
    making_book(&making, cell, here + there, (uint64_t)size * (here + there), here,
                (uint64_t)size * here);
    uint32_t foreign = making_foreign(&making, 1, cell);
    making_book(&making, foreign, 0, 0, there, (uint64_t)size * there);
}

static void test_hand_over(void **state) {
    (void)state;
    book_hand_over(256, 256);
    const struct finding *finding = find(FINDING_FREED_BY);
    assert_non_null(finding);
    assert_string_equal(finding->flow.from, "producer");
    assert_string_equal(finding->flow.to, "consumer");
    assert_int_equal(finding->count, 256);
    close_made();
    book_hand_over(0, 255);
    check_absent(FINDING_FREED_BY);
    book_hand_over(257, 256);
    check_absent(FINDING_FREED_BY);
}

// `blocks` of the function at 0x20, of which a stack that ends in `freer` frees `freed`.
static void book_reuse(uint32_t blocks, uint32_t freed, const uint64_t *freer, uint32_t frames) {
    start();
    making.header.has_free_stacks = 1;
    uint32_t cell = booked = stack_of(PROGRAM + 0x20);
    uint32_t frees = making_stack(&making, 0, freer, frames);
    making_book(&making, cell, blocks, (uint64_t)blocks * 32, 0, 0);
    uint32_t freed_at = making_freed_at(&making, 0, cell, frees);
    making_book(&making, freed_at, 0, 0, freed, (uint64_t)freed * 32);
}

static const struct frame *name_by_module(void *context, uint32_t place, size_t *count) {
    // what the test wants the freeing frame to be called; the others are one function
    static struct frame frames[2];
    const char *const *other = context;
    (void)place;
    frames[0] = (struct frame){.function = "handle", .file = "a.c", .line = 1, .is_own = true};
    frames[1] = (struct frame){.function = *other, .file = "a.c", .line = 9, .is_own = true};
    *count = 1;
    return &frames[place == profile.tree.nodes.items[findings.list[0].free_node].place];
}

static void test_reuse(void **state) {
    (void)state;
    const uint64_t same[] = {MAIN, PROGRAM + 0x28};
    const uint64_t helped[] = {MAIN, PROGRAM + 0x28, PROGRAM + 0x90};
    const uint64_t apart[] = {PROGRAM + 0x18, PROGRAM + 0x28};
    const char *same_name = "handle", *other_name = "release";
    struct frame_names names = {.of_place = name_by_module, .context = &same_name};
    book_reuse(20000, 20000, same, 2);
    const struct finding *finding = find(FINDING_REUSE);
    assert_non_null(finding);
    assert_ptr_equal(finding, &findings.list[0]);
    assert_int_equal(finding->saved_calls, 20000);
    assert_int_equal(finding->bytes, 32);
    assert_true(findings_settle(&findings, &profile, &names, NULL));
    assert_int_equal(findings.list[0].kind, FINDING_REUSE);
    size_t count = findings.count;
    names.context = &other_name;
    assert_true(findings_settle(&findings, &profile, &names, NULL));
    assert_int_equal(findings.count, count - 1);
    close_made();
    book_reuse(20000, 19000, helped, 3);
    assert_non_null(find(FINDING_REUSE));
    close_made();
    book_reuse(20000, 18999, same, 2);
    check_absent(FINDING_REUSE);
    book_reuse(9999, 9999, same, 2);
    check_absent(FINDING_REUSE);
    book_reuse(20000, 20000, apart, 2);
    check_absent(FINDING_REUSE);
}

static void book_picture(uint64_t live_bytes, uint64_t peak_bytes) {
    start();
    uint32_t cell = booked = stack_of(PROGRAM + 0x20);
    making_book(&making, cell, 100, peak_bytes, 0, 0);
    making_peak(&making, 1000000);
    making_book(&making, cell, 0, 0, 1, peak_bytes - live_bytes);
    picture.at_ns = 2000000;
    picture.rss_bytes = picture.heap_bytes = 100 * MIB;
    picture.live_bytes = (int64_t)live_bytes;
}

static void test_arenas(void **state) {
    (void)state;
    book_picture(10 * MIB, 40 * MIB);
    picture.arena_count = 3;
    picture.free_resident_bytes = 40 * MIB;
    const struct finding *finding = find(FINDING_ARENAS);
    assert_non_null(finding);
    assert_int_equal(finding->saved_bytes, 10 * MIB);  // beyond the peak
    close_made();
    book_picture(10 * MIB, 40 * MIB);
    picture.arena_count = 2;
    picture.free_resident_bytes = 40 * MIB;
    check_absent(FINDING_ARENAS);
    book_picture(10 * MIB, 40 * MIB);
    picture.arena_count = 8;
    picture.free_resident_bytes = 40 * MIB - 1;
    check_absent(FINDING_ARENAS);
    book_picture(10 * MIB, 60 * MIB);  // the peak explains it
    picture.arena_count = 8;
    picture.free_resident_bytes = 50 * MIB;
    check_absent(FINDING_ARENAS);
    book_picture(10 * MIB, 40 * MIB);  // it may have been higher before
    making.header.is_attached = 1;
    picture.arena_count = 3;
    picture.free_resident_bytes = 40 * MIB;
    check_absent(FINDING_ARENAS);
}

static void test_equal_strings(void **state) {
    struct string_copies copies = {256 * KIB, 9000, 12, "parse", false};
    struct finding finding;
    char text[FINDING_TEXT_BYTES];
    const struct view_options view = {.is_plain_number = false};
    (void)state;
    assert_true(finding_of_strings(&copies, 5 * MIB, &finding));
    assert_true(finding_text(&finding, NULL, NULL, &view, text));
    assert_string_equal(text,
                        "256 KiB of equal strings, 9,000 copies of 12 strings, most of parse: "
                        "keep each once");
    finding_gain_text(&finding, NULL, false, text);
    assert_string_equal(text, "a fix saves up to 256 KiB of the heap");
    copies.is_estimate = true;
    assert_true(finding_of_strings(&copies, 5 * MIB, &finding));
    assert_true(finding_text(&finding, NULL, NULL, &view, text));
    assert_string_equal(text, "about 256 KiB of equal strings, most of parse: keep each once");
    assert_false(finding_of_strings(&copies, 6 * MIB, &finding));  // less than a twentieth
    copies.bytes--;
    assert_false(finding_of_strings(&copies, MIB, &finding));
}

static void book_heap(uint64_t live_bytes, uint64_t small_bytes, uint64_t huge_bytes) {
    book_picture(live_bytes, live_bytes);
    picture.rss_bytes = picture.heap_bytes = small_bytes + huge_bytes;
    picture.huge_bytes = huge_bytes;
    picture.knows = CAIRN_PICTURE_KNOWS_HUGE;
}

static void test_small_pages(void **state) {
    (void)state;
    book_heap(128 * MIB, 128 * MIB, 0);
    const struct finding *finding = find(FINDING_HUGE);
    assert_non_null(finding);
    assert_int_equal(finding->bytes, 128 * MIB);
    assert_int_equal(finding->saved_faults, 128 * 256 - 64);
    assert_true(finding->gain > 0 && finding->gain < 0.1);
    close_made();
    book_heap(200 * MIB, 128 * MIB - 1, 0);
    check_absent(FINDING_HUGE);
    book_heap(128 * MIB - 1, 200 * MIB, 0);  // what is large is not the heap
    check_absent(FINDING_HUGE);
    book_heap(300 * MIB, 150 * MIB, 151 * MIB);  // most are huge
    check_absent(FINDING_HUGE);
    book_heap(300 * MIB, 300 * MIB, 0);  // of another cairn: not known
    picture.knows = 0;
    check_absent(FINDING_HUGE);
    book_heap(300 * MIB, 300 * MIB, 0);  // the tunable is glibc's
    making.header.allocator = CAIRN_ALLOCATOR_OTHER;
    check_absent(FINDING_HUGE);
    book_heap(140 * MIB, 300 * MIB, 0);  // the program maps most of it
    picture.mapped_bytes = 173 * MIB;
    check_absent(FINDING_HUGE);
}

// Blocks of a stack between snapshots, a second apart, `steps` times `bytes` of `blocks` each.
static void book_rise(int steps, uint32_t blocks, uint64_t step_bytes) {
    enum { SECOND = 1000000000 };
    start();
    uint32_t cell = booked = stack_of(PROGRAM + 0x20);
    for (int i = 0; i < steps; i++) {
        making_book(&making, cell, blocks, step_bytes, 0, 0);
        making.header.totals.point_ns = SECOND / 10;
        if (i + 1 < steps)
            making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", (uint64_t)(i + 1) * SECOND);
    }
    making.header.end_ns = (uint64_t)steps * SECOND;
}

// Filled in one go, while the program works on as it did: a step, no line.
static void book_cache(void) {
    enum { SECOND = 1000000000, SECONDS = 10, FILLED_AT = 5 };
    start();
    uint32_t cell = stack_of(PROGRAM + 0x20), work = stack_of(PROGRAM + 0x30);
    making.header.totals.point_ns = SECOND / 10;
    for (int i = 1; i < SECONDS; i++) {
        making_book(&making, work, 9, MIB, 9, MIB);
        if (i == FILLED_AT) making_book(&making, cell, 10, 600 * KIB, 0, 0);
        making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", (uint64_t)i * SECOND);
    }
    making.header.end_ns = (uint64_t)SECONDS * SECOND;
}

static void test_growth(void **state) {
    (void)state;
    book_rise(6, 2, 100 * KIB);
    const struct finding *finding = find(FINDING_GROWTH);
    assert_non_null(finding);
    assert_int_equal(finding->saved_bytes, 500 * KIB);       // from the first snapshot to the end
    assert_true(finding->fit > 0.95 && !finding->is_freed);  // of steps
    close_made();
    book_rise(3, 2, 400 * KIB);  // too few moments
    check_absent(FINDING_GROWTH);
    book_rise(6, 2, 51 * KIB);  // little
    check_absent(FINDING_GROWTH);
    book_rise(4, 1, 400 * KIB);  // a few large blocks
    check_absent(FINDING_GROWTH);
    book_rise(6, 2, 100 * KIB);  // beside something much larger
    making_book(&making, stack_of(PROGRAM + 0x30), 1, 20 * MIB, 0, 0);
    check_absent(FINDING_GROWTH);
    book_cache();
    check_absent(FINDING_GROWTH);
}

// A heap of which `live` is left while `rss` is resident, over seven seconds; so much of the time
// that it is so.
static void book_free(uint64_t live, uint64_t rss, size_t seconds_of_eight) {
    enum { SECONDS = 8, SECOND = 1000000000 };
    book_picture(live, rss);
    making.header.totals.point_ns = SECOND;
    making_point(&making, 0, 0, (int64_t)live, (int64_t)live);
    picture.rss_bytes = picture.heap_bytes = rss;
    picture.knows = CAIRN_PICTURE_KNOWS_MAPPED;
    picture.arena_count = 1;
    for (size_t i = 0; i < SECONDS; i++)
        residents[i] = (struct cairn_resident){
            .at_ns = i * SECOND, .rss_bytes = i < seconds_of_eight ? rss : live + live / 4};
    resident_count = SECONDS;
}

static void test_free_in_heap(void **state) {
    (void)state;
    book_free(20 * MIB, 100 * MIB, 8);
    const struct finding *finding = find(FINDING_FREE);
    assert_non_null(finding);
    assert_int_equal(finding->saved_bytes, 75 * MIB);  // a quarter of what is live is its room
    assert_int_equal(finding->live_bytes, 20 * MIB);
    close_made();
    book_free(20 * MIB, 100 * MIB, 2);  // a quarter of the time
    assert_non_null(find(FINDING_FREE));
    close_made();
    book_free(20 * MIB, 100 * MIB, 1);
    check_absent(FINDING_FREE);
    book_free(50 * MIB, 100 * MIB, 8);  // less than half of it
    check_absent(FINDING_FREE);
    book_free(4 * MIB, 20 * MIB, 8);  // little
    check_absent(FINDING_FREE);
    book_free(20 * MIB, 100 * MIB, 8);  // cairn's memory that came after the last picture
    making.header.own_bytes = 70 * MIB;
    check_absent(FINDING_FREE);
    book_free(20 * MIB, 100 * MIB, 8);
    making.header.own_bytes = 70 * MIB;
    picture.at_ns = 1000 * (uint64_t)1000000000;  // it saw that cairn had nothing before
    assert_non_null(find(FINDING_FREE));
    close_made();
    book_free(20 * MIB, 100 * MIB, 8);  // what was there before is not known
    making.header.is_attached = 1;
    check_absent(FINDING_FREE);
}

static void test_untouched(void **state) {
    (void)state;
    book_picture(40 * MIB, 50 * MIB);
    picture.untouched_bytes = 4 * MIB;
    const struct finding *finding = find(FINDING_UNTOUCHED);
    assert_non_null(finding);
    assert_int_equal(finding->saved_bytes, 4 * MIB);
    assert_non_null(finding->stack);
    close_made();
    book_picture(40 * MIB, 50 * MIB);
    picture.untouched_bytes = 4 * MIB - 1;
    check_absent(FINDING_UNTOUCHED);
    book_picture(41 * MIB, 50 * MIB);
    picture.untouched_bytes = 4 * MIB;
    check_absent(FINDING_UNTOUCHED);
    book_picture(40 * MIB, 50 * MIB);
    picture.untouched_bytes = 20 * MIB;
    picture.swap_bytes = 4096;
    check_absent(FINDING_UNTOUCHED);
    book_picture(40 * MIB, 50 * MIB);  // what became resident later may be of it, or not
    making.header.rss_peak_bytes = 110 * MIB;
    picture.untouched_bytes = 20 * MIB;
    finding = find(FINDING_UNTOUCHED);
    assert_non_null(finding);
    assert_int_equal(finding->saved_bytes, 10 * MIB);
    assert_true(finding->is_least);
    close_made();
    book_picture(40 * MIB, 50 * MIB);
    picture.untouched_bytes = 20 * MIB;
    finding = find(FINDING_UNTOUCHED);
    assert_false(finding->is_least);
    close_made();
    book_picture(MIB, 2 * MIB);  // it is of what was there before cairn was
    making_inherited(&making, "allocated before attach", 40, 40 * MIB);
    picture.live_bytes = 41 * MIB;
    picture.untouched_bytes = 20 * MIB;
    finding = find(FINDING_UNTOUCHED);
    assert_non_null(finding);
    assert_int_equal(finding->stacks.list[0].part, 40 * MIB);
    assert_int_equal(finding->stacks.list[0].stack->allocations, 0);
    close_made();
}

static void book_waste(uint64_t held_bytes) {
    start();
    making_book(&making, stack_of(PROGRAM + 0x20), 5, 5000, 0, 0);
    waste.held_bytes = held_bytes;
    waste.string_copies = 310022;
    waste.strings = 1207;
    snprintf(waste.most, sizeof waste.most, "make\033[m");
    snprintf(waste.most_strings, sizeof waste.most_strings, "parse_name");
}

static void check_text(const struct finding *finding, const char *wanted) {
    const struct view_options view = {0};
    char text[FINDING_TEXT_BYTES];
    assert_non_null(finding);
    assert_true(finding_text(finding, &profile, NULL, &view, text));
    if (!strstr(text, wanted)) fail_msg("\"%s\" is not in \"%s\"", wanted, text);
    assert_null(strchr(text, '\033'));
    close_made();
}

static void test_strings(void **state) {
    (void)state;
    book_waste(20 * MIB);
    waste.string_bytes = waste.duplicate_bytes = 1 * MIB;
    const struct finding *finding = find(FINDING_STRINGS);
    assert_non_null(finding);
    assert_int_equal(finding->saved_bytes, 1 * MIB);
    check_text(finding, "1.0 MiB of equal strings, 310,022 copies of 1,207 strings, most of "
                        "parse_name: keep each once");
    book_waste(20 * MIB + 20);
    waste.string_bytes = waste.duplicate_bytes = 1 * MIB;
    check_absent(FINDING_STRINGS);
    book_waste(1 * MIB);
    waste.string_bytes = waste.duplicate_bytes = 256 * KIB - 1;
    check_absent(FINDING_STRINGS);
}

static void test_waste(void **state) {
    (void)state;
    book_waste(10 * MIB);
    waste.zero_bytes = waste.tail_bytes = 1 * MIB;
    waste.untouched_bytes = 5 * MIB;  // takes no memory
    const struct finding *finding = find(FINDING_WASTE);
    assert_non_null(finding);
    assert_int_equal(finding->saved_bytes, 2 * MIB);
    check_text(finding, "2.0 MiB of 10.0 MiB in blocks are of no use: 1.0 MiB zero, 0 B equal to "
                        "others, 1.0 MiB unused at ends");
    book_waste(10 * MIB + 1024);
    waste.zero_bytes = waste.tail_bytes = 1 * MIB;
    check_absent(FINDING_WASTE);
    book_waste(1 * MIB);
    waste.tail_bytes = 256 * KIB - 1;
    check_absent(FINDING_WASTE);
    book_waste(1 * MIB);  // a damaged file says more than there is
    waste.tail_bytes = 2 * MIB;
    check_absent(FINDING_WASTE);
}

static void test_order(void **state) {
    (void)state;
    // all calls, half of the heap: the calls count half
    book_temporary(40000, 40000);
    making_book(&making, stack_of(PROGRAM + 0x40), 20000, 20000 * 24, 0, 0);
    assert_non_null(find(FINDING_TEMPORARY));
    for (size_t i = 1; i < findings.count; i++)
        assert_true(findings.list[i - 1].gain >= findings.list[i].gain);
    assert_true(findings.count >= 2);
    close_made();
    start();
    making_book(&making, stack_of(PROGRAM + 0x20), 5, 5000, 0, 0);
    find(FINDING_GROWTH);
    assert_int_equal(findings.count, 0);
    assert_null(findings_view(&findings));
    close_made();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alike),         cmocka_unit_test(test_temporary),
        cmocka_unit_test(test_ages),          cmocka_unit_test(test_growing_buffer),
        cmocka_unit_test(test_hand_over),     cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_arenas),        cmocka_unit_test(test_untouched),
        cmocka_unit_test(test_strings),       cmocka_unit_test(test_waste),
        cmocka_unit_test(test_order),         cmocka_unit_test(test_small_pages),
        cmocka_unit_test(test_growth),        cmocka_unit_test(test_free_in_heap),
        cmocka_unit_test(test_equal_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
