// SPDX-License-Identifier: Apache-2.0
#include "tool/render/site.h"

#include <stdlib.h>

// A caller that is the same function as the frame before it (recursion) tells nothing new.
static void choose_frames(const struct frame_list *frames, struct site *site) {
    size_t index = 0;
    const struct frame *frame;
    while (site->frame_count < SITE_FRAMES && (frame = frame_list_next(frames, &index))) {
        unsigned count = site->frame_count;
        if (count && frame_is_same_function(frame, site->frames[count - 1])) continue;
        site->frames[site->frame_count++] = frame;
    }
}

static bool is_same(const struct site *a, const struct site *b) {
    if (a->frame_count != b->frame_count) return false;
    for (unsigned i = 0; i < a->frame_count; i++) {
        bool is_equal = i ? frame_is_same_function(a->frames[i], b->frames[i])
                          : frame_is_same(a->frames[i], b->frames[i]);
        if (!is_equal) return false;
    }
    return true;
}

static struct site *find_or_add(struct site_list *list, const struct site *wanted) {
    uint64_t hash = 0;
    for (unsigned i = 0; i < wanted->frame_count; i++)
        hash = hash_mix(hash, frame_hash(wanted->frames[i], i == 0));
    struct index_probe probe = index_probe_start(&list->table, hash);
    for (uint32_t index; index_probe_next(&list->table, &probe, &index);)
        if (is_same(&list->sites.items[index], wanted)) return &list->sites.items[index];
    uint32_t added = (uint32_t)list->sites.count;
    struct site *site = array_push(&list->sites);
    if (!site || !index_table_insert(&list->table, hash, added)) return NULL;
    *site = *wanted;
    return site;
}

static int compare(const void *a, const void *b) {
    const struct site *first = a, *second = b;
    int64_t x = first->measured.value, y = second->measured.value;
    if (x != y) return x < y ? 1 : -1;
    return (second->stack_count > first->stack_count) - (second->stack_count < first->stack_count);
}

// Whether some frame's being shown may depend on frames further out (frames.h).
static bool is_undecided(const struct frame_list *frames) {
    for (size_t i = 0; i < frames->frames.count; i++)
        if (frames->frames.items[i]->is_interpreter) return true;
    return false;
}

// A few places tell the frames of nearly every site; the others are looked at if they do not.
static bool find_frames(struct frame_list *frames, const struct profile *profile,
                        const struct frame_names *names, uint32_t node, struct site *site) {
    enum { PLACES_FEW = 8 };
    if (!frame_list_fill(frames, profile, names, node, PLACES_FEW)) return false;
    choose_frames(frames, site);
    bool is_whole = profile->tree.nodes.items[node].depth <= PLACES_FEW;
    if (is_whole || (site->frame_count == SITE_FRAMES && !is_undecided(frames))) return true;
    site->frame_count = 0;
    if (!frame_list_fill(frames, profile, names, node, SITE_PLACES_MAX)) return false;
    choose_frames(frames, site);
    return true;
}

bool site_list_add(struct site_list *list, const struct profile *profile,
                   const struct frame_names *names, uint32_t node, struct measured measured,
                   struct frame_list *frames) {
    struct site wanted = {.node = node};
    if (!find_frames(frames, profile, names, node, &wanted)) return false;
    struct site *site = find_or_add(list, &wanted);
    if (!site) return false;
    measured_add(&site->measured, measured);
    site->stack_count++;
    list->hidden_count += frames->first_hidden;
    return true;
}

void site_list_sort(struct site_list *list) {
    if (list->sites.count)
        qsort(list->sites.items, list->sites.count, sizeof *list->sites.items, compare);
}

bool site_list_build(struct site_list *list, const struct profile *profile,
                     const struct frame_names *names, enum measure measure, bool are_all_shown,
                     struct error *error) {
    *list = (struct site_list){0};
    struct frame_list frames = {.are_all_shown = are_all_shown};
    size_t count;
    uint32_t *ranking = measure_rank(measure, profile, &count);
    bool is_ok = ranking != NULL;
    for (size_t i = 0; i < count && is_ok; i++) {
        const struct stack *stack = &profile->stacks[ranking[i]];
        is_ok = site_list_add(list, profile, names, stack->node, measure_stack(measure, stack),
                              &frames);
    }
    if (is_ok) site_list_sort(list);
    free(ranking);
    frame_list_free(&frames);
    return is_ok || error_set(error, "no memory for the list of places");
}

void site_list_free(struct site_list *list) {
    array_free(&list->sites);
    index_table_free(&list->table);
}
