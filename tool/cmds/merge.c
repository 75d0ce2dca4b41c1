// SPDX-License-Identifier: Apache-2.0
// cairn merge: many recordings added up to one. Each is opened, named, added and closed
// (tool/query/merged.h), so that memory grows with the distinct stacks; what they add up to is then
// written as an import is, with the names in it (tool/import/write.c): addresses of different
// builds and hosts mean nothing to each other.
//
// Of samples the sums that estimates are made of are written, so that the intervals are there again
// when it is read.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/fnv.h"
#include "tool/base/output.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/import/import.h"
#include "tool/query/merged.h"

enum { SOURCE_BYTES = 256 };

struct making {
    const struct profile *profile;
    struct frame_names names;
    struct imported *imported;
    bool has_lines;            // lines of a function are told apart
    uint32_t *places;          // of the sum: their number there, plus 1
    uint32_t *nodes;           // the same of nodes of the tree
    struct index_table named;  // places that are written, by the hash of their names
    ARRAY(uint64_t) hashes;    // by place that is written
    size_t shortened_peaks;    // stacks with more blocks at the peak than the format holds
};

static bool add_frames(struct making *making, const struct frame *frames, size_t count) {
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < count; i++)
        is_ok = import_frame_of(making->imported, (uint32_t)making->imported->places.count - 1,
                                frames[i].function, frames[i].file, frames[i].line);
    return is_ok;
}

// Places of the sum that are called the same are one: code in Python is told by its lines there,
// and by its names in a recording that is a sum already.
static uint64_t hash_of(const struct making *making, const struct frame *frames, size_t count) {
    uint64_t hash = FNV_START;
    for (size_t i = 0; i < count; i++) {
        const char *name = frames[i].function ? frames[i].function : "";
        hash = fnv_add(hash, name, strlen(name) + 1);
        if (!making->has_lines) continue;
        hash = fnv_add(hash, &frames[i].line, sizeof frames[i].line);
        if (frames[i].file) hash = fnv_add(hash, frames[i].file, strlen(frames[i].file) + 1);
    }
    return hash;
}

// What has other lines elsewhere has none.
static void forget_other_lines(struct making *making, uint32_t place, const struct frame *frames,
                               size_t count) {
    const struct import_place *known = &making->imported->places.items[place];
    for (size_t i = 0; i < count && i < known->frame_count; i++) {
        struct import_frame *frame = &making->imported->frames.items[known->first_frame + i];
        if (frame->line != frames[i].line) frame->line = 0;
    }
}

static bool find_named(struct making *making, uint64_t hash, uint32_t *place) {
    struct index_probe probe = index_probe_start(&making->named, hash);
    while (index_probe_next(&making->named, &probe, place))
        if (making->hashes.items[*place] == hash) return true;
    return false;
}

// A new place; `hash` of its names, or 0 of a cut.
static bool note_place(struct making *making, uint64_t hash, uint32_t place) {
    uint64_t *slot = place == IMPORT_NONE ? NULL : array_push(&making->hashes);
    if (slot) *slot = hash;
    return slot && (!hash || index_table_insert(&making->named, hash, place));
}

static bool add_place(struct making *making, uint32_t place, uint32_t *added) {
    uint32_t cut = making->profile->places.list.items[place].cut;
    size_t count;
    if (cut) {
        *added = import_cut(making->imported, cut_kind(cut));
        return note_place(making, 0, *added);
    }
    const struct frame *frames = making->names.of_place(making->names.context, place, &count);
    uint64_t hash = hash_of(making, frames, count);
    if (find_named(making, hash, added)) {
        forget_other_lines(making, *added, frames, count);
        return true;
    }
    *added = import_place(making->imported,
                          import_module(making->imported, count ? frames->module : NULL));
    return note_place(making, hash, *added) && add_frames(making, frames, count);
}

static bool place_of(struct making *making, uint32_t place, uint32_t *number) {
    if (!making->places[place]) {
        uint32_t added;
        if (!add_place(making, place, &added)) return false;
        making->places[place] = added + 1;
    }
    *number = making->places[place] - 1;
    return true;
}

// The interpreter's own frames say nothing where the code in Python is there.
static bool is_interpreter(const struct making *making, uint32_t place) {
    size_t count;
    if (making->profile->places.list.items[place].cut) return false;
    const struct frame *frames = making->names.of_place(making->names.context, place, &count);
    return count && frames[count - 1].is_interpreter;
}

static bool has_python(const struct making *making, uint32_t node) {
    const struct tree_node *nodes = making->profile->tree.nodes.items;
    for (; node != TREE_ROOT; node = nodes[node].parent) {
        size_t count;
        if (making->profile->places.list.items[nodes[node].place].cut) continue;
        const struct frame *frames =
            making->names.of_place(making->names.context, nodes[node].place, &count);
        if (count && frames->is_python) return true;
    }
    return false;
}

