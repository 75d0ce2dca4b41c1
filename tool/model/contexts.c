// SPDX-License-Identifier: Apache-2.0
#include "tool/model/contexts.h"

#include <stdlib.h>
#include <string.h>

static size_t key_bytes(const char *label) {
    return strcspn(label, "=");
}

static int compare_keys(const char *one, const char *other) {
    size_t one_bytes = key_bytes(one), other_bytes = key_bytes(other);
    int order = memcmp(one, other, one_bytes < other_bytes ? one_bytes : other_bytes);
    return order ? order : (one_bytes > other_bytes) - (one_bytes < other_bytes);
}

// Puts a label in its place among those that are nearer, unless one of them has its key.
static void add_label(struct context *context, const char *label) {
    size_t at = 0;
    while (at < context->label_count && compare_keys(context->labels[at], label) < 0) at++;
    bool is_there = at < context->label_count && !compare_keys(context->labels[at], label);
    if (is_there || context->label_count == CAIRN_CONTEXT_LABELS) return;
    memmove(&context->labels[at + 1], &context->labels[at],
            (context->label_count++ - at) * sizeof *context->labels);
    context->labels[at] = label;
}

static struct context context_of(const struct scopes *scopes, uint32_t id, const char *key) {
    struct context context = {0};
    for (; id; id = scopes->list[id].parent) {
        const struct scope *scope = &scopes->list[id];
        if (scope->kind != CAIRN_SCOPE_LABEL || !strchr(scope->name, '=')) continue;
        bool is_key = !key || (strlen(key) == key_bytes(scope->name) &&
                               !strncmp(key, scope->name, strlen(key)));
        if (is_key) add_label(&context, scope->name);
    }
    return context;
}

static int compare(const struct context *one, const struct context *other) {
    for (size_t i = 0; i < one->label_count && i < other->label_count; i++) {
        int order = strcmp(one->labels[i], other->labels[i]);
        if (order) return order;
    }
    return (one->label_count > other->label_count) - (one->label_count < other->label_count);
}

// A scope and its set, to be sorted.
struct found {
    struct context context;
    uint32_t scope;
};

static int compare_found(const void *a, const void *b) {
    return compare(&((const struct found *)a)->context, &((const struct found *)b)->context);
}

// Equal sets become one; that without labels is the first.
static void number(struct contexts *contexts, const struct found *found, size_t count) {
    contexts->list[0] = (struct context){0};
    contexts->count = 1;
    for (size_t i = 0; i < count; i++) {
        struct context *last = &contexts->list[contexts->count - 1];
        if (compare(last, &found[i].context) != 0) {
            last = &contexts->list[contexts->count++];
            *last = found[i].context;
        }
        contexts->of_scope[found[i].scope] = (uint32_t)(last - contexts->list);
        const struct scope *scope = &contexts->scopes.list[found[i].scope];
        if (scope->kind == CAIRN_SCOPE_LABEL && last->label_count)
            last->entered += scope->entry.entries;
    }
}

bool contexts_read(struct contexts *contexts, struct recording *recording, const char *key) {
    *contexts = (struct contexts){0};
    if (!scopes_read(&contexts->scopes, recording)) return false;
    size_t count = contexts->scopes.count;
    struct found *found = calloc(count + 1, sizeof *found);
    contexts->of_scope = calloc(count + 1, sizeof *contexts->of_scope);
    contexts->list = calloc(count + 1, sizeof *contexts->list);
    bool is_ok = found && contexts->of_scope && contexts->list;
    for (uint32_t id = 1; is_ok && id < count; id++)
        found[id - 1] = (struct found){context_of(&contexts->scopes, id, key), id};
    if (is_ok && count > 1) qsort(found, count - 1, sizeof *found, compare_found);
    if (is_ok) number(contexts, found, count ? count - 1 : 0);
    if (!is_ok) contexts_free(contexts);
    free(found);
    return is_ok;
}

void contexts_free(struct contexts *contexts) {
    scopes_free(&contexts->scopes);
    free(contexts->of_scope);
    free(contexts->list);
    *contexts = (struct contexts){0};
}

static int compare_cells(const void *a, const void *b) {
    const struct context_cell *one = a, *other = b;
    if (one->stack != other->stack) return one->stack < other->stack ? -1 : 1;
    return (one->context > other->context) - (one->context < other->context);
}

struct context_cell *contexts_sort_cells(const struct contexts *contexts,
                                         const struct profile *profile, size_t *count) {
    struct context_cell *list = calloc(profile->cell_count + 1, sizeof *list);
    *count = 0;
    for (uint32_t cell = 0; list && cell < profile->cell_count; cell++)
        if (profile->stack_of_cell[cell])
            list[(*count)++] = (struct context_cell){
                profile->stack_of_cell[cell] - 1, contexts_of_cell(contexts, profile, cell), cell};
    if (list) qsort(list, *count, sizeof *list, compare_cells);
    return list;
}

uint32_t contexts_of_cell(const struct contexts *contexts, const struct profile *profile,
                          size_t cell) {
    uint32_t scope = profile->region_of_cell[cell];
    return scope < contexts->scopes.count ? contexts->of_scope[scope] : 0;
}

struct stack *contexts_sum(const struct contexts *contexts, const struct profile *profile) {
    struct stack *values = stack_list_make(contexts->count);
    for (size_t cell = 0; values && cell < profile->cell_count; cell++) {
        struct cell_values found;
        if (profile->stack_of_cell[cell] && profile_cell(profile, cell, &found))
            stack_add(&values[contexts_of_cell(contexts, profile, cell)], &found);
    }
    return values;
}
