// SPDX-License-Identifier: Apache-2.0
#include "tool/model/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/model/left_out.h"
#define THREADS_MAX 65536u  // a list that nobody reads; their values are in the totals

// Numbers of the added profile's parts in the sum.
struct map {
    uint32_t *modules, *places, *nodes;
    const uint64_t *keys;  // by place, may be NULL
};

bool merge_start(struct merge *merge) {
    memset(merge, 0, sizeof *merge);
    merge->profile.recording = &merge->recording;
    places_start(&merge->profile.places, &merge->profile.modules);
    return tree_start(&merge->profile.tree);
}

void merge_free(struct merge *merge) {
    for (size_t i = 0; i < merge->paths.count; i++) free(merge->paths.items[i]);
    array_free(&merge->paths);
    array_free(&merge->modules);
    array_free(&merge->stacks);
    array_free(&merge->threads);
    array_free(&merge->stack_of_node);
    index_table_free(&merge->module_table);
    free(merge->placed);
    merge->placed = NULL;
    merge->profile.modules.modules = NULL;  // was ours
    profile_free(&merge->profile);
}

static bool is_same(const struct module *a, const struct module *b) {
    return a->identity == b->identity && a->build_id_bytes == b->build_id_bytes &&
           !memcmp(a->build_id, b->build_id, a->build_id_bytes) &&
           (a->build_id_bytes || !strcmp(a->path, b->path));
}

static bool module_of(struct merge *merge, const struct module *module, uint32_t *number) {
    uint64_t hash = hash_mix(module->identity, index_table_seed());
    struct index_probe probe = index_probe_start(&merge->module_table, hash);
    while (index_probe_next(&merge->module_table, &probe, number))
        if (is_same(module, &merge->modules.items[*number])) return true;
    *number = (uint32_t)merge->modules.count;
    char **path = array_push(&merge->paths);
    if (path) *path = strdup(module->path);
    struct module *slot = path && *path ? array_push(&merge->modules) : NULL;
    if (!slot || !index_table_insert(&merge->module_table, hash, *number)) return false;
    *slot = *module;
    slot->path = *path;
    slot->same_as = *number;
    merge->profile.modules.modules = merge->modules.items;
    merge->profile.modules.count = merge->modules.count;
    return true;
}

static bool place_of(struct merge *merge, const struct map *map, const struct profile *profile,
                     size_t index, uint32_t *number) {
    struct places *places = &merge->profile.places;
    const struct place *place = &profile->places.list.items[index];
    uint32_t line, code_index;
    const struct code *code = place_code(&profile->places, (uint32_t)index, &line);
    if (code)
        return codes_add(&places->codes, code, &code_index) &&
               places_of_code(places, code_index, line, number);
    if (place->cut) return places_of_cut(places, place->cut, number);
    bool has_key = map->keys && map->keys[index];
    uint64_t address = has_key ? map->keys[index] : place->address, bias = 0;
    uint32_t module = MODULE_NONE;
    bool is_name = merge->is_by_names && has_key;
    if (place->module != MODULE_NONE && !is_name) {
        module = map->modules[place->module];
        bias = merge->modules.items[module].bias;
    }
    return places_of_module(places, module, bias + address + 1, number);
}

static bool map_code(struct merge *merge, const struct profile *profile, struct map *map) {
    const struct tree_node *nodes = profile->tree.nodes.items;
    for (size_t i = 0; i < profile->modules.count; i++)
        if (!module_of(merge, &profile->modules.modules[i], &map->modules[i])) return false;
    for (size_t i = 0; i < profile->places.list.count; i++)
        if (!place_of(merge, map, profile, i, &map->places[i])) return false;
    for (size_t i = 1; i < profile->tree.nodes.count; i++)
        if (!tree_child(&merge->profile.tree, map->nodes[nodes[i].parent],
                        map->places[nodes[i].place], &map->nodes[i]))
            return false;
    return true;
}

static struct stack *stack_of(struct merge *merge, uint32_t node, const struct stack *stack) {
    while (merge->stack_of_node.count <= node) {
        uint32_t *slot = array_push(&merge->stack_of_node);
        if (!slot) return NULL;
        *slot = 0;
    }
    uint32_t *index = &merge->stack_of_node.items[node];
    if (*index) return &merge->stacks.items[*index - 1];
    struct stack *added = array_push(&merge->stacks);
    if (!added) return NULL;
    *index = (uint32_t)merge->stacks.count;
    *added = (struct stack){.id = stack->id, .node = node, .cut = stack->cut, .number = *index - 1};
    return added;
}

// What was there before an attach is no copy of what another process counts.
static void forget_whereabouts(struct inherited *inherited) {
    *inherited = (struct inherited){.blocks = inherited->blocks, .bytes = inherited->bytes};
}

