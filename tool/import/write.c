// SPDX-License-Identifier: Apache-2.0
// An imported profile as a compact recording. Its code has no addresses of its own: place i of the
// list lies at PLACE_BYTES * (i + 1) of its module, and each module is a stretch of the address
// space. One thread allocated everything. Each stack's record refers to the one before it.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "tool/base/text.h"
#include "tool/import/import.h"
#include "tool/symbol/bundle.h"

enum { PLACE_BYTES = 16, ALIGNMENT = 16, KEEP_MAX = 0x7fff, ADDED_MAX = 0xffff, HALF_BITS = 32 };
enum { MACHINE_X86_64 = 62, SECTIONS = 14, FRAME_WORDS = 2, HEAD_WORDS = 2, HIGH_BITS = 0xffff };
static const uint64_t first_module_address = 0x10000000000u;

struct section {
    uint32_t kind, entry_bytes;
    void *bytes;
    size_t count;
};

struct writer {
    const struct imported *imported;
    struct cairn_header header;
    struct section sections[SECTIONS];
    size_t section_count;
    ARRAY(char) strings;
    ARRAY(uint32_t) words;
    size_t cell_count;
    uint64_t allocations, frees, allocated_bytes;
    int64_t net_bytes;
};

static bool put_string(struct writer *writer, const char *text, uint32_t *offset) {
    *offset = (uint32_t)writer->strings.count;
    for (size_t i = 0, size = strlen(text) + 1; i < size; i++) {
        char *slot = array_push(&writer->strings);
        if (!slot || writer->strings.count > INT32_MAX) return false;
        *slot = text[i];
    }
    return true;
}

// A new section of zeros.
static void *add_section(struct writer *writer, uint32_t kind, size_t entry_bytes, size_t count) {
    struct section *section = &writer->sections[writer->section_count++];
    *section = (struct section){kind, (uint32_t)entry_bytes, calloc(count + 1, entry_bytes), count};
    return section->bytes;
}

static uint64_t module_bytes(const struct imported *imported) {
    return ((uint64_t)imported->places.count + 2) * PLACE_BYTES;
}

static const char *text_of(const struct imported *imported, uint32_t number) {
    return imported->strings.list.items[number];
}

static bool make_modules(struct writer *writer) {
    const struct imported *imported = writer->imported;
    uint64_t bytes = module_bytes(imported);
    struct cairn_module *modules =
        add_section(writer, CAIRN_SECTION_MODULES, sizeof *modules, imported->modules.count);
    for (size_t i = 0; modules && i < imported->modules.count; i++) {
        uint64_t start = first_module_address + i * bytes;
        modules[i] = (struct cairn_module){
            .start = start, .end = start + bytes, .bias = start, .is_ready = 1};
        if (!put_string(writer, text_of(imported, imported->modules.items[i]), &modules[i].path))
            return false;
    }
    return modules != NULL;
}

static uint32_t depth_of(const struct imported *imported, uint32_t node) {
    return imported->tree.nodes.items[node].depth;
}

// Frames that two stacks share, counted from the outermost.
static uint32_t shared_depth(const struct imported *imported, uint32_t a, uint32_t b) {
    const struct tree_node *nodes = imported->tree.nodes.items;
    while (a != b) {
        if (depth_of(imported, a) >= depth_of(imported, b))
            a = nodes[a].parent;
        else
            b = nodes[b].parent;
    }
    return depth_of(imported, a);
}

static bool put_frames(struct writer *writer, uint32_t node, uint32_t added) {
    const struct imported *imported = writer->imported;
    const struct tree_node *nodes = imported->tree.nodes.items;
    // the outermost frame of all can be a cut, of one word
    uint32_t outermost =
        added ? tree_ancestor(&imported->tree, node, nodes[node].depth - added + 1) : TREE_ROOT;
    uint32_t cut = added ? imported->places.items[nodes[outermost].place].cut : 0;
    size_t first = writer->words.count;
    for (uint32_t i = cut ? 1 : 0; i < added * FRAME_WORDS; i++) {
        uint32_t *slot = array_push(&writer->words);
        if (!slot) return false;
        *slot = 0;
    }
    if (cut) writer->words.items[first--] = CAIRN_CODE_CUT | cut;
    for (uint32_t i = added; i-- > (cut ? 1u : 0u); node = nodes[node].parent) {
        uint32_t place = nodes[node].place;
        uint32_t *words = writer->words.items + first + (size_t)i * FRAME_WORDS;
        words[0] = CAIRN_CODE_MODULE | imported->places.items[place].module;
        words[1] = (place + 1) * PLACE_BYTES;
    }
    return true;
}