// The node of a stack in the tree of what is written.
static bool node_of(struct making *making, uint32_t node, uint32_t *number) {
    const struct tree_node *nodes = making->profile->tree.nodes.items;
    ARRAY(uint32_t) way = {0};  // from the stack outwards, as far as it is not known
    bool is_ok = true, leaves_out = has_python(making, node);
    for (; node != TREE_ROOT && (leaves_out || !making->nodes[node]); node = nodes[node].parent) {
        if (leaves_out && is_interpreter(making, nodes[node].place)) continue;
        uint32_t *slot = array_push(&way);
        if (!slot) break;
        *slot = node;
    }
    *number = node == TREE_ROOT ? TREE_ROOT : making->nodes[node] - 1;
    is_ok = node == TREE_ROOT || making->nodes[node];
    for (size_t i = way.count; is_ok && i-- > 0;) {
        uint32_t place;
        is_ok = place_of(making, nodes[way.items[i]].place, &place) &&
                tree_child(&making->imported->tree, *number, place, number);
        if (is_ok && !leaves_out) making->nodes[way.items[i]] = *number + 1;
    }
    array_free(&way);
    return is_ok;
}

static uint64_t in_parts(double blocks) {
    const double most = 0x1p62;  // a damaged recording may claim anything
    double parts = blocks * CAIRN_SAMPLE_ONE;
    return parts > -most && parts < most ? (uint64_t)(int64_t)llround(parts) : 0;
}

static void take(int64_t *blocks, uint64_t parts) {
    *blocks = figures_add(*blocks, -estimate_whole_blocks(parts));
}

// Returns a variance whose interval is as wide as that of a peak that something was taken off.
static double with_over(double variance, double over) {
    double beyond = sqrt(estimate_variance(estimate_interval(variance))) +
                    sqrt(estimate_variance((int64_t)over));
    return over > 0 ? beyond * beyond : variance;
}

