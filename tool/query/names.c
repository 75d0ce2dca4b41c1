// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/query/name_options.h"
#include "tool/query/names.h"
#include "tool/query/names_state.h"
#include "tool/symbol/dotnet_name.h"

// The process of the recording if it still runs: its files may be in a tree of their own.
static uint32_t running_process(const struct cairn_header *header) {
    char link[64], program[CAIRN_TEXT_PATH];
    snprintf(link, sizeof link, "/proc/%u/exe", header->pid);
    ssize_t length = readlink(link, program, sizeof program - 1);
    if (length < 0) return 0;
    program[length] = 0;
    return strcmp(program, header->executable) ? 0 : header->pid;
}

static bool open_table(struct names *names, struct error *error) {
    const struct recording *recording = names->profile->recording;
    const struct recording_section *section = &recording->sections[CAIRN_SECTION_SYMBOLS];
    names->options = *name_options_symbols();
    const struct cairn_header *header = &recording->header;
    if (!names->options.process) names->options.process = running_process(header);
    names->options.generator = header->pid;
    names->options.generator_user = header->uid;
    names->options.generator_start_ns = header->start_unix_ns;
    names->options.directory = header->directory[0] == '/' ? header->directory : NULL;
    names->has_kept = section->size && bundle_open(&names->kept, section->bytes, section->size);
    names->is_first_read = !names->has_kept && header->state != CAIRN_STATE_RUNNING;
    return symbol_table_open(&names->table, &names->options, names->has_kept ? &names->kept : NULL,
                             error);
}

static const char *module_of(const struct names *names, uint32_t place) {
    const struct place *entry = &names->profile->places.list.items[place];
    return entry->module == MODULE_NONE ? NULL
                                        : names->profile->modules.modules[entry->module].path;
}

// Whether each place lies in libc and the like; for free(). There are far fewer places than nodes.
static bool *find_runtime_places(const struct names *names) {
    const struct places *places = &names->profile->places;
    bool *are_runtime = calloc(places->list.count + 1, sizeof *are_runtime);
    for (uint32_t i = 0; are_runtime && i < places->list.count; i++)
        are_runtime[i] = !places->list.items[i].cut && internal_is_runtime(module_of(names, i));
    return are_runtime;
}

// How stacks begin, by their shape, as far as it has no names: frames of libc and libstdc++ at the
// outer end, and the program's entry that calls libc there. Parents come before their children.
static bool find_starts(struct names *names) {
    const struct tree_node *nodes = names->profile->tree.nodes.items;
    const char *program = names->profile->recording->header.executable;
    size_t count = names->profile->tree.nodes.count;
    if (names->known_nodes >= count) return true;
    bool *are_runtime = find_runtime_places(names);
    if (!are_runtime) return false;
    for (size_t i = names->known_nodes ? names->known_nodes : 1; i < count; i++) {
        uint32_t parent = nodes[i].parent;
        struct place_names *outer = &names->places[nodes[parent].place];
        bool is_outermost = parent == TREE_ROOT;
        if (!are_runtime[nodes[i].place]) continue;
        const char *above = is_outermost ? NULL : module_of(names, nodes[parent].place);
        if (!is_outermost && nodes[parent].depth == 1 && above && !strcmp(above, program))
            outer->is_start = true;  // _start
        names->places[nodes[i].place].is_start |= is_outermost || outer->is_start;
    }
    free(are_runtime);
    names->known_nodes = count;
    return true;
}

bool names_open(const struct profile *profile, struct names **names, struct error *error) {
    size_t place_count = profile->places.list.count;
    struct names *opened = calloc(1, sizeof *opened);
    *names = opened;
    if (!opened) return error_set(error, "no memory for names");
    opened->profile = profile;
    opened->place_count = place_count;
    opened->module_count = profile->modules.count;
    opened->places = calloc(place_count + 1, sizeof *opened->places);
    opened->unresolved = calloc(place_count + 1, sizeof *opened->unresolved);
    opened->reports = calloc(profile->modules.count + 1, sizeof *opened->reports);
    opened->unresolved_counts = calloc(profile->modules.count + 1, sizeof(uint32_t));
    bool has_memory =
        opened->places && opened->unresolved && opened->reports && opened->unresolved_counts;
    bool is_ok = has_memory && find_starts(opened) ? open_table(opened, error)
                                                   : error_set(error, "no memory for names");
    if (is_ok) return true;
    names_close(opened);
    *names = NULL;
    return false;
}

void names_close(struct names *names) {
    if (!names) return;
    for (size_t i = 0; names->places && i < names->place_count; i++) free(names->places[i].frames);
    for (size_t i = 0; i < names->mapped.count; i++) free(names->mapped.items[i]);
    array_free(&names->mapped);
    symbol_table_close(names->table);
    free(names->kept_bytes);
    free(names->wanted_nodes);
    free(names->places);
    free(names->unresolved);
    free(names->reports);
    free(names->unresolved_counts);
    free(names);
}

