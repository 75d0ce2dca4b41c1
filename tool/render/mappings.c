// SPDX-License-Identifier: Apache-2.0
#include "tool/render/mappings.h"

#include <stdlib.h>

#include "tool/base/units.h"
#include "tool/model/mapped.h"
#include "tool/render/stacks.h"

enum { MAPPED_COLUMNS = 13, INDENT = 2, RESERVED_TOP = 3, KINDS_BYTES = 64 };

static struct unit_text size_of(const struct view_options *view, int64_t bytes) {
    return units_size_as(bytes, view->is_plain_number);
}

static void print_key(const struct terminal *terminal, const char *key) {
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%-*s", MAPPED_COLUMNS, key);
}

static void print_ranges(const struct terminal *terminal, const struct view_options *view,
                         int64_t bytes, int64_t ranges) {
    fprintf(terminal->out, "%s in %s %s", size_of(view, bytes).text, units_count(ranges).text,
            units_noun(ranges, "mapping", "mappings"));
}

void mapped_print_line(const struct terminal *terminal, const struct profile *profile,
                       const struct view_options *view) {
    const struct mapped_figures *all = &profile->mapped.all;
    if (!profile->mapped.is_recorded) return;
    print_key(terminal, "mapped");
    print_ranges(terminal, view, all->peak_bytes, all->peak_ranges);
    fprintf(terminal->out, " at most, %s %s", size_of(view, all->exit_bytes).text,
            profile_has_ended(profile) ? "at exit" : "now");
    terminal_print(terminal, STYLE_DIM, ": --view mappings\n");
}

static void print_lost(const struct terminal *terminal, uint64_t lost) {
    if (!lost) return;
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_WARNING, "%s %s of mappings could not be noted\n",
                   units_count((int64_t)lost).text, units_noun((int64_t)lost, "change", "changes"));
}

void mapped_print_facts(const struct terminal *terminal, const struct profile *profile,
                        const struct view_options *view) {
    print_key(terminal, "peak mapped");
    terminal_print(terminal, STYLE_STRONG, "%s", size_of(view, profile->peak.bytes).text);
    fprintf(terminal->out, " in %s %s", units_count(profile->peak.blocks).text,
            units_noun(profile->peak.blocks, "mapping", "mappings"));
    if (profile->peak.at_ns)
        fprintf(terminal->out, " at %s", units_duration(profile->peak.at_ns).text);
    fputc('\n', terminal->out);
    print_key(terminal, "mapped");
    fprintf(terminal->out, "%s in %s %s\n",
            size_of(view, (int64_t)profile->totals.allocated_bytes).text,
            units_count((int64_t)profile->totals.allocations).text,
            units_noun((int64_t)profile->totals.allocations, "call", "calls"));
    print_key(terminal, profile_has_ended(profile) ? "at exit" : "mapped now");
    print_ranges(terminal, view, profile->exit_bytes, profile->exit_blocks);
    fputc('\n', terminal->out);
    print_lost(terminal, profile->mapped.lost);
}

enum kind_column { KIND_PEAK, KIND_EXIT, KIND_CALLS, KIND_WORDS, KIND_COLUMNS };

struct kind_list {
    struct answer_column columns[KIND_COLUMNS];
    uint32_t at;
};

static bool has_kind(const struct profile *profile, uint32_t kind) {
    const struct mapped_figures *figures = &profile->mapped.kinds[kind];
    return figures->calls || figures->exit_ranges;
}

static bool next_kind(struct answer *answer, struct answer_row *row) {
    static const char *const words[CAIRN_MAPPING_KINDS] = {
        [CAIRN_MAPPING_ANONYMOUS] = "private memory",
        [CAIRN_MAPPING_FILE] = "files and devices",
        [CAIRN_MAPPING_SHARED] = "shared memory",
        [CAIRN_MAPPING_RESERVED] = "reserved: mapped without access, not in the sums",
        [CAIRN_MAPPING_ALLOCATOR] = "by the allocator itself, for blocks of the heap",
    };
    struct kind_list *list = answer->state;
    while (list->at < CAIRN_MAPPING_KINDS && !has_kind(answer->profile, list->at)) list->at++;
    if (list->at == CAIRN_MAPPING_KINDS) return false;
    const struct mapped_figures *figures = &answer->profile->mapped.kinds[list->at];
    answer_set(row, KIND_PEAK, figures->peak_bytes);
    answer_set(row, KIND_EXIT, figures->exit_bytes);
    answer_set(row, KIND_CALLS, (int64_t)figures->calls);
    answer_set_text(row, KIND_WORDS, words[list->at++]);
    return true;
}

// Adds the table of kinds above the stacks. False without memory.
static bool add_kinds(struct answer *answer) {
    const struct profile *profile = answer->profile;
    struct answer *table = answer_add_table(&answer->above);
    struct kind_list *list = table ? calloc(1, sizeof *list) : NULL;
    if (!list) return false;
    const char *end = profile_has_ended(profile) ? "at the end" : "now";
    *list = (struct kind_list){
        .columns = {[KIND_PEAK] = ANSWER_FIGURES("peak_bytes", "at the peak", ANSWER_BYTES, 12),
                    [KIND_EXIT] = ANSWER_FIGURES("at_exit_bytes", end, ANSWER_BYTES, 12),
                    [KIND_CALLS] = ANSWER_FIGURES("calls", "calls", ANSWER_COUNT, 10),
                    [KIND_WORDS] = ANSWER_TAILS("kind", "  ", NULL)}};
    *table = (struct answer){.profile = profile,
                             .options = answer->options,
                             .columns = list->columns,
                             .column_count = KIND_COLUMNS,
                             .gap = 1,
                             .has_heads_always = true,
                             .next_row = next_kind,
                             .close = free,
                             .state = list};
    return true;
}

