// SPDX-License-Identifier: Apache-2.0
// Frames of known addresses in programs of both compilers, with and without optimisation, in
// each form that debug information comes in.
#include "tests/unit/tool/symbol/programs.h"

#include "tool/symbol/symbol.h"

static const char c_source[] =
    "static volatile int sink;\n"
    "static inline __attribute__((always_inline)) void innermost(int x) {\n"
    "    sink = x;\n"
    "    __asm__ volatile(\".globl mark_inner\\nmark_inner:\\n nop\");\n"
    "}\n"
    "static inline __attribute__((always_inline)) void middle(int x) {\n"
    "    sink += 2;\n"
    "    innermost(x + 1);  // call in middle\n"
    "}\n"
    "__attribute__((noinline)) void outer(int x) {\n"
    "    sink = 3;\n"
    "    middle(x);  // call in outer\n"
    "    sink = 4;\n"
    "}\n"
    "__attribute__((noinline)) static void plain(int x) {\n"
    "    sink = x;\n"
    "    __asm__ volatile(\".globl mark_plain\\nmark_plain:\\n nop\");\n"
    "}\n"
    "int main(int argc, char **argv) {\n"
    "    (void)argv;\n"
    "    outer(argc);\n"
    "    plain(argc);\n"
    "    return sink;\n"
    "}\n";

static const char cxx_source[] =
    "#include <vector>\n"
    "static volatile int sink;\n"
    "#define MARK(name) __asm__ volatile(\".globl \" name \"\\n\" name \":\\n nop\")\n"
    "namespace shop { namespace {\n"
    "template <class T> struct Shelf {\n"
    "    __attribute__((always_inline)) void put(T x) {\n"
    "        sink = x;\n"
    "        MARK(\"mark_put\");\n"
    "    }\n"
    "};\n"
    "struct Clerk {\n"
    "    std::vector<int> seen;\n"
    "    __attribute__((noinline)) void work(int x) {\n"
    "        Shelf<int> shelf;\n"
    "        shelf.put(x);  // call in work\n"
    "    }\n"
    "};\n"
    "__attribute__((noinline)) void take(const std::vector<int> &v) {\n"
    "    sink = (int)v.size();\n"
    "    MARK(\"mark_take\");\n"
    "}\n"
    "} }\n"
    "int main(int argc, char **) {\n"
    "    shop::Clerk clerk;\n"
    "    clerk.work(argc);\n"
    "    struct Local {\n"
    "        __attribute__((noinline)) static void go(int x) {\n"
    "            sink = x;\n"
    "            MARK(\"mark_local\");\n"
    "        }\n"
    "    };\n"
    "    Local::go(argc);\n"
    "    auto later = [&](int x) __attribute__((noinline)) {\n"
    "        sink = x;\n"
    "        MARK(\"mark_lambda\");\n"
    "    };\n"
    "    later(argc);\n"
    "    shop::take(clerk.seen);\n"
    "    return sink;\n"
    "}\n";

struct expected {
    const char *function;
    const char *place;  // text on the frame's line
};

static struct symbol_table *table;

static struct symbol_report resolve(const char *program, struct symbol_query *queries,
                                    size_t count) {
    struct symbol_module module = {.path = in_scratch(program)};
    struct symbol_report report;
    struct error error;
    assert_true(symbol_resolve(table, &module, queries, count, &report, &error));
    return report;
}

static void check_frames(const struct symbol_query *query, const char *source_name,
                         const char *source, const struct expected *expected, size_t count) {
    assert_int_equal(query->frame_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct symbol_frame *frame = &query->frames[i];
        assert_string_equal(frame->function, expected[i].function);
        assert_string_equal(frame->file, in_scratch(source_name));
        assert_int_equal(frame->line, line_of(source, expected[i].place));
        assert_int_equal(frame->is_inlined, i + 1 < count);
    }
}

static void check_c(const char *program) {
    struct symbol_query queries[] = {{.address = address_of(program, "mark_plain")},
                                     {.address = address_of(program, "mark_inner")}};
    struct symbol_report report = resolve(program, queries, 2);
    assert_int_equal(report.source, SYMBOL_SOURCE_DWARF);
    assert_int_equal(report.resolved_count, 2);
    check_frames(&queries[0], "program.c", c_source, (struct expected[]){{"plain", "mark_plain"}},
                 1);
    check_frames(&queries[1], "program.c", c_source,
                 (struct expected[]){{"innermost", "mark_inner"},
                                     {"middle", "call in middle"},
                                     {"outer", "call in outer"}},
                 3);
}

