// SPDX-License-Identifier: Apache-2.0
#include "tool/render/mappings.h"

#include "tool/answer/forms.h"
#include "tool/base/units.h"
#include "tool/model/mapped.h"
#include "tool/render/columns.h"
#include "tool/render/stack_answers.h"
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

static void print_kinds(const struct terminal *terminal, const struct profile *profile,
                        const struct view_options *view) {
    static const char *const words[CAIRN_MAPPING_KINDS] = {
        [CAIRN_MAPPING_ANONYMOUS] = "private memory",
        [CAIRN_MAPPING_FILE] = "files and devices",
        [CAIRN_MAPPING_SHARED] = "shared memory",
        [CAIRN_MAPPING_RESERVED] = "reserved: mapped without access, not in the sums",
        [CAIRN_MAPPING_ALLOCATOR] = "by the allocator itself, for blocks of the heap",
    };
    const struct column items[] = {
        {"at the peak", 12, STYLE_PLAIN, false},
        {profile_has_ended(profile) ? "at the end" : "now", 12, STYLE_PLAIN, false},
        {"calls", 10, STYLE_PLAIN, false}};
    const struct columns columns = {items, 3, 0, 1};
    columns_print_heads(terminal, &columns);
    fputc('\n', terminal->out);
    for (uint32_t kind = 0; kind < CAIRN_MAPPING_KINDS; kind++) {
        const struct mapped_figures *figures = &profile->mapped.kinds[kind];
        if (!figures->calls && !figures->exit_ranges) continue;
        const struct unit_text texts[] = {size_of(view, figures->peak_bytes),
                                          size_of(view, figures->exit_bytes),
                                          units_count((int64_t)figures->calls)};
        columns_print(terminal, &columns, texts);
        fprintf(terminal->out, "  %s\n", words[kind]);
    }
    fputc('\n', terminal->out);
}

// The stack that reserves most but for those that reserve as much as `below` and were shown; NULL:
// none.
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

static bool print_reserved(const struct terminal *terminal, const struct profile *profile,
                           const struct frame_names *names, const struct view_options *view) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    const struct stack *stack = next_reserved(profile, NULL);
    bool is_ok = true;
    if (stack) terminal_print(terminal, STYLE_STRONG, "\nreserved, without access\n");
    for (int i = 0; is_ok && stack && i < RESERVED_TOP; i++) {
        is_ok = frame_list_fill(&frames, profile, names, stack->node, 0);
        if (!is_ok) break;
        fputs("\n    ", terminal->out);
        print_ranges(terminal, view, stack_more(stack)->reserved_bytes,
                     stack_more(stack)->reserved_ranges);
        fputc('\n', terminal->out);
        stacks_print_frames(terminal, &frames, stack->cut, view->depth);
        stack = next_reserved(profile, stack);
    }
    frame_list_free(&frames);
    return is_ok;
}

bool mapped_print(const struct terminal *terminal, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  struct error *error) {
    if (profile->is_of_mappings && profile->mapped.is_recorded)
        print_kinds(terminal, profile, view);
    struct answer answer;
    if (!mappings_answer(&answer, profile, names, view, error)) return false;
    bool is_ok = answer_print_text(terminal, &answer, error);
    answer_close(&answer);
    return is_ok && (print_reserved(terminal, profile, names, view) ||
                     error_set(error, "no memory for the list of stacks"));
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
