// SPDX-License-Identifier: Apache-2.0
#include "tool/model/modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/base/fnv.h"
#include "tool/base/text.h"
#include "tool/model/index_table.h"

// A path of a module is one of a file; what is longer is damage, and would make reading slow.
enum { PATH_BYTES_MAX = 4096 };

bool module_is_cairn(const char *path) {
    static const char name[] = "memfd:libcairn";
    const char *base = text_base_name(path), *rest = base + sizeof name - 1;
    return !strncmp(base, name, sizeof name - 1) && (!*rest || strchr(".- ", *rest));
}

bool module_is_library(const char *path) {
    static const char name[] = "libcairn";
    return module_is_cairn(path) || !strncmp(text_base_name(path), name, strlen(name));
}

bool module_is_own(const char *path) {
    static const char *const system[] = {"/usr/", "/lib/",  "/lib64/",     "/lib32/",    "/libx32/",
                                         "/bin/", "/sbin/", "/nix/store/", "/gnu/store/"};
    static const char local[] = "/usr/local/";
    if (!strncmp(path, local, strlen(local))) return true;
    for (size_t i = 0; i < sizeof system / sizeof *system; i++)
        if (!strncmp(path, system[i], strlen(system[i]))) return false;
    return *path && *path != '[';
}

// musl's dynamic linker knows the program by the name it was called with.
static const char *module_path(struct recording *recording, uint32_t offset) {
    const char *path = recording_string(recording, offset);
    if (strnlen(path, PATH_BYTES_MAX) == PATH_BYTES_MAX) {
        recording->damage.bad_strings++;
        return "";
    }
    const char *program = recording->header.executable;
    bool is_relative = *path && *path != '/';
    bool is_program = is_relative && !strcmp(text_base_name(path), text_base_name(program));
    return is_program ? program : path;
}

static void fill_segments(const struct cairn_module *entry, struct module *module) {
    uint32_t count = entry->segment_count;
    module->segment_count = count < CAIRN_MODULE_SEGMENTS ? count : CAIRN_MODULE_SEGMENTS;
    for (uint32_t i = 0; i < module->segment_count; i++)
        module->segments[i] =
            (struct module_segment){.address = entry->segments[i].address,
                                    .size = entry->segments[i].size,
                                    .file_offset = entry->segments[i].file_offset};
}

// Of a module without a build-id.
static void fill_code(const struct cairn_module *entry, struct module *module) {
    module->file =
        (struct code_file){entry->file_bytes, entry->file_modified_ns, entry->file_inode};
    module->code_hash = entry->code_hash;
    bool has_hash = module->code_hash > CAIRN_CODE_OTHER;
    uint64_t path = fnv_add(FNV_START, module->path, strlen(module->path));
    module->identity =
        has_hash ? fnv_add(FNV_START, &module->code_hash, sizeof module->code_hash) : path;
    if (has_hash)
        module->code_key = module->code_hash;
    else if (module->file.bytes)
        module->code_key = (fnv_add(FNV_START, &module->file, sizeof module->file) ^ path) | 1;
}

static void module_fill(struct recording *recording, const struct cairn_module *entry,
                        struct module *module) {
    *module = (struct module){.path = "",
                              .start = entry->start,
                              .end = entry->end,
                              .bias = entry->bias,
                              .loaded_ns = entry->loaded_ns,
                              .unloaded_ns = entry->unloaded_ns};
    if (!entry->is_ready) return;
    if (entry->end <= entry->start || entry->build_id_bytes > CAIRN_BUILD_ID_MAX) {
        recording->damage.bad_modules++;
        return;
    }
    module->path = module_path(recording, entry->path);
    module->build_id_bytes = entry->build_id_bytes;
    memcpy(module->build_id, entry->build_id, entry->build_id_bytes);
    if (entry->build_id_bytes)
        module->identity = fnv_add(FNV_START, entry->build_id, entry->build_id_bytes);
    else
        fill_code(entry, module);
    fill_segments(entry, module);
    module->is_valid = true;
}

