// SPDX-License-Identifier: Apache-2.0
#include "tool/render/shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/interval.h"
#include "tool/render/json_values.h"
#include "tool/render/stacks.h"
#include "tool/render/terminal.h"

enum { SIZES_SHOWN = 6, LINE_BYTES = 512 };
static const uint64_t ms_ns = 1000000;

static void print_line(const struct terminal *terminal, char *line) {
    text_cut(line, terminal->columns - STACKS_NOTE_INDENT);
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    fprintf(terminal->out, "%s\n", line);
}

static void note_temporary(const struct terminal *terminal, const struct profile *profile,
                           const struct stack *stack, const struct view_options *view,
                           void *context) {
    struct shapes *shapes = context;
    struct shape_reallocs reallocs;
    char line[LINE_BYTES];
    (void)profile;
    struct measured lived = measure_stack(MEASURE_SHORT, stack);
    if (lived.estimate.samples && !measured_is_unreliable(lived))
        snprintf(line, sizeof line, "%s of its blocks are short-lived, ",
                 units_percent((int64_t)stack->watched.short_lived, lived.estimate.samples).text);
    else
        *line = 0;
    snprintf(line + strlen(line), sizeof line - strlen(line),
             *line ? "%s freed at once" : "%s of its blocks are freed at once",
             units_percent((int64_t)stack->temporary, (int64_t)stack->allocations).text);
    print_line(terminal, line);
    shape_reallocs(&shapes->shape, stack->number, &reallocs);
    if (!reallocs.calls) return;
    snprintf(line, sizeof line, "%s: %s in place, %s grew, %s copied",
             units_counted((int64_t)reallocs.calls, "realloc", "reallocs").text,
             units_count((int64_t)reallocs.in_place).text,
             units_count((int64_t)reallocs.grown).text,
             units_size_as((int64_t)reallocs.copied_bytes, view->is_plain_number).text);
    print_line(terminal, line);
}

// "64 B × 12,345, 48 B × 300, … ".
static void sizes_text(const struct shape_sizes *sizes, const struct view_options *view, char *out,
                       size_t size) {
    snprintf(out, size, "sizes ");
    for (size_t i = 0; i < sizes->count && i < SIZES_SHOWN; i++) {
        const struct shape_size *one = &sizes->list[i];
        size_t used = strlen(out);
        snprintf(out + used, size - used, "%s%s%s \xc3\x97 %s", i ? ", " : "",
                 one->is_at_least ? "at least " : "",
                 units_size_as((int64_t)one->size, view->is_plain_number).text,
                 units_count((int64_t)one->count).text);
    }
    if (sizes->count > SIZES_SHOWN)
        snprintf(out + strlen(out), size - strlen(out), ", \xe2\x80\xa6");
}

// First and last bucket in use; false: none.
static bool find_range(const uint64_t *buckets, size_t count, size_t *first, size_t *last) {
    for (*first = 0; *first < count && !buckets[*first]; ++*first) {
    }
    for (*last = count; *last > *first && !buckets[*last - 1]; --*last) {
    }
    return *last > *first;
}

static uint64_t bucket_start(size_t bucket) {
    return bucket ? UINT64_C(1) << (bucket - 1) : 0;
}

