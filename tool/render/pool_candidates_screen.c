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

struct pool_rows {
    const struct profile *profile;
    const struct pool_candidates *found;
    const struct frame_names *names;
    const struct view_options *view;
    struct frame_list frames, further;
    uint32_t *index;  // profile_stack_indexes
    bool is_failed;
    size_t at, member;  // of a candidate, which stack comes next
    char name[POOL_TEXT_BYTES], reason[POOL_TEXT_BYTES], gain[POOL_TEXT_BYTES];
    char id[2 * sizeof(uint64_t) + 1];
};

static const char *pool_kind_name(enum pool_kind kind) {
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

static const struct stack *stack_of(const struct pool_rows *rows,
                                    const struct pool_candidate *candidate, size_t member) {
    uint32_t number = rows->found->members[candidate->first_member + member].stack;
    return &rows->profile->stacks[rows->index[number] - 1];
}

// "f ← g ← h" in one line.
static bool print_short_stack(const struct terminal *terminal, struct pool_rows *rows,
                              const struct stack *stack) {
    char line[FRAMES_SHOWN * FRAME_TEXT_BYTES] = "";
    size_t index = 0;
    const struct frame *frame;
    if (!frame_list_fill(&rows->further, rows->profile, rows->names, stack->node, 0)) return false;
    for (int i = 0; i < FRAMES_SHOWN && (frame = frame_list_next(&rows->further, &index)); i++) {
        char label[FRAME_TEXT_BYTES];
        size_t used = strlen(line);
        frame_label(frame, label, sizeof label, sizeof label);
        snprintf(line + used, sizeof line - used, "%s%s", i ? " \xe2\x86\x90 " : "", label);
    }
    text_cut(line, terminal->columns - STACKS_NOTE_INDENT - strlen("and "));
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    terminal_print(terminal, STYLE_DIM, "and ");
    terminal_print(terminal, STYLE_NAME, "%s", *line ? line : STACK_NOT_RECORDED);
    fputc('\n', terminal->out);
    return true;
}

static size_t depth_of(const struct tree_node *nodes, uint32_t node) {
    size_t depth = 0;
    for (; node != TREE_ROOT; node = nodes[node].parent) depth++;
    return depth;
}

// The innermost call that the stacks have in common.
static uint32_t common_node(const struct pool_rows *rows, const struct pool_candidate *candidate) {
    const struct tree_node *nodes = rows->profile->tree.nodes.items;
    uint32_t common = stack_of(rows, candidate, 0)->node;
    for (size_t i = 1; i < candidate->member_count && common != TREE_ROOT; i++) {
        uint32_t node = stack_of(rows, candidate, i)->node;
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

static bool print_common(const struct terminal *terminal, struct pool_rows *rows,
                         const struct pool_candidate *candidate) {
    size_t index = 0;
    char label[FRAME_TEXT_BYTES];
    uint32_t node = common_node(rows, candidate);
    if (node == TREE_ROOT) return true;
    if (!frame_list_fill(&rows->further, rows->profile, rows->names, node, 0)) return false;
    const struct frame *frame = frame_list_next(&rows->further, &index);
    if (!frame || frame->is_hidden) return true;
    frame_label(frame, label, sizeof label, sizeof label);
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    terminal_print(terminal, STYLE_DIM, "all of them in calls of ");
    terminal_print(terminal, STYLE_NAME, "%s\n", label);
    return true;
}

// The stack with the most calls is there as it is: prints the next ones in a line each.
static bool print_members(const struct terminal *terminal, struct pool_rows *rows,
                          const struct pool_candidate *candidate) {
    size_t count = candidate->member_count, shown = count < MEMBERS_SHOWN ? count : MEMBERS_SHOWN;
    for (size_t i = 1; i < shown; i++)
        if (!print_short_stack(terminal, rows, stack_of(rows, candidate, i))) return false;
    if (shown < count) {
        terminal_indent(terminal, STACKS_NOTE_INDENT);
        terminal_print(terminal, STYLE_DIM, "and %s\n",
                       units_counted((int64_t)(count - shown), "more stack", "more stacks").text);
    }
    bool is_repeated = candidate->kind == POOL_ARENA && candidate->generations;
    return count < 2 || !is_repeated || print_common(terminal, rows, candidate);
}

static void print_note(const struct terminal *terminal, const char *text) {
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    terminal_print(terminal, STYLE_DIM, "%s\n", text);
}

static void say_candidate(const struct terminal *terminal, struct answer *answer,
                          enum answer_say where) {
    struct pool_rows *rows = answer->state;
    const struct pool_candidate *candidate = &rows->found->list[rows->at - 1];
    if (where == ANSWER_SAY_FIGURES) {
        terminal_print(terminal, STYLE_STRONG, "%5s",
                       units_percent((int64_t)candidate->calls_gone, answer->whole).text);
        fprintf(terminal->out,
                " %s: ", units_counted((int64_t)candidate->calls_gone, "call", "calls").text);
        terminal_print(terminal, STYLE_STRONG, "%s\n", rows->name);
        print_note(terminal, rows->reason);
        print_note(terminal, rows->gain);
    }
    if (where == ANSWER_SAY_BELOW) rows->is_failed |= !print_members(terminal, rows, candidate);
}

static size_t count_shown(const struct pool_rows *rows) {
    const struct pool_candidates *found = rows->found;
    uint64_t least = (uint64_t)view_threshold(rows->view, (int64_t)found->calls);
    size_t shown = found->count;
    if (rows->view->top && rows->view->top < shown) shown = rows->view->top;
    while (shown && found->list[shown - 1].calls_gone < least) shown--;
    return shown;
}

static void heading_text(const struct pool_candidates *found, char *text, size_t size) {
    int used = snprintf(
        text, size, "%s",
        units_counted((int64_t)found->count, "candidate for a pool", "candidates for pools").text);
    if (found->count)
        snprintf(text + used, size - (size_t)used, ": %s of %s would go",
                 units_percent((int64_t)found->calls_gone, (int64_t)found->calls).text,
                 units_counted((int64_t)found->calls, "call", "calls").text);
}

enum pool_column {
    POOL_SHARE,
    POOL_CALLS,
    POOL_NAME,
    POOL_REASON,
    POOL_GAIN,
    POOL_KIND,
    POOL_BYTES_GONE,
    POOL_BLOCKS,
    POOL_BLOCK_BYTES,
    POOL_TIMES,
    POOL_COUNT,
    POOL_SHARED,
    POOL_CHUNKS,
    POOL_KEPT,
    POOL_LIVE,
    POOL_STACKS,
    POOL_ID,
    POOL_COLUMNS
};

static const struct answer_column pool_columns[POOL_COLUMNS] = {
    [POOL_SHARE] = {.key = "share", .unit = ANSWER_SHARE, .place = ANSWER_FIGURE},
    [POOL_CALLS] = ANSWER_FIGURES("calls_gone", "calls", ANSWER_COUNT, 0),
    [POOL_NAME] = ANSWER_NAMES("pool", ANSWER_TAIL, .head = "pool"),
    [POOL_REASON] = ANSWER_TAILS("reason", "", NULL, .head = "why"),
    [POOL_GAIN] = ANSWER_TAILS("gain", "", NULL, .head = "what it saves"),
    [POOL_KIND] = ANSWER_DATA("kind", ANSWER_TEXT),
    [POOL_BYTES_GONE] = ANSWER_DATA("bytes_gone", ANSWER_BYTES),
    [POOL_BLOCKS] = ANSWER_DATA("blocks", ANSWER_COUNT),
    [POOL_BLOCK_BYTES] = ANSWER_DATA("block_bytes", ANSWER_BYTES),
    [POOL_TIMES] = ANSWER_DATA("times_emptied", ANSWER_COUNT),
    [POOL_COUNT] = ANSWER_DATA("pools", ANSWER_COUNT),
    [POOL_SHARED] = ANSWER_DATA("shared", ANSWER_BOOL),
    [POOL_CHUNKS] = ANSWER_DATA("chunks", ANSWER_COUNT),
    [POOL_KEPT] = ANSWER_DATA("kept_bytes", ANSWER_BYTES),
    [POOL_LIVE] = ANSWER_DATA("live_bytes", ANSWER_BYTES),
    [POOL_STACKS] = ANSWER_DATA("stacks", ANSWER_COUNT),
    [POOL_ID] = ANSWER_DATA("id", ANSWER_TEXT)};

static void set_candidate(struct pool_rows *rows, const struct pool_candidate *candidate,
                          bool is_plain, struct answer_row *row) {
    pool_candidate_name(candidate, is_plain, rows->name);
    pool_candidate_reason(candidate, rows->reason);
    pool_candidate_gain(candidate, is_plain, rows->gain);
    answer_set(row, POOL_SHARE, (int64_t)candidate->calls_gone);
    answer_set(row, POOL_CALLS, (int64_t)candidate->calls_gone);
    answer_set_text(row, POOL_NAME, rows->name);
    answer_set_text(row, POOL_REASON, rows->reason);
    answer_set_text(row, POOL_GAIN, rows->gain);
    answer_set_text(row, POOL_KIND, pool_kind_name(candidate->kind));
    answer_set(row, POOL_BYTES_GONE, candidate->bytes_gone);
    answer_set(row, POOL_BLOCKS, (int64_t)candidate->blocks);
    answer_set(row, POOL_BLOCK_BYTES, (int64_t)candidate->block_bytes);
    answer_set(row, POOL_TIMES, (int64_t)candidate->generations);
    answer_set(row, POOL_COUNT, (int64_t)candidate->pool_count);
    answer_set(row, POOL_SHARED, candidate->is_shared);
    answer_set(row, POOL_CHUNKS, (int64_t)candidate->chunks);
    answer_set(row, POOL_KEPT, (int64_t)candidate->kept_bytes);
    answer_set(row, POOL_LIVE, (int64_t)candidate->live_bytes);
    answer_set(row, POOL_STACKS, (int64_t)candidate->member_count);
}

// A candidate with the stack that has the most calls; below it, one by one, the others.
static bool next_pool(struct answer *answer, struct answer_row *row) {
    struct pool_rows *rows = answer->state;
    answer->is_failed = rows->is_failed;
    if (rows->is_failed || rows->at == answer->shown) return false;
    const struct pool_candidate *candidate = &rows->found->list[rows->at];
    const struct stack *stack = stack_of(rows, candidate, rows->member);
    row->level = rows->member > 0;
    if (row->level)
        row->use = ANSWER_FOR_PROGRAMS;
    else
        set_candidate(rows, candidate, answer->options->is_plain_number, row);
    snprintf(rows->id, sizeof rows->id, "%016llx", (unsigned long long)stack->id);
    answer_set_text(row, POOL_ID, rows->id);
    row->frames = &rows->frames;
    row->cut = stack->cut;
    answer->is_failed = !frame_list_fill(&rows->frames, rows->profile, rows->names, stack->node, 0);
    if (answer->is_screen || ++rows->member == candidate->member_count) {
        rows->member = 0;
        rows->at++;
    }
    return !answer->is_failed;
}

static void close_pools(void *state) {
    struct pool_rows *rows = state;
    free(rows->index);
    frame_list_free(&rows->frames);
    frame_list_free(&rows->further);
    free(rows);
}

static void tell_log(const struct pool_candidates *found, struct answer *answer) {
    answer_fact(answer, "events", ANSWER_COUNT, (int64_t)found->events);
    answer_fact(answer, "calls", ANSWER_COUNT, (int64_t)found->calls);
    answer_fact(answer, "calls_gone", ANSWER_COUNT, (int64_t)found->calls_gone);
    answer_fact(answer, "chunk_bytes", ANSWER_BYTES, POOL_CHUNK_BYTES);
    answer_fact(answer, "block_bytes_most", ANSWER_BYTES, POOL_BLOCK_MOST);
    answer_fact(answer, "followed_blocks", ANSWER_COUNT, (int64_t)found->followed_blocks);
    answer_fact(answer, "followed_limit", ANSWER_COUNT, (int64_t)found->followed_limit);
    answer_fact(answer, "unfollowed_blocks", ANSWER_COUNT, (int64_t)found->unfollowed_blocks);
    answer_fact(answer, "unfollowed_stacks", ANSWER_COUNT, (int64_t)found->unfollowed_stacks);
    answer_fact(answer, "resized_stacks", ANSWER_COUNT, (int64_t)found->resized_stacks);
    answer_fact(answer, "complete_log", ANSWER_BOOL, !found->is_partial);
}

// Says what the answer rests on, and what is not in it.
static void tell_assumptions(const struct pool_candidates *found, struct answer *answer) {
    const enum answer_readers people = ANSWER_PEOPLE;
    if (found->is_partial)
        answer_part(answer, people, STYLE_WARNING,
                    "the log lacks events: what is known of blocks is not certain");
    if (found->unfollowed_stacks)
        answer_part(answer, people, STYLE_WARNING, "%s left out, with %s: too many to follow",
                    units_counted((int64_t)found->unfollowed_stacks, "stack is", "stacks are").text,
                    units_counted((int64_t)found->unfollowed_blocks, "block", "blocks").text);
    answer_part(answer, people, STYLE_PLAIN, "blocks above %s stay with malloc",
                units_size_as(POOL_BLOCK_MOST, answer->options->is_plain_number).text);
    if (found->resized_stacks)
        answer_part(answer, people, STYLE_PLAIN, "%s left out, as realloc works on their blocks",
                    units_counted((int64_t)found->resized_stacks, "stack is", "stacks are").text);
    answer_part(answer, people, STYLE_PLAIN, "%s followed at a time, of at most %s",
                units_counted((int64_t)found->followed_blocks, "block", "blocks").text,
                units_count((int64_t)found->followed_limit).text);
    answer_part(answer, ANSWER_EVERYONE, STYLE_PLAIN, "assumed: other runs are like this one");
    answer_part(answer, ANSWER_EVERYONE, STYLE_PLAIN,
                "not known: in which function a block is used last, which a buffer needs");
}

bool pool_candidates_answer(struct answer *answer, const struct profile *profile,
                            const struct frame_names *names, const struct view_options *view,
                            struct error *error) {
    const struct pool_candidates *found = profile->pool_candidates;
    struct pool_rows *rows = calloc(1, sizeof *rows);
    if (rows) rows->index = profile_stack_indexes(profile);
    if (!rows || !rows->index) {
        free(rows);
        return error_set(error, "no memory for the list of candidates");
    }
    rows->profile = profile;
    rows->found = found;
    rows->names = names;
    rows->view = view;
    rows->frames.are_all_shown = rows->further.are_all_shown = view->has_all_frames;
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .columns = pool_columns,
                              .column_count = POOL_COLUMNS,
                              .has_frames = true,
                              .has_levels = true,
                              .whole = (int64_t)found->calls,
                              .shown = count_shown(rows),
                              .count = found->count,
                              .are_blocks = true,
                              .say = say_candidate,
                              .next_row = next_pool,
                              .close = close_pools,
                              .state = rows};
    heading_text(found, answer->title, sizeof answer->title);
    tell_log(found, answer);
    tell_assumptions(found, answer);
    return true;
}
