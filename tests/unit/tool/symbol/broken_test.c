// SPDX-License-Identifier: Apache-2.0
// Files that are cut off or changed at random places: resolving may find nothing or nonsense, it
// may not crash, hang or read beyond (run with sanitizers). The seed is fixed: a failure repeats.
#include "tests/unit/tool/symbol/programs.h"

#include "tool/symbol/symbol.h"

#define CHANGED_COPIES 150
#define CUT_COPIES 60
#define CHANGES_PER_COPY 12
#define QUERY_COUNT 200

static const char source[] =
    "#include <map>\n#include <string>\n"
    "static std::map<std::string, int> words;\n"
    "int count(const std::string &word) { return ++words[word + std::to_string(word.size())]; }\n"
    "int main(int argc, char **argv) { return count(argv[argc - 1]); }\n";

static uint8_t *content;
static size_t content_bytes;
static uint32_t seed = 20240229;

static uint32_t draw(uint32_t limit) {
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)seed * limit) >> 32);
}

static void read_program(void) {
    FILE *file = fopen(in_scratch("program"), "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    content_bytes = (size_t)ftell(file);
    rewind(file);
    content = malloc(content_bytes);
    assert_int_equal(fread(content, 1, content_bytes, file), content_bytes);
    fclose(file);
}

static void resolve_copy(const uint8_t *bytes, size_t count, uint64_t first) {
    FILE *file = fopen(in_scratch("copy"), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
    struct symbol_table *table;
    struct symbol_query queries[QUERY_COUNT];
    struct error error;
    assert_true(symbol_table_open(&table, NULL, NULL, &error));
    for (size_t i = 0; i < QUERY_COUNT; i++)
        queries[i] = (struct symbol_query){.address = first + 16 * i};
    struct symbol_module module = {.path = in_scratch("copy")};
    assert_true(symbol_resolve(table, &module, queries, QUERY_COUNT, NULL, &error));
    symbol_table_close(table);
}

// Where sections with debug information begin: everything behind the code and data.
static size_t debug_offset(void) {
    return content_bytes / 5;
}

static void check_changed(const char *options) {
    assert_true(run("g++ %s -o program '%s/program.cc'", options, scratch));
    read_program();
    uint64_t first = address_of("program", "main") & ~0xfffull;
    uint8_t *copy = malloc(content_bytes);
    for (int i = 0; i < CHANGED_COPIES; i++) {
        memcpy(copy, content, content_bytes);
        for (int change = 0; change < CHANGES_PER_COPY; change++) {
            size_t from = draw(4) ? debug_offset() : 0;
            copy[from + draw((uint32_t)(content_bytes - from))] = (uint8_t)draw(256);
        }
        resolve_copy(copy, content_bytes, first);
    }
    for (int i = 0; i < CUT_COPIES; i++)
        resolve_copy(content, draw((uint32_t)content_bytes), first);
    free(copy);
    free(content);
}

static void changed_dwarf_5_is_survived(void **state) {
    (void)state;
    check_changed("-O1 -gdwarf-5");
}

static void changed_dwarf_4_is_survived(void **state) {
    (void)state;
    check_changed("-O1 -gdwarf-4");
}

static void changed_compressed_sections_are_survived(void **state) {
    (void)state;
    check_changed("-O1 -g -gz");
}

static int open_all(void **state) {
    if (scratch_open(state)) return -1;
    write_source("program.cc", source);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_dwarf_5_is_survived),
        cmocka_unit_test(changed_dwarf_4_is_survived),
        cmocka_unit_test(changed_compressed_sections_are_survived),
    };
    return cmocka_run_group_tests(tests, open_all, scratch_close);
}