static bool put_record(struct writer *writer, uint32_t older, uint32_t older_node, uint32_t node) {
    uint32_t keep = older ? shared_depth(writer->imported, older_node, node) : 0;
    if (keep > KEEP_MAX) keep = KEEP_MAX;
    uint32_t added = depth_of(writer->imported, node) - keep;
    const uint32_t head[HEAD_WORDS] = {keep ? older : 0, keep << 16 | added};
    if (added > ADDED_MAX) return false;
    for (int i = 0; i < HEAD_WORDS; i++) {
        uint32_t *slot = array_push(&writer->words);
        if (!slot) return false;
        *slot = head[i];
    }
    return put_frames(writer, node, added);
}

static uint16_t high_half(uint64_t number) {
    return (uint16_t)(number >> HALF_BITS & HIGH_BITS);
}

static void fill_cell(struct writer *writer, const struct import_values *values,
                      struct cairn_cell *cell, struct cairn_cell_rare *rare) {
    uint64_t calls = (uint64_t)values->calls, frees = calls - (uint64_t)values->exit_blocks;
    uint64_t temporary = (uint64_t)values->temporary, slack = (uint64_t)values->slack_bytes;
    cell->allocated_bytes = (uint64_t)values->allocated_bytes;
    cell->freed_bytes = (uint64_t)(values->allocated_bytes - values->exit_bytes);
    cell->calls = (uint32_t)calls;
    cell->frees = (uint32_t)frees;
    cell->epoch = 1;
    cell->size = CAIRN_SIZE_VARIES;
    cell->slack_bytes = (uint32_t)(slack % CAIRN_SLACK_UNIT);
    cell->temporary = (uint32_t)temporary;
    cell->peak_bytes = values->peak_bytes;
    cell->peak_blocks = (int32_t)values->peak_blocks;
    *rare = (struct cairn_cell_rare){.calls_high = high_half(calls),
                                     .frees_high = high_half(frees),
                                     .slack_high = (uint16_t)(slack / CAIRN_SLACK_UNIT),
                                     .temporary_high = high_half(temporary)};
    writer->allocations += calls;
    writer->frees += frees;
    writer->allocated_bytes += (uint64_t)values->allocated_bytes;
    writer->net_bytes += values->exit_bytes;
    writer->header.totals.peak_bytes += (uint64_t)values->peak_bytes;
    writer->header.totals.peak_blocks += (uint64_t)values->peak_blocks;
}

// By stack; the cell of each says which entry is its own.
static bool make_ages(struct writer *writer, struct cairn_cell_rare *rare) {
    const struct imported *imported = writer->imported;
    if (!imported->ages.count) return true;
    struct cairn_ages *entries =
        add_section(writer, CAIRN_SECTION_AGES, sizeof *entries, imported->ages.count);
    if (!entries) return false;
    for (size_t i = 0; i < imported->ages.count; i++) {
        entries[i].cell = (uint32_t)(CAIRN_CELL_BLOCK + i);
        memcpy(entries[i].ms, imported->ages.items[i].ms, sizeof entries[i].ms);
        rare[i].ages = (uint32_t)i + 1;
    }
    return true;
}

// The first block of cells belongs to nobody; the others to the one thread there is.
static bool make_cells(struct writer *writer) {
    const struct imported *imported = writer->imported;
    size_t count = CAIRN_CELL_BLOCK + imported->stacks.count;
    size_t blocks = count / CAIRN_CELL_BLOCK + 1;
    uint16_t *owners = add_section(writer, CAIRN_SECTION_OWNERS, sizeof *owners, blocks);
    struct cairn_cell *cells = add_section(writer, CAIRN_SECTION_CELLS, sizeof *cells, count);
    struct cairn_cell_rare *rare =
        add_section(writer, CAIRN_SECTION_CELLS_RARE, sizeof *rare, imported->stacks.count);
    if (!owners || !cells || !rare || count > UINT32_MAX) return false;
    writer->header.has_no_temporary = !imported->has_temporary;
    owners[0] = CAIRN_SLOT_SHARED;
    uint32_t older = 0, older_node = TREE_ROOT;
    for (size_t i = 0; i < imported->stacks.count; i++) {
        const struct import_stack *stack = &imported->stacks.items[i];
        uint32_t id = (uint32_t)(CAIRN_CELL_BLOCK + i);
        cells[id].record = (uint32_t)writer->words.count;
        cells[id].rare = (uint32_t)i + 1;
        fill_cell(writer, &stack->values, &cells[id], &rare[i]);
        if (!put_record(writer, older, older_node, stack->node)) return false;
        older = id;
        older_node = stack->node;
    }
    return make_ages(writer, rare);
}

