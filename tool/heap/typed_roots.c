// SPDX-License-Identifier: Apache-2.0
// Where typed.c begins: the modules with debug information, and the variables in them and in
// frames.
#include "tool/heap/typed_internal.h"

#include <string.h>

// --- modules

static bool is_known_module(const struct typed *typed, const struct elf_module *module) {
    for (size_t i = 0; i < typed->modules.count; i++)
        if (typed->modules.items[i].bias == module->bias) return true;
    return false;
}

static bool open_module(void *context, const struct elf_module *module) {
    struct typed *typed = context;
    if (is_known_module(typed, module)) return true;
    struct types *types = types_open(&module->files, core_types_options(typed->types));
    struct typed_module *slot = types ? array_push(&typed->modules) : NULL;
    if (!slot) {
        types_close(types);
        return true;
    }
    const struct core_image *core = typed->core;
    typed->has_program |= core->files.count && !strcmp(module->path, core->files.items[0].path);
    *slot = (struct typed_module){
        .bias = module->bias, .types = types, .locals = thread_locals_of(typed->core, module)};
    return true;
}

bool typed_open_modules(struct typed *typed) {
    return core_types_each_module(typed->types, open_module, typed);
}

// --- variables

static bool add_root(struct typed *typed, const struct typed_root *root) {
    struct typed_root *slot = array_push(&typed->roots);
    if (slot) *slot = *root;
    typed->is_failed |= !slot;
    return slot;
}

struct reading {
    struct typed *typed;
    const struct typed_module *module;
};

static bool note_variable(void *context, const struct type_variable *variable) {
    struct reading *reading = context;
    const struct typed_module *module = reading->module;
    struct typed *typed = reading->typed;
    if (!layout_has_pointers(variable->type) || !variable->type->bytes) return true;
    struct typed_root root = {.name = variable->name, .type = variable->type};
    if (!variable->is_thread_local) {
        root.address = module->bias + variable->place;
        return add_root(typed, &root);
    }
    for (size_t i = 0; i < typed->core->threads.count; i++) {
        if (!thread_locals_start(typed->core, &module->locals, &typed->core->threads.items[i],
                                 &root.address))
            continue;
        root.address += variable->place;
        root.thread = &typed->core->threads.items[i];
        if (!add_root(typed, &root)) return false;
    }
    return true;
}

static bool add_unplaced(struct typed *typed, const struct type *type) {
    const struct type **slot = array_push(&typed->unplaced);
    if (slot) *slot = type;
    typed->is_failed |= !slot;
    return slot;
}

static bool note_local(void *context, const struct frame_variable *variable) {
    const struct typed_root root = {.name = variable->name,
                                    .function = variable->function,
                                    .type = variable->type,
                                    .address = variable->address,
                                    .value = variable->value,
                                    .is_value = variable->is_value,
                                    .thread = variable->thread};
    if (!layout_has_pointers(variable->type) || !variable->type->bytes) return true;
    return variable->is_unplaced ? add_unplaced(context, variable->type) : add_root(context, &root);
}

const uint8_t *typed_root_bytes(struct typed *typed, const struct typed_root *root,
                                uint64_t *size) {
    *size = root->type->bytes;
    if (!root->is_value) return typed_read(typed, root->address, size);
    if (*size > sizeof root->value) *size = sizeof root->value;
    return (const uint8_t *)&root->value;
}

bool typed_read_roots(struct typed *typed) {
    for (size_t i = 0; i < typed->modules.count; i++) {
        struct reading reading = {typed, &typed->modules.items[i]};
        types_each_variable(reading.module->types, note_variable, &reading);
    }
    typed->variable_count = typed->roots.count;
    frames_each_variable(typed->core, typed->types, typed->modules.items, typed->modules.count,
                         note_local, typed);
    return !typed->is_failed;
}
