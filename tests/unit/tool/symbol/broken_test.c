// SPDX-License-Identifier: Apache-2.0
// Files that are cut off or changed at random places: resolving may find nothing or nonsense, it
// may not crash, hang or read beyond (run with sanitizers). The seed is fixed: a failure repeats.
#include "tests/unit/tool/symbol/programs.h"

#include "tool/symbol/symbol.h"

#define CHANGED_COPIES 12
#define CUT_COPIES 6
#define LONG_FACTOR 50  // `make check-long`
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

static void read_file(const char *name) {
    FILE *file = fopen(in_scratch(name), "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    content_bytes = (size_t)ftell(file);
    rewind(file);
    content = malloc(content_bytes);
    assert_int_equal(fread(content, 1, content_bytes, file), content_bytes);
    fclose(file);
}

static void write_file(const char *name, const uint8_t *bytes, size_t count) {
    FILE *file = fopen(in_scratch(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

static void resolve_program(const char *name, uint64_t first) {
    struct symbol_table *table;
    struct symbol_query queries[QUERY_COUNT];
    struct error error;
    assert_true(symbol_table_open(&table, NULL, NULL, &error));
    for (size_t i = 0; i < QUERY_COUNT; i++)
        queries[i] = (struct symbol_query){.address = first + 16 * i};
    struct symbol_module module = {.path = in_scratch(name)};
    assert_true(symbol_resolve(table, &module, queries, QUERY_COUNT, NULL, &error));
    symbol_table_close(table);
}

static void resolve_copy(const uint8_t *bytes, size_t count, uint64_t first) {
    write_file("copy", bytes, count);
    resolve_program("copy", first);
}

// Where sections with debug information begin: everything behind the code and data.
static size_t debug_offset(void) {
    return content_bytes / 5;
}

static int times(int count) {
    return getenv("CAIRN_LONG") ? LONG_FACTOR * count : count;
}

static void check_changed(const char *options) {
    assert_true(run("g++ %s -o program '%s/program.cc'", options, scratch));
    read_file("program");
    uint64_t first = address_of("program", "main") & ~0xfffull;
    uint8_t *copy = malloc(content_bytes);
    for (int i = 0; i < times(CHANGED_COPIES); i++) {
        memcpy(copy, content, content_bytes);
        for (int change = 0; change < CHANGES_PER_COPY; change++) {
            size_t from = draw(4) ? debug_offset() : 0;
            copy[from + draw((uint32_t)(content_bytes - from))] = (uint8_t)draw(256);
        }
        resolve_copy(copy, content_bytes, first);
    }
    for (int i = 0; i < times(CUT_COPIES); i++)
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
    check_changed("-O1 -g -Wl,--compress-debug-sections=zstd");
}

// The index lies at the end of a package, the information before it.
static void check_package(const char *compiler, int version, const char *packer) {
    assert_true(
        run("%s -O1 -gdwarf-%d -gsplit-dwarf -c '%s/program.cc' && %s -o whole program.o && "
            "timeout 60 %s -e whole -o whole.dwp && rm -f *.dwo",
            compiler, version, scratch, compiler, packer));
    read_file("whole.dwp");
    uint64_t first = address_of("whole", "main") & ~0xfffull;
    uint8_t *copy = malloc(content_bytes);
    for (int i = 0; i < times(CUT_COPIES); i++) {
        memcpy(copy, content, content_bytes);
        for (int change = 0; change < CHANGES_PER_COPY; change++) {
            size_t most = draw(2) ? 4096 : content_bytes;
            if (most > content_bytes) most = content_bytes;
            copy[content_bytes - 1 - draw((uint32_t)most)] = (uint8_t)draw(256);
        }
        write_file("whole.dwp", copy, i % 3 ? content_bytes : draw((uint32_t)content_bytes));
        resolve_program("whole", first);
    }
    free(copy);
    free(content);
}

static void changed_packages_are_survived(void **state) {
    (void)state;
    if (has_command("dwp")) check_package("g++", 4, "dwp");
    if (has_command("llvm-dwp") && has_command("clang++")) check_package("clang++", 5, "llvm-dwp");
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
        cmocka_unit_test(changed_packages_are_survived),
    };
    return cmocka_run_group_tests(tests, open_all, scratch_close);
}
