// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/entries.h"

#include <gelf.h>
#include <stdio.h>
#include <string.h>

#include "tool/attach/entry_names.h"
#include "tool/attach/executable.h"
#include "tool/base/elf_names.h"

// Sanitizers have a malloc that knows more of its blocks than an allocator: it is left alone.
static const struct {
    const char *symbol, *name;
} sanitizers[] = {
#define SANITIZER(kind, library, symbol, name, has_to_be_first) {symbol, name},
#include "format/sanitizers.def"
#undef SANITIZER
};
enum { SANITIZERS = sizeof sanitizers / sizeof *sanitizers };

// A symbol of the executable with one of these names.
struct candidate {
    struct entry entry;
    enum entry_family family;
    const struct entry_name *name;
    bool is_local, is_chosen_late;
};

// By these names libc calls its own functions, where it does not want the program's.
static const char *const inner_names[] = {"__libc_malloc", "__libc_free", "__libc_realloc"};
enum { INNER_MALLOC, INNER_FREE, INNER_REALLOC, INNER_NAMES };

struct search {
    ARRAY(struct candidate) items;
    Elf64_Sym inner[INNER_NAMES];  // of a static program
    bool has_mallctl, exports_malloc, has_free_threads, is_static;
    const char *sanitizer;  // that it is built with; NULL: none
};

static bool look_at_symbol(struct search *search, const char *name, const Elf64_Sym *symbol) {
    const char *rest = name;
    if (!strcmp(name, "mallctl")) search->has_mallctl = true;
    if (!strcmp(name, CAIRN_PYTHON_FREE_THREADED)) search->has_free_threads = true;
    for (size_t i = 0; i < SANITIZERS; i++)
        if (!strcmp(name, sanitizers[i].symbol)) search->sanitizer = sanitizers[i].name;
    for (size_t i = 0; i < INNER_NAMES && search->is_static; i++)
        if (!strcmp(name, inner_names[i])) search->inner[i] = *symbol;
    enum entry_family family = entry_family_of(&rest);
    const struct entry_name *found = entry_name_find(rest, family);
    if (!found) return true;
    struct candidate *candidate = array_push(&search->items);
    if (!candidate) return false;
    *candidate = (struct candidate){
        .entry = {.address = symbol->st_value, .size = symbol->st_size, .kind = found->kind},
        .family = family,
        .name = found,
        .is_local = GELF_ST_BIND(symbol->st_info) == STB_LOCAL,
        .is_chosen_late = GELF_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC};
    snprintf(candidate->entry.name, sizeof candidate->entry.name, "%s", name);
    return true;
}

static void want_names(struct elf_names *names) {
    elf_names_want(names, "mallctl");
    elf_names_want(names, CAIRN_PYTHON_FREE_THREADED);
    for (size_t i = 0; i < SANITIZERS; i++) elf_names_want(names, sanitizers[i].symbol);
    for (size_t i = 0; i < INNER_NAMES; i++) elf_names_want(names, inner_names[i]);
    entry_names_want(names);
}

static bool look_at_symbols(struct search *search, struct elf_names *names, Elf *elf,
                            Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    const Elf64_Sym *symbols = data ? data->d_buf : NULL;
    size_t count = symbols ? data->d_size / sizeof *symbols : 0;
    elf_names_open(names, elf, header->sh_link);
    for (size_t i = 0; i < count; i++) {
        int type = ELF64_ST_TYPE(symbols[i].st_info);
        bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
        if (!is_function || symbols[i].st_shndx == SHN_UNDEF) continue;
        const char *name = elf_names_at(names, symbols[i].st_name);
        if (!name) continue;
        if (!look_at_symbol(search, name, &symbols[i])) return false;
        if (header->sh_type == SHT_DYNSYM && !strcmp(name, "malloc")) search->exports_malloc = true;
    }
    return true;
}

static bool has_function(const struct search *search, enum entry_family family, const char *name) {
    for (size_t i = 0; i < search->items.count; i++)
        if (search->items.items[i].family == family &&
            !strcmp(search->items.items[i].name->name, name))
            return true;
    return false;
}

// A static function of another file may have the same name.
static bool has_global(const struct search *search, const char *name) {
    for (size_t i = 0; i < search->items.count; i++)
        if (!search->items.items[i].is_local && !strcmp(search->items.items[i].entry.name, name))
            return true;
    return false;
}

