// SPDX-License-Identifier: Apache-2.0
// Every row of the unwind tables of real programs and libraries, compared with elfutils' reading
// of the same file. Paths given as arguments are compared instead.
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "runtime/unwind/eh_frame.h"
#include "tests/unit/runtime/unwind/image.h"

enum { OPERATIONS = 64, PROBES = 3 };

struct tally {
    uint64_t functions, rows, holes, expressions, differences;
};

struct oracle {
    struct image image;
    Elf *elf;
    Dwarf_CFI *cfi;
    int file;
    struct tally tally;
};

// Registers and stack memory for the evaluation of expressions on both sides.
struct machine_state {
    struct row_registers registers;
    uintptr_t cfa;
};

static uintptr_t memory[256];

static bool oracle_open(struct oracle *oracle, const char *path) {
    *oracle = (struct oracle){0};
    if (!image_load(&oracle->image, path)) return false;
    elf_version(EV_CURRENT);
    oracle->file = open(path, O_RDONLY);
    oracle->elf = elf_begin(oracle->file, ELF_C_READ_MMAP, NULL);
    oracle->cfi = dwarf_getcfi_elf(oracle->elf);
    return oracle->cfi != NULL;
}

static void oracle_close(struct oracle *oracle) {
    dwarf_cfi_end(oracle->cfi);
    elf_end(oracle->elf);
    close(oracle->file);
    image_free(&oracle->image);
}

static bool register_value(const struct machine_state *state, uint64_t number, uint64_t *value) {
    if (number == 6) *value = state->registers.frame;
    if (number == 7) *value = state->registers.stack;
    if (number == 16) *value = state->registers.pc;
    return number == 6 || number == 7 || number == 16;
}

// Operations that push one value. False: not one of these.
static bool operation_push(const Dwarf_Op *op, const struct machine_state *state, uint64_t *value) {
    uint64_t base = 0;
    if (op->atom == DW_OP_call_frame_cfa) {
        *value = state->cfa;
        return true;
    }
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
        *value = op->atom - (uint64_t)DW_OP_lit0;
        return true;
    }
    bool is_extended = op->atom == DW_OP_bregx;
    if (!is_extended && (op->atom < DW_OP_breg0 || op->atom > DW_OP_breg31)) return false;
    uint64_t number = is_extended ? op->number : op->atom - (uint64_t)DW_OP_breg0;
    if (!register_value(state, number, &base)) return false;
    *value = base + (is_extended ? op->number2 : op->number);
    return true;
}

static bool operation_binary(const Dwarf_Op *op, uint64_t *left, uint64_t right) {
    switch (op->atom) {
    case DW_OP_plus:
        *left += right;
        return true;
    case DW_OP_and:
        *left &= right;
        return true;
    case DW_OP_shl:
        *left <<= right;
        return true;
    case DW_OP_ge:
        *left = (int64_t)*left >= (int64_t)right;
        return true;
    }
    return false;
}

// Evaluates what elfutils decoded; only what occurs in unwind tables. False: something else.
static bool operations_evaluate(const Dwarf_Op *ops, size_t count,
                                const struct machine_state *state, uint64_t *result) {
    uint64_t stack[OPERATIONS];
    size_t depth = 0;
    for (size_t i = 0; i < count; i++) {
        if (depth == OPERATIONS) return false;
        if (operation_push(&ops[i], state, &stack[depth])) {
            depth++;
        } else if (ops[i].atom == DW_OP_deref && depth) {
            memcpy(&stack[depth - 1], (const void *)stack[depth - 1], 8);
        } else if (ops[i].atom == DW_OP_plus_uconst && depth) {
            stack[depth - 1] += ops[i].number;
        } else {
            if (depth < 2 || !operation_binary(&ops[i], &stack[depth - 2], stack[depth - 1]))
                return false;
            depth--;
        }
    }
    if (depth) *result = stack[depth - 1];
    return depth > 0;
}

static struct machine_state state_at(uint64_t pc, unsigned probe) {
    struct machine_state state = {{.pc = pc + probe, .is_frame_known = true}, 0};
    state.registers.stack = (uintptr_t)&memory[64 + 3 * probe];
    state.registers.frame = (uintptr_t)&memory[128 + 5 * probe];
    state.cfa = (uintptr_t)&memory[96 + 7 * probe];
    return state;
}

static bool is_expression_equal(struct oracle *oracle, const struct row_expression *mine,
                                const Dwarf_Op *ops, size_t count, uint64_t pc, bool has_initial) {
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct machine_state state = state_at(pc, probe);
        uint64_t expected = 0;
        uintptr_t got = 0;
        bool is_expected = operations_evaluate(ops, count, &state, &expected);
        bool is_got = row_evaluate(mine, &state.registers, has_initial ? state.cfa : 0, &got);
        if (is_expected != is_got || (is_got && got != expected)) return false;
    }
    oracle->tally.expressions++;
    return true;
}

static bool is_cfa_equal(struct oracle *oracle, const struct row *row, Dwarf_Frame *frame,
                         uint64_t pc) {
    Dwarf_Op *ops;
    size_t count;
    if (dwarf_frame_cfa(frame, &ops, &count) != 0) return false;
    bool is_register = count == 1 && ops[0].atom == DW_OP_bregx;
    if (row->is_cfa_expression)
        return is_expression_equal(oracle, &row->cfa_expression, ops, count, pc, false);
    return is_register && ops[0].number == row->cfa_register &&
           (int64_t)ops[0].number2 == row->cfa_offset;
}

