// SPDX-License-Identifier: Apache-2.0
// Two things lead there. The slots of the modules that are loaded now are rewritten, as
// got_patch.h says. And the allocator's own table of symbols gets our addresses, from which the
// linker binds calls that were not made yet and libraries that are loaded later, before their
// constructors run. That table is left as it is where code lies in the same segment: its pages
// would not be executable for a moment.
#include "runtime/inject/operators_lead.h"

#include <stddef.h>
#include <stdint.h>

#include "runtime/inject/got_patch.h"
#include "runtime/inject/symbol_lead.h"
#include "runtime/preload/operators.h"
#include "runtime/process/real.h"
#include "runtime/process/state.h"
#include "runtime/sys/linker.h"
#include "runtime/sys/sys.h"

struct lead {
    uintptr_t start, end;  // of the allocator
    void *real[OPERATORS];
    uintptr_t hooks[OPERATORS];
};

static bool is_led(const struct lead *lead, unsigned id) {
    return (uintptr_t)lead->real[id] >= lead->start && (uintptr_t)lead->real[id] < lead->end;
}

static const char *next_name(const char *name) {
    return name + __builtin_strlen(name) + 1;
}

static bool find_operator(void *context, const char *name, uintptr_t *actual, uintptr_t *way) {
    const struct lead *lead = context;
    const char *each = operators_names();
    for (unsigned id = 0; id < OPERATORS; id++, each = next_name(each)) {
        if (!is_led(lead, id) || !sys_is_text_equal(each, name)) continue;
        *actual = (uintptr_t)lead->real[id];
        *way = lead->hooks[id];
        return true;
    }
    return false;
}

static void lead_symbols(const struct dl_phdr_info *module, const struct lead *lead) {
    struct linker_symbols symbols = linker_symbols_of(module);
    const char *name = operators_names();
    for (unsigned id = 0; id < OPERATORS; id++, name = next_name(name)) {
        const ElfW(Sym) *symbol = is_led(lead, id) ? linker_symbols_entry(&symbols, name) : NULL;
        if (symbol && symbols.bias + symbol->st_value == (uintptr_t)lead->real[id])
            symbol_lead(module, symbol, lead->hooks[id]);
    }
}

// The calls of the allocator itself are its own business, and those of the hooks must not come
// back to them.
static int lead_module(struct dl_phdr_info *module, size_t size, void *context) {
    struct lead *lead = context;
    (void)size;
    if (symbol_lead_is_of(module, (uintptr_t)lead_module)) return 0;
    if (symbol_lead_is_of(module, lead->start))
        lead_symbols(module, lead);
    else
        got_patch_module(module, find_operator, lead);
    return 0;
}

COLD void operators_lead(void) {
    struct lead lead = {.real = {NULL}};
    bool is_any = false;
    if (process_state() != PROCESS_RECORDING || sys_is_confined()) return;
    if (!real_allocator_range(&lead.start, &lead.end)) return;
    operators_hooks(lead.hooks);
    // this library exports the hooks: callers were bound to them
    if ((uintptr_t)linker_search(operators_names()) == lead.hooks[0]) return;
    linker_find_all_next(operators_names(), lead.real);
    for (unsigned id = 0; id < OPERATORS; id++) is_any |= is_led(&lead, id);
    if (!is_any) return;
    operators_know(lead.real);
    dl_iterate_phdr(lead_module, &lead);
}
