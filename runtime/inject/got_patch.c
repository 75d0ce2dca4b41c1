// SPDX-License-Identifier: Apache-2.0
// A slot that the linker makes read-only once it is done with a module (RELRO) is written while its
// page is writable for a moment. A page that is writable before is one that the linker still works
// on: it would fall over the end of that time, so the slot is left.
#include "runtime/inject/got_patch.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "format/relocations.h"
#include "runtime/inject/namespaces.h"
#include "runtime/sys/linker.h"

struct module {
    const char *name;
    struct linker_symbols symbols;
    const Elf64_Phdr *segments;
    uint32_t segment_count;
    const Elf64_Rela *relocations[2];  // those of data, those of calls
    size_t relocation_count[2];
};

enum { NAME_BYTES = 24 };
#define NAME(name, hook) #name,
static const char names[][NAME_BYTES] = {CAIRN_NAMESPACE_HEAP(NAME) CAIRN_NAMESPACE_LINKER(NAME)};
#undef NAME

static void read_dynamic(struct module *module, const Elf64_Dyn *entry) {
    bool has_calls_with_addends = true;
    for (; entry->d_tag != DT_NULL; entry++) {
        uintptr_t address = entry->d_un.d_ptr;
        if (address < module->symbols.bias) address += module->symbols.bias;  // left so
        linker_symbols_note(&module->symbols, entry);
        if (entry->d_tag == DT_RELA) module->relocations[0] = (const Elf64_Rela *)address;
        if (entry->d_tag == DT_JMPREL) module->relocations[1] = (const Elf64_Rela *)address;
        if (entry->d_tag == DT_PLTREL) has_calls_with_addends = entry->d_un.d_val == DT_RELA;
        if (entry->d_tag == DT_RELASZ)
            module->relocation_count[0] = entry->d_un.d_val / sizeof(Elf64_Rela);
        if (entry->d_tag == DT_PLTRELSZ)
            module->relocation_count[1] = entry->d_un.d_val / sizeof(Elf64_Rela);
    }
    if (!has_calls_with_addends) module->relocation_count[1] = 0;
    for (unsigned table = 0; table < 2; table++)
        if (!module->relocations[table]) module->relocation_count[table] = 0;
}

// False of what is no library with a header and symbols, and of the dynamic linker, which is in
// every namespace but there once.
static bool read_module(struct module *module, const struct link_map *map) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)map->l_addr;
    *module = (struct module){.name = map->l_name, .symbols.bias = map->l_addr};
    if (!map->l_ld || map->l_addr == getauxval(AT_BASE) || !sys_is_readable(header) ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phoff > SYS_PAGE_LEAST)
        return false;
    module->segments = (const Elf64_Phdr *)(map->l_addr + header->e_phoff);
    module->segment_count = header->e_phnum;
    read_dynamic(module, map->l_ld);
    return module->symbols.symbols && module->symbols.texts;
}

static bool is_libc(const struct module *module) {
    const char *slash = strrchr(module->name, '/');
    return !strcmp(slash ? slash + 1 : module->name, "libc.so.6");
}

// The first module that defines each, in the linker's order.
static bool find_real(const struct link_map *map, uintptr_t found[CAIRN_NAMESPACE_COUNT]) {
    struct module module;
    bool is_of_libc = false;
    for (; map; map = map->l_next) {
        if (!read_module(&module, map)) continue;
        bool had_malloc = found[0];
        for (unsigned i = 0; i < CAIRN_NAMESPACE_COUNT; i++)
            if (!found[i]) found[i] = linker_symbols_find(&module.symbols, names[i]);
        if (!had_malloc && found[0]) is_of_libc = is_libc(&module);
    }
    return is_of_libc;
}

static bool is_within(const struct module *module, uint32_t type, uint32_t flags,
                      uintptr_t address) {
    for (uint32_t i = 0; i < module->segment_count; i++) {
        const Elf64_Phdr *segment = &module->segments[i];
        if (segment->p_type != type || (segment->p_flags & flags) != flags) continue;
        uintptr_t start = module->symbols.bias + segment->p_vaddr;
        if (address >= start && address < start + segment->p_memsz) return true;
    }
    return false;
}

// The linker makes whole pages read-only, from the one that the range begins in.
static bool is_fixed(const struct module *module, uintptr_t address) {
    const uintptr_t page_mask = ~(uintptr_t)(sys_page_bytes() - 1);
    for (uint32_t i = 0; i < module->segment_count; i++) {
        const Elf64_Phdr *segment = &module->segments[i];
        if (segment->p_type != PT_GNU_RELRO) continue;
        uintptr_t start = (module->symbols.bias + segment->p_vaddr) & page_mask;
        uintptr_t end = (module->symbols.bias + segment->p_vaddr + segment->p_memsz) & page_mask;
        if (address >= start && address < end) return true;
    }
    return false;
}

