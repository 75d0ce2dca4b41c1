// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/linker.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "runtime/sys/sys.h"

// Absent before glibc 2.34 in a program without libdl. By the version that it had there, so that a
// library built on a new system loads on an old one (dev/check-runtime.sh watches that).
extern __typeof__(dlsym) dlsym __attribute__((weak));
#if defined(CAIRN_STATIC) || defined(CAIRN_BARE)
// Nothing is asked of a dynamic linker.
#elif defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
#endif

// ---- one module ---------------------------------------------------------------------------------

void linker_symbols_note(struct linker_symbols *symbols, const Elf64_Dyn *entry) {
    uintptr_t address = entry->d_un.d_ptr;
    if (address < symbols->bias) address += symbols->bias;  // left so where it is read-only
    if (entry->d_tag == DT_SYMTAB) symbols->symbols = (const Elf64_Sym *)address;
    if (entry->d_tag == DT_STRTAB) symbols->texts = (const char *)address;
    if (entry->d_tag == DT_VERSYM) symbols->versions = (const uint16_t *)address;
    if (entry->d_tag == DT_HASH) symbols->hash = (const uint32_t *)address;
    if (entry->d_tag == DT_GNU_HASH) symbols->gnu_hash = (const uint32_t *)address;
}

// An older version of a name is hidden: only who was linked with it gets it.
static bool is_definition(const struct linker_symbols *symbols, uint32_t index, const char *name) {
    const uint16_t hidden = 0x8000;
    const Elf64_Sym *symbol = &symbols->symbols[index];
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    bool is_known_type =
        type == STT_FUNC || type == STT_OBJECT || type == STT_GNU_IFUNC || type == STT_TLS;
    return symbol->st_shndx != SHN_UNDEF && is_known_type &&
           !(symbols->versions && (symbols->versions[index] & hidden)) &&
           sys_is_text_equal(symbols->texts + symbol->st_name, name);
}

static uint32_t hash_of(const char *name) {
    const uint32_t start = 5381, factor = 33;
    uint32_t hash = start;
    for (; *name; name++) hash = hash * factor + (uint8_t)*name;
    return hash;
}

struct gnu_hash {
    uint32_t bucket_count, first, filter_words, shift, filter[];
};

// Two bits of the filter are set for every name that the module has: most modules have not.
static bool may_define(const struct gnu_hash *head, uint32_t hash) {
    enum { WORD_BITS = 64, HALF_BITS = 32 };
    uint32_t word = hash / WORD_BITS & (head->filter_words - 1), second = hash >> head->shift;
    uint64_t bits = head->filter[2 * word] | (uint64_t)head->filter[2 * word + 1] << HALF_BITS;
    return bits >> hash % WORD_BITS & bits >> second % WORD_BITS & 1;
}

// The symbol's number; 0: the module does not define it.
static uint32_t find_by_gnu_hash(const struct linker_symbols *symbols, const char *name) {
    const struct gnu_hash *head = (const void *)symbols->gnu_hash;
    const uint32_t *buckets = head->filter + 2 * head->filter_words;
    const uint32_t *chains = buckets + head->bucket_count;
    uint32_t hash = hash_of(name);
    if (!head->bucket_count || (head->filter_words && !may_define(head, hash))) return 0;
    uint32_t index = buckets[hash % head->bucket_count];
    for (; index >= head->first && index; index++) {
        uint32_t word = chains[index - head->first];
        if ((word | 1) == (hash | 1) && is_definition(symbols, index, name)) return index;
        if (word & 1) break;
    }
    return 0;
}

// NULL: the module does not define it.
static COLD const Elf64_Sym *find_any(const struct linker_symbols *symbols, const char *name) {
    uint32_t found = 0;
    if (!symbols->symbols || !symbols->texts) return NULL;
    if (symbols->gnu_hash)
        found = find_by_gnu_hash(symbols, name);
    else if (symbols->hash)
        for (uint32_t i = 1; i < symbols->hash[1] && !found; i++)
            if (is_definition(symbols, i, name)) found = i;
    return found ? &symbols->symbols[found] : NULL;
}

