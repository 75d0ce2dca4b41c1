// SPDX-License-Identifier: Apache-2.0
// The parts of resident memory as rows, of both moments at which somebody looked.
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/memory.h"

enum {
    PART_BYTES = 512,
    FIGURE_COLUMNS = 11,
    SHOWN_SHARE_COLUMNS = 8,  // of a screen ...
    SHOWN_COLUMNS = 10,
    NAME_COLUMNS_MAX = 40,
};

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
    size_t name;  // of a screen: the next of those that the process gave
    char text[PART_BYTES], heading[PART_BYTES], rest[PART_BYTES];
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

// Keeps both moments if the second is another one.
static void keep_moments(struct memory_list *list, struct recording *recording) {
    struct picture peak, last;
    bool has_both = picture_of(recording, CAIRN_PICTURE_AT_PEAK, &peak) &&
                    picture_of(recording, CAIRN_PICTURE_LAST, &last);
    if (has_both && last.at_ns == peak.at_ns) list->count = 1;
}

// Names the reading at which most was resident; "": it was less than the peak.
static const char *words_of_highest(const struct picture *picture, uint64_t end_ns) {
    bool is_at_end = end_ns && picture->at_ns >= end_ns;
    if (!picture_is_of_peak(picture)) return is_at_end ? "at the end," : "";
    return is_at_end ? "at the end, its highest as far as was looked,"
                     : "at its highest, as far as was looked,";
}

static const char *words_of_last(const struct picture *picture, uint64_t end_ns) {
    if (!end_ns) return "at the last look,";
    return picture->at_ns >= end_ns ? "at the end," : "at the last look before the end,";
}

// Heads a picture: "resident memory at the end, at 0.50 s", "resident memory at 0.31 s of 0.50 s,
// when RSS was 11.6 MiB of 46.3 MiB".
static void set_heading(struct memory_list *list, const struct profile *profile,
                        const struct view_options *view, struct answer_row *row) {
    const struct picture *picture = &list->pictures[list->at];
    const uint64_t end_ns = profile_has_ended(profile) ? profile->recording->header.end_ns : 0;
    const bool is_first = !list->at;
    const char *what =
        is_first ? words_of_highest(picture, end_ns) : words_of_last(picture, end_ns);
    const bool has_end = end_ns > picture->at_ns;
    char moment[PART_BYTES / 2] = "";
    if (!*what)
        snprintf(moment, sizeof moment, ", when RSS was %s of %s",
                 units_size_as((int64_t)picture->rss_bytes, view->is_plain_number).text,
                 units_size_as((int64_t)picture->peak_bytes, view->is_plain_number).text);
    snprintf(list->heading, sizeof list->heading, "%sresident memory%s%s", is_first ? "" : "\n",
             *what ? " " : "", what);
    snprintf(list->rest, sizeof list->rest, " at %s%s%s%s", units_duration(picture->at_ns).text,
             has_end ? " of " : "", has_end ? units_duration(end_ns).text : "", moment);
    row->heading = list->heading;
    row->heading_rest = list->rest;
}

static void set_shown(struct answer_row *row, uint64_t bytes, const char *text) {
    answer_set(row, MEMORY_SHARE, (int64_t)bytes);
    answer_set(row, MEMORY_BYTES, (int64_t)bytes);
    answer_set_text(row, MEMORY_WHAT, text);
}

// Takes what the process named out of the part in which it is. It is known of the last look alone,
// while the process goes on. False: there is no further name.
static bool next_name(struct memory_list *list, struct recording *recording,
                      struct answer_row *row) {
    struct picture last, *picture = &list->pictures[list->at];
    uint64_t *in = &picture->bytes[picture->is_mapped_part ? PICTURE_MAPPED : PICTURE_REST];
    bool is_of_now = picture_of(recording, CAIRN_PICTURE_LAST, &last) &&
                     last.at_ns == picture->at_ns && last.rss_bytes == picture->rss_bytes;
    while (is_of_now && list->name < recording->names.count) {
        const char *name = recording->names.items[list->name].name;
        uint64_t bytes = recording->names.items[list->name++].bytes;
        if (bytes > *in) bytes = *in;
        *in -= bytes;
        if (!bytes) continue;
        snprintf(list->text, sizeof list->text, "[anon:%s]", name);
        set_shown(row, bytes, list->text);
        return true;
    }
    return false;
}

