// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/modules.h"

#include <link.h>
#include <string.h>

#include "tool/attach/program_place.h"
#include "tool/base/text.h"
#include "tool/proc/elf_headers.h"
#include "tool/proc/process.h"

// More than any real process has; a damaged list ends there.
enum { MODULES_MAX = 1 << 16, NAMESPACES_MAX = 64 };

// glibc's struct r_debug_extended (2.35) has one field more.
struct debug_extended {
    struct r_debug base;
    uint64_t next;
};

// Where its segments are: from its own headers at its lowest address, which is the page that its
// tables lie behind. Without them it has no known extent.
static void read_extent(struct loaded_module *module, const struct remote *remote,
                        const struct program_place *executable) {
    Elf64_Phdr segments[ELF_HEADERS_MAX];
    const struct memory_reader reader = remote_reader(remote);
    size_t count = executable
                       ? elf_headers_read(&reader, executable->headers, executable->count, segments)
                       : elf_headers_at(&reader, module->bias, segments);
    if (!count) return;
    module->start = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        if (segments[i].p_type != PT_LOAD) continue;
        uint64_t start = module->bias + segments[i].p_vaddr, end = start + segments[i].p_memsz;
        if (start < module->start) module->start = start;
        if (end > module->end) module->end = end;
    }
}

static void mix(uint64_t *fingerprint, uint64_t value) {
    const uint64_t odd = 0x9E3779B97F4A7C15u;
    *fingerprint = (*fingerprint ^ value) * odd;
    *fingerprint ^= *fingerprint >> 29;
}

typedef bool map_visitor(void *context, uint64_t address, const struct link_map *map,
                         unsigned namespace);

// Visits all link maps of all namespaces. False if the list is being changed.
static bool each_map(const struct remote *remote, uint64_t debug, map_visitor *visit,
                     void *context) {
    const int first_with_next = 2;
    unsigned left = MODULES_MAX;
    for (unsigned namespace = 0; debug && namespace < NAMESPACES_MAX; namespace ++) {
        struct debug_extended now = {0};
        if (!remote_read(remote, debug, &now.base, sizeof now.base)) return false;
        if (now.base.r_state != RT_CONSISTENT) return false;
        if (now.base.r_version >= first_with_next) remote_read(remote, debug, &now, sizeof now);
        for (uint64_t at = (uint64_t)(uintptr_t)now.base.r_map; at;) {
            struct link_map map;
            if (!left-- || !remote_read(remote, at, &map, sizeof map)) return false;
            if (!visit(context, at, &map, namespace)) return false;
            at = (uint64_t)(uintptr_t)map.l_next;
        }
        debug = now.next;
    }
    return true;
}

static bool visit_fingerprint(void *context, uint64_t address, const struct link_map *map,
                              unsigned namespace) {
    mix(context, address);
    mix(context, map->l_addr);
    mix(context, (uint64_t)(uintptr_t)map->l_ld + namespace);
    return true;
}

uint64_t modules_fingerprint(const struct loaded_modules *modules, const struct remote *remote) {
    uint64_t fingerprint = 1;
    return each_map(remote, modules->debug, visit_fingerprint, &fingerprint) ? fingerprint : 0;
}

struct reading {
    struct loaded_modules *modules;
    const struct remote *remote;
    const struct program_place *executable;
};

// `executable`: NULL for any other module.
static void read_module(struct loaded_module *module, const struct remote *remote, uint64_t address,
                        const struct link_map *map, const struct program_place *executable) {
    *module = (struct loaded_module){.link_map = address, .bias = map->l_addr};
    remote_read_text(remote, (uint64_t)(uintptr_t)map->l_name, module->name, sizeof module->name);
    module_read_dynamic(module, remote, (uint64_t)(uintptr_t)map->l_ld);
    read_extent(module, remote, executable);
}

bool module_read_at(struct loaded_module *module, const struct remote *remote, uint64_t link_map) {
    struct link_map map;
    if (!remote_read(remote, link_map, &map, sizeof map)) return false;
    read_module(module, remote, link_map, &map, NULL);
    return true;
}

static bool visit_read(void *context, uint64_t address, const struct link_map *map,
                       unsigned namespace) {
    struct reading *reading = context;
    bool is_executable = reading->modules->items.count == 0;
    struct loaded_module *module = array_push(&reading->modules->items);
    if (!module) return false;
    read_module(module, reading->remote, address, map, is_executable ? reading->executable : NULL);
    module->namespace = namespace;
    return visit_fingerprint(&reading->modules->fingerprint, address, map, namespace);
}

bool modules_read(struct loaded_modules *modules, const struct remote *remote,
                  struct error *error) {
    struct program_place executable;
    *modules = (struct loaded_modules){.fingerprint = 1};
    if (!program_place_find(&executable, remote)) return process_say_unreadable(error);
    modules->is_static = !executable.linker;
    if (modules->is_static) return true;
    modules->linker = executable.linker;
    modules->debug = executable.debug;
    struct reading reading = {modules, remote, &executable};
    if (!modules->debug || !each_map(remote, modules->debug, visit_read, &reading) ||
        !modules->items.count) {
        modules_free(modules);
        return error_set(error, "its dynamic linker is at work: it has just been started, or loads "
                                "a library");
    }
    return true;
}

void modules_free(struct loaded_modules *modules) {
    for (size_t i = 0; i < modules->items.count; i++) module_free(&modules->items.items[i]);
    array_free(&modules->items);
}

bool module_is_libc(const struct loaded_module *module) {
    const char *name = text_base_name(module->name);
    return !strcmp(name, "libc.so.6") || !strncmp(name, "ld-musl-", strlen("ld-musl-"));
}
