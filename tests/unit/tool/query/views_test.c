// SPDX-License-Identifier: Apache-2.0
// Every view of a recording with a bit of everything: on the screen and in each form it has an
// answer of its own name, or says why it has none and prints nothing.
#include "tool/query/views.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/query/name_options.h"

#define PATH "views_test.cairn"

enum { TOP = 3, DEPTH = 4 };

static struct opened opened;
static struct frame_names names;

static int set_up(void **state) {
    (void)state;
    static struct making making;
    char *words[] = {PATH, NULL};
    const struct opening opening = {.words = words, .count = 1};
    struct error error;
    size_t size;
    making_sample(&making);
    uint8_t *bytes = making_finish(&making, true, &size);
    making_write(PATH, bytes, size);
    free(bytes);
    if (!opening_open(&opening, &opened, &error)) fail_msg("%s", error.text);
    names = names_frames(opened.names);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    opened_close(&opened);
    unlink(PATH);
    return 0;
}

// The recording has neither what is in blocks nor what only some options record.
static bool may_be_missing(const struct view *view) {
    static const char *const recorded_apart[] = {"frees", "annotate"};
    if (view_has(view, VIEW_NEEDS_MEMORY)) return true;
    for (size_t i = 0; i < sizeof recorded_apart / sizeof *recorded_apart; i++)
        if (!strcmp(view->name, recorded_apart[i])) return true;
    return false;
}

// Others are refused before, without a run of several or an event log.
static bool is_of_recordings(const struct view *view) {
    return view->run != RUN_TABLE && !view_has(view, VIEW_NEEDS_LOG);
}

// Returns what is printed of the view, for free(); "" without an answer.
static char *shown(const struct view *view, const struct answer_form *form) {
    const struct request request = {.view = view,
                                    .options = {.by = MEASURE_PEAK, .top = TOP, .depth = DEPTH},
                                    .form = form,
                                    .source = "sample.c",
                                    .is_printed = true};
    const struct view_subject subject = {.opened = &opened, .names = &names, .request = &request};
    struct error error = {""};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    bool is_shown = view_print(out, &subject, &error);
    fclose(out);
    if (is_shown) {
        if (!*text && !form) fail_msg("%s: nothing is shown", view->name);
    } else {
        if (!*error.text || *text) fail_msg("%s: without a reason, or in part", view->name);
        if (!may_be_missing(view)) fail_msg("%s: %s", view->name, error.text);
    }
    return text;
}

static void test_every_view_on_the_screen(void **state) {
    (void)state;
    for (const struct view *view = views; view->name; view++)
        if (is_of_recordings(view)) free(shown(view, NULL));
}

static void test_every_view_in_every_form(void **state) {
    (void)state;
    for (const struct view *view = views; view->name; view++) {
        if (!is_of_recordings(view)) continue;
        for (const struct answer_form *form = answer_forms; form->name; form++) {
            char *text, start[64];
            if (form->is_of_calls && !view_has(view, VIEW_IS_TREE)) continue;
            text = shown(view, form);
            snprintf(start, sizeof start, "{\"schema\":1,\n\"view\":\"%s\",", view->name);
            if (*text && !strcmp(form->name, "json"))
                assert_memory_equal(text, start, strlen(start));
            free(text);
        }
    }
}

// Its measure is not known of a recording in which no block was watched.
static void test_what_is_not_known(void **state) {
    (void)state;
    const struct request screen = {.view = view_find("stacks"),
                                   .options = {.by = MEASURE_SHORT, .top = TOP}};
    struct request table = screen;
    struct view_subject subject = {.opened = &opened, .names = &names, .request = &screen};
    struct error error = {""};
    char *text;
    size_t size;
    table.form = answer_form_find("csv");
    assert_false(measure_is_known(MEASURE_SHORT, &opened.profile));
    FILE *out = open_memstream(&text, &size);
    assert_true(view_print(out, &subject, &error));
    fflush(out);
    assert_non_null(strstr(text, " are not known: too few blocks were allocated"));
    subject.request = &table;
    assert_false(view_print(out, &subject, &error));
    assert_non_null(strstr(error.text, " are not known of this recording"));
    fclose(out);
    free(text);
}

static void test_names(void **state) {
    (void)state;
    char of_memory[VIEW_NAMES_BYTES];
    struct error error = {""};
    for (const struct view *view = views; view->name; view++)
        assert_ptr_equal(view_find(view->name), view);
    assert_null(view_find("treetop"));
    assert_null(view_find(NULL));
    view_names_of_memory(of_memory);
    assert_string_equal(of_memory, "types, heap, pages, owners, containers, waste and remedies");
    assert_true(view_check_recording(view_find("heap"), &error));
    assert_false(view_check_recording(view_find("waste"), &error));
    assert_non_null(strstr(error.text, "cairn report --view waste PID"));
}

int main(void) {
    name_options_symbols()->is_closed = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_view_on_the_screen),
        cmocka_unit_test(test_every_view_in_every_form),
        cmocka_unit_test(test_what_is_not_known),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
