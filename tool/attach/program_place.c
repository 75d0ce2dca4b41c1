// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/program_place.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <string.h>

#include "tool/attach/module_tables.h"
#include "tool/proc/elf_headers.h"
#include "tool/proc/mapped_file.h"
#include "tool/proc/maps.h"
#include "tool/proc/process.h"

enum { DYNAMIC_MAX = 256 };

// The executable's dynamic section, whose DT_DEBUG leads to the linker's list.
static uint64_t find_debug(const struct program_place *place, const struct remote *remote) {
    Elf64_Phdr segments[ELF_HEADERS_MAX];
    const struct memory_reader reader = remote_reader(remote);
    uint64_t bias = 0, dynamic = 0;
    size_t count = elf_headers_read(&reader, place->headers, place->count, segments);
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_PHDR) bias = place->headers - segments[i].p_vaddr;
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_DYNAMIC) dynamic = bias + segments[i].p_vaddr;
    for (size_t i = 0; dynamic && i < DYNAMIC_MAX; i++) {
        Elf64_Dyn entry;
        if (!remote_read(remote, dynamic + i * sizeof entry, &entry, sizeof entry)) return 0;
        if (entry.d_tag == DT_NULL) return 0;
        if (entry.d_tag == DT_DEBUG) return entry.d_un.d_ptr;
    }
    return 0;
}

// Reads the dynamic linker that the kernel executed, by the program headers that it was told. False
// of what is none: a static program.
static bool read_linker(const struct program_place *place, const struct remote *remote,
                        struct loaded_module *linker) {
    Elf64_Phdr segments[ELF_HEADERS_MAX];
    const struct memory_reader reader = remote_reader(remote);
    uint64_t start = place->headers & ~(process_page_bytes() - 1);
    size_t count = elf_headers_at(&reader, start, segments);
    *linker = (struct loaded_module){.bias = start};
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_DYNAMIC)
            return module_read_dynamic(linker, remote, start + segments[i].p_vaddr);
    return false;
}

// glibc's has the structure itself as a symbol, musl's a pointer to it.
static uint64_t find_debug_of_linker(struct loaded_module *linker, const struct remote *remote) {
    uint64_t debug = module_symbol(linker, remote, "_r_debug");
    uint64_t pointer = debug ? 0 : module_symbol(linker, remote, "_dl_debug_addr");
    if (pointer && !remote_read(remote, pointer, &debug, sizeof debug)) return 0;
    return debug;
}

// The first mapping of the file that holds the address: of a file's, the header lies there.
static uint64_t find_header(const struct remote *remote, uint64_t address) {
    struct maps maps;
    struct mapping mapping;
    uint64_t start = 0, inode = 0;
    bool is_found = false;
    if (!maps_open(&maps, remote->pid, "maps", NULL)) return 0;
    while (!is_found && maps_next(&maps, &mapping)) {
        if (mapping_is_file(&mapping) && mapping.inode != inode) {
            start = mapping.start;
            inode = mapping.inode;
        }
        is_found = address >= mapping.start && address < mapping.end;
    }
    maps_close(&maps);
    return is_found ? start : 0;
}

static void read_given(struct program_place *place, const struct remote *remote) {
    struct r_debug debug;
    struct link_map program;
    Elf64_Ehdr header;
    if (!remote_read(remote, place->debug, &debug, sizeof debug) || !debug.r_map ||
        !remote_read(remote, (uint64_t)(uintptr_t)debug.r_map, &program, sizeof program)) {
        place->debug = 0;
        return;
    }
    uint64_t start = find_header(remote, (uint64_t)(uintptr_t)program.l_ld);
    if (!start || !remote_read(remote, start, &header, sizeof header)) return;
    place->bias = program.l_addr;
    place->headers = start + header.e_phoff;
    place->count = header.e_phnum;
}

bool program_place_find(struct program_place *place, const struct remote *remote) {
    struct loaded_module linker;
    pid_t pid = remote->pid;
    *place = (struct program_place){0};
    process_auxiliary(pid, AT_PHDR, &place->headers);
    process_auxiliary(pid, AT_PHNUM, &place->count);
    process_auxiliary(pid, AT_BASE, &place->linker);
    if (!place->headers) return false;
    if (place->linker) {
        place->debug = find_debug(place, remote);
        return true;
    }
    if (!read_linker(place, remote, &linker)) return true;
    place->debug = find_debug_of_linker(&linker, remote);
    place->is_given = place->debug != 0;
    if (place->is_given) place->linker = linker.bias;
    if (place->is_given) read_given(place, remote);
    module_free(&linker);
    return true;
}

int program_place_open(const struct program_place *place, const struct remote *remote) {
    return place->is_given ? mapped_file_open(remote->pid, place->headers)
                           : process_open(remote->pid, "exe", O_RDONLY);
}
