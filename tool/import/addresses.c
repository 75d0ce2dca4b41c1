// SPDX-License-Identifier: Apache-2.0
// Frames of files that have addresses and a map of the process instead of names. Readers make
// places of addresses, in any order with the mappings; when all is read, the names are looked up in
// the files of this machine, module by module.
//
// Such files say neither build-ids nor where code lies in its ELF file, so the module's own program
// headers tell, and its own build-id leads to its debug file. Where the map has whole segments, a
// file whose segments are others is not the one that ran, and gives no names; the caller hears of
// it, and of files that were written after the profile.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/base/text.h"
#include "tool/import/import.h"
#include "tool/symbol/image.h"
#include "tool/symbol/symbol.h"

enum { MAPPINGS_MAX = 1 << 20 };

struct module_work {
    struct image image;
    bool is_tried;
    bool is_other;  // than the one that was profiled
    struct symbol_job job;
    uint32_t *places;  // of the job's queries
    size_t room;
};

struct naming {
    struct imported *imported;
    const struct import_names *names;
    struct error *error;
    uint32_t *order;  // mappings by start, the one that was said last first
    struct module_work *modules;
};

bool import_mapping(struct imported *imported, const struct import_mapping *mapping) {
    if (mapping->end <= mapping->start || mapping->module == IMPORT_NONE) return true;
    struct import_mapping *slot =
        imported->mappings.count < MAPPINGS_MAX ? array_push(&imported->mappings) : NULL;
    if (slot) *slot = *mapping;
    return slot != NULL;
}

bool import_map_line(struct imported *imported, const char *line) {
    struct import_mapping mapping = {0};
    char permissions[5];
    int path = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &mapping.start,
               &mapping.end, permissions, &mapping.offset, &path) < 4 ||
        !path || !line[path] || permissions[2] != 'x')
        return true;
    mapping.module = import_module(imported, line + path);
    mapping.is_segment = true;
    return mapping.module != IMPORT_NONE && import_mapping(imported, &mapping);
}

uint32_t import_address(struct imported *imported, uint64_t address) {
    uint64_t hash = hash_mix(index_table_seed(), address);
    struct index_probe probe = index_probe_start(&imported->address_table, hash);
    for (uint32_t index; index_probe_next(&imported->address_table, &probe, &index);)
        if (imported->addresses.items[index].address == address)
            return imported->addresses.items[index].place;
    uint32_t place = import_place(imported, import_module(imported, NULL));
    struct import_address *slot = place == IMPORT_NONE ? NULL : array_push(&imported->addresses);
    if (!slot || !index_table_insert(&imported->address_table, hash,
                                     (uint32_t)imported->addresses.count - 1))
        return IMPORT_NONE;
    *slot = (struct import_address){.address = address, .place = place};
    return place;
}

static const char *path_of(const struct naming *naming, uint32_t module) {
    const struct imported *imported = naming->imported;
    return imported->strings.list.items[imported->modules.items[module]];
}

// As the program wrote it, below the user's sysroot if it is there.
static void open_module(struct naming *naming, uint32_t module) {
    struct module_work *work = &naming->modules[module];
    const struct symbol_options *options = naming->names->options;
    const char *path = path_of(naming, module);
    if (work->is_tried) return;
    work->is_tried = true;
    if (*path != '/' || options->is_closed) return;
    char *below = NULL;
    if (options->sysroot && asprintf(&below, "%s%s", options->sysroot, path) < 0) below = NULL;
    if (!below || image_open(&work->image, below) != IMAGE_OK) image_open(&work->image, path);
    struct stat status;
    uint64_t changed =
        !stat(below && work->image.elf ? below : path, &status) || !stat(path, &status)
            ? (uint64_t)status.st_mtime
            : 0;
    if (work->image.elf && changed > naming->names->written_unix_s && naming->names->written_unix_s)
        naming->imported->newer_module = naming->imported->modules.items[module];
    free(below);
}

