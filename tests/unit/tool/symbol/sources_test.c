// SPDX-License-Identifier: Apache-2.0
// Where names are looked for besides the recorded path, and names that are kept: in the cache, in
// a recording.
#include "tests/unit/tool/symbol/programs.h"

#include <sys/stat.h>

#include "tool/symbol/bundle.h"
#include "tool/symbol/cache.h"
#include "tool/symbol/image.h"
#include "tool/symbol/symbol.h"

static const char source[] = "volatile int sink;\n"
                             "static inline __attribute__((always_inline)) void inside(int x) {\n"
                             "    sink = x;\n"
                             "    __asm__ volatile(\".globl mark\\nmark: nop\");\n"
                             "}\n"
                             "__attribute__((noinline)) void around(int x) {\n"
                             "    inside(x);  // call\n"
                             "    sink = 2;\n"
                             "}\n";

static uint8_t build_id[IMAGE_BUILD_ID_MAX];
static size_t build_id_bytes;
static uint64_t address;

// "lib.so" without anything but exported names, and its debug file where the build-id says.
static void build(void) {
    struct image image;
    assert_true(run("gcc -O1 -g -fPIC -shared -o lib.so lib.c"));
    address = address_of("lib.so", "mark");
    assert_int_equal(image_open(&image, in_scratch("lib.so")), IMAGE_OK);
    memcpy(build_id, image.build_id, sizeof build_id);
    build_id_bytes = image.build_id_bytes;
    image_close(&image);
    assert_true(run("objcopy --only-keep-debug lib.so lib.debug && strip lib.so && "
                    "objcopy --add-gnu-debuglink=lib.debug lib.so && rm -rf keep && mkdir keep && "
                    "mv lib.debug keep"));
}

static struct symbol_module module_called(const char *path) {
    return (struct symbol_module){
        .path = path, .build_id = build_id, .build_id_bytes = build_id_bytes};
}

// Resolves the mark with these options; the table is closed again.
static struct symbol_report resolve(struct symbol_module module,
                                    const struct symbol_options *options, const struct bundle *kept,
                                    size_t frame_count) {
    struct symbol_table *table;
    struct symbol_report report;
    struct symbol_query query = {.address = address};
    struct error error;
    assert_true(symbol_table_open(&table, options, kept, &error));
    assert_true(symbol_resolve(table, &module, &query, 1, &report, &error));
    assert_int_equal(query.frame_count, frame_count);
    if (frame_count == 2) {
        assert_string_equal(query.frames[0].function, "inside");
        assert_string_equal(query.frames[1].function, "around");
        assert_int_equal(query.frames[1].line, line_of(source, "// call"));
        assert_true(query.frames[0].is_inlined);
    }
    report.path = report.note = NULL;  // gone with the table
    symbol_table_close(table);
    return report;
}

static void by_build_id(char *name, size_t size) {
    int length = snprintf(name, size, ".build-id/%02x/", build_id[0]);
    for (size_t i = 1; i < build_id_bytes; i++)
        length += snprintf(name + length, size - (size_t)length, "%02x", build_id[i]);
    snprintf(name + length, size - (size_t)length, ".debug");
}

static void debug_directories_are_searched(void **state) {
    (void)state;
    build();
    char name[256];
    by_build_id(name, sizeof name);
    const char *directories[] = {in_scratch("empty"), in_scratch("keep")};
    const struct symbol_options options = {.debug_dirs = directories, .debug_dir_count = 2};
    struct symbol_module module = module_called(in_scratch("lib.so"));
    assert_int_equal(resolve(module, NULL, NULL, 1).source, SYMBOL_SOURCE_DYNSYM);
    assert_int_equal(resolve(module, &options, NULL, 2).source, SYMBOL_SOURCE_DWARF);
    assert_true(
        run("mkdir -p keep/.build-id/%02x && mv keep/lib.debug 'keep/%s'", build_id[0], name));
    assert_int_equal(resolve(module, &options, NULL, 2).source, SYMBOL_SOURCE_DWARF);
    // even if the file itself is gone
    assert_int_equal(resolve(module_called("/nowhere/lib.so"), &options, NULL, 2).source,
                     SYMBOL_SOURCE_DWARF);
}

static void files_of_another_tree_are_found(void **state) {
    (void)state;
    build();
    assert_true(run("rm -rf root && mkdir -p root/opt/app root/usr/lib/debug/opt/app && "
                    "mv lib.so root/opt/app && mv keep/lib.debug root/opt/app"));
    const struct symbol_options options = {.sysroot = in_scratch("root")};
    struct symbol_module module = module_called("/opt/app/lib.so");
    assert_int_equal(resolve(module, NULL, NULL, 0).source, SYMBOL_SOURCE_NONE);
    assert_int_equal(resolve(module, &options, NULL, 2).source, SYMBOL_SOURCE_DWARF);
    module.build_id_bytes = 0;  // nothing to check by: the tree is believed
    assert_int_equal(resolve(module, &options, NULL, 2).source, SYMBOL_SOURCE_DWARF);
    uint8_t other[sizeof build_id] = {1};
    module = (struct symbol_module){
        .path = "/opt/app/lib.so", .build_id = other, .build_id_bytes = build_id_bytes};
    assert_int_equal(resolve(module, &options, NULL, 0).source, SYMBOL_SOURCE_NONE);
}