// A program may call functions of its own by one or two of these names. Into a static one the
// linker puts those of libc that it calls, and no others.
static bool is_allocator(const struct search *search, enum entry_family family) {
    // Others have these functions too, and use them if PYTHONMALLOC says so.
    if (1 << family & IN_PYTHON)
        return search->has_free_threads && has_function(search, family, "Malloc") &&
               has_function(search, family, "Free");
    bool has_malloc = has_function(search, family, "malloc");
    bool has_free = has_function(search, family, "free");
    if (family == FAMILY_PLAIN && search->is_static) return has_malloc;
    if (family == FAMILY_PLAIN)
        return has_malloc && has_free && has_function(search, family, "calloc") &&
               has_function(search, family, "realloc");
    return (has_malloc || has_function(search, family, "mallocx")) &&
           (has_free || has_function(search, family, "dallocx") ||
            has_function(search, family, "sdallocx"));
}

const struct entry *entries_at(const struct entries *entries, uint64_t address) {
    for (size_t i = 0; i < entries->items.count; i++)
        if (entries->items.items[i].address == address) return &entries->items.items[i];
    return NULL;
}

const struct entry *entries_named(const struct entries *entries, const char *name) {
    for (size_t i = 0; i < entries->items.count; i++)
        if (!strcmp(entries->items.items[i].name, name)) return &entries->items.items[i];
    return NULL;
}

// One function may have several names, and one name may be in two tables of symbols.
static bool add(struct entries *entries, const struct candidate *candidate, uint64_t bias,
                struct error *error) {
    const struct entry *wanted = &candidate->entry;
    uint64_t address = wanted->address + bias;
    const struct entry *same = entries_at(entries, address);
    const struct entry *namesake = entries_named(entries, wanted->name);
    if (candidate->is_chosen_late)
        return error_set(error, "%s is chosen when the program starts (IFUNC)", wanted->name);
    if (!wanted->size || wanted->size > ENTRY_MAX_BYTES)
        return error_set(error, "the size of %s is not known", wanted->name);
    if (same && same->kind != wanted->kind)
        return error_set(error, "%s and %s are one function", same->name, wanted->name);
    if (same) return true;
    if (namesake) return error_set(error, "it has two functions called %s", wanted->name);
    struct entry *entry = array_push(&entries->items);
    if (!entry) return error_set(error, "out of memory");
    *entry = *wanted;
    entry->address = address;
    return true;
}

// A static program with libc's own malloc, which C++'s operators call as they do elsewhere.
static bool is_of_libc(const struct search *search) {
    bool is_other = search->has_mallctl;
    for (unsigned family = FAMILY_PLAIN + 1; family < FAMILY_COUNT; family++)
        is_other = is_other || is_allocator(search, family);
    return search->inner[INNER_MALLOC].st_value && !is_other;
}

static bool is_operator(const struct candidate *candidate) {
    return !strncmp(candidate->name->name, "_Zn", 3) || !strncmp(candidate->name->name, "_Zd", 3);
}

// The compiler may have made one function of malloc and what libc itself calls (musl's), so that
// libc's own blocks are seen: then they are seen to be freed as well.
static void take_inner(struct entries *entries, const struct search *search, uint64_t bias) {
    static const char *const names[INNER_NAMES] = {"malloc", "free", "realloc"};
    const struct entry *outer = entries_named(entries, names[INNER_MALLOC]);
    if (!outer || outer->address != search->inner[INNER_MALLOC].st_value + bias) return;
    for (size_t i = 0; i < entries->items.count; i++) {
        struct entry *entry = &entries->items.items[i];
        for (size_t inner = INNER_FREE; inner < INNER_NAMES; inner++) {
            const Elf64_Sym *symbol = &search->inner[inner];
            if (!symbol->st_size || strcmp(entry->name, names[inner]) != 0) continue;
            entry->address = symbol->st_value + bias;
            entry->size = symbol->st_size;
        }
    }
}

