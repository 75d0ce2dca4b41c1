// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/got_patch.h"

#include <stdlib.h>
#include <string.h>

#include "format/attachment.h"
#include "format/relocations.h"
#include "tool/attach/php_heap.h"

// What is taken over in a running process: what allocates and frees, and of the functions that the
// library only takes note of those that it needs there.
// The first one is malloc, which every allocator has.
#define NAME(name) #name,
static const char *const wanted[] = {
    // clang-format off
    CAIRN_HEAP_FUNCTIONS(CAIRN_ROW_NAME, NAME)
    CAIRN_HEAP_FUNCTIONS_LATE(CAIRN_ROW_NAME, NAME)
#undef NAME
    "dlclose", "prctl", "syscall", "fork", "_Fork", "clone",
    "mmap", "mmap64", "mremap", "munmap", "mprotect", "mlockall", "munlockall",
    // clang-format on
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

// In another namespace.
#define NAME(name, hook) #name,
static const char *const wanted_elsewhere[] = {CAIRN_NAMESPACE_HEAP(NAME)};
#undef NAME

// The functions of a namespace among all.
struct range {
    size_t first, count;
};

static struct range functions_of(const struct got_patch *slots, unsigned namespace) {
    if (!namespace) return (struct range){0, slots->own_count};
    size_t first = slots->own_count + (namespace - 1) * CAIRN_NAMESPACE_HEAP_COUNT;
    bool is_there = first < slots->functions.count;
    return (struct range){first, is_there ? CAIRN_NAMESPACE_HEAP_COUNT : 0};
}

static struct hooked *find_wanted(const struct got_patch *slots, struct range range,
                                  const char *name) {
    for (size_t i = range.first; i < range.first + range.count; i++)
        if (!strcmp(slots->functions.items[i].name, name)) return &slots->functions.items[i];
    return NULL;
}

// The first module that defines each, in the linker's order.
static void find_real(struct got_patch *slots, struct loaded_module *module,
                      const struct remote *remote) {
    struct range range = functions_of(slots, module->namespace);
    if (!range.count || !module_load_symbols(module, remote, 1)) return;
    for (size_t i = 0; i < module->symbol_count; i++) {
        const Elf64_Sym *symbol = &module->symbol_table[i];
        bool is_defined = symbol->st_shndx != SHN_UNDEF && symbol->st_name < module->text_bytes &&
                          ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
        if (!is_defined) continue;
        struct hooked *function = find_wanted(slots, range, module->text_table + symbol->st_name);
        if (function && !function->real) {
            function->real = module->bias + symbol->st_value;
            function->is_of_libc = module_is_libc(module);
        }
    }
}

static bool add_function(struct got_patch *slots, const char *name, uint64_t hook,
                         struct error *error) {
    struct hooked *function = array_push(&slots->functions);
    if (!function) return error_set(error, "out of memory");
    *function = (struct hooked){.name = name, .hook = hook};
    return true;
}

// The library's ways for functions of other namespaces; 0: it has none.
static uint64_t find_ways(struct got_patch *slots, struct loaded_module *library,
                          const struct remote *remote) {
    struct cairn_attachment known;
    uint64_t place = library ? module_symbol(library, remote, "cairn_attachment") : 0;
    if (!place || !remote_read(remote, place, &known, sizeof known) ||
        known.magic != CAIRN_ATTACHMENT_MAGIC || known.struct_bytes != sizeof known)
        return 0;
    slots->real_at = known.namespace_real;
    return known.namespace_ways;
}

static bool add_elsewhere(struct got_patch *slots, const struct loaded_modules *modules,
                          uint64_t ways, struct error *error) {
    unsigned highest = 0;
    for (size_t i = 0; i < modules->items.count; i++)
        if (modules->items.items[i].namespace > highest)
            highest = modules->items.items[i].namespace;
    if (highest > CAIRN_NAMESPACES_MAX) highest = CAIRN_NAMESPACES_MAX;
    for (unsigned namespace = 0; ways && namespace < highest; namespace ++)
        for (unsigned i = 0; i < CAIRN_NAMESPACE_HEAP_COUNT; i++) {
            uint64_t number = namespace * CAIRN_NAMESPACE_COUNT + i;
            uint64_t way = ways + number * CAIRN_NAMESPACE_WAY_BYTES;
            if (!add_function(slots, wanted_elsewhere[i], way, error)) return false;
        }
    return true;
}

// Blocks of an unknown allocator may lie nearer to each other than the library expects.
static void leave_other_allocators(struct got_patch *slots) {
    for (size_t i = slots->own_count; i < slots->functions.count; i += CAIRN_NAMESPACE_HEAP_COUNT)
        if (!slots->functions.items[i].is_of_libc)
            for (size_t f = 0; f < CAIRN_NAMESPACE_HEAP_COUNT; f++)
                slots->functions.items[i + f].hook = 0;
}

bool got_patch_find_functions(struct got_patch *slots, struct loaded_modules *modules,
                              struct loaded_module *library, const struct entry_wish *wishes,
                              size_t wish_count, const struct remote *remote, struct error *error) {
    for (unsigned i = 0; i < WANTED_COUNT; i++) {
        uint64_t hook = library ? module_symbol(library, remote, wanted[i]) : 0;
        if (!add_function(slots, wanted[i], hook, error)) return false;
    }
    slots->wanted_count = WANTED_COUNT;
    for (size_t i = 0; i < wish_count; i++)
        if (!add_function(slots, wishes[i].name, 0, error)) return false;
    slots->own_count = WANTED_COUNT + wish_count;
    if (!add_elsewhere(slots, modules, find_ways(slots, library, remote), error)) return false;
    for (size_t i = 0; i < modules->items.count; i++) {
        struct loaded_module *module = &modules->items.items[i];
        if (module != library) find_real(slots, module, remote);
    }
    leave_other_allocators(slots);
    return slots->functions.items[0].real ||
           error_set(error, "no module of it defines malloc for others");
}

static bool is_slot_kind(uint64_t kind) {
    return kind == RELOCATION_JUMP_SLOT || kind == RELOCATION_GLOBAL || kind == RELOCATION_WORD;
}

// A slot of a call that was never made leads back into its own module.
static bool is_unbound(const struct loaded_module *module, uint64_t kind, uint64_t value) {
    return kind == RELOCATION_JUMP_SLOT && value >= module->start && value < module->end;
}

static bool look_at_relocation(struct got_patch *slots, const struct loaded_module *module,
                               const Elf64_Rela *relocation, const struct remote *remote) {
    uint64_t index = ELF64_R_SYM(relocation->r_info), kind = ELF64_R_TYPE(relocation->r_info);
    if (!index || index >= module->symbol_count || !is_slot_kind(kind)) return true;
    const Elf64_Sym *symbol = &module->symbol_table[index];
    if (symbol->st_name >= module->text_bytes || relocation->r_addend) return true;
    const struct hooked *function = find_wanted(slots, functions_of(slots, module->namespace),
                                                module->text_table + symbol->st_name);
    uint64_t address = module->bias + relocation->r_offset, value;
    if (!function || !function->hook || !function->real || address % sizeof value ||
        !remote_read(remote, address, &value, sizeof value))
        return true;
    if (value != function->real && value != function->hook && !is_unbound(module, kind, value))
        return true;
    struct got_slot *slot = array_push(&slots->items);
    if (!slot) return false;
    uint64_t before = value == function->hook ? function->real : value;
    *slot = (struct got_slot){.address = address,
                              .before = before,
                              .hooked = (unsigned)(function - slots->functions.items)};
    return true;
}

static const struct hooked *stored_function(const struct got_patch *slots, unsigned which) {
    static const char *const names[PHP_HEAP_FUNCTIONS] = {"malloc", "free", "realloc"};
    return find_wanted(slots, functions_of(slots, 0), names[which]);
}

static bool is_stored(const void *context, unsigned which, uint64_t word) {
    const struct hooked *function = stored_function(context, which);
    return word && function && function->hook && function->real &&
           (word == function->real || word == function->hook);
}

// Looks at the addresses that PHP calls past its module's table.
static bool look_at_stored(struct got_patch *slots, struct loaded_module *module,
                           const struct remote *remote) {
    uint64_t words[PHP_HEAP_FUNCTIONS];
    uint64_t at = php_heap_find(module, remote, is_stored, slots, words);
    for (unsigned i = 0; at && i < PHP_HEAP_FUNCTIONS; i++) {
        if (!is_stored(slots, i, words[i])) continue;
        const struct hooked *function = stored_function(slots, i);
        struct got_slot *slot = array_push(&slots->items);
        if (!slot) return false;
        *slot = (struct got_slot){.address = at + i * sizeof *words,
                                  .before = function->real,
                                  .hooked = (unsigned)(function - slots->functions.items),
                                  .is_stored = true};
    }
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

static bool look_at_table(struct got_patch *slots, struct loaded_module *module, uint64_t at,
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

static bool is_left(const struct got_patch *slots, const struct loaded_module *module) {
    struct range range = functions_of(slots, module->namespace);
    return !range.count || (module->namespace && !slots->functions.items[range.first].hook);
}

// The dynamic linker is a module of every namespace, but there once.
static bool is_linker_again(const struct loaded_modules *modules,
                            const struct loaded_module *module) {
    return module->namespace && module->bias == modules->linker;
}

bool got_patch_find(struct got_patch *slots, struct loaded_modules *modules,
                    const struct loaded_module *library, const struct remote *remote,
                    struct error *error) {
    slots->items.count = 0;
    slots->elsewhere_count = 0;
    for (size_t i = 0; i < modules->items.count; i++) {
        struct loaded_module *module = &modules->items.items[i];
        if (module == library || is_linker_again(modules, module)) continue;
        if (is_left(slots, module)) {
            slots->elsewhere_count++;
            continue;
        }
        for (size_t table = 0; table < 2; table++)
            if (!look_at_table(slots, module, module->relocations[table],
                               module->relocation_bytes[table], remote))
                return error_set(error, "out of memory");
        if (!module->namespace && !look_at_stored(slots, module, remote))
            return error_set(error, "out of memory");
    }
    return true;
}

void got_patch_tell(const struct got_patch *slots, const struct remote *remote) {
    for (size_t i = slots->own_count; i < slots->functions.count; i++) {
        size_t number = i - slots->own_count;
        uint64_t place = number / CAIRN_NAMESPACE_HEAP_COUNT * CAIRN_NAMESPACE_COUNT +
                         number % CAIRN_NAMESPACE_HEAP_COUNT;
        remote_write(remote, slots->real_at + place * sizeof(uint64_t),
                     &slots->functions.items[i].real, sizeof(uint64_t));
    }
}

size_t got_patch_take(struct got_patch *slots, const struct remote *remote) {
    size_t taken = 0;
    for (size_t i = 0; i < slots->items.count; i++) {
        struct got_slot *slot = &slots->items.items[i];
        uint64_t hook = slots->functions.items[slot->hooked].hook, value;
        if (!remote_read(remote, slot->address, &value, sizeof value)) continue;
        slot->is_taken = value == hook;
        if (slot->is_taken || (slot->is_stored && value != slot->before)) continue;
        slot->is_taken = remote_write(remote, slot->address, &hook, sizeof hook);
        taken += slot->is_taken;
    }
    return taken;
}

bool got_patch_hold(const struct got_patch *slots, const struct remote *remote) {
    for (size_t i = 0; i < slots->items.count; i++) {
        const struct got_slot *slot = &slots->items.items[i];
        uint64_t hook = slots->functions.items[slot->hooked].hook, value;
        if (slot->is_taken &&
            (!remote_read(remote, slot->address, &value, sizeof value) || value != hook))
            return false;
    }
    return true;
}

void got_patch_put_back(struct got_patch *slots, const struct remote *remote) {
    for (size_t i = 0; i < slots->items.count; i++) {
        const struct got_slot *slot = &slots->items.items[i];
        uint64_t hook = slots->functions.items[slot->hooked].hook, value;
        if (remote_read(remote, slot->address, &value, sizeof value) && value == hook)
            remote_write(remote, slot->address, &slot->before, sizeof slot->before);
    }
}

void got_patch_free(struct got_patch *slots) {
    array_free(&slots->functions);
    array_free(&slots->items);
    *slots = (struct got_patch){0};
}
