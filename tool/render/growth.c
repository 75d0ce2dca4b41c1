// SPDX-License-Identifier: Apache-2.0
#include "tool/render/growth.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/snapshots.h"
#include "tool/render/alike.h"
#include "tool/render/claims_find.h"
#include "tool/render/stack_answers.h"
#include "tool/render/terminal.h"

enum {
    INDENT = 10,
    SPARK_COLUMNS = 24,
    GENERATIONS_SHOWN = 6,
    LABEL_TEXT_BYTES = 4 * CAIRN_LABEL_BYTES,
};

// The mark that began a generation.
static const struct snapshot *mark_of(const struct snapshots *snapshots, uint32_t generation) {
    for (size_t i = 0; i < snapshots->count; i++) {
        const struct snapshot *snapshot = &snapshots->list[i];
        if (snapshot->reason == CAIRN_SNAPSHOT_MARK && snapshot->generation == generation)
            return snapshot;
    }
    return NULL;
}

static void generation_name(const struct snapshots *snapshots, uint32_t generation, char *out,
                            size_t size) {
    const struct snapshot *mark = generation ? mark_of(snapshots, generation) : NULL;
    if (!generation)
        snprintf(out, size, "before the first mark");
    else if (mark && *mark->label)
        text_escape(out, size, mark->label);
    else if (mark)
        snprintf(out, size, "%s", units_duration(mark->at_ns).text);
    else
        snprintf(out, size, "mark %u", generation);
}

// "survivors: 3.4 MiB since warm, 1.2 MiB before the first mark".
static void print_survivors(const struct terminal *terminal, const struct snapshots *snapshots,
                            uint32_t stack_number, const struct view_options *view) {
    uint32_t last = snapshots_last_generation(snapshots), shown = 0, left = 0;
    struct live_at *survivors = last ? calloc(last + 1, sizeof *survivors) : NULL;
    char line[1024] = "survivors: ";
    if (!survivors) return;
    snapshots_survivors(snapshots, stack_number, survivors);
    for (uint32_t i = last + 1; i-- > 0;) {
        char name[LABEL_TEXT_BYTES];
        size_t used = strlen(line);
        if (survivors[i].bytes <= 0) continue;
        left += shown == GENERATIONS_SHOWN;
        if (shown == GENERATIONS_SHOWN) continue;
        generation_name(snapshots, i, name, sizeof name);
        snprintf(line + used, sizeof line - used, "%s%s %s%s", shown++ ? ", " : "",
                 units_size_as(survivors[i].bytes, view->is_plain_number).text, i ? "since " : "",
                 name);
    }
    free(survivors);
    if (!shown) return;
    if (left) snprintf(line + strlen(line), sizeof line - strlen(line), ", %u more", left);
    text_cut(line, terminal->columns - INDENT);
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%s\n", line);
}

static void print_spark(const struct terminal *terminal, const int64_t *curve) {
    enum { EACH = GROWTH_CELLS / SPARK_COLUMNS };
    int64_t columns[SPARK_COLUMNS];
    for (size_t i = 0; i < SPARK_COLUMNS; i++) columns[i] = curve[i * EACH + EACH - 1];
    spark_print(terminal, columns, SPARK_COLUMNS);
}

// "+1.2 MiB/min  fit 0.99", or "grew 0.10-2.00 s, flat since".
static void print_how(const struct terminal *terminal, const struct growth_stack *stack) {
    char rate[64], span[GROWTH_SPAN_BYTES];
    rate_text(stack->bytes_per_s, rate, sizeof rate);
    growth_span_text(stack, span);
    if (stack->has_stalled)
        fprintf(terminal->out, "%s  ", span);
    else
        terminal_print(terminal, STYLE_STRONG, "+%s", rate);
    if (!stack->has_stalled) fprintf(terminal->out, "  fit %.2f  ", stack->fit);
}

