// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/entries.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tool/attach/code.h"
#include "tool/proc/process.h"

// More than any allocator's function has.
#define FUNCTION_MAX_BYTES (1u << 20)

enum family { PLAIN, RJEM, JE, TC, MI, PYTHON_OBJECTS, PYTHON_MEMORY, FAMILY_COUNT };
enum {
    IN_PLAIN = 1 << PLAIN,
    IN_JE = 1 << RJEM | 1 << JE,
    IN_TC = 1 << TC,
    IN_MI = 1 << MI,
    IN_PYTHON = 1 << PYTHON_OBJECTS | 1 << PYTHON_MEMORY,
};
enum { IN_ALL = IN_PLAIN | IN_JE | IN_TC | IN_MI, WITH_JEMALLOC = 1 << FAMILY_COUNT };

static const struct {
    const char *prefix, *allocator;
} families[FAMILY_COUNT] = {
    [PLAIN] = {"", "its own malloc"},
    [RJEM] = {"_rjem_", "jemalloc"},
    [JE] = {"je_", "jemalloc"},
    [TC] = {"tc_", "tcmalloc"},
    [MI] = {"mi_", "mimalloc"},
    [PYTHON_OBJECTS] = {"_PyObject_Mi", "CPython's mimalloc"},
    [PYTHON_MEMORY] = {"_PyMem_Mi", "CPython's mimalloc"},
};

