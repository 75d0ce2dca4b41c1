// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/cmds/name_options.h"
#include "tool/cmds/progress.h"
#include "tool/symbol/bundle.h"
#include "tool/symbol/plumbing.h"
#include "tool/symbol/rename.h"

struct place_names {
    struct frame *frames;
    size_t count;
    bool is_wanted;
};

enum { MODULES_TEXT_BYTES = 160, MODULES_NAMED = 3 };

// What was found to be plumbing, by function and module; the same pointers are the same texts.
struct plumbing_slot {
    const char *function, *path;
    enum plumbing_kind kind;
    bool is_used;
};
enum { PLUMBING_SLOTS = 4096 };

struct names {
    const struct profile *profile;
    struct symbol_table *table;
    struct place_names *places;     // by place
    struct frame *unresolved;       // by place: the frame of one without a name
    struct symbol_report *reports;  // by module, of those that were asked; last: generated code
    uint32_t *unresolved_counts;    // the same; places without a function's name
    struct symbol_options options;
    struct bundle kept;  // names in the recording
    ARRAY(char *)
    mapped;           // paths of sources and names of Python code that the user wants otherwise
    bool has_python;  // Python's own frames are there
    size_t wanted_count, unresolved_count;
    char unresolved_modules[MODULES_TEXT_BYTES];  // safe text
    struct plumbing_slot plumbing[PLUMBING_SLOTS];
};

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
    names->options.process = running_process(header);
    names->options.generator = header->pid;
    names->options.generator_user = header->uid;
    names->options.generator_start_ns = header->start_unix_ns;
    names->options.generator_directory = header->directory[0] == '/' ? header->directory : NULL;
    bool has_kept = section->size && bundle_open(&names->kept, section->bytes, section->size);
    return symbol_table_open(&names->table, &names->options, has_kept ? &names->kept : NULL, error);
}

bool names_open(const struct profile *profile, struct names **names, struct error *error) {
    size_t place_count = profile->places.list.count;
    struct names *opened = calloc(1, sizeof *opened);
    *names = opened;
    if (!opened) return error_set(error, "no memory for names");
    opened->profile = profile;
    opened->places = calloc(place_count + 1, sizeof *opened->places);
    opened->unresolved = calloc(place_count + 1, sizeof *opened->unresolved);
    opened->reports = calloc(profile->modules.count + 1, sizeof *opened->reports);
    opened->unresolved_counts = calloc(profile->modules.count + 1, sizeof(uint32_t));
    bool has_memory =
        opened->places && opened->unresolved && opened->reports && opened->unresolved_counts;
    bool is_ok = has_memory ? open_table(opened, error) : error_set(error, "no memory for names");
    if (is_ok) return true;
    names_close(opened);
    *names = NULL;
    return false;
}

void names_close(struct names *names) {
    if (!names) return;
    for (size_t i = 0; names->places && i < names->profile->places.list.count; i++)
        free(names->places[i].frames);
    for (size_t i = 0; i < names->mapped.count; i++) free(names->mapped.items[i]);
    array_free(&names->mapped);
    symbol_table_close(names->table);
    free(names->places);
    free(names->unresolved);
    free(names->reports);
    free(names->unresolved_counts);
    free(names);
}

void names_want_stack(struct names *names, uint32_t node, size_t limit) {
    const struct tree_node *nodes = names->profile->tree.nodes.items;
    for (size_t i = 0; node != TREE_ROOT && (!limit || i < limit); i++) {
        names->places[nodes[node].place].is_wanted = true;
        node = nodes[node].parent;
    }
}

void names_give(struct names *names, uint32_t place, struct frame *frames, size_t count) {
    struct place_names *known = &names->places[place];
    const struct place *entry = &names->profile->places.list.items[place];
    bool has_module = entry->module != MODULE_NONE;
    const char *path = has_module ? names->profile->modules.modules[entry->module].path : NULL;
    for (size_t i = 0; i < count; i++)
        frames[i].module = frames[i].is_python ? frames[i].file : path;
    free(known->frames);
    known->frames = frames;
    known->count = count;
}

