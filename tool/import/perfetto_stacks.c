// SPDX-License-Identifier: Apache-2.0
// What the packets of a trace refer to by numbers: strings, mappings, frames and callstacks of a
// sequence, and names of addresses, which may come at the very end.
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tool/import/perfetto.h"
#include "tool/symbol/name.h"

enum { MODULE_SHIFT = 40, MAPPINGS_MAX = 1 << 20 };

bool perfetto_bad(struct perfetto *reader, const char *what) {
    return error_set(reader->error, "perfetto: %s", what);
}

static uint64_t hash_of(uint64_t sequence, unsigned kind, uint64_t id) {
    return hash_mix(hash_mix(index_table_seed(), sequence ^ (uint64_t)kind << 60), id);
}

static struct perfetto_entry *find(struct perfetto *reader, enum perfetto_kind kind, uint64_t id) {
    struct index_probe probe =
        index_probe_start(&reader->entry_table, hash_of(reader->sequence, kind, id));
    for (uint32_t index; index_probe_next(&reader->entry_table, &probe, &index);) {
        struct perfetto_entry *entry = reader->entries.items ? &reader->entries.items[index] : NULL;
        if (entry && entry->sequence == reader->sequence && entry->kind == kind && entry->id == id)
            return entry;
    }
    return NULL;
}

static bool intern(struct perfetto *reader, enum perfetto_kind kind, struct span span) {
    uint64_t values[2] = {0};
    if (!span_integers(span, values, 2))
        return perfetto_bad(reader, "an interned message is damaged");
    struct perfetto_entry *entry = find(reader, kind, values[1]);
    if (!entry) {
        entry = array_push(&reader->entries);
        if (!entry ||
            !index_table_insert(&reader->entry_table, hash_of(reader->sequence, kind, values[1]),
                                (uint32_t)reader->entries.count - 1))
            return import_no_memory(reader->error);
    }
    *entry = (struct perfetto_entry){
        .sequence = reader->sequence, .id = values[1], .kind = kind, .span = span};
    return true;
}

// The fields of a message that are interned, by their numbers there.
const struct perfetto_interned perfetto_of_sequence[] = {
    {5, FUNCTION}, {17, PATH}, {18, SOURCE}, {19, MAPPING}, {6, FRAME}, {7, STACK}, {0, KINDS}};
// A profile's own table of strings serves for all texts.
const struct perfetto_interned perfetto_of_profile[] = {{1, FUNCTION}, {1, PATH},  {4, MAPPING},
                                                        {2, FRAME},    {3, STACK}, {0, KINDS}};

bool perfetto_intern(struct perfetto *reader, struct span span,
                     const struct perfetto_interned *fields) {
    struct field field;
    while (span.at < span.end) {
        if (!span_field(&span, &field)) return perfetto_bad(reader, "interned data is damaged");
        for (const struct perfetto_interned *row = fields; field.is_bytes && row->number; row++)
            if (row->number == field.number && !intern(reader, row->kind, field.bytes))
                return false;
    }
    return true;
}

// The text of an interned string, for free(); NULL without memory.
static char *text_of(struct perfetto *reader, enum perfetto_kind kind, uint64_t id) {
    struct perfetto_entry *entry = id ? find(reader, kind, id) : NULL;
    struct field field;
    struct span span = entry ? entry->span : (struct span){0};
    while (span.at < span.end && span_field(&span, &field))
        if (field.number == 2 && field.is_bytes) return span_text(field.bytes);
    return strdup("");
}

// ---- names that come with the trace -------------------------------------------------------------

static uint64_t symbol_hash(uint32_t path, uint64_t address) {
    return hash_mix(hash_mix(index_table_seed(), path), address);
}

static bool read_address_symbols(struct perfetto *reader, struct span span, uint32_t path) {
    uint64_t values[2] = {0};
    if (!span_integers(span, values, 2)) return perfetto_bad(reader, "symbols are damaged");
    struct perfetto_symbols *slot = array_push(&reader->symbols);
    if (!slot || !index_table_insert(&reader->symbol_table, symbol_hash(path, values[1]),
                                     (uint32_t)reader->symbols.count - 1))
        return import_no_memory(reader->error);
    *slot = (struct perfetto_symbols){path, values[1], span};
    return true;
}

bool perfetto_read_symbols(struct perfetto *reader, struct span span) {
    struct span rest = span;
    struct field field;
    uint32_t path = 0;
    while (rest.at < rest.end) {
        if (!span_field(&rest, &field)) return perfetto_bad(reader, "symbols are damaged");
        if (field.number != 1 || !field.is_bytes) continue;
        char *text = span_text(field.bytes);
        path = strings_number(&reader->imported->strings, text);
        free(text);
    }
    while (span.at < span.end) {
        if (!span_field(&span, &field)) return perfetto_bad(reader, "symbols are damaged");
        if (field.number == 3 && field.is_bytes && !read_address_symbols(reader, field.bytes, path))
            return false;
    }
    return true;
}

static const struct perfetto_symbols *find_symbols(const struct perfetto *reader, uint32_t path,
                                                   uint64_t address) {
    struct index_probe probe = index_probe_start(&reader->symbol_table, symbol_hash(path, address));
    for (uint32_t index; index_probe_next(&reader->symbol_table, &probe, &index);) {
        const struct perfetto_symbols *symbols = &reader->symbols.items[index];
        if (symbols->path == path && symbols->address == address) return symbols;
    }
    return NULL;
}

static bool add_named(struct perfetto *reader, const char *mangled, const char *file,
                      uint64_t line) {
    char *name = mangled ? name_readable(mangled) : NULL;
    bool is_ok = name && import_frame(reader->imported, *name ? name : "?", file,
                                      line < INT32_MAX ? (uint32_t)line : 0);
    free(name);
    return is_ok || import_no_memory(reader->error);
}

