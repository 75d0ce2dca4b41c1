// SPDX-License-Identifier: Apache-2.0
// The frames of a place, as screens want them.
#include <stdlib.h>
#include <string.h>

#include "tool/query/name_options.h"
#include "tool/query/names.h"
#include "tool/query/names_state.h"
#include "tool/symbol/rename.h"

bool names_map_source(struct names *names, const char **file) {
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

bool names_is_internal(enum internal_kind kind) {
    return kind != INTERNAL_NONE && kind != INTERNAL_PYTHON;
}

// A static program has libc in itself: no other module starts its threads.
static bool is_static_program(const struct names *names, const char *path) {
    const struct profile *profile = names->profile;
    if (!path || strcmp(path, profile->recording->header.executable) != 0) return false;
    for (size_t i = 0; i < profile->modules.count; i++)
        if (internal_is_runtime(profile->modules.modules[i].path)) return false;
    return true;
}

static enum internal_kind kind_of(const struct names *names, const char *function,
                                  const char *path) {
    enum internal_kind kind = internal_kind_of(function, path);
    bool may_be_libc = kind == INTERNAL_NONE && function && is_static_program(names, path);
    return may_be_libc ? internal_kind_of(function, "libc.so.6") : kind;
}

enum internal_kind names_kind_of(struct names *names, const char *function, const char *path) {
    uint64_t hash = hash_mix((uint64_t)(uintptr_t)function, (uint64_t)(uintptr_t)path);
    struct internal_slot *slot = &names->internal[hash % INTERNAL_SLOTS];
    if (!slot->is_used || slot->function != function || slot->path != path)
        *slot = (struct internal_slot){function, path, kind_of(names, function, path), true};
    return slot->kind;
}

bool names_is_own(const struct names *names, const char *plain, const char *file,
                  const char *module, enum internal_kind kind) {
    const struct cairn_header *header = &names->profile->recording->header;
    if (kind != INTERNAL_NONE || internal_is_library(plain, file)) return false;
    if (!module || !*module) return plain != NULL;
    // node is a library of the JavaScript that it runs, as php and ruby are
    if (!strcmp(module, header->executable))
        return !header->has_js_frames && !header->has_php_frames && !header->has_ruby_frames;
    return module_is_own(module);
}

// `file` of Python, Java, JavaScript, PHP or Ruby code: no module of the language's own (node:fs,
// <frozen os>, wherever Python is installed), and no package.
static bool code_is_own(const char *file) {
    static const char *const own[] = {"node:", "<frozen ", "<internal:"};
    static const char *const packages[] = {"/site-packages/", "/dist-packages/", "/node_modules/",
                                           "/lib/python3.",   "/vendor/",        "/gems/"};
    if (!file || !module_is_own(file)) return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strncmp(file, own[i], strlen(own[i]))) return false;
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (strstr(file, packages[i])) return false;
    return true;
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

// What stands for no code is never internal frames, whatever it is called.
static const struct frame *frame_of_name(struct names *names, uint32_t place,
                                         const struct code *code) {
    struct frame *frame = &names->unresolved[place];
    *frame = (struct frame){.function = code->function};
    return frame;
}

// The frame of Python code: its name and line are in the recording.
static const struct frame *frame_of_code(struct names *names, uint32_t place,
                                         const struct code *code, uint32_t line) {
    const char *file = *code->file ? code->file : NULL;
    enum internal_kind kind = internal_kind_of(code->function, file);
    struct frame *frame = &names->unresolved[place];
    *frame = (struct frame){.function = name_of_code(names, code->function),
                            .file = file,
                            .module = file,
                            .line = line,
                            .is_python = true,
                            .offset = line,
                            .is_hidden = names_is_internal(kind),
                            .is_own = !names_is_internal(kind) && code_is_own(file)};
    names_map_source(names, &frame->file);
    return frame;
}

// A program of .NET as one file is stripped, and has the runtime in itself.
static bool is_dotnet_runtime(const struct names *names, const char *path) {
    return names->is_dotnet_inside && path &&
           !strcmp(path, names->profile->recording->header.executable);
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
    if (code && code->is_name) return frame_of_name(names, place, code);
    if (code) return frame_of_code(names, place, code, line);
    const struct place *entry = &names->profile->places.list.items[place];
    bool has_module = entry->module != MODULE_NONE;
    const char *path = has_module ? names->profile->modules.modules[entry->module].path : NULL;
    enum internal_kind kind = names_kind_of(names, NULL, path);
    if (kind == INTERNAL_NONE && known->is_start) kind = INTERNAL_START;
    if (kind == INTERNAL_NONE && is_dotnet_runtime(names, path)) kind = INTERNAL_PYTHON;
    *frame = (struct frame){.module = path,
                            .offset = entry->address,
                            .is_hidden = names_is_internal(kind),
                            .is_interpreter = kind == INTERNAL_PYTHON,
                            .is_allocator = kind == INTERNAL_ALLOCATOR,
                            .is_own = names_is_own(names, NULL, NULL, path, kind)};
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