void growth_span_text(const struct growth_stack *stack, char span[GROWTH_SPAN_BYTES]) {
    snprintf(span, GROWTH_SPAN_BYTES, "grew %s to %s, flat since",
             units_duration(stack->from_ns).text, units_duration(stack->until_ns).text);
}

static void print_figures(const struct terminal *terminal, const struct growth_stack *stack,
                          const int64_t *curve, const struct view_options *view) {
    char interval[64] = "", freed[64] = "";
    if (stack->interval_bytes)
        snprintf(interval, sizeof interval, "\xc2\xb1 %s  ",
                 units_size_as(stack->interval_bytes, view->is_plain_number).text);
    if (stack->freed_bytes && stack->freed_bytes < stack->last_bytes)
        snprintf(freed, sizeof freed, "%s of it ",
                 units_size_as(stack->freed_bytes, view->is_plain_number).text);
    print_how(terminal, stack);
    fprintf(terminal->out, "%s \xe2\x86\x92 %s  %s",
            units_size_as(stack->first_bytes, view->is_plain_number).text,
            units_size_as(stack->last_bytes, view->is_plain_number).text, interval);
    print_spark(terminal, curve);
    fputc('\n', terminal->out);
    if (!stack->freed_bytes) return;
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%sfreed at shutdown\n", freed);
}

// As a claim; false: some stacks grow.
static bool claim_none(const struct growth *growth, const struct snapshots *snapshots,
                       struct claim *claim) {
    struct finding_growth facts = {.is_known = growth->is_known,
                                   .moment_count = growth->moment_count,
                                   .growing_count = growth->count - growth->stalled_count,
                                   .stalled_count = growth->stalled_count,
                                   .late_count = growth->late_count,
                                   .rise_least = growth->rise_least,
                                   .is_sampled = snapshots->profile->sampling.is_on,
                                   .start_ns = growth->start_ns,
                                   .end_ns = growth->end_ns};
    if (growth->first < snapshots->count)
        snprintf(facts.label, sizeof facts.label, "%s", snapshots->list[growth->first].label);
    return claim_of_growth(claim, &facts);
}

// Leaves out what rose by less than is worth a line.
static void drop_small(struct growth *growth, int64_t least) {
    size_t kept = 0, stalled = 0;
    for (size_t i = 0; i < growth->count; i++) {
        const struct growth_stack *stack = &growth->list[i];
        if (growth_rise(stack->first_bytes, stack->last_bytes) < least) continue;
        stalled += stack->has_stalled;
        growth->list[kept++] = *stack;
    }
    growth->count = kept;
    growth->stalled_count = stalled;
    if (growth->rise_least < least) growth->rise_least = least;
}

enum growth_column {
    GROWTH_RATE,
    GROWTH_FIT,
    GROWTH_FIRST,
    GROWTH_LAST,
    GROWTH_INTERVAL,
    GROWTH_STALLED,
    GROWTH_FREED,
    GROWTH_ID,
    GROWTH_OTHER_IDS,
    GROWTH_FROM,
    GROWTH_UNTIL,
    GROWTH_COLUMNS
};

static const struct answer_column growth_columns[GROWTH_COLUMNS] = {
    [GROWTH_RATE] = ANSWER_FIGURES("bytes_per_s", "rises by", ANSWER_RATE, SPARK_COLUMNS),
    [GROWTH_FIT] = ANSWER_FIGURES("fit", "fit", ANSWER_REAL, INDENT),
    [GROWTH_FIRST] = ANSWER_FIGURES("first_bytes", "first", ANSWER_BYTES, INDENT),
    [GROWTH_LAST] = ANSWER_FIGURES("last_bytes", "last", ANSWER_BYTES, INDENT),
    [GROWTH_INTERVAL] = ANSWER_DATA("rise_interval_bytes", ANSWER_BYTES),
    [GROWTH_STALLED] = ANSWER_FIGURES("has_stalled", "stalled", ANSWER_BOOL, INDENT),
    [GROWTH_FREED] = ANSWER_DATA("freed_at_shutdown_bytes", ANSWER_BYTES),
    [GROWTH_ID] = ANSWER_DATA("id", ANSWER_TEXT),
    [GROWTH_FROM] = ANSWER_DATA("from_ns", ANSWER_TIME),
    [GROWTH_UNTIL] = ANSWER_DATA("until_ns", ANSWER_TIME)};

