// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/modules.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/proc/elf_headers.h"
#include "tool/proc/process.h"

// More than any real process has; a damaged list ends there.
enum { MODULES_MAX = 1 << 16, NAMESPACES_MAX = 64, DYNAMIC_MAX = 256 };
enum { SYMBOLS_MAX = 1 << 24 };
#define TEXTS_MAX (1u << 30)

// glibc's struct r_debug_extended (2.35) has one field more.
struct debug_extended {
    struct r_debug base;
    uint64_t next;
};

struct program_headers {
    uint64_t address, count;
    uint64_t linker;
};

static bool read_auxiliary(pid_t pid, struct program_headers *headers) {
    *headers = (struct program_headers){0};
    process_auxiliary(pid, AT_PHDR, &headers->address);
    process_auxiliary(pid, AT_PHNUM, &headers->count);
    process_auxiliary(pid, AT_BASE, &headers->linker);
    return headers->address != 0;
}

// The executable's dynamic section, whose DT_DEBUG leads to the linker's list.
static uint64_t find_debug(const struct remote *remote, const struct program_headers *headers) {
    Elf64_Phdr segments[ELF_HEADERS_MAX];
    const struct memory_reader reader = remote_reader(remote);
    uint64_t bias = 0, dynamic = 0;
    size_t count = elf_headers_read(&reader, headers->address, headers->count, segments);
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_PHDR) bias = headers->address - segments[i].p_vaddr;
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

// The linker turns what the section tells into addresses, except where it cannot write (the vDSO).
static uint64_t as_address(const struct loaded_module *module, uint64_t value) {
    return value && value < module->bias ? value + module->bias : value;
}

static bool read_dynamic(struct loaded_module *module, const struct remote *remote,
                         uint64_t dynamic) {
    Elf64_Dyn entries[DYNAMIC_MAX];
    size_t count = 0;
    while (
        count < DYNAMIC_MAX &&
        remote_read(remote, dynamic + count * sizeof *entries, &entries[count], sizeof *entries) &&
        entries[count].d_tag != DT_NULL)
        count++;
    bool has_calls_with_addends = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = entries[i].d_un.d_val, address = as_address(module, value);
        switch (entries[i].d_tag) {
        case DT_SYMTAB:
            module->symbols = address;
            break;
        case DT_STRTAB:
            module->texts = address;
            break;
        case DT_STRSZ:
            module->text_bytes = value;
            break;
        case DT_HASH:
            module->hash = address;
            break;
        case DT_GNU_HASH:
            module->gnu_hash = address;
            break;
        case DT_RELA:
            module->relocations[0] = address;
            break;
        case DT_RELASZ:
            module->relocation_bytes[0] = value;
            break;
        case DT_JMPREL:
            module->relocations[1] = address;
            break;
        case DT_PLTRELSZ:
            module->relocation_bytes[1] = value;
            break;
        case DT_PLTREL:
            has_calls_with_addends = value == DT_RELA;
            break;
        default:
            break;
        }
    }
    if (!has_calls_with_addends) module->relocation_bytes[1] = 0;
    return count > 0;
}

// Where its segments are: from its own headers at its lowest address, which is the page that its
// tables lie behind. Without them it has no known extent.
static void read_extent(struct loaded_module *module, const struct remote *remote,
                        const struct program_headers *executable) {
    Elf64_Phdr segments[ELF_HEADERS_MAX];
    const struct memory_reader reader = remote_reader(remote);
    size_t count = executable
                       ? elf_headers_read(&reader, executable->address, executable->count, segments)
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
    const struct program_headers *headers;
};

// `executable`: NULL for any other module.
static void read_module(struct loaded_module *module, const struct remote *remote, uint64_t address,
                        const struct link_map *map, const struct program_headers *executable) {
    *module = (struct loaded_module){.link_map = address, .bias = map->l_addr};
    remote_read_text(remote, (uint64_t)(uintptr_t)map->l_name, module->name, sizeof module->name);
    read_dynamic(module, remote, (uint64_t)(uintptr_t)map->l_ld);
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
    read_module(module, reading->remote, address, map, is_executable ? reading->headers : NULL);
    module->namespace = namespace;
    return visit_fingerprint(&reading->modules->fingerprint, address, map, namespace);
}

