// SPDX-License-Identifier: Apache-2.0
// The parts of resident memory as rows, of both moments at which somebody looked.
#include <stdlib.h>
#include <string.h>

#include "tool/render/memory.h"

enum { PART_BYTES = 512, FIGURE_COLUMNS = 11 };

enum memory_column {
    MEMORY_SHARE,
    MEMORY_BYTES,
    MEMORY_WHAT,
    MEMORY_PART,
    MEMORY_MOMENT,
    MEMORY_AT,
    MEMORY_PSS,
    MEMORY_SWAP,
    MEMORY_COLUMNS
};

struct memory_list {
    struct picture pictures[CAIRN_PICTURE_COUNT];
    const char *moments[CAIRN_PICTURE_COUNT];
    size_t count, at;
    int part;
    char text[PART_BYTES];
    struct answer_column columns[MEMORY_COLUMNS];
};

static void tell_part(struct memory_list *list, const struct picture *picture,
                      const struct view_options *view, struct answer_row *row) {
    const enum picture_part part = (enum picture_part)list->part;
    answer_set_text(row, MEMORY_PART, picture_part_key(part));
    if (!memory_part_is_known(picture, part)) {
        row->use = ANSWER_FOR_PROGRAMS;
        answer_set_unknown(row, MEMORY_SHARE);
        answer_set_unknown(row, MEMORY_BYTES);
        return;
    }
    if (!picture->bytes[part]) row->use = ANSWER_FOR_PROGRAMS;
    memory_part_text(picture, part, view, list->text, sizeof list->text);
    answer_set(row, MEMORY_SHARE, (int64_t)picture->bytes[part]);
    answer_set(row, MEMORY_BYTES, (int64_t)picture->bytes[part]);
    answer_set_text(row, MEMORY_WHAT, list->text);
}

// The parts of a picture, then all of it.
static bool next_part(struct answer *answer, struct answer_row *row) {
    struct memory_list *list = answer->state;
    if (list->at == list->count) return false;
    const struct picture *picture = &list->pictures[list->at];
    answer->whole = (int64_t)picture->rss_bytes;
    answer_set_text(row, MEMORY_MOMENT, list->moments[list->at]);
    answer_set(row, MEMORY_AT, (int64_t)picture->at_ns);
    if (list->part < PICTURE_PARTS) {
        tell_part(list, picture, answer->options, row);
        list->part++;
        return true;
    }
    answer_set(row, MEMORY_SHARE, (int64_t)picture->rss_bytes);
    answer_set(row, MEMORY_BYTES, (int64_t)picture->rss_bytes);
    answer_set_text(row, MEMORY_WHAT, "resident");
    answer_set_text(row, MEMORY_PART, "rss_bytes");
    answer_set(row, MEMORY_PSS, (int64_t)picture->pss_bytes);
    answer_set(row, MEMORY_SWAP, (int64_t)picture->swap_bytes);
    list->part = 0;
    list->at++;
    return true;
}

static void open_pictures(struct memory_list *list, struct recording *recording) {
    static const char *const moments[CAIRN_PICTURE_COUNT] = {
        [CAIRN_PICTURE_AT_PEAK] = "at_peak", [CAIRN_PICTURE_LAST] = "last"};
    for (size_t i = 0; i < CAIRN_PICTURE_COUNT; i++) {
        if (!picture_of(recording, i, &list->pictures[list->count])) continue;
        list->moments[list->count++] = moments[i];
    }
}

bool memory_answer(struct answer *answer, const struct profile *profile,
                   const struct view_options *view, struct error *error) {
    const struct answer_column columns[MEMORY_COLUMNS] = {
        [MEMORY_SHARE] = answer_share_column,
        [MEMORY_BYTES] = ANSWER_FIGURES("bytes", "bytes", ANSWER_BYTES, FIGURE_COLUMNS),
        [MEMORY_WHAT] = ANSWER_TAILS("what", "  ", NULL, .head = "what"),
        [MEMORY_PART] = ANSWER_DATA("part", ANSWER_TEXT),
        [MEMORY_MOMENT] = ANSWER_TAILS("moment", " ", NULL, .head = "when"),
        [MEMORY_AT] = ANSWER_DATA("at_ns", ANSWER_TIME),
        [MEMORY_PSS] = ANSWER_DATA("pss_bytes", ANSWER_BYTES),
        [MEMORY_SWAP] = ANSWER_DATA("swap_bytes", ANSWER_BYTES)};
    struct memory_list *list = calloc(1, sizeof *list);
    if (!list) return error_set(error, "no memory for what resident memory was");
    memcpy(list->columns, columns, sizeof columns);
    open_pictures(list, profile->recording);
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .columns = list->columns,
                              .column_count = MEMORY_COLUMNS,
                              .gap = 1,
                              .shown = list->count * (PICTURE_PARTS + 1),
                              .count = list->count * (PICTURE_PARTS + 1),
                              .next_row = next_part,
                              .close = free,
                              .state = list};
    snprintf(answer->title, sizeof answer->title, "resident memory, by part");
    snprintf(answer->none, sizeof answer->none,
             "what resident memory consisted of is not known: %s",
             memory_reason_of_none(profile->recording));
    return true;
}

// --- the heap, as it was seen from outside

