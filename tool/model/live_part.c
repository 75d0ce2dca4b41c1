// SPDX-License-Identifier: Apache-2.0
#include "tool/model/live_part.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/contexts.h"
#include "tool/model/heaps.h"

// What is wanted may be a set of the part that goes.
bool live_part_begin(struct live_part *part, enum live_part_kind kind, const struct live_set *of) {
    char *copy = malloc(of->bytes + 1);
    if (!copy) return false;
    if (of->bytes) memcpy(copy, of->labels, of->bytes);
    const struct live_set wanted = {copy, of->bytes};
    live_part_end(part);
    part->kind = kind;
    part->of = wanted;
    part->is_new = true;
    return true;
}

void live_part_end(struct live_part *part) {
    for (size_t i = 0; i < part->sets.count; i++) free(part->sets.items[i].labels);
    array_free(&part->sets);
    index_table_free(&part->index);
    free(part->of.labels);
    free(part->row_of_scope);
    *part = (struct live_part){.kind = LIVE_WHOLE};
}

static bool set_of(const struct context *context, struct live_set *set) {
    size_t bytes = 0;
    for (size_t i = 0; i < context->label_count; i++) bytes += strlen(context->labels[i]) + 1;
    *set = (struct live_set){malloc(bytes + 1), bytes};
    if (!set->labels) return false;
    char *at = set->labels;
    for (size_t i = 0; i < context->label_count; i++) at = stpcpy(at, context->labels[i]) + 1;
    return true;
}

static uint64_t set_hash(const struct live_set *set) {
    uint64_t hash = index_table_seed();
    for (size_t i = 0; i < set->bytes; i++) hash = hash_mix(hash, (unsigned char)set->labels[i]);
    return hash;
}

// The row of a set, which is made if there is none; UINT32_MAX without memory. The set's memory is
// the part's from then on.
static uint32_t row_of(struct live_part *part, struct live_set set) {
    uint64_t hash = set_hash(&set);
    struct index_probe probe = index_probe_start(&part->index, hash);
    for (uint32_t row; index_probe_next(&part->index, &probe, &row);) {
        const struct live_set *known = &part->sets.items[row];
        if (known->bytes != set.bytes || memcmp(known->labels, set.labels, set.bytes) != 0)
            continue;
        free(set.labels);
        return row;
    }
    struct live_set *slot = array_push(&part->sets);
    if (slot) *slot = set;
    if (slot && index_table_insert(&part->index, hash, (uint32_t)part->sets.count - 1))
        return (uint32_t)part->sets.count - 1;
    if (!slot) free(set.labels);
    return UINT32_MAX;
}

static bool is_other(const char *label) {
    return !strcmp(label + strcspn(label, "="), "=" CAIRN_LABEL_OTHER);
}

static bool has_label(const struct context *context, const char *label) {
    for (size_t i = 0; i < context->label_count; i++)
        if (!strcmp(context->labels[i], label)) return true;
    return false;
}

static bool has_all(const struct context *context, const struct live_set *set) {
    for (const char *label = NULL; (label = live_set_next(set, label));)
        if (!has_label(context, label)) return false;
    return true;
}

// The row + 1 of each set of labels that the recording has; 0 of those that are not in the part.
static bool find_rows(struct live_part *part, const struct contexts *contexts, uint32_t *rows) {
    for (size_t i = 0; i < contexts->count; i++) {
        const struct context *context = &contexts->list[i];
        if (part->kind == LIVE_OF_LABELS) {
            rows[i] = has_all(context, &part->of);
            continue;
        }
        struct live_set set;
        uint32_t row = set_of(context, &set) ? row_of(part, set) : UINT32_MAX;
        if (row == UINT32_MAX) return false;
        rows[i] = row + 1;
    }
    return true;
}

static bool find_heap_rows(struct live_part *part, const struct heap_names *names,
                           uint32_t *of_scope) {
    const struct heap_name *wanted =
        part->kind == LIVE_OF_HEAP ? heap_names_find(names, part->of.labels) : NULL;
    for (size_t i = 0; i < names->list.count; i++) {
        const struct heap_name *name = &names->list.items[i];
        if (part->kind == LIVE_OF_HEAP) {
            bool is_in = wanted && (name == wanted || name->heap == wanted->scope);
            of_scope[name->scope] = is_in;
            continue;
        }
        char *text = strdup(heap_name_path(names, name));
        if (!text) return false;
        uint32_t row = row_of(part, (struct live_set){text, strlen(text) + 1});
        if (row == UINT32_MAX) return false;
        of_scope[name->scope] = row + 1;
    }
    return true;
}

