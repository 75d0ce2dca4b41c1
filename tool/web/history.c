// SPDX-License-Identifier: Apache-2.0
// Most stacks stay as they are from moment to moment: such columns are nothing but zeros, which
// compress to nothing. Of very many moments some are left out, so that a page stays small; those
// with a label are the last to go.
#include "tool/web/history.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/model/moments.h"

enum { MOMENTS_MAX = 64, MOMENTS_MIN = 8, VALUES_MAX = 6000000 };

struct history {
    struct sink *sink;
    const struct profile *profile;
    struct moments moments;
    size_t *chosen;  // indexes in the list
    size_t count;
};

static size_t room_for(const struct profile *profile) {
    size_t room = profile->stack_count ? VALUES_MAX / profile->stack_count : MOMENTS_MAX;
    if (room > MOMENTS_MAX) room = MOMENTS_MAX;
    return room < MOMENTS_MIN ? MOMENTS_MIN : room;
}

// Takes every `step`-th of those with or without a label.
static void choose_some(struct history *history, bool *is_chosen, bool has_label, size_t room) {
    size_t all = 0, seen = 0;
    const struct moment *list = history->moments.list;
    for (size_t i = 0; i < history->moments.count; i++)
        all += list[i].has_values && (*list[i].label != 0) == has_label;
    size_t step = room ? (all + room - 1) / room : 0;
    for (size_t i = 0; i < history->moments.count; i++)
        if (list[i].has_values && (*list[i].label != 0) == has_label && step)
            is_chosen[i] = seen++ % step == 0;
}

static bool choose(struct history *history) {
    size_t all = history->moments.count, room = room_for(history->profile);
    bool *is_chosen = calloc(all + 1, sizeof *is_chosen);
    history->chosen = calloc(all + 1, sizeof *history->chosen);
    bool is_ok = is_chosen && history->chosen;
    if (is_ok) {
        choose_some(history, is_chosen, true, room);
        for (size_t i = 0; i < all; i++) room -= is_chosen[i] && room;
        choose_some(history, is_chosen, false, room);
        for (size_t i = 0; i < all; i++)
            if (is_chosen[i]) history->chosen[history->count++] = i;
    }
    free(is_chosen);
    return is_ok;
}

static bool put_list(struct history *history) {
    char *text = NULL;
    size_t size = 0;
    struct json json;
    FILE *out = open_memstream(&text, &size);
    if (!out) return false;
    json_start(&json, out);
    json_open_array(&json, NULL);
    for (size_t i = 0; i < history->count; i++) {
        const struct moment *moment = &history->moments.list[history->chosen[i]];
        json_open_object(&json, NULL);
        json_put_uint(&json, "at_ns", moment->at_ns);
        json_put_string(&json, "reason", moment_reason_name(moment->reason));
        json_put_string(&json, "label", moment->label);
        json_close(&json);
    }
    json_close(&json);
    bool is_ok = !fclose(out);
    if (is_ok) sink_put_chunk(history->sink, "moments", CHUNK_JSON, text, size);
    free(text);
    return is_ok;
}

static bool put_values(struct history *history) {
    const struct profile *profile = history->profile;
    int64_t *before = calloc(profile->stack_count + 1, sizeof *before);
    bool is_ok = before != NULL;
    for (size_t i = 0; is_ok && i < history->count; i++) {
        struct column column = {0};
        struct held *held = moments_held(&history->moments, history->chosen[i]);
        is_ok = held != NULL;
        for (size_t at = 0; is_ok && at < profile->stack_count; at++) {
            int64_t bytes = held[profile->stacks[at].number].bytes;
            column_put_number(&column, (int64_t)((uint64_t)bytes - (uint64_t)before[at]));
            before[at] = bytes;
        }
        if (is_ok) sink_put_column(history->sink, "moment.bytes", CHUNK_NUMBERS, &column);
        free(held);
    }
    free(before);
    return is_ok;
}

bool history_put(struct sink *sink, const struct profile *profile, struct error *error) {
    struct history history = {.sink = sink, .profile = profile};
    if (!moments_build(&history.moments, profile, error)) return false;
    bool is_ok = choose(&history);
    if (is_ok && history.count) is_ok = put_list(&history) && put_values(&history);
    free(history.chosen);
    moments_free(&history.moments);
    return is_ok || error_set(error, "no memory for the moments of this recording");
}
