// SPDX-License-Identifier: Apache-2.0
// The data of a page, unpacked again: what stacks held at snapshots, numbers of any size, texts
// that would break out of a careless writer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/web/web.h"

enum { PROGRAM = 0x400000, PAGE_ROOM = 1 << 20 };
static const char hostile[] = "</script><b>\"'&\n\\ \xff{{data}}{{title}}";
static struct making making;

struct page {
    char *html;
    size_t html_bytes;
    uint8_t *data;
    size_t size;
};

static const struct frame *frames_of(void *context, uint32_t place, size_t *count) {
    static struct frame frame;
    const struct profile *profile = context;
    frame = (struct frame){.function = place ? hostile : "plain",
                           .module = hostile,
                           .offset = profile->places.list.items[place].address};
    *count = 1;
    return &frame;
}

static unsigned value_of(char letter) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = strchr(letters, letter);
    assert_non_null(found);
    return (unsigned)(found - letters);
}

// What stands between the tags of the data.
static void unpack(struct page *page) {
    static const char start[] = "id=\"data\">";
    uint8_t *packed = malloc(page->html_bytes);
    const char *at = strstr(page->html, start);
    size_t count = 0;
    unsigned bits = 0, held = 0;
    assert_non_null(at);
    for (at += strlen(start); *at != '<' && *at != '='; at++) {
        bits = bits << 6 | value_of(*at);
        held += 6;
        if (held < 8) continue;
        held -= 8;
        packed[count++] = (uint8_t)(bits >> held);
    }
    uLongf size = PAGE_ROOM;
    page->data = malloc(size);
    assert_int_equal(uncompress(page->data, &size, packed, count), Z_OK);
    page->size = size;
    free(packed);
}

static void make_page(struct page *page) {
    size_t size;
    uint8_t *bytes = making_finish(&making, true, &size);
    struct recording recording;
    struct profile profile;
    struct web web;
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_true(profile_build(&recording, &profile, NULL));
    struct frame_names names = {.of_place = frames_of, .context = &profile};
    const struct export export = {.profile = &profile,
                                  .names = &names,
                                  .process_count = 1,
                                  .program = hostile,
                                  .command = hostile,
                                  .trust = hostile,
                                  .tool_version = "0"};
    const struct web_profile about = {
        .export = &export, .role = WEB_ONE, .path = hostile, .ending = hostile};
    FILE *out = open_memstream(&page->html, &page->html_bytes);
    assert_true(web_open(&web, out, hostile, false, NULL));
    assert_true(web_put_profile(&web, &about, NULL));
    assert_true(web_close(&web, NULL));
    fclose(out);
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
    unpack(page);
}

static void free_page(struct page *page) {
    free(page->html);
    free(page->data);
}

// The content of the n-th chunk of a name, from 0; NULL if there are not so many.
static const uint8_t *chunk(const struct page *page, const char *name, unsigned n, size_t *size) {
    const uint8_t *at = page->data, *end = page->data + page->size;
    while (*at) {
        const char *found = (const char *)at + 1;
        size_t length = *at;
        at += 1 + length + 1;
        *size = at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
        at += 4;
        if (length == strlen(name) && !memcmp(found, name, length) && !n--) return at;
        at += *size;
        assert_true(at < end);
    }
    return NULL;
}

static size_t numbers(const struct page *page, const char *name, unsigned n, int64_t *out) {
    size_t size, count = 0;
    const uint8_t *at = chunk(page, name, n, &size);
    assert_non_null(at);
    for (size_t i = 0; i < size; count++) {
        uint64_t value = 0;
        unsigned shift = 0;
        for (; at[i] & 0x80; i++, shift += 7) value |= (uint64_t)(at[i] & 0x7f) << shift;
        value |= (uint64_t)at[i++] << shift;
        out[count] = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
    }
    return count;
}

static uint32_t stack_at(uint64_t address) {
    return making_stack(&making, 0, &address, 1);
}