static void tell_whole(struct memory_list *list, const struct picture *picture,
                       const struct view_options *view, struct answer_row *row) {
    snprintf(list->text, sizeof list->text, "resident; PSS %s, swap %s",
             units_size_as((int64_t)picture->pss_bytes, view->is_plain_number).text,
             units_size_as((int64_t)picture->swap_bytes, view->is_plain_number).text);
    set_shown(row, picture->rss_bytes, list->text);
    list->part = 0;
    list->name = 0;
    list->at++;
}

// Tells the parts that are there, under a heading, then all of the picture.
static bool next_shown(struct answer *answer, struct answer_row *row) {
    struct memory_list *list = answer->state;
    if (list->at == list->count) return false;
    const struct picture *picture = &list->pictures[list->at];
    answer->whole = (int64_t)picture->rss_bytes;
    if (!list->part && !list->name) set_heading(list, answer->profile, answer->options, row);
    for (; list->part < PICTURE_PARTS; list->part++) {
        const enum picture_part part = (enum picture_part)list->part;
        if (part == PICTURE_REST && next_name(list, answer->profile->recording, row)) return true;
        if (!picture->bytes[part]) continue;
        memory_part_text(picture, part, answer->options, list->text, sizeof list->text);
        set_shown(row, picture->bytes[part], list->text);
        list->part++;
        return true;
    }
    tell_whole(list, picture, answer->options, row);
    return true;
}

// Says whose free memory is not distinguished, and why.
static void note_allocator(struct answer *answer, const struct picture *picture) {
    struct recording *recording = answer->profile->recording;
    char name[PART_BYTES];
    if (recording->header.allocator == CAIRN_ALLOCATOR_OTHER) {
        const char *path = recording_string(recording, recording->header.allocator_module);
        text_escape(name, sizeof name, text_base_name(path));
        text_cut(name, NAME_COLUMNS_MAX);
        answer_show(answer, "%s allocates: of its memory, free and cached is one part",
                    *name ? name : "not glibc's");
    } else if (!picture->arena_count) {
        answer_show(answer, "glibc's arenas could not be read");
    }
}

static void set_missing(struct answer *answer) {
    *answer->title = 0;
    snprintf(answer->none, sizeof answer->none,
             "what resident memory consisted of is not known:\n%s",
             memory_reason_of_none(answer->profile->recording));
}

static bool memory_to_screen(struct answer *answer, size_t columns, struct error *error) {
    struct memory_list *list = answer->state;
    (void)columns;
    (void)error;
    set_missing(answer);
    if (!list->count || strcmp(list->moments[0], "at_peak") != 0) answer->count = list->count = 0;
    if (!list->count) return true;
    keep_moments(list, answer->profile->recording);
    list->columns[MEMORY_SHARE].width = SHOWN_SHARE_COLUMNS;
    list->columns[MEMORY_BYTES].width = SHOWN_COLUMNS;
    list->columns[MEMORY_BYTES].head = NULL;
    list->columns[MEMORY_WHAT].place = ANSWER_TAIL_WRAP;
    answer->next_row = next_shown;
    note_allocator(answer, &list->pictures[0]);
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
                              .to_screen = memory_to_screen,
                              .close = free,
                              .state = list};
    snprintf(answer->title, sizeof answer->title, "resident memory, by part");
    snprintf(answer->none, sizeof answer->none,
             "what resident memory consisted of is not known: %s",
             memory_reason_of_none(profile->recording));
    return true;
}

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

enum shown_total { SHOWN_BYTES, SHOWN_WORDS, SHOWN_TOTAL_COLUMNS };

// Values of a moment as a screen has them, a line each.
enum shown_line { SHOWN_LIVE, SHOWN_CHUNKS, SHOWN_TOP, SHOWN_RESIDENT, SHOWN_LINES };

static const struct answer_column shown_columns[SHOWN_TOTAL_COLUMNS] = {
    [SHOWN_BYTES] = ANSWER_FIGURES(NULL, NULL, ANSWER_BYTES, SHOWN_COLUMNS),
    [SHOWN_WORDS] = ANSWER_TAILS(NULL, "  ", NULL)};