// Native code, that of a JIT included: sources of names can be asked.
static bool is_code(const struct names *names, size_t place) {
    uint32_t line;
    return !names->profile->places.list.items[place].cut &&
           !place_code(&names->profile->places, (uint32_t)place, &line);
}

static bool is_asked(const struct names *names, size_t place) {
    const struct place_names *known = &names->places[place];
    return known->is_wanted && !known->frames && is_code(names, place);
}

// The path that the user wants for a source; false without memory.
static bool map_source(struct names *names, const char **file) {
    char *mapped = *file ? name_options_map_source(*file) : NULL;
    if (!mapped) return true;
    char **slot = array_push(&names->mapped);
    if (!slot) {
        free(mapped);
        return false;
    }
    *file = *slot = mapped;
    return true;
}

// Whatever the rest of the stack is.
static bool is_plumbing(enum plumbing_kind kind) {
    return kind != PLUMBING_NONE && kind != PLUMBING_PYTHON;
}

// Functions of the standard library that are inlined into others of the same name say it twice.
static bool is_repetition(const struct symbol_frame *found) {
    const struct symbol_frame *next = found + 1;
    return found->is_inlined && found->plain && next->plain && !strcmp(found->plain, next->plain) &&
           (!strncmp(found->plain, "std::", 5) || !strncmp(found->plain, "core::", 6));
}

static enum plumbing_kind kind_of(struct names *names, const char *function, const char *path) {
    uint64_t hash = hash_mix((uint64_t)(uintptr_t)function, (uint64_t)(uintptr_t)path);
    struct plumbing_slot *slot = &names->plumbing[hash % PLUMBING_SLOTS];
    if (!slot->is_used || slot->function != function || slot->path != path)
        *slot = (struct plumbing_slot){function, path, plumbing_kind_of(function, path), true};
    return slot->kind;
}

// Keeps the frames of a resolved place.
static bool keep(struct names *names, size_t place, const struct symbol_query *query) {
    const struct place *entry = &names->profile->places.list.items[place];
    const char *path =
        entry->module == MODULE_NONE ? NULL : names->profile->modules.modules[entry->module].path;
    struct place_names *known = &names->places[place];
    if (!query->frame_count) return true;
    known->frames = calloc(query->frame_count, sizeof *known->frames);
    if (!known->frames) return false;
    for (size_t i = 0; i < query->frame_count; i++) {
        const struct symbol_frame *found = &query->frames[i];
        enum plumbing_kind kind = kind_of(names, found->plain, path);
        if (i + 1 < query->frame_count && is_repetition(found)) continue;
        struct frame *frame = &known->frames[known->count++];
        *frame = (struct frame){.function = found->function,
                                .file = found->file,
                                .line = found->line,
                                .module = path,
                                .offset = entry->address,
                                .is_inlined = found->is_inlined,
                                .is_hidden = is_plumbing(kind),
                                .is_interpreter = kind == PLUMBING_PYTHON,
                                .is_allocator = kind == PLUMBING_ALLOCATOR};
        if (!map_source(names, &frame->file)) return false;
        frame_seal(frame);
    }
    return true;
}

static struct symbol_module module_of(const struct names *names, uint32_t index) {
    if (index == MODULE_NONE) return (struct symbol_module){.path = ""};
    const struct module *module = &names->profile->modules.modules[index];
    return (struct symbol_module){module->path, module->build_id_bytes ? module->build_id : NULL,
                                  module->build_id_bytes};
}

// A job for each module of the places in `list`, which is sorted by module; `queries` has one of
// each place.
static size_t make_jobs(const struct names *names, const uint32_t *list, size_t count,
                        struct symbol_query *queries, struct symbol_job *jobs) {
    const struct place *places = names->profile->places.list.items;
    size_t job_count = 0;
    for (size_t i = 0; i < count; i++) {
        queries[i].address = places[list[i]].address;
        if (!i || places[list[i]].module != places[list[i - 1]].module)
            jobs[job_count++] = (struct symbol_job){
                .module = module_of(names, places[list[i]].module), .queries = &queries[i]};
        jobs[job_count - 1].count++;
    }
    return job_count;
}

