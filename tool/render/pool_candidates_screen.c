// SPDX-License-Identifier: Apache-2.0
#include "tool/render/pool_candidates_screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/columns.h"
#include "tool/render/stacks.h"

enum { MEMBERS_SHOWN = 4, FRAMES_SHOWN = 4 };

struct screen {
    const struct terminal *terminal;
    const struct profile *profile;
    const struct pool_candidates *found;
    const struct frame_names *names;
    const struct view_options *view;
    struct frame_list frames;
    uint32_t *index;  // profile_stack_indexes
};

// --- in words

const char *pool_kind_name(enum pool_kind kind) {
    static const char *const names[POOL_KINDS] = {[POOL_NONE] = "none",
                                                  [POOL_BUFFER] = "stack_buffer",
                                                  [POOL_ARENA] = "arena",
                                                  [POOL_LIFO] = "lifo_arena",
                                                  [POOL_SLAB] = "slab"};
    return names[kind];
}

void pool_candidate_name(const struct pool_candidate *candidate, bool is_plain, char *out) {
    static const char *const names[POOL_KINDS] = {[POOL_NONE] = "",
                                                  [POOL_BUFFER] = "a buffer on the stack",
                                                  [POOL_ARENA] = "an arena",
                                                  [POOL_LIFO] = "an arena, last in, first out",
                                                  [POOL_SLAB] = "a slab"};
    int64_t pools = (int64_t)candidate->pool_count;
    bool is_slab = candidate->kind == POOL_SLAB;
    snprintf(out, POOL_TEXT_BYTES, "%s%s%s", names[candidate->kind],
             is_slab ? " of blocks of " : "",
             is_slab ? units_size_as((int64_t)candidate->block_bytes, is_plain).text : "");
    size_t used = strlen(out);
    if (candidate->is_shared)
        snprintf(out + used, POOL_TEXT_BYTES - used, ", with a lock: threads share it");
    else if (pools > 1)
        snprintf(out + used, POOL_TEXT_BYTES - used, ", in each of %s threads",
                 units_count(pools).text);
}

void pool_candidate_reason(const struct pool_candidate *candidate, char *out) {
    struct unit_text blocks = units_counted((int64_t)candidate->blocks, "block", "blocks");
    struct unit_text stacks = units_counted((int64_t)candidate->member_count, "stack", "stacks");
    struct unit_text times = units_counted((int64_t)candidate->generations, "time", "times");
    const char *why = "";
    switch (candidate->kind) {
    case POOL_BUFFER:
        why = "each gone soon, and before the next one of its stack";
        break;
    case POOL_LIFO:
        why = "what was allocated last is freed first";
        break;
    case POOL_SLAB:
        why = "all of one size";
        break;
    default:
        why = candidate->generations ? "which die together" : "which are never all freed";
    }
    bool is_repeated = candidate->kind == POOL_ARENA && candidate->generations > 1;
    snprintf(out, POOL_TEXT_BYTES, "%s of %s, %s%s%s", blocks.text, stacks.text, why,
             is_repeated ? ", " : "", is_repeated ? times.text : "");
}

void pool_candidate_gain(const struct pool_candidate *candidate, bool is_plain, char *out) {
    int64_t gone = candidate->bytes_gone;
    struct unit_text bytes = units_size_as(gone < 0 ? -gone : gone, is_plain);
    const char *sense = gone < 0 ? "more" : "less";
    if (candidate->kind == POOL_BUFFER) {
        snprintf(
            out, POOL_TEXT_BYTES, "%s less from malloc, with %s on the stack", bytes.text,
            units_size_as((int64_t)(candidate->kept_bytes / candidate->pool_count), is_plain).text);
        return;
    }
    snprintf(out, POOL_TEXT_BYTES, "%s %s from malloc, with %s of %s for up to %s live", bytes.text,
             sense, units_counted((int64_t)candidate->chunks, "chunk", "chunks").text,
             units_size_as(POOL_CHUNK_BYTES, is_plain).text,
             units_size_as((int64_t)candidate->live_bytes, is_plain).text);
}