enum totals_column {
    TOTALS_HEAP,
    TOTALS_LIVE_RESIDENT,
    TOTALS_LIVE,
    TOTALS_BLOCKS,
    TOTALS_CHUNKS,
    TOTALS_TOP,
    TOTALS_FREE_RESIDENT,
    TOTALS_ARENAS,
    TOTALS_MOMENT,
    TOTALS_AT,
    TOTALS_IS_PARTIAL,
    TOTALS_COLUMNS
};

static const struct answer_column totals_columns[TOTALS_COLUMNS] = {
    [TOTALS_HEAP] = ANSWER_FIGURES("heap_bytes", "heap", ANSWER_BYTES, FIGURE_COLUMNS),
    [TOTALS_LIVE_RESIDENT] =
        ANSWER_FIGURES("live_resident_bytes", "live on it", ANSWER_BYTES, FIGURE_COLUMNS),
    [TOTALS_LIVE] = ANSWER_FIGURES("live_bytes", "live", ANSWER_BYTES, FIGURE_COLUMNS),
    [TOTALS_BLOCKS] = ANSWER_FIGURES("live_blocks", "blocks", ANSWER_COUNT, FIGURE_COLUMNS),
    [TOTALS_CHUNKS] = ANSWER_FIGURES("free_chunk_bytes", "free", ANSWER_BYTES, FIGURE_COLUMNS),
    [TOTALS_TOP] = ANSWER_FIGURES("free_top_bytes", "at ends", ANSWER_BYTES, FIGURE_COLUMNS),
    [TOTALS_FREE_RESIDENT] =
        ANSWER_FIGURES("free_resident_bytes", "resident", ANSWER_BYTES, FIGURE_COLUMNS),
    [TOTALS_ARENAS] = ANSWER_FIGURES("arenas", "arenas", ANSWER_COUNT, FIGURE_COLUMNS),
    [TOTALS_MOMENT] = ANSWER_TAILS("moment", "  ", NULL, .head = "when"),
    [TOTALS_AT] = ANSWER_DATA("at_ns", ANSWER_TIME),
    [TOTALS_IS_PARTIAL] = ANSWER_DATA("free_is_partial", ANSWER_BOOL)};

struct totals_list {
    struct memory_list pictures;
    struct claim claims[CAIRN_PICTURE_COUNT];
};

static void set_free(struct answer_row *row, size_t column, const struct picture *picture,
                     uint64_t bytes) {
    if (picture->arena_count)
        answer_set(row, column, (int64_t)bytes);
    else
        answer_set_unknown(row, column);
}

static bool next_total(struct answer *answer, struct answer_row *row) {
    struct memory_list *list = &((struct totals_list *)answer->state)->pictures;
    if (list->at == list->count) return false;
    const struct picture *picture = &list->pictures[list->at];
    answer_set(row, TOTALS_HEAP, (int64_t)picture_heap_bytes(picture));
    if (picture->is_live_part)
        answer_set(row, TOTALS_LIVE_RESIDENT, (int64_t)picture->bytes[PICTURE_LIVE]);
    else
        answer_set_unknown(row, TOTALS_LIVE_RESIDENT);
    answer_set(row, TOTALS_LIVE, (int64_t)picture->live_bytes);
    answer_set(row, TOTALS_BLOCKS, (int64_t)picture->live_blocks);
    set_free(row, TOTALS_CHUNKS, picture, picture->chunk_bytes);
    set_free(row, TOTALS_TOP, picture, picture->top_bytes);
    set_free(row, TOTALS_FREE_RESIDENT, picture, picture->free_resident_bytes);
    set_free(row, TOTALS_ARENAS, picture, picture->arena_count);
    answer_set(row, TOTALS_IS_PARTIAL, picture->is_cut);
    answer_set_text(row, TOTALS_MOMENT, list->moments[list->at++]);
    answer_set(row, TOTALS_AT, (int64_t)picture->at_ns);
    return true;
}

bool memory_totals_answer(struct answer *answer, const struct profile *profile,
                          const struct view_options *view, bool are_pages, struct error *error) {
    struct totals_list *list = calloc(1, sizeof *list);
    if (!list) return error_set(error, "no memory for what the heap was");
    open_pictures(&list->pictures, profile->recording);
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .columns = totals_columns,
                              .column_count = TOTALS_COLUMNS,
                              .gap = 1,
                              .shown = list->pictures.count,
                              .count = list->pictures.count,
                              .claims = list->claims,
                              .next_row = next_total,
                              .close = free,
                              .state = list};
    bool are_two = list->pictures.count > 1 &&
                   list->pictures.pictures[0].at_ns != list->pictures.pictures[1].at_ns;
    for (size_t i = 0; i < (are_two ? CAIRN_PICTURE_COUNT : 1); i++)
        answer->claim_count += claim_of_heap(&list->claims[answer->claim_count], profile, i);
    snprintf(answer->title, sizeof answer->title, "the heap, as cairn saw it from outside");
    snprintf(answer->none, sizeof answer->none,
             "what resident memory consisted of is not known: %s",
             memory_reason_of_none(profile->recording));
    answer_note(answer, "the %s are those of a process or core: cairn report --view %s PID",
                are_pages ? "stacks that keep pages" : "sizes and arenas",
                are_pages ? "pages" : "heap");
    return true;
}