static bool choose(struct entries *entries, const struct search *search, uint64_t bias,
                   struct error *error) {
    bool is_wanted[FAMILY_COUNT], is_libc = is_of_libc(search);
    for (unsigned family = FAMILY_PLAIN; family < FAMILY_COUNT; family++)
        is_wanted[family] = is_allocator(search, family);
    for (size_t i = 0; i < search->items.count; i++) {
        const struct candidate *candidate = &search->items.items[i];
        bool needs_mallctl =
            candidate->family == FAMILY_PLAIN && !(candidate->name->where & IN_PLAIN);
        if (!is_wanted[candidate->family] || (needs_mallctl && !search->has_mallctl) ||
            (candidate->is_local && has_global(search, candidate->entry.name)) ||
            (is_libc && is_operator(candidate)))
            continue;
        entries->allocator = entry_family_allocator(candidate->family);
        if (!add(entries, candidate, bias, error)) return false;
    }
    take_inner(entries, search, bias);
    entries->is_malloc = is_wanted[FAMILY_PLAIN] && search->exports_malloc;
    if (is_wanted[FAMILY_PLAIN] && search->has_mallctl)
        entries->allocator = entry_family_allocator(FAMILY_JE);
    for (unsigned family = FAMILY_RJEM; family < FAMILY_COUNT; family++)
        if (is_wanted[family]) entries->allocator = entry_family_allocator(family);
    return true;
}

// Whether the code allows it does not depend on where it is moved to, as long as that is near.
static bool check_code(const struct entries *entries, Elf *elf, uint64_t bias,
                       struct error *error) {
    for (size_t i = 0; i < entries->items.count; i++) {
        const struct entry *entry = &entries->items.items[i];
        struct code_function function;
        struct code_moved moved;
        if (!executable_code(elf, bias, entry->address, entry->size, &function))
            return error_set(error, "the code of %s is not in its file", entry->name);
        bool is_possible =
            code_move(&function, entry->address, &moved, error) &&
            (code_calls_others(&function) ||
             error_set(error, "it calls nothing, and its callers may count on that"));
        if (!is_possible) return error_wrap(error, "%s", entry->name);
    }
    return true;
}

static bool find_in(struct entries *entries, const struct executable *image, struct error *error) {
    struct search search = {.is_static = executable_is_static(image->elf)};
    struct elf_names names = {.text = NULL};
    Elf *elf = image->elf;
    uint64_t bias;
    bool is_ok = true;
    want_names(&names);
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section && is_ok;
         section = elf_nextscn(elf, section)) {
        GElf_Shdr about;
        if (!gelf_getshdr(section, &about)) continue;
        if (about.sh_type == SHT_SYMTAB || about.sh_type == SHT_DYNSYM)
            is_ok = look_at_symbols(&search, &names, elf, section, &about);
    }
    if (!is_ok) error_set(error, "out of memory");
    bool has_any = search.items.count;
    if (is_ok && has_any && search.sanitizer) {
        is_ok = error_set(error, "it is built with %s", search.sanitizer);
    } else if (is_ok && has_any && executable_bias(image, &bias)) {
        executable_extent(elf, bias, &entries->low, &entries->high, &entries->start);
        is_ok = choose(entries, &search, bias, error) && check_code(entries, elf, bias, error);
    }
    array_free(&search.items);
    return is_ok;
}

bool entries_find(struct entries *entries, const struct remote *remote, struct error *error) {
    struct executable image;
    *entries = (struct entries){.allocator = NULL};
    bool is_ok = !executable_open(&image, remote) || find_in(entries, &image, error);
    executable_close(&image);
    return is_ok;
}

bool entries_find_in_file(struct entries *entries, const char *path, entries_visitor *visit,
                          void *context, struct error *error) {
    struct executable image;
    struct code_function code;
    *entries = (struct entries){.allocator = NULL};
    bool is_ok = !executable_open_file(&image, path) || find_in(entries, &image, error);
    for (size_t i = 0; is_ok && i < entries->items.count; i++) {
        const struct entry *entry = &entries->items.items[i];
        is_ok = (executable_code(image.elf, 0, entry->address, entry->size, &code) ||
                 error_set(error, "its file has changed")) &&
                visit(context, entry, &code, error);
    }
    executable_close(&image);
    return is_ok;
}

void entries_free(struct entries *entries) {
    array_free(&entries->items);
    array_free(&entries->parts);
}
