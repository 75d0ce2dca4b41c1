// SPDX-License-Identifier: Apache-2.0
// The call tree as an answer: a row a call, each below its caller, without recursion, since stacks
// may be as deep as they like.
#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"
#include "tool/render/calls.h"
#include "tool/render/tree.h"
#include "tool/render/trust.h"

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

// A call whose children are being told: those that are worth a row, then the sum of the others.
struct level {
    uint32_t next;
    size_t shown, told, left_out;
    struct measured rest;
    int64_t rest_calls;
};

struct call_list {
    struct calls calls;
    ARRAY(struct level) levels;
    int64_t threshold;
    bool is_begun;
    char name[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
    struct answer_column columns[TREE_COLUMNS];
};

// The children of a call are in order of value.
static struct level level_of(const struct answer *answer, const struct call_list *list,
                             const struct call *call) {
    const struct call *nodes = list->calls.nodes.items;
    struct level level = {.next = call->first_child};
    for (uint32_t at = call->first_child; at; at = nodes[at].next_sibling) {
        bool has_room = !answer->options->top || level.shown < answer->options->top;
        if (has_room && nodes[at].value >= list->threshold) {
            level.shown++;
            continue;
        }
        measured_add(&level.rest, call_measured(&list->calls, &nodes[at]));
        level.rest_calls = figures_add(level.rest_calls, nodes[at].calls);
        level.left_out++;
    }
    return level;
}

// Returns true if a screen has a line for what is left out.
static bool has_rest(const struct call_list *list, const struct level *level) {
    return level->shown && level->left_out && level->rest.value >= list->threshold;
}

static enum answer_branch branch_of(const struct call_list *list, const struct level *level) {
    if (level->told < level->shown) return ANSWER_INNER;
    if (level->shown == 1 && level->rest.value < list->threshold) return ANSWER_ONLY;
    return has_rest(list, level) ? ANSWER_INNER : ANSWER_LAST;
}

static void set_figures(struct answer_row *row, struct measured measured, int64_t calls) {
    answer_set_measured(row, TREE_SHARE, measured);
    answer_set_measured(row, TREE_VALUE, measured);
    answer_set(row, TREE_CALLS, calls);
}

static void tell_call(struct call_list *list, const struct call *call, struct answer_row *row) {
    const struct frame *frame = call->frame;
    snprintf(list->name, sizeof list->name, "%s", STACK_NOT_RECORDED);
    if (frame) frame_label(frame, list->name, sizeof list->name, sizeof list->name);
    call_location(call, list->location, sizeof list->location);
    set_figures(row, call_measured(&list->calls, call), call->calls);
    answer_set_text(row, TREE_NAME, list->name);
    if (*list->location) answer_set_text(row, TREE_LOCATION, list->location);
    row->is_dim = !frame;
    if (!frame) return;
    row->is_address = !frame->function;
    if (frame->function) answer_set_text(row, TREE_FUNCTION, frame->function);
    if (frame->file) answer_set_text(row, TREE_FILE, frame->file);
    if (frame->line && !call->has_more_lines) answer_set(row, TREE_LINE, frame->line);
    if (frame->module) answer_set_text(row, TREE_MODULE, frame->module);
}

static void tell_rest(struct call_list *list, const struct level *level, bool is_screen,
                      struct answer_row *row) {
    snprintf(list->name, sizeof list->name, "[%zu more]", level->left_out);
    if (is_screen)
        snprintf(list->name, sizeof list->name, "%s",
                 units_counted((int64_t)level->left_out, "other", "others").text);
    set_figures(row, level->rest, level->rest_calls);
    answer_set_text(row, TREE_NAME, list->name);
    answer_set(row, TREE_LEFT_OUT, (int64_t)level->left_out);
    row->branch = ANSWER_LAST;
    row->is_dim = true;
}

// Tells the whole, which has no row of its own but on a screen.
static void tell_stem(const struct answer *answer, struct call_list *list, struct answer_row *row) {
    const struct call *root = &list->calls.nodes.items[CALLS_ROOT];
    const bool is_of_owners = recording_is_of_owners(answer->profile->recording);
    program_name(answer->profile, list->name, sizeof list->name);
    snprintf(list->location, sizeof list->location, ", %s%s",
             is_of_owners ? "by who keeps it" : measure_about(answer->options->by)->snapshot,
             answer->options->is_inverted ? ", by allocating function" : "");
    set_figures(row, call_measured(&list->calls, root), root->calls);
    answer_set_text(row, TREE_NAME, list->name);
    answer_set_text(row, TREE_LOCATION, list->location);
    row->branch = ANSWER_STEM;
}

static bool next_call(struct answer *answer, struct answer_row *row) {
    struct call_list *list = answer->state;
    if (!list->is_begun && answer->is_screen) {
        list->is_begun = true;
        tell_stem(answer, list, row);
        return true;
    }
    while (list->levels.count) {
        struct level *level = &list->levels.items[list->levels.count - 1];
        row->level = list->levels.count - 1;
        if (level->told < level->shown) {
            const struct call *call = &list->calls.nodes.items[level->next];
            level->next = call->next_sibling;
            level->told++;
            tell_call(list, call, row);
            row->branch = branch_of(list, level);
            level = array_push(&list->levels);
            if (level) *level = level_of(answer, list, call);
            answer->is_failed = !level;
            return level != NULL;
        }
        const struct level done = *level;
        list->levels.count--;
        if (answer->is_screen ? !has_rest(list, &done) : !done.left_out) continue;
        tell_rest(list, &done, answer->is_screen, row);
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

static void set_columns(struct call_list *list, enum measure by, bool has_calls) {
    const struct answer_column columns[TREE_COLUMNS] = {
        [TREE_SHARE] = answer_share_column,
        [TREE_CALLS] = ANSWER_FIGURES("calls", "calls", ANSWER_COUNT, CALLS_COLUMNS,
                                      .is_left_out = !has_calls),
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
    const struct measure_row *about = measure_about(view->by);
    const bool has_blocks = about->is_bytes && measure_is_known(about->in_blocks, profile);
    struct call_list *list = calloc(1, sizeof *list);
    if (!list) return error_set(error, "no memory for the call tree");
    struct level *root = array_push(&list->levels);
    if (!root || !calls_build(&list->calls, profile, names, view, error)) {
        close_calls(list);
        return error_set(error, "no memory for the call tree");
    }
    set_columns(list, view->by, profile_has_calls(profile));
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .measure = measure_name(view->by),
                              .columns = list->columns,
                              .column_count = TREE_COLUMNS,
                              .gap = 1,
                              .has_levels = true,
                              .are_branches = true,
                              .hidden_count = list->calls.hidden_count,
                              .noun = has_blocks ? about->noun : NULL,
                              .whole = measure_total(view->by, profile).value,
                              .next_row = next_call,
                              .close = close_calls,
                              .state = list};
    list->threshold = view_threshold(view, answer->whole);
    *root = level_of(answer, list, &list->calls.nodes.items[CALLS_ROOT]);
    answer->shown = root->shown;
    answer->count = root->shown + root->left_out;
    snprintf(answer->title, sizeof answer->title, "calls%s, %s",
             view->is_inverted ? " from allocating functions outwards" : "", about->snapshot);
    return true;
}