static void check_cxx(const char *program) {
    struct symbol_query queries[] = {{.address = address_of(program, "mark_put")},
                                     {.address = address_of(program, "mark_take")},
                                     {.address = address_of(program, "mark_local")},
                                     {.address = address_of(program, "mark_lambda")}};
    struct symbol_report report = resolve(program, queries, 4);
    assert_int_equal(report.source, SYMBOL_SOURCE_DWARF);
    check_frames(&queries[0], "program.cc", cxx_source,
                 (struct expected[]){{"shop::(anon)::Shelf<int>::put", "\"mark_put"},
                                     {"shop::(anon)::Clerk::work", "call in work"}},
                 2);
    check_frames(&queries[1], "program.cc", cxx_source,
                 (struct expected[]){{"shop::(anon)::take", "\"mark_take"}}, 1);
    assert_int_equal(queries[2].frame_count, 1);
    assert_non_null(strstr(queries[2].frames[0].function, "::go"));
    assert_int_equal(queries[2].frames[0].line, line_of(cxx_source, "\"mark_local"));
    assert_int_equal(queries[3].frame_count, 1);
    char place[64];
    snprintf(place, sizeof place, "main::{lambda program.cc:%u}",
             line_of(cxx_source, "auto later"));
    assert_string_equal(queries[3].frames[0].function, place);
    assert_int_equal(queries[3].frames[0].line, line_of(cxx_source, "\"mark_lambda"));
}

static const char *const option_sets[] = {
    "-O0 -gdwarf-5",
    "-O2 -gdwarf-5",
    "-O0 -gdwarf-4",
    "-O2 -gdwarf-4",
    "-O2 -gdwarf-3",
    "-O2 -g -gz",
    "-O2 -gdwarf-4 -gz=zlib-gnu",
    "-O2 -g -Wl,--compress-debug-sections=zstd",
    "-O2 -g -flto -fuse-linker-plugin",
    "-O2 -g -ffunction-sections -Wl,--gc-sections",
    "-O2 -g -no-pie",
    "-O2 -g -static",
};

// Every set of options in `make check-long`, else every fourth one from `first` on, so that each is
// tried with C or with C++ of one compiler; those that a compiler does not know are left out, not
// all may be.
static void check_compiler(const char *compiler, const char *source, size_t first,
                           void (*check)(const char *)) {
    if (!has_command(compiler)) skip();
    bool is_long = getenv("CAIRN_LONG") != NULL;
    size_t checked = 0;
    for (size_t i = is_long ? 0 : first; i < sizeof option_sets / sizeof option_sets[0];
         i += is_long ? 1 : 4) {
        if (!run("%s %s -o program '%s/%s'", compiler, option_sets[i], scratch, source)) continue;
        check("program");
        checked++;
    }
    assert_in_range(checked, is_long ? 5 : 2, sizeof option_sets / sizeof option_sets[0]);
}

static void c_by_gcc(void **state) {
    (void)state;
    check_compiler("gcc", "program.c", 0, check_c);
}

static void c_by_clang(void **state) {
    (void)state;
    check_compiler("clang", "program.c", 1, check_c);
}

static void cxx_by_gcc(void **state) {
    (void)state;
    check_compiler("g++", "program.cc", 2, check_cxx);
}

static void cxx_by_clang(void **state) {
    (void)state;
    check_compiler("clang++", "program.cc", 3, check_cxx);
}

// A source given by a relative name gets the compile directory in front.
static void relative_source_becomes_absolute(void **state) {
    (void)state;
    assert_true(run("gcc -gdwarf-4 -o four program.c && gcc -gdwarf-5 -o five program.c"));
    check_c("four");
    check_c("five");
}

// Duplicates, any order, addresses before, between and behind functions.
static void order_and_duplicates_do_not_matter(void **state) {
    (void)state;
    assert_true(run("gcc -O2 -g -o program '%s/program.c'", scratch));
    uint64_t inner = address_of("program", "mark_inner");
    uint64_t plain = address_of("program", "mark_plain");
    struct symbol_query queries[] = {
        {.address = inner}, {.address = UINT64_MAX}, {.address = plain}, {.address = 0},
        {.address = inner}, {.address = 1},          {.address = plain}, {.address = 1ull << 40}};
    struct symbol_report report = resolve("program", queries, 8);
    assert_int_equal(report.resolved_count, 4);
    for (size_t i = 1; i < 8; i += 2) {
        assert_null(queries[i].frames);
        assert_int_equal(queries[i].frame_count, 0);
    }
    assert_ptr_equal(queries[0].frames[2].function, queries[4].frames[2].function);
    assert_ptr_equal(queries[2].frames[0].file, queries[6].frames[0].file);
    assert_string_equal(queries[2].frames[0].function, "plain");
    assert_int_equal(resolve("program", NULL, 0).resolved_count, 0);
}

