// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/history/store.h"

void store_places_free(struct store_places *places) {
    for (size_t i = 0; i < places->list.count; i++) free(places->list.items[i].place);
    array_free(&places->list);
}

// Frames are a text of lines, which are made safe one by one.
static char *safe_lines(struct store *store, int column) {
    const char *text = (const char *)sqlite3_column_text(store->statement, column);
    enum { LINE_BYTES = 4096 };
    char *made = NULL, safe[LINE_BYTES], line[LINE_BYTES];
    size_t size;
    FILE *out = open_memstream(&made, &size);
    for (const char *at = text ? text : ""; out; at++) {
        size_t length = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(length < LINE_BYTES ? length : LINE_BYTES - 1),
                 at);
        text_escape(safe, sizeof safe, line);
        fputs(safe, out);
        at += length;
        if (!*at) break;
        fputc('\n', out);
    }
    if (out) fclose(out);
    return made;
}

static bool add_side(struct store *store, size_t side, int64_t set, enum history_measure measure,
                     struct diff *diff, struct store_places *places, struct error *error) {
    bool is_ok =
        store_query(store,
                    SET_ROWS "SELECT frames, places.place, frame, peak, exit, calls, bytes, "
                             "temporary FROM found JOIN stacks ON stacks.id = found.stack "
                             "LEFT JOIN places ON places.id = found.place WHERE nth = 1",
                    error) &&
        store_bind_int(store, set);
    enum { FIRST_VALUE = 3 };
    while (is_ok && store_next(store, &is_ok, error)) {
        int64_t value = store_int(store, FIRST_VALUE + (int)measure);
        if (!value) continue;
        const struct measured measured = {.value = value,
                                          .is_in_blocks = !history_measures[measure].is_bytes};
        char *frames = safe_lines(store, 0);
        size_t count = diff->rows.count;
        is_ok = (frames && diff_add(diff, side, frames, "", measured)) ||
                error_set(error, "no memory for the stacks");
        free(frames);
        if (!is_ok || diff->rows.count == count) continue;
        struct store_place *place = array_push(&places->list);
        if (!place) return error_set(error, "no memory for the stacks");
        *place = (struct store_place){store_is_null(store, 1) ? NULL : store_text(store, 1),
                                      (uint32_t)store_int(store, 2)};
    }
    return is_ok;
}

bool store_compare(struct store *store, int64_t before, int64_t after, enum history_measure measure,
                   struct diff *diff, struct store_places *places, struct error *error) {
    // the newer side first gives the places as they are now
    diff_start(diff, 2, 1);
    *places = (struct store_places){0};
    return add_side(store, 1, after, measure, diff, places, error) &&
           add_side(store, 0, before, measure, diff, places, error) &&
           diff_join_similar(diff, error);
}