// Of numbers of blocks, those of samples.
static void take_extra(const struct stack *stack, struct import_values *values,
                       struct cairn_sample_cell *sample) {
    const struct estimate *allocated = &stack_more(stack)->estimates[ESTIMATED_ALLOCATED];
    const struct estimate *left = &stack_more(stack)->estimates[ESTIMATED_EXIT];
    const struct estimate *peak = &stack_more(stack)->estimates[ESTIMATED_PEAK];
    *sample = (struct cairn_sample_cell){
        .extra_calls = in_parts(allocated->extra_blocks),
        .extra_frees = in_parts(allocated->extra_blocks) - in_parts(left->extra_blocks),
        .allocated_variance = allocated->bytes_variance,
        .freed_variance = allocated->bytes_variance - left->bytes_variance,
        .calls_variance = allocated->blocks_variance,
        .frees_variance = allocated->blocks_variance - left->blocks_variance,
        .peak_extra = in_parts(peak->extra_blocks - peak->blocks_over),
        .peak_bytes_variance = (float)with_over(peak->bytes_variance, peak->bytes_over),
        .peak_blocks_variance = (float)with_over(peak->blocks_variance, peak->blocks_over)};
    take(&values->calls, sample->extra_calls);
    take(&values->exit_blocks, in_parts(left->extra_blocks));
    take(&values->peak_blocks, sample->peak_extra);
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// Blocks from before an attach count as allocated: so more is left than was allocated otherwise.
// Of forks the copies were left out, which their stacks still know of.
static struct import_values values_of(const struct profile *profile, const struct stack *stack) {
    struct import_values values = {.calls = (int64_t)stack->allocations,
                                   .allocated_bytes = (int64_t)stack->allocated_bytes,
                                   .peak_blocks = stack->peak_blocks,
                                   .peak_bytes = stack->peak_bytes,
                                   .exit_blocks = stack->exit_blocks,
                                   .exit_bytes = stack->exit_bytes,
                                   .temporary = (int64_t)stack->temporary,
                                   .slack_bytes = (int64_t)stack->slack_bytes};
    if (!profile->has_copies_apart) {
        values.calls = figures_add(values.calls, (int64_t)stack_more(stack)->inherited.blocks);
        values.allocated_bytes =
            figures_add(values.allocated_bytes, (int64_t)stack_more(stack)->inherited.bytes);
    }
    values.calls = larger(values.calls, values.exit_blocks);
    values.allocated_bytes = larger(values.allocated_bytes, values.exit_bytes);
    return values;
}

static bool add_stack(struct making *making, const struct stack *stack) {
    struct import_values values = values_of(making->profile, stack);
    struct cairn_sample_cell sample = {0};
    uint32_t node;
    bool is_sampled = making->profile->sampling.is_on;
    if (is_sampled) take_extra(stack, &values, &sample);
    making->shortened_peaks += values.peak_blocks > INT32_MAX;
    return node_of(making, stack->node, &node) && import_node(making->imported, node, &values) &&
           (!is_sampled || import_samples(making->imported, node, &sample));
}

// The rate that estimates go by is the highest there was: no interval is too short for it.
static void take_sampling(const struct profile *profile, uint64_t rate_most,
                          struct imported *imported) {
    if (!profile->sampling.is_on) return;
    imported->sampling = (struct cairn_sampling){.is_on = 1,
                                                 .rate_bytes = rate_most,
                                                 .rate_now_bytes = rate_most,
                                                 .rate_most_bytes = rate_most};
    imported->totals =
        (struct import_values){.calls = (int64_t)profile->totals.allocations,
                               .allocated_bytes = (int64_t)profile->totals.allocated_bytes,
                               .exit_blocks = profile->exit_blocks};
}

static void take_facts(const struct making *making, size_t count) {
    const struct profile *profile = making->profile;
    const struct cairn_header *header = &profile->recording->header;
    const struct damage *damage = &profile->recording->damage;
    struct imported *imported = making->imported;
    bool is_hurt = damage->missing_bytes || damage->bad_sections || damage->bad_stacks;
    snprintf(imported->command, sizeof imported->command, "%s",
             units_counted((int64_t)count, "recording", "recordings").text);
    snprintf(imported->lacks, sizeof imported->lacks,
             "times, threads, sizes of blocks, snapshots%s%s",
             making->shortened_peaks ? ", all blocks at the peak (2147483647 a stack are)" : "",
             is_hurt ? ", what was damaged in them" : "");
    imported->has_temporary = imported->is_sum = true;
    imported->is_partial = header->is_partial || is_hurt;
    imported->max_depth = recording_max_depth(profile->recording);
    imported->start_unix_ns = header->start_unix_ns;
    imported->rss_peak_bytes = header->rss_peak_bytes;
    for (size_t i = 0; i < CAIRN_LOSS_MAX; i++)
        imported->lost[i] = recording_lost(profile->recording, i);
}

static bool make(struct opened *opened, bool has_lines, struct imported *imported,
                 struct error *error) {
    const struct profile *profile = &opened->profile;
    struct making making = {.profile = profile,
                            .names = names_frames(opened->names),
                            .imported = imported,
                            .has_lines = has_lines,
                            .places = calloc(profile->places.list.count + 1, sizeof(uint32_t)),
                            .nodes = calloc(profile->tree.nodes.count + 1, sizeof(uint32_t))};
    bool is_ok = making.places && making.nodes;
    for (size_t i = 0; is_ok && i < profile->stack_count; i++)
        is_ok = add_stack(&making, &profile->stacks[i]);
    take_facts(&making, opened->process_count);
    take_sampling(profile, opened->merge->rate_most_bytes, imported);
    free(making.places);
    free(making.nodes);
    index_table_free(&making.named);
    array_free(&making.hashes);
    return is_ok || import_no_memory(error);
}

static bool write_sum(const struct command_args *args, const struct opened *opened,
                      const struct imported *imported, struct error *error) {
    char source[SOURCE_BYTES], name[PATH_MAX];
    struct output output;
    snprintf(source, sizeof source, "%s, each at its own peak%s",
             units_counted((int64_t)opened->process_count, "recording", "recordings").text,
             opened->bad_files ? "; some could not be read" : "");
    const char *path = args_text(args, OPTION_OUTPUT, NULL);
    if (!output_open(path, args_has(args, OPTION_FORCE), &output, error)) return false;
    if (!import_write(output.file, imported, source, error)) {
        output_cancel(&output);
        return false;
    }
    if (!output_commit(&output, error)) return false;
    text_escape(name, sizeof name, path);
    fprintf(stderr, "cairn: %s: %s, %s", name,
            units_counted((int64_t)opened->process_count, "recording", "recordings").text,
            units_counted((int64_t)imported->stacks.count, "stack", "stacks").text);
    if (opened->bad_files)
        fprintf(stderr, "; %s could not be read",
                units_counted((int64_t)opened->bad_files, "recording", "recordings").text);
    fputc('\n', stderr);
    return true;
}

int cmd_merge(const struct command_args *args) {
    const struct opening opening = {.words = args->words,
                                    .count = args->word_count,
                                    .is_by_names = true,
                                    .has_lines = args_has(args, OPTION_LINES)};
    struct imported imported;
    struct opened opened;
    struct error error;
    if (!args->word_count)
        error_set(&error, "merge: which recordings? Files, directories, or @FILE, a list of them");
    else if (!args_has(args, OPTION_OUTPUT))
        error_set(&error, "merge: where to? -o FILE");
    if (!args->word_count || !args_has(args, OPTION_OUTPUT))
        return command_fail(STATUS_USAGE, &error);
    if (!merged_open(&opening, &opened, &error)) return command_fail(STATUS_FAILURE, &error);
    bool is_ok = import_start(&imported, &error) &&
                 make(&opened, opening.has_lines, &imported, &error) &&
                 write_sum(args, &opened, &imported, &error);
    int status = opened.left_out ? STATUS_FAILURE : STATUS_OK;
    import_free(&imported);
    opened_close(&opened);
    return is_ok ? status : command_fail(STATUS_FAILURE, &error);
}
