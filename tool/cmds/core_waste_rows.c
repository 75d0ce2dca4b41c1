// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_waste_rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "tool/query/progress.h"
#include "tool/render/frames.h"
#include "tool/render/stacks.h"

static struct waste_row *row_of(struct waste_sums *sums, const struct core_kin *kin) {
    uint64_t hash = hash_mix(kin->value, index_table_seed() + kin->kind);
    struct index_probe probe = index_probe_start(&sums->index, hash);
    for (uint32_t i; index_probe_next(&sums->index, &probe, &i);)
        if (core_kin_is(&sums->rows.items[i].kin, kin)) return &sums->rows.items[i];
    struct waste_row *row = array_push(&sums->rows);
    if (!row || !index_table_insert(&sums->index, hash, (uint32_t)(sums->rows.count - 1)))
        return NULL;
    *row = (struct waste_row){.kin = *kin};
    return row;
}

// --- adding up, one window or large block after the other

static void end_unit(const struct waste_sums *sums, struct waste_row *row) {
    size_t windows = sums->windows ? sums->windows->drawn.count : 1;
    struct drawn_sums *of = row->sums[row->unit_number < windows ? STRATUM_WINDOWS : STRATUM_LARGE];
    for (int i = 0; i < WASTE_FIGURES && row->has_unit; i++) {
        drawn_add(&of[i], row->unit[i], row->unit[FIGURE_HELD]);
        if (i != FIGURE_HELD) row->unit[i] = 0;
    }
    row->unit[FIGURE_HELD] = 0;
    row->has_unit = false;
}

static void add(const struct waste_sums *sums, struct waste_row *row,
                const struct waste_block *block) {
    if (row->unit_number != block->unit) end_unit(sums, row);
    row->unit_number = block->unit;
    row->has_unit = true;
    for (int i = 0; i < WASTE_KINDS; i++) {
        row->unit[i] += (double)block->bytes[i];
        row->unit[FIGURE_WASTED] += (double)block->bytes[i];
    }
    row->unit[FIGURE_HELD] += (double)(block->size + block->bytes[WASTE_SLACK]);
    row->unit[FIGURE_BLOCKS]++;
    row->unit[FIGURE_SPARSE] += (double)block->sparse;
    row->unit[FIGURE_UNREAD] += (double)block->unread;
    if (block->is_string) row->unit[FIGURE_STRINGS] += (double)block->bytes[WASTE_DUPLICATE];
}

static void add_copy(struct waste_copies *copies, const struct waste_block *block) {
    copies->count += block->bytes[WASTE_DUPLICATE] != 0;
    copies->contents += block->is_first_copy;
}

static bool see(void *context, const struct waste_block *block) {
    struct waste_sums *sums = context;
    if (sums->windows && block->unit == SIZE_MAX) return true;
    const struct core_kin kin = core_kin_alike(sums->subject, block->address, block->size);
    struct waste_row *row = row_of(sums, &kin);
    sums->is_failed = !row;
    if (!row) return false;
    add(sums, row, block);
    add(sums, &sums->all, block);
    add_copy(&sums->copies, block);
    if (block->is_string) add_copy(&sums->strings, block);
    return true;
}

// --- estimates

static double total_of(const struct waste_sums *sums, const struct waste_row *row, int figure) {
    return drawn_total(&sums->drawn[STRATUM_WINDOWS], &row->sums[STRATUM_WINDOWS][figure]) +
           drawn_total(&sums->drawn[STRATUM_LARGE], &row->sums[STRATUM_LARGE][figure]);
}

// What was not read may be of any of these kinds.
static bool may_be_unread(int figure) {
    return figure == WASTE_ZERO || figure == WASTE_DUPLICATE || figure == WASTE_TAIL ||
           figure == FIGURE_WASTED;
}

static void estimate(const struct waste_sums *sums, struct waste_row *row) {
    const struct drawn *drawn = sums->drawn;
    const double unread = total_of(sums, row, FIGURE_UNREAD);
    double seen = 0;
    for (int i = 0; i < WASTE_FIGURES; i++) {
        double variance = 0;
        seen = 0;
        for (int k = 0; k < WASTE_STRATA; k++) {
            variance += drawn_variance(&drawn[k], &row->sums[k][i]);
            seen += row->sums[k][i].y;
        }
        row->estimates[i] = drawn_bounds(total_of(sums, row, i), variance, drawn[0].count, seen,
                                         may_be_unread(i) ? unread : 0);
    }
    const double held = row->estimates[FIGURE_HELD].value;
    if (held <= 0) return;
    double share = row->estimates[FIGURE_WASTED].value / held, variance = 0;
    for (int k = 0; k < WASTE_STRATA; k++)
        variance += drawn_share_variance(&drawn[k], &row->sums[k][FIGURE_WASTED], share);
    row->share = drawn_bounds(share, variance / held / held, drawn[0].count, 0, unread / held);
    if (row->share.high > 1) row->share.high = 1;
}