static void test_snapshots(void **state) {
    (void)state;
    struct page page;
    int64_t values[8];
    size_t size;
    making_start(&making);
    making_module(&making, "/usr/bin/example", PROGRAM, 0x10000, 0, 0x11);
    making_thread(&making, 4242, "example");
    uint32_t busy = stack_at(PROGRAM + 0x10), still = stack_at(PROGRAM + 0x20);
    making_book(&making, busy, 1, 100, 0, 0);
    making_book(&making, still, 2, 60, 0, 0);
    making_snapshot(&making, CAIRN_SNAPSHOT_CHURN, "", 100);
    making_book(&making, busy, 1, 5000000000, 0, 0);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "<warm>", 200);
    making_book(&making, busy, 0, 0, 2, 5000000100);
    making_snapshot(&making, CAIRN_SNAPSHOT_HIGH, "", 300);
    making_peak(&making, 400);
    make_page(&page);
    const uint8_t *list = chunk(&page, "snapshots", 0, &size);
    assert_non_null(list);
    assert_non_null(memmem(list, size, "<warm>", strlen("<warm>")));
    static const int64_t wanted[][2] = {{100, 60}, {5000000000, 0}, {-5000000100, 0}};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(numbers(&page, "snapshot.bytes", i, values), 2);
        assert_true(values[0] == wanted[i][0] || values[1] == wanted[i][0]);
        assert_int_equal(values[0] + values[1], wanted[i][0] + wanted[i][1]);
    }
    assert_null(chunk(&page, "snapshot.bytes", 3, &size));
    free_page(&page);
}

// A second thread frees a block of the first: it is the first that held it.
static void test_threads_over_time(void **state) {
    (void)state;
    struct page page;
    int64_t values[8];
    uint64_t address = PROGRAM + 0x10;
    making_start(&making);
    making_module(&making, "/usr/bin/example", PROGRAM, 0x10000, 0, 0x11);
    uint32_t first = making_thread(&making, 4242, "first");
    uint32_t second = making_thread(&making, 4243, "second");
    uint32_t own = making_stack(&making, first, &address, 1);
    uint32_t other = making_stack(&making, second, &address, 1);
    making_book(&making, own, 1, 100, 0, 0);
    making_book(&making, other, 1, 30, 0, 0);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", 100);
    making_book(&making, own, 1, 400, 0, 0);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", 200);
    making_book(&making, making_foreign(&making, second, own), 0, 0, 1, 100);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", 300);
    making_peak(&making, 200);
    make_page(&page);
    static const int64_t wanted[][2] = {{100, 30}, {400, 0}, {-100, 0}};
    for (unsigned i = 0; i < 3; i++) {
        assert_true(numbers(&page, "snapshot.slots", i, values) >= 2);
        assert_int_equal(values[0], wanted[i][0]);
        assert_int_equal(values[1], wanted[i][1]);
    }
    numbers(&page, "slot.exit", 0, values);
    assert_int_equal(values[0], 400);
    assert_int_equal(values[1], 30);
    free_page(&page);
}

static void test_texts_stay_texts(void **state) {
    (void)state;
    struct page page;
    making_sample(&making);
    make_page(&page);
    const char *title = strstr(page.html, "<title>"), *end = strstr(page.html, "</title>");
    assert_non_null(memmem(title, (size_t)(end - title), "&lt;/script>", 5));
    assert_null(memmem(title, (size_t)(end - title), "<b>", 3));
    // the title is in the heading alone: what it says is no mark of the template
    assert_null(strstr(end, "&lt;b"));
    size_t size, texts = 0;
    const uint8_t *bytes = chunk(&page, "texts", 0, &size);
    for (size_t i = 0; i < size; i++) {
        assert_true(bytes[i] >= ' ' || !bytes[i]);
        texts += !bytes[i];
    }
    assert_true(texts > 1);
    assert_null(chunk(&page, "snapshots", 0, &size));
    free_page(&page);
}

static void test_nothing_recorded(void **state) {
    (void)state;
    struct page page;
    int64_t values[4];
    making_start(&making);
    make_page(&page);
    assert_int_equal(numbers(&page, "stack.node", 0, values), 0);
    assert_int_equal(numbers(&page, "point.index", 0, values), 0);
    free_page(&page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_threads_over_time),
        cmocka_unit_test(test_texts_stay_texts),
        cmocka_unit_test(test_nothing_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