// Takes `count` entries from then on, the new ones zero. False without memory.
static bool extend(void **items, size_t item_bytes, size_t old_count, size_t count) {
    char *grown = reallocarray(*items, count, item_bytes);
    if (!grown) return false;
    memset(grown + old_count * item_bytes, 0, (count - old_count) * item_bytes);
    *items = grown;
    return true;
}

// The last entry, of generated code, stays the last one.
static bool extend_modules(struct names *names) {
    size_t old = names->module_count + 1, count = names->profile->modules.count + 1;
    if (count <= old) return true;
    if (!extend((void **)&names->reports, sizeof *names->reports, old, count) ||
        !extend((void **)&names->unresolved_counts, sizeof(uint32_t), old, count))
        return false;
    names->reports[count - 1] = names->reports[old - 1];
    names->reports[old - 1] = (struct symbol_report){0};
    names->module_count = count - 1;
    return true;
}

bool names_extend(struct names *names, struct error *error) {
    size_t old = names->place_count, count = names->profile->places.list.count;
    if (!extend_modules(names)) return error_set(error, "no memory for names");
    if (count <= old) return find_starts(names) || error_set(error, "no memory for names");
    if (count < 2 * old) count = 2 * old;
    if (!extend((void **)&names->places, sizeof *names->places, old + 1, count + 1) ||
        !extend((void **)&names->unresolved, sizeof *names->unresolved, old + 1, count + 1))
        return error_set(error, "no memory for names");
    names->place_count = count;
    return find_starts(names) || error_set(error, "no memory for names");
}

// Without memory every stack is walked to its end.
static void make_room_for_nodes(struct names *names) {
    size_t old = names->wanted_node_count, count = names->profile->tree.nodes.count;
    if (count <= old) return;
    if (extend((void **)&names->wanted_nodes, sizeof *names->wanted_nodes, old, count))
        names->wanted_node_count = count;
}

// Most stacks have most of their callers in common: from each node is noted how many places
// outwards are wanted already.
void names_want_stack(struct names *names, uint32_t node, size_t limit) {
    const struct tree_node *nodes = names->profile->tree.nodes.items;
    size_t left = limit ? limit : WANTED_ALL;
    make_room_for_nodes(names);
    for (; node != TREE_ROOT && left; node = nodes[node].parent) {
        bool is_noted = node < names->wanted_node_count && (!limit || left < WANTED_ALL);
        if (is_noted && names->wanted_nodes[node] >= left) return;
        if (is_noted) names->wanted_nodes[node] = (uint8_t)left;
        names->places[nodes[node].place].is_wanted = true;
        if (limit) left--;
    }
}

void names_need_all(struct names *names) {
    names->are_all_needed = true;
}

void names_want_overruns(struct names *names) {
    const struct overruns *overruns = &names->profile->overruns;
    for (size_t i = 0; i < overruns->list.count; i++) {
        names_want_stack(names, overruns->list.items[i].node, 0);
        names_want_stack(names, overruns->list.items[i].found_node, 0);
    }
}

void names_give(struct names *names, uint32_t place, struct frame *frames, size_t count) {
    struct place_names *known = &names->places[place];
    const struct place *entry = &names->profile->places.list.items[place];
    bool has_module = entry->module != MODULE_NONE;
    const char *path = has_module ? names->profile->modules.modules[entry->module].path : NULL;
    for (size_t i = 0; i < count; i++)
        if (has_module || frames[i].is_python)
            frames[i].module = frames[i].is_python ? frames[i].file : path;
    free(known->frames);
    known->frames = frames;
    known->count = count;
}

// Names of code that the program generates come while it runs: they are asked for again.
static bool is_asked(const struct names *names, size_t place) {
    const struct place_names *known = &names->places[place];
    uint32_t index = names->profile->places.list.items[place].module;
    const char *path = index == MODULE_NONE ? "" : names->profile->modules.modules[index].path;
    bool is_wanted =
        known->is_wanted || names->are_all_needed || (names->is_first_read && module_is_own(path));
    bool is_answered = known->frames || (known->was_asked && index != MODULE_NONE);
    return is_wanted && !is_answered && names_is_code(names, place);
}

// Functions of the standard library that are inlined into others of the same name, as the halves of
// a constructor, say it twice: one of them is internal frames.
static bool is_repetition(const struct symbol_frame *found) {
    const struct symbol_frame *next = found + 1;
    return found->is_inlined && found->plain && next->plain && !strcmp(found->plain, next->plain) &&
           (!strncmp(found->plain, "std::", 5) || !strncmp(found->plain, "core::", 6));
}

