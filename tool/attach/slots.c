// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/slots.h"

#include <stdlib.h>
#include <string.h>

// What is taken over in a running process: what allocates and frees, and of the functions that the
// library only takes note of those that it needs there.
static const char *const wanted[] = {
    "malloc", "free", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc",
    "memalign", "valloc", "pvalloc", "cfree", "free_sized", "free_aligned_sized", "dlclose",
    "prctl", "syscall", "fork", "_Fork",
    // not taken over, but asked for by the library
    "gnu_get_libc_version",
    // C++'s operators, of the library that wraps them
    "_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t", "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t", "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t", "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t", "_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t"};
enum { WANTED_COUNT = sizeof wanted / sizeof *wanted, RELOCATIONS_MAX_BYTES = 1 << 30 };

static int find_wanted(const char *name) {
    for (unsigned i = 0; i < WANTED_COUNT; i++)
        if (!strcmp(wanted[i], name)) return (int)i;
    return -1;
}

// The first module that defines each, in the linker's order.
static void find_real(struct slots *slots, struct loaded_module *module,
                      const struct remote *remote) {
    if (!module_load_symbols(module, remote, 1)) return;
    for (size_t i = 0; i < module->symbol_count; i++) {
        const Elf64_Sym *symbol = &module->symbol_table[i];
        bool is_defined = symbol->st_shndx != SHN_UNDEF && symbol->st_name < module->text_bytes &&
                          ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
        if (!is_defined) continue;
        const char *name = module->text_table + symbol->st_name;
        for (size_t f = 0; f < slots->functions.count; f++) {
            struct hooked *function = &slots->functions.items[f];
            if (!function->real && !strcmp(function->name, name))
                function->real = module->bias + symbol->st_value;
        }
    }
}

bool slots_find_functions(struct slots *slots, struct loaded_modules *modules,
                          struct loaded_module *library, const struct remote *remote,
                          struct error *error) {
    for (unsigned i = 0; i < WANTED_COUNT; i++) {
        uint64_t hook = library ? module_symbol(library, remote, wanted[i]) : 0;
        struct hooked *function = array_push(&slots->functions);
        if (!function) return error_set(error, "out of memory");
        *function = (struct hooked){.name = wanted[i], .hook = hook};
    }
    for (size_t i = 0; i < modules->items.count; i++) {
        struct loaded_module *module = &modules->items.items[i];
        if (module != library && !module->is_elsewhere) find_real(slots, module, remote);
    }
    return slots->functions.items[0].real ||
           error_set(error, "no module of it defines malloc for others");
}

static bool is_slot_kind(uint64_t kind) {
    return kind == R_X86_64_JUMP_SLOT || kind == R_X86_64_GLOB_DAT || kind == R_X86_64_64;
}

// A slot of a call that was never made leads back into its own module.
static bool is_unbound(const struct loaded_module *module, uint64_t kind, uint64_t value) {
    return kind == R_X86_64_JUMP_SLOT && value >= module->start && value < module->end;
}

static bool look_at_relocation(struct slots *slots, const struct loaded_module *module,
                               const Elf64_Rela *relocation, const struct remote *remote) {
    uint64_t index = ELF64_R_SYM(relocation->r_info), kind = ELF64_R_TYPE(relocation->r_info);
    if (!index || index >= module->symbol_count || !is_slot_kind(kind)) return true;
    const Elf64_Sym *symbol = &module->symbol_table[index];
    if (symbol->st_name >= module->text_bytes || relocation->r_addend) return true;
    int which = find_wanted(module->text_table + symbol->st_name);
    if (which < 0) return true;
    const struct hooked *function = &slots->functions.items[which];
    uint64_t address = module->bias + relocation->r_offset, value;
    if (!function->hook || !function->real || address % sizeof value ||
        !remote_read(remote, address, &value, sizeof value))
        return true;
    if (value != function->real && value != function->hook && !is_unbound(module, kind, value))
        return true;
    struct slot *slot = array_push(&slots->items);
    if (!slot) return false;
    uint64_t before = value == function->hook ? function->real : value;
    *slot = (struct slot){.address = address, .before = before, .hooked = (unsigned)which};
    return true;
}

static size_t highest_symbol(const Elf64_Rela *relocations, size_t count) {
    size_t highest = 0;
    for (size_t i = 0; i < count; i++) {
        size_t index = ELF64_R_SYM(relocations[i].r_info);
        if (is_slot_kind(ELF64_R_TYPE(relocations[i].r_info)) && index > highest) highest = index;
    }
    return highest;
}

static bool look_at_table(struct slots *slots, struct loaded_module *module, uint64_t at,
                          uint64_t bytes, const struct remote *remote) {
    size_t count = bytes / sizeof(Elf64_Rela);
    if (!at || !count || bytes > RELOCATIONS_MAX_BYTES) return true;
    Elf64_Rela *relocations = malloc(count * sizeof *relocations);
    if (!relocations) return false;
    bool is_ok = true;
    if (remote_read(remote, at, relocations, count * sizeof *relocations) &&
        module_load_symbols(module, remote, highest_symbol(relocations, count) + 1))
        for (size_t i = 0; is_ok && i < count; i++)
            is_ok = look_at_relocation(slots, module, &relocations[i], remote);
    free(relocations);
    return is_ok;
}

bool slots_find(struct slots *slots, struct loaded_modules *modules,
                const struct loaded_module *library, const struct remote *remote,
                struct error *error) {
    slots->items.count = 0;
    slots->elsewhere_count = 0;
    for (size_t i = 0; i < modules->items.count; i++) {
        struct loaded_module *module = &modules->items.items[i];
        if (module == library) continue;
        slots->elsewhere_count += module->is_elsewhere;
        for (size_t table = 0; !module->is_elsewhere && table < 2; table++)
            if (!look_at_table(slots, module, module->relocations[table],
                               module->relocation_bytes[table], remote))
                return error_set(error, "out of memory");
    }
    return true;
}

size_t slots_take(struct slots *slots, const struct remote *remote) {
    size_t taken = 0;
    for (size_t i = 0; i < slots->items.count; i++) {
        const struct slot *slot = &slots->items.items[i];
        uint64_t hook = slots->functions.items[slot->hooked].hook, value;
        if (!remote_read(remote, slot->address, &value, sizeof value) || value == hook) continue;
        taken += remote_write(remote, slot->address, &hook, sizeof hook);
    }
    return taken;
}

void slots_put_back(struct slots *slots, const struct remote *remote) {
    for (size_t i = 0; i < slots->items.count; i++) {
        const struct slot *slot = &slots->items.items[i];
        uint64_t hook = slots->functions.items[slot->hooked].hook, value;
        if (remote_read(remote, slot->address, &value, sizeof value) && value == hook)
            remote_write(remote, slot->address, &slot->before, sizeof slot->before);
    }
}

void slots_free(struct slots *slots) {
    array_free(&slots->functions);
    array_free(&slots->items);
    *slots = (struct slots){0};
}