// Executable segment `index` of a file that is open; false: it is none.
static bool segment_of(const struct image *image, size_t index, GElf_Phdr *segment) {
    return gelf_getphdr(image->elf, (int)index, segment) && segment->p_type == PT_LOAD &&
           (segment->p_flags & PF_X);
}

static size_t segment_count(const struct image *image) {
    size_t count = 0;
    return image->elf && !elf_getphdrnum(image->elf, &count) ? count : 0;
}

// Virtual address in the ELF file of a place in the file; most code lies where it lies in its file.
static uint64_t virtual_address(const struct image *image, uint64_t offset) {
    GElf_Phdr segment;
    for (size_t i = 0; i < segment_count(image); i++)
        if (segment_of(image, i, &segment) && offset >= segment.p_offset &&
            offset - segment.p_offset < segment.p_filesz)
            return segment.p_vaddr + (offset - segment.p_offset);
    return offset;
}

// Whether a segment of the file, mapped with pages of that size, is the mapping.
static bool is_segment_of(const GElf_Phdr *segment, const struct import_mapping *mapping,
                          uint64_t page) {
    uint64_t size = mapping->end - mapping->start;
    if (mapping->has_bias)
        return mapping->start == mapping->bias + segment->p_vaddr && size == segment->p_memsz;
    uint64_t start = segment->p_offset & ~(page - 1);
    uint64_t end = (segment->p_offset + segment->p_filesz + page - 1) & ~(page - 1);
    return mapping->offset == start && size == end - start;
}

static bool is_other_file(const struct image *image, const struct import_mapping *mapping) {
    static const uint64_t pages[] = {4096, 16384, 65536};
    GElf_Phdr segment;
    if (!image->elf || !mapping->is_segment) return false;
    for (size_t i = 0; i < segment_count(image); i++)
        for (size_t page = 0; page < sizeof pages / sizeof *pages; page++)
            if (segment_of(image, i, &segment) && is_segment_of(&segment, mapping, pages[page]))
                return false;
    return true;
}