// Tells whether the code of a place is a method of .NET's, by its source.
static bool is_of_dotnet(const struct symbol_frame *found, const char *path) {
    return (!path || !*path) && dotnet_is_assembly(found->file, found->line);
}

static bool has_module_of(const struct names *names, const char *file) {
    const struct module_map *modules = &names->profile->modules;
    for (uint32_t i = 0; i < modules->count; i++)
        if (!strcmp(text_base_name(modules->modules[i].path), file)) return true;
    return false;
}

// Makes a frame one of .NET: the runtime around it is internal frames, its own assemblies a
// library.
static void make_dotnet(struct names *names, struct frame *frame) {
    if (!names->has_dotnet) names->is_dotnet_inside = !has_module_of(names, "libcoreclr.so");
    names->has_dotnet = frame->is_python = true;
    if (dotnet_is_framework(frame->file)) frame->is_own = false;
}

// Keeps the frames of a resolved place.
static bool keep(struct names *names, size_t place, const struct symbol_query *query) {
    const struct place *entry = &names->profile->places.list.items[place];
    const char *path =
        entry->module == MODULE_NONE ? NULL : names->profile->modules.modules[entry->module].path;
    struct place_names *known = &names->places[place];
    bool is_runtime = internal_is_runtime(path);
    known->was_asked = true;
    if (!query->frame_count) return true;
    known->frames = calloc(query->frame_count, sizeof *known->frames);
    if (!known->frames) return false;
    for (size_t i = 0; i < query->frame_count; i++) {
        const struct symbol_frame *found = &query->frames[i];
        enum internal_kind kind = names_kind_of(names, found->plain, path);
        bool is_repeated = i + 1 < query->frame_count && is_repetition(found);
        struct frame *frame = &known->frames[known->count++];
        *frame =
            (struct frame){.function = found->function,
                           .file = found->file,
                           .line = found->line,
                           .module = path,
                           .offset = entry->address,
                           .is_inlined = found->is_inlined,
                           .is_hidden = names_is_internal(kind) || is_repeated,
                           .is_interpreter = kind == INTERNAL_PYTHON,
                           .is_allocator = kind == INTERNAL_ALLOCATOR,
                           .is_runtime = is_runtime,
                           .is_own = names_is_own(names, found->plain, found->file, path, kind)};
        if (is_of_dotnet(found, path)) make_dotnet(names, frame);
        if (!names_map_source(names, &frame->file)) return false;
        frame_seal(frame);
    }
    return true;
}

bool names_has_dotnet(const struct names *names) {
    return names->has_dotnet;
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

// Of the hooks of allocators by name (--wrap), which are in the way of stacks: they are hidden.
static bool is_of_cairn(const struct names *names, size_t place) {
    uint32_t module = names->profile->places.list.items[place].module;
    return module != MODULE_NONE && module_is_cairn(names->profile->modules.modules[module].path);
}

static bool count_unresolved(struct names *names, struct error *error) {
    const struct place *places = names->profile->places.list.items;
    size_t module_count = names->profile->modules.count;
    uint32_t *counts = names->unresolved_counts;
    memset(counts, 0, (module_count + 1) * sizeof *counts);
    names->wanted_count = names->unresolved_count = 0;
    for (size_t i = 0; i < names->profile->places.list.count; i++) {
        if (!names->places[i].is_wanted || !names_is_code(names, i)) continue;
        if (is_of_cairn(names, i)) continue;
        names->wanted_count++;
        if (has_function(&names->places[i])) continue;
        names->unresolved_count++;
        counts[places[i].module < module_count ? places[i].module : module_count]++;
    }
    uint32_t *left = calloc(module_count + 1, sizeof *left);
    if (!left) return error_set(error, "no memory for names");
    memcpy(left, counts, (module_count + 1) * sizeof *left);
    name_modules(names, left);
    free(left);
    return true;
}

bool names_is_first_read(const struct names *names) {
    return names->is_first_read && names->options.cache_dir;
}

size_t names_unresolved(const struct names *names, uint32_t module) {
    return module < names->profile->modules.count ? names->unresolved_counts[module] : 0;
}

bool names_resolve(struct names *names, struct error *error) {
    struct asked asked = {.count = 0};
    bool is_ok = names_list(names, is_asked, &asked, error);
    is_ok = is_ok && (!asked.count || names_ask(names, &asked, error));
    for (size_t i = 0; i < asked.count && is_ok; i++)
        is_ok = keep(names, asked.list[i], &asked.queries[i]) ||
                error_set(error, "no memory for names");
    names_asked_free(&asked);
    return is_ok && count_unresolved(names, error);
}

const struct symbol_report *names_report(const struct names *names, uint32_t module) {
    size_t count = names->profile->modules.count;
    return module < count || module == MODULE_NONE
               ? &names->reports[module < count ? module : count]
               : NULL;
}