// "aligned to 64 B × 900, 4 KiB × 100: 31 KiB beyond plain blocks", and what it takes to find that.
static void note_aligned(const struct terminal *terminal, const struct shape *shape,
                         const struct stack *stack, const struct view_options *view) {
    struct shape_aligned aligned;
    char line[LINE_BYTES] = "aligned to ";
    const char *separator = "";
    shape_aligned(shape, stack->number, &aligned);
    if (!aligned.all_calls) return;
    for (size_t i = 0; i < CAIRN_ALIGN_BUCKETS; i++) {
        size_t used = strlen(line);
        if (!aligned.calls[i]) continue;
        snprintf(line + used, sizeof line - used, "%s%s \xc3\x97 %s", separator,
                 units_size_as((int64_t)shape_alignment(i), view->is_plain_number).text,
                 units_count((int64_t)aligned.calls[i]).text);
        separator = ", ";
    }
    size_t used = strlen(line);
    if (aligned.is_waste_known)
        snprintf(line + used, sizeof line - used, ": %s beyond plain blocks",
                 units_size_as((int64_t)aligned.waste_bytes, view->is_plain_number).text);
    else
        snprintf(line + used, sizeof line - used, ": what that took is known of glibc alone");
    print_line(terminal, line);
    if (!aligned.is_waste_known) return;
    snprintf(line, sizeof line, "such a call needs up to %s more in one piece",
             units_size_as((int64_t)aligned.reach_bytes, view->is_plain_number).text);
    print_line(terminal, line);
}

// "65 B to 128 B × 12,345 ± 812 (62 samples)", a line each.
static void note_sampled_sizes(const struct terminal *terminal, const struct profile *profile,
                               const struct stack *stack, const struct view_options *view,
                               void *context) {
    struct shapes *shapes = context;
    struct shape_sampled_size sizes[SHAPE_SAMPLED_SIZES];
    int64_t others;
    bool is_plain = view->is_plain_number;
    char line[LINE_BYTES];
    (void)profile;
    size_t count = shape_sampled_sizes(&shapes->shape, stack->number, sizes, &others);
    for (size_t i = 0; i < count; i++) {
        const struct shape_sampled_size *size = &sizes[i];
        bool is_one = size->least == size->most;
        snprintf(line, sizeof line, "%s%s%s%s \xc3\x97 %s%s%s", i ? "      " : "sizes ",
                 units_size_as(size->least, is_plain).text, is_one ? "" : " to ",
                 is_one ? "" : units_size_as(size->most, is_plain).text,
                 units_count(measured_shown(size->calls)).text,
                 interval_amount(size->calls, false, false).text,
                 interval_samples(size->calls).text);
        print_line(terminal, line);
    }
    if (!others) return;
    snprintf(line, sizeof line, "sizes of about %s were not kept",
             units_counted(others, "call", "calls").text);
    print_line(terminal, line);
}

static void note_sizes(const struct terminal *terminal, const struct profile *profile,
                       const struct stack *stack, const struct view_options *view, void *context) {
    struct shapes *shapes = context;
    struct shape_sizes sizes;
    char line[LINE_BYTES];
    size_t first, last;
    (void)profile;
    shape_sizes(&shapes->shape, stack->number, &sizes);
    sizes_text(&sizes, view, line, sizeof line);
    if (sizes.count) print_line(terminal, line);
    if (find_range(sizes.buckets, SHAPE_SIZE_BUCKETS, &first, &last) && last > first + 1) {
        terminal_indent(terminal, STACKS_NOTE_INDENT);
        fprintf(terminal->out, "from %s ",
                units_size_as((int64_t)bucket_start(first), view->is_plain_number).text);
        spark_print_histogram(terminal, sizes.buckets + first, last - first);
        fprintf(terminal->out, " to below %s, by powers of 2\n",
                units_size_as((int64_t)bucket_start(last), view->is_plain_number).text);
    }
    if (sizes.unknown) {
        snprintf(line, sizeof line, "sizes of %s were not noted one by one",
                 units_counted((int64_t)sizes.unknown, "call", "calls").text);
        print_line(terminal, line);
    }
    if (stack->slack_bytes) {
        snprintf(line, sizeof line, "rounding by the allocator: %s (%s)",
                 units_size_as((int64_t)stack->slack_bytes, view->is_plain_number).text,
                 units_percent((int64_t)stack->slack_bytes, (int64_t)stack->allocated_bytes).text);
        print_line(terminal, line);
    }
    note_aligned(terminal, &shapes->shape, stack, view);
}