static bool is_same_file(const struct module *a, const struct module *b) {
    return a->is_valid && a->identity == b->identity && a->start - a->bias == b->start - b->bias &&
           a->build_id_bytes == b->build_id_bytes &&
           !memcmp(a->build_id, b->build_id, a->build_id_bytes) && !strcmp(a->path, b->path);
}

static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t size) {
    for (size_t at = 0; at < size; at += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, (const uint8_t *)bytes + at,
               size - at < sizeof word ? size - at : sizeof word);
        hash = hash_mix(hash ^ word, index_table_seed());
    }
    return hash;
}

// Of all that is_same_file compares: a made-up recording may have many modules of one build-id.
static uint64_t hash_file(const struct module *module) {
    uint64_t hash = hash_mix(module->start - module->bias, index_table_seed());
    hash = mix_bytes(hash, module->build_id, module->build_id_bytes);
    return mix_bytes(hash, module->path, strlen(module->path));
}

static bool find_same(struct module_map *map, struct error *error) {
    struct index_table table = {0};
    bool is_ok = true;
    for (uint32_t i = 0; i < map->count && is_ok; i++) {
        struct module *module = &map->modules[i];
        module->same_as = i;
        if (!module->is_valid) continue;
        uint64_t hash = hash_file(module);
        struct index_probe probe = index_probe_start(&table, hash);
        for (uint32_t other; index_probe_next(&table, &probe, &other);)
            if (is_same_file(module, &map->modules[other])) {
                module->same_as = other;
                break;
            }
        if (module->same_as == i) is_ok = index_table_insert(&table, hash, i);
    }
    index_table_free(&table);
    return is_ok || error_set(error, "no memory for the module table");
}