// What was resolved, as a recording would keep it.
static void make_bundle(struct symbol_module module, void **bytes, size_t *size) {
    static struct symbol_frame frames[] = {
        {.linkage = "inside", .file = "/lib.c", .line = 3, .is_inlined = true},
        {.linkage = "around", .file = "/lib.c", .line = 7}};
    static struct symbol_query queries[3];
    queries[0] = (struct symbol_query){.address = 1};
    queries[1] = (struct symbol_query){.address = address, .frames = frames, .frame_count = 2};
    queries[2] = (struct symbol_query){.address = UINT64_MAX, .frames = frames, .frame_count = 1};
    for (size_t i = 0; i < 3; i++) queries[i].is_known = true;
    const struct bundle_part parts[] = {
        {.module = {.path = "/other"}, .queries = queries, .count = 1},
        {.module = module, .source = SYMBOL_SOURCE_DWARF, .queries = queries, .count = 3}};
    assert_true(bundle_make(parts, 2, bytes, size));
}

static void kept_names_need_no_file(void **state) {
    (void)state;
    build();
    void *bytes;
    size_t size;
    struct bundle bundle;
    make_bundle(module_called("/gone/lib.so"), &bytes, &size);
    assert_true(bundle_open(&bundle, bytes, size));
    struct symbol_report report = resolve(module_called("/moved/lib.so"), NULL, &bundle, 2);
    assert_int_equal(report.source, SYMBOL_SOURCE_DWARF);
    assert_int_equal(report.origin, SYMBOL_ORIGIN_RECORDING);
    assert_int_equal(report.resolved_count, 1);
    const struct symbol_options anew = {.is_anew = true};
    resolve(module_called("/moved/lib.so"), &anew, &bundle, 0);
    free(bytes);
}

// Every byte changed and every length cut: an error or something that can be asked.
static void damaged_bundles_do_no_harm(void **state) {
    (void)state;
    build();
    void *bytes;
    size_t size;
    make_bundle(module_called("/lib.so"), &bytes, &size);
    uint8_t *copy = malloc(size);
    struct bundle bundle;
    for (size_t cut = 0; cut < size; cut++) assert_false(bundle_open(&bundle, bytes, cut));
    for (size_t i = 0; i < size * 3; i++) {
        static const uint8_t masks[] = {0xff, 0x80, 0x01};
        memcpy(copy, bytes, size);
        copy[i / 3] ^= masks[i % 3];
        if (!bundle_open(&bundle, copy, size)) continue;
        struct symbol_table *table;
        struct symbol_query queries[] = {{.address = address}, {.address = 1}};
        struct symbol_module module = module_called("/lib.so");
        struct error error;
        assert_true(symbol_table_open(&table, NULL, &bundle, &error));
        assert_true(symbol_resolve(table, &module, queries, 2, NULL, &error));
        symbol_table_close(table);
    }
    free(copy);
    free(bytes);
}

static void the_cache_answers_and_stays_small(void **state) {
    (void)state;
    build();
    const char *directory = in_scratch("some/cache");
    char kept_directory[512];
    snprintf(kept_directory, sizeof kept_directory, "%s", directory);
    const struct symbol_options options = {.cache_dir = kept_directory};
    struct symbol_module module = module_called("/gone/lib.so");
    void *bytes;
    size_t size;
    struct bundle bundle;
    struct cairn_symbols_module entry;
    make_bundle(module, &bytes, &size);
    assert_true(bundle_open(&bundle, bytes, size) && bundle_find_module(&bundle, &module, &entry));
    struct symbol_frame frames[] = {bundle_frame(&bundle, &(struct cairn_symbol){0, 0, 2}, 0),
                                    bundle_frame(&bundle, &(struct cairn_symbol){0, 0, 2}, 1)};
    struct symbol_query query = {
        .address = address, .frames = frames, .frame_count = 2, .is_known = true};
    struct bundle_part part = {
        .module = module, .source = SYMBOL_SOURCE_DWARF, .queries = &query, .count = 1};
    cache_save(kept_directory, &part, CACHE_BYTES_MAX);
    assert_int_equal(resolve(module, &options, NULL, 2).origin, SYMBOL_ORIGIN_CACHE);
    // names without lines count only as long as the files are the same
    part.source = SYMBOL_SOURCE_SYMTAB;
    cache_save(kept_directory, &part, CACHE_BYTES_MAX);
    resolve(module, &options, NULL, 0);
    part.module.build_id = (const uint8_t *)"another build-id....";
    part.module.build_id_bytes = 20;
    cache_save(kept_directory, &part, 1);
    assert_true(run("test $(ls some/cache | wc -l) = 0"));
    cache_save(kept_directory, &part, CACHE_BYTES_MAX);
    assert_true(run(
        "test $(ls some/cache | wc -l) = 1 && for f in some/cache/*; do printf x >\"$f\"; done"));
    struct cached cached;
    assert_false(cache_load(kept_directory, &part.module, &cached));
    free(bytes);
}

static int open_all(void **state) {
    if (scratch_open(state)) return -1;
    write_source("lib.c", source);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(debug_directories_are_searched),
        cmocka_unit_test(files_of_another_tree_are_found),
        cmocka_unit_test(kept_names_need_no_file),
        cmocka_unit_test(damaged_bundles_do_no_harm),
        cmocka_unit_test(the_cache_answers_and_stays_small),
    };
    return cmocka_run_group_tests(tests, open_all, scratch_close);
}
