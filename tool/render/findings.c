// SPDX-License-Identifier: Apache-2.0
#include "tool/render/findings.h"

#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/growth.h"
#include "tool/model/heap_state.h"
#include "tool/model/shape.h"
#include "tool/render/interval.h"
#include "tool/render/terminal.h"

// What is worth a line.
static const double growth_fit = 0.9, growth_share = 0.05, temporary_share = 0.25,
                    short_share = 0.5;
static const double flow_share = 0.5;
enum {
    GROWTH_SNAPSHOTS = 12,  // are enough for a line, and quick
    GROWTH_MIN_SNAPSHOTS = 4,
    GROWTH_MIN_BYTES = 256 * 1024,
    REALLOC_MIN_TIMES = 8,
    REALLOC_MIN_BYTES = 256 * 1024,
    REALLOC_LARGE_BYTES = 8 * 1024,
    REALLOC_MANY_TIMES = 200,  // even if it never had to be copied
    TEMPORARY_MIN_BLOCKS = 10000,
    WATCHED_MIN_BLOCKS = 20,
    FLOW_MIN_BYTES = 256 * 1024,
    TEXT_BYTES = 1024,
    LABEL_COLUMNS = 40,
    INDENT = 4,
};

static struct finding *add(struct findings *findings, enum finding_kind kind) {
    struct finding *finding = &findings->list[findings->count++];
    *finding = (struct finding){.kind = kind};
    return finding;
}

static bool find_growth(struct findings *findings, const struct profile *profile,
                        struct error *error) {
    struct snapshots snapshots;
    struct growth growth = {0};
    if (!snapshots_build(&snapshots, profile, error)) return false;
    bool is_ok =
        snapshots.count < GROWTH_MIN_SNAPSHOTS - 1 ||
        growth_build(&growth, &snapshots, growth_first(&snapshots), GROWTH_SNAPSHOTS, error);
    for (size_t i = 0; is_ok && i < growth.count; i++) {
        const struct growth_stack *stack = &growth.list[i];
        int64_t rise = stack->last_bytes - stack->first_bytes;
        bool is_steady = stack->fit >= growth_fit && growth.point_count >= GROWTH_MIN_SNAPSHOTS;
        if (!is_steady || rise < GROWTH_MIN_BYTES ||
            (double)rise < growth_share * (double)profile->peak.bytes)
            continue;
        struct finding *finding = add(findings, FINDING_GROWTH);
        finding->stack = &profile->stacks[stack->stack];
        finding->fit = stack->fit;
        finding->bytes_per_s = stack->bytes_per_s;
        finding->is_freed = stack->freed_bytes != 0;
        break;
    }
    growth_free(&growth);
    snapshots_free(&snapshots);
    return is_ok;
}

// Buffers begin with blocks that no realloc made; where another stack made them, each growth is
// counted for one buffer.
static void note_grown_often(const struct shape *shape, const struct stack *stack,
                             struct finding *finding) {
    struct shape_reallocs reallocs;
    shape_reallocs(shape, stack->number, &reallocs);
    uint64_t begun = stack->allocations > reallocs.calls ? stack->allocations - reallocs.calls : 0;
    uint64_t times = reallocs.grown / (begun ? begun : 1);
    bool is_costly = reallocs.copied_bytes >= REALLOC_MIN_BYTES || times >= REALLOC_MANY_TIMES;
    bool is_more = reallocs.copied_bytes > finding->bytes || !finding->stack;
    // small blocks of another stack are more likely many than one that is grown all the time
    bool is_one = begun || stack->allocated_bytes / REALLOC_LARGE_BYTES >= stack->allocations;
    if (times < REALLOC_MIN_TIMES || !is_costly || !is_more || !is_one) return;
    *finding = (struct finding){.kind = FINDING_REALLOC,
                                .stack = stack,
                                .count = begun ? times : reallocs.grown,
                                .of_count = begun,
                                .bytes = reallocs.copied_bytes};
}

static bool find_realloc(struct findings *findings, const struct profile *profile,
                         struct error *error) {
    struct shape shape;
    struct finding best = {0};
    if (!recording_count(profile->recording, CAIRN_SECTION_REALLOCS)) return true;
    if (!shape_build(&shape, profile, error)) return false;
    for (size_t i = 0; i < profile->stack_count; i++)
        note_grown_often(&shape, &profile->stacks[i], &best);
    if (best.stack) *add(findings, FINDING_REALLOC) = best;
    shape_free(&shape);
    return true;
}

