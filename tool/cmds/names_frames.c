// SPDX-License-Identifier: Apache-2.0
// The frames of a place, as screens want them.
#include <stdlib.h>
#include <string.h>

#include "tool/cmds/name_options.h"
#include "tool/cmds/names_state.h"
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

bool names_is_plumbing(enum plumbing_kind kind) {
    return kind != PLUMBING_NONE && kind != PLUMBING_PYTHON;
}

enum plumbing_kind names_kind_of(struct names *names, const char *function, const char *path) {
    uint64_t hash = hash_mix((uint64_t)(uintptr_t)function, (uint64_t)(uintptr_t)path);
    struct plumbing_slot *slot = &names->plumbing[hash % PLUMBING_SLOTS];
    if (!slot->is_used || slot->function != function || slot->path != path)
        *slot = (struct plumbing_slot){function, path, plumbing_kind_of(function, path), true};
    return slot->kind;
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

// What stands for no code is never plumbing, whatever it is called.
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
    struct frame *frame = &names->unresolved[place];
    *frame = (struct frame){.function = name_of_code(names, code->function),
                            .file = file,
                            .module = file,
                            .line = line,
                            .is_python = true,
                            .offset = line,
                            .is_hidden = names_is_plumbing(plumbing_kind_of(code->function, file))};
    names_map_source(names, &frame->file);
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
    if (code && code->is_name) return frame_of_name(names, place, code);
    if (code) return frame_of_code(names, place, code, line);
    const struct place *entry = &names->profile->places.list.items[place];
    bool has_module = entry->module != MODULE_NONE;
    const char *path = has_module ? names->profile->modules.modules[entry->module].path : NULL;
    enum plumbing_kind kind = names_kind_of(names, NULL, path);
    *frame = (struct frame){.module = path,
                            .offset = entry->address,
                            .is_hidden = names_is_plumbing(kind),
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
