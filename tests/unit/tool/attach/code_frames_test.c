// SPDX-License-Identifier: Apache-2.0
// Frames of libc's functions, found from their instructions, beside those that its compiler tells.
#include "tool/attach/code_frames.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/attach/executable.h"

enum { STACK = 7, FUNCTION_MAX = 1 << 16, COMPARED_LEAST = 20000 };

struct compared {
    size_t equal, different, unknown;
};

// The CFA's distance from the stack pointer, as the compiler says; 0: otherwise said.
static int64_t told_distance(Dwarf_CFI *cfi, uint64_t address) {
    Dwarf_Frame *frame = NULL;
    Dwarf_Op *ops = NULL;
    size_t count = 0;
    int64_t distance = 0;
    if (dwarf_cfi_addrframe(cfi, address, &frame) != 0) return 0;
    bool is_plain = dwarf_frame_cfa(frame, &ops, &count) == 0 && count == 1;
    if (is_plain && ops[0].atom == DW_OP_breg0 + STACK) distance = (int64_t)ops[0].number;
    if (is_plain && ops[0].atom == DW_OP_bregx && ops[0].number == STACK)
        distance = (int64_t)ops[0].number2;
    free(frame);
    return distance;
}

static void compare_function(Elf *elf, Dwarf_CFI *cfi, const GElf_Sym *symbol,
                             struct compared *compared) {
    struct code_function function;
    if (symbol->st_size == 0 || symbol->st_size > FUNCTION_MAX ||
        !executable_code(elf, 0, symbol->st_value, symbol->st_size, &function))
        return;
    struct code_frame *frames = calloc(function.size, sizeof *frames);
    assert_non_null(frames);
    bool is_found = code_frames_find(&function, frames);
    compared->unknown += !is_found;
    for (size_t at = 0; is_found && at < function.size; at++) {
        int64_t told = frames[at].is_known ? told_distance(cfi, symbol->st_value + at) : 0;
        if (!told || frames[at].is_by_frame_pointer) continue;
        bool is_equal = told == frames[at].distance;
        compared->equal += is_equal;
        compared->different += !is_equal;
        if (!is_equal && getenv("CAIRN_VERBOSE"))
            print_message("0x%lx+%zu: %d, told %ld\n", symbol->st_value, at, frames[at].distance,
                          told);
    }
    free(frames);
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *path) {
    (void)size;
    if (!strstr(info->dlpi_name, "libc.so")) return 0;
    snprintf(path, PATH_MAX, "%s", info->dlpi_name);
    return 1;
}

// Compares what is found from the instructions of libc's functions with what the compiler says.
static void test_like_the_compiler(void **state) {
    char path[PATH_MAX] = "";
    struct compared compared = {0};
    (void)state;
#if !defined(__x86_64__)
    skip();
#endif
    assert_int_equal(dl_iterate_phdr(find_libc, path), 1);
    elf_version(EV_CURRENT);
    int file = open(path, O_RDONLY);
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
    assert_non_null(cfi);
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        GElf_Shdr about;
        GElf_Sym symbol;
        assert_non_null(gelf_getshdr(section, &about));
        if (about.sh_type != SHT_DYNSYM) continue;
        Elf_Data *data = elf_getdata(section, NULL);
        for (int i = 0; gelf_getsym(data, i, &symbol); i++)
            if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
                compare_function(elf, cfi, &symbol, &compared);
    }
    print_message("%zu equal, %zu different, %zu functions not followed\n", compared.equal,
                  compared.different, compared.unknown);
    assert_true(compared.equal > COMPARED_LEAST);
    assert_int_equal(compared.different, 0);
    dwarf_cfi_end(cfi);
    elf_end(elf);
    close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_like_the_compiler)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