static bool add_stacks(struct merge *merge, const struct profile *profile, const struct map *map) {
    bool is_fork = profile->recording->header.forked_from != 0;
    uint32_t most_account = 0;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        struct stack *sum = stack_of(merge, map->nodes[stack->node], stack);
        if (!sum) return false;
        struct cell_values values = stack_values(stack);
        for (int kind = 0; kind < ESTIMATED_COUNT; kind++)
            estimate_forget_limits(&values.estimates[kind]);
        if (!is_fork) forget_whereabouts(&values.inherited);
        if (stack->more && !stack_pool_give(&merge->profile.more, sum)) return false;
        const struct stack_more before = *stack_more(sum);
        stack_add(sum, &values);
        for (int kind = 0; sum->more && merge->has_forks && kind < ESTIMATED_COUNT; kind++) {
            sum->more->estimates[kind] = before.estimates[kind];
            estimate_add_related(&sum->more->estimates[kind], &values.estimates[kind]);
        }
    }
    for (size_t i = 0; i < profile->thread_count && merge->threads.count < THREADS_MAX; i++) {
        struct profile_thread *thread = array_push(&merge->threads);
        if (!thread) return false;
        *thread = profile->threads[i];
        thread->account += merge->account_count;  // another process' slots are others
    }
    for (size_t i = 0; i < profile->thread_count; i++)
        if (profile->threads[i].account >= most_account) most_account = profile->threads[i].account;
    merge->account_count += most_account + 1;
    return true;
}

static void add_reachability(struct reachability *to, const struct reachability *from) {
    struct cairn_reachability *sums = &to->sums;
    const struct cairn_reachability *added = &from->sums;
    to->known_count += from->known_count;
    to->unknown_count += from->unknown_count;
    sums->pause_ns += added->pause_ns;
    sums->copied_bytes += added->copied_bytes;
    sums->direct_blocks += added->direct_blocks;
    sums->direct_bytes += added->direct_bytes;
    sums->indirect_blocks += added->indirect_blocks;
    sums->indirect_bytes += added->indirect_bytes;
    sums->reachable_blocks += added->reachable_blocks;
    sums->reachable_bytes += added->reachable_bytes;
    if (!sums->reason[0]) memcpy(sums->reason, added->reason, sizeof sums->reason);
}

static void add_totals(struct profile *sum, const struct profile *profile, bool has_forks) {
    sum->totals.allocations += profile->totals.allocations;
    sum->totals.frees += profile->totals.frees;
    sum->totals.allocated_bytes += profile->totals.allocated_bytes;
    sum->totals.freed_bytes += profile->totals.freed_bytes;
    sum->totals.failed += profile->totals.failed;
    sum->totals.temporary += profile->totals.temporary;
    watched_add(&sum->totals.watched, profile->totals.watched);
    sum->totals.slack_bytes += profile->totals.slack_bytes;
    sum->totals.waste_bytes += profile->totals.waste_bytes;
    struct inherited inherited = profile->inherited;
    if (!profile->recording->header.forked_from) forget_whereabouts(&inherited);
    inherited_add(&sum->inherited, &inherited);
    sum->peak.bytes = figures_add(sum->peak.bytes, profile->peak.bytes);
    sum->peak.blocks = figures_add(sum->peak.blocks, profile->peak.blocks);
    sum->peak.error_bytes += profile->peak.error_bytes;
    sum->exit_bytes = figures_add(sum->exit_bytes, profile->exit_bytes);
    sum->exit_blocks = figures_add(sum->exit_blocks, profile->exit_blocks);
    sum->figures.own_ns += profile->figures.own_ns;
    for (int i = 0; i < ESTIMATED_COUNT; i++) {
        struct estimate added = profile->estimates[i];
        estimate_forget_limits(&added);
        (has_forks ? estimate_add_related : estimate_add)(&sum->estimates[i], &added);
    }
    if (profile->sampling.is_on) sum->sampling = profile->sampling;
    struct cairn_guard *guard = &sum->overruns.guard;
    const struct cairn_guard *added = &profile->overruns.guard;
    if (added->band_bytes > guard->band_bytes) guard->band_bytes = added->band_bytes;
    guard->overrun_blocks += added->overrun_blocks;
    guard->unguarded_blocks += added->unguarded_blocks;
    add_reachability(&sum->reachability, &profile->reachability);
}

// Bytes that cairn took in processes that have its library in common.
static void add_own_bytes(struct cairn_header *sum, uint64_t own_bytes, uint64_t shared_kib,
                          const struct cairn_header *added) {
    const uint64_t kib = 1024;
    uint64_t shared = kib * added->own_shared_kib;
    bool is_plausible = added->own_bytes >= shared;
    sum->own_shared_kib = (uint16_t)shared_kib;
    if (is_plausible && added->own_shared_kib > shared_kib)
        sum->own_shared_kib = added->own_shared_kib;
    sum->own_bytes = own_bytes + kib * (sum->own_shared_kib - shared_kib);
    sum->own_bytes += is_plausible ? added->own_bytes - shared : added->own_bytes;
}

