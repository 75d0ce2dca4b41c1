// SPDX-License-Identifier: Apache-2.0
#include "runtime/inject/symbol_lead.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "runtime/sys/sys.h"

// True if the segment that has the address is there to be read alone.
static bool is_plain_data(const struct dl_phdr_info *module, uintptr_t address) {
    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
        uintptr_t offset = address - module->dlpi_addr - segment->p_vaddr;
        if (segment->p_type == PT_LOAD && offset < segment->p_memsz)
            return segment->p_flags == PF_R;
    }
    return false;
}

bool symbol_lead_is_of(const struct dl_phdr_info *module, uintptr_t address) {
    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            address - module->dlpi_addr - segment->p_vaddr < segment->p_memsz)
            return true;
    }
    return false;
}

bool symbol_lead(const struct dl_phdr_info *module, const ElfW(Sym) * symbol, uintptr_t hook) {
    const uintptr_t page_mask = ~(uintptr_t)(sys_page_bytes() - 1);
    uintptr_t word = (uintptr_t)&symbol->st_value, page = word & page_mask;
    long bytes = (long)(((word + sizeof word - 1) & page_mask) - page + sys_page_bytes());
    if (!is_plain_data(module, word)) return false;
    if (sys_call(SYS_mprotect, (long)page, bytes, PROT_READ | PROT_WRITE, 0, 0, 0) != 0)
        return false;
    __atomic_store_n((uintptr_t *)word, hook - module->dlpi_addr, __ATOMIC_RELEASE);
    sys_call(SYS_mprotect, (long)page, bytes, PROT_READ, 0, 0, 0);
    return true;
}
