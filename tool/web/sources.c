// SPDX-License-Identifier: Apache-2.0
#include "tool/web/sources.h"

#include <string.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/render/annotate.h"

enum {
    STACKS_PER_MEASURE = 200,
    AROUND = 4,           // lines before and after
    LINE_BYTES = 400,     // of a line, the rest is cut
    LINES_MAX = 1000000,  // of a file
    TEXT_BYTES = 400000,  // all lines together
};

struct spot {
    const char *file;
    unsigned line;
};

struct sources {
    struct frame_table *frames;
    bool *is_taken;  // by frame number
    ARRAY(struct spot) spots;
    struct json json;
    size_t used_bytes;
};

static bool take_frame(struct sources *sources, uint32_t number) {
    const struct frame *frame = sources->frames->frames.items[number];
    bool has_source = frame->file && frame->line && !frame->is_hidden;
    if (!has_source || sources->is_taken[number]) return true;
    sources->is_taken[number] = true;
    struct spot *spot = array_push(&sources->spots);
    if (spot) *spot = (struct spot){frame->file, frame->line};
    return spot != NULL;
}

static bool take_stack(struct sources *sources, uint32_t node) {
    if (!frame_table_stack(sources->frames, node)) return false;
    for (size_t i = 0; i < sources->frames->stack.count; i++)
        if (!take_frame(sources, sources->frames->stack.items[i])) return false;
    return true;
}

static bool take_largest(struct sources *sources, enum measure by) {
    const struct profile *profile = sources->frames->export->profile;
    size_t count = 0;
    uint32_t *order = measure_rank_most(by, profile, STACKS_PER_MEASURE, &count);
    bool is_ok = order != NULL;
    for (size_t i = 0; is_ok && i < count; i++)
        is_ok = take_stack(sources, profile->stacks[order[i]].node);
    free(order);
    return is_ok;
}

static int compare_spots(const void *left, const void *right) {
    const struct spot *a = left, *b = right;
    int order = strcmp(a->file, b->file);
    if (order) return order;
    return (a->line > b->line) - (a->line < b->line);
}

static unsigned first_around(unsigned line) {
    return line > AROUND ? line - AROUND : 1;
}

static void put_line(struct sources *sources, char *line) {
    char safe[LINE_BYTES], tabs[LINE_BYTES];
    size_t used = 0;
    for (const char *at = line; *at && *at != '\n' && used + 4 < sizeof tabs; at++) {
        if (*at == '\t') do
                tabs[used++] = ' ';
            while (used % 4);
        else if (*at != '\r')
            tabs[used++] = *at;
    }
    tabs[used] = 0;
    text_escape(safe, sizeof safe, tabs);
    sources->used_bytes += strlen(safe);
    json_put_string(&sources->json, NULL, safe);
}

// The lines around `count` spots of one file, in ascending order; what touches is one piece.
static void put_lines(struct sources *sources, FILE *file, const struct spot *spots, size_t count) {
    char *line = NULL;
    size_t room = 0, at = 0;
    bool is_open = false;
    for (unsigned number = 1; at < count && number < LINES_MAX; number++) {
        if (getline(&line, &room, file) < 0 || sources->used_bytes > TEXT_BYTES) break;
        while (at < count && spots[at].line + AROUND < number) at++;
        bool is_wanted = at < count && first_around(spots[at].line) <= number;
        if (is_wanted && !is_open) {
            json_open_array(&sources->json, NULL);
            json_put_uint(&sources->json, NULL, number);
        }
        if (!is_wanted && is_open) json_close(&sources->json);
        is_open = is_wanted;
        if (is_open) put_line(sources, line);
    }
    if (is_open) json_close(&sources->json);
    free(line);
}

static void put_file(struct sources *sources, const struct spot *spots, size_t count) {
    FILE *file = annotate_open_source(spots->file);
    char path[FRAME_TEXT_BYTES * 4];
    if (!file) return;
    text_escape(path, sizeof path, spots->file);
    json_open_array(&sources->json, path);
    put_lines(sources, file, spots, count);
    json_close(&sources->json);
    fclose(file);
}

static void put_files(struct sources *sources) {
    const struct spot *spots = sources->spots.items;
    size_t count = sources->spots.count, first = 0;
    json_open_object(&sources->json, NULL);
    for (size_t i = 1; i <= count; i++) {
        if (i < count && !strcmp(spots[i].file, spots[first].file)) continue;
        if (sources->used_bytes < TEXT_BYTES) put_file(sources, spots + first, i - first);
        first = i;
    }
    json_close(&sources->json);
}

static bool put_all(struct sources *sources, struct sink *sink) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return false;
    json_start(&sources->json, out);
    put_files(sources);
    bool is_ok = !fclose(out);
    if (is_ok) sink_put_chunk(sink, "sources", CHUNK_JSON, text, size);
    free(text);
    return is_ok;
}

bool sources_put(struct sink *sink, struct frame_table *frames, struct error *error) {
    struct sources sources = {.frames = frames};
    sources.is_taken = calloc(frames->frames.count + 1, sizeof *sources.is_taken);
    bool is_ok = sources.is_taken != NULL;
    for (enum measure by = 0; is_ok && by < EXPORT_MEASURES; by++)
        is_ok = take_largest(&sources, by);
    if (is_ok && sources.spots.count)
        qsort(sources.spots.items, sources.spots.count, sizeof *sources.spots.items, compare_spots);
    is_ok = is_ok && put_all(&sources, sink);
    array_free(&sources.spots);
    free(sources.is_taken);
    return is_ok || error_set(error, "no memory for the lines of sources");
}
