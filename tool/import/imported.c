// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/import/import.h"

enum { COUNT_MAX = 1 << 24 };  // frames' codes have so many bits for a module

bool import_no_memory(struct error *error) {
    return error_set(error, "no memory, or more stacks than can be imported");
}

bool import_start(struct imported *imported, struct error *error) {
    *imported = (struct imported){0};
    strings_start(&imported->strings);
    return tree_start(&imported->tree) || import_no_memory(error);
}

void import_free(struct imported *imported) {
    strings_free(&imported->strings);
    array_free(&imported->modules);
    index_table_free(&imported->module_table);
    array_free(&imported->frames);
    array_free(&imported->places);
    index_table_free(&imported->text_table);
    array_free(&imported->place_texts);
    array_free(&imported->mappings);
    array_free(&imported->addresses);
    index_table_free(&imported->address_table);
    tree_free(&imported->tree);
    array_free(&imported->stacks);
    array_free(&imported->stack_of_node);
    array_free(&imported->points);
    array_free(&imported->samples);
    array_free(&imported->ages);
}

// No path of a recording is longer than the kernel's are.
static uint32_t path_text(struct imported *imported, const char *path) {
    char safe[PATH_MAX];
    if (!path) return strings_number(&imported->strings, path);
    text_escape(safe, sizeof safe, path);
    return strings_number(&imported->strings, safe);
}

uint32_t import_module(struct imported *imported, const char *path) {
    uint32_t text = path_text(imported, path);
    uint64_t hash = hash_mix(index_table_seed(), text);
    struct index_probe probe = index_probe_start(&imported->module_table, hash);
    for (uint32_t index; index_probe_next(&imported->module_table, &probe, &index);)
        if (imported->modules.items[index] == text) return index;
    uint32_t added = (uint32_t)imported->modules.count;
    uint32_t *slot = added < COUNT_MAX ? array_push(&imported->modules) : NULL;
    if (!slot || !index_table_insert(&imported->module_table, hash, added)) return IMPORT_NONE;
    *slot = text;
    return added;
}

uint32_t import_place(struct imported *imported, uint32_t module) {
    if (module == IMPORT_NONE || imported->places.count >= COUNT_MAX) return IMPORT_NONE;
    struct import_place *place = array_push(&imported->places);
    uint32_t *text = array_push(&imported->place_texts);
    if (!place || !text) return IMPORT_NONE;
    *text = 0;
    *place =
        (struct import_place){.module = module, .first_frame = (uint32_t)imported->frames.count};
    return (uint32_t)imported->places.count - 1;
}

// As cairn's own recordings call it.
static uint32_t function_text(struct imported *imported, const char *name, const char *file) {
    char *own = name ? import_name(name, file) : NULL;
    uint32_t number = strings_number(&imported->strings, own);
    if (name && !own) imported->strings.has_failed = true;
    free(own);
    return number;
}

static bool add_frame(struct imported *imported, uint32_t place, uint32_t function,
                      const char *file, uint32_t line) {
    struct import_place *of = &imported->places.items[place];
    if (imported->frames.count >= UINT32_MAX) return false;
    if (!of->frame_count) of->first_frame = (uint32_t)imported->frames.count;
    struct import_frame *frame = array_push(&imported->frames);
    if (!frame) return false;
    *frame = (struct import_frame){
        .function = function, .file = strings_number(&imported->strings, file), .line = line};
    of->frame_count++;
    return !imported->strings.has_failed;
}

bool import_frame(struct imported *imported, const char *function, const char *file,
                  uint32_t line) {
    if (!imported->places.count) return false;
    return add_frame(imported, (uint32_t)imported->places.count - 1,
                     function_text(imported, function, file), file, line);
}

bool import_frame_of(struct imported *imported, uint32_t place, const char *function,
                     const char *file, uint32_t line) {
    return add_frame(imported, place, strings_number(&imported->strings, function), file, line);
}

uint32_t import_cut(struct imported *imported, uint32_t cut) {
    uint32_t place = import_place(imported, import_module(imported, NULL));
    if (place != IMPORT_NONE) imported->places.items[place].cut = cut;
    return place;
}

// Cuts ":12" off the end of `text`. False: there is no number.
static bool cut_number(char *text, uint32_t *number) {
    char *colon = strrchr(text, ':'), *end;
    if (!colon || !isdigit((unsigned char)colon[1])) return false;
    unsigned long value = strtoul(colon + 1, &end, 10);
    if (*end) return false;
    *number = (uint32_t)value;
    *colon = 0;
    return true;
}

// Takes "(prog.c:12)", "(prog.rs:12:5)" or "(in /lib/libc.so)" off the end of `text`.
static void split_location(char *text, const char **file, uint32_t *line, const char **module) {
    size_t length = strlen(text);
    char *open = strrchr(text, '(');
    if (!open || open == text || open[-1] != ' ' || text[length - 1] != ')') return;
    text[length - 1] = 0;
    open[-1] = 0;
    if (!strncmp(open + 1, "in ", 3)) {
        *module = open + 4;
        return;
    }
    uint32_t outer;
    if (cut_number(open + 1, line) && cut_number(open + 1, &outer))
        *line = outer;  // it was the column
    *file = open + 1;
}

static bool fill_place(struct imported *imported, char *text) {
    const char *file = NULL, *module = NULL;
    uint32_t line = 0;
    split_location(text, &file, &line, &module);
    char *name = strstr(text, ": ");
    bool has_address = !strncmp(text, "0x", 2) && name;
    const char *function = has_address ? name + 2 : text;
    if (has_address && !strcmp(function, "???")) {
        *name = 0;  // better the address than nothing
        function = text;
    }
    if (!module) module = import_library_of(function, file);
    uint32_t number = import_module(imported, module);
    return import_place(imported, number) != IMPORT_NONE &&
           import_frame(imported, function, file, line);
}

