// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/static_library.h"

#include <stdio.h>

#include "format/attachment.h"
#include "tool/base/unnamed_file.h"
#include "tool/proc/elf_headers.h"
#include "tool/proc/maps.h"

static bool read_module(struct loaded_module *module, const struct remote *remote) {
    Elf64_Phdr segments[ELF_HEADERS_MAX];
    const struct memory_reader reader = remote_reader(remote);
    size_t count = elf_headers_at(&reader, module->bias, segments);
    bool is_read = false;
    for (size_t i = 0; i < count; i++) {
        uint64_t align = segments[i].p_align ? segments[i].p_align : 1;
        uint64_t end = module->bias + segments[i].p_vaddr + segments[i].p_memsz + align - 1;
        if (segments[i].p_type == PT_LOAD && end > module->end) module->end = end & ~(align - 1);
        if (segments[i].p_type == PT_DYNAMIC)
            is_read = module_read_dynamic(module, remote, module->bias + segments[i].p_vaddr);
    }
    return is_read;
}

uint64_t static_library_take(struct loaded_modules *modules, const struct remote *remote,
                             uint64_t start) {
    struct loaded_module module = {.bias = start, .start = start};
    snprintf(module.name, sizeof module.name, "/memfd:" STATIC_LIBRARY_FILE);
    bool is_read = read_module(&module, remote);
    uint64_t place = is_read ? module_symbol(&module, remote, "cairn_attachment") : 0;
    struct loaded_module *item = place ? array_push(&modules->items) : NULL;
    if (item)
        *item = module;
    else
        module_free(&module);
    return item ? place : 0;
}

static bool is_recording(const struct remote *remote, uint64_t place) {
    struct cairn_attachment known;
    return remote_read(remote, place, &known, sizeof known) &&
           known.magic == CAIRN_ATTACHMENT_MAGIC && known.is_running;
}

static uint64_t take_recording(struct loaded_modules *modules, const struct remote *remote,
                               uint64_t start) {
    uint64_t place = static_library_take(modules, remote, start);
    if (place && is_recording(remote, place)) return place;
    if (place) module_free(&modules->items.items[--modules->items.count]);
    return 0;
}

uint64_t static_library_find(struct loaded_modules *modules, const struct remote *remote) {
    struct maps maps;
    struct mapping mapping;
    uint64_t place = 0;
    if (!maps_open(&maps, remote->pid, "maps", NULL)) return 0;
    while (!place && maps_next(&maps, &mapping))
        if (!mapping.offset && unnamed_file_is_called(mapping.name, "libcairn"))
            place = take_recording(modules, remote, mapping.start);
    maps_close(&maps);
    return place;
}
