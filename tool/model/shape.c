// SPDX-License-Identifier: Apache-2.0
#include "tool/model/shape.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/decode.h"

// The number, plus 1, of the stack that a cell is of, or an entry of a heap by name.
static uint32_t stack_of(const struct profile *profile, size_t index) {
    if (!profile->heap) return profile->stack_of_cell[index];
    const struct heap_part *part = &profile->heap_parts[index];
    bool is_of_it = part->is_shown && part->entry.cell < profile->cell_count;
    return is_of_it ? profile->stack_of_cell[part->entry.cell] : 0;
}

bool shape_build(struct shape *shape, const struct profile *profile, struct error *error) {
    size_t stacks = profile->built_stack_count;
    const size_t count = profile->heap ? profile->heap_part_count : profile->cell_count;
    *shape = (struct shape){.profile = profile,
                            .first = calloc(stacks + 2, sizeof *shape->first),
                            .cells = calloc(count + 1, sizeof *shape->cells)};
    if (!shape->first || !shape->cells) {
        shape_free(shape);
        return error_set(error, "no memory for the shapes of this recording");
    }
    // counted one place ahead of the next, so that filling in moves each to its own beginning
    for (size_t i = 0; i < count; i++) {
        uint32_t stack = stack_of(profile, i);
        if (stack) shape->first[stack + 1]++;
    }
    for (size_t i = 2; i < stacks + 2; i++) shape->first[i] += shape->first[i - 1];
    for (size_t i = 0; i < count; i++) {
        uint32_t stack = stack_of(profile, i);
        if (stack) shape->cells[shape->first[stack]++] = (uint32_t)i;
    }
    return true;
}

void shape_free(struct shape *shape) {
    free(shape->first);
    free(shape->cells);
    *shape = (struct shape){0};
}

static unsigned bits_of(uint64_t size) {
    return size ? 64 - (unsigned)__builtin_clzll(size) : 0;
}

static void size_add(struct shape_sizes *sizes, uint64_t size, uint64_t count, bool is_at_least) {
    sizes->buckets[bits_of(size)] += count;
    for (size_t i = 0; i < sizes->count; i++) {
        if (sizes->list[i].size != size) continue;
        sizes->list[i].count += count;
        sizes->list[i].is_at_least |= is_at_least;
        return;
    }
    if (sizes->count == SHAPE_SIZES_MAX) return;
    sizes->list[sizes->count++] = (struct shape_size){size, count, is_at_least};
}

// Adds what the cell has beside its usual size; the number of blocks that this explains.
static uint64_t add_others(const struct cairn_sizes *from, struct shape_sizes *sizes) {
    uint64_t others = from->unknown_calls;
    bool has_buckets = false;
    sizes->unknown += from->unknown_calls;
    for (unsigned i = 0; i < CAIRN_SIZES_BUCKETS; i++) {
        sizes->buckets[i] += from->buckets[i];
        others += from->buckets[i];
        has_buckets |= from->buckets[i] != 0;
    }
    for (unsigned i = 0; i < CAIRN_SIZES_EXACT; i++) {
        bool is_at_least = from->unknown_calls || (has_buckets && from->errors[i]);
        if (from->counts[i]) size_add(sizes, from->sizes[i], from->counts[i], is_at_least);
        others += from->counts[i];
    }
    return others;
}

// What a recording has of the sizes of a cell, or of an entry of a heap by name.
struct sizes_of {
    bool is_known;
    uint64_t calls, usual;
    bool has_others;
    struct cairn_sizes others;
};

static void read_part_sizes(const struct profile *profile, uint32_t index, struct sizes_of *of) {
    const struct heap_part *part = &profile->heap_parts[index];
    const struct cairn_heap_stack *entry = &part->entry;
    of->calls = entry->calls;
    of->usual = entry->size;
    of->is_known =
        recording_knows_heap_blocks(profile->recording) && entry->sizes != CAIRN_HEAP_NO_SIZES;
    of->has_others = of->is_known && entry->sizes;
    if (of->has_others)
        of->is_known = recording_sizes(profile->recording, entry->sizes - 1, &of->others) &&
                       !of->others.cell && of->others.heap_stack == part->number;
}

