// SPDX-License-Identifier: Apache-2.0
#include "tool/render/stack_area.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/snapshots.h"
#include "tool/render/interval.h"

enum {
    STACKS_MAX = 10,
    AREA_ROWS = 10,
    SNAPSHOTS_MAX = 128,
    SNAPSHOTS_MIN = 2,
    LEGEND_COLUMNS = 24,  // in front of a name
    LABEL_COLUMNS = 48,
};
static const char letters[] = "abcdefghij";

// Bytes that each of the chosen stacks held in a column, and all others together.
struct area {
    const struct area_frame *frame;
    uint32_t stacks[STACKS_MAX];  // indexes into the profile's stacks
    int64_t most_of[STACKS_MAX];  // bytes, at any moment
    size_t count;
    int64_t (*values)[STACKS_MAX + 1];  // by snapshot; the last are the others
    uint64_t *times;
    size_t snapshot_count;  // the peak among them
    bool has_peak;
    int64_t most_bytes;
};

// Keeps the highest value of each stack in `highest`, by number.
static bool note_highest(const struct snapshots *snapshots, size_t index, int64_t *highest) {
    struct live_at *held = snapshots_live(snapshots, index);
    size_t count = snapshots->profile->built_stack_count;
    for (size_t i = 0; held && i < count; i++)
        if (held[i].bytes > highest[i]) highest[i] = held[i].bytes;
    free(held);
    return held != NULL;
}

// The stacks that held most at any moment, the first of them at the bottom.
static void choose(struct area *area, const struct profile *profile, const int64_t *highest) {
    for (uint32_t i = 0; i < profile->stack_count; i++) {
        int64_t value = highest[profile->stacks[i].number];
        size_t place = area->count;
        while (place && area->most_of[place - 1] < value) place--;
        if (value <= 0 || place == STACKS_MAX) continue;
        if (area->count < STACKS_MAX) area->count++;
        for (size_t j = area->count - 1; j > place; j--) {
            area->stacks[j] = area->stacks[j - 1];
            area->most_of[j] = area->most_of[j - 1];
        }
        area->stacks[place] = i;
        area->most_of[place] = value;
    }
}

// What a stack held at the peak, or at the snapshot that `held` is of.
static int64_t bytes_of(const struct stack *stack, const struct live_at *held) {
    int64_t bytes = held ? held[stack->number].bytes : stack->peak_bytes;
    return bytes > 0 ? bytes : 0;
}

// Adds a moment behind the others: the peak, if `held` is NULL.
static void add_moment(struct area *area, const struct profile *profile, const struct live_at *held,
                       uint64_t at_ns) {
    int64_t *values = area->values[area->snapshot_count], sum = 0, chosen = 0;
    for (size_t i = 0; i < profile->stack_count; i++) sum += bytes_of(&profile->stacks[i], held);
    for (size_t i = 0; i < area->count; i++) {
        values[i] = bytes_of(&profile->stacks[area->stacks[i]], held);
        chosen += values[i];
    }
    values[STACKS_MAX] = sum - chosen;
    if (sum > area->most_bytes) area->most_bytes = sum;
    area->times[area->snapshot_count++] = at_ns;
    area->has_peak |= !held;
}

static bool add_snapshot(struct area *area, const struct snapshots *snapshots, size_t index) {
    struct live_at *held = snapshots_live(snapshots, index);
    if (held) add_moment(area, snapshots->profile, held, snapshots->list[index].at_ns);
    free(held);
    return held != NULL;
}

