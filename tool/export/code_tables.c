// SPDX-License-Identifier: Apache-2.0
#include "tool/export/code_tables.h"

#include <stdlib.h>
#include <string.h>

// Instead of a place.
enum { PLACE_UNRECORDED = UINT32_MAX, PLACE_FOLDED = UINT32_MAX - 1 };

// Instead of a location, of the mark of a stack that is not complete: it is no code.
static const uint32_t no_location = UINT32_MAX;

bool code_tables_start(struct code_tables *tables, const struct export *export) {
    const struct profile *profile = export->profile;
    *tables = (struct code_tables){.export = export};
    strings_start(&tables->strings);
    tables->location_of_place = calloc(profile->places.list.count + 1, sizeof(uint32_t));
    tables->mapping_of_module = calloc(profile->modules.count + 1, sizeof(uint32_t));
    tables->has_failed = !tables->location_of_place || !tables->mapping_of_module;
    for (size_t i = 0; !tables->has_failed && i < profile->places.list.count; i++)
        if (profile->places.list.items[i].cut) tables->location_of_place[i] = no_location;
    return !tables->has_failed;
}

void code_tables_free(struct code_tables *tables) {
    strings_free(&tables->strings);
    free(tables->location_of_place);
    free(tables->mapping_of_module);
    array_free(&tables->places);
    array_free(&tables->mappings);
    array_free(&tables->functions);
    index_table_free(&tables->function_table);
}

static uint32_t add_location(struct code_tables *tables, uint32_t place, uint32_t *number) {
    uint32_t *slot = *number ? NULL : array_push(&tables->places);
    if (slot) {
        *slot = place;
        *number = (uint32_t)tables->places.count;
    }
    tables->has_failed |= !*number;
    return *number;
}

uint32_t code_tables_folded(struct code_tables *tables) {
    return add_location(tables, PLACE_FOLDED, &tables->folded);
}

void code_tables_put_stack(struct code_tables *tables, struct byte_buffer *message, uint32_t node) {
    const struct profile *profile = tables->export->profile;
    const struct tree_node *nodes = profile->tree.nodes.items;
    size_t before = message->size;
    for (; node != TREE_ROOT; node = nodes[node].parent) {
        uint32_t place = nodes[node].place, number = tables->location_of_place[place];
        if (!number) number = add_location(tables, place, &tables->location_of_place[place]);
        if (number != no_location) message_put_bare(message, number);
    }
    if (message->size == before)
        message_put_bare(message, add_location(tables, PLACE_UNRECORDED, &tables->unrecorded));
}

static void add_mapping(struct code_tables *tables, struct code_mapping mapping) {
    struct code_mapping *slot = array_push(&tables->mappings);
    if (slot) *slot = mapping;
    tables->has_failed |= !slot;
}

static void add_module(struct code_tables *tables, uint32_t index) {
    const struct profile *profile = tables->export->profile;
    const uint64_t page_bytes = profile->recording->header.page_bytes;
    const struct module *module = &profile->modules.modules[index];
    if (!module->is_valid || module->same_as != index || tables->mapping_of_module[index]) return;
    tables->mapping_of_module[index] = (uint32_t)tables->mappings.count + 1;
    for (uint32_t i = 0; i < module->segment_count; i++) {
        const struct module_segment *segment = &module->segments[i];
        uint64_t start = module->bias + segment->address, into_page = start % page_bytes;
        add_mapping(tables, (struct code_mapping){.module = index,
                                                  .start = start - into_page,
                                                  .limit = start + segment->size,
                                                  .offset = segment->file_offset - into_page});
    }
    if (!module->segment_count)
        add_mapping(tables, (struct code_mapping){
                                .module = index, .start = module->start, .limit = module->end});
}

// The program first, then all others in the order of the recording; the last one is for what has no
// module.
void code_tables_list_mappings(struct code_tables *tables) {
    const struct profile *profile = tables->export->profile;
    const char *program = profile->recording->header.executable;
    for (uint32_t i = 0; i < profile->modules.count; i++)
        if (!strcmp(profile->modules.modules[i].path, program)) add_module(tables, i);
    for (uint32_t i = 0; i < profile->modules.count; i++) add_module(tables, i);
    add_mapping(tables, (struct code_mapping){.module = MODULE_NONE, .has_functions = true});
}