static void read_cell_sizes(const struct profile *profile, uint32_t id, struct sizes_of *of) {
    struct recorded_cell cell;
    struct cell_values values;
    if (!profile_cell(profile, id, &values) || !values.calls) return;
    recording_cell(profile->recording, id, &cell);
    of->calls = values.calls;
    of->is_known = id != CAIRN_CELL_OTHER && cell.has_sizes;
    of->usual = cell.usual_size;
    of->has_others = of->is_known && cell.sizes;
    if (of->has_others)
        of->is_known = recording_sizes(profile->recording, cell.sizes - 1, &of->others) &&
                       of->others.cell == id;
}

static struct sizes_of read_sizes(const struct shape *shape, uint32_t index) {
    struct sizes_of of = {.is_known = false};
    (shape->profile->heap ? read_part_sizes : read_cell_sizes)(shape->profile, index, &of);
    return of;
}

// Blocks of the usual size are those that are nowhere else.
static void add_sizes(const struct sizes_of *of, struct shape_sizes *sizes) {
    if (!of->is_known) {
        sizes->unknown += of->calls;
        return;
    }
    uint64_t others = of->has_others ? add_others(&of->others, sizes) : 0;
    bool is_at_least = of->has_others && of->others.unknown_calls;
    if (others < of->calls) size_add(sizes, of->usual, of->calls - others, is_at_least);
}

static bool is_counted_exactly(const struct sizes_of *of, uint64_t size) {
    if (size == of->usual) return true;
    for (unsigned i = 0; i < CAIRN_SIZES_EXACT; i++)
        if (of->others.counts[i] && of->others.sizes[i] == size) return !of->others.errors[i];
    return false;
}

// A size that one cell has exactly may be in the buckets of another one.
static void note_in_buckets(const struct sizes_of *of, struct shape_sizes *sizes) {
    if (!of->is_known || !of->has_others) return;
    for (size_t i = 0; i < sizes->count; i++) {
        struct shape_size *size = &sizes->list[i];
        unsigned bucket = bits_of(size->size);
        if (bucket >= CAIRN_SIZES_BUCKETS) bucket = CAIRN_SIZES_BUCKETS - 1;
        if (of->others.buckets[bucket] && !is_counted_exactly(of, size->size))
            size->is_at_least = true;
    }
}

static int compare_sizes(const void *a, const void *b) {
    const struct shape_size *first = a, *second = b;
    if (first->count != second->count) return first->count < second->count ? 1 : -1;
    return (first->size > second->size) - (first->size < second->size);
}

void shape_sizes(const struct shape *shape, uint32_t stack_number, struct shape_sizes *sizes) {
    memset(sizes, 0, sizeof *sizes);
    uint32_t first = shape->first[stack_number], end = shape->first[stack_number + 1];
    for (uint32_t i = first; i < end; i++) {
        const struct sizes_of of = read_sizes(shape, shape->cells[i]);
        add_sizes(&of, sizes);
    }
    for (uint32_t i = first; i < end; i++) {
        const struct sizes_of of = read_sizes(shape, shape->cells[i]);
        note_in_buckets(&of, sizes);
    }
    qsort(sizes->list, sizes->count, sizeof *sizes->list, compare_sizes);
}

void shape_part_sizes(const struct profile *profile, size_t index, struct shape_sizes *sizes) {
    struct sizes_of of = {.is_known = false};
    memset(sizes, 0, sizeof *sizes);
    read_part_sizes(profile, (uint32_t)index, &of);
    add_sizes(&of, sizes);
    qsort(sizes->list, sizes->count, sizeof *sizes->list, compare_sizes);
}

// `calls`: by the number of their sizes' bits, in units of CAIRN_SAMPLE_ONE so far.
static void add_sampled(struct shape_sampled_size *sizes, const struct cairn_sample_size *from) {
    struct shape_sampled_size *sum = &sizes[bits_of(from->least_bytes)];
    const struct estimate estimate = {.samples = from->samples,
                                      .uncertain = from->samples,
                                      .extra_blocks =
                                          (double)from->calls / CAIRN_SAMPLE_ONE - from->samples,
                                      .blocks_variance = (double)from->variance};
    const struct measured calls = measured_blocks((int64_t)from->calls, &estimate);
    if (!from->samples) return;
    if (!sum->calls.estimate.samples || from->least_bytes < sum->least)
        sum->least = from->least_bytes;
    if (from->most_bytes > sum->most) sum->most = from->most_bytes;
    measured_add(&sum->calls, calls);
}

