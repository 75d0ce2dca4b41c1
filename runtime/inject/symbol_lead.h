// SPDX-License-Identifier: Apache-2.0
// A module's own table of symbols gets addresses of ours: the dynamic linker binds calls by it that
// were not made yet, and libraries that are loaded later, before their constructors run.
#ifndef RUNTIME_INJECT_SYMBOL_LEAD_H
#define RUNTIME_INJECT_SYMBOL_LEAD_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

// Changes where one symbol of the table leads. False where code lies in the same segment as the
// table: its pages would not be executable for a moment.
bool symbol_lead(const struct dl_phdr_info *module, const ElfW(Sym) * symbol, uintptr_t hook);

// Tells that the address lies in the module.
bool symbol_lead_is_of(const struct dl_phdr_info *module, uintptr_t address);

#endif