// --- stacks

static const struct stack *stack_of(const struct screen *screen,
                                    const struct pool_candidate *candidate, size_t member) {
    uint32_t number = screen->found->members[candidate->first_member + member].stack;
    return &screen->profile->stacks[screen->index[number] - 1];
}

// "f ← g ← h" in one line.
static bool print_short_stack(struct screen *screen, const struct stack *stack) {
    char line[FRAMES_SHOWN * FRAME_TEXT_BYTES] = "";
    size_t index = 0;
    const struct frame *frame;
    if (!frame_list_fill(&screen->frames, screen->profile, screen->names, stack->node, 0))
        return false;
    for (int i = 0; i < FRAMES_SHOWN && (frame = frame_list_next(&screen->frames, &index)); i++) {
        char label[FRAME_TEXT_BYTES];
        size_t used = strlen(line);
        frame_label(frame, label, sizeof label, sizeof label);
        snprintf(line + used, sizeof line - used, "%s%s", i ? " \xe2\x86\x90 " : "", label);
    }
    text_cut(line, screen->terminal->columns - STACKS_NOTE_INDENT - strlen("and "));
    terminal_indent(screen->terminal, STACKS_NOTE_INDENT);
    terminal_print(screen->terminal, STYLE_DIM, "and ");
    terminal_print(screen->terminal, STYLE_NAME, "%s", *line ? line : STACK_NOT_RECORDED);
    fputc('\n', screen->terminal->out);
    return true;
}

static size_t depth_of(const struct tree_node *nodes, uint32_t node) {
    size_t depth = 0;
    for (; node != TREE_ROOT; node = nodes[node].parent) depth++;
    return depth;
}

// The innermost call that the stacks have in common.
static uint32_t common_node(const struct screen *screen, const struct pool_candidate *candidate) {
    const struct tree_node *nodes = screen->profile->tree.nodes.items;
    uint32_t common = stack_of(screen, candidate, 0)->node;
    for (size_t i = 1; i < candidate->member_count && common != TREE_ROOT; i++) {
        uint32_t node = stack_of(screen, candidate, i)->node;
        size_t depth = depth_of(nodes, node), common_depth = depth_of(nodes, common);
        for (; depth > common_depth; depth--) node = nodes[node].parent;
        for (; common_depth > depth; common_depth--) common = nodes[common].parent;
        while (node != common) {
            node = nodes[node].parent;
            common = nodes[common].parent;
        }
    }
    return common;
}

static bool print_common(struct screen *screen, const struct pool_candidate *candidate) {
    size_t index = 0;
    char label[FRAME_TEXT_BYTES];
    uint32_t node = common_node(screen, candidate);
    if (node == TREE_ROOT) return true;
    if (!frame_list_fill(&screen->frames, screen->profile, screen->names, node, 0)) return false;
    const struct frame *frame = frame_list_next(&screen->frames, &index);
    if (!frame || frame->is_hidden) return true;
    frame_label(frame, label, sizeof label, sizeof label);
    terminal_indent(screen->terminal, STACKS_NOTE_INDENT);
    terminal_print(screen->terminal, STYLE_DIM, "all of them in calls of ");
    terminal_print(screen->terminal, STYLE_NAME, "%s\n", label);
    return true;
}

// The stack with the most calls as it is, the next ones in a line each.
static bool print_members(struct screen *screen, const struct pool_candidate *candidate) {
    const struct stack *first = stack_of(screen, candidate, 0);
    size_t count = candidate->member_count, shown = count < MEMBERS_SHOWN ? count : MEMBERS_SHOWN;
    if (!frame_list_fill(&screen->frames, screen->profile, screen->names, first->node, 0))
        return false;
    stacks_print_frames(screen->terminal, &screen->frames, first->cut, screen->view->depth);
    for (size_t i = 1; i < shown; i++)
        if (!print_short_stack(screen, stack_of(screen, candidate, i))) return false;
    if (shown < count) {
        terminal_indent(screen->terminal, STACKS_NOTE_INDENT);
        terminal_print(screen->terminal, STYLE_DIM, "and %s\n",
                       units_counted((int64_t)(count - shown), "more stack", "more stacks").text);
    }
    bool is_repeated = candidate->kind == POOL_ARENA && candidate->generations;
    return count < 2 || !is_repeated || print_common(screen, candidate);
}

