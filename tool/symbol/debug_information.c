// SPDX-License-Identifier: Apache-2.0
#include "tool/symbol/debug_information.h"

#include <elfutils/libdwelf.h>

// The alternate is handed to libdw only after its build-id was checked.
static void open_alternate(struct debug_information *information,
                           const struct symbol_options *options, struct string_pool *store) {
    const char *name;
    const void *build_id;
    ssize_t bytes = dwelf_dwarf_gnu_debugaltlink(information->dwarf, &name, &build_id);
    if (bytes <= 0) return;
    locate_alternate(&information->alternate, information->path, name, build_id, (size_t)bytes,
                     options, store);
    if (!information->alternate.elf) {
        information->note = "the file of shared debug information (dwz) is missing";
        return;
    }
    information->alternate_dwarf = dwarf_begin_elf(information->alternate.elf, DWARF_C_READ, NULL);
    if (information->alternate_dwarf)
        dwarf_setalt(information->dwarf, information->alternate_dwarf);
}

void debug_information_open(struct debug_information *information, const struct located *files,
                            const struct symbol_options *options, struct string_pool *store) {
    *information = (struct debug_information){.alternate = IMAGE_CLOSED};
    if (image_has_dwarf(&files->module)) {
        information->image = &files->module;
        information->path = files->module_path;
    } else if (image_has_dwarf(&files->debug)) {
        information->image = &files->debug;
        information->path = files->debug_path;
    } else {
        return;
    }
    information->dwarf = dwarf_begin_elf(information->image->elf, DWARF_C_READ, NULL);
    if (information->dwarf) open_alternate(information, options, store);
}

void debug_information_close(struct debug_information *information) {
    if (information->dwarf) dwarf_end(information->dwarf);
    if (information->alternate_dwarf) dwarf_end(information->alternate_dwarf);
    image_close(&information->alternate);
    *information = (struct debug_information){.alternate = IMAGE_CLOSED};
}