bool modules_read(struct loaded_modules *modules, const struct remote *remote,
                  struct error *error) {
    struct program_headers headers;
    *modules = (struct loaded_modules){.fingerprint = 1};
    if (!read_auxiliary(remote->pid, &headers)) return error_set(error, "it has ended");
    if (!headers.linker)
        return error_set(error,
                         "it is statically linked, so that no library can be loaded into it");
    modules->linker = headers.linker;
    modules->debug = find_debug(remote, &headers);
    struct reading reading = {modules, remote, &headers};
    if (!modules->debug || !each_map(remote, modules->debug, visit_read, &reading) ||
        !modules->items.count) {
        modules_free(modules);
        return error_set(error, "its dynamic linker is at work: it has just been started, or loads "
                                "a library");
    }
    return true;
}

static void forget_symbols(struct loaded_module *module) {
    free(module->symbol_table);
    free(module->text_table);
    module->symbol_table = NULL;
    module->text_table = NULL;
    module->symbol_count = 0;
}

void module_free(struct loaded_module *module) {
    forget_symbols(module);
}

void modules_free(struct loaded_modules *modules) {
    for (size_t i = 0; i < modules->items.count; i++) forget_symbols(&modules->items.items[i]);
    array_free(&modules->items);
}

bool module_is_libc(const struct loaded_module *module) {
    const char *name = text_base_name(module->name);
    return !strcmp(name, "libc.so.6") || !strncmp(name, "ld-musl-", strlen("ld-musl-"));
}

// The number of symbols is that of the chains of the older hash table; the newer one has to be
// followed to the end of its last chain.
static size_t count_by_gnu_hash(const struct loaded_module *module, const struct remote *remote) {
    struct {
        uint32_t bucket_count, first, bloom_words, shift;
    } head;
    uint64_t at = module->gnu_hash;
    uint32_t last = 0, word;
    if (!remote_read(remote, at, &head, sizeof head) || head.bucket_count > SYMBOLS_MAX) return 0;
    at += sizeof head + head.bloom_words * sizeof(uint64_t);
    uint32_t *buckets = calloc(head.bucket_count, sizeof *buckets);
    if (buckets && remote_read(remote, at, buckets, head.bucket_count * sizeof *buckets))
        for (uint32_t i = 0; i < head.bucket_count; i++)
            if (buckets[i] > last) last = buckets[i];
    free(buckets);
    if (last < head.first) return head.first;
    at += head.bucket_count * sizeof word;
    for (; last < SYMBOLS_MAX; last++) {
        uint64_t chain = at + (last - head.first) * sizeof word;
        if (!remote_read(remote, chain, &word, sizeof word)) return 0;
        if (word & 1) return last + 1;
    }
    return 0;
}

static size_t count_symbols(const struct loaded_module *module, const struct remote *remote) {
    uint32_t head[2];
    if (module->gnu_hash) return count_by_gnu_hash(module, remote);
    if (module->hash && remote_read(remote, module->hash, head, sizeof head)) return head[1];
    return 0;
}

bool module_load_symbols(struct loaded_module *module, const struct remote *remote, size_t least) {
    if (module->symbol_table && module->symbol_count >= least) return true;
    forget_symbols(module);
    size_t count = module->symbols && module->texts ? count_symbols(module, remote) : 0;
    if (count < least) count = least;
    if (!count || count > SYMBOLS_MAX || !module->text_bytes || module->text_bytes > TEXTS_MAX)
        return false;
    Elf64_Sym *symbols = calloc(count, sizeof *symbols);
    char *texts = calloc(1, module->text_bytes + 1);
    bool is_read = symbols && texts &&
                   remote_read(remote, module->symbols, symbols, count * sizeof *symbols) &&
                   remote_read(remote, module->texts, texts, module->text_bytes);
    if (!is_read) {
        free(symbols);
        free(texts);
        return false;
    }
    module->symbol_table = symbols;
    module->symbol_count = count;
    module->text_table = texts;
    return true;
}

uint64_t module_symbol(struct loaded_module *module, const struct remote *remote,
                       const char *name) {
    if (!module_load_symbols(module, remote, 1)) return 0;
    for (size_t i = 0; i < module->symbol_count; i++) {
        const Elf64_Sym *symbol = &module->symbol_table[i];
        int kind = ELF64_ST_TYPE(symbol->st_info);
        bool is_there = symbol->st_shndx != SHN_UNDEF && symbol->st_name < module->text_bytes;
        if (!is_there || (kind != STT_FUNC && kind != STT_OBJECT)) continue;
        if (!strcmp(module->text_table + symbol->st_name, name))
            return module->bias + symbol->st_value;
    }
    return 0;
}