static bool make_thread(struct writer *writer) {
    struct cairn_thread *thread = add_section(writer, CAIRN_SECTION_THREADS, sizeof *thread, 1);
    if (!thread) return false;
    *thread = (struct cairn_thread){.tid = writer->imported->pid,
                                    .name = "imported",
                                    .allocations = writer->allocations,
                                    .allocated_bytes = writer->allocated_bytes,
                                    .frees = writer->frees,
                                    .net_bytes = writer->net_bytes};
    if (!writer->imported->sampling.is_on) return true;
    const struct import_values *totals = &writer->imported->totals;
    thread->is_sampled = 1;
    thread->allocations = (uint64_t)totals->calls;
    thread->allocated_bytes = (uint64_t)totals->allocated_bytes;
    thread->estimated_blocks = totals->exit_blocks * CAIRN_SAMPLE_ONE;
    return true;
}

static bool make_samples(struct writer *writer) {
    const struct imported *imported = writer->imported;
    if (!imported->sampling.is_on) return true;
    struct cairn_sampling *sampling =
        add_section(writer, CAIRN_SECTION_SAMPLING, sizeof *sampling, 1);
    struct cairn_sample_entry *entries =
        add_section(writer, CAIRN_SECTION_SAMPLE_CELLS, sizeof *entries,
                    CAIRN_CELL_BLOCK + imported->stacks.count);
    if (!sampling || !entries) return false;
    *sampling = imported->sampling;
    for (size_t i = 0; i < imported->samples.count; i++)
        entries[CAIRN_CELL_BLOCK + i].sums = imported->samples.items[i];
    return true;
}

static bool make_waste(struct writer *writer) {
    if (!writer->imported->has_waste) return true;
    struct cairn_waste *waste = add_section(writer, CAIRN_SECTION_WASTE, sizeof *waste, 1);
    if (waste) *waste = writer->imported->waste;
    return waste;
}

static bool make_points(struct writer *writer) {
    const struct imported *imported = writer->imported;
    if (!imported->points.count || !imported->duration_ns) return true;
    uint64_t step_ns = imported->duration_ns / CAIRN_POINT_LIMIT + 1;
    struct cairn_point *points =
        add_section(writer, CAIRN_SECTION_POINTS, sizeof *points, CAIRN_POINT_LIMIT);
    if (!points) return false;
    writer->header.totals.point_ns = step_ns;
    for (size_t i = 0; i < imported->points.count; i++) {
        const struct import_point *from = &imported->points.items[i];
        uint64_t index = from->at_ns / step_ns;
        if (index >= CAIRN_POINT_LIMIT) continue;
        struct cairn_point *point = &points[index];
        if (!point->is_used || from->bytes < point->min_bytes) point->min_bytes = from->bytes;
        if (!point->is_used || from->bytes > point->max_bytes) point->max_bytes = from->bytes;
        point->last_bytes = from->bytes;
        point->is_used = 1;
    }
    return true;
}

// Names of one module: its places are in ascending order already.
static bool fill_part(const struct imported *imported, uint32_t module, struct bundle_part *part) {
    size_t place_count = 0;
    for (size_t i = 0; i < imported->places.count; i++)
        place_count += imported->places.items[i].module == module;
    struct symbol_query *queries = calloc(place_count + 1, sizeof *queries);
    *part =
        (struct bundle_part){.module = {.path = text_of(imported, imported->modules.items[module])},
                             .source = SYMBOL_SOURCE_DWARF,
                             .queries = queries};
    for (uint32_t i = 0; queries && i < imported->places.count; i++) {
        const struct import_place *place = &imported->places.items[i];
        if (place->module != module) continue;
        struct symbol_query *query = &queries[part->count++];
        query->address = (uint64_t)(i + 1) * PLACE_BYTES - 1;
        query->frames = calloc(place->frame_count + 1, sizeof *query->frames);
        if (!query->frames) return false;
        query->frame_count = place->frame_count;
        query->is_known = true;
        for (uint32_t at = 0; at < place->frame_count; at++) {
            const struct import_frame *frame = &imported->frames.items[place->first_frame + at];
            const char *name = text_of(imported, frame->function);
            query->frames[at] =
                (struct symbol_frame){.function = name,
                                      .plain = name,
                                      .linkage = name,
                                      .file = frame->file ? text_of(imported, frame->file) : NULL,
                                      .line = frame->line,
                                      .is_inlined = at + 1 < place->frame_count};
        }
    }
    return queries != NULL;
}

static void free_part(struct bundle_part *part) {
    struct symbol_query *queries = (struct symbol_query *)part->queries;
    for (size_t i = 0; i < part->count; i++) free(queries[i].frames);
    free(queries);
}