static bool is_local(const Elf64_Sym *symbol) {
    return ELF64_ST_TYPE(symbol->st_info) == STT_TLS;
}

// The same of one that has an address.
static const Elf64_Sym *find_symbol(const struct linker_symbols *symbols, const char *name) {
    const Elf64_Sym *symbol = find_any(symbols, name);
    return symbol && !is_local(symbol) ? symbol : NULL;
}

// What it leads to is chosen by a function of the module.
static bool is_chosen(const Elf64_Sym *symbol) {
    return ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
}

const Elf64_Sym *linker_symbols_entry(const struct linker_symbols *symbols, const char *name) {
    const Elf64_Sym *symbol = find_symbol(symbols, name);
    return symbol && !is_chosen(symbol) ? symbol : NULL;
}

uintptr_t linker_symbols_find(const struct linker_symbols *symbols, const char *name) {
    const Elf64_Sym *symbol = linker_symbols_entry(symbols, name);
    return symbol ? symbols->bias + symbol->st_value : 0;
}

// ---- all modules --------------------------------------------------------------------------------

struct search {
    const char *name;
    uintptr_t found;
    uint64_t size;      // that its symbol says
    bool is_for_local;  // one that is thread-local
    struct linker_local local;
    bool is_after_us;    // only modules after ours
    bool is_for_chosen;  // a function that is chosen when it is found counts, unlike elsewhere
    bool has_chosen;     // and is the first one
};

static bool is_ours(const struct dl_phdr_info *module) {
    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        const Elf64_Phdr *segment = &module->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            (uintptr_t)is_ours - module->dlpi_addr - segment->p_vaddr < segment->p_memsz)
            return true;
    }
    return false;
}

static struct linker_symbols symbols_at(uintptr_t bias, const Elf64_Dyn *entry) {
    struct linker_symbols symbols = {.bias = bias};
    for (; entry->d_tag != DT_NULL; entry++) linker_symbols_note(&symbols, entry);
    return symbols;
}

struct linker_symbols linker_symbols_of(const struct dl_phdr_info *module) {
    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        const Elf64_Phdr *segment = &module->dlpi_phdr[i];
        if (segment->p_type == PT_DYNAMIC)
            return symbols_at(module->dlpi_addr,
                              (const Elf64_Dyn *)(module->dlpi_addr + segment->p_vaddr));
    }
    return (struct linker_symbols){.bias = module->dlpi_addr};
}

static COLD int look_at_module(struct dl_phdr_info *module, size_t size, void *context) {
    struct search *search = context;
    if (search->is_after_us) {
        search->is_after_us = !is_ours(module);
        return 0;
    }
    struct linker_symbols symbols = linker_symbols_of(module);
    const Elf64_Sym *symbol = find_any(&symbols, search->name);
    if (!symbol || is_local(symbol) != search->is_for_local) return 0;
    if (is_chosen(symbol)) return search->has_chosen = search->is_for_chosen;
    search->found = symbols.bias + symbol->st_value;
    search->size = symbol->st_size;
    search->local = (struct linker_local){.offset = symbol->st_value};
    if (size >= offsetof(struct dl_phdr_info, dlpi_tls_modid) + sizeof module->dlpi_tls_modid)
        search->local.module = module->dlpi_tls_modid;
    return 1;
}

static COLD void *search_modules(const char *name, bool is_after_us) {
    struct search search = {.name = name, .is_after_us = is_after_us};
    dl_iterate_phdr(look_at_module, &search);
    return (void *)search.found;
}

void *linker_search(const char *name) {
    return search_modules(name, false);
}