// In the order of strcmp. WITH_JEMALLOC: without a prefix only where mallctl is defined as well,
// since others may use these names.
static const struct entry_name {
    const char *name;
    enum cairn_entry_kind kind;
    unsigned where;
} entry_names[] = {
    {"Calloc", CAIRN_ENTRY_ARENA_CALLOC, IN_PYTHON},
    {"Free", CAIRN_ENTRY_ARENA_FREE, IN_PYTHON},
    {"Malloc", CAIRN_ENTRY_ARENA_ALLOC, IN_PYTHON},
    {"Realloc", CAIRN_ENTRY_ARENA_REALLOC, IN_PYTHON},
    {"_ZdaPv", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdaPvRKSt9nothrow_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdaPvSt11align_val_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdaPvm", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdaPvmSt11align_val_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPv", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPvRKSt9nothrow_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPvSt11align_val_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPvm", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPvmSt11align_val_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_Znam", CAIRN_ENTRY_ALLOC, IN_PLAIN},
    {"_ZnamRKSt9nothrow_t", CAIRN_ENTRY_ALLOC, IN_PLAIN},
    {"_ZnamSt11align_val_t", CAIRN_ENTRY_NEW, IN_PLAIN},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", CAIRN_ENTRY_NEW, IN_PLAIN},
    {"_Znwm", CAIRN_ENTRY_ALLOC, IN_PLAIN},
    {"_ZnwmRKSt9nothrow_t", CAIRN_ENTRY_ALLOC, IN_PLAIN},
    {"_ZnwmSt11align_val_t", CAIRN_ENTRY_NEW, IN_PLAIN},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", CAIRN_ENTRY_NEW, IN_PLAIN},
    {"aligned_alloc", CAIRN_ENTRY_ALIGNED, IN_ALL},
    {"calloc", CAIRN_ENTRY_CALLOC, IN_ALL},
    {"calloc_aligned", CAIRN_ENTRY_CALLOC, IN_MI},
    {"cfree", CAIRN_ENTRY_FREE, IN_ALL},
    {"dallocx", CAIRN_ENTRY_FREE, IN_JE | WITH_JEMALLOC},
    {"delete", CAIRN_ENTRY_FREE, IN_TC},
    {"delete_aligned", CAIRN_ENTRY_FREE, IN_TC},
    {"delete_aligned_nothrow", CAIRN_ENTRY_FREE, IN_TC},
    {"delete_nothrow", CAIRN_ENTRY_FREE, IN_TC},
    {"delete_sized", CAIRN_ENTRY_FREE, IN_TC},
    {"delete_sized_aligned", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray_aligned", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray_aligned_nothrow", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray_nothrow", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray_sized", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray_sized_aligned", CAIRN_ENTRY_FREE, IN_TC},
    {"free", CAIRN_ENTRY_FREE, IN_ALL},
    {"free_aligned", CAIRN_ENTRY_FREE, IN_MI},
    {"free_aligned_sized", CAIRN_ENTRY_FREE, IN_PLAIN | IN_JE},
    {"free_size", CAIRN_ENTRY_FREE, IN_MI},
    {"free_size_aligned", CAIRN_ENTRY_FREE, IN_MI},
    {"free_sized", CAIRN_ENTRY_FREE, IN_PLAIN | IN_JE | IN_TC},
    {"malloc", CAIRN_ENTRY_ALLOC, IN_ALL},
    {"malloc_aligned", CAIRN_ENTRY_NEW, IN_MI},
    {"malloc_small", CAIRN_ENTRY_ALLOC, IN_MI},
    {"mallocn", CAIRN_ENTRY_CALLOC, IN_MI},
    {"mallocx", CAIRN_ENTRY_ALLOC, IN_JE | WITH_JEMALLOC},
    {"memalign", CAIRN_ENTRY_ALIGNED, IN_ALL},
    {"moz_arena_calloc", CAIRN_ENTRY_ARENA_CALLOC, IN_PLAIN},
    {"moz_arena_free", CAIRN_ENTRY_ARENA_FREE, IN_PLAIN},
    {"moz_arena_malloc", CAIRN_ENTRY_ARENA_ALLOC, IN_PLAIN},
    {"moz_arena_memalign", CAIRN_ENTRY_ARENA_ALIGNED, IN_PLAIN},
    {"moz_arena_realloc", CAIRN_ENTRY_ARENA_REALLOC, IN_PLAIN},
    {"new", CAIRN_ENTRY_ALLOC, IN_TC | IN_MI},
    {"new_aligned", CAIRN_ENTRY_NEW, IN_TC | IN_MI},
    {"new_aligned_nothrow", CAIRN_ENTRY_NEW, IN_TC | IN_MI},
    {"new_n", CAIRN_ENTRY_CALLOC, IN_MI},
    {"new_nothrow", CAIRN_ENTRY_ALLOC, IN_TC | IN_MI},
    {"new_realloc", CAIRN_ENTRY_REALLOC, IN_MI},
    {"new_reallocn", CAIRN_ENTRY_REARRAY, IN_MI},
    {"newarray", CAIRN_ENTRY_ALLOC, IN_TC},
    {"newarray_aligned", CAIRN_ENTRY_NEW, IN_TC},
    {"newarray_aligned_nothrow", CAIRN_ENTRY_NEW, IN_TC},
    {"newarray_nothrow", CAIRN_ENTRY_ALLOC, IN_TC},
    {"posix_memalign", CAIRN_ENTRY_MEMALIGN, IN_ALL},
    {"pvalloc", CAIRN_ENTRY_ALLOC, IN_ALL},
    {"rallocx", CAIRN_ENTRY_REALLOC, IN_JE | WITH_JEMALLOC},
    {"realloc", CAIRN_ENTRY_REALLOC, IN_ALL},
    {"realloc_aligned", CAIRN_ENTRY_REALLOC, IN_MI},
    {"reallocarray", CAIRN_ENTRY_REARRAY, IN_ALL},
    {"reallocn", CAIRN_ENTRY_REARRAY, IN_MI},
    {"rezalloc", CAIRN_ENTRY_REALLOC, IN_MI},
    {"rezalloc_aligned", CAIRN_ENTRY_REALLOC, IN_MI},
    {"sdallocx", CAIRN_ENTRY_FREE, IN_JE | WITH_JEMALLOC},
    {"valloc", CAIRN_ENTRY_ALLOC, IN_ALL},
    {"xallocx", CAIRN_ENTRY_RESIZE, IN_JE | WITH_JEMALLOC},
    {"zalloc", CAIRN_ENTRY_ALLOC, IN_MI},
    {"zalloc_aligned", CAIRN_ENTRY_NEW, IN_MI},
    {"zalloc_small", CAIRN_ENTRY_ALLOC, IN_MI},
};
enum { ENTRY_NAMES = sizeof entry_names / sizeof *entry_names };

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
    enum family family;
    const struct entry_name *name;
    bool is_local, is_chosen_late;
};

struct search {
    ARRAY(struct candidate) items;
    bool has_mallctl, exports_malloc, has_free_threads;
    const char *sanitizer;  // that it is built with; NULL: none
};

static int compare_name(const void *key, const void *item) {
    return strcmp(key, ((const struct entry_name *)item)->name);
}

// The family whose prefix the name has, and what it is without that.
static enum family family_of(const char **name) {
    for (unsigned family = PLAIN + 1; family < FAMILY_COUNT; family++) {
        size_t length = strlen(families[family].prefix);
        if (strncmp(*name, families[family].prefix, length) != 0) continue;
        *name += length;
        return family;
    }
    return PLAIN;
}

