// SPDX-License-Identifier: Apache-2.0
// Two sets side by side. Only stacks that differ are spelled: they are few, and of two builds of a
// compiler each set has ten thousands. A stack that one side has cut (--max-depth) is on the other
// side all those that begin with its frames.
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

// A stack that differs, with its functions.
struct spelled {
    struct side_stack stack;
    int which;     // side
    char *frames;  // innermost first, a newline between two
    size_t kept;   // of a stack that was cut: bytes up to the mark; else 0
};
struct spelling {
    ARRAY(struct spelled) list;
};

static void spelling_free(struct spelling *spelling) {
    for (size_t i = 0; i < spelling->list.count; i++) free(spelling->list.items[i].frames);
    array_free(&spelling->list);
}

// Returns how long the text is up to the newline before a mark; 0: it has none.
static size_t kept_of(const char *frames) {
    const char *last = strrchr(frames, '\n'), mark[] = "(cut at ";
    return last && !strncmp(last + 1, mark, sizeof mark - 1) ? (size_t)(last - frames) : 0;
}

static bool spell(struct store *store, const struct side_stack *stack, int which,
                  struct spelling *spelling, struct error *error) {
    struct spelled *slot = array_push(&spelling->list);
    if (!slot) return error_set(error, "no memory for the stacks");
    *slot = (struct spelled){*stack, which, stack_spell(store, stack->stack, error), 0};
    if (!slot->frames) return false;
    slot->kept = kept_of(slot->frames);
    return true;
}

// Returns the stack as the other side has it: the shortest that was cut there and has its innermost
// frames, or the stack itself. Frames outside of main are not spelled, so that there may be none
// beyond the cut.
static const char *as_cut(const struct spelling *spelling, const struct spelled *whole) {
    const struct spelled *found = whole;
    for (size_t i = 0; i < spelling->list.count; i++) {
        const struct spelled *cut = &spelling->list.items[i];
        if (!cut->kept || cut->which == whole->which) continue;
        if (found != whole && cut->kept >= found->kept) continue;
        if (!strncmp(cut->frames, whole->frames, cut->kept) &&
            (whole->frames[cut->kept] == '\n' || !whole->frames[cut->kept]))
            found = cut;
    }
    return found->frames;
}

static bool add_stack(struct store *store, const struct spelling *spelling,
                      const struct spelled *spelled, enum history_measure measure,
                      struct diff *diff, struct store_places *places, struct error *error) {
    const struct measured measured = {.value = spelled->stack.value,
                                      .is_in_blocks = !history_measures[measure].is_bytes};
    size_t count = diff->rows.count;
    if (!diff_add(diff, (size_t)spelled->which, as_cut(spelling, spelled), "", measured))
        return error_set(error, "no memory for the stacks");
    if (diff->rows.count == count) return true;
    struct store_place *place = array_push(&places->list);
    if (!place) return error_set(error, "no memory for the stacks");
    *place = (struct store_place){NULL, spelled->stack.frame};
    return read_place(store, spelled->stack.place, &place->place, error);
}

// Both lists are in the order of stacks. The newer side goes first: places are as they are now.
static bool spell_differences(struct store *store, const struct side sides[2],
                              struct spelling *spelling, struct error *error) {
    for (int which = 1; which >= 0; which--) {
        const struct side *side = &sides[which], *other = &sides[!which];
        size_t at = 0;
        for (size_t i = 0; i < side->list.count; i++) {
            const struct side_stack *stack = &side->list.items[i];
            while (at < other->list.count && other->list.items[at].stack < stack->stack) at++;
            bool is_there = at < other->list.count && other->list.items[at].stack == stack->stack;
            if (!stack->value || (is_there && other->list.items[at].value == stack->value))
                continue;
            if (!spell(store, stack, which, spelling, error)) return false;
        }
    }
    return true;
}

static bool add_differences(struct store *store, const struct side sides[2],
                            enum history_measure measure, struct diff *diff,
                            struct store_places *places, struct error *error) {
    struct spelling spelling = {0};
    bool is_ok = spell_differences(store, sides, &spelling, error);
    for (size_t i = 0; is_ok && i < spelling.list.count; i++)
        is_ok = add_stack(store, &spelling, &spelling.list.items[i], measure, diff, places, error);
    spelling_free(&spelling);
    return is_ok;
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
