// SPDX-License-Identifier: Apache-2.0
// Names and lines by the table of a Go program, in each of its forms, and whatever its bytes say.
// (That they are those of real programs, tests/e2e/go_frames.py shows.)
#include "tool/symbol/go_table.h"

#include "tests/unit/tool/symbol/programs.h"

#include "tool/symbol/image.h"

enum { FUNCTION_BYTES = 64, QUERIES = 5 };

static char source[SCRATCH_PATH_MAX * 2];

// "-DTEXTLESS=1" and the like become symbols of the assembler.
static void build(const char *name, const char *symbols) {
    assert_true(run("gcc -static -nostdlib -no-pie -Wl,-Ttext-segment=0x1000 -Wl,-e,0 "
                    "-Wl,--build-id=none -Wl,-z,noseparate-code -Wa,%s -o %s '%s'",
                    symbols, name, source));
}

struct asked {
    struct string_pool *names;
    struct symbol_query queries[QUERIES];
    size_t answered;
};

static void ask(const struct image *image, uint64_t text, struct asked *asked) {
    static const uint64_t offsets[QUERIES] = {20, 40, FUNCTION_BYTES + 5, 2 * FUNCTION_BYTES, 0};
    *asked = (struct asked){.names = string_pool_open()};
    assert_non_null(asked->names);
    for (size_t i = 0; i < QUERIES; i++) asked->queries[i].address = text + offsets[i];
    assert_true(go_table_answer(image, asked->names, asked->queries, QUERIES, &asked->answered));
}

static void check_frame(const struct symbol_frame *frame, const char *name, uint32_t line,
                        bool is_inlined) {
    assert_string_equal(frame->linkage, name);
    assert_string_equal(frame->file, "/src/main.go");
    assert_int_equal(frame->line, line);
    assert_int_equal(frame->is_inlined, is_inlined);
}

static void check_form(const char *name, const char *symbols) {
    struct image image = IMAGE_CLOSED;
    struct asked asked;
    build(name, symbols);
    assert_int_equal(image_open(&image, in_scratch(name)), IMAGE_OK);
    ask(&image, address_of(name, "text"), &asked);
    assert_int_equal(asked.answered, 4);
    const struct symbol_query *queries = asked.queries;
    assert_int_equal(queries[0].frame_count, 2);
    check_frame(&queries[0].frames[0], "main.inner[...]", 30, true);
    check_frame(&queries[0].frames[1], "main.outer", 10, false);
    assert_int_equal(queries[1].frame_count, 1);
    check_frame(&queries[1].frames[0], "main.outer", 12, false);
    assert_int_equal(queries[2].frame_count, 1);
    check_frame(&queries[2].frames[0], "main.plain", 50, false);
    assert_false(queries[3].is_known);  // behind the code
    check_frame(&queries[4].frames[0], "main.outer", 10, false);
    string_pool_close(asked.names);
    image_close(&image);
}

static void every_form_is_read(void **state) {
    (void)state;
    check_form("go18", "--defsym,FORM=0xf0");
    check_form("go20", "--defsym,FORM=0xf1");
    check_form("later", "--defsym,FORM=0xf1,--defsym,TEXTLESS=1");
}

static char *read_file(const char *name, size_t *size) {
    FILE *file = fopen(in_scratch(name), "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

// Each word of the file once as others that lead astray.
static void hostile_words_end(void **state) {
    (void)state;
    static const uint32_t words[] = {0, 1, 0x7fffffff, 0x80000000, UINT32_MAX};
    const size_t step = sizeof *words;
    size_t size;
    build("go20", "--defsym,FORM=0xf1");
    uint64_t text = address_of("go20", "text");
    char *bytes = read_file("go20", &size);
    for (size_t at = 0; at + step <= size; at += step) {
        for (size_t i = 0; i < sizeof words / step; i++) {
            struct image image = IMAGE_CLOSED;
            struct asked asked;
            char *copy = malloc(size);
            assert_non_null(copy);
            memcpy(copy, bytes, size);
            memcpy(copy + at, &words[i], step);
            if (image_open_memory(&image, copy, size) == IMAGE_OK) {
                ask(&image, text, &asked);
                string_pool_close(asked.names);
            }
            image_close(&image);
        }
    }
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_read),
        cmocka_unit_test(hostile_words_end),
    };
    const char *top = getenv("SOURCE_DIR");
    char here[SCRATCH_PATH_MAX];
    if (!top) top = getcwd(here, sizeof here);
    snprintf(source, sizeof source, "%s/tests/programs/go_table.s", top);
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}