static bool look_at_symbol(struct search *search, const char *name, const Elf64_Sym *symbol) {
    const char *rest = name;
    if (!strcmp(name, "mallctl")) search->has_mallctl = true;
    if (!strcmp(name, CAIRN_PYTHON_FREE_THREADED)) search->has_free_threads = true;
    for (size_t i = 0; i < SANITIZERS; i++)
        if (!strcmp(name, sanitizers[i].symbol)) search->sanitizer = sanitizers[i].name;
    enum family family = family_of(&rest);
    const struct entry_name *found =
        bsearch(rest, entry_names, ENTRY_NAMES, sizeof *entry_names, compare_name);
    unsigned wanted = 1u << family | (family == PLAIN ? WITH_JEMALLOC : 0);
    if (!found || !(found->where & wanted)) return true;
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

static bool look_at_symbols(struct search *search, Elf *elf, Elf_Scn *section,
                            const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    const Elf64_Sym *symbols = data ? data->d_buf : NULL;
    size_t count = symbols ? data->d_size / sizeof *symbols : 0;
    for (size_t i = 0; i < count; i++) {
        int type = ELF64_ST_TYPE(symbols[i].st_info);
        bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
        if (!is_function || symbols[i].st_shndx == SHN_UNDEF) continue;
        const char *name = elf_strptr(elf, header->sh_link, symbols[i].st_name);
        if (!name) continue;
        if (!look_at_symbol(search, name, &symbols[i])) return false;
        if (header->sh_type == SHT_DYNSYM && !strcmp(name, "malloc")) search->exports_malloc = true;
    }
    return true;
}

static bool has_function(const struct search *search, enum family family, const char *name) {
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

// A program may call functions of its own by one or two of these names.
static bool is_allocator(const struct search *search, enum family family) {
    // Others have these functions too, and use them if PYTHONMALLOC says so.
    if (1 << family & IN_PYTHON)
        return search->has_free_threads && has_function(search, family, "Malloc") &&
               has_function(search, family, "Free");
    bool has_malloc = has_function(search, family, "malloc");
    bool has_free = has_function(search, family, "free");
    if (family == PLAIN)
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

static const struct entry *find_named(const struct entries *entries, const char *name) {
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
    const struct entry *namesake = find_named(entries, wanted->name);
    if (candidate->is_chosen_late)
        return error_set(error, "%s is chosen when the program starts (IFUNC)", wanted->name);
    if (!wanted->size || wanted->size > FUNCTION_MAX_BYTES)
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

static bool choose(struct entries *entries, const struct search *search, uint64_t bias,
                   struct error *error) {
    bool is_wanted[FAMILY_COUNT];
    for (unsigned family = PLAIN; family < FAMILY_COUNT; family++)
        is_wanted[family] = is_allocator(search, family);
    for (size_t i = 0; i < search->items.count; i++) {
        const struct candidate *candidate = &search->items.items[i];
        bool needs_mallctl = candidate->family == PLAIN && !(candidate->name->where & IN_PLAIN);
        if (!is_wanted[candidate->family] || (needs_mallctl && !search->has_mallctl) ||
            (candidate->is_local && has_global(search, candidate->entry.name)))
            continue;
        entries->allocator = families[candidate->family].allocator;
        if (!add(entries, candidate, bias, error)) return false;
    }
    entries->is_malloc = is_wanted[PLAIN] && search->exports_malloc;
    if (is_wanted[PLAIN] && search->has_mallctl) entries->allocator = families[JE].allocator;
    for (unsigned family = RJEM; family < FAMILY_COUNT; family++)
        if (is_wanted[family]) entries->allocator = families[family].allocator;
    return true;
}

// The code of a function as the file has it: in memory another tool's jumps may lie over it.
static bool find_code(Elf *elf, uint64_t bias, const struct entry *entry,
                      struct code_function *function) {
    size_t count = 0, file_bytes = 0;
    GElf_Phdr segment;
    const char *file = elf_rawfile(elf, &file_bytes);
    if (!file || elf_getphdrnum(elf, &count) != 0) return false;
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD) continue;
        uint64_t offset = entry->address - bias - segment.p_vaddr;
        if (offset >= segment.p_filesz || entry->size > segment.p_filesz - offset ||
            segment.p_offset > file_bytes || segment.p_filesz > file_bytes - segment.p_offset)
            continue;
        uint64_t left = segment.p_filesz - offset - entry->size;
        *function = (struct code_function){
            .bytes = (const uint8_t *)file + segment.p_offset + offset,
            .size = (size_t)entry->size,
            .available = (size_t)entry->size + (left < CODE_PADDING_MAX ? left : CODE_PADDING_MAX),
            .address = entry->address};
        return true;
    }
    return false;
}

// Whether the code allows it does not depend on where it is moved to, as long as that is near.
static bool check_code(const struct entries *entries, Elf *elf, uint64_t bias,
                       struct error *error) {
    for (size_t i = 0; i < entries->items.count; i++) {
        const struct entry *entry = &entries->items.items[i];
        struct code_function function;
        struct code_moved moved;
        if (!find_code(elf, bias, entry, &function))
            return error_set(error, "the code of %s is not in its file", entry->name);
        bool is_possible =
            code_move(&function, entry->address, &moved, error) &&
            (code_calls_others(&function) ||
             error_set(error, "it calls nothing, and its callers may count on that"));
        if (!is_possible) return error_wrap(error, "%s", entry->name);
    }
    return true;
}

// The load bias of the executable, by the address of its entry in the auxiliary vector; 0 for a
// file.
static bool find_bias(pid_t pid, const GElf_Ehdr *header, uint64_t *bias) {
    uint64_t entry = header->e_entry;
    bool is_known = !pid || process_auxiliary(pid, AT_ENTRY, &entry);
    *bias = entry - header->e_entry;
    return is_known;
}

static void find_segments(struct entries *entries, Elf *elf, uint64_t bias) {
    size_t count = 0;
    GElf_Phdr segment;
    GElf_Ehdr header;
    entries->low = UINT64_MAX;
    if (gelf_getehdr(elf, &header)) entries->start = bias + header.e_entry;
    if (elf_getphdrnum(elf, &count) != 0) count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD) continue;
        uint64_t start = bias + segment.p_vaddr, end = start + segment.p_memsz;
        if (start < entries->low) entries->low = start;
        if (end > entries->high) entries->high = end;
    }
}

