// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/heap_map.h"
#include "tool/render/heap_screen.h"
#include "tool/render/stacks.h"

struct unit_text heap_class_name(unsigned class, bool is_plain_number) {
    struct unit_text out;
    uint64_t from = class ? 1ull << class : 0;
    snprintf(out.text, sizeof out.text, "blocks of %s to %s",
             units_size_as((int64_t)from, is_plain_number).text,
             units_size_as((int64_t)(2ull << class) - 1, is_plain_number).text);
    return out;
}

static void print_heading(const struct terminal *terminal, const struct heap_about *about,
                          bool is_plain) {
    const struct heap_state *state = about->state;
    const struct residency *residency = &state->residency;
    FILE *out = terminal->out;
    if (state->is_core) {
        terminal_print(terminal, STYLE_STRONG, "pages of the heap in %s\n", about->name);
        terminal_print(terminal, STYLE_DIM,
                       "a core does not tell which pages were resident: here "
                       "all count as if they were\n");
    } else {
        terminal_print(terminal, STYLE_STRONG, "resident pages of process %" PRIu32 "'s heap",
                       state->pid);
        fprintf(out, ", stopped for %s", units_duration(state->pause_ns).text);
        terminal_print(terminal, STYLE_DIM, " (%s %s)\n",
                       units_count((int64_t)state->thread_count).text,
                       units_noun((int64_t)state->thread_count, "thread", "threads"));
    }
    fprintf(out, "%12s  resident, with %s live on them\n",
            units_size_as((int64_t)residency->resident_bytes, is_plain).text,
            units_size_as((int64_t)residency->live_bytes, is_plain).text);
    fprintf(out, "%12s  on pages with live blocks, charged below\n",
            units_size_as((int64_t)residency->kept_bytes, is_plain).text);
    fprintf(out, "%12s  on pages without: free memory in arenas\n",
            units_size_as((int64_t)heap_state_empty_bytes(state), is_plain).text);
}

// Why owners are what they are, and how far they can be believed.
static void print_note(const struct terminal *terminal, const struct heap_state *state) {
    const char *note = NULL;
    if (!state->is_recorded)
        note = "the process is not recorded: by type or size, since nobody knows the stacks";
    else if (state->is_sampled)
        note = "a sample is recorded: what stacks hold and keep is estimated";
    if (note) terminal_print(terminal, STYLE_DIM, "%s\n", note);
}

static void print_owner(const struct terminal *terminal, const struct heap_state *state,
                        const struct residency_owner *owner, size_t rank, bool is_plain) {
    uint64_t whole = state->residency.kept_bytes;
    terminal_print(terminal, STYLE_DIM, "\n%3zu ", rank);
    terminal_print(terminal, STYLE_STRONG, "%5s",
                   units_percent((int64_t)owner->kept_bytes, (int64_t)whole).text);
    fprintf(terminal->out, " keeps %s%s %s with %s live in %s %s\n",
            state->is_sampled ? "about " : "",
            units_size_as((int64_t)owner->kept_bytes, is_plain).text,
            state->is_core ? "of pages" : "resident",
            units_size_as((int64_t)owner->live_bytes, is_plain).text,
            units_count((int64_t)owner->blocks).text,
            units_noun((int64_t)owner->blocks, "block", "blocks"));
    if (state->is_sampled) return;
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    terminal_print(terminal, STYLE_DIM, "alone on %s of it, shares the rest\n",
                   units_size_as((int64_t)owner->alone_bytes, is_plain).text);
}

static bool print_name(const struct terminal *terminal, const struct heap_about *about,
                       struct frame_list *frames, uint32_t owner, const struct view_options *view) {
    const struct heap_state *state = about->state;
    if (state->is_recorded && owner < state->stack_count) {
        const struct stack *stack = &about->profile->stacks[owner];
        if (!frame_list_fill(frames, about->profile, about->names, stack->node, 0)) return false;
        stacks_print_frames(terminal, frames, stack->cut, view->depth);
        return true;
    }
    const char *type = heap_state_type(state, owner);
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    if (type) {
        char text[FRAME_TEXT_BYTES];
        snprintf(text, sizeof text, "%s", type);
        text_cut(text, terminal->columns - STACKS_NOTE_INDENT);
        terminal_print(terminal, STYLE_NAME, "%s\n", text);
    } else if (state->is_recorded)
        terminal_print(terminal, STYLE_NAME, "[blocks that are not in the recording]\n");
    else
        terminal_print(terminal, STYLE_NAME, "%s\n",
                       heap_class_name(owner, view->is_plain_number).text);
    return true;
}

static bool print_owners(const struct terminal *terminal, const struct heap_about *about,
                         const struct view_options *view) {
    const struct heap_state *state = about->state;
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    size_t count;
    uint32_t *ranking = residency_rank(&state->residency, &count);
    bool is_ok = ranking != NULL;
    size_t shown = view->top && view->top < count ? view->top : count;
    for (size_t i = 0; i < shown && is_ok; i++) {
        print_owner(terminal, state, &state->residency.owners[ranking[i]], i + 1,
                    view->is_plain_number);
        is_ok = print_name(terminal, about, &frames, ranking[i], view);
    }
    if (is_ok && shown < count)
        terminal_print(terminal, STYLE_DIM, "\n%s pages: --top 0\n",
                       units_counted((int64_t)(count - shown), "more keeps", "more keep").text);
    frame_list_free(&frames);
    free(ranking);
    return is_ok;
}

bool pages_screen_print(const struct terminal *terminal, const struct heap_about *about,
                        const struct view_options *view, struct error *error) {
    print_heading(terminal, about, view->is_plain_number);
    print_note(terminal, about->state);
    if (!print_owners(terminal, about, view))
        return error_set(error, "no memory for the list of stacks");
    fputc('\n', terminal->out);
    if (!heap_map_print(terminal, about->state, view, error)) return false;
    heap_print_doubts(terminal, about->state);
    return true;
}