static const struct import_mapping *mapping_of(const struct naming *naming, uint64_t address) {
    const struct imported *imported = naming->imported;
    size_t low = 0, high = imported->mappings.items ? imported->mappings.count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (imported->mappings.items[naming->order[middle]].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    // what was loaded elsewhere before may overlap: the nearest start that reaches so far
    for (size_t looked = 0; low-- > 0 && looked < 16; looked++) {
        const struct import_mapping *mapping = &imported->mappings.items[naming->order[low]];
        if (address < mapping->end) return mapping;
    }
    return NULL;
}

static bool ask(struct naming *naming, const struct import_address *address,
                const struct import_mapping *mapping) {
    struct module_work *work = &naming->modules[mapping->module];
    struct symbol_job *job = &work->job;
    open_module(naming, mapping->module);
    if (is_other_file(&work->image, mapping)) {
        naming->imported->other_module = naming->imported->modules.items[mapping->module];
        image_close(&work->image);
        work->is_other = true;
    }
    uint64_t offset = address->address - mapping->start + mapping->offset;
    uint64_t wanted = mapping->has_bias ? address->address - mapping->bias
                                        : virtual_address(&work->image, offset);
    if (job->count == work->room) {
        size_t room = work->room ? work->room * 2 : 16;
        struct symbol_query *queries = reallocarray(job->queries, room, sizeof *queries);
        if (queries) job->queries = queries;
        uint32_t *places = reallocarray(work->places, room, sizeof *places);
        if (places) work->places = places;
        if (!queries || !places) return false;
        work->room = room;
    }
    work->places[job->count] = address->place;
    job->queries[job->count++] = (struct symbol_query){.address = wanted};
    naming->imported->places.items[address->place].module = mapping->module;
    return true;
}

// "libc.so.6+0x2724a", as cairn calls code without a name.
static bool name_by_address(struct naming *naming, uint32_t place, const char *path,
                            uint64_t address) {
    char *name = NULL;
    int length = *path ? asprintf(&name, "%s+0x%" PRIx64, text_base_name(path), address)
                       : asprintf(&name, "0x%" PRIx64, address);
    bool is_ok = length >= 0 && import_frame_of(naming->imported, place, name, NULL, 0);
    if (length >= 0) free(name);
    return is_ok;
}

static bool take_names(struct naming *naming, uint32_t module) {
    const struct module_work *work = &naming->modules[module];
    for (size_t i = 0; i < work->job.count; i++) {
        const struct symbol_query *query = &work->job.queries[i];
        uint32_t place = work->places[i];
        bool is_named = false;
        for (size_t at = 0; at < query->frame_count; at++) {
            const struct symbol_frame *frame = &query->frames[at];
            const char *name = frame->plain ? frame->plain : frame->function;
            if (!name) continue;
            is_named = true;
            if (!import_frame_of(naming->imported, place, name, frame->file, frame->line))
                return false;
        }
        if (!is_named && !name_by_address(naming, place, path_of(naming, module), query->address))
            return false;
    }
    return true;
}

static int compare_starts(const void *a, const void *b, void *context) {
    const struct imported *imported = context;
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    uint64_t start = imported->mappings.items[one].start,
             start_of_other = imported->mappings.items[other].start;
    if (start != start_of_other) return start < start_of_other ? -1 : 1;
    return (one > other) - (one < other);
}

static bool collect(struct naming *naming) {
    struct imported *imported = naming->imported;
    for (size_t i = 0; i < imported->mappings.count; i++) naming->order[i] = (uint32_t)i;
    qsort_r(naming->order, imported->mappings.count, sizeof *naming->order, compare_starts,
            imported);
    for (size_t i = 0; i < imported->addresses.count; i++) {
        const struct import_address *address = &imported->addresses.items[i];
        if (imported->places.items[address->place].frame_count) continue;  // the file had its name
        const struct import_mapping *mapping = mapping_of(naming, address->address);
        if (mapping ? !ask(naming, address, mapping)
                    : !name_by_address(naming, address->place, "", address->address))
            return false;
    }
    return true;
}

static bool resolve(struct naming *naming) {
    struct symbol_table *table;
    size_t count = naming->imported->modules.count;
    if (!symbol_table_open(&table, naming->names->options, NULL, naming->error)) return false;
    bool is_ok = true;
    for (size_t i = 0; i < count && is_ok; i++) {
        struct module_work *work = &naming->modules[i];
        const char *path = path_of(naming, (uint32_t)i);
        if (!work->job.count) continue;
        work->job.module = (struct symbol_module){.path = path};
        if (work->image.build_id_bytes) {
            work->job.module.build_id = work->image.build_id;
            work->job.module.build_id_bytes = work->image.build_id_bytes;
        }
        bool has_names = *path == '/' && !work->is_other;
        is_ok = (!has_names || symbol_resolve_all(table, &work->job, 1, NULL, naming->error)) &&
                (take_names(naming, (uint32_t)i) || import_no_memory(naming->error));
    }
    symbol_table_close(table);
    return is_ok;
}

bool import_name_addresses(struct imported *imported, const struct import_names *names,
                           struct error *error) {
    struct naming naming = {.imported = imported, .names = names, .error = error};
    if (!imported->addresses.count) return true;
    size_t modules = imported->modules.count;
    naming.order = calloc(imported->mappings.count + 1, sizeof *naming.order);
    naming.modules = calloc(modules + 1, sizeof *naming.modules);
    for (size_t i = 0; naming.modules && i < modules; i++)
        naming.modules[i].image = (struct image)IMAGE_CLOSED;
    bool is_ok = naming.order && naming.modules && collect(&naming);
    if (!is_ok) import_no_memory(error);
    is_ok = is_ok && resolve(&naming);
    for (size_t i = 0; naming.modules && i < modules; i++) {
        image_close(&naming.modules[i].image);
        free(naming.modules[i].job.queries);
        free(naming.modules[i].places);
    }
    free(naming.modules);
    free(naming.order);
    return is_ok;
}