size_t shape_sampled_sizes(const struct shape *shape, uint32_t stack_number,
                           struct shape_sampled_size sizes[SHAPE_SAMPLED_SIZES],
                           int64_t *other_calls) {
    struct cairn_sample_size found[CAIRN_SAMPLE_SIZES];
    struct cell_values values;
    size_t count = 0;
    *other_calls = 0;
    memset(sizes, 0, SHAPE_SAMPLED_SIZES * sizeof *sizes);
    for (uint32_t i = shape->first[stack_number]; i < shape->first[stack_number + 1]; i++) {
        uint32_t id = shape->cells[i];
        if (!profile_cell(shape->profile, id, &values) || !values.calls) continue;
        *other_calls = figures_add(*other_calls, (int64_t)values.calls);
        if (!recording_sample_sizes(shape->profile->recording, id, found)) continue;
        for (size_t at = 0; at < CAIRN_SAMPLE_SIZES; at++) add_sampled(sizes, &found[at]);
    }
    for (size_t bits = 0; bits < SHAPE_SAMPLED_SIZES; bits++) {
        if (!sizes[bits].calls.estimate.samples) continue;
        sizes[count] = sizes[bits];
        sizes[count].calls.value =
            (sizes[bits].calls.value + CAIRN_SAMPLE_ONE / 2) / CAIRN_SAMPLE_ONE;
        *other_calls = figures_add(*other_calls, -sizes[count++].calls.value);
    }
    // both are rounded, each stack once and each size once
    if (*other_calls <= (int64_t)(SHAPE_SAMPLED_SIZES)) *other_calls = 0;
    return count;
}

void shape_reallocs(const struct shape *shape, uint32_t stack_number,
                    struct shape_reallocs *reallocs) {
    const struct recording *recording = shape->profile->recording;
    *reallocs = (struct shape_reallocs){0};
    if (shape->profile->heap) return;
    for (uint32_t i = shape->first[stack_number]; i < shape->first[stack_number + 1]; i++) {
        struct recorded_cell cell;
        struct cairn_reallocs from;
        uint32_t id = shape->cells[i];
        recording_cell(recording, id, &cell);
        if (!cell.reallocs || !recording_reallocs(recording, cell.reallocs - 1, &from) ||
            from.cell != id)
            continue;
        reallocs->calls += from.calls;
        reallocs->in_place += from.in_place;
        reallocs->grown += from.grown;
        reallocs->copied_bytes += from.copied_bytes;
    }
}

uint64_t shape_alignment(size_t bucket) {
    return 2 * (uint64_t)CAIRN_ALIGN_PLAIN << bucket;
}

static void add_cell_aligned(const struct recording *recording, uint32_t id,
                             struct shape_aligned *aligned) {
    struct recorded_cell cell;
    struct cairn_aligned from;
    recording_cell(recording, id, &cell);
    if (!cell.aligned || !recording_aligned(recording, cell.aligned - 1u, &from) || from.cell != id)
        return;
    aligned->slack_bytes += from.slack_bytes;
    aligned->waste_bytes += from.waste_bytes;
    for (size_t bucket = 0; bucket < CAIRN_ALIGN_BUCKETS; bucket++)
        aligned->calls[bucket] += from.calls[bucket];
}

void shape_aligned(const struct shape *shape, uint32_t stack_number,
                   struct shape_aligned *aligned) {
    const uint64_t chunk_least = 32, narrow_slot_bytes = 4;
    const struct cairn_header *header = &shape->profile->recording->header;
    uint64_t usual_calls = 0;
    *aligned = (struct shape_aligned){.is_waste_known = header->slot_bytes == narrow_slot_bytes};
    if (shape->profile->heap) return;
    for (uint32_t i = shape->first[stack_number]; i < shape->first[stack_number + 1]; i++)
        add_cell_aligned(shape->profile->recording, shape->cells[i], aligned);
    for (size_t bucket = 0; bucket < CAIRN_ALIGN_BUCKETS; bucket++) {
        uint64_t calls = aligned->calls[bucket], alignment = shape_alignment(bucket);
        if (!calls) continue;
        aligned->all_calls += calls;
        aligned->most = alignment;
        aligned->reach_bytes = alignment + chunk_least;
        if (calls >= usual_calls) aligned->usual = alignment;
        if (calls >= usual_calls) usual_calls = calls;
    }
}