static double saved_of(const struct waste_row *row) {
    return row->estimates[FIGURE_WASTED].value + row->estimates[FIGURE_SPARSE].value;
}

static int by_saved(const void *a, const void *b) {
    const struct waste_row *left = a, *right = b;
    if (saved_of(left) != saved_of(right)) return saved_of(left) > saved_of(right) ? -1 : 1;
    const double held = left->estimates[FIGURE_HELD].value,
                 other = right->estimates[FIGURE_HELD].value;
    if (held != other) return held > other ? -1 : 1;
    return left->kin.value < right->kin.value ? -1 : left->kin.value > right->kin.value;
}

static void settle(struct waste_sums *sums) {
    for (size_t i = 0; i < sums->rows.count; i++) {
        end_unit(sums, &sums->rows.items[i]);
        estimate(sums, &sums->rows.items[i]);
    }
    end_unit(sums, &sums->all);
    estimate(sums, &sums->all);
    if (sums->rows.count)
        qsort(sums->rows.items, sums->rows.count, sizeof *sums->rows.items, by_saved);
}

// --- what is looked at

// The blocks that were drawn, as the heap.
static bool need_drawn(struct core_subject *subject, size_t *left_out, struct error *error) {
    const struct stopped_image *live = &subject->look.live;
    const char *other = core_other_allocator(subject);
    bool is_by_map = live->windows.are_by_map && subject->is_recorded;
    if (!is_by_map && !live->windows.has_arenas)
        return error_set(error,
                         "there is no heap of glibc's malloc in it; it used %s, whose blocks are "
                         "known only of recorded processes",
                         other ? other : "another allocator");
    subject->has_heap =
        waste_drawn_blocks(live, is_by_map ? &subject->blocks : NULL, &subject->heap, left_out);
    return subject->has_heap || error_set(error, "out of memory");
}

static bool prepare(struct core_subject *subject, struct waste_sums *sums, struct error *error) {
    const struct heap_windows *windows = core_windows_of(subject);
    sums->windows = windows;
    sums->drawn[STRATUM_WINDOWS] = (struct drawn){1, 1};
    if (!windows) return core_need_typed(subject, error);
    if (!need_drawn(subject, &sums->left_out, error) || !core_need_types(subject, error))
        return false;
    uint64_t read = windows->drawn.count - sums->left_out;
    sums->drawn[STRATUM_WINDOWS] = (struct drawn){read, windows->window_count};
    sums->drawn[STRATUM_LARGE] = (struct drawn){windows->large.count, windows->large_count};
    return true;
}

static bool compare_all(const struct core_subject *subject, struct waste_sums *sums,
                        struct error *error) {
    const struct waste_source source = {.core = subject->core,
                                        .heap = core_heap_of(subject),
                                        .live = subject->look.is_core ? NULL : &subject->look.live,
                                        .blocks = subject->is_recorded ? &subject->blocks : NULL};
    return (waste_find(&source, see, sums) && !sums->is_failed) ||
           error_set(error, "out of memory");
}

bool waste_sums_make(struct core_subject *subject, struct waste_sums *sums, struct error *error) {
    *sums = (struct waste_sums){.subject = subject};
    progress_wait("comparing its blocks", subject->look.live.copied_bytes);
    bool is_ok = prepare(subject, sums, error) && compare_all(subject, sums, error);
    progress_wait_end();
    if (is_ok) settle(sums);
    return is_ok;
}

void waste_sums_free(struct waste_sums *sums) {
    array_free(&sums->rows);
    index_table_free(&sums->index);
}

// --- for files

enum { NOTED_BLOCKS_MAX = 4000000 };

// What could be saved of memory: what was never touched takes none.
static double of_memory(const struct waste_row *row) {
    return row->estimates[FIGURE_WASTED].value - row->estimates[WASTE_UNTOUCHED].value;
}