static bool is_rule_equal(struct oracle *oracle, const struct row_register *mine,
                          Dwarf_Frame *frame, int number, uint64_t pc) {
    Dwarf_Op space[3], *ops;
    size_t count;
    if (dwarf_frame_register(frame, number, space, &ops, &count) != 0) return false;
    if (!ops) return mine->how == ROW_SAME;
    if (count == 0) return mine->how == ROW_UNDEFINED;
    bool is_value = ops[count - 1].atom == DW_OP_stack_value;
    if (is_value || ops[0].atom != DW_OP_call_frame_cfa) return mine->how == ROW_UNSUPPORTED;
    bool is_offset = count == 1 || (count == 2 && ops[1].atom == DW_OP_plus_uconst);
    if (mine->how == ROW_AT_CFA)
        return is_offset && mine->offset == (count == 1 ? 0 : (int64_t)ops[1].number);
    return mine->how == ROW_AT_EXPRESSION &&
           is_expression_equal(oracle, &mine->expression, ops, count, pc, true);
}

static bool is_row_equal(struct oracle *oracle, uint64_t address, Dwarf_Frame *frame) {
    struct row row;
    bool is_signal = false;
    Dwarf_Addr start, end;
    uint64_t pc = (uintptr_t)oracle->image.memory + address;
    if (!row_find(&oracle->image.source, pc, &row)) return false;
    int ret = dwarf_frame_info(frame, &start, &end, &is_signal);
    return ret == 16 && row.is_signal_frame == is_signal && is_cfa_equal(oracle, &row, frame, pc) &&
           is_rule_equal(oracle, &row.frame, frame, 6, pc) &&
           is_rule_equal(oracle, &row.ret, frame, 16, pc);
}

static void difference(struct oracle *oracle, uint64_t address, const char *what) {
    if (oracle->tally.differences++ < 10) print_message("%#lx: %s\n", (long)address, what);
}

// Compares at the first and last byte of every row of one function; returns the end of the last.
static uint64_t check_function(struct oracle *oracle, uint64_t start, uint64_t next) {
    uint64_t address = start;
    oracle->tally.functions++;
    while (address < next) {
        Dwarf_Frame *frame = NULL;
        Dwarf_Addr from = 0, to = 0;
        if (dwarf_cfi_addrframe(oracle->cfi, address, &frame) != 0) break;
        dwarf_frame_info(frame, &from, &to, NULL);
        if (!is_row_equal(oracle, address, frame)) difference(oracle, address, "another row");
        if (!is_row_equal(oracle, to - 1, frame)) difference(oracle, to - 1, "another row");
        oracle->tally.rows++;
        free(frame);
        if (to <= address) break;
        address = to;
    }
    return address;
}

// Where elfutils finds nothing between two functions there must be nothing.
static void check_hole(struct oracle *oracle, uint64_t from, uint64_t to) {
    struct row row;
    uint64_t base = (uintptr_t)oracle->image.memory;
    if (from >= to) return;
    oracle->tally.holes++;
    if (row_find(&oracle->image.source, base + from, &row)) difference(oracle, from, "no hole");
    if (row_find(&oracle->image.source, base + to - 1, &row)) difference(oracle, to - 1, "no hole");
}

static void check_file(const char *path) {
    struct oracle oracle;
    struct tally *tally = &oracle.tally;
    if (!oracle_open(&oracle, path)) {
        print_message("%s: not here\n", path);
        return;
    }
    uint32_t count = image_function_count(&oracle.image);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t start = image_function(&oracle.image, i).start;
        uint64_t next = i + 1 < count ? image_function(&oracle.image, i + 1).start : start + 64;
        if (i + 1 == count) next = oracle.image.bytes;
        check_hole(&oracle, check_function(&oracle, start, next), next);
    }
    print_message("%s: %lu functions, %lu rows, %lu holes, %lu expressions, %lu differences\n",
                  path, tally->functions, tally->rows, tally->holes, tally->expressions,
                  tally->differences);
    oracle_close(&oracle);
    assert_true(tally->rows > tally->functions);
    assert_int_equal(tally->differences, 0);
}

static void check_library(const char *name, const char *symbol) {
    Dl_info info;
    void *library = dlopen(name, RTLD_NOW);
    if (!library || !dladdr(dlsym(library, symbol), &info)) {
        print_message("%s: not here\n", name);
        return;
    }
    check_file(info.dli_fname);
    dlclose(library);
}

static void test_libraries(void **state) {
    (void)state;
    check_library("libc.so.6", "gnu_get_libc_version");
    check_library("libstdc++.so.6", "_ZSt9terminatev");
    check_library("libm.so.6", "lgamma");
    check_library("libcrypto.so.3", "OPENSSL_version_major");
    check_file("/lib64/ld-linux-x86-64.so.2");
}

static void test_python(void **state) {
    (void)state;
    check_file("/usr/bin/python3.11");
}

static void test_this_program(void **state) {
    (void)state;
    check_file("/proc/self/exe");
}

static int setup(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        memory[i] = (uintptr_t)&memory[i / 2];
    return 0;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) check_file(argv[i]);
    if (argc > 1) return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_libraries),
        cmocka_unit_test(test_python),
        cmocka_unit_test(test_this_program),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