// The kernel is asked to add nothing to the word, which it refuses where it cannot write. Any other
// answer is none.
static bool is_writable(uintptr_t address) {
    enum { WAKE_OP_PRIVATE = 5 | 128, NEVER_EQUAL = 0xfff };
    static uint32_t nobody_waits;
    const long add_nothing = 1L << 28 | NEVER_EQUAL;
    return sys_call(SYS_futex, (long)&nobody_waits, WAKE_OP_PRIVATE, 0, 0, (long)address,
                    add_nothing) != -EFAULT;
}

static void store(uintptr_t address, uintptr_t value) {
    __atomic_store_n((uintptr_t *)address, value, __ATOMIC_RELEASE);
}

static void write_slot(const struct module *module, uintptr_t address, uintptr_t value) {
    long page = (long)(address & ~(uintptr_t)(sys_page_bytes() - 1));
    if (!is_within(module, PT_LOAD, PF_W, address)) return;
    if (!is_fixed(module, address)) return store(address, value);
    if (is_writable(address) ||
        sys_call(SYS_mprotect, page, sys_page_bytes(), PROT_READ | PROT_WRITE, 0, 0, 0) != 0)
        return;
    store(address, value);
    sys_call(SYS_mprotect, page, sys_page_bytes(), PROT_READ, 0, 0, 0);
}

static int find_name(const char *name) {
    for (unsigned i = 0; i < CAIRN_NAMESPACE_COUNT; i++)
        if (!strcmp(names[i], name)) return (int)i;
    return -1;
}

// Leads a slot elsewhere if it is one of a function that is looked for, and leads to that; whether
// it leads there now.
static bool relink(const struct module *module, const Elf64_Rela *relocation, got_lookup *find,
                   void *context) {
    uint64_t index = ELF64_R_SYM(relocation->r_info), kind = ELF64_R_TYPE(relocation->r_info);
    bool is_slot =
        kind == RELOCATION_JUMP_SLOT || kind == RELOCATION_GLOBAL || kind == RELOCATION_WORD;
    uintptr_t address = module->symbols.bias + relocation->r_offset, value, real, way;
    if (!is_slot || !index || relocation->r_addend || address % sizeof value) return false;
    const char *name = module->symbols.texts + module->symbols.symbols[index].st_name;
    if (!find(context, name, &real, &way)) return false;
    value = __atomic_load_n((const uintptr_t *)address, __ATOMIC_RELAXED);
    bool is_unbound = kind == RELOCATION_JUMP_SLOT && is_within(module, PT_LOAD, 0, value);
    if (value == real || is_unbound) write_slot(module, address, way);
    return __atomic_load_n((const uintptr_t *)address, __ATOMIC_RELAXED) == way;
}

static uint32_t relink_all(const struct module *module, got_lookup *find, void *context) {
    uint32_t count = 0;
    for (unsigned table = 0; table < 2; table++)
        for (size_t i = 0; i < module->relocation_count[table]; i++)
            count += relink(module, &module->relocations[table][i], find, context);
    return count;
}

struct namespace_ways {
    const uintptr_t *real;
    uintptr_t ways;
};

static bool find_in_namespace(void *context, const char *name, uintptr_t *real, uintptr_t *way) {
    const struct namespace_ways *ways = context;
    int which = find_name(name);
    if (which < 0 || !ways->real[which]) return false;
    *real = ways->real[which];
    *way = ways->ways + (uintptr_t)which * CAIRN_NAMESPACE_WAY_BYTES;
    return true;
}

bool got_patch_namespace(const struct link_map *map, uintptr_t real[CAIRN_NAMESPACE_COUNT],
                         uintptr_t ways) {
    uintptr_t found[CAIRN_NAMESPACE_COUNT] = {0};
    struct module module;
    if (!find_real(map, found)) return false;
    for (unsigned i = 0; i < CAIRN_NAMESPACE_COUNT; i++) store((uintptr_t)&real[i], found[i]);
    for (; map; map = map->l_next) {
        if (!read_module(&module, map)) continue;
        struct namespace_ways all = {real, ways};
        relink_all(&module, find_in_namespace, &all);
    }
    return true;
}

uint32_t got_patch_module(const struct dl_phdr_info *info, got_lookup *find, void *context) {
    struct module module = {.name = info->dlpi_name,
                            .symbols.bias = info->dlpi_addr,
                            .segments = info->dlpi_phdr,
                            .segment_count = info->dlpi_phnum};
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            read_dynamic(&module,
                         (const Elf64_Dyn *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
    bool has_symbols = module.symbols.symbols && module.symbols.texts;
    return has_symbols ? relink_all(&module, find, context) : 0;
}