static bool ages_by_log(const struct shape *shape, uint32_t stack_number, struct shape_ages *ages) {
    const struct shape_log *log = shape->profile->log;
    bool is_any = false;
    for (uint32_t i = shape->first[stack_number]; i < shape->first[stack_number + 1]; i++) {
        if (shape->cells[i] >= log->count) continue;
        const struct shape_ages *from = &log->cells[shape->cells[i]];
        for (unsigned bucket = 0; bucket < CAIRN_AGE_BUCKETS; bucket++) {
            ages->calls[bucket] += from->calls[bucket];
            ages->ms[bucket] += from->ms[bucket];
            is_any |= from->ms[bucket] > 0;
        }
    }
    return is_any;
}

static void add_ages(struct shape_ages *ages, const struct cairn_ages *from) {
    for (unsigned bucket = 0; bucket < CAIRN_AGE_BUCKETS; bucket++) {
        ages->calls[bucket] += from->calls[bucket];
        ages->ms[bucket] += from->ms[bucket];
    }
}

static bool ages_of_part(const struct recording *recording, const struct heap_part *part,
                         struct cairn_ages *ages) {
    return part->entry.ages && recording_ages(recording, part->entry.ages - 1, ages) &&
           !ages->cell && ages->heap_stack == part->number;
}

static bool ages_of_cell(const struct recording *recording, uint32_t id, struct cairn_ages *ages) {
    struct recorded_cell cell;
    recording_cell(recording, id, &cell);
    return cell.ages && recording_ages(recording, cell.ages - 1, ages) && ages->cell == id;
}

bool shape_ages(const struct shape *shape, uint32_t stack_number, struct shape_ages *ages) {
    const struct profile *profile = shape->profile;
    bool is_any = false;
    *ages = (struct shape_ages){0};
    if (profile->log) return ages_by_log(shape, stack_number, ages);
    for (uint32_t i = shape->first[stack_number]; i < shape->first[stack_number + 1]; i++) {
        struct cairn_ages from;
        uint32_t index = shape->cells[i];
        if (!(profile->heap ? ages_of_part(profile->recording, &profile->heap_parts[index], &from)
                            : ages_of_cell(profile->recording, index, &from)))
            continue;
        is_any = true;
        add_ages(ages, &from);
    }
    return is_any;
}

bool shape_part_ages(const struct profile *profile, size_t index, struct shape_ages *ages) {
    struct cairn_ages from;
    *ages = (struct shape_ages){0};
    if (!ages_of_part(profile->recording, &profile->heap_parts[index], &from)) return false;
    add_ages(ages, &from);
    return true;
}

static int compare_pairs(const void *a, const void *b) {
    const struct shape_freed *first = a, *second = b;
    if (first->owner != second->owner) return first->owner < second->owner ? -1 : 1;
    return (first->freer > second->freer) - (first->freer < second->freer);
}

static void add_pair(struct shape_freed *sum, const struct shape_freed *pair) {
    sum->frees += pair->frees;
    sum->bytes += pair->bytes;
    estimate_add(&sum->estimate, &pair->estimate);
}

// Equal neighbours become one.
static size_t merge_pairs(struct shape_freed *pairs, size_t count) {
    size_t kept = 0;
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < count; i++) {
        if (kept && !compare_pairs(&pairs[kept - 1], &pairs[i])) {
            add_pair(&pairs[kept - 1], &pairs[i]);
        } else {
            pairs[kept++] = pairs[i];
        }
    }
    return kept;
}

struct shape_freed *shape_freed_by(const struct profile *profile, size_t *count) {
    const struct decoder decoder = {.recording = profile->recording};
    struct shape_freed *pairs = calloc(profile->cell_count + 1, sizeof *pairs);
    *count = 0;
    for (uint32_t id = 0; pairs && !profile->heap && id < profile->cell_count; id++) {
        struct cell_values values;
        struct record record;
        struct shape_freed pair = {0};
        if (!profile->stack_of_cell[id] || !profile_cell(profile, id, &values) || !values.frees)
            continue;
        uint32_t counted = id;
        if (decoder_record(&decoder, id, &record) && record.is_foreign) counted = record.older;
        if (!recording_owner(profile->recording, id, &pair.freer) ||
            !recording_owner(profile->recording, counted, &pair.owner))
            continue;
        pair.frees = values.frees;
        pair.bytes = values.freed_bytes;
        pair.estimate = values.freed_estimate;
        // the cells of a thread lie together, so that there is hardly anything to be sorted
        if (*count && !compare_pairs(&pairs[*count - 1], &pair))
            add_pair(&pairs[*count - 1], &pair);
        else
            pairs[(*count)++] = pair;
    }
    if (pairs) *count = merge_pairs(pairs, *count);
    return pairs;
}