struct growth_list {
    struct snapshots snapshots;
    struct growth growth;
    const struct frame_names *names;
    struct frame_list frames;
    int64_t *curves;  // made when the first one is shown
    size_t at;
    char id[2 * sizeof(uint64_t) + 1], *other_ids;
    struct answer_column columns[GROWTH_COLUMNS];
};

static bool next_growing(struct answer *answer, struct answer_row *row) {
    struct growth_list *list = answer->state;
    if (list->at == answer->shown) return false;
    const struct growth_stack *how = &list->growth.list[list->at++];
    const struct stack *stack = &answer->profile->stacks[how->stack];
    list->frames.are_all_shown = !answer->is_screen || answer->options->has_all_frames;
    answer->is_failed =
        !frame_list_fill(&list->frames, answer->profile, list->names, stack->node, 0);
    snprintf(list->id, sizeof list->id, "%016" PRIx64, stack->id);
    answer_set_real(row, GROWTH_RATE, how->bytes_per_s);
    answer_set_real(row, GROWTH_FIT, how->fit);
    answer_set(row, GROWTH_FIRST, how->first_bytes);
    answer_set(row, GROWTH_LAST, how->last_bytes);
    answer_set(row, GROWTH_INTERVAL, how->interval_bytes);
    answer_set(row, GROWTH_STALLED, how->has_stalled);
    answer_set(row, GROWTH_FREED, how->freed_bytes);
    answer_set_text(row, GROWTH_ID, list->id);
    free(list->other_ids);
    list->other_ids = alike_other_ids(answer->profile, stack);
    if (list->other_ids) answer_set_text(row, GROWTH_OTHER_IDS, list->other_ids);
    if (how->has_stalled) answer_set(row, GROWTH_FROM, (int64_t)how->from_ns);
    if (how->has_stalled) answer_set(row, GROWTH_UNTIL, (int64_t)how->until_ns);
    row->frames = &list->frames;
    row->cut = stack->cut;
    row->incomplete = stack->cut ? cut_key(stack->cut) : NULL;
    return !answer->is_failed;
}

static void close_growing(void *state) {
    struct growth_list *list = state;
    frame_list_free(&list->frames);
    free(list->curves);
    free(list->other_ids);
    growth_free(&list->growth);
    snapshots_free(&list->snapshots);
    free(list);
}

static void say_growing(const struct terminal *terminal, struct answer *answer,
                        enum answer_say where) {
    struct growth_list *list = answer->state;
    const size_t at = list->at - 1;
    const struct growth_stack *how = &list->growth.list[at];
    if (where != ANSWER_SAY_FIGURES) return;
    if (!list->curves) list->curves = growth_curves(&list->growth, &list->snapshots, answer->shown);
    answer->is_failed |= !list->curves;
    if (answer->is_failed) return;
    print_figures(terminal, how, list->curves + at * GROWTH_CELLS, answer->options);
    print_survivors(terminal, &list->snapshots, answer->profile->stacks[how->stack].number,
                    answer->options);
}

