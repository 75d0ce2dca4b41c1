// SPDX-License-Identifier: Apache-2.0
// Any bytes as a loaded module: finds a row and evaluates its expressions. The input's head says
// where .eh_frame_hdr begins and which address is asked for; the rest is the module, on pages of
// its own so that a read outside is seen.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/sys/sys.h"
#include "runtime/unwind/eh_frame.h"

struct head {
    uint16_t hdr_offset;
    uint16_t pc_count;
    int32_t pc_offset;
};

enum { PCS_MAX = 64 };

static const uint8_t *module_start, *module_end;

// Instead of the runtime's own: expressions may read the module and nothing else.
bool sys_is_readable(const void *address) {
    uintptr_t word = (uintptr_t)address & ~(uintptr_t)7, end = (uintptr_t)module_end;
    return word >= (uintptr_t)module_start && word < end && end - word >= 8;
}

static void check_inside(const struct row_expression *expression) {
    if (expression->bytes < module_start || expression->bytes > module_end) abort();
    if (expression->length > (size_t)(module_end - expression->bytes)) abort();
}

static void evaluate(const struct row_expression *expression, uintptr_t pc) {
    uintptr_t result = 0;
    uintptr_t middle = (uintptr_t)module_start + (uintptr_t)(module_end - module_start) / 2;
    struct row_registers registers = {
        .pc = pc, .stack = middle & ~(uintptr_t)7, .frame = middle, .is_frame_known = pc % 2};
    check_inside(expression);
    row_evaluate(expression, &registers, middle, &result);
}

static void ask(const struct row_source *source, uintptr_t pc) {
    struct row row;
    if (!row_find(source, pc, &row)) return;
    if (row.is_cfa_expression) evaluate(&row.cfa_expression, pc);
    if (row.frame.how == ROW_AT_EXPRESSION) evaluate(&row.frame.expression, pc);
    if (row.ret.how == ROW_AT_EXPRESSION) evaluate(&row.ret.expression, pc);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct head head;
    if (size < sizeof head) return 0;
    memcpy(&head, bytes, sizeof head);
    size -= sizeof head;
    uint8_t *module = malloc(size ? size : 1);
    if (!module) return 0;
    memcpy(module, bytes + sizeof head, size);
    module_start = module;
    module_end = module + size;
    struct row_source source = {module_start, module_end, module + head.hdr_offset};
    if (head.hdr_offset > size) source.eh_frame_hdr = NULL;
    uintptr_t pc = (uintptr_t)module + (uintptr_t)(intptr_t)head.pc_offset;
    for (uint32_t i = 0; i <= head.pc_count % PCS_MAX; i++) ask(&source, pc + i);
    free(module);
    return 0;
}
