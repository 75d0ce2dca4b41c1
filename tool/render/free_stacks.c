// SPDX-License-Identifier: Apache-2.0
#include "tool/render/free_stacks.h"

#include <stdio.h>
#include <stdlib.h>

#include "tool/base/units.h"
#include "tool/render/site_line.h"
#include "tool/render/stacks.h"

enum {
    FREERS_SHOWN = 5,      // of a stack; all where it is the only one
    FIGURES_COLUMNS = 46,  // of a line, with its indent
};

struct free_stacks {
    const struct frame_names *names;
    struct shape_free_stack *list;
    size_t count;
    bool is_one;       // a single stack is shown
    bool has_trouble;  // there was no memory
};

bool free_stacks_has_any(const struct profile *profile) {
    return profile->recording->header.has_free_stacks || profile->freed_at.count;
}

// "  75 %   36.6 KiB in 750 blocks" of what the stack allocated.
static void print_figures(const struct terminal *terminal, const struct stack *stack, int64_t bytes,
                          int64_t blocks, const struct view_options *view) {
    const char *noun = blocks == 1 ? "block" : "blocks";
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    terminal_print(terminal, STYLE_STRONG, "%6s",
                   units_percent(bytes, (int64_t)stack->allocated_bytes).text);
    fprintf(terminal->out, " %9s in %8s %s", units_size_as(bytes, view->is_plain_number).text,
            units_count(blocks).text, noun);
}

static void print_gap(const struct terminal *terminal, int64_t blocks) {
    terminal_indent(terminal, blocks == 1 ? 2 : 1);
}

static void print_rest(const struct terminal *terminal, const struct stack *stack, int64_t bytes,
                       int64_t blocks, const struct view_options *view, const char *what) {
    if (blocks <= 0) return;
    print_figures(terminal, stack, bytes, blocks, view);
    print_gap(terminal, blocks);
    terminal_print(terminal, STYLE_DIM, "%s\n", what);
}

// Places that freed blocks of one stack, each for all of its stacks.
static bool find_sites(const struct free_stacks *stacks, const struct profile *profile,
                       const struct shape_free_stack *own, size_t count,
                       const struct view_options *view, struct site_list *sites) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    bool is_ok = true;
    for (size_t i = 0; i < count && is_ok; i++) {
        struct measured measured = {.value = (int64_t)own[i].bytes,
                                    .blocks = (int64_t)own[i].frees};
        is_ok = site_list_add(sites, profile, stacks->names, own[i].node, measured, &frames);
    }
    frame_list_free(&frames);
    site_list_sort(sites);
    return is_ok;
}

static bool print_whole(const struct terminal *terminal, const struct free_stacks *stacks,
                        const struct profile *profile, const struct site *site,
                        const struct view_options *view) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    bool is_ok = frame_list_fill(&frames, profile, stacks->names, site->node, 0);
    if (site->stack_count > 1)
        terminal_print(terminal, STYLE_DIM, " from %s stacks, one of them:",
                       units_count((int64_t)site->stack_count).text);
    fputc('\n', terminal->out);
    if (is_ok) stacks_print_frames(terminal, &frames, 0, view->depth);
    frame_list_free(&frames);
    return is_ok;
}

// The places, largest first; what is beyond the list is a line.
static struct measured print_sites(const struct terminal *terminal, struct free_stacks *stacks,
                                   const struct profile *profile, const struct stack *stack,
                                   const struct view_options *view, const struct site_list *sites) {
    struct measured sum = {0}, others = {0};
    size_t shown =
        stacks->is_one || sites->sites.count < FREERS_SHOWN ? sites->sites.count : FREERS_SHOWN;
    for (size_t i = 0; i < sites->sites.count; i++) {
        const struct site *site = &sites->sites.items[i];
        measured_add(&sum, site->measured);
        if (i >= shown) {
            measured_add(&others, site->measured);
            continue;
        }
        print_figures(terminal, stack, site->measured.value, site->measured.blocks, view);
        if (!stacks->is_one) {
            print_gap(terminal, site->measured.blocks);
            site_print(terminal, site, FIGURES_COLUMNS);
        } else if (!print_whole(terminal, stacks, profile, site, view)) {
            stacks->has_trouble = true;
        }
    }
    print_rest(terminal, stack, others.value, others.blocks, view,
               "in other places (--top 1: all)");
    return sum;
}

static void note_freers(const struct terminal *terminal, const struct profile *profile,
                        const struct stack *stack, const struct view_options *view, void *context) {
    struct free_stacks *stacks = context;
    struct site_list sites = {0};
    size_t count;
    const struct shape_free_stack *own =
        shape_free_stacks_of(stacks->list, stacks->count, stack->number, &count);
    if (!find_sites(stacks, profile, own, count, view, &sites)) stacks->has_trouble = true;
    if (sites.sites.count) {
        terminal_indent(terminal, STACKS_NOTE_INDENT);
        terminal_print(terminal, STYLE_STRONG, "freed by\n");
    }
    struct measured sum = print_sites(terminal, stacks, profile, stack, view, &sites);
    print_rest(terminal, stack, (int64_t)stack->freed_bytes - sum.value,
               (int64_t)stack->frees - sum.blocks, view, "where, was not recorded");
    print_rest(terminal, stack, stack->exit_bytes, stack->exit_blocks, view, "never freed");
    site_list_free(&sites);
}

bool free_stacks_print(const struct terminal *terminal, const struct profile *profile,
                       const struct frame_names *names, const struct view_options *view,
                       struct error *error) {
    struct free_stacks stacks = {.names = names,
                                 .is_one = view->top == 1 || profile->stack_count == 1};
    if (profile_is_sum(profile))
        return error_set(error, "who freed is known of each process alone: -p PID or NAME");
    if (!free_stacks_has_any(profile))
        return error_set(error, "who freed was not recorded: cairn run --free-stacks");
    stacks.list = shape_free_stacks(profile, &stacks.count);
    if (!stacks.list) return error_set(error, "no memory for the stacks that freed");
    const struct stacks_notes notes = {.after = note_freers, .context = &stacks};
    bool is_ok = stacks_print_noted(terminal, profile, names, view, &notes, error);
    free(stacks.list);
    if (is_ok && stacks.has_trouble) return error_set(error, "no memory for the stacks that freed");
    return is_ok;
}
