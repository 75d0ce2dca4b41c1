// SPDX-License-Identifier: Apache-2.0
#include "tool/render/shapes.h"

#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/interval.h"
#include "tool/render/spark.h"
#include "tool/render/stacks.h"

enum { SIZES_SHOWN = 6, LINE_BYTES = 512 };
static const uint64_t ms_ns = 1000000;

struct shapes {
    struct shape shape;
    uint64_t short_ns;
};

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
    snprintf(line, sizeof line, "%s of its calls made a block that the thread freed at once",
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
                 units_count(size->calls.value).text, interval_text(size->calls, false, false).text,
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
        snprintf(line, sizeof line, "room beyond what was asked for: %s (%s)",
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
    fprintf(terminal->out, "from %s ", text(bucket_start(first)).text);
    spark_print_histogram(terminal, buckets + first, last - first);
    fprintf(terminal->out, " to below %s %s\n", text(bucket_start(last)).text, what);
}

// Freed blocks whose bucket lies below the limit.
static void print_short(const struct terminal *terminal, const struct shape_ages *ages,
                        const struct stack *stack, uint64_t short_ns) {
    uint64_t total = 0, young = 0;
    size_t bucket = 0;
    char line[LINE_BYTES];
    for (size_t i = 0; i < CAIRN_AGE_BUCKETS; i++) total += ages->ms[i];
    for (; bucket < CAIRN_AGE_BUCKETS && bucket_start(bucket + 1) * ms_ns <= short_ns; bucket++)
        young += ages->ms[bucket];
    snprintf(line, sizeof line, "%s of its freed blocks lived less than %s; %s never freed",
             units_percent((int64_t)young, (int64_t)total).text,
             units_duration(bucket_start(bucket) * ms_ns).text,
             units_counted(stack->exit_blocks, "was", "were").text);
    print_line(terminal, line);
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
        if (is_kept)
            print_kept(terminal, profile, stack);
        else
            print_line(terminal, line);
        return;
    }
    print_ages(terminal, ages.ms, age_text, "of age, by powers of 2 of ms");
    print_ages(terminal, ages.calls, calls_text, "allocations of the thread in between");
    if (shapes->short_ns)
        print_short(terminal, &ages, stack, shapes->short_ns);
    else if (stack->exit_blocks > 0)
        print_kept(terminal, profile, stack);
}

bool shapes_print(const struct terminal *terminal, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  enum shapes_kind kind, uint64_t short_ns, struct error *error) {
    static stacks_note_fn *const notes[] = {[SHAPES_TEMPORARY] = note_temporary,
                                            [SHAPES_SIZES] = note_sizes,
                                            [SHAPES_AGES] = note_ages};
    struct shapes shapes = {.short_ns = short_ns};
    bool is_sampled = profile->sampling.is_on != 0;
    if (is_sampled && kind != SHAPES_SIZES)
        return error_set(error,
                         "ages and temporary blocks are known of whole recordings, not of samples "
                         "(cairn run without --sample)");
    if (profile_is_sum(profile) && kind != SHAPES_TEMPORARY)
        return error_set(error, "sizes and ages are known of each process alone: -p PID or NAME");
    if (!shape_build(&shapes.shape, profile, error)) return false;
    const struct stacks_notes noted = {.before = is_sampled ? note_sampled_sizes : notes[kind],
                                       .context = &shapes};
    bool is_ok = stacks_print_noted(terminal, profile, names, view, &noted, error);
    shape_free(&shapes.shape);
    return is_ok;
}