static bool add_moments(struct area *area, const struct snapshots *snapshots, size_t step) {
    const struct profile *profile = snapshots->profile;
    const uint64_t peak_ns = profile->peak.at_ns;
    bool is_ok = true, lacks_peak = !snapshots->is_of_heaps && peak_ns;
    for (size_t i = 0; is_ok && i < snapshots->count; i += step) {
        if (!snapshots->list[i].has_values) continue;
        bool is_later = snapshots->list[i].at_ns > peak_ns;
        if (lacks_peak && is_later) add_moment(area, profile, NULL, peak_ns);
        lacks_peak = lacks_peak && !is_later;
        is_ok = add_snapshot(area, snapshots, i);
    }
    if (is_ok && lacks_peak && area->snapshot_count) add_moment(area, profile, NULL, peak_ns);
    return is_ok;
}

static bool area_fill(struct area *area, const struct snapshots *snapshots) {
    const struct profile *profile = snapshots->profile;
    size_t step = snapshots->count / SNAPSHOTS_MAX + 1;
    int64_t *highest = calloc(profile->built_stack_count + 1, sizeof *highest);
    area->values = calloc(snapshots->count + 2, sizeof *area->values);
    area->times = calloc(snapshots->count + 2, sizeof *area->times);
    bool is_ok = highest && area->values && area->times;
    for (size_t i = 0; is_ok && !snapshots->is_of_heaps && i < profile->stack_count; i++)
        highest[profile->stacks[i].number] = bytes_of(&profile->stacks[i], NULL);
    for (size_t i = 0; is_ok && i < snapshots->count; i += step)
        if (snapshots->list[i].has_values) is_ok = note_highest(snapshots, i, highest);
    if (is_ok) choose(area, profile, highest);
    is_ok = is_ok && add_moments(area, snapshots, step);
    free(highest);
    return is_ok;
}

// The snapshot that a column shows: the last one that is not after its end. It is drawn on until
// the next one, where the whole heap still holds as much.
static const int64_t *values_at(const struct area *area, size_t column) {
    uint64_t until = (uint64_t)((double)area->frame->end_ns * (double)(column + 1) /
                                (double)area->frame->columns);
    size_t shown = 0;
    for (size_t i = 0; i < area->snapshot_count && area->times[i] <= until; i++) shown = i + 1;
    return shown ? area->values[shown - 1] : NULL;
}

static const double steady_part = 0.9;  // of the heap: a change by less may be noted late

static double sum_of(const struct area *area, const int64_t *values) {
    double sum = (double)values[STACKS_MAX];
    for (size_t i = 0; i < area->count; i++) sum += (double)values[i];
    return sum;
}

// Since the snapshot that a column shows the whole heap has fallen below it.
static bool has_fallen_since(const struct area *area, const int64_t *values, size_t column) {
    return (double)area->frame->high_bytes[column] < steady_part * sum_of(area, values);
}

static char unknown_at(const struct area *area, size_t column, double height) {
    return height < (double)area->frame->high_bytes[column] ? '?' : ' ';
}

// The letter at a height, in bytes, of a column. It is not known who holds the part by which the
// whole heap has risen since the snapshot.
static char letter_at(const struct area *area, const int64_t *values, size_t column,
                      double height) {
    const double sum = sum_of(area, values), low = (double)area->frame->low_bytes[column];
    double top = 0;
    for (size_t i = 0; i < area->count; i++) {
        top += (double)values[i];
        if (height < top) return letters[i];
    }
    if (height < sum) return '.';
    return steady_part * low > sum && height < low ? '?' : ' ';
}

static void print_area(const struct terminal *terminal, const struct area *area,
                       const struct view_options *view) {
    const struct area_frame *frame = area->frame;
    for (int row = AREA_ROWS - 1; row >= 0; row--) {
        double height = ((double)row + 0.5) * (double)area->most_bytes / AREA_ROWS;
        const char *label = "";
        struct unit_text text = units_size_as(area->most_bytes, view->is_plain_number);
        if (row == AREA_ROWS - 1) label = text.text;
        terminal_print(terminal, STYLE_DIM, "%*s \xe2\x94\x82", frame->axis_columns - 2, label);
        for (size_t column = 0; column < frame->columns; column++) {
            const int64_t *values = values_at(area, column);
            bool is_known = values && !has_fallen_since(area, values, column);
            char letter = is_known ? letter_at(area, values, column, height) : ' ';
            if (values && !is_known) letter = unknown_at(area, column, height);
            bool is_dim = letter == '.' || letter == '?';
            terminal_print(terminal, is_dim ? STYLE_DIM : STYLE_NAME, "%c", letter);
        }
        fputc('\n', terminal->out);
    }
}