// --- the list

static void print_note(const struct screen *screen, const char *text) {
    terminal_indent(screen->terminal, STACKS_NOTE_INDENT);
    terminal_print(screen->terminal, STYLE_DIM, "%s\n", text);
}

static bool print_candidate(struct screen *screen, size_t rank) {
    const struct pool_candidate *candidate = &screen->found->list[rank];
    char text[POOL_TEXT_BYTES];
    bool is_plain = screen->view->is_plain_number;
    terminal_print(screen->terminal, STYLE_DIM, "\n%3zu ", rank + 1);
    terminal_print(
        screen->terminal, STYLE_STRONG, "%5s",
        units_percent((int64_t)candidate->calls_gone, (int64_t)screen->found->calls).text);
    pool_candidate_name(candidate, is_plain, text);
    terminal_print(screen->terminal, STYLE_PLAIN,
                   " %s: ", units_counted((int64_t)candidate->calls_gone, "call", "calls").text);
    terminal_print(screen->terminal, STYLE_STRONG, "%s\n", text);
    pool_candidate_reason(candidate, text);
    print_note(screen, text);
    pool_candidate_gain(candidate, is_plain, text);
    print_note(screen, text);
    return print_members(screen, candidate);
}

static size_t count_shown(const struct screen *screen) {
    const struct pool_candidates *found = screen->found;
    uint64_t least = (uint64_t)view_threshold(screen->view, (int64_t)found->calls);
    size_t shown = found->count;
    if (screen->view->top && screen->view->top < shown) shown = screen->view->top;
    while (shown && found->list[shown - 1].calls_gone < least) shown--;
    return shown;
}

static void print_heading(const struct screen *screen, size_t shown) {
    const struct pool_candidates *found = screen->found;
    terminal_print(
        screen->terminal, STYLE_STRONG, "%s",
        units_counted((int64_t)found->count, "candidate for a pool", "candidates for pools").text);
    if (found->count) {
        terminal_print(screen->terminal, STYLE_PLAIN, ": %s of %s would go",
                       units_percent((int64_t)found->calls_gone, (int64_t)found->calls).text,
                       units_counted((int64_t)found->calls, "call", "calls").text);
        list_print_cut(screen->terminal, screen->view, shown, found->count);
    }
    fputc('\n', screen->terminal->out);
}

// What the answer rests on, and what is not in it.
static void print_assumptions(const struct screen *screen) {
    const struct pool_candidates *found = screen->found;
    struct parts parts = {.terminal = screen->terminal};
    fputc('\n', screen->terminal->out);
    if (found->is_partial)
        parts_add(&parts, STYLE_WARNING,
                  "the log lacks events: what is known of blocks is not certain");
    if (found->unfollowed_stacks)
        parts_add(&parts, STYLE_WARNING, "%s left out, with %s: too many to follow",
                  units_counted((int64_t)found->unfollowed_stacks, "stack is", "stacks are").text,
                  units_counted((int64_t)found->unfollowed_blocks, "block", "blocks").text);
    parts_add(&parts, STYLE_PLAIN, "blocks above %s stay with malloc",
              units_size_as(POOL_BLOCK_MOST, screen->view->is_plain_number).text);
    if (found->resized_stacks)
        parts_add(&parts, STYLE_PLAIN, "%s left out, as realloc works on their blocks",
                  units_counted((int64_t)found->resized_stacks, "stack is", "stacks are").text);
    parts_add(&parts, STYLE_PLAIN, "%s followed at a time, of at most %s",
              units_counted((int64_t)found->followed_blocks, "block", "blocks").text,
              units_count((int64_t)found->followed_limit).text);
    parts_add(&parts, STYLE_PLAIN, "assumed: other runs are like this one");
    parts_add(&parts, STYLE_PLAIN,
              "not known: in which function a block is used last, which a buffer needs");
    parts_end(&parts);
}