static int compare_u64(const void *a, const void *b) {
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

static size_t lower_bound(const uint64_t *sorted, size_t count, uint64_t value) {
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (sorted[middle] < value)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

// The first piece from `at` on that no module has taken; shortens the path for the next time.
static uint32_t next_free(uint32_t *next, uint32_t at) {
    uint32_t end = at;
    while (next[end] != end) end = next[end];
    while (next[at] != end) {
        uint32_t following = next[at];
        next[at] = end;
        at = following;
    }
    return end;
}

// Ends and starts of all modules cut the address space into pieces; in the table's order each
// module takes the pieces it covers that are still free. `next` jumps over the taken ones.
static void take_pieces(struct module_map *map, const uint64_t *bounds, size_t bound_count,
                        uint32_t *next, uint32_t *owner) {
    for (uint32_t i = 0; i < bound_count; i++) {
        next[i] = i;
        owner[i] = MODULE_NONE;
    }
    for (uint32_t i = 0; i < map->count; i++) {
        const struct module *module = &map->modules[i];
        if (!module->is_valid) continue;
        size_t first = lower_bound(bounds, bound_count, module->start);
        size_t last = lower_bound(bounds, bound_count, module->end);
        for (uint32_t at = next_free(next, (uint32_t)first); at < last; at = next_free(next, at)) {
            owner[at] = i;
            next[at] = at + 1;
        }
    }
    for (uint32_t i = 0; i + 1 < bound_count; i++) {
        if (owner[i] == MODULE_NONE || bounds[i] == bounds[i + 1]) continue;
        map->ranges[map->range_count++] = (struct module_range){bounds[i], bounds[i + 1], owner[i]};
    }
}

static bool find_ranges(struct module_map *map, struct error *error) {
    size_t bound_count = map->count * 2;
    if (!bound_count) return true;
    uint64_t *bounds = calloc(bound_count, sizeof *bounds);
    uint32_t *next = calloc(bound_count, sizeof *next);
    uint32_t *owner = calloc(bound_count, sizeof *owner);
    map->ranges = calloc(bound_count, sizeof *map->ranges);
    bool is_ok = bounds && next && owner && map->ranges;
    if (is_ok) {
        for (size_t i = 0; i < map->count; i++) {
            bounds[2 * i] = map->modules[i].start;
            bounds[2 * i + 1] = map->modules[i].end;
        }
        qsort(bounds, bound_count, sizeof *bounds, compare_u64);
        take_pieces(map, bounds, bound_count, next, owner);
    }
    free(bounds);
    free(next);
    free(owner);
    return is_ok || error_set(error, "no memory for the module ranges");
}

bool module_map_build(struct recording *recording, struct module_map *map, struct error *error) {
    *map = (struct module_map){.count = recording_count(recording, CAIRN_SECTION_MODULES)};
    if (!map->count) return true;
    map->modules = calloc(map->count, sizeof *map->modules);
    if (!map->modules) return error_set(error, "no memory for the module table");
    for (size_t i = 0; i < map->count; i++) {
        struct cairn_module entry;
        recording_module(recording, i, &entry);
        module_fill(recording, &entry, &map->modules[i]);
    }
    return find_same(map, error) && find_ranges(map, error);
}

void module_map_free(struct module_map *map) {
    free(map->modules);
    free(map->ranges);
    *map = (struct module_map){0};
}

uint32_t module_map_find(const struct module_map *map, uint64_t address) {
    size_t low = 0, high = map->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->ranges[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_inside = low < map->range_count && map->ranges[low].start <= address;
    return is_inside ? map->ranges[low].module : MODULE_NONE;
}

#define CHUNK_BYTES ((size_t)256 * 1024)

bool code_file_of(int file, struct code_file *out) {
    const uint64_t ns_per_s = 1000000000;
    struct stat status;
    if (fstat(file, &status) || !S_ISREG(status.st_mode)) return false;
    *out = (struct code_file){.bytes = (uint64_t)status.st_size,
                              .modified_ns = (uint64_t)status.st_mtim.tv_sec * ns_per_s +
                                             (uint64_t)status.st_mtim.tv_nsec,
                              .inode = status.st_ino};
    return true;
}

bool code_file_is_same(const struct code_file *a, const struct code_file *b) {
    return a->bytes && a->bytes == b->bytes && a->modified_ns == b->modified_ns &&
           a->inode == b->inode;
}

static uint64_t mix(uint64_t hash, const uint8_t *bytes, size_t size) {
    const uint64_t prime = 0x9e3779b97f4a7c15u;
    for (size_t at = 0; at < size; at += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, size - at < sizeof word ? size - at : sizeof word);
        hash = (hash ^ word) * prime;
        hash ^= hash >> 32;
    }
    return hash;
}

// Whole chunks, so that how much a read gives at a time does not matter.
static bool mix_segment(int file, const struct module_segment *segment, uint8_t *chunk,
                        uint64_t *hash) {
    for (uint64_t at = 0; at < segment->size;) {
        size_t wanted =
            segment->size - at < CHUNK_BYTES ? (size_t)(segment->size - at) : CHUNK_BYTES;
        size_t got = 0;
        while (got < wanted) {
            ssize_t one =
                pread(file, chunk + got, wanted - got, (off_t)(segment->file_offset + at + got));
            if (one < 0) return false;
            if (!one) break;
            got += (size_t)one;
        }
        *hash = mix(*hash, chunk, got);
        if (got < wanted) return at + got > 0;  // the rest is zeroes, which the file does not have
        at += got;
    }
    return true;
}

uint64_t code_file_hash(int file, const struct module_segment *segments, size_t count) {
    uint64_t hash = count;
    uint8_t *chunk = malloc(CHUNK_BYTES);
    bool is_read = chunk && count;
    for (size_t i = 0; i < count && is_read; i++) {
        hash = mix(hash, (const uint8_t *)&segments[i], sizeof segments[i]);
        is_read = mix_segment(file, &segments[i], chunk, &hash);
    }
    free(chunk);
    if (!is_read) return CAIRN_CODE_UNKNOWN;
    return hash > CAIRN_CODE_OTHER ? hash : hash + CAIRN_CODE_OTHER + 1;
}

void module_build_id_text(const struct module *module, char text[MODULE_BUILD_ID_TEXT]) {
    *text = 0;
    for (uint32_t i = 0; i < module->build_id_bytes; i++)
        snprintf(text + (size_t)2 * i, 3, "%02x", module->build_id[i]);
}

uint32_t module_of_program(const struct module_map *map, const char *executable) {
    for (uint32_t i = 0; i < map->count; i++)
        if (!strcmp(map->modules[i].path, executable)) return i;
    return MODULE_NONE;
}
