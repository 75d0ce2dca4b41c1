// SPDX-License-Identifier: Apache-2.0
// Any bytes as a recording (recording_form.h): the reader and all that is worked out of it, short
// of names and screens (report_fuzz.c has those). However bad the bytes are, the result is
// consistent in itself: what comes behind it uses its numbers as indexes without a look.
#include <stdint.h>
#include <stdlib.h>

#include "tests/fuzz/recording_form.h"
#include "tool/model/combined.h"
#include "tool/model/measure.h"
#include "tool/model/profile.h"
#include "tool/model/run.h"
#include "tool/model/shape.h"
#include "tool/model/snapshots.h"
#include "tool/model/timeline.h"

static void require(bool is_true) {
    if (!is_true) abort();
}

static void check_stacks(const struct profile *profile) {
    const struct tree_node *nodes = profile->tree.nodes.items;
    for (size_t i = 1; i < profile->tree.nodes.count; i++) {
        require(nodes[i].parent < i && nodes[i].depth == nodes[nodes[i].parent].depth + 1);
        require(nodes[i].jump < i && nodes[i].place < profile->places.list.count);
    }
    for (size_t i = 0; i < profile->stack_count; i++) {
        require(profile->stacks[i].node < profile->tree.nodes.count);
        require(cut_kind(profile->stacks[i].cut) < CAIRN_CUT_LIMIT);
    }
    // some of the measures, as many nodes as there are say which: all take a quarter of the time
    const unsigned part = 4;
    for (unsigned by = profile->tree.nodes.count % part; by < MEASURE_COUNT; by += part) {
        size_t count;
        uint32_t *order = measure_rank_all((enum measure)by, profile, &count);
        require(order && count <= profile->stack_count);
        free(order);
    }
}

static void check_code(const struct profile *profile) {
    const struct module_map *modules = &profile->modules;
    for (size_t i = 0; i < profile->places.list.count; i++) {
        uint32_t module = profile->places.list.items[i].module;
        require(module == MODULE_NONE || modules->modules[module].is_valid);
    }
    for (uint32_t i = 0; i < modules->count; i++) require(modules->modules[i].same_as <= i);
    for (size_t i = 0; i < modules->range_count; i++) {
        const struct module_range *range = &modules->ranges[i];
        require(range->start < range->end && range->module < modules->count);
        require(!i || range[-1].end <= range->start);
    }
}

static void check_times(const struct recording *recording) {
    struct timeline timeline;
    struct timeline_span span = {0};
    timeline_start(&timeline, recording);
    for (uint64_t end_ns = 0; timeline_next(&timeline, &span); end_ns = span.end_ns)
        require(span.start_ns == end_ns && span.low_bytes <= span.high_bytes);
}

static void check_snapshots(const struct profile *profile) {
    struct snapshots snapshots;
    struct live_at survivors[CAIRN_SNAPSHOT_LIMIT + 1];
    require(snapshots_build(&snapshots, profile, NULL) && snapshots.count <= CAIRN_SNAPSHOT_LIMIT);
    for (size_t i = 0; i < snapshots.count; i += 1 + snapshots.count / 4) {
        struct live_at *held = snapshots_live(&snapshots, i);
        struct live_at *since = snapshots_since(&snapshots, snapshots.list[i].generation);
        require(held && since);
        free(held);
        free(since);
    }
    require(snapshots_last_generation(&snapshots) <= CAIRN_SNAPSHOT_LIMIT);
    if (profile->stack_count) snapshots_survivors(&snapshots, 0, survivors);
    snapshots_free(&snapshots);
}

static void check_shape(const struct profile *profile) {
    struct shape shape;
    size_t count;
    require(shape_build(&shape, profile, NULL));
    for (uint32_t i = 0; i < profile->built_stack_count; i++) {
        struct shape_sizes sizes;
        struct shape_reallocs reallocs;
        struct shape_ages ages;
        shape_sizes(&shape, i, &sizes);
        require(sizes.count <= SHAPE_SIZES_MAX);
        shape_reallocs(&shape, i, &reallocs);
        shape_ages(&shape, i, &ages);
    }
    shape_free(&shape);
    struct shape_freed *freed = shape_freed_by(profile, &count);
    require(freed && count <= profile->cell_count);
    free(freed);
    struct shape_free_stack *stacks = shape_free_stacks(profile, &count);
    require(stacks != NULL);
    for (size_t i = 0; i < count; i++)
        require(stacks[i].allocating < profile->built_stack_count &&
                stacks[i].node < profile->tree.nodes.count);
    free(stacks);
}

// As one process of a run, twice.
static void check_run(const struct recording *recording) {
    struct combined combined = {0};
    struct run_row row;
    char line[RUN_LINE_MAX];
    run_row_of(recording, &row);
    require(run_row_print(&row, line) < sizeof line);
    require(combined_add(&combined, recording) && combined_add(&combined, recording));
    require(combined_add_row(&combined, &row));
    struct combined_peak peak = combined_find(&combined);
    require(peak.low_bytes <= peak.high_bytes);
    combined_free(&combined);
}

int LLVMFuzzerTestOneInput(const uint8_t *form, size_t form_size) {
    struct recording recording;
    struct profile profile;
    size_t size;
    uint8_t *bytes = form_expand(form, form_size, &size);
    require(bytes != NULL);
    if (recording_open_memory(bytes, size, &recording, NULL)) {
        check_times(&recording);
        check_run(&recording);
        require(profile_build(&recording, &profile, NULL));
        check_stacks(&profile);
        check_code(&profile);
        check_snapshots(&profile);
        check_shape(&profile);
        profile_free(&profile);
        recording_close(&recording);
    }
    free(bytes);
    return 0;
}