static const struct waste_row *most_of(const struct waste_sums *sums, bool are_strings) {
    const struct waste_row *most = NULL;
    double most_bytes = 0;
    for (size_t i = 0; i < sums->rows.count; i++) {
        const struct waste_row *row = &sums->rows.items[i];
        double bytes = are_strings ? row->estimates[FIGURE_STRINGS].value : of_memory(row);
        if (bytes <= most_bytes) continue;
        most = row;
        most_bytes = bytes;
    }
    return most;
}

// "parse_name ← load": the first function of the program's own, and who called it where one stack
// leads there.
static bool write_functions(const struct core_subject *subject, const struct core_kin *kin,
                            char *text) {
    const struct frame_names names = names_frames(subject->opened.names);
    struct frame_list frames = {0};
    char function[KIN_LABEL_BYTES], caller[KIN_LABEL_BYTES] = "";
    size_t index = 0;
    uint32_t node = subject->opened.profile.stacks[kin->value].node;
    if (!frame_list_fill(&frames, &subject->opened.profile, &names, node, 0)) return false;
    const struct frame *own = frame_list_first_own(&frames), *frame;
    snprintf(function, sizeof function, STACK_NOT_RECORDED);
    if (own) frame_label(own, function, sizeof function, CAIRN_WASTE_LABEL_BYTES / 2);
    while ((frame = frame_list_next(&frames, &index)) && frame != own) {
    }
    frame = frame ? frame_list_next(&frames, &index) : NULL;
    if (!core_kin_is_one(subject, kin)) frame = NULL;
    if (frame) frame_label(frame, caller, sizeof caller, CAIRN_WASTE_LABEL_BYTES / 4);
    snprintf(text, CAIRN_WASTE_LABEL_BYTES, "%.90s%s%.90s", function, frame ? " \xe2\x86\x90 " : "",
             caller);
    frame_list_free(&frames);
    return true;
}

static bool write_most(const struct waste_sums *sums, const struct waste_row *row, char *text,
                       struct error *error) {
    char label[KIN_LABEL_BYTES];
    if (!row) return true;
    core_kin_want(sums->subject, &row->kin);
    if (row->kin.kind == KIND_STACK && !names_resolve(sums->subject->opened.names, error))
        return false;
    bool is_ok = row->kin.kind == KIND_STACK ? write_functions(sums->subject, &row->kin, text)
                                             : core_kin_label(sums->subject, &row->kin, label);
    if (is_ok && row->kin.kind != KIND_STACK)
        snprintf(text, CAIRN_WASTE_LABEL_BYTES, "%.180s", label);
    return is_ok || error_set(error, "out of memory");
}

static bool note(struct core_subject *subject, const struct waste_sums *sums, struct error *error) {
    const struct waste_row *all = &sums->all;
    struct cairn_waste *waste = &subject->waste;
    *waste = (struct cairn_waste){.held_bytes = (uint64_t)waste_value(all, FIGURE_HELD),
                                  .held_blocks = (uint64_t)waste_value(all, FIGURE_BLOCKS),
                                  .untouched_bytes = (uint64_t)waste_value(all, WASTE_UNTOUCHED),
                                  .zero_bytes = (uint64_t)waste_value(all, WASTE_ZERO),
                                  .duplicate_bytes = (uint64_t)waste_value(all, WASTE_DUPLICATE),
                                  .tail_bytes = (uint64_t)waste_value(all, WASTE_TAIL),
                                  .slack_bytes = (uint64_t)waste_value(all, WASTE_SLACK),
                                  .sparse_bytes = (uint64_t)waste_value(all, FIGURE_SPARSE),
                                  .copies = sums->copies.count,
                                  .contents = sums->copies.contents,
                                  .string_bytes = (uint64_t)waste_value(all, FIGURE_STRINGS),
                                  .string_copies = sums->strings.count,
                                  .strings = sums->strings.contents};
    subject->has_waste = true;
    return write_most(sums, most_of(sums, false), waste->most, error) &&
           write_most(sums, most_of(sums, true), waste->most_strings, error);
}

bool waste_note(struct core_subject *subject, struct error *error) {
    struct waste_sums sums;
    if (!core_need_typed(subject, error)) return false;
    if (core_heap_of(subject)->chunks.count > NOTED_BLOCKS_MAX) return true;
    bool is_ok = waste_sums_make(subject, &sums, error) && note(subject, &sums, error);
    waste_sums_free(&sums);
    return is_ok;
}