static const struct stack *stack_with_most(const struct profile *profile, enum measure measure) {
    const struct stack *most = NULL;
    int64_t highest = INT64_MIN;
    for (size_t i = 0; i < profile->stack_count; i++) {
        int64_t value = measure_stack(measure, &profile->stacks[i]).value;
        if (value <= highest) continue;
        highest = value;
        most = &profile->stacks[i];
    }
    return most;
}

// What is freed at once is short-lived as well.
static void find_temporary(struct findings *findings, const struct profile *profile) {
    bool is_short = profile->totals.watched.blocks >= WATCHED_MIN_BLOCKS;
    enum measure measure = is_short ? MEASURE_SHORT : MEASURE_TEMPORARY;
    int64_t blocks = measure_total(measure, profile).value;
    double share = is_short ? short_share : temporary_share;
    uint64_t calls = profile->totals.allocations;
    if (blocks < TEMPORARY_MIN_BLOCKS || (double)blocks < share * (double)calls) return;
    struct finding *finding = add(findings, FINDING_TEMPORARY);
    finding->stack = stack_with_most(profile, measure);
    finding->count = (uint64_t)blocks;
    finding->of_count = calls;
    finding->is_estimate = is_short;
}

// Blocks whose age is not known, those that are left among them, lived long.
static bool find_ages(struct findings *findings, const struct profile *profile,
                      struct error *error) {
    struct shape shape;
    struct finding found = {.kind = FINDING_AGES, .of_count = profile->totals.allocations};
    uint64_t most = 0;
    bool has_ages = recording_count(profile->recording, CAIRN_SECTION_AGES) > 0;
    if (!has_ages || profile->sampling.is_on) return true;
    if (!shape_build(&shape, profile, error)) return false;
    for (size_t i = 0; i < profile->stack_count; i++) {
        struct shape_ages ages;
        if (!shape_ages(&shape, profile->stacks[i].number, &ages)) continue;
        found.count += ages.ms[0];
        if (found.stack && ages.ms[0] <= most) continue;
        most = ages.ms[0];
        found.stack = &profile->stacks[i];
    }
    shape_free(&shape);
    if (found.count >= TEMPORARY_MIN_BLOCKS &&
        (double)found.count >= temporary_share * (double)found.of_count)
        *add(findings, FINDING_AGES) = found;
    return true;
}

static void find_flow(struct findings *findings, const struct profile *profile) {
    struct freed_by_flow flow;
    if (!profile->recording->header.totals.is_threaded || !freed_by_largest(profile, &flow)) return;
    if (flow.bytes < FLOW_MIN_BYTES || (double)flow.bytes < flow_share * (double)flow.of_bytes)
        return;
    add(findings, FINDING_FREED_BY)->flow = flow;
}

static void find_free(struct findings *findings, const struct profile *profile) {
    struct held_free held;
    if (!held_free_find(profile->recording, &held)) return;
    struct finding *finding = add(findings, FINDING_FREE);
    finding->bytes = held.free_bytes;
    finding->of_bytes = held.rss_bytes;
    finding->live_bytes = held.live_bytes;
    finding->at_ns = held.at_ns;
}

bool findings_find(struct findings *findings, const struct profile *profile, struct error *error) {
    *findings = (struct findings){0};
    if (!find_growth(findings, profile, error) || !find_realloc(findings, profile, error))
        return false;
    find_free(findings, profile);
    find_temporary(findings, profile);
    find_flow(findings, profile);
    return find_ages(findings, profile, error);
}

