// SPDX-License-Identifier: Apache-2.0
#include "tool/model/scopes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Paths are cut to this, however deep a damaged file nests.
enum { PATH_BYTES_MAX = 4096 };

static char *make_path(const struct scope *parent, const char *name) {
    char path[PATH_BYTES_MAX];
    bool has_parent = parent && parent->kind;
    snprintf(path, sizeof path, "%s%s%s", has_parent ? parent->path : "", has_parent ? "/" : "",
             name);
    return strdup(path);
}

static bool read_one(struct scopes *scopes, struct recording *recording, uint32_t id) {
    struct scope *scope = &scopes->list[id];
    if (!recording_scope(recording, id, &scope->entry)) return true;
    const struct cairn_scope *entry = &scope->entry;
    bool is_known = entry->kind == CAIRN_SCOPE_REGION || entry->kind == CAIRN_SCOPE_POOL ||
                    entry->kind == CAIRN_SCOPE_LABEL || entry->kind == CAIRN_SCOPE_WRAPPED;
    if (!is_known || !entry->is_ready || entry->parent >= id) return true;
    scope->parent = entry->parent;
    scope->path = make_path(entry->parent ? &scopes->list[entry->parent] : NULL,
                            recording_string(recording, entry->name));
    scope->kind = scope->path ? entry->kind : 0;
    const char *name = recording_string(recording, entry->name);
    size_t path_bytes = scope->path ? strlen(scope->path) : 0, name_bytes = strlen(name);
    scope->name = scope->path;
    if (name_bytes < path_bytes) scope->name += path_bytes - name_bytes;
    return scope->path != NULL;
}

bool scopes_read(struct scopes *scopes, struct recording *recording) {
    size_t count = recording_count(recording, CAIRN_SECTION_SCOPES);
    if (count > CAIRN_SCOPE_LIMIT) count = CAIRN_SCOPE_LIMIT;
    scopes->count = count;
    scopes->list = calloc(count + 1, sizeof *scopes->list);
    bool is_ok = scopes->list != NULL;
    for (uint32_t id = 1; is_ok && id < count; id++) is_ok = read_one(scopes, recording, id);
    if (!is_ok) scopes_free(scopes);
    return is_ok;
}

void scopes_free(struct scopes *scopes) {
    for (size_t id = 0; scopes->list && id < scopes->count; id++) free(scopes->list[id].path);
    free(scopes->list);
    *scopes = (struct scopes){0};
}

struct stack *scopes_sum(const struct scopes *scopes, const struct profile *profile,
                         bool has_inner) {
    struct stack *values = stack_list_make(scopes->count);
    for (size_t cell = 0; values && cell < profile->cell_count; cell++) {
        uint32_t id = profile->region_of_cell[cell];
        struct cell_values found;
        if (!id || id >= scopes->count || !profile->stack_of_cell[cell]) continue;
        if (!profile_cell(profile, cell, &found)) continue;
        for (; id; id = has_inner ? scopes->list[id].parent : 0) stack_add(&values[id], &found);
    }
    return values;
}