struct totals_list {
    struct memory_list pictures;
    struct claim claims[CAIRN_PICTURE_COUNT];
    bool are_pages;
    char heading[CLAIM_SENTENCE_BYTES], rest[CLAIM_SENTENCE_BYTES];
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

static uint64_t shown_bytes(const struct picture *picture, enum shown_line line) {
    const uint64_t bytes[SHOWN_LINES] = {[SHOWN_LIVE] = picture->live_bytes,
                                         [SHOWN_CHUNKS] = picture->chunk_bytes,
                                         [SHOWN_TOP] = picture->top_bytes,
                                         [SHOWN_RESIDENT] = picture->free_resident_bytes};
    return bytes[line];
}

static void shown_words(const struct picture *picture, enum shown_line line, char *out,
                        size_t size) {
    if (line == SHOWN_LIVE)
        snprintf(out, size, "in %s live %s", units_count((int64_t)picture->live_blocks).text,
                 units_noun((int64_t)picture->live_blocks, "block", "blocks"));
    else if (line == SHOWN_CHUNKS)
        snprintf(out, size, "%sfree in chunks of %u %s", picture->is_cut ? "at least " : "",
                 (unsigned)picture->arena_count,
                 units_noun((int64_t)picture->arena_count, "arena", "arenas"));
    else
        snprintf(out, size, "%s",
                 line == SHOWN_TOP ? "free at their ends" : "of the free memory is resident");
}

// Heads the lines of a moment by its claim.
static void set_claim(struct totals_list *list, const struct answer *answer,
                      struct answer_row *row) {
    claim_sentence(&list->claims[list->pictures.at], answer->options->is_plain_number,
                   list->heading);
    char *rest = strchr(list->heading, ':');
    snprintf(list->rest, sizeof list->rest, "%s", rest ? rest : "");
    if (rest) *rest = 0;
    row->heading = list->heading;
    row->heading_rest = list->rest;
}

static size_t lines_of(const struct totals_list *list, const struct picture *picture) {
    if (list->are_pages && picture_knows_free(picture)) return 0;
    return picture->arena_count ? SHOWN_LINES : SHOWN_CHUNKS;
}

static bool next_shown_total(struct answer *answer, struct answer_row *row) {
    struct totals_list *list = answer->state;
    struct memory_list *pictures = &list->pictures;
    if (pictures->at == answer->claim_count) return false;
    const struct picture *picture = &pictures->pictures[pictures->at];
    const size_t lines = lines_of(list, picture);
    const enum shown_line line = (enum shown_line)pictures->part++;
    if (line == SHOWN_LIVE) set_claim(list, answer, row);
    row->is_heading = !lines;
    if (lines) {
        shown_words(picture, line, pictures->text, sizeof pictures->text);
        answer_set(row, SHOWN_BYTES, (int64_t)shown_bytes(picture, line));
        answer_set_text(row, SHOWN_WORDS, pictures->text);
    }
    if ((size_t)pictures->part < lines) return true;
    pictures->part = 0;
    pictures->at++;
    return true;
}

static bool totals_to_screen(struct answer *answer, size_t columns, struct error *error) {
    struct totals_list *list = answer->state;
    (void)columns;
    (void)error;
    set_missing(answer);
    answer->note_count = 0;
    if (!answer->claim_count) answer->count = 0;
    if (!answer->count) return true;
    answer->columns = shown_columns;
    answer->column_count = SHOWN_TOTAL_COLUMNS;
    answer->indent = 2;
    answer->next_row = next_shown_total;
    answer_show(answer,
                "totals as cairn saw them from outside; the %s are those of a process or "
                "core:\ncairn report --view %s PID",
                list->are_pages ? "stacks that keep pages" : "sizes and arenas",
                list->are_pages ? "pages" : "heap");
    return true;
}

bool memory_totals_answer(struct answer *answer, const struct profile *profile,
                          const struct view_options *view, bool are_pages, struct error *error) {
    struct totals_list *list = calloc(1, sizeof *list);
    if (!list) return error_set(error, "no memory for what the heap was");
    open_pictures(&list->pictures, profile->recording);
    list->are_pages = are_pages;
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .columns = totals_columns,
                              .column_count = TOTALS_COLUMNS,
                              .gap = 1,
                              .shown = list->pictures.count,
                              .count = list->pictures.count,
                              .claims = list->claims,
                              .next_row = next_total,
                              .to_screen = totals_to_screen,
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