// Whole milliseconds as long as they say something.
static struct unit_text age_text(uint64_t ms) {
    const uint64_t second_ms = 1000;
    struct unit_text text = units_duration(ms * ms_ns);
    if (ms < second_ms) snprintf(text.text, sizeof text.text, "%u ms", (unsigned)ms);
    return text;
}

static struct unit_text calls_text(uint64_t calls) {
    return units_count((int64_t)calls);
}

static void print_ages(const struct terminal *terminal, const uint64_t *buckets,
                       struct unit_text (*text)(uint64_t start), const char *what) {
    size_t first, last;
    if (!find_range(buckets, CAIRN_AGE_BUCKETS, &first, &last)) return;
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    fprintf(terminal->out, "%s: %s ", what, text(bucket_start(first)).text);
    spark_print_histogram(terminal, buckets + first, last - first);
    fprintf(terminal->out, " %s\n", text(bucket_start(last)).text);
}

// Freed blocks whose bucket lies below the limit by what the clock was late.
static void print_short(const struct terminal *terminal, const struct profile *profile,
                        const struct shape_ages *ages, const struct stack *stack,
                        uint64_t short_ns) {
    const uint64_t error_ms = shape_ages_error_ms(profile->recording);
    const uint64_t short_ms = short_ns / ms_ns;
    const uint64_t least_ms = short_ms > error_ms ? short_ms - error_ms : 0;
    uint64_t total = 0, young = 0;
    char line[LINE_BYTES];
    for (size_t i = 0; i < CAIRN_AGE_BUCKETS; i++) total += ages->ms[i];
    for (size_t i = 0; i < CAIRN_AGE_BUCKETS && bucket_start(i + 1) <= least_ms + 1; i++)
        young += ages->ms[i];
    bool is_known = short_ms >= error_ms;
    if (is_known)
        snprintf(line, sizeof line,
                 "at least %s of its freed blocks lived less than %s; %s never freed",
                 units_percent((int64_t)young, (int64_t)total).text, units_duration(short_ns).text,
                 units_counted(stack->exit_blocks, "was", "were").text);
    else
        snprintf(line, sizeof line, "how many lived less than %s is not known; %s never freed",
                 units_duration(short_ns).text,
                 units_counted(stack->exit_blocks, "was", "were").text);
    print_line(terminal, line);
}

// Says how far ages may be from the truth.
static void explain_ages(struct answer *answer, const struct profile *profile) {
    const uint64_t error_ms = shape_ages_error_ms(profile->recording);
    if (error_ms == UINT64_MAX)
        answer_show(answer, "lifetimes: by how much their clock was late is not known (recorded by "
                            "an older cairn)");
    else
        answer_show(answer, "lifetimes may be off by up to %s: by so much their clock was late",
                    age_text(error_ms).text);
}

// Blocks that have no age, since they were not freed.
static void print_kept(const struct terminal *terminal, const struct profile *profile,
                       const struct stack *stack) {
    char line[LINE_BYTES];
    snprintf(line, sizeof line, "%s of %s %s", units_count(stack->exit_blocks).text,
             units_counted((int64_t)stack->allocations, "block", "blocks").text,
             profile_has_ended(profile) ? "lived to the end"
                                        : units_noun(stack->exit_blocks, "is live", "are live"));
    print_line(terminal, line);
}

static void note_ages(const struct terminal *terminal, const struct profile *profile,
                      const struct stack *stack, const struct view_options *view, void *context) {
    struct shapes *shapes = context;
    struct shape_ages ages;
    char line[LINE_BYTES] = "ages were not recorded: cairn run --ages";
    (void)view;
    if (!shape_ages(&shapes->shape, stack->number, &ages)) {
        bool is_kept = stack->exit_blocks > 0 && (uint64_t)stack->exit_blocks == stack->allocations;
        if (is_kept || profile->log)
            print_kept(terminal, profile, stack);
        else
            print_line(terminal, line);
        return;
    }
    bool is_of_owners = recording_is_of_owners(profile->recording);
    print_ages(terminal, ages.ms, age_text, is_of_owners ? "age" : "lifetime");
    print_ages(terminal, ages.calls, calls_text,
               profile->heap ? "allocations of the heap meanwhile"
                             : "allocations of the thread meanwhile");
    if (is_of_owners) return;
    if (shapes->short_ns)
        print_short(terminal, profile, &ages, stack, shapes->short_ns);
    else if (stack->exit_blocks > 0)
        print_kept(terminal, profile, stack);
}

