// SPDX-License-Identifier: Apache-2.0
// Functions of the executable that the user names, beside those of an allocator that is known.
#include "tool/attach/entries.h"

#include <gelf.h>
#include <stdio.h>
#include <string.h>

#include "tool/attach/executable.h"

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
    const struct entry *namesake = entries_named(entries, wish->name);
    if (same && same->way && same->number == number) return true;
    if (same) return error_set(error, "it is %s too, which is recorded already", same->name);
    if (namesake) return error_set(error, "the program has two functions of that name");
    if (GELF_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
        return error_set(error,
                         "it is chosen when the program starts (IFUNC); name those that it is "
                         "chosen from");
    if (!symbol->st_size || symbol->st_size > ENTRY_MAX_BYTES)
        return error_set(error, "its size is not known");
    struct entry entry = {
        .address = address, .size = symbol->st_size, .way = wish->way, .number = number};
    snprintf(entry.name, sizeof entry.name, "%s", wish->name);
    if (!executable_code(elf, bias, entry.address, entry.size, &function))
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

static bool find_wishes(struct wishing *wishing, const struct executable *image,
                        struct error *error) {
    Elf *elf = image->elf;
    bool is_ok = true;
    if (!executable_bias(image, &wishing->bias)) return true;
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section && is_ok;
         section = elf_nextscn(elf, section)) {
        GElf_Shdr about;
        if (!gelf_getshdr(section, &about)) continue;
        if (about.sh_type == SHT_SYMTAB || about.sh_type == SHT_DYNSYM)
            is_ok = look_for_wishes(wishing, elf, section, &about, error);
    }
    if (wishing->entries->items.count)
        executable_extent(elf, wishing->bias, &wishing->entries->low, &wishing->entries->high,
                          &wishing->entries->start);
    return is_ok;
}

bool entries_add_wishes(struct entries *entries, const struct remote *remote,
                        struct entry_wish *wishes, size_t count, struct error *error) {
    struct wishing wishing = {.entries = entries, .wishes = wishes, .count = count};
    struct executable image;
    bool is_ok = !executable_open(&image, remote) || find_wishes(&wishing, &image, error);
    executable_close(&image);
    return is_ok;
}

bool entries_check_wishes(const char *path, struct entry_wish *wishes, size_t count,
                          struct error *error) {
    struct entries entries = {.allocator = NULL};
    struct wishing wishing = {.entries = &entries, .wishes = wishes, .count = count};
    struct executable image;
    bool is_ok = !executable_open_file(&image, path) || find_wishes(&wishing, &image, error);
    executable_close(&image);
    entries_free(&entries);
    return is_ok;
}
