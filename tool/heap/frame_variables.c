// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/frame_variables.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"
#include "tool/base/text.h"
#include "tool/symbol/name_clean.h"

enum { NAME_BYTES = 256, BEFORE_MOST = 16 };

struct finding {
    struct core_types *types;
    ARRAY(struct typed_module) modules;
    struct frame_variables *variables;
    bool is_failed;
};

static bool open_module(void *context, const struct elf_module *module) {
    struct finding *finding = context;
    for (size_t i = 0; i < finding->modules.count; i++)
        if (finding->modules.items[i].bias == module->bias) return true;
    struct types *types = types_open(&module->files, core_types_options(finding->types));
    struct typed_module *slot = types ? array_push(&finding->modules) : NULL;
    if (slot)
        *slot = (struct typed_module){.bias = module->bias, .types = types};
    else
        types_close(types);
    return true;
}

static char *safe_name(const char *name) {
    char safe[NAME_BYTES];
    char *clean = name_clean_cxx(name);
    text_escape(safe, sizeof safe, clean ? clean : name);
    free(clean);
    return strdup(safe);
}

static bool see(void *context, const struct frame_variable *variable) {
    struct finding *finding = context;
    uint64_t start = variable->address, bytes = variable->type->bytes;
    if (variable->is_unplaced || variable->is_value || !bytes || !*variable->name ||
        start + bytes < start)
        return true;
    struct stack_variable *slot = array_push(&finding->variables->items);
    if (slot)
        *slot = (struct stack_variable){variable->thread, start, start + bytes,
                                        safe_name(variable->name)};
    finding->is_failed |= !slot || !slot->name;
    return !finding->is_failed;
}

static int by_thread_and_start(const void *a, const void *b) {
    const struct stack_variable *one = a, *other = b;
    if (one->thread != other->thread) return one->thread < other->thread ? -1 : 1;
    if (one->start != other->start) return one->start < other->start ? -1 : 1;
    return (one->end < other->end) - (one->end > other->end);  // what is within comes behind
}

bool frame_variables_find(const struct core_image *core, struct core_types *types,
                          struct frame_variables *variables) {
    struct finding finding = {.types = types, .variables = variables};
    *variables = (struct frame_variables){0};
    bool is_ok = core_types_each_module(types, open_module, &finding);
    if (is_ok)
        frames_each_variable(core, types, finding.modules.items, finding.modules.count, see,
                             &finding);
    for (size_t i = 0; i < finding.modules.count; i++) types_close(finding.modules.items[i].types);
    array_free(&finding.modules);
    if (variables->items.count)
        qsort(variables->items.items, variables->items.count, sizeof *variables->items.items,
              by_thread_and_start);
    return is_ok && !finding.is_failed;
}

void frame_variables_free(struct frame_variables *variables) {
    for (size_t i = 0; i < variables->items.count; i++) free(variables->items.items[i].name);
    array_free(&variables->items);
}

const struct stack_variable *frame_variable_at(const struct frame_variables *variables,
                                               const struct core_thread *thread, uint64_t address) {
    const struct stack_variable *items = variables->items.items;
    const struct stack_variable wanted = {.thread = thread, .start = address};
    size_t behind;
    search_first(behind, variables->items.count, by_thread_and_start(&items[behind], &wanted) > 0);
    for (size_t i = behind; i > 0 && behind - i < BEFORE_MOST; i--)
        if (items[i - 1].thread == thread && items[i - 1].end > address) return &items[i - 1];
    return NULL;
}