// Returns the stack that reserves most of those behind `last`; NULL: there is none.
static const struct stack *next_reserved(const struct profile *profile, const struct stack *last) {
    const struct stack *found = NULL;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        bool is_after =
            !last || stack_more(stack)->reserved_bytes < stack_more(last)->reserved_bytes ||
            (stack_more(stack)->reserved_bytes == stack_more(last)->reserved_bytes && stack > last);
        if (stack_more(stack)->reserved_bytes <= 0 || !is_after) continue;
        if (!found || stack_more(stack)->reserved_bytes > stack_more(found)->reserved_bytes)
            found = stack;
    }
    return found;
}

enum reserved_column { RESERVED_BYTES, RESERVED_RANGES, RESERVED_COLUMNS };

static const struct answer_column reserved_columns[RESERVED_COLUMNS] = {
    [RESERVED_BYTES] = ANSWER_FIGURES("reserved_bytes", NULL, ANSWER_BYTES, 10),
    [RESERVED_RANGES] = ANSWER_FIGURES("reserved_mappings", NULL, ANSWER_COUNT, 10)};

struct reserved_list {
    const struct frame_names *names;
    const struct stack *last;
    size_t at;
    struct frame_list frames;
};

static bool next_reserved_row(struct answer *answer, struct answer_row *row) {
    struct reserved_list *list = answer->state;
    if (list->at++ == answer->shown) return false;
    list->last = next_reserved(answer->profile, list->last);
    if (!frame_list_fill(&list->frames, answer->profile, list->names, list->last->node, 0)) {
        answer->is_failed = true;
        return false;
    }
    const struct stack_more *more = stack_more(list->last);
    answer_set_measured(
        row, RESERVED_BYTES,
        (struct measured){.value = more->reserved_bytes, .blocks = more->reserved_ranges});
    answer_set(row, RESERVED_RANGES, more->reserved_ranges);
    row->frames = &list->frames;
    row->cut = list->last->cut;
    return true;
}

static void close_reserved(void *state) {
    struct reserved_list *list = state;
    frame_list_free(&list->frames);
    free(list);
}

// Adds the stacks that reserve most below the others. False without memory.
static bool add_reserved(struct answer *answer, const struct frame_names *names) {
    static const char *const noun[] = {"mapping", "mappings"};
    size_t count = 0;
    for (size_t i = 0; i < answer->profile->stack_count; i++)
        count += stack_more(&answer->profile->stacks[i])->reserved_bytes > 0;
    if (!count) return true;
    struct answer *table = answer_add_table(&answer->below);
    struct reserved_list *list = table ? calloc(1, sizeof *list) : NULL;
    if (!list) return false;
    list->names = names;
    list->frames.are_all_shown = answer->options->has_all_frames;
    if (count > RESERVED_TOP) count = RESERVED_TOP;
    *table = (struct answer){.profile = answer->profile,
                             .options = answer->options,
                             .title = "reserved, without access",
                             .columns = reserved_columns,
                             .column_count = RESERVED_COLUMNS,
                             .are_blocks = true,
                             .noun = noun,
                             .has_frames = true,
                             .shown = count,
                             .count = count,
                             .next_row = next_reserved_row,
                             .close = close_reserved,
                             .state = list};
    return true;
}

bool mapped_add_tables(struct answer *answer, const struct frame_names *names) {
    const struct profile *profile = answer->profile;
    if (!profile->is_of_mappings || !profile->mapped.is_recorded)
        return add_reserved(answer, names);
    return add_kinds(answer) && add_reserved(answer, names);
}

static void put_figures(struct json *json, const struct mapped_figures *figures) {
    json_put_uint(json, "calls", figures->calls);
    json_put_uint(json, "mapped_bytes", figures->mapped_bytes);
    json_put_uint(json, "unmapped_bytes", figures->unmapped_bytes);
    json_put_int(json, "peak_bytes", figures->peak_bytes);
    json_put_int(json, "peak_mappings", figures->peak_ranges);
    json_put_int(json, "at_exit_bytes", figures->exit_bytes);
    json_put_int(json, "at_exit_mappings", figures->exit_ranges);
}

void mapped_json_put(struct json *json, const struct profile *profile) {
    const struct mapped *mapped = &profile->mapped;
    put_figures(json, &mapped->all);
    json_put_uint(json, "peak_at_ns", mapped->peak_ns);
    json_put_uint(json, "lost", mapped->lost);
    json_open_object(json, "kinds");
    for (uint32_t kind = 0; kind < CAIRN_MAPPING_KINDS; kind++) {
        json_open_object(json, mapped_kind_name(kind));
        put_figures(json, &mapped->kinds[kind]);
        json_close(json);
    }
    json_close(json);
}

void mapped_json_put_stack(struct json *json, const struct stack *stack) {
    char kinds[KINDS_BYTES];
    mapped_kinds_text(stack_more(stack)->mapping_kinds, kinds, sizeof kinds);
    json_put_string(json, "kinds", kinds);
    json_put_uint(json, "calls", stack->allocations);
    json_put_uint(json, "mapped_bytes", stack->allocated_bytes);
    json_put_uint(json, "unmapped_bytes", stack->freed_bytes);
    json_put_int(json, "peak_bytes", stack->peak_bytes);
    json_put_int(json, "peak_mappings", stack->peak_blocks);
    json_put_int(json, "at_exit_bytes", stack->exit_bytes);
    json_put_int(json, "at_exit_mappings", stack->exit_blocks);
    json_put_int(json, "reserved_bytes", stack_more(stack)->reserved_bytes);
    json_put_int(json, "reserved_mappings", stack_more(stack)->reserved_ranges);
}