// What was asked of some places: `list` is sorted by module, `queries` has one of each place.
struct asked {
    uint32_t *list;
    size_t count;
    struct symbol_query *queries;
    struct symbol_job *jobs;
    size_t job_count;
};

static void asked_free(struct asked *asked) {
    free(asked->list);
    free(asked->queries);
    free(asked->jobs);
}

// Asks the sources about the places of the list.
static bool ask(struct names *names, struct asked *asked, struct error *error) {
    const struct place *places = names->profile->places.list.items;
    asked->queries = calloc(asked->count + 1, sizeof *asked->queries);
    asked->jobs = calloc(asked->count + 1, sizeof *asked->jobs);
    if (!asked->queries || !asked->jobs) return error_set(error, "no memory for names");
    asked->job_count = make_jobs(names, asked->list, asked->count, asked->queries, asked->jobs);
    struct progress progress;
    const struct symbol_progress shown = progress_start(&progress, "looking up names");
    bool is_ok = symbol_resolve_all(names->table, asked->jobs, asked->job_count, &shown, error);
    progress_end(&progress);
    size_t first = 0;
    for (size_t i = 0; i < asked->job_count && is_ok; first += asked->jobs[i++].count) {
        uint32_t module = places[asked->list[first]].module;
        size_t slot = module == MODULE_NONE ? names->profile->modules.count : module;
        names->reports[slot] = asked->jobs[i].report;
    }
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
    uint32_t *counts = names->unresolved_counts;
    memset(counts, 0, (module_count + 1) * sizeof *counts);
    names->wanted_count = names->unresolved_count = 0;
    for (size_t i = 0; i < names->profile->places.list.count; i++) {
        if (!names->places[i].is_wanted || !is_code(names, i)) continue;
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

size_t names_unresolved(const struct names *names, uint32_t module) {
    return module < names->profile->modules.count ? names->unresolved_counts[module] : 0;
}

// The places for which `is_wanted` holds, by module. False without memory.
static bool list_places(const struct names *names,
                        bool (*is_wanted)(const struct names *names, size_t place),
                        struct asked *asked, struct error *error) {
    struct place *places = names->profile->places.list.items;
    size_t place_count = names->profile->places.list.count;
    asked->list = calloc(place_count + 1, sizeof *asked->list);
    if (!asked->list) return error_set(error, "no memory for names");
    for (size_t i = 0; i < place_count; i++)
        if (is_wanted(names, i)) asked->list[asked->count++] = (uint32_t)i;
    qsort_r(asked->list, asked->count, sizeof *asked->list, compare, places);
    return true;
}

bool names_resolve(struct names *names, struct error *error) {
    struct asked asked = {.count = 0};
    bool is_ok = list_places(names, is_asked, &asked, error);
    is_ok = is_ok && (!asked.count || ask(names, &asked, error));
    for (size_t i = 0; i < asked.count && is_ok; i++)
        is_ok = keep(names, asked.list[i], &asked.queries[i]) ||
                error_set(error, "no memory for names");
    asked_free(&asked);
    return is_ok && count_unresolved(names, error);
}

static bool is_generated(const struct names *names, size_t place) {
    return is_code(names, place) && names->profile->places.list.items[place].module == MODULE_NONE;
}

static int by_address(const void *left, const void *right) {
    const struct symbol_query *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static bool make_bundle(const struct asked *asked, void **bytes, size_t *size,
                        struct error *error) {
    struct bundle_part *parts = calloc(asked->job_count + 1, sizeof *parts);
    if (!parts) return error_set(error, "no memory for names");
    for (size_t i = 0; i < asked->job_count; i++) {
        struct symbol_job *job = &asked->jobs[i];
        qsort(job->queries, job->count, sizeof *job->queries, by_address);
        parts[i] = (struct bundle_part){.module = job->module,
                                        .source = job->report.source,
                                        .source_path = job->report.path,
                                        .note = job->report.note,
                                        .queries = job->queries,
                                        .count = job->count};
    }
    bool is_made = bundle_make(parts, asked->job_count, bytes, size);
    free(parts);
    return is_made || error_set(error, "no memory for names");
}

bool names_collect(struct names *names, enum names_part part, void **bytes, size_t *size,
                   struct error *error) {
    struct asked asked = {.count = 0}, older = {.count = 0};
    bool is_anew = names->options.is_anew = part == NAMES_ANEW;
    bool is_ok =
        list_places(names, part == NAMES_GENERATED ? is_generated : is_code, &asked, error) &&
        ask(names, &asked, error);
    names->options.is_anew = false;
    // what no source knows any more may have been kept
    is_ok = is_ok &&
            (!is_anew || (list_places(names, is_code, &older, error) && ask(names, &older, error)));
    names->wanted_count = asked.count;
    names->unresolved_count = 0;
    for (size_t i = 0; i < asked.count && is_ok; i++) {
        if (is_anew && !asked.queries[i].frame_count) asked.queries[i] = older.queries[i];
        names->unresolved_count += !asked.queries[i].frame_count;
    }
    is_ok = is_ok && make_bundle(&asked, bytes, size, error);
    asked_free(&asked);
    asked_free(&older);
    return is_ok;
}

// The name of Python code as the user wants it.
static const char *name_of_code(struct names *names, const char *function) {
    const struct rename_rules *rules = names->options.renames;
    if (!*function) return "(Python code)";
    char *renamed = rules ? rename_apply(rules, function) : NULL;
    char **slot = renamed ? array_push(&names->mapped) : NULL;
    if (slot) return *slot = renamed;
    free(renamed);
    return function;
}

// The frame of Python code: its name and line are in the recording.
static const struct frame *frame_of_code(struct names *names, uint32_t place,
                                         const struct code *code, uint32_t line) {
    const char *file = *code->file ? code->file : NULL;
    struct frame *frame = &names->unresolved[place];
    *frame = (struct frame){.function = name_of_code(names, code->function),
                            .file = file,
                            .module = file,
                            .line = line,
                            .is_python = true,
                            .offset = line,
                            .is_hidden = is_plumbing(plumbing_kind_of(code->function, file))};
    map_source(names, &frame->file);
    return frame;
}

static const struct frame *frames_of_place(void *context, uint32_t place, size_t *count) {
    struct names *names = context;
    const struct place_names *known = &names->places[place];
    *count = known->count;
    if (known->frames) return known->frames;
    *count = 1;
    struct frame *frame = &names->unresolved[place];
    if (frame->function || frame->function_hash) return frame;  // was asked for before
    uint32_t line;
    const struct code *code = place_code(&names->profile->places, place, &line);
    if (code) return frame_of_code(names, place, code, line);
    const struct place *entry = &names->profile->places.list.items[place];
    bool has_module = entry->module != MODULE_NONE;
    const char *path = has_module ? names->profile->modules.modules[entry->module].path : NULL;
    enum plumbing_kind kind = kind_of(names, NULL, path);
    *frame = (struct frame){.module = path,
                            .offset = entry->address,
                            .is_hidden = is_plumbing(kind),
                            .is_interpreter = kind == PLUMBING_PYTHON,
                            .is_allocator = kind == PLUMBING_ALLOCATOR};
    frame_seal(frame);
    return frame;
}

struct frame_names names_frames(struct names *names) {
    return (struct frame_names){.of_place = frames_of_place,
                                .context = names,
                                .wanted_count = names->wanted_count,
                                .unresolved_count = names->unresolved_count,
                                .unresolved_modules =
                                    *names->unresolved_modules ? names->unresolved_modules : NULL};
}

const struct symbol_report *names_report(const struct names *names, uint32_t module) {
    size_t count = names->profile->modules.count;
    return module < count || module == MODULE_NONE
               ? &names->reports[module < count ? module : count]
               : NULL;
}