static int compare_free_stacks(const void *a, const void *b) {
    const struct shape_free_stack *first = a, *second = b;
    if (first->allocating != second->allocating)
        return first->allocating < second->allocating ? -1 : 1;
    if (first->bytes != second->bytes) return first->bytes < second->bytes ? 1 : -1;
    return (first->node > second->node) - (first->node < second->node);
}

// Threads and generations that have the same two stacks are added up: sorted by them, then merged.
static int compare_by_stacks(const void *a, const void *b) {
    const struct shape_free_stack *first = a, *second = b;
    if (first->allocating != second->allocating)
        return first->allocating < second->allocating ? -1 : 1;
    return (first->node > second->node) - (first->node < second->node);
}

static size_t merge_free_stacks(struct shape_free_stack *list, size_t count) {
    size_t kept = 0;
    qsort(list, count, sizeof *list, compare_by_stacks);
    for (size_t i = 0; i < count; i++) {
        if (kept && !compare_by_stacks(&list[kept - 1], &list[i])) {
            list[kept - 1].frees += list[i].frees;
            list[kept - 1].bytes += list[i].bytes;
        } else {
            list[kept++] = list[i];
        }
    }
    qsort(list, kept, sizeof *list, compare_free_stacks);
    return kept;
}

struct shape_free_stack *shape_free_stacks(const struct profile *profile, size_t *count) {
    size_t freed_count = profile->freed_at.count;
    struct shape_free_stack *list = calloc(freed_count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; list && i < freed_count; i++) {
        const struct freed_at *at = &profile->freed_at.items[i];
        struct cell_values values;
        if (!profile_cell(profile, at->cell, &values) || !profile->stack_of_cell[at->cell])
            continue;
        list[(*count)++] =
            (struct shape_free_stack){.allocating = profile->stack_of_cell[at->cell] - 1,
                                      .node = at->node,
                                      .frees = values.frees,
                                      .bytes = values.freed_bytes};
    }
    if (list) *count = merge_free_stacks(list, *count);
    return list;
}

const struct shape_free_stack *shape_free_stacks_of(const struct shape_free_stack *list,
                                                    size_t count, uint32_t stack_number,
                                                    size_t *own_count) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].allocating < stack_number)
            low = middle + 1;
        else
            high = middle;
    }
    for (high = low; high < count && list[high].allocating == stack_number;) high++;
    *own_count = high - low;
    return list + low;
}

enum { HEADER_BYTES = 8 };

// Rounding of a cell's blocks on average.
static double average(const struct recording *recording, size_t id) {
    struct recorded_cell cell;
    if (!recording_cell(recording, id, &cell) || !cell.calls) return 0;
    return (double)cell.slack_bytes / (double)cell.calls;
}

uint64_t slack_of_live(const struct recording *recording) {
    const struct decoder decoder = {.recording = (struct recording *)recording};
    size_t count = recording_count(recording, CAIRN_SECTION_CELLS);
    double slack = 0;
    if (count > UINT32_MAX) count = UINT32_MAX;
    for (size_t id = CAIRN_CELL_OTHER; id < count; id++) {
        struct recorded_cell cell;
        struct record record;
        if (!recording_cell(recording, id, &cell) || cell.calls == cell.frees) continue;
        // frees of blocks that another cell counts
        bool is_foreign =
            !cell.calls && decoder_record(&decoder, (uint32_t)id, &record) && record.is_foreign;
        double live = (double)cell.calls - (double)cell.frees;
        slack += live * (average(recording, is_foreign ? record.older : id) + HEADER_BYTES);
    }
    return slack > 0 ? (uint64_t)slack : 0;
}

uint64_t shape_ages_error_ms(const struct recording *recording) {
    const uint64_t ns_per_ms = 1000000, kernel_ms = 11;  // its coarse clock, where no tool is
    const struct cairn_header *header = &recording->header;
    const struct cairn_control *control = &header->control;
    const uint64_t end_ms = header->end_ns ? header->end_ns / ns_per_ms + 1 : 0;
    if (!control->tool_pid) return kernel_ms;
    if (!control->clock_error_ms && control->clock_ms) return UINT64_MAX;  // of an older cairn
    uint64_t last_ms = end_ms > control->clock_ms ? end_ms - control->clock_ms : 1;
    return last_ms > control->clock_error_ms ? last_ms : control->clock_error_ms;
}