// Titles the list: how many grow and over which time; or that none does, or that it is not known.
static void say_title(struct answer *answer, const struct growth_list *list) {
    static const char unknown[] = "growth is not known";
    const struct growth *growth = &list->growth;
    const struct snapshots *snapshots = &list->snapshots;
    const size_t growing = growth->count - growth->stalled_count, room = sizeof answer->title_rest;
    char sentence[CLAIM_SENTENCE_BYTES] = "", label[LABEL_TEXT_BYTES] = "", before[64] = "";
    struct claim claim;
    if (claim_none(growth, snapshots, &claim)) claim_sentence(&claim, false, sentence);
    if (!growth->is_known) {
        snprintf(answer->title, sizeof answer->title, "%s", unknown);
        snprintf(answer->title_rest, room, "%.*s.", (int)room - 2, sentence + strlen(unknown));
        answer_note_above(
            answer, STYLE_DIM,
            "cairn keeps one each time that much was allocated and freed, and when asked:");
        answer_note_above(answer, STYLE_DIM,
                          "cairn run --mark-every 10s, or cairn ctl PID snapshot while it runs");
        return;
    }
    if (*sentence) {
        snprintf(answer->title, sizeof answer->title, "%.*s", (int)sizeof answer->title - 1,
                 sentence);
    } else {
        if (growth->first < snapshots->count)
            text_escape(label, sizeof label, snapshots->list[growth->first].label);
        if (growth->stalled_count)
            snprintf(before, sizeof before, ", %s grew before",
                     units_count((int64_t)growth->stalled_count).text);
        snprintf(answer->title, sizeof answer->title, "%s %s", units_count((int64_t)growing).text,
                 growing == 1 ? "stack grows" : "stacks grow");
        snprintf(answer->title_rest, room, "%s over %zu snapshots from %s%s%s%s to %s", before,
                 growth->moment_count, units_duration(growth->start_ns).text, *label ? " (" : "",
                 label, *label ? ")" : "", units_duration(growth->end_ns).text);
    }
    answer_note_above(answer, STYLE_DIM,
                      "fit: 1 is a straight line up, as of a leak; a cache that fills up is less");
    if (answer_is_sampled(answer))
        answer_note_above(answer, STYLE_DIM,
                          "samples: \xc2\xb1 is of the rise; smaller rises than that are left out");
}

static void say_bare_samples(struct answer *answer) {
    snprintf(answer->title, sizeof answer->title, "growth is not known");
    snprintf(answer->title_rest, sizeof answer->title_rest,
             ": what this recording's samples say is of the peak and the end alone.");
    answer_note_above(answer, STYLE_DIM,
                      "an older cairn recorded it, or sampling began for --max-overhead");
}

bool growth_answer(struct answer *answer, const struct profile *profile,
                   const struct frame_names *names, const struct view_options *view,
                   struct error *error) {
    if (profile_is_sum(profile))
        return error_set(error, "growth is known of each process alone: -p PID or NAME");
    struct growth_list *list = calloc(1, sizeof *list);
    if (!list) return error_set(error, "no memory for the list of stacks");
    list->names = names;
    struct snapshots *snapshots = &list->snapshots;
    if (!snapshots_build(snapshots, profile, error) ||
        !growth_build(&list->growth, snapshots, growth_first(snapshots), GROWTH_SNAPSHOTS_MAX,
                      error)) {
        close_growing(list);
        return false;
    }
    memcpy(list->columns, growth_columns, sizeof growth_columns);
    list->columns[GROWTH_OTHER_IDS] = answer_other_ids_column(profile);
    drop_small(&list->growth, view_threshold(view, profile->peak.bytes));
    bool has_values = !profile->sampling.is_on || recording_has_sample_values(profile->recording);
    size_t count = has_values && list->growth.is_known ? list->growth.count : 0;
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .columns = list->columns,
                              .column_count = GROWTH_COLUMNS,
                              .gap = 1,
                              .has_frames = true,
                              .shown = answer_cut(view->top, count),
                              .count = count,
                              .are_blocks = true,
                              .say = say_growing,
                              .next_row = next_growing,
                              .close = close_growing,
                              .state = list};
    if (has_values)
        say_title(answer, list);
    else
        say_bare_samples(answer);
    return true;
}
