// SPDX-License-Identifier: Apache-2.0
// The modules of a process read from its memory, against what its own dynamic linker says: this
// process is the one that is looked at.
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/attach/memory_image.h"
#include "tool/attach/modules.h"
#include "tool/proc/mapped_file.h"

static struct remote remote;
static struct loaded_modules modules;

static int set_up(void **state) {
    struct error error;
    (void)state;
    return !remote_open(&remote, getpid(), &error) || !modules_read(&modules, &remote, &error);
}

static int tear_down(void **state) {
    (void)state;
    modules_free(&modules);
    remote_close(&remote);
    return 0;
}

static struct loaded_module *module_at(uint64_t bias) {
    for (size_t i = 0; i < modules.items.count; i++)
        if (modules.items.items[i].bias == bias) return &modules.items.items[i];
    return NULL;
}

struct seen {
    size_t count, found;
};

static int see(struct dl_phdr_info *info, size_t size, void *argument) {
    struct seen *seen = argument;
    const struct loaded_module *module = module_at(info->dlpi_addr);
    uint64_t end = 0;
    (void)size;
    seen->count++;
    if (!module) return 0;
    seen->found++;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    assert_int_equal(module->end, end);
    return 0;
}

static void test_all_modules(void **state) {
    struct seen seen = {0};
    (void)state;
    dl_iterate_phdr(see, &seen);
    assert_int_equal(seen.found, seen.count);
    assert_int_equal(modules.items.count, seen.count);
    assert_string_equal(modules.items.items[0].name, "");
}

static void test_symbols(void **state) {
    static const char *const names[] = {"getppid", "strtol", "qsort", "dlopen", "environ"};
    (void)state;
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(libc);
    struct link_map *map = libc;
    struct loaded_module module;
    assert_true(module_read_at(&module, &remote, (uint64_t)(uintptr_t)map));
    assert_non_null(strstr(module.name, "libc.so.6"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(module_symbol(&module, &remote, names[i]),
                         (uint64_t)(uintptr_t)dlsym(libc, names[i]));
    assert_int_equal(module_symbol(&module, &remote, "there_is_none"), 0);
    module_free(&module);
}

static void test_fingerprint(void **state) {
    (void)state;
    uint64_t before = modules_fingerprint(&modules, &remote);
    assert_int_equal(before, modules.fingerprint);
    void *library = dlopen("libBrokenLocale.so.1", RTLD_NOW);
    if (!library) library = dlopen("libutil.so.1", RTLD_NOW);
    if (!library) skip();
    assert_int_not_equal(modules_fingerprint(&modules, &remote), before);
    dlclose(library);
    assert_int_equal(modules_fingerprint(&modules, &remote), before);
}

// Another namespace has the same libraries once more; they are told apart.
static void test_namespaces(void **state) {
    struct loaded_modules now;
    struct error error;
    size_t elsewhere = 0;
    (void)state;
    void *handle = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    if (!handle) skip();
    assert_true(modules_read(&now, &remote, &error));
    for (size_t i = 0; i < now.items.count; i++) elsewhere += now.items.items[i].namespace == 1;
    modules_free(&now);
    dlclose(handle);
    assert_true(elsewhere >= 1);
}

static uint64_t symbol_of(Dwfl_Module *module, const char *wanted) {
    for (int i = dwfl_module_getsymtab(module); i-- > 0;) {
        GElf_Sym symbol;
        GElf_Addr value;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &value, NULL, NULL, NULL);
        if (name && !strcmp(name, wanted)) return value;
    }
    return 0;
}

static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                             const char *file, const char *link, GElf_Word crc, char **found) {
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc;
    (void)found;
    return -1;
}

// libc out of memory alone, as if its file were gone: names and unwind information are there.
static void test_image_of_memory(void **state) {
    const Dwfl_Callbacks callbacks = {.section_address = dwfl_offline_section_address,
                                      .find_debuginfo = find_no_debuginfo};
    (void)state;
    struct link_map *map = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(map);
    int file = memory_image_open(&remote, map->l_addr);
    assert_true(file >= 0);
    Dwfl *dwfl = dwfl_begin(&callbacks);
    dwfl_report_begin(dwfl);
    Dwfl_Module *module = dwfl_report_elf(dwfl, "libc", "libc.so.6", file, map->l_addr, false);
    dwfl_report_end(dwfl, NULL, NULL);
    assert_non_null(module);
    GElf_Addr bias;
    assert_non_null(dwfl_module_eh_cfi(module, &bias));
    assert_int_equal(symbol_of(module, "getppid"), (uintptr_t)dlsym(map, "getppid"));
    dwfl_end(dwfl);
    dlclose(map);
    assert_int_equal(memory_image_open(&remote, (uintptr_t)&callbacks), -1);
}

static void test_mapped_file(void **state) {
    struct stat own, found;
    (void)state;
    int file = mapped_file_open(getpid(), (uintptr_t)test_mapped_file);
    assert_true(file >= 0 && !fstat(file, &found) && !stat("/proc/self/exe", &own));
    assert_int_equal(found.st_ino, own.st_ino);
    close(file);
    assert_int_equal(mapped_file_open(getpid(), (uintptr_t)&own), -1);
}

// Whatever lies where a link map should be, nothing is read outside.
static void test_nonsense(void **state) {
    struct loaded_module module;
    uint8_t bytes[sizeof(struct link_map)];
    (void)state;
    memset(bytes, 0x5a, sizeof bytes);
    assert_false(module_read_at(&module, &remote, 16));
    assert_true(module_read_at(&module, &remote, (uint64_t)(uintptr_t)bytes));
    assert_int_equal(module_symbol(&module, &remote, "malloc"), 0);
    assert_string_equal(module.name, "");
    assert_int_equal(module.end, 0);
    module_free(&module);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_modules), cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_fingerprint), cmocka_unit_test(test_namespaces),
        cmocka_unit_test(test_nonsense),    cmocka_unit_test(test_image_of_memory),
        cmocka_unit_test(test_mapped_file),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