static bool read_heaps(struct live_part *part, struct recording *recording) {
    struct heap_names names;
    if (!heap_names_read(&names, recording)) return false;
    uint32_t *of_scope = calloc(names.scopes.count + 1, sizeof *of_scope);
    bool is_ok = of_scope && find_heap_rows(part, &names, of_scope);
    if (is_ok) {
        free(part->row_of_scope);
        part->row_of_scope = of_scope;
        part->scope_count = names.scopes.count;
    } else {
        free(of_scope);
    }
    heap_names_free(&names);
    return is_ok;
}

bool live_part_has_heap(struct recording *recording, const char *path, bool *has_it) {
    struct heap_names names;
    if (!heap_names_read(&names, recording)) return false;
    *has_it = path ? heap_names_find(&names, path) != NULL : names.list.count > 0;
    heap_names_free(&names);
    return true;
}

bool live_part_read(struct live_part *part, struct recording *recording) {
    struct contexts contexts;
    if (live_part_is_of_heaps(part)) return read_heaps(part, recording);
    bool is_by_key = part->kind == LIVE_BY_LABELS && part->of.bytes;
    const char *key = is_by_key ? part->of.labels : NULL;
    if (part->kind == LIVE_WHOLE) return true;
    if (!contexts_read(&contexts, recording, key)) return false;
    // what is outside of all scopes is scope 0, in whichever set without labels
    size_t count = contexts.scopes.count ? contexts.scopes.count : 1;
    uint32_t *rows = calloc(contexts.count, sizeof *rows);
    uint32_t *of_scope = calloc(count, sizeof *of_scope);
    bool is_ok = rows && of_scope && find_rows(part, &contexts, rows);
    for (size_t id = 0; is_ok && id < count; id++)
        of_scope[id] = rows[id < contexts.scopes.count ? contexts.of_scope[id] : 0];
    if (is_ok) {
        free(part->row_of_scope);
        part->row_of_scope = of_scope;
        part->scope_count = count;
    } else {
        free(of_scope);
    }
    free(rows);
    contexts_free(&contexts);
    return is_ok;
}

struct live_set live_set_of(const char *text) {
    return (struct live_set){(char *)(uintptr_t)text, text ? strlen(text) + 1 : 0};
}

const char *live_set_next(const struct live_set *set, const char *last) {
    if (!set->bytes) return NULL;
    const char *next = last ? last + strlen(last) + 1 : set->labels;
    return next < set->labels + set->bytes ? next : NULL;
}

bool live_set_is_other(const struct live_set *set) {
    for (const char *label = NULL; (label = live_set_next(set, label));)
        if (is_other(label)) return true;
    return false;
}

// The label's key and another: less than, equal to or greater than 0.
static int compare_key(const char *label, const char *key) {
    size_t length = strcspn(label, "=");
    int order = strncmp(label, key, length);
    return order ? order : -(strlen(key) > length);
}

bool live_part_next_key(struct recording *recording, const char *key, char **next) {
    struct scopes scopes;
    *next = NULL;
    if (!scopes_read(&scopes, recording)) return false;
    bool is_ok = true;
    for (size_t id = 1; is_ok && id < scopes.count; id++) {
        const struct scope *scope = &scopes.list[id];
        if (scope->kind != CAIRN_SCOPE_LABEL || !strchr(scope->name, '=')) continue;
        if (key && compare_key(scope->name, key) <= 0) continue;
        if (*next && compare_key(scope->name, *next) >= 0) continue;
        free(*next);
        *next = strndup(scope->name, strcspn(scope->name, "="));
        is_ok = *next != NULL;
    }
    scopes_free(&scopes);
    return is_ok;
}

bool live_part_has_label(struct recording *recording, const char *text, bool *has_it) {
    struct scopes scopes;
    size_t bytes = strlen(text), compared = strchr(text, '=') ? bytes + 1 : bytes;
    *has_it = false;
    if (!scopes_read(&scopes, recording)) return false;
    for (size_t id = 1; id < scopes.count && !*has_it; id++) {
        const struct scope *scope = &scopes.list[id];
        *has_it = scope->kind == CAIRN_SCOPE_LABEL && !strncmp(scope->name, text, compared) &&
                  (compared > bytes || scope->name[bytes] == '=');
    }
    scopes_free(&scopes);
    return true;
}
