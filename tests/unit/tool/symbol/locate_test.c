// SPDX-License-Identifier: Apache-2.0
// Which files are used for a module and which are refused, and what is said about it.
#include "tests/unit/tool/symbol/programs.h"

#include "tool/symbol/image.h"
#include "tool/symbol/symbol.h"

// A library: "exported" is in .dynsym, "hidden" only in .symtab and debug information.
static const char source[] = "volatile int sink;\n"
                             "__attribute__((noinline)) static void hidden(int x) {\n"
                             "    sink = x;\n"
                             "    __asm__ volatile(\".Llocal: nop\");\n"
                             "}\n"
                             "__attribute__((noinline)) void exported(int x) {\n"
                             "    hidden(x);\n"
                             "    sink = 2;\n"
                             "}\n";

#define BUILD "gcc -O1 -fPIC -shared -o "

static struct symbol_table *table;
static uint64_t hidden_address;
static uint64_t exported_address;

static struct symbol_report resolve_module(struct symbol_module module,
                                           struct symbol_query queries[2]) {
    struct symbol_report report;
    struct error error;
    queries[0] = (struct symbol_query){.address = hidden_address};
    queries[1] = (struct symbol_query){.address = exported_address};
    assert_true(symbol_resolve(table, &module, queries, 2, &report, &error));
    assert_int_equal(report.resolved_count,
                     (queries[0].frame_count != 0) + (queries[1].frame_count != 0));
    return report;
}

static struct symbol_report resolve(const char *name, struct symbol_query queries[2]) {
    return resolve_module((struct symbol_module){.path = in_scratch(name)}, queries);
}

// Builds "lib.so" and learns where its functions are.
static void build(const char *options) {
    assert_true(
        run("rm -rf lib.so lib.debug .debug && " BUILD "lib.so %s '%s/lib.c'", options, scratch));
    hidden_address = address_of("lib.so", "hidden") + 1;
    exported_address = address_of("lib.so", "exported") + 1;
}

static void split_off(void) {
    assert_true(run("objcopy --only-keep-debug lib.so lib.debug && strip lib.so && "
                    "objcopy --add-gnu-debuglink=lib.debug lib.so"));
}

static void check_dwarf(struct symbol_report report, const struct symbol_query queries[2],
                        const char *path) {
    assert_int_equal(report.source, SYMBOL_SOURCE_DWARF);
    assert_string_equal(report.path, path);
    assert_int_equal(report.resolved_count, 2);
    assert_string_equal(queries[0].frames[0].function, "hidden");
    assert_string_equal(queries[1].frames[0].function, "exported");
    assert_string_equal(queries[0].frames[0].file, in_scratch("lib.c"));
    assert_in_range(queries[0].frames[0].line, 2, 5);
}

static void check_unresolved(struct symbol_report report, const struct symbol_query queries[2],
                             const char *note) {
    assert_int_equal(report.source, SYMBOL_SOURCE_NONE);
    assert_null(report.path);
    assert_int_equal(report.resolved_count, 0);
    assert_null(queries[0].frames);
    assert_non_null(report.note);
    assert_non_null(strstr(report.note, note));
}

static void debug_file_is_found_beside(void **state) {
    (void)state;
    struct symbol_query queries[2];
    build("-g");
    split_off();
    check_dwarf(resolve("lib.so", queries), queries, in_scratch("lib.debug"));
    assert_true(run("mkdir .debug && mv lib.debug .debug"));
    check_dwarf(resolve("lib.so", queries), queries, in_scratch(".debug/lib.debug"));
}

static void debug_file_is_found_through_a_link(void **state) {
    (void)state;
    struct symbol_query queries[2];
    build("-g");
    split_off();
    assert_true(run("mkdir -p other && ln -sf ../lib.so other/link.so"));
    check_dwarf(resolve("other/link.so", queries), queries, in_scratch("lib.debug"));
}

static void debug_file_of_another_build_is_refused(void **state) {
    (void)state;
    struct symbol_query queries[2];
    build("-g");
    split_off();
    assert_true(run(BUILD "foreign.so -g -DOTHER '%s/lib.c' && objcopy --remove-section "
                          ".note.gnu.build-id foreign.so && sed -i s/hidden/absent/ foreign.so && "
                          "objcopy --only-keep-debug foreign.so lib.debug",
                    scratch));
    struct symbol_report report = resolve("lib.so", queries);
    assert_int_equal(report.source, SYMBOL_SOURCE_DYNSYM);
    assert_int_equal(queries[0].frame_count, 0);
    assert_string_equal(queries[1].frames[0].function, "exported");
    assert_null(queries[1].frames[0].file);
    assert_int_equal(queries[1].frames[0].line, 0);
}

// Without build-ids the checksum in the link decides.
static void checksum_decides_without_build_id(void **state) {
    (void)state;
    struct symbol_query queries[2];
    build("-g -Wl,--build-id=none");
    split_off();
    check_dwarf(resolve("lib.so", queries), queries, in_scratch("lib.debug"));
    assert_true(run("printf x >> lib.debug"));
    assert_int_equal(resolve("lib.so", queries).source, SYMBOL_SOURCE_DYNSYM);
}

static void symbol_tables_serve_without_debug_information(void **state) {
    (void)state;
    struct symbol_query queries[2];
    build("-g0");
    struct symbol_report report = resolve("lib.so", queries);
    assert_int_equal(report.source, SYMBOL_SOURCE_SYMTAB);
    assert_string_equal(queries[0].frames[0].function, "hidden");
    assert_string_equal(report.path, in_scratch("lib.so"));
    assert_true(run("strip lib.so"));
    report = resolve("lib.so", queries);
    assert_int_equal(report.source, SYMBOL_SOURCE_DYNSYM);
    assert_int_equal(report.resolved_count, 1);
}