// `pid` 0: in a file.
static bool find_in_elf(struct entries *entries, pid_t pid, Elf *elf, struct error *error) {
    struct search search = {.has_mallctl = false};
    GElf_Ehdr header;
    uint64_t bias;
    bool is_ok = true;
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section && is_ok;
         section = elf_nextscn(elf, section)) {
        GElf_Shdr about;
        if (!gelf_getshdr(section, &about)) continue;
        if (about.sh_type == SHT_SYMTAB || about.sh_type == SHT_DYNSYM)
            is_ok = look_at_symbols(&search, elf, section, &about);
    }
    if (!is_ok) error_set(error, "out of memory");
    bool has_any = search.items.count && gelf_getehdr(elf, &header);
    if (is_ok && has_any && search.sanitizer) {
        is_ok = error_set(error, "it is built with %s", search.sanitizer);
    } else if (is_ok && has_any && find_bias(pid, &header, &bias)) {
        find_segments(entries, elf, bias);
        is_ok = choose(entries, &search, bias, error) && check_code(entries, elf, bias, error);
    }
    array_free(&search.items);
    return is_ok;
}

// The executable's file.
struct image {
    int file;
    Elf *elf;
};

// `file`: a descriptor, which belongs to the image, or -1.
static bool image_open(struct image *image, int file) {
    *image = (struct image){.file = file};
    elf_version(EV_CURRENT);
    if (image->file >= 0) image->elf = elf_begin(image->file, ELF_C_READ_MMAP, NULL);
    return image->elf && elf_kind(image->elf) == ELF_K_ELF &&
           gelf_getclass(image->elf) == ELFCLASS64;
}

static void image_close(struct image *image) {
    if (image->elf) elf_end(image->elf);
    if (image->file >= 0) close(image->file);
}

// What the user can do instead.
#define WAY_OUT                                                                                    \
    "build it with -fpatchable-function-entry=5, name a function that calls it or that it calls, " \
    "or tell cairn from within (docs/reference/api.md#pools)"

