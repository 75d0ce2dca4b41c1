// SPDX-License-Identifier: Apache-2.0
// Answers as bytes of a recording: read again they are the same in every form, cut by --top; bytes
// that are cut off, changed or of a later version are no answer, or one that can be shown.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/looks.h"
#include "tool/answer/kept.h"

enum { SHARE, VALUE, RATE, NAME, PLACE, COLUMNS };
enum { ROWS = 3, WHOLE = 4096, NEGATIVE = -5, WIDE = 120, STEP = 8 };

static const struct answer_column columns[COLUMNS] = {
    [SHARE] = {.key = "share", .unit = ANSWER_SHARE, .place = ANSWER_FIGURE},
    [VALUE] = ANSWER_FIGURES("value", "held", ANSWER_BYTES, 0),
    [RATE] = ANSWER_DATA("rate", ANSWER_RATE),
    [NAME] = ANSWER_NAMES("name", ANSWER_TAIL, .head = "name"),
    [PLACE] = ANSWER_TAILS("place", " (", ")")};

static const struct view_options all = {.top = 0}, first = {.top = 1};
static const struct frame frames[] = {
    {.function = "inner", .file = "a.c", .module = "/bin/a", .line = 7, .is_own = true},
    {.function = "outer\x1b[31m\xff", .offset = 0x1234}};

static bool next_row(struct answer *answer, struct answer_row *row) {
    static struct frame_list list;
    static const struct frame *items[] = {&frames[0], &frames[1]};
    size_t *at = answer->state;
    if (*at == ROWS) return false;
    list.frames.items = items;
    list.frames.count = list.shown_count = 2;
    row->frames = *at == 0 ? &list : NULL;
    row->level = *at == 1;
    answer_set(row, SHARE, (int64_t)(WHOLE >> *at));
    answer_set(row, VALUE, *at ? NEGATIVE : INT64_MAX);
    answer_set_real(row, RATE, 0.5 + (double)*at);
    answer_set_text(row, NAME, *at == 2 ? NULL : "=a\"b|\x1b[31m\xff");
    if (*at == 0) answer_set_text(row, PLACE, "=a\"b|\x1b[31m\xff");
    ++*at;
    return true;
}

static struct answer make(size_t *at) {
    *at = 0;
    struct answer answer = {.view = "made",
                            .title = "3 things",
                            .options = &all,
                            .columns = columns,
                            .column_count = COLUMNS,
                            .has_levels = true,
                            .has_frames = true,
                            .whole = WHOLE,
                            .shown = 2,
                            .count = 2,
                            .next_row = next_row,
                            .state = at};
    answer_note(&answer, "a note");
    return answer;
}

struct made {
    char *bytes;
    size_t size;
};

static struct made write_kept(unsigned times) {
    struct made made;
    FILE *out = open_memstream(&made.bytes, &made.size);
    for (unsigned i = 0; i < times; i++) {
        size_t at;
        struct answer answer = make(&at);
        assert_true(answer_form_kept.print(out, &answer, NULL));
    }
    fclose(out);
    return made;
}

static struct made write_form(const struct answer_form *form, struct answer *answer) {
    struct made made;
    FILE *out = open_memstream(&made.bytes, &made.size);
    assert_true(form->print(out, answer, NULL));
    fclose(out);
    return made;
}

static struct kept_bytes bytes_of(const struct made *made) {
    const uint8_t *start = (const uint8_t *)made->bytes;
    return (struct kept_bytes){start, start + made->size};
}

static void test_forms(void **state) {
    (void)state;
    struct made kept = write_kept(1);
    for (const struct answer_form *form = answer_forms; form->name; form++) {
        size_t at;
        struct answer answer = make(&at), again;
        struct kept_bytes bytes = bytes_of(&kept);
        if (form->is_of_calls) continue;
        struct made wanted = write_form(form, &answer);
        struct kept_answer *read = kept_answer_read(&bytes);
        assert_non_null(read);
        assert_string_equal(kept_answer_view(read), "made");
        kept_answer_open(read, &all, &again);
        struct made found = write_form(form, &again);
        assert_string_equal(found.bytes, wanted.bytes);
        kept_answer_free(read);
        free(found.bytes);
        free(wanted.bytes);
    }
    free(kept.bytes);
}

// Two answers, one behind the other; of the list the first row with what is below it.
static void test_cut(void **state) {
    (void)state;
    struct made kept = write_kept(2);
    struct kept_bytes bytes = bytes_of(&kept);
    for (int i = 0; i < 2; i++) {
        struct kept_answer *read = kept_answer_read(&bytes);
        struct answer answer;
        struct answer_row row;
        assert_non_null(read);
        kept_answer_open(read, &first, &answer);
        assert_int_equal(answer.shown, 1);
        assert_int_equal(answer.count, 2);
        size_t rows = 0;
        while (answer_next(&answer, ANSWER_FOR_PROGRAMS, &row)) rows++;
        assert_int_equal(rows, 2);
        kept_answer_free(read);
    }
    assert_null(kept_answer_read(&bytes));
    free(kept.bytes);
}

// Reads what may be no answer, and prints it if it is one.
static void show(const uint8_t *start, size_t size) {
    struct kept_bytes bytes = {start, start + size};
    struct kept_answer *read = kept_answer_read(&bytes);
    struct made made;
    struct answer answer;
    if (!read) return;
    FILE *out = open_memstream(&made.bytes, &made.size);
    const struct terminal terminal = {.out = out, .columns = WIDE};
    kept_answer_open(read, &first, &answer);
    assert_true(answer_print_text(&terminal, &answer, NULL));
    kept_answer_open(read, &all, &answer);
    assert_true(answer_print_json(out, &answer, NULL));
    fclose(out);
    free(made.bytes);
    kept_answer_free(read);
}

static void test_damage(void **state) {
    (void)state;
    struct made kept = write_kept(1);
    for (size_t size = 0; size < kept.size; size++) {
        uint8_t *cut = malloc(size ? size : 1);  // of this size, so that reading beyond is noticed
        memcpy(cut, kept.bytes, size);
        struct kept_bytes bytes = {cut, cut + size};
        assert_null(kept_answer_read(&bytes));
        free(cut);
    }
    const int step = getenv("CAIRN_LONG") ? 1 : STEP;  // else each value at every eighth byte
    for (size_t i = 0; i < kept.size; i++) {
        const char old = kept.bytes[i];
        for (int value = (int)i % step; value < 256; value += step) {
            kept.bytes[i] = (char)value;
            show((const uint8_t *)kept.bytes, kept.size);
        }
        kept.bytes[i] = old;
    }
    kept.bytes[0] = CAIRN_LOOK_ANSWERS_VERSION + 1;
    struct kept_bytes bytes = bytes_of(&kept);
    assert_null(kept_answer_read(&bytes));
    assert_ptr_equal(bytes.at, bytes.end);
    free(kept.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_cut),
                                       cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