static void shared_debug_information_is_followed(void **state) {
    (void)state;
    if (!has_command("dwz")) skip();
    assert_true(run("g++ -O2 -g -o one '%s/program.cc' && g++ -O0 -g -o two '%s/program.cc' && "
                    "dwz -m common.debug one two",
                    scratch, scratch));
    check_cxx("one");
    check_cxx("two");
    assert_true(run("mv common.debug elsewhere"));
    struct symbol_query query = {.address = address_of("one", "mark_put")};
    struct symbol_report report = resolve("one", &query, 1);
    assert_int_equal(query.frame_count, 2);
    assert_non_null(report.note);
}

static void split_debug_information_is_followed(void **state) {
    (void)state;
    for (int version = 4; version <= 5; version++) {
        assert_true(
            run("gcc -O2 -gdwarf-%d -gsplit-dwarf -o split '%s/program.c'", version, scratch));
        check_c("split");
        assert_true(
            run("g++ -O2 -gdwarf-%d -gsplit-dwarf -o split '%s/program.cc'", version, scratch));
        check_cxx("split");
    }
    if (!has_command("clang++")) return;
    for (int version = 4; version <= 5; version++) {  // inside of the object files
        const char *form = "-O2 -gsplit-dwarf=single -c -gdwarf";
        assert_true(
            run("clang %s-%d '%s/program.c' && clang -o single program.o", form, version, scratch));
        check_c("single");
        assert_true(run("clang++ %s-%d '%s/program.cc' && clang++ -o single program.o", form,
                        version, scratch));
        check_cxx("single");
    }
}

// Split off, then packed; gone are the .dwo files.
static void check_packed(const char *c, const char *cxx, int version, const char *packer) {
    assert_true(run("%s -O2 -gdwarf-%d -gsplit-dwarf -o packed '%s/program.c' && "
                    "timeout 60 %s -e packed -o packed.dwp && rm -f *.dwo",
                    c, version, scratch, packer));
    check_c("packed");
    assert_true(
        run("%s -O2 -gdwarf-%d -gsplit-dwarf -c '%s/program.cc' && %s -o packed program.o && "
            "timeout 60 %s -e packed -o packed.dwp && rm -f *.dwo",
            cxx, version, scratch, cxx, packer));
    check_cxx("packed");
    assert_true(run("mkdir -p packages && mv packed.dwp packages"));
    struct symbol_query query = {.address = address_of("packed", "mark_put")};
    struct symbol_report report = resolve("packed", &query, 1);
    assert_int_equal(query.frame_count, 1);
    assert_non_null(report.note);
}

// Debian 12's packers: binutils' knows DWARF 4, LLVM's DWARF 5 of clang too.
static void packages_of_split_debug_information_are_read(void **state) {
    (void)state;
    bool has_gnu = has_command("dwp"), has_llvm = has_command("llvm-dwp"),
         has_clang = has_command("clang++");
    if (!has_gnu && !has_llvm) skip();
    if (has_gnu) check_packed("gcc", "g++", 4, "dwp");
    if (has_llvm) check_packed("gcc", "g++", 4, "llvm-dwp");
    if (has_llvm && has_clang) check_packed("clang", "clang++", 5, "llvm-dwp");
}

static int open_all(void **state) {
    struct error error;
    if (scratch_open(state) || !symbol_table_open(&table, NULL, NULL, &error)) return -1;
    write_source("program.c", c_source);
    write_source("program.cc", cxx_source);
    return 0;
}

static int close_all(void **state) {
    symbol_table_close(table);
    return scratch_close(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c_by_gcc),
        cmocka_unit_test(c_by_clang),
        cmocka_unit_test(cxx_by_gcc),
        cmocka_unit_test(cxx_by_clang),
        cmocka_unit_test(relative_source_becomes_absolute),
        cmocka_unit_test(order_and_duplicates_do_not_matter),
        cmocka_unit_test(shared_debug_information_is_followed),
        cmocka_unit_test(split_debug_information_is_followed),
        cmocka_unit_test(packages_of_split_debug_information_are_read),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