// Lines of an address, the innermost inlined function first.
static bool add_lines(struct perfetto *reader, struct span span) {
    struct field field, part;
    while (span.at < span.end && span_field(&span, &field)) {
        if (field.number != 2 || !field.is_bytes) continue;
        char *name = NULL, *file = NULL;
        uint64_t line = 0;
        for (struct span rest = field.bytes; rest.at < rest.end && span_field(&rest, &part);) {
            char **text = part.number == 1 ? &name : part.number == 2 ? &file : NULL;
            if (part.number == 3) line = part.value;
            if (!text || !part.is_bytes) continue;
            free(*text);
            *text = span_text(part.bytes);
        }
        bool is_ok = add_named(reader, name ? name : "?", file, line);
        free(name);
        free(file);
        if (!is_ok) return false;
    }
    return true;
}

// ---- frames and stacks --------------------------------------------------------------------------

// "/system/lib64/libc.so" of its parts; for free().
static char *path_of(struct perfetto *reader, const struct perfetto_entry *mapping) {
    char *path = strdup("");
    struct field field;
    struct span span = mapping ? mapping->span : (struct span){0};
    while (path && span.at < span.end && span_field(&span, &field)) {
        if (field.number != 7 || field.is_bytes) continue;
        char *part = text_of(reader, PATH, field.value), *longer = NULL;
        bool is_whole = part && strchr("/[", *part) && *part;
        if (!part || strlen(path) > PATH_MAX ||
            asprintf(&longer, "%s%s%s", path, is_whole ? "" : "/", part) < 0)
            longer = NULL;
        free(part);
        free(path);
        path = longer;
    }
    return path;
}

// Frames have addresses in their ELF files: each mapping is a stretch with that bias.
static uint32_t place_of_address(struct perfetto *reader, struct perfetto_entry *mapping,
                                 uint32_t module, uint64_t address) {
    if (!mapping || address >> MODULE_SHIFT) return import_address(reader->imported, address);
    if (!mapping->number_plus_1) {
        uint64_t start = (uint64_t)++reader->mapping_count << MODULE_SHIFT;
        const struct import_mapping stretch = {.start = start,
                                               .end = start + ((uint64_t)1 << MODULE_SHIFT),
                                               .bias = start,
                                               .has_bias = true,
                                               .module = module};
        if (reader->mapping_count >= MAPPINGS_MAX || !import_mapping(reader->imported, &stretch))
            return IMPORT_NONE;
        mapping->number_plus_1 = reader->mapping_count;
    }
    return import_address(reader->imported,
                          ((uint64_t)mapping->number_plus_1 << MODULE_SHIFT) + address);
}

static bool make_place(struct perfetto *reader, struct perfetto_entry *frame) {
    uint64_t values[7] = {0};
    if (!span_integers(frame->span, values, 7)) return perfetto_bad(reader, "a frame is damaged");
    struct perfetto_entry *mapping = values[3] ? find(reader, MAPPING, values[3]) : NULL;
    char *name = text_of(reader, FUNCTION, values[2]), *file = text_of(reader, SOURCE, values[5]);
    char *path = path_of(reader, mapping);
    bool is_ok = name && file && path, is_named = is_ok && *name;
    uint32_t number = is_ok ? strings_number(&reader->imported->strings, path) : 0;
    const struct perfetto_symbols *symbols =
        mapping ? find_symbols(reader, number, values[4]) : NULL;
    uint32_t module = is_ok ? import_module(reader->imported, path) : IMPORT_NONE;
    uint32_t place = IMPORT_NONE;
    if (module != IMPORT_NONE)
        place = symbols || is_named ? import_place(reader->imported, module)
                                    : place_of_address(reader, mapping, module, values[4]);
    is_ok = place != IMPORT_NONE || import_no_memory(reader->error);
    if (is_ok && symbols)
        is_ok = add_lines(reader, symbols->span);
    else if (is_ok && is_named)
        is_ok = add_named(reader, name, file, values[6]);
    free(name);
    free(file);
    free(path);
    frame->place_plus_1 = place + 1;
    return is_ok;
}

static bool add_frame(struct perfetto *reader, uint64_t id, size_t *depth) {
    struct perfetto_entry *frame = find(reader, FRAME, id);
    if (!frame) return perfetto_bad(reader, "a stack has a frame that is not there");
    if (*depth == PERFETTO_DEPTH_MAX) return perfetto_bad(reader, "a stack is too deep");
    if (!frame->place_plus_1 && !make_place(reader, frame)) return false;
    reader->stack[(*depth)++] = frame->place_plus_1 - 1;
    return true;
}

// Frames come from the outermost on, one by one or packed.
bool perfetto_node_of(struct perfetto *reader, uint64_t id, uint32_t *node) {
    const struct perfetto_entry *stack = find(reader, STACK, id);
    struct field field;
    size_t depth = 0;
    if (!stack) return perfetto_bad(reader, "a sample has a stack that is not there");
    for (struct span span = stack->span; span.at < span.end;) {
        if (!span_field(&span, &field)) return perfetto_bad(reader, "a stack is damaged");
        if (field.number != 2) continue;
        if (!field.is_bytes && !add_frame(reader, field.value, &depth)) return false;
        while (field.is_bytes && field.bytes.at < field.bytes.end) {
            uint64_t frame;
            if (!span_varint(&field.bytes, &frame))
                return perfetto_bad(reader, "a stack is damaged");
            if (!add_frame(reader, frame, &depth)) return false;
        }
    }
    *node = TREE_ROOT;
    for (size_t i = 0; i < depth; i++)
        if (!tree_child(&reader->imported->tree, *node, reader->stack[i], node))
            return import_no_memory(reader->error);
    return true;
}