// The facts of the first process, with what adds up over all.
static void add_facts(struct merge *merge, const struct recording *recording) {
    struct cairn_header *sum = &merge->recording.header;
    const struct cairn_header *header = &recording->header;
    struct damage *damage = &merge->recording.damage;
    uint64_t own_bytes = sum->own_bytes, cpu_ns = sum->cpu_ns, rss_bytes = sum->rss_peak_bytes;
    uint16_t own_shared_kib = sum->own_shared_kib;
    uint32_t is_partial = sum->is_partial;
    uint16_t has_no_frees = sum->has_no_frees, has_no_calls = sum->has_no_calls;
    uint16_t has_no_blocks = sum->has_no_blocks;
    uint32_t depth = recording_max_depth(recording), sum_depth = sum->max_depth;
    if (!merge->process_count++) {
        *sum = *header;
        sum->imported = 0;
        memset(sum->sections, 0, sizeof sum->sections);
    } else {
        for (size_t i = 0; i < CAIRN_LOSS_MAX; i++) sum->lost[i] += header->lost[i];
        left_out_add_recording(&sum->left_out, recording);
        unkept_add(&sum->unkept, &header->unkept);
        sum->control.was_off |= header->control.was_off;
        if (header->end_ns > sum->end_ns) sum->end_ns = header->end_ns;
    }
    add_own_bytes(sum, own_bytes, own_shared_kib, header);
    sum->cpu_ns = cpu_ns + header->cpu_ns;
    sum->rss_peak_bytes = rss_bytes + header->rss_peak_bytes;
    sum->is_partial = is_partial | header->is_partial;
    sum->has_no_frees = has_no_frees | header->has_no_frees;
    sum->has_no_calls = has_no_calls | header->has_no_calls;
    sum->has_no_blocks = has_no_blocks | header->has_no_blocks;
    sum->max_depth = !sum_depth || (depth && depth < sum_depth) ? depth : sum_depth;
    damage->missing_bytes += recording->damage.missing_bytes;
    damage->bad_sections += recording->damage.bad_sections;
    damage->bad_strings += recording->damage.bad_strings;
    damage->bad_modules += recording->damage.bad_modules;
    damage->bad_stacks += recording->damage.bad_stacks;
}

bool merge_add(struct merge *merge, const struct profile *profile, const uint64_t *keys) {
    struct map map = {.keys = keys,
                      .modules = calloc(profile->modules.count + 1, sizeof(uint32_t)),
                      .places = calloc(profile->places.list.count + 1, sizeof(uint32_t)),
                      .nodes = calloc(profile->tree.nodes.count + 1, sizeof(uint32_t))};
    double rate = profile->figures.scale.rate_most;
    if (rate > (double)merge->rate_most_bytes) merge->rate_most_bytes = (uint64_t)rate;
    merge->has_origin |= !profile->recording->header.forked_from;
    merge->has_forks |= profile->figures.inherited_blocks != 0;
    bool is_ok = map.modules && map.places && map.nodes && map_code(merge, profile, &map) &&
                 add_stacks(merge, profile, &map);
    add_totals(&merge->profile, profile, merge->has_forks);
    add_facts(merge, profile->recording);
    free(map.modules);
    free(map.nodes);
    free(merge->placed);
    merge->placed = map.places;
    return is_ok;
}

// What is not one program any more has the number of processes for its name.
static void name_sum(struct merge *merge) {
    struct cairn_header *header = &merge->recording.header;
    if (merge->process_count < 2) return;
    memset(header->command, 0, sizeof header->command);
    memset(header->comm, 0, sizeof header->comm);
    snprintf(header->command, sizeof header->command, "%zu processes", merge->process_count);
}

static void leave_out(int64_t *value, int64_t copies) {
    *value = figures_add(*value, -copies);
}

// What was inherited stands with the process that allocated it.
static void leave_out_copies(struct profile *profile) {
    profile->has_copies_apart = true;
    for (size_t i = 0; i < profile->stack_count; i++) {
        struct stack *stack = &profile->stacks[i];
        const struct inherited *inherited = &stack_more(stack)->inherited;
        leave_out(&stack->peak_bytes, inherited->peak_bytes);
        leave_out(&stack->peak_blocks, inherited->peak_blocks);
        leave_out(&stack->exit_bytes, inherited->exit_bytes);
        leave_out(&stack->exit_blocks, inherited->exit_blocks);
    }
    leave_out(&profile->peak.bytes, profile->inherited.peak_bytes);
    leave_out(&profile->peak.blocks, profile->inherited.peak_blocks);
    leave_out(&profile->exit_bytes, profile->inherited.exit_bytes);
    leave_out(&profile->exit_blocks, profile->inherited.exit_blocks);
}

void merge_finish(struct merge *merge, struct recording *recording, struct profile *profile) {
    name_sum(merge);
    *recording = merge->recording;
    *profile = merge->profile;
    profile->recording = recording;
    profile->places.modules = &profile->modules;
    profile->stacks = merge->stacks.items;
    profile->stack_count = profile->built_stack_count = merge->stacks.count;
    profile->threads = merge->threads.items;
    profile->thread_count = merge->threads.count;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (profile->stacks[i].cut) profile->incomplete[cut_kind(profile->stacks[i].cut)]++;
    if (merge->has_forks && merge->has_origin) leave_out_copies(profile);
    // all of it is the profile's now
    merge->profile = (struct profile){0};
    merge->modules.items = NULL;
    merge->stacks.items = NULL;
    merge->threads.items = NULL;
}
