// SPDX-License-Identifier: Apache-2.0
// Two sets side by side. Only stacks that differ are spelled: they are few, and of two builds of a
// compiler each set has ten thousands.
#include <stdlib.h>
#include <string.h>

#include "tool/history/store_stacks.h"

void store_places_free(struct store_places *places) {
    for (size_t i = 0; i < places->list.count; i++) free(places->list.items[i].place);
    array_free(&places->list);
}

// A stack of a set, with its value in one measure.
struct side_stack {
    int64_t stack, value, place;
    uint32_t frame;
};
struct side {
    ARRAY(struct side_stack) list;  // by stack
};

static bool read_side(struct store *store, int64_t set, enum history_measure measure,
                      struct side *side, struct error *error) {
    enum { FIRST_VALUE = 3 };
    bool is_ok = store_query(store,
                             SET_ROWS "SELECT stack, place, frame, peak, exit, calls, bytes, "
                                      "temporary FROM found WHERE nth = 1 ORDER BY stack",
                             error) &&
                 store_bind_int(store, set);
    while (is_ok && store_next(store, &is_ok, error)) {
        struct side_stack *slot = array_push(&side->list);
        if (!slot) return error_set(error, "no memory for the stacks");
        *slot =
            (struct side_stack){store_int(store, 0), store_int(store, FIRST_VALUE + (int)measure),
                                store_int(store, 1), (uint32_t)store_int(store, 2)};
    }
    return is_ok;
}

// "src/parser.c:120"; NULL: not known.
static bool read_place(struct store *store, int64_t number, char **place, struct error *error) {
    bool is_ok = true;
    *place = NULL;
    if (!number) return true;
    if (!store_query(store, "SELECT place FROM places WHERE id = ?", error) ||
        !store_bind_int(store, number))
        return false;
    if (store_next(store, &is_ok, error)) *place = store_text(store, 0);
    return is_ok;
}

static bool add_stack(struct store *store, const struct side_stack *stack, size_t recording,
                      enum history_measure measure, struct diff *diff, struct store_places *places,
                      struct error *error) {
    const struct measured measured = {.value = stack->value,
                                      .is_in_blocks = !history_measures[measure].is_bytes};
    char *frames = stack_spell(store, stack->stack, error);
    size_t count = diff->rows.count;
    if (!frames) return false;
    bool is_ok = diff_add(diff, recording, frames, "", measured) ||
                 error_set(error, "no memory for the stacks");
    free(frames);
    if (!is_ok || diff->rows.count == count) return is_ok;
    struct store_place *place = array_push(&places->list);
    if (!place) return error_set(error, "no memory for the stacks");
    *place = (struct store_place){NULL, stack->frame};
    return read_place(store, stack->place, &place->place, error);
}

// Both lists are in the order of stacks. The newer side goes first: places are as they are now.
static bool add_differences(struct store *store, const struct side sides[2],
                            enum history_measure measure, struct diff *diff,
                            struct store_places *places, struct error *error) {
    for (int which = 1; which >= 0; which--) {
        const struct side *side = &sides[which], *other = &sides[!which];
        size_t at = 0;
        for (size_t i = 0; i < side->list.count; i++) {
            const struct side_stack *stack = &side->list.items[i];
            while (at < other->list.count && other->list.items[at].stack < stack->stack) at++;
            bool is_there = at < other->list.count && other->list.items[at].stack == stack->stack;
            if (!stack->value || (is_there && other->list.items[at].value == stack->value))
                continue;
            if (!add_stack(store, stack, (size_t)which, measure, diff, places, error)) return false;
        }
    }
    return true;
}

bool store_compare(struct store *store, int64_t before, int64_t after, enum history_measure measure,
                   struct diff *diff, struct store_places *places, struct error *error) {
    struct side sides[2] = {0};
    diff_start(diff, 2, 1);
    *places = (struct store_places){0};
    bool is_ok = read_side(store, before, measure, &sides[0], error) &&
                 read_side(store, after, measure, &sides[1], error) &&
                 add_differences(store, sides, measure, diff, places, error) &&
                 diff_join_similar(diff, error);
    array_free(&sides[0].list);
    array_free(&sides[1].list);
    return is_ok;
}