uint32_t import_place_of_text(struct imported *imported, const char *text) {
    uint32_t number = strings_number(&imported->strings, text);
    uint64_t hash = hash_mix(index_table_seed(), number);
    struct index_probe probe = index_probe_start(&imported->text_table, hash);
    for (uint32_t index; index_probe_next(&imported->text_table, &probe, &index);)
        if (imported->place_texts.items[index] == number) return index;
    char *copy = strdup(text);
    bool is_ok = copy && fill_place(imported, copy);
    free(copy);
    uint32_t added = (uint32_t)imported->places.count - 1;
    if (!is_ok || !index_table_insert(&imported->text_table, hash, added)) return IMPORT_NONE;
    imported->place_texts.items[added] = number;
    return added;
}

static int64_t clamped(int64_t value, int64_t most) {
    return value < 0 ? 0 : value > most ? most : value;
}

// No process has more than this; so sums cannot overflow.
static void values_add(struct import_values *sum, const struct import_values *added) {
    const int64_t blocks_max = (int64_t)1 << 46, bytes_max = (int64_t)1 << 60;
    sum->calls = clamped(sum->calls + clamped(added->calls, blocks_max), blocks_max);
    sum->allocated_bytes =
        clamped(sum->allocated_bytes + clamped(added->allocated_bytes, bytes_max), bytes_max);
    sum->peak_blocks =
        clamped(sum->peak_blocks + clamped(added->peak_blocks, INT32_MAX), INT32_MAX);
    sum->peak_bytes = clamped(sum->peak_bytes + clamped(added->peak_bytes, bytes_max), bytes_max);
    sum->exit_blocks =
        clamped(sum->exit_blocks + clamped(added->exit_blocks, blocks_max), sum->calls);
    sum->exit_bytes =
        clamped(sum->exit_bytes + clamped(added->exit_bytes, bytes_max), sum->allocated_bytes);
    sum->temporary = clamped(sum->temporary + clamped(added->temporary, blocks_max), sum->calls);
    sum->slack_bytes =
        clamped(sum->slack_bytes + clamped(added->slack_bytes, bytes_max), bytes_max);
}

bool import_node(struct imported *imported, uint32_t node, const struct import_values *values) {
    while (imported->stack_of_node.count <= node) {
        uint32_t *slot = array_push(&imported->stack_of_node);
        if (!slot) return false;
        *slot = 0;
    }
    uint32_t *index = &imported->stack_of_node.items[node];
    if (!*index) {
        struct import_stack *stack = array_push(&imported->stacks);
        if (!stack) return false;
        *stack = (struct import_stack){.node = node};
        *index = (uint32_t)imported->stacks.count;
    }
    values_add(&imported->stacks.items[*index - 1].values, values);
    return true;
}

bool import_samples(struct imported *imported, uint32_t node,
                    const struct cairn_sample_cell *added) {
    uint32_t index = imported->stack_of_node.items[node] - 1;
    while (imported->samples.count <= index) {
        struct cairn_sample_cell *slot = array_push(&imported->samples);
        if (!slot) return false;
        *slot = (struct cairn_sample_cell){0};
    }
    struct cairn_sample_cell *sum = &imported->samples.items[index];
    sum->extra_calls += added->extra_calls;
    sum->extra_frees += added->extra_frees;
    sum->allocated_variance += added->allocated_variance;
    sum->freed_variance += added->freed_variance;
    sum->calls_variance += added->calls_variance;
    sum->frees_variance += added->frees_variance;
    sum->peak_extra += added->peak_extra;
    sum->peak_bytes_variance += added->peak_bytes_variance;
    sum->peak_blocks_variance += added->peak_blocks_variance;
    return true;
}

bool import_age(struct imported *imported, uint32_t node, uint32_t bits, uint64_t blocks) {
    uint32_t index = imported->stack_of_node.items[node] - 1;
    while (imported->ages.count <= index) {
        struct import_ages *slot = array_push(&imported->ages);
        if (!slot) return false;
        *slot = (struct import_ages){0};
    }
    uint32_t *sum =
        &imported->ages.items[index].ms[bits < CAIRN_AGE_BUCKETS ? bits : CAIRN_AGE_BUCKETS - 1];
    *sum = blocks < UINT32_MAX - *sum ? *sum + (uint32_t)blocks : UINT32_MAX;
    return true;
}

bool import_stack_of(struct imported *imported, const uint32_t *places, size_t count,
                     const struct import_values *values, uint32_t *node) {
    *node = TREE_ROOT;
    for (size_t i = count; i-- > 0;)
        if (!tree_child(&imported->tree, *node, places[i], node)) return false;
    return import_node(imported, *node, values);
}

bool import_stack(struct imported *imported, const uint32_t *places, size_t count,
                  const struct import_values *values) {
    uint32_t node;
    return import_stack_of(imported, places, count, values, &node);
}

bool import_check_sums(const struct imported *imported, struct error *error) {
    int64_t allocated = 0, held = 0, peak = 0;
    for (size_t i = 0; i < imported->stacks.count; i++) {
        const struct import_values *values = &imported->stacks.items[i].values;
        if (__builtin_add_overflow(allocated, values->allocated_bytes, &allocated) ||
            __builtin_add_overflow(held, values->exit_bytes, &held) ||
            __builtin_add_overflow(peak, values->peak_bytes, &peak))
            return error_set(error, "its stacks have more bytes than a number can hold");
    }
    return true;
}
