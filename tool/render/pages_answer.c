// SPDX-License-Identifier: Apache-2.0
// Who keeps the pages of a heap resident, as rows.
#include <stdio.h>
#include <stdlib.h>

#include "tool/render/heap_screen.h"

enum page_column {
    PAGES_SHARE,
    PAGES_KEPT,
    PAGES_ALONE,
    PAGES_LIVE,
    PAGES_BLOCKS,
    PAGES_NAME,
    PAGES_COLUMNS
};

static const struct answer_column columns[PAGES_COLUMNS] = {
    [PAGES_SHARE] = {.key = "share", .unit = ANSWER_SHARE, .place = ANSWER_FIGURE},
    [PAGES_KEPT] = ANSWER_FIGURES("kept_bytes", "keeps", ANSWER_BYTES, 0),
    [PAGES_ALONE] = ANSWER_FIGURES("alone_bytes", "alone on", ANSWER_BYTES, 0),
    [PAGES_LIVE] = ANSWER_FIGURES("live_bytes", "live", ANSWER_BYTES, 0),
    [PAGES_BLOCKS] = ANSWER_FIGURES("live_blocks", "blocks", ANSWER_COUNT, 0),
    [PAGES_NAME] = ANSWER_NAMES("name", ANSWER_TAIL, .head = "allocated by")};

struct page_list {
    const struct heap_about *about;
    uint32_t *ranking;
    size_t at;
    struct frame_list frames;
    char name[2 * FRAME_TEXT_BYTES];
};

// The function of the program's own that allocated, as other rows of blocks have it.
static void name_stack(struct page_list *list) {
    char function[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
    const struct frame *frame = frame_list_first_own(&list->frames);
    snprintf(list->name, sizeof list->name, "%s", STACK_NOT_RECORDED);
    if (!frame) return;
    frame_label(frame, function, sizeof function, sizeof function);
    frame_location(frame, location, sizeof location);
    snprintf(list->name, sizeof list->name, "%s%s%s", function, location[0] ? "  " : "", location);
}

// Names an owner; false without memory.
static bool name_owner(struct page_list *list, uint32_t owner, struct answer_row *row) {
    const struct heap_about *about = list->about;
    const char *type = heap_state_type(about->state, owner);
    if (about->state->is_recorded && owner < about->state->stack_count) {
        const struct stack *stack = &about->profile->stacks[owner];
        if (!frame_list_fill(&list->frames, about->profile, about->names, stack->node, 0))
            return false;
        row->frames = &list->frames;
        name_stack(list);
    } else if (type) {
        snprintf(list->name, sizeof list->name, "%s", type);
    } else if (about->state->is_recorded) {
        snprintf(list->name, sizeof list->name, "[blocks that are not in the recording]");
    } else {
        snprintf(list->name, sizeof list->name, "%s", heap_class_name(owner, false).text);
    }
    return true;
}

static bool next_owner(struct answer *answer, struct answer_row *row) {
    struct page_list *list = answer->state;
    if (list->at == answer->shown) return false;
    const uint32_t owner = list->ranking[list->at++];
    const struct heap_state *state = list->about->state;
    const struct residency_owner *values = &state->residency.owners[owner];
    answer->is_failed = !name_owner(list, owner, row);
    answer_set(row, PAGES_SHARE, (int64_t)values->kept_bytes);
    answer_set(row, PAGES_KEPT, (int64_t)values->kept_bytes);
    if (state->is_sampled)
        answer_set_unknown(row, PAGES_ALONE);
    else
        answer_set(row, PAGES_ALONE, (int64_t)values->alone_bytes);
    answer_set(row, PAGES_LIVE, (int64_t)values->live_bytes);
    answer_set(row, PAGES_BLOCKS, (int64_t)values->blocks);
    answer_set_text(row, PAGES_NAME, list->name);
    return !answer->is_failed;
}

static void close_list(void *state) {
    struct page_list *list = state;
    frame_list_free(&list->frames);
    free(list->ranking);
    free(list);
}

bool pages_answer(struct answer *answer, const struct heap_about *about,
                  const struct view_options *view, struct error *error) {
    const struct residency *residency = &about->state->residency;
    struct page_list *list = calloc(1, sizeof *list);
    *answer = (struct answer){.options = view,
                              .columns = columns,
                              .column_count = PAGES_COLUMNS,
                              .has_frames = about->state->is_recorded,
                              .whole = (int64_t)residency->kept_bytes,
                              .next_row = next_owner,
                              .close = close_list,
                              .state = list};
    if (list) list->ranking = residency_rank(residency, &answer->count);
    if (!list || !list->ranking) {
        free(list);
        return error_set(error, "no memory for the list of stacks");
    }
    list->about = about;
    answer->shown = answer_cut(view->top, answer->count);
    snprintf(answer->title, sizeof answer->title,
             "%s of the heap resident, %s live on them; %s on pages with live blocks",
             units_size((int64_t)residency->resident_bytes).text,
             units_size((int64_t)residency->live_bytes).text,
             units_size((int64_t)residency->kept_bytes).text);
    if (about->state->is_sampled)
        answer_note(answer, "a sample is recorded: what stacks hold and keep is estimated");
    answer_note(answer, "%s on pages without live blocks: free memory in arenas",
                units_size((int64_t)heap_state_empty_bytes(about->state)).text);
    return true;
}