// A symbol of a wished function; a static one of another file may have the same name.
static bool add_wish(struct entries *entries, Elf *elf, const Elf64_Sym *symbol,
                     const struct entry_wish *wish, unsigned number, uint64_t bias,
                     struct error *error) {
    struct code_function function;
    struct code_moved moved;
    struct error why;
    uint64_t address = symbol->st_value + bias;
    const struct entry *same = entries_at(entries, address);
    const struct entry *namesake = find_named(entries, wish->name);
    if (same && same->way && same->number == number) return true;
    if (same) return error_set(error, "it is %s too, which is recorded already", same->name);
    if (namesake) return error_set(error, "the program has two functions of that name");
    if (GELF_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
        return error_set(error,
                         "it is chosen when the program starts (IFUNC); name those that it is "
                         "chosen from");
    if (!symbol->st_size || symbol->st_size > FUNCTION_MAX_BYTES)
        return error_set(error, "its size is not known");
    struct entry entry = {
        .address = address, .size = symbol->st_size, .way = wish->way, .number = number};
    snprintf(entry.name, sizeof entry.name, "%s", wish->name);
    if (!find_code(elf, bias, &entry, &function))
        return error_set(error, "its code is not in the program's file");
    if (!code_move(&function, address, &moved, &why))
        return error_set(error, "%s; " WAY_OUT, why.text);
    struct entry *slot = array_push(&entries->items);
    if (!slot) return error_set(error, "out of memory");
    *slot = entry;
    return true;
}

struct wishing {
    struct entries *entries;
    struct entry_wish *wishes;
    size_t count;
    uint64_t bias;
};

// What has the name and is of the kind that is wished.
static bool grant_wish(const struct wishing *wishing, Elf *elf, const Elf64_Sym *symbol,
                       unsigned number, struct error *error) {
    struct entry_wish *wish = &wishing->wishes[number];
    int type = ELF64_ST_TYPE(symbol->st_info);
    bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
    if (wish->is_variable && type == STT_OBJECT) wish->address = symbol->st_value + wishing->bias;
    return wish->is_variable || !is_function ||
           add_wish(wishing->entries, elf, symbol, wish, number, wishing->bias, error);
}

static bool look_for_wishes(const struct wishing *wishing, Elf *elf, Elf_Scn *section,
                            const GElf_Shdr *header, struct error *error) {
    Elf_Data *data = elf_getdata(section, NULL);
    const Elf64_Sym *symbols = data ? data->d_buf : NULL;
    size_t count = symbols ? data->d_size / sizeof *symbols : 0;
    for (size_t i = 0; i < count; i++) {
        if (symbols[i].st_shndx == SHN_UNDEF) continue;
        const char *name = elf_strptr(elf, header->sh_link, symbols[i].st_name);
        for (unsigned wish = 0; name && wish < wishing->count; wish++)
            if (!strcmp(name, wishing->wishes[wish].name) &&
                !grant_wish(wishing, elf, &symbols[i], wish, error))
                return error_wrap(error, "%s", name);
    }
    return true;
}

// `pid` 0: in a file.
static bool find_wishes(struct wishing *wishing, pid_t pid, Elf *elf, struct error *error) {
    GElf_Ehdr header;
    bool is_ok = true;
    if (!gelf_getehdr(elf, &header) || !find_bias(pid, &header, &wishing->bias)) return true;
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section && is_ok;
         section = elf_nextscn(elf, section)) {
        GElf_Shdr about;
        if (!gelf_getshdr(section, &about)) continue;
        if (about.sh_type == SHT_SYMTAB || about.sh_type == SHT_DYNSYM)
            is_ok = look_for_wishes(wishing, elf, section, &about, error);
    }
    if (wishing->entries->items.count) find_segments(wishing->entries, elf, wishing->bias);
    return is_ok;
}

bool entries_add_wishes(struct entries *entries, const struct remote *remote,
                        struct entry_wish *wishes, size_t count, struct error *error) {
    struct wishing wishing = {.entries = entries, .wishes = wishes, .count = count};
    struct image image;
    bool is_ok = !image_open(&image, process_open(remote->pid, "exe", O_RDONLY)) ||
                 find_wishes(&wishing, remote->pid, image.elf, error);
    image_close(&image);
    return is_ok;
}

bool entries_check_wishes(const char *path, struct entry_wish *wishes, size_t count,
                          struct error *error) {
    struct entries entries = {.allocator = NULL};
    struct wishing wishing = {.entries = &entries, .wishes = wishes, .count = count};
    struct image image;
    bool is_ok = !image_open(&image, open(path, O_RDONLY | O_CLOEXEC)) ||
                 find_wishes(&wishing, 0, image.elf, error);
    image_close(&image);
    entries_free(&entries);
    return is_ok;
}

bool entries_find(struct entries *entries, const struct remote *remote, struct error *error) {
    struct image image;
    *entries = (struct entries){.allocator = NULL};
    bool is_ok = !image_open(&image, process_open(remote->pid, "exe", O_RDONLY)) ||
                 find_in_elf(entries, remote->pid, image.elf, error);
    image_close(&image);
    return is_ok;
}

