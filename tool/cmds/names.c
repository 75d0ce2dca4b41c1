// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/names.h"

#include <stdio.h>
#include <stdlib.h>

#include "tool/base/text.h"
#include "tool/symbol/plumbing.h"
#include "tool/symbol/symbol.h"

struct place_names {
    struct frame *frames;
    size_t count;
    bool is_wanted;
};

enum { MODULES_TEXT_BYTES = 160, MODULES_NAMED = 3 };

struct names {
    const struct profile *profile;
    struct symbol_table *table;
    struct place_names *places;  // by place
    struct frame *unresolved;    // by place: the frame of one without a name
    const char **notes;          // by module
    size_t wanted_count, unresolved_count;
    char unresolved_modules[MODULES_TEXT_BYTES];  // safe text
};

bool names_open(const struct profile *profile, struct names **names, struct error *error) {
    size_t place_count = profile->places.list.count;
    struct names *opened = calloc(1, sizeof *opened);
    *names = opened;
    if (!opened) return error_set(error, "no memory for names");
    opened->profile = profile;
    opened->places = calloc(place_count + 1, sizeof *opened->places);
    opened->unresolved = calloc(place_count + 1, sizeof *opened->unresolved);
    opened->notes = calloc(profile->modules.count + 1, sizeof *opened->notes);
    bool has_memory = opened->places && opened->unresolved && opened->notes;
    bool is_ok = has_memory ? symbol_table_open(&opened->table, error)
                            : error_set(error, "no memory for names");
    if (is_ok) return true;
    names_close(opened);
    *names = NULL;
    return false;
}

void names_close(struct names *names) {
    if (!names) return;
    for (size_t i = 0; names->places && i < names->profile->places.list.count; i++)
        free(names->places[i].frames);
    symbol_table_close(names->table);
    free(names->places);
    free(names->unresolved);
    free(names->notes);
    free(names);
}

void names_want_stack(struct names *names, uint32_t node, size_t limit) {
    const struct tree_node *nodes = names->profile->tree.nodes.items;
    for (size_t i = 0; node != TREE_ROOT && (!limit || i < limit); i++) {
        names->places[nodes[node].place].is_wanted = true;
        node = nodes[node].parent;
    }
}

static bool is_asked(const struct names *names, size_t place) {
    const struct place_names *known = &names->places[place];
    return known->is_wanted && !known->frames &&
           names->profile->places.list.items[place].module != MODULE_NONE;
}

// Keeps the frames of a resolved place.
static bool keep(struct names *names, size_t place, const struct symbol_query *query) {
    const struct place *entry = &names->profile->places.list.items[place];
    const char *path = names->profile->modules.modules[entry->module].path;
    struct place_names *known = &names->places[place];
    if (!query->frame_count) return true;
    known->frames = calloc(query->frame_count, sizeof *known->frames);
    if (!known->frames) return false;
    known->count = query->frame_count;
    for (size_t i = 0; i < known->count; i++) {
        const struct symbol_frame *found = &query->frames[i];
        enum plumbing_kind kind = plumbing_kind_of(found->function, path);
        known->frames[i] = (struct frame){.function = found->function,
                                          .file = found->file,
                                          .line = found->line,
                                          .module = path,
                                          .offset = entry->address,
                                          .is_inlined = found->is_inlined,
                                          .is_hidden = plumbing_is_hidden(found->function, path),
                                          .is_allocator = kind == PLUMBING_ALLOCATOR};
    }
    return true;
}

// The places of one module: `list` has their numbers, sorted by module.
static bool resolve_module(struct names *names, const uint32_t *list, size_t count,
                           struct error *error) {
    uint32_t index = names->profile->places.list.items[list[0]].module;
    const struct module *module = &names->profile->modules.modules[index];
    struct symbol_query *queries = calloc(count, sizeof *queries);
    if (!queries) return error_set(error, "no memory for names");
    for (size_t i = 0; i < count; i++)
        queries[i].address = names->profile->places.list.items[list[i]].address;
    struct symbol_module file = {.path = module->path,
                                 .build_id = module->build_id_bytes ? module->build_id : NULL,
                                 .build_id_bytes = module->build_id_bytes};
    struct symbol_report report = {0};
    bool is_ok = symbol_resolve(names->table, &file, queries, count, &report, error);
    if (is_ok) names->notes[index] = report.note;
    for (size_t i = 0; i < count && is_ok; i++)
        is_ok = keep(names, list[i], &queries[i]) || error_set(error, "no memory for names");
    free(queries);
    return is_ok;
}