bool pool_candidates_print(const struct terminal *terminal, const struct profile *profile,
                           const struct frame_names *names, const struct view_options *view,
                           struct error *error) {
    struct screen screen = {.terminal = terminal,
                            .profile = profile,
                            .found = profile->pool_candidates,
                            .names = names,
                            .view = view,
                            .frames = {.are_all_shown = view->has_all_frames},
                            .index = profile_stack_indexes(profile)};
    bool is_ok = screen.index != NULL;
    size_t shown = count_shown(&screen);
    if (is_ok) print_heading(&screen, shown);
    for (size_t i = 0; is_ok && i < shown; i++) is_ok = print_candidate(&screen, i);
    if (is_ok) print_assumptions(&screen);
    free(screen.index);
    frame_list_free(&screen.frames);
    return is_ok || error_set(error, "no memory for the list of candidates");
}

// --- JSON

static void put_candidate(struct json *json, const struct screen *screen,
                          const struct pool_candidate *candidate) {
    json_open_object(json, NULL);
    json_put_string(json, "kind", pool_kind_name(candidate->kind));
    json_put_uint(json, "calls_gone", candidate->calls_gone);
    json_put_int(json, "bytes_gone", candidate->bytes_gone);
    json_put_uint(json, "blocks", candidate->blocks);
    json_put_uint(json, "block_bytes", candidate->block_bytes);
    json_put_uint(json, "times_emptied", candidate->generations);
    json_put_uint(json, "pools", candidate->pool_count);
    json_put_bool(json, "shared", candidate->is_shared);
    json_put_uint(json, "chunks", candidate->chunks);
    json_put_uint(json, "kept_bytes", candidate->kept_bytes);
    json_put_uint(json, "live_bytes", candidate->live_bytes);
    json_open_array(json, "stacks");
    for (size_t i = 0; i < candidate->member_count; i++) {
        char id[2 * sizeof(uint64_t) + 1];
        snprintf(id, sizeof id, "%016llx", (unsigned long long)stack_of(screen, candidate, i)->id);
        json_put_string(json, NULL, id);
    }
    json_close(json);
    json_close(json);
}

bool pool_candidates_put_json(struct json *json, const struct profile *profile) {
    const struct pool_candidates *found = profile->pool_candidates;
    struct screen screen = {.profile = profile, .found = found};
    if (!found) return true;
    screen.index = profile_stack_indexes(profile);
    if (!screen.index) return false;
    json_open_object(json, "pool_candidates");
    json_put_uint(json, "events", found->events);
    json_put_uint(json, "calls", found->calls);
    json_put_uint(json, "calls_gone", found->calls_gone);
    json_put_uint(json, "chunk_bytes", POOL_CHUNK_BYTES);
    json_put_uint(json, "block_bytes_most", POOL_BLOCK_MOST);
    json_put_uint(json, "followed_blocks", found->followed_blocks);
    json_put_uint(json, "followed_limit", found->followed_limit);
    json_put_uint(json, "unfollowed_blocks", found->unfollowed_blocks);
    json_put_uint(json, "unfollowed_stacks", found->unfollowed_stacks);
    json_put_uint(json, "resized_stacks", found->resized_stacks);
    json_put_bool(json, "complete_log", !found->is_partial);
    json_open_array(json, "candidates");
    for (size_t i = 0; i < found->count; i++) put_candidate(json, &screen, &found->list[i]);
    json_close(json);
    json_close(json);
    free(screen.index);
    return true;
}