static void explain_short(struct answer *answer, const struct profile *profile) {
    answer_show(
        answer,
        "short-lived: freed by its thread before %u further allocations of it,\n"
        "at once: before the next one; an estimate from %s, one in %u",
        CAIRN_SHORT_CALLS,
        units_counted((int64_t)profile->totals.watched.blocks, "watched block", "watched blocks")
            .text,
        CAIRN_WATCHED_EVERY);
}

bool shapes_are_known(const struct profile *profile, enum shapes_kind kind, struct error *error) {
    if (profile->sampling.is_on && kind != SHAPES_SIZES)
        return error_set(error,
                         "ages and temporary blocks are known of whole recordings, not of samples "
                         "(cairn run without --sample)");
    if (profile_is_sum(profile) && kind != SHAPES_TEMPORARY)
        return error_set(error, "sizes and ages are known of each process alone: -p PID or NAME");
    return true;
}

enum measure shapes_measure(const struct profile *profile, enum measure by) {
    bool is_known = by != MEASURE_SHORT || measure_is_known(MEASURE_SHORT, profile);
    return is_known ? by : MEASURE_TEMPORARY;
}

stacks_note_fn *shapes_note(const struct profile *profile, enum shapes_kind kind) {
    static stacks_note_fn *const notes[] = {[SHAPES_TEMPORARY] = note_temporary,
                                            [SHAPES_SIZES] = note_sizes,
                                            [SHAPES_AGES] = note_ages};
    return profile->sampling.is_on ? note_sampled_sizes : notes[kind];
}

void shapes_explain(struct answer *answer, const struct profile *profile, enum shapes_kind kind,
                    enum measure by) {
    if (by == MEASURE_SHORT) explain_short(answer, profile);
    if (kind == SHAPES_AGES && recording_count(profile->recording, CAIRN_SECTION_AGES) &&
        !recording_is_of_owners(profile->recording))
        explain_ages(answer, profile);
    if (kind == SHAPES_AGES && profile->log) answer_note(answer, "%s", profile->log->note);
}

// Trailing buckets without blocks are left out.
static void put_buckets(struct json *json, const char *name, const uint64_t *buckets,
                        size_t count) {
    while (count && !buckets[count - 1]) count--;
    json_open_array(json, name);
    for (size_t i = 0; i < count; i++) json_put_uint(json, NULL, buckets[i]);
    json_close(json);
}

static void put_sizes(struct json *json, const struct shape_sizes *sizes) {
    json_open_object(json, "sizes");
    json_open_array(json, "exact");
    for (size_t i = 0; i < sizes->count; i++) {
        json_open_object(json, NULL);
        json_put_uint(json, "size", sizes->list[i].size);
        json_put_uint(json, "count", sizes->list[i].count);
        json_put_bool(json, "at_least", sizes->list[i].is_at_least);
        json_close(json);
    }
    json_close(json);
    put_buckets(json, "log2", sizes->buckets, SHAPE_SIZE_BUCKETS);
    json_put_uint(json, "unknown", sizes->unknown);
    json_close(json);
}

static void put_reallocs(struct json *json, const struct shape_reallocs *reallocs) {
    json_open_object(json, "reallocs");
    json_put_uint(json, "calls", reallocs->calls);
    json_put_uint(json, "in_place", reallocs->in_place);
    json_put_uint(json, "grown", reallocs->grown);
    json_put_uint(json, "copied_bytes", reallocs->copied_bytes);
    json_close(json);
}

