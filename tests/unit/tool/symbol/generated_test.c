// SPDX-License-Identifier: Apache-2.0
// Names of generated code: from the words of a map, from a map and a dump of this very process.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/symbol/dotnet_name.h"
#include "tool/symbol/generated.h"

static struct string_pool *store;
static char map_path[64];

static int open_all(void **state) {
    (void)state;
    snprintf(map_path, sizeof map_path, "/tmp/perf-%d.map", (int)getpid());
    store = string_pool_open();
    return store ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    unlink(map_path);
    string_pool_close(store);
    return 0;
}

static const struct {
    const char *name, *function, *file;
    uint32_t line;
} rows[] = {
    {"LazyCompile:*draw /src/app.js:12:3", "draw", "/src/app.js", 12},
    {"JS:~run file:///src/app.mjs:7:1", "run", "/src/app.mjs", 7},
    {"JS:^ node:internal/timers:500:11", "(anonymous)", "node:internal/timers", 500},
    {"Function:go /a b/c.js:4:2", "go", "/a b/c.js", 4},
    {"JS:*f", "f", NULL, 0},
    {"JS:*f nowhere", "f", NULL, 0},
    {"Builtin:ArrayMap", "Builtin:ArrayMap", NULL, 0},
    {"py::load:/src/load.py", "load", "/src/load.py", 0},
    {"py::load", "load", NULL, 0},
    {"Ljava/lang/String;::hashCode", "Ljava/lang/String;::hashCode", NULL, 0},
    // of .NET
    {"void [System.Private.CoreLib] System.Threading.Monitor::Enter(object,bool&)[QuickJitted]",
     "System.Threading.Monitor.Enter", "System.Private.CoreLib", 0},
    {"class [System.Runtime]System.Text.Rune [Shop] Shop.Cart::Add(class [A.B]A.B.C)[Optimized]",
     "Shop.Cart.Add", "Shop", 0},
    {"instance void [Shop] Shop.Program+<Main>d__1::MoveNext()[OptimizedTier1OSR]",
     "Shop.Program.Main", "Shop", 0},
    {"instance bool [A.B] A.B.Paths+<>c::<Bad>b__0_0(char)", "A.B.Paths.Bad.<lambda>", "A.B", 0},
    {"instance void [A] A.Outer::<Own>b__3(char)", "A.Outer.Own.<lambda>", "A", 0},
    {"instance bool [Lib] G.List`1+Enumerator[System.__Canon]::MoveNext()[QuickJitted]",
     "G.List.Enumerator<System.__Canon>.MoveNext", "Lib", 0},
    {"void [Lib] G.Map`2[System.Byte[],System.Int32]::.ctor(!0[])",
     "G.Map<System.Byte[],System.Int32>..ctor", "Lib", 0},
    {"Interop/BOOL /* MT: 0x556d76d557d0 */ [Lib] dynamicClass::IL_STUB_PInvoke(char*)[Optimized]",
     "dynamicClass.IL_STUB_PInvoke", "Lib", 0},
    {"stub Link<InstantiatingStub>", "stub Link<InstantiatingStub>", NULL, 0},
    {"int f(int [] x) a::b(", "int f(int [] x) a::b(", NULL, 0},
    {"[x] nothing here", "[x] nothing here", NULL, 0},
    {"[x] a::b", "[x] a::b", NULL, 0},
    {"void [A] <>c::<>b__0(", "<>c.<>b__0", "A", 0},
};

static void check_text(const char *got, const char *wanted) {
    if (!wanted)
        assert_null(got);
    else
        assert_string_equal(got, wanted);
}

static void words_are_taken_apart(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct generated_code code = {0};
        assert_true(generated_read_name(&code, rows[i].name, store));
        check_text(code.function, rows[i].function);
        check_text(code.file, rows[i].file);
        assert_int_equal(code.line, rows[i].line);
    }
}

static void sources_of_dotnet_are_known(void **state) {
    (void)state;
    assert_true(dotnet_is_assembly("System.Private.CoreLib", 0));
    assert_true(dotnet_is_assembly("Shop", 0));
    static const char *const others[] = {NULL,           "",         "load.py",
                                         "/src/load.py", "<string>", "node:fs"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(dotnet_is_assembly(others[i], 0));
    assert_false(dotnet_is_assembly("a.js", 4));
    assert_true(dotnet_is_framework("System.Console") && dotnet_is_framework("mscorlib"));
    assert_false(dotnet_is_framework("Systems") || dotnet_is_framework("Shop"));
}

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static const char *find(const struct symbol_options *options, uint64_t address) {
    struct generated generated;
    assert_true(generated_open(&generated, options, store));
    const struct generated_code *code = generated_find(&generated, address);
    const char *function = code ? code->function : NULL;
    generated_close(&generated);
    return function;
}

static void the_last_word_on_an_address_counts(void **state) {
    (void)state;
    static const char map[] = "1000 100 old\nnonsense\n\n1080 10 JS:*inner a.js:1:1\n"
                              "2000 0 empty\nfffffffffffffff0 20 wraps\n1000 80 new";
    struct symbol_options options = {.generator = (uint32_t)getpid(), .generator_user = getuid()};
    write_file(map_path, map, sizeof map - 1);
    check_text(find(&options, 0x1000), "new");
    check_text(find(&options, 0x107f), "new");
    check_text(find(&options, 0x1085), "inner");
    check_text(find(&options, 0x10ff), "old");
    check_text(find(&options, 0x1100), NULL);
    check_text(find(&options, 0x2000), NULL);
    check_text(find(&options, UINT64_MAX), NULL);
    options.generator_start_ns = (uint64_t)(time(NULL) + 3600) * 1000000000u;
    check_text(find(&options, 0x1000), NULL);  // the file is older than the process
    options.generator = 0;
    check_text(find(&options, 0x1000), NULL);
    unlink(map_path);
}

struct __attribute__((packed)) load {
    uint32_t kind, bytes;
    uint64_t time;
    uint32_t pid, tid;
    uint64_t address, start, size, index;
    char name[8];
};

static void a_dump_is_read_and_may_be_cut_anywhere(void **state) {
    (void)state;
    struct __attribute__((packed)) {
        uint32_t magic, version, head_bytes, machine, pad, pid;
        uint64_t time, flags;
        struct load loads[2];
    } dump = {.magic = 0x4A695444u,
              .version = 1,
              .head_bytes = 40,
              .loads = {{.kind = 0, .bytes = sizeof(struct load), .start = 0x500, .size = 16},
                        {.kind = 3, .bytes = sizeof(struct load), .start = 0x600, .size = 16}}};
    memcpy(dump.loads[0].name, "*twice", 7);
    memcpy(dump.loads[1].name, "other", 6);
    char directory[] = "/tmp/cairn-generated-XXXXXX", path[128];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/jit-%d.dump", directory, (int)getpid());
    struct symbol_options options = {
        .generator = (uint32_t)getpid(), .generator_user = getuid(), .directory = directory};
    write_file(path, &dump, sizeof dump);
    check_text(find(&options, 0x505), "*twice");
    check_text(find(&options, 0x605), NULL);
    for (size_t cut = 0; cut < sizeof dump; cut++) {
        write_file(path, &dump, cut);
        const char *name = find(&options, 0x505);
        if (name) assert_string_equal(name, "*twice");
    }
    unlink(path);
    rmdir(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_taken_apart),
        cmocka_unit_test(sources_of_dotnet_are_known),
        cmocka_unit_test(the_last_word_on_an_address_counts),
        cmocka_unit_test(a_dump_is_read_and_may_be_cut_anywhere),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