bool entries_find_in_file(struct entries *entries, const char *path, entries_visitor *visit,
                          void *context, struct error *error) {
    struct image image;
    struct code_function code;
    *entries = (struct entries){.allocator = NULL};
    bool is_ok = !image_open(&image, open(path, O_RDONLY | O_CLOEXEC)) ||
                 find_in_elf(entries, 0, image.elf, error);
    for (size_t i = 0; is_ok && i < entries->items.count; i++) {
        const struct entry *entry = &entries->items.items[i];
        is_ok =
            (find_code(image.elf, 0, entry, &code) || error_set(error, "its file has changed")) &&
            visit(context, entry, &code, error);
    }
    image_close(&image);
    return is_ok;
}

// What lies between the allocator's entries is the allocator's, and so is every local function of a
// source file that has one there.
struct search_parts {
    struct entries *entries;
    uint64_t bias, main;
    size_t file_start;   // number of the first part of the file that is being read
    bool has_inner;      // one of them lies between the entries
    bool is_file_named;  // behind a file without a name come hidden functions of all files
};

static bool is_between(const struct entries *entries, uint64_t pc) {
    return pc >= entries->heart && pc < entries->heart_end;
}

static void end_file(struct search_parts *search) {
    if (!search->has_inner || !search->is_file_named)
        search->entries->parts.count = search->file_start;
    search->file_start = search->entries->parts.count;
    search->has_inner = false;
}

static bool look_at_part(struct search_parts *search, const Elf64_Sym *symbol, const char *name) {
    uint64_t start = symbol->st_value + search->bias;
    if (ELF64_ST_TYPE(symbol->st_info) == STT_FILE) {
        end_file(search);
        search->is_file_named = *name;
    }
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF) return true;
    if (!strcmp(name, "main")) search->main = start;
    if (ELF64_ST_BIND(symbol->st_info) != STB_LOCAL) return true;
    struct entry_part *part = array_push(&search->entries->parts);
    if (!part) return false;
    *part = (struct entry_part){start, start + symbol->st_size};
    if (is_between(search->entries, start)) search->has_inner = true;
    return true;
}

// False: there is no table of them, or no memory.
static bool look_at_parts(struct search_parts *search, Elf *elf) {
    bool is_ok = false;
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB) continue;
        Elf_Data *data = elf_getdata(section, NULL);
        const Elf64_Sym *symbols = data ? data->d_buf : NULL;
        size_t count = symbols ? data->d_size / sizeof *symbols : 0;
        is_ok = count > 0;
        for (size_t i = 0; is_ok && i < count; i++) {
            const char *name = elf_strptr(elf, header.sh_link, symbols[i].st_name);
            is_ok = look_at_part(search, &symbols[i], name ? name : "");
        }
        end_file(search);
    }
    return is_ok;
}

bool entries_find_parts(struct entries *entries, const struct remote *remote, struct error *error) {
    struct search_parts search = {.entries = entries};
    struct image image;
    GElf_Ehdr header;
    entries->heart = UINT64_MAX;
    for (size_t i = 0; i < entries->items.count; i++) {
        const struct entry *entry = &entries->items.items[i];
        uint64_t end = entry->address + entry->size;
        if (entry->address < entries->heart) entries->heart = entry->address;
        if (end > entries->heart_end) entries->heart_end = end;
    }
    bool is_read = image_open(&image, process_open(remote->pid, "exe", O_RDONLY)) &&
                   gelf_getehdr(image.elf, &header) &&
                   find_bias(remote->pid, &header, &search.bias) &&
                   look_at_parts(&search, image.elf);
    image_close(&image);
    if (!is_read) return error_set(error, "its symbols were taken away (strip)");
    return !is_between(entries, search.main) ||
           error_set(error, "its code lies among the program's own");
}

bool entries_may_hold(const struct entries *entries, uint64_t pc, const char *name) {
    const char *rest = name;
    if (is_between(entries, pc)) return true;
    for (size_t i = 0; i < entries->parts.count; i++)
        if (pc >= entries->parts.items[i].start && pc < entries->parts.items[i].end) return true;
    if (!name) return pc >= entries->low && pc < entries->high;
    return family_of(&rest) != PLAIN || strstr(name, "_mi_") == name || strstr(name, "tcmalloc");
}

void entries_free(struct entries *entries) {
    array_free(&entries->items);
    array_free(&entries->parts);
}