static int compare(const void *a, const void *b, void *context) {
    const struct place *places = context;
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    uint32_t x = places[first].module, y = places[second].module;
    if (x != y) return x < y ? -1 : 1;
    return (first > second) - (first < second);
}

static bool has_function(const struct place_names *known) {
    for (size_t i = 0; i < known->count; i++)
        if (known->frames[i].function) return true;
    return false;
}

// Names the modules with the most frames without a name; `counts` is by module.
static void name_modules(struct names *names, uint32_t *counts) {
    const struct module_map *modules = &names->profile->modules;
    char *text = names->unresolved_modules;
    size_t used = 0;
    *text = 0;
    for (int named = 0; named < MODULES_NAMED; named++) {
        size_t most = 0;
        for (size_t i = 1; i <= modules->count; i++)
            if (counts[i] > counts[most]) most = i;
        if (!counts[most] || used >= MODULES_TEXT_BYTES) return;
        char name[MODULES_TEXT_BYTES / MODULES_NAMED];
        bool is_module = most < modules->count;
        text_escape(name, sizeof name,
                    is_module ? text_base_name(modules->modules[most].path) : "no module");
        used += (size_t)snprintf(text + used, MODULES_TEXT_BYTES - used, "%s%s", used ? ", " : "",
                                 name);
        counts[most] = 0;
    }
}

static bool count_unresolved(struct names *names, struct error *error) {
    const struct place *places = names->profile->places.list.items;
    size_t module_count = names->profile->modules.count;
    uint32_t *counts = calloc(module_count + 1, sizeof *counts);
    if (!counts) return error_set(error, "no memory for names");
    names->wanted_count = names->unresolved_count = 0;
    for (size_t i = 0; i < names->profile->places.list.count; i++) {
        if (!names->places[i].is_wanted || places[i].cut) continue;
        names->wanted_count++;
        if (has_function(&names->places[i])) continue;
        names->unresolved_count++;
        counts[places[i].module < module_count ? places[i].module : module_count]++;
    }
    name_modules(names, counts);
    free(counts);
    return true;
}

bool names_resolve(struct names *names, struct error *error) {
    struct place *places = names->profile->places.list.items;
    size_t place_count = names->profile->places.list.count, count = 0;
    uint32_t *list = calloc(place_count + 1, sizeof *list);
    if (!list) return error_set(error, "no memory for names");
    for (size_t i = 0; i < place_count; i++)
        if (is_asked(names, i)) list[count++] = (uint32_t)i;
    qsort_r(list, count, sizeof *list, compare, places);
    bool is_ok = true;
    for (size_t first = 0, end; first < count && is_ok; first = end) {
        for (end = first + 1; end < count; end++)
            if (places[list[end]].module != places[list[first]].module) break;
        is_ok = resolve_module(names, list + first, end - first, error);
    }
    free(list);
    return is_ok && count_unresolved(names, error);
}

static const struct frame *frames_of_place(void *context, uint32_t place, size_t *count) {
    struct names *names = context;
    const struct place_names *known = &names->places[place];
    *count = known->count;
    if (known->frames) return known->frames;
    const struct place *entry = &names->profile->places.list.items[place];
    bool has_module = entry->module != MODULE_NONE;
    const char *path = has_module ? names->profile->modules.modules[entry->module].path : NULL;
    enum plumbing_kind kind = plumbing_kind_of(NULL, path);
    names->unresolved[place] = (struct frame){.module = path,
                                              .offset = entry->address,
                                              .is_hidden = plumbing_is_hidden(NULL, path),
                                              .is_allocator = kind == PLUMBING_ALLOCATOR};
    *count = 1;
    return &names->unresolved[place];
}

struct frame_names names_frames(struct names *names) {
    return (struct frame_names){.of_place = frames_of_place,
                                .context = names,
                                .wanted_count = names->wanted_count,
                                .unresolved_count = names->unresolved_count,
                                .unresolved_modules =
                                    *names->unresolved_modules ? names->unresolved_modules : NULL};
}

const char *names_note(const struct names *names, uint32_t module) {
    return module < names->profile->modules.count ? names->notes[module] : NULL;
}
