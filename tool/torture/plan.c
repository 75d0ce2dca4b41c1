// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "tool/symbol/internal_frames.h"
#include "tool/torture/names.h"

static bool no_memory(struct error *error) {
    return error_set(error, "torture: no memory");
}

// The frames of a stack in the file; false if they are not there, or not within it.
static bool frames_of(const struct torture_map *map, const struct torture_stack *stack,
                      const uint64_t **frames) {
    uint64_t first = stack->first_frame - 1;
    if (!stack->hash || !stack->first_frame || first >= TORTURE_FRAMES ||
        stack->frame_count > TORTURE_DEPTH || stack->frame_count > TORTURE_FRAMES - first)
        return false;
    *frames = map->frames + first;
    return true;
}

static bool ask_for_all(struct torture_names *names, const struct torture_map *map) {
    const uint64_t *frames;
    for (size_t i = 0; i < TORTURE_STACKS; i++) {
        const struct torture_stack *stack = &map->stacks[i];
        if (!frames_of(map, stack, &frames)) continue;
        for (uint64_t at = 0; at < stack->frame_count; at++)
            if (!torture_names_ask(names, frames[at])) return false;
    }
    return true;
}

static void choose_frames(struct torture_target *target) {
    size_t first = 0, count = target->frame_count;
    while (first < count && target->frames[first].is_internal) first++;
    if (first < count) target->first = first;
    size_t site = first;
    while (site < count &&
           (target->frames[site].is_internal || internal_is_runtime(target->frames[site].module)))
        site++;
    target->site = site < count ? site : target->first;
}

static bool add_target(struct torture_plan *plan, const struct torture_names *names,
                       const struct torture_stack *stack, const uint64_t *frames) {
    struct torture_target *target = array_push(&plan->targets);
    if (!target) return false;
    *target = (struct torture_target){.hash = stack->hash, .count = stack->count};
    target->frames = torture_names_frames(names, frames, stack->frame_count, &target->frame_count);
    target->is_cut = stack->frame_count == TORTURE_DEPTH;
    if (target->frames) choose_frames(target);
    return target->frames != NULL;
}

static bool is_wanted(const struct torture_target *target, const struct pattern *wanted) {
    if (!wanted) return true;
    for (size_t i = 0; i < target->frame_count; i++) {
        const struct torture_frame *frame = &target->frames[i];
        if ((frame->function && pattern_matches(wanted, frame->function)) ||
            (frame->file && pattern_matches(wanted, frame->file)) ||
            pattern_matches(wanted, frame->module))
            return true;
    }
    return false;
}

static int compare_sites(const struct torture_target *one, const struct torture_target *other) {
    static const struct torture_frame none = {.module = ""};
    const struct torture_frame *a = one->frame_count ? &one->frames[one->site] : &none;
    const struct torture_frame *b = other->frame_count ? &other->frames[other->site] : &none;
    int order = strcmp(a->module, b->module);
    if (!order) order = strcmp(a->function ? a->function : "", b->function ? b->function : "");
    if (!order) order = (a->line > b->line) - (a->line < b->line);
    if (!order && !a->function) order = (a->address > b->address) - (a->address < b->address);
    return order;
}

static int compare_targets(const void *a, const void *b) {
    const struct torture_target *one = a, *other = b;
    int order = compare_sites(one, other);
    return order ? order : (one->hash > other->hash) - (one->hash < other->hash);
}

static int compare_ranks(const void *a, const void *b) {
    const struct torture_target *one = a, *other = b;
    if (one->rank != other->rank) return one->rank < other->rank ? -1 : 1;
    return compare_targets(a, b);
}

// The first stack of each site comes first, then the second of each, and so on.
static void order_targets(struct torture_plan *plan) {
    struct torture_target *items = plan->targets.items;
    size_t count = plan->targets.count;
    if (!count) return;
    qsort(items, count, sizeof *items, compare_targets);
    for (size_t i = 1; i < count; i++)
        items[i].rank = compare_sites(&items[i - 1], &items[i]) ? 0 : items[i - 1].rank + 1;
    qsort(items, count, sizeof *items, compare_ranks);
}

static bool add_step(struct torture_plan *plan, size_t target, uint64_t nth) {
    struct torture_step *step = array_push(&plan->steps);
    if (step) *step = (struct torture_step){target, nth};
    return step != NULL;
}

static bool make_steps(struct torture_plan *plan, uint64_t seed) {
    for (size_t i = 0; i < plan->targets.count; i++)
        if (plan->targets.items[i].is_wanted && !add_step(plan, i, 1)) return false;
    for (size_t i = 0; i < plan->targets.count; i++) {
        const struct torture_target *target = &plan->targets.items[i];
        if (!target->is_wanted || target->count < 2) continue;
        uint64_t later = torture_mix(torture_mix(1, seed), target->hash) % (target->count - 1);
        if (!add_step(plan, i, 2 + later)) return false;
    }
    return true;
}

static bool add_targets(struct torture_plan *plan, const struct torture_names *names,
                        const struct torture_map *map, const struct pattern *wanted) {
    const uint64_t *frames;
    for (size_t i = 0; i < TORTURE_STACKS; i++)
        if (frames_of(map, &map->stacks[i], &frames) &&
            !add_target(plan, names, &map->stacks[i], frames))
            return false;
    for (size_t i = 0; i < plan->targets.count; i++)
        plan->targets.items[i].is_wanted = is_wanted(&plan->targets.items[i], wanted);
    return true;
}

bool torture_plan_read(const char *path, const struct symbol_options *options,
                       const struct pattern *wanted, uint64_t seed, struct torture_plan *plan,
                       struct error *error) {
    *plan = (struct torture_plan){0};
    struct torture_map *map = torture_map_open(path, error);
    if (!map) return false;
    plan->lost = map->head.lost;
    struct torture_names *names = torture_names_start(plan, map);
    bool is_ok = names && ask_for_all(names, map);
    if (!is_ok) no_memory(error);
    is_ok = is_ok && symbol_table_open(&plan->symbols, options, NULL, error) &&
            torture_names_look_up(names, error);
    if (is_ok) {
        is_ok = add_targets(plan, names, map, wanted);
        order_targets(plan);
        is_ok = (is_ok && make_steps(plan, seed)) || no_memory(error);
    }
    torture_names_free(names);
    torture_map_close(map);
    return is_ok;
}

void torture_plan_free(struct torture_plan *plan) {
    for (size_t i = 0; i < plan->targets.count; i++) free(plan->targets.items[i].frames);
    for (size_t i = 0; i < plan->texts.count; i++) free(plan->texts.items[i]);
    array_free(&plan->targets);
    array_free(&plan->steps);
    array_free(&plan->texts);
    if (plan->symbols) symbol_table_close(plan->symbols);
}