static bool make_symbols(struct writer *writer) {
    const struct imported *imported = writer->imported;
    struct bundle_part *parts = calloc(imported->modules.count + 1, sizeof *parts);
    void *bytes = NULL;
    size_t count = 0, size = 0;
    bool is_ok = parts != NULL;
    for (; is_ok && count < imported->modules.count; count++)
        is_ok = fill_part(imported, (uint32_t)count, &parts[count]);
    is_ok = is_ok && bundle_make(parts, count, &bytes, &size);
    for (size_t i = 0; i < count; i++) free_part(&parts[i]);
    free(parts);
    if (is_ok)
        writer->sections[writer->section_count++] =
            (struct section){CAIRN_SECTION_SYMBOLS, 1, bytes, size};
    return is_ok;
}

static bool fill_header(struct writer *writer, const char *source) {
    const struct imported *imported = writer->imported;
    struct cairn_header *header = &writer->header;
    char note[2 * IMPORT_TEXT_BYTES];
    memcpy(header->magic, CAIRN_MAGIC, CAIRN_MAGIC_BYTES);
    header->version = CAIRN_VERSION;
    header->header_bytes = CAIRN_HEADER_BYTES;
    header->state = CAIRN_STATE_ENDED;
    header->machine = MACHINE_X86_64;
    header->is_compact = 1;
    header->pid = imported->pid;
    header->start_unix_ns = imported->start_unix_ns;
    header->end_ns = imported->duration_ns;
    header->rss_peak_bytes = imported->rss_peak_bytes;
    header->is_partial = imported->is_partial;
    header->has_no_frees = imported->has_no_frees;
    header->has_no_calls = imported->has_no_calls;
    header->has_no_blocks = imported->has_no_blocks;
    header->max_depth = imported->max_depth;
    header->totals.epoch = header->totals.peak_epoch = 1;
    header->totals.peak_ns = imported->peak_ns;
    // the words of the command, as arguments that end in NUL
    snprintf(header->command, sizeof header->command, "%s", imported->command);
    for (char *at = header->command; !imported->is_sum && (at = strchr(at, ' '));) *at++ = 0;
    memcpy(header->lost, imported->lost, sizeof header->lost);
    snprintf(note, sizeof note, "%s: %s", source, imported->lacks);
    return put_string(writer, note, &header->imported);
}

static void write_all(struct writer *writer, FILE *out) {
    static const char zeros[ALIGNMENT];
    uint64_t offset = CAIRN_HEADER_BYTES;
    struct cairn_header *header = &writer->header;
    for (size_t i = 0; i < writer->section_count; i++) {
        const struct section *section = &writer->sections[i];
        uint64_t size = (uint64_t)section->entry_bytes * section->count;
        header->sections[i] = (struct cairn_section){.kind = section->kind,
                                                     .entry_bytes = section->entry_bytes,
                                                     .offset = offset,
                                                     .capacity_bytes = size,
                                                     .used_bytes = size};
        offset += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    header->section_count = (uint32_t)writer->section_count;
    header->mapped_bytes = offset;
    fwrite(header, sizeof *header, 1, out);
    for (size_t i = 0; i < writer->section_count; i++) {
        const struct section *section = &writer->sections[i];
        size_t size = section->entry_bytes * section->count;
        if (size) fwrite(section->bytes, 1, size, out);
        fwrite(zeros, 1, (ALIGNMENT - size % ALIGNMENT) % ALIGNMENT, out);
    }
}

bool import_write(FILE *out, const struct imported *imported, const char *source,
                  struct error *error) {
    if (!import_check_sums(imported, error)) return false;
    // the header wants pages of its own
    struct writer *writer = aligned_alloc(_Alignof(struct writer), sizeof *writer);
    uint32_t empty;
    if (!writer) return import_no_memory(error);
    memset(writer, 0, sizeof *writer);
    writer->imported = imported;
    bool is_ok = put_string(writer, "", &empty) && fill_header(writer, source) &&
                 make_modules(writer) && make_cells(writer) && make_thread(writer) &&
                 make_waste(writer) && make_samples(writer) && make_points(writer) &&
                 make_symbols(writer);
    size_t own_count = writer->section_count;
    if (is_ok) {
        writer->sections[writer->section_count++] = (struct section){
            CAIRN_SECTION_STRINGS, 1, writer->strings.items, writer->strings.count};
        writer->sections[writer->section_count++] = (struct section){
            CAIRN_SECTION_RECORDS, sizeof(uint32_t), writer->words.items, writer->words.count};
        write_all(writer, out);
    }
    for (size_t i = 0; i < own_count; i++) free(writer->sections[i].bytes);
    array_free(&writer->strings);
    array_free(&writer->words);
    free(writer);
    return is_ok || import_no_memory(error);
}