static void put_aligned(struct json *json, const struct shape_aligned *aligned) {
    json_open_object(json, "aligned");
    json_put_uint(json, "calls", aligned->all_calls);
    json_put_uint(json, "usual_alignment", aligned->usual);
    json_put_uint(json, "largest_alignment", aligned->most);
    if (aligned->is_waste_known) {
        json_put_uint(json, "slack_bytes", aligned->slack_bytes);
        json_put_uint(json, "waste_bytes", aligned->waste_bytes);
    } else {
        json_put_null(json, "slack_bytes");
        json_put_null(json, "waste_bytes");
    }
    json_open_array(json, "alignments");
    for (size_t i = 0; i < CAIRN_ALIGN_BUCKETS; i++) {
        if (!aligned->calls[i]) continue;
        json_open_object(json, NULL);
        json_put_uint(json, "alignment", shape_alignment(i));
        json_put_uint(json, "calls", aligned->calls[i]);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

static void put_sampled_sizes(struct json *json, const struct shape *shape, uint32_t stack_number) {
    struct shape_sampled_size sizes[SHAPE_SAMPLED_SIZES];
    int64_t others;
    size_t count = shape_sampled_sizes(shape, stack_number, sizes, &others);
    if (!count) return;
    json_open_object(json, "sizes_estimate");
    json_open_array(json, "log2");
    for (size_t i = 0; i < count; i++) {
        json_open_object(json, NULL);
        json_put_uint(json, "least_bytes", sizes[i].least);
        json_put_uint(json, "most_bytes", sizes[i].most);
        json_put_int(json, "calls", sizes[i].calls.value);
        json_put_int(json, "interval_calls", measured_interval(sizes[i].calls));
        json_put_int(json, "samples", measured_samples(sizes[i].calls));
        json_close(json);
    }
    json_close(json);
    json_put_int(json, "unknown", others);
    json_close(json);
}

void shape_json_put(struct json *json, const struct shape *shape, uint32_t stack_number) {
    struct shape_sizes sizes;
    struct shape_reallocs reallocs;
    struct shape_aligned aligned;
    struct shape_ages ages;
    if (stack_number >= shape->profile->built_stack_count) return;
    if (shape->profile->sampling.is_on) {  // only blocks that were all recorded have the others
        put_sampled_sizes(json, shape, stack_number);
        return;
    }
    shape_sizes(shape, stack_number, &sizes);
    if (sizes.count || sizes.unknown) put_sizes(json, &sizes);
    shape_reallocs(shape, stack_number, &reallocs);
    if (reallocs.calls) put_reallocs(json, &reallocs);
    shape_aligned(shape, stack_number, &aligned);
    if (aligned.all_calls) put_aligned(json, &aligned);
    if (!shape_ages(shape, stack_number, &ages)) return;
    json_open_object(json, "ages");
    put_buckets(json, "calls", ages.calls, CAIRN_AGE_BUCKETS);
    put_buckets(json, "ms", ages.ms, CAIRN_AGE_BUCKETS);
    json_close(json);
}

bool shape_json_put_freed_by(struct json *json, const struct profile *profile) {
    size_t count;
    struct shape_freed *pairs = shape_freed_by(profile, &count);
    json_open_array(json, "freed_by");
    for (size_t i = 0; pairs && i < count; i++) {
        json_open_object(json, NULL);
        json_put_uint(json, "owner_slot", pairs[i].owner);
        json_put_uint(json, "freer_slot", pairs[i].freer);
        json_put_uint(json, "frees", pairs[i].frees);
        json_put_uint(json, "bytes", pairs[i].bytes);
        if (profile->sampling.is_on) json_values_put_estimate(json, "estimate", &pairs[i].estimate);
        json_close(json);
    }
    json_close(json);
    free(pairs);
    return pairs != NULL;
}