static void packed_symbol_table_is_read(void **state) {
    (void)state;
    if (!has_command("xz")) skip();
    struct symbol_query queries[2];
    build("-g0");
    assert_true(run("objcopy --only-keep-debug lib.so mini && xz -f mini && strip lib.so && "
                    "objcopy --add-section .gnu_debugdata=mini.xz lib.so"));
    struct symbol_report report = resolve("lib.so", queries);
    assert_int_equal(report.source, SYMBOL_SOURCE_SYMTAB);
    assert_string_equal(queries[0].frames[0].function, "hidden");
    assert_true(run("head -c 100 mini.xz > cut.xz && "
                    "objcopy --update-section .gnu_debugdata=cut.xz lib.so"));
    assert_int_equal(resolve("lib.so", queries).source, SYMBOL_SOURCE_DYNSYM);
}

static void build_id_is_checked(void **state) {
    (void)state;
    struct symbol_query queries[2];
    build("-g");
    struct image image;
    assert_int_equal(image_open(&image, in_scratch("lib.so")), IMAGE_OK);
    uint8_t build_id[IMAGE_BUILD_ID_MAX];
    size_t bytes = image.build_id_bytes;
    memcpy(build_id, image.build_id, bytes);
    image_close(&image);
    assert_int_equal(bytes, 20);

    struct symbol_module module = {
        .path = in_scratch("lib.so"), .build_id = build_id, .build_id_bytes = bytes};
    struct symbol_report report = resolve_module(module, queries);
    check_dwarf(report, queries, in_scratch("lib.so"));
    assert_null(report.note);

    build_id[0] ^= 1;
    module.path = in_scratch("lib.so");
    check_unresolved(resolve_module(module, queries), queries, "build-id differs");
    module.build_id_bytes = bytes - 1;
    module.path = in_scratch("lib.so");
    check_unresolved(resolve_module(module, queries), queries, "build-id differs");
}

static void missing_and_strange_files_are_told(void **state) {
    (void)state;
    struct symbol_query queries[2];
    build("-g");
    check_unresolved(resolve("absent.so", queries), queries, "missing");
    check_unresolved(resolve(".", queries), queries, "not a file");
    check_unresolved(resolve("lib.c", queries), queries, "not an ELF");
    assert_true(run("mkfifo -m 600 pipe && : > empty && cp lib.so lib.so.bak"));
    check_unresolved(resolve("pipe", queries), queries, "not a file");
    check_unresolved(resolve("empty", queries), queries, "not an ELF");
    const char *const names[] = {"[vdso]", "lib.so", "", "[heap]", "anon_inode:x"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        check_unresolved(resolve_module((struct symbol_module){.path = names[i]}, queries), queries,
                         "not a file on disk");
    check_unresolved(resolve_module((struct symbol_module){0}, queries), queries, "not a file");
}

// Debug files of the system are found by build-id, whatever happened to the module's file.
static void global_directory_is_searched_by_build_id(void **state) {
    (void)state;
    struct image image;
    const char *libc = "/lib/x86_64-linux-gnu/libc.so.6";
    if (image_open(&image, libc) != IMAGE_OK) skip();
    struct symbol_module module = {.path = "/nowhere/libc.so.6",
                                   .build_id = image.build_id,
                                   .build_id_bytes = image.build_id_bytes};
    char path[256];
    int length = snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%02x/", image.build_id[0]);
    for (size_t i = 1; i < image.build_id_bytes; i++)
        length += snprintf(path + length, sizeof path - (size_t)length, "%02x", image.build_id[i]);
    snprintf(path + length, sizeof path - (size_t)length, ".debug");
    if (access(path, R_OK)) {
        image_close(&image);
        skip();
    }
    char command[512];
    snprintf(command, sizeof command, "nm '%s' | grep ' T qsort$'", path);
    FILE *pipe = popen(command, "r");
    unsigned long long address = 0;
    assert_int_equal(fscanf(pipe, "%llx", &address), 1);
    pclose(pipe);
    struct symbol_query query = {.address = address + 1};
    struct symbol_report report;
    struct error error;
    assert_true(symbol_resolve(table, &module, &query, 1, &report, &error));
    assert_int_equal(report.source, SYMBOL_SOURCE_DWARF);
    assert_string_equal(report.path, path);
    assert_null(report.note);
    assert_non_null(strstr(query.frames[query.frame_count - 1].function, "qsort"));
    image_close(&image);
}

static int open_all(void **state) {
    struct error error;
    if (scratch_open(state) || !symbol_table_open(&table, NULL, NULL, &error)) return -1;
    write_source("lib.c", source);
    return 0;
}

static int close_all(void **state) {
    symbol_table_close(table);
    return scratch_close(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(debug_file_is_found_beside),
        cmocka_unit_test(debug_file_is_found_through_a_link),
        cmocka_unit_test(debug_file_of_another_build_is_refused),
        cmocka_unit_test(checksum_decides_without_build_id),
        cmocka_unit_test(symbol_tables_serve_without_debug_information),
        cmocka_unit_test(packed_symbol_table_is_read),
        cmocka_unit_test(build_id_is_checked),
        cmocka_unit_test(missing_and_strange_files_are_told),
        cmocka_unit_test(global_directory_is_searched_by_build_id),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