static void say(const struct finding *finding, const char *label, bool is_plain, char *out,
                size_t size) {
    char rate[64];
    rate_text(finding->bytes_per_s, rate, sizeof rate);
    switch (finding->kind) {
    case FINDING_GROWTH:
        snprintf(out, size, "%s grows by %s, steadily (fit %.2f)%s: --view growth", label, rate,
                 finding->fit, finding->is_freed ? ", freed at shutdown" : "");
        return;
    case FINDING_REALLOC:
        snprintf(out, size, "%s grows %s %s: reserve (%s copied)", label,
                 finding->of_count > 1 ? "each of its buffers" : "its buffer",
                 units_counted((int64_t)finding->count, "time", "times").text,
                 units_size_as((int64_t)finding->bytes, is_plain).text);
        return;
    case FINDING_TEMPORARY:
        snprintf(out, size, "%s%s of all blocks are %s, most of %s: --view temporary",
                 finding->is_estimate ? "about " : "",
                 units_percent((int64_t)finding->count, (int64_t)finding->of_count).text,
                 finding->is_estimate ? "short-lived" : "freed at once", label);
        return;
    case FINDING_AGES:
        snprintf(out, size, "%s of all blocks live under 1 ms, most of %s: --view ages",
                 units_percent((int64_t)finding->count, (int64_t)finding->of_count).text, label);
        return;
    case FINDING_FREE:
        snprintf(out, size, "%s of %s resident are free in the heap, %s live, at %s: --view memory",
                 units_size_as((int64_t)finding->bytes, is_plain).text,
                 units_size_as((int64_t)finding->of_bytes, is_plain).text,
                 units_size_as((int64_t)finding->live_bytes, is_plain).text,
                 units_duration(finding->at_ns).text);
        return;
    case FINDING_FREED_BY:
    case FINDING_KINDS:
        break;
    }
    const struct freed_by_flow *flow = &finding->flow;
    int64_t interval = measured_interval(flow->freed);
    char sure[LABEL_COLUMNS * 2] = "";
    if (interval)
        snprintf(sure, sizeof sure, " \xc2\xb1 %s%s",
                 units_percent(interval, (int64_t)flow->of_bytes).text,
                 interval_samples(flow->freed).text);
    snprintf(out, size, "%s%s of what %s allocates is freed by %s: --view threads",
             units_percent((int64_t)flow->bytes, (int64_t)flow->of_bytes).text, sure, flow->from,
             flow->to);
}

// The first frame of the program's own, else the first that is not internal frames; with its line.
static bool find_label(const struct profile *profile, const struct frame_names *names,
                       const struct stack *stack, const struct view_options *view, char *label) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    snprintf(label, FRAME_TEXT_BYTES, "[stack not recorded]");
    if (!stack) return true;
    bool is_ok = frame_list_fill(&frames, profile, names, stack->node, 0);
    const struct frame *frame = is_ok ? frame_list_first_own(&frames) : NULL;
    if (frame) {
        char location[FRAME_TEXT_BYTES];
        frame_label(frame, label, FRAME_TEXT_BYTES, LABEL_COLUMNS);
        frame_location(frame, location, sizeof location);
        size_t used = strlen(label);
        if (frame->file) snprintf(label + used, FRAME_TEXT_BYTES - used, " %s", location);
    }
    frame_list_free(&frames);
    return is_ok;
}

static const struct {
    const char *name, *view;
} kinds[FINDING_KINDS] = {
    [FINDING_GROWTH] = {"growth", "growth"},
    [FINDING_REALLOC] = {"realloc", "temporary"},
    [FINDING_TEMPORARY] = {"temporary", "temporary"},
    [FINDING_FREED_BY] = {"freed_by", "threads"},
    [FINDING_AGES] = {"ages", "ages"},
    [FINDING_FREE] = {"free", "memory"},
};

const char *finding_name(enum finding_kind kind) {
    return kinds[kind].name;
}

const char *findings_view(const struct findings *findings) {
    return findings->count ? kinds[findings->list[0].kind].view : NULL;
}

// Words behind each other, on further lines with a deeper indent where they do not fit.
static void print_wrapped(const struct terminal *terminal, char *text) {
    size_t used = INDENT;
    char *rest = NULL;
    terminal_indent(terminal, INDENT);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        size_t columns = text_columns(word);
        bool is_first = used == INDENT;
        if (!is_first && used + 1 + columns > terminal->columns) {
            fputc('\n', terminal->out);
            terminal_indent(terminal, INDENT + 2);
            used = INDENT + 2;
            is_first = true;
        }
        fprintf(terminal->out, "%s%s", is_first ? "" : " ", word);
        used += columns + !is_first;
    }
    fputc('\n', terminal->out);
}

bool findings_print(const struct findings *findings, const struct terminal *terminal,
                    const struct profile *profile, const struct frame_names *names,
                    const struct view_options *view, struct error *error) {
    if (!findings->count) return true;
    terminal_print(terminal, STYLE_DIM, "  findings\n");
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        char label[FRAME_TEXT_BYTES], text[TEXT_BYTES];
        if (!find_label(profile, names, finding->stack, view, label))
            return error_set(error, "no memory for a stack");
        say(finding, label, view->is_plain_number, text, sizeof text);
        print_wrapped(terminal, text);
    }
    return true;
}
