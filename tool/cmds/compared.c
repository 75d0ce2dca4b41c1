// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/compared.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/cmds/merged.h"
#include "tool/render/trust.h"

bool compared_list_read(struct compared_list *list, const char *word, struct error *error) {
    *list = (struct compared_list){.text = strdup(word)};
    if (!list->text) return error_set(error, "no memory for a list of recordings");
    bool is_one = !access(word, F_OK);
    for (char *at = list->text; at;) {
        char *comma = is_one ? NULL : strchr(at, ',');
        if (comma) *comma = 0;
        if (!*at) return error_set(error, "\"%s\": a name is missing beside a comma", word);
        if (list->count == COMPARED_MAX)
            return error_set(error, "more than %d recordings on a side", COMPARED_MAX);
        list->names[list->count++] = at;
        at = comma ? comma + 1 : NULL;
    }
    return true;
}

void compared_list_free(struct compared_list *list) {
    free(list->text);
    *list = (struct compared_list){0};
}

static int64_t clamp(uint64_t value) {
    return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

static void note_totals(struct compared *compared, size_t index, const struct opened *opened) {
    const struct profile *profile = &opened->profile;
    bool is_second = index >= compared->diff.first_count;
    compared->totals.peak[index] = profile->peak.bytes;
    compared->totals.exit[index] = profile->exit_bytes;
    compared->totals.allocated[index] = clamp(profile->totals.allocated_bytes);
    compared->totals.calls[index] = clamp(profile->totals.allocations);
    program_name(profile, compared->program[is_second], sizeof compared->program[is_second]);
    compared->is_inexact = compared->is_inexact || !profile_is_exact(profile);
}

static bool add_opened(struct compared *compared, size_t index, struct opened *opened,
                       struct error *error) {
    const struct view_options *options = &compared->request->options;
    const struct profile *profile = &opened->profile;
    const struct frame_names *names;
    struct frame_names own_names;
    note_totals(compared, index, opened);
    // every name, whatever the list shows
    for (size_t i = 0; i < profile->stack_count; i++)
        names_want_stack(opened->names, profile->stacks[i].node, 0);
    if (!request_apply(compared->request, compared->filter, opened, &names, &own_names, error))
        return false;
    if (!compared->grouping)
        return diff_add_stacks(&compared->diff, index, profile, names, options, error);
    return diff_add_groups(&compared->diff, index, compared->grouping, profile, names, options,
                           error);
}

static bool open_and_add(struct compared *compared, size_t index, const char *name,
                         struct error *error) {
    struct opened opened;
    char *words[] = {(char *)name, NULL};
    const struct narrowing narrowing = {compared->request, compared->filter};
    const struct opening opening = {.words = words,
                                    .count = 1,
                                    .process = compared->process,
                                    .narrow = request_narrow,
                                    .context = &narrowing};
    if (!opening_open(&opening, &opened, error)) return false;
    bool is_ok = add_opened(compared, index, &opened, error);
    opened_close(&opened);
    return is_ok || error_wrap(error, "%s", name);
}

static bool add_recording(struct compared *compared, size_t index, const char *name,
                          struct error *error) {
    struct filter *filter = NULL;
    // a filter keeps what it hides of one recording: each has its own
    bool is_ok = filter_open(&filter, &compared->request->filter, error);
    compared->filter = filter;
    is_ok = is_ok && open_and_add(compared, index, name, error);
    filter_close(filter);
    compared->filter = NULL;
    return is_ok;
}

static bool make_totals(struct compared_totals *totals, size_t count) {
    totals->peak = calloc(count, sizeof *totals->peak);
    totals->exit = calloc(count, sizeof *totals->exit);
    totals->allocated = calloc(count, sizeof *totals->allocated);
    totals->calls = calloc(count, sizeof *totals->calls);
    return totals->peak && totals->exit && totals->allocated && totals->calls;
}

bool compared_build(struct compared *compared, const struct compared_list *before,
                    const struct compared_list *after, struct error *error) {
    size_t count = before->count + after->count;
    diff_start(&compared->diff, count, before->count);
    if (!make_totals(&compared->totals, count))
        return error_set(error, "no memory for the comparison");
    for (size_t i = 0; i < count; i++) {
        bool is_first = i < before->count;
        const char *name = is_first ? before->names[i] : after->names[i - before->count];
        if (!add_recording(compared, i, name, error)) return false;
    }
    return compared->grouping || diff_join_similar(&compared->diff, error);
}

void compared_free(struct compared *compared) {
    diff_free(&compared->diff);
    free(compared->totals.peak);
    free(compared->totals.exit);
    free(compared->totals.allocated);
    free(compared->totals.calls);
}
