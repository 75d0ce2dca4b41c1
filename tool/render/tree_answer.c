// SPDX-License-Identifier: Apache-2.0
// The call tree as an answer: a row a call, each below its caller, without recursion, since stacks
// may be as deep as they like.
#include <stdlib.h>
#include <string.h>

#include "tool/render/calls.h"
#include "tool/render/tree.h"

enum { VALUE_COLUMNS = 11, CALLS_COLUMNS = 12 };

enum tree_column {
    TREE_SHARE,
    TREE_VALUE,
    TREE_CALLS,
    TREE_NAME,
    TREE_LOCATION,
    TREE_LEFT_OUT,
    TREE_FUNCTION,
    TREE_FILE,
    TREE_LINE,
    TREE_MODULE,
    TREE_COLUMNS
};

// A call whose children are being told, and what is left out of them.
struct level {
    uint32_t next;
    size_t shown, left_out;
    struct measured rest;
    int64_t rest_calls;
};

struct call_list {
    struct calls calls;
    ARRAY(struct level) levels;
    int64_t threshold;
    char name[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
    struct answer_column columns[TREE_COLUMNS];
};

// The next child of a level that is worth a row; others go into its rest. 0: there is none.
static uint32_t next_child(const struct answer *answer, const struct call_list *list,
                           struct level *level) {
    const struct call *nodes = list->calls.nodes.items;
    for (uint32_t at = level->next; at; at = nodes[at].next_sibling) {
        bool has_room = !answer->options->top || level->shown < answer->options->top;
        level->next = nodes[at].next_sibling;
        if (has_room && nodes[at].value >= list->threshold) {
            level->shown++;
            return at;
        }
        measured_add(&level->rest, call_measured(&list->calls, &nodes[at]));
        level->rest_calls = figures_add(level->rest_calls, nodes[at].calls);
        level->left_out++;
    }
    return 0;
}

static void tell_call(struct call_list *list, const struct call *call, struct answer_row *row) {
    const struct frame *frame = call->frame;
    struct measured measured = call_measured(&list->calls, call);
    snprintf(list->name, sizeof list->name, "%s", STACK_NOT_RECORDED);
    if (frame) frame_label(frame, list->name, sizeof list->name, sizeof list->name);
    call_location(call, list->location, sizeof list->location);
    answer_set_measured(row, TREE_SHARE, measured);
    answer_set_measured(row, TREE_VALUE, measured);
    answer_set(row, TREE_CALLS, call->calls);
    answer_set_text(row, TREE_NAME, list->name);
    if (*list->location) answer_set_text(row, TREE_LOCATION, list->location);
    if (!frame) return;
    if (frame->function) answer_set_text(row, TREE_FUNCTION, frame->function);
    if (frame->file) answer_set_text(row, TREE_FILE, frame->file);
    if (frame->line && !call->has_more_lines) answer_set(row, TREE_LINE, frame->line);
    if (frame->module) answer_set_text(row, TREE_MODULE, frame->module);
}

static void tell_rest(struct call_list *list, const struct level *level, struct answer_row *row) {
    snprintf(list->name, sizeof list->name, "[%zu more]", level->left_out);
    answer_set_measured(row, TREE_SHARE, level->rest);
    answer_set_measured(row, TREE_VALUE, level->rest);
    answer_set(row, TREE_CALLS, level->rest_calls);
    answer_set_text(row, TREE_NAME, list->name);
    answer_set(row, TREE_LEFT_OUT, (int64_t)level->left_out);
}

static bool next_call(struct answer *answer, struct answer_row *row) {
    struct call_list *list = answer->state;
    while (list->levels.count) {
        struct level *level = &list->levels.items[list->levels.count - 1];
        uint32_t at = next_child(answer, list, level);
        row->level = list->levels.count - 1;
        if (at) {
            const struct call *call = &list->calls.nodes.items[at];
            tell_call(list, call, row);
            level = array_push(&list->levels);
            if (level) *level = (struct level){.next = call->first_child};
            answer->is_failed = !level;
            return level != NULL;
        }
        const struct level done = *level;
        list->levels.count--;
        if (!done.left_out) continue;
        tell_rest(list, &done, row);
        return true;
    }
    return false;
}

static void close_calls(void *state) {
    struct call_list *list = state;
    array_free(&list->levels);
    calls_free(&list->calls);
    free(list);
}

static void set_columns(struct call_list *list, enum measure by) {
    const struct answer_column columns[TREE_COLUMNS] = {
        [TREE_SHARE] = answer_share_column,
        [TREE_CALLS] = ANSWER_FIGURES("calls", "calls", ANSWER_COUNT, CALLS_COLUMNS),
        [TREE_NAME] = ANSWER_NAMES("name", ANSWER_TAIL_NAME, .head = "function"),
        [TREE_LOCATION] = ANSWER_TAILS("location", " ", NULL, .head = "location"),
        [TREE_LEFT_OUT] = ANSWER_DATA("left_out", ANSWER_COUNT),
        [TREE_FUNCTION] = ANSWER_DATA("function", ANSWER_TEXT),
        [TREE_FILE] = ANSWER_DATA("file", ANSWER_TEXT),
        [TREE_LINE] = ANSWER_DATA("line", ANSWER_NUMBER),
        [TREE_MODULE] = ANSWER_DATA("module", ANSWER_TEXT)};
    memcpy(list->columns, columns, sizeof columns);
    list->columns[TREE_VALUE] = answer_value_column(by, VALUE_COLUMNS);
    list->columns[TREE_VALUE].is_estimate = true;
}

bool tree_answer(struct answer *answer, const struct profile *profile,
                 const struct frame_names *names, const struct view_options *view,
                 struct error *error) {
    struct call_list *list = calloc(1, sizeof *list);
    if (!list) return error_set(error, "no memory for the call tree");
    struct level *root = array_push(&list->levels);
    if (!root || !calls_build(&list->calls, profile, names, view, error)) {
        close_calls(list);
        return error_set(error, "no memory for the call tree");
    }
    const struct call *nodes = list->calls.nodes.items;
    *root = (struct level){.next = nodes[CALLS_ROOT].first_child};
    set_columns(list, view->by);
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .measure = measure_name(view->by),
                              .columns = list->columns,
                              .column_count = TREE_COLUMNS,
                              .gap = 1,
                              .has_levels = true,
                              .whole = measure_total(view->by, profile).value,
                              .next_row = next_call,
                              .close = close_calls,
                              .state = list};
    list->threshold = view_threshold(view, answer->whole);
    for (uint32_t at = nodes[CALLS_ROOT].first_child; at; at = nodes[at].next_sibling) {
        bool has_room = !view->top || answer->shown < view->top;
        answer->count++;
        answer->shown += has_room && nodes[at].value >= list->threshold;
    }
    snprintf(answer->title, sizeof answer->title, "calls%s, %s",
             view->is_inverted ? " from allocating functions outwards" : "",
             measure_about(view->by)->snapshot);
    return true;
}