static uint32_t mapping_of(const struct code_tables *tables, uint32_t module, uint64_t address) {
    const struct code_mapping *mappings = tables->mappings.items;
    uint32_t none = (uint32_t)tables->mappings.count;
    uint32_t first = module == MODULE_NONE ? 0 : tables->mapping_of_module[module];
    if (!first) return none;
    for (uint32_t i = first; i <= none && mappings[i - 1].module == module; i++)
        if (address >= mappings[i - 1].start && address < mappings[i - 1].limit) return i;
    return first;
}

static void note_frames(const struct code_location *location, struct code_mapping *mapping) {
    for (size_t i = 0; i < location->frame_count; i++) {
        const struct frame *frame = &location->frames[i];
        if (!frame->function) continue;
        mapping->has_functions = true;
        mapping->has_files |= frame->file != NULL;
        mapping->has_lines |= frame->line != 0;
        mapping->has_inlines |= frame->file != NULL;
    }
}

struct code_location code_tables_location(struct code_tables *tables, uint32_t number) {
    static const struct frame unrecorded = {.function = STACK_NOT_RECORDED};
    static const struct frame folded = {.function = CODE_FOLDED};
    const struct profile *profile = tables->export->profile;
    const struct frame_names *names = tables->export->names;
    uint32_t place = tables->places.items[number - 1];
    struct code_location location = {.mapping = (uint32_t)tables->mappings.count,
                                     .frames = place == PLACE_FOLDED ? &folded : &unrecorded,
                                     .frame_count = 1};
    if (place == PLACE_FOLDED || place == PLACE_UNRECORDED) return location;
    const struct place *entry = &profile->places.list.items[place];
    location.address = entry->address;
    if (entry->module != MODULE_NONE)
        location.address += profile->modules.modules[entry->module].bias;
    location.mapping = mapping_of(tables, entry->module, location.address);
    location.frames = names->of_place(names->context, place, &location.frame_count);
    note_frames(&location, &tables->mappings.items[location.mapping - 1]);
    return location;
}

uint32_t code_tables_function(struct code_tables *tables, const struct frame *frame) {
    struct code_function wanted = {strings_number(&tables->strings, frame->function),
                                   strings_number(&tables->strings, frame->file)};
    uint64_t hash = hash_mix(wanted.name, wanted.file);
    struct index_probe probe = index_probe_start(&tables->function_table, hash);
    for (uint32_t index; index_probe_next(&tables->function_table, &probe, &index);) {
        const struct code_function *known = &tables->functions.items[index];
        if (known->name == wanted.name && known->file == wanted.file) return index + 1;
    }
    struct code_function *slot = array_push(&tables->functions);
    bool is_ok = slot && index_table_insert(&tables->function_table, hash,
                                            (uint32_t)tables->functions.count - 1);
    if (slot) *slot = wanted;
    tables->has_failed |= !is_ok;
    return (uint32_t)tables->functions.count;
}

// Both formats number them alike.
enum line_field { LINE_FUNCTION = 1, LINE_NUMBER = 2 };

void code_tables_put_lines(struct code_tables *tables, const struct code_location *location,
                           struct byte_buffer *line, unsigned field, struct byte_buffer *message) {
    for (size_t i = 0; i < location->frame_count; i++) {
        const struct frame *frame = &location->frames[i];
        if (!frame->function) continue;
        message_put(line, LINE_FUNCTION, code_tables_function(tables, frame));
        message_put(line, LINE_NUMBER, frame->line);
        message_put_message(message, field, line);
    }
}

const char *code_mapping_path(const struct code_tables *tables,
                              const struct code_mapping *mapping) {
    if (mapping->module == MODULE_NONE) return "[no module]";
    return tables->export->profile->modules.modules[mapping->module].path;
}

void code_mapping_build_id(const struct code_tables *tables, const struct code_mapping *mapping,
                           char out[CODE_BUILD_ID_BYTES]) {
    *out = 0;
    if (mapping->module == MODULE_NONE) return;
    const struct module *module = &tables->export->profile->modules.modules[mapping->module];
    for (uint32_t i = 0; i < module->build_id_bytes; i++)
        snprintf(out + 2 * (size_t)i, 3, "%02x", module->build_id[i]);
}