// Says of samples how sure a stack's highest value is, is known at the peak of all: of its own it
// is that by the root, as of what is live in all (docs/explain/sampling.md).
static struct measured measured_then(const struct profile *profile, const struct stack *stack,
                                     int64_t bytes) {
    struct measured peak = measure_stack(MEASURE_PEAK, stack);
    const struct measured exact = {.value = bytes};
    if (!profile->sampling.is_on || bytes <= 0) return exact;
    if (peak.value <= 0) peak = measure_stack(MEASURE_ALLOCATED, stack);
    if (peak.value <= 0) return exact;
    peak.estimate.bytes_variance *= (double)bytes / (double)peak.value;
    peak.value = bytes;
    return peak;
}

static bool print_legend(const struct terminal *terminal, const struct area *area,
                         const struct profile *profile, const struct frame_names *names,
                         const struct view_options *view) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    bool is_ok = true;
    for (size_t i = 0; i < area->count && is_ok; i++) {
        const struct stack *stack = &profile->stacks[area->stacks[i]];
        char label[FRAME_TEXT_BYTES] = STACK_NOT_RECORDED, location[FRAME_TEXT_BYTES] = "";
        size_t index = 0;
        is_ok = frame_list_fill(&frames, profile, names, stack->node, 0);
        const struct frame *frame = is_ok ? frame_list_next(&frames, &index) : NULL;
        if (frame) frame_label(frame, label, sizeof label, LABEL_COLUMNS);
        if (frame) frame_location(frame, location, sizeof location);
        terminal_print(terminal, STYLE_NAME, "  %c", letters[i]);
        const struct measured most = measured_then(profile, stack, area->most_of[i]);
        struct unit_text size = units_size_as(measured_shown(most), view->is_plain_number);
        size_t room = terminal->columns - LEGEND_COLUMNS;
        text_cut(label, room);
        struct unit_text sure = interval_amount(most, true, view->is_plain_number);
        fprintf(terminal->out, " %10s%s at most  %s", size.text, sure.text, label);
        size_t used = text_columns(label) + text_columns(sure.text) + 2;
        if (*location && used + 4 < room) {
            text_cut(location, room - used);
            terminal_print(terminal, STYLE_DIM, "  %s", location);
        }
        fputc('\n', terminal->out);
    }
    frame_list_free(&frames);
    return is_ok;
}

bool stack_area_print(const struct terminal *terminal, const struct profile *profile,
                      const struct frame_names *names, const struct view_options *view,
                      const struct area_frame *frame, struct error *error) {
    struct snapshots snapshots;
    struct area area = {.frame = frame};
    if (!snapshots_build(&snapshots, profile, error)) return false;
    bool is_ok = snapshots.count < SNAPSHOTS_MIN || area_fill(&area, &snapshots);
    if (is_ok && area.snapshot_count >= SNAPSHOTS_MIN && area.most_bytes > 0) {
        terminal_print(terminal, STYLE_STRONG, "\nthe largest stacks over time");
        terminal_print(terminal, STYLE_DIM, ": %zu snapshots%s; '.' others, '?' not known\n",
                       area.snapshot_count - area.has_peak, area.has_peak ? ", the peak" : "");
        print_area(terminal, &area, view);
        is_ok = print_legend(terminal, &area, profile, names, view);
    }
    free(area.values);
    free(area.times);
    snapshots_free(&snapshots);
    return is_ok || error_set(error, "no memory for stacks over time");
}