// Only dlsym calls the function that chooses. It would allocate a message for a name that is not
// there, in the program's heap, and dlerror would tell it to the program; one that it has not read
// yet, any call of dlsym removes.
static COLD void *find_first(const char *name, bool is_after_us) {
#ifdef dlsym  // the static library's table of real functions (bindings/static/symbols.h)
    return dlsym(is_after_us ? RTLD_NEXT : RTLD_DEFAULT, name);
#endif
    struct search search = {.name = name, .is_after_us = is_after_us, .is_for_chosen = true};
    dl_iterate_phdr(look_at_module, &search);
    if (!search.has_chosen) return (void *)search.found;
    return dlsym ? dlsym(is_after_us ? RTLD_NEXT : RTLD_DEFAULT, name)
                 : search_modules(name, is_after_us);
}

void *linker_find(const char *name) {
    return find_first(name, false);
}

void *linker_find_next(const char *name) {
    return find_first(name, true);
}

// ---- many names ---------------------------------------------------------------------------------

static const char *next_name(const char *name) {
    while (*name) {
        name++;
        __asm__("" : "+r"(name));  // the compiler shall not make a call of strlen of it
    }
    return name + 1;
}

// Each name that the module has and none before it had.
static void find_in_module(const struct linker_symbols *symbols, const char *names, void **found) {
    for (const char *name = names; *name; name = next_name(name), found++) {
        const Elf64_Sym *symbol = *found ? NULL : find_symbol(symbols, name);
        if (!symbol) continue;
        *found =
            is_chosen(symbol) ? linker_find_next(name) : (void *)(symbols->bias + symbol->st_value);
    }
}

// The modules as the dynamic linker lists them for debuggers, in the order of its search. No
// function of libc is called here: dl_iterate_phdr may be a sanitizer's, which is not ready yet.
#if defined(__GLIBC__) && !defined(CAIRN_STATIC)
extern struct r_debug _r_debug __attribute__((weak));
extern Elf64_Dyn _DYNAMIC[] __attribute__((weak, visibility("hidden")));

static const struct link_map *first_after_us(void) {
    const struct link_map *module = &_r_debug ? _r_debug.r_map : NULL;
    while (module && module->l_ld != _DYNAMIC) module = module->l_next;
    return module ? module->l_next : NULL;
}
#else
static const struct link_map *first_after_us(void) {
    return NULL;
}
#endif

bool linker_is_in(uintptr_t start, uintptr_t end) {
    uintptr_t linker = getauxval(AT_BASE);
#if defined(__GLIBC__) && !defined(CAIRN_STATIC)
    if (!linker) linker = (uintptr_t)&_r_debug;  // the kernel executed the linker itself
#endif
    return linker >= start && linker < end;
}

const char *linker_own_path(void) {
#if defined(__GLIBC__) && !defined(CAIRN_STATIC)
    const struct link_map *module = &_r_debug ? _r_debug.r_map : NULL;
    while (module && module->l_ld != _DYNAMIC) module = module->l_next;
    return module && module->l_name[0] == '/' ? module->l_name : NULL;
#else
    return NULL;
#endif
}

COLD void linker_find_all_next(const char *names, void **found) {
    const struct link_map *module = first_after_us();
    for (; module; module = module->l_next) {
        struct linker_symbols symbols = symbols_at(module->l_addr, module->l_ld);
        find_in_module(&symbols, names, found);
    }
}

bool linker_find_function(const char *name, uintptr_t *start, uintptr_t *end) {
    struct search search = {.name = name};
    dl_iterate_phdr(look_at_module, &search);
    *start = search.found;
    *end = search.found + search.size;
    return search.found != 0;
}

bool linker_find_local(const char *name, struct linker_local *local) {
    struct search search = {.name = name, .is_for_local = true};
    dl_iterate_phdr(look_at_module, &search);
    *local = search.local;
    return local->module;
}

// The thread's control block leads to a table with two words a module, the address first. In front
// of it is how many modules it has room for.
uintptr_t linker_local_address(const struct linker_local *local) {
#if defined(__x86_64__)
    const size_t table_word = 1;
#else
    const size_t table_word = 0;
#endif
    uintptr_t(*table)[2] = ((void **)__builtin_thread_pointer())[table_word];
    if (!table || local->module > table[-1][0]) return 0;
    uintptr_t start = table[local->module][0];
    return start && start != UINTPTR_MAX ? start + local->offset : 0;
}
