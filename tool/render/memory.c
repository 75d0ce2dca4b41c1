// SPDX-License-Identifier: Apache-2.0
#include "tool/render/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/figures.h"

enum { PART_BYTES = 512, KEY_COLUMNS = 15 };

// "free in 2 arenas: 1.2 MiB in chunks, 0.9 MiB at the ends".
static void describe_free(const struct picture *picture, const struct view_options *view, char *out,
                          size_t size) {
    const char *least = picture->is_cut ? "at least " : "";
    snprintf(out, size, "free in %" PRIu32 " %s: %s%s in chunks, %s at the %s",
             picture->arena_count, units_noun((int64_t)picture->arena_count, "arena", "arenas"),
             least, units_size_as((int64_t)picture->chunk_bytes, view->is_plain_number).text,
             units_size_as((int64_t)picture->top_bytes, view->is_plain_number).text,
             units_noun((int64_t)picture->arena_count, "end", "ends"));
}

// Between peak and end only the sum of what samples say is known, not how sure it is.
static void describe_live(const struct picture *picture, const struct view_options *view, char *out,
                          size_t size) {
    int used = snprintf(out, size, "live heap, %s%s %s%s%s", picture->is_sampled ? "about " : "",
                        units_count((int64_t)picture->live_blocks).text,
                        units_noun((int64_t)picture->live_blocks, "block", "blocks"),
                        picture->is_sampled ? ", estimated from samples" : "",
                        picture->has_live_slack ? ", with slack and thread caches" : "");
    const struct unit_text asked =
        units_size_as((int64_t)picture->live_bytes, view->is_plain_number);
    const struct unit_text there =
        units_size_as((int64_t)picture->bytes[PICTURE_LIVE], view->is_plain_number);
    bool is_less = picture->is_live_partly && strcmp(asked.text, there.text) != 0;
    if (is_less && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, "; %s asked for, not all touched", asked.text);
}

// What is not distinguished.
static void describe_rest(const struct picture *picture, const struct view_options *view, char *out,
                          size_t size) {
    const char *own = picture->is_mapped_part ? "" : "; what the program maps itself";
    if (picture->is_live_unseen) {
        snprintf(out, size, "live heap and free memory: no block was sampled%s", own);
        return;
    }
    if (!picture->is_live_part) {
        snprintf(out, size, "live heap and free memory, how much of each is not known%s; %s live%s",
                 own, units_size_as((int64_t)picture->live_bytes, view->is_plain_number).text,
                 picture->lacks_older ? " of what came since attach" : "");
        return;
    }
    const char *free_words = picture->is_cut ? "free, not counted, " : "free, ";
    snprintf(out, size, "allocator: %sthread caches%s%s",
             picture_knows_free(picture) ? "" : free_words, picture->is_slack_part ? "" : ", slack",
             own);
}

void memory_part_text(const struct picture *picture, enum picture_part part,
                      const struct view_options *view, char *out, size_t size) {
    static const char *const words[PICTURE_PARTS] = {
        [PICTURE_MAPPED] = "mapped by the program itself, not by malloc",
        [PICTURE_SLACK] = "slack: rounding and headers of live blocks, about",
        [PICTURE_FILES] = "code, data and mapped files",
        [PICTURE_SHARED] = "shared memory",
        [PICTURE_OWN] = "cairn itself: this recording, tables, library",
        [PICTURE_OTHER] = "mappings of the kernel and of devices",
    };
    *out = 0;
    if (part == PICTURE_LIVE)
        describe_live(picture, view, out, size);
    else if (part == PICTURE_FREE)
        describe_free(picture, view, out, size);
    else if (part == PICTURE_REST)
        describe_rest(picture, view, out, size);
    else if (part == PICTURE_STACKS)
        snprintf(out, size, "%" PRIu32 " %s", picture->stack_count,
                 units_noun((int64_t)picture->stack_count, "stack", "stacks"));
    else
        snprintf(out, size, "%s", words[part]);
}

const char *memory_reason_of_none(struct recording *recording) {
    return recording_imported(recording)
               ? "the imported file does not have it"
               : "cairn run looks at a program's memory from outside; this was too short, or "
                 "recorded without it";
}

// Prints the words between `text` and `end` as one; starts a line where they do not fit. Signs are
// dim.
static void print_term(const struct terminal *terminal, size_t *column, const char *text,
                       const char *end) {
    size_t length = (size_t)(end - text),
           sign = strcspn(text, " ") == 1 && !strchr("0123456789", *text);
    if (*column + 1 + length > terminal->columns) {
        fputc('\n', terminal->out);
        terminal_indent(terminal, KEY_COLUMNS);
        *column = KEY_COLUMNS;
    } else if (*column > KEY_COLUMNS) {
        fputc(' ', terminal->out);
        ++*column;
    }
    if (sign) terminal_print(terminal, STYLE_DIM, "%.*s", (int)sign, text);
    fprintf(terminal->out, "%.*s", (int)(length - sign), text + sign);
    *column += length;
}

// Returns the end of the term that begins at `text`: figures stay with their words.
static const char *term_end(const char *text) {
    static const char *const starts[] = {" + ", " at ", " read at ", " when "};
    const char *end = text + strlen(text), *equals = strstr(text, " = ");
    if (equals && equals + 2 < end) end = equals + 2;
    const char *from = text + (strncmp(text, "read at ", 8) ? 1 : 8);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const char *found = strstr(from, starts[i]);
        if (found && found < end) end = found;
    }
    return end;
}

// The summary's terms: fewer than there are parts.
static void sum_terms(struct picture *picture) {
    picture->bytes[PICTURE_REST] += picture->bytes[PICTURE_FREE];
    picture->bytes[PICTURE_FREE] = 0;
    picture->bytes[PICTURE_FILES] += picture->bytes[PICTURE_OTHER];
    picture->bytes[PICTURE_OTHER] = 0;
}

static const char *word_of(const struct picture *picture, int part) {
    static const char *const words[PICTURE_PARTS] = {
        [PICTURE_LIVE] = "live",     [PICTURE_SLACK] = "slack",   [PICTURE_REST] = "allocator",
        [PICTURE_MAPPED] = "mapped", [PICTURE_STACKS] = "stacks", [PICTURE_FILES] = "other",
        [PICTURE_SHARED] = "shared", [PICTURE_OWN] = "cairn"};
    if (part == PICTURE_LIVE && picture->is_sampled) return "live (estimate)";
    if (part != PICTURE_REST) return words[part];
    if (!picture->is_mapped_part)
        return picture->is_live_part ? "allocator or mapped" : "live, free or mapped";
    return picture->is_live_part ? words[part] : "live or free";
}

// "42.1 MiB live + 3.0 MiB other".
static void write_parts(const struct picture *picture, bool is_plain, char *out, size_t size) {
    size_t used = 0;
    *out = 0;
    for (int part = 0; part < PICTURE_PARTS && used < size; part++) {
        if (!picture->bytes[part]) continue;
        int length = snprintf(out + used, size - used, "%s%s %s", used ? " + " : "",
                              units_size_as((int64_t)picture->bytes[part], is_plain).text,
                              word_of(picture, part));
        used += length > 0 ? (size_t)length : 0;
    }
}

static void set_part(struct claim *claim, const char *name, const struct picture *picture,
                     enum picture_part part, bool is_known) {
    if (is_known) claim_set(claim, name, (int64_t)picture->bytes[part]);
}

bool claim_of_resident(struct claim *claim, const struct profile *profile, bool is_plain) {
    struct picture picture;
    char parts[PART_BYTES];
    *claim = (struct claim){.key = CLAIM_RESIDENT};
    if (!picture_of(profile->recording, CAIRN_PICTURE_AT_PEAK, &picture)) return false;
    if (picture_is_far_from_peak(&picture)) return false;
    claim_set(claim, "rss_bytes", (int64_t)picture.rss_bytes);
    set_part(claim, "live_bytes", &picture, PICTURE_LIVE, picture.is_live_part);
    set_part(claim, "free_bytes", &picture, PICTURE_FREE, picture_knows_free(&picture));
    set_part(claim, "slack_bytes", &picture, PICTURE_SLACK, picture.is_slack_part);
    set_part(claim, "mapped_bytes", &picture, PICTURE_MAPPED, picture.is_mapped_part);
    claim_set(claim, "at_ns", (int64_t)picture.at_ns);
    claim_set(claim, "peak_bytes", (int64_t)picture.peak_bytes);
    claim_set(claim, "is_of_peak", picture_is_of_peak(&picture));
    sum_terms(&picture);
    write_parts(&picture, is_plain, parts, sizeof parts);
    claim_set_text(claim, "parts", parts);
    return true;
}

uint64_t picture_heap_bytes(const struct picture *picture) {
    const uint64_t *bytes = picture->bytes;
    return bytes[PICTURE_LIVE] + bytes[PICTURE_SLACK] + bytes[PICTURE_FREE] + bytes[PICTURE_REST];
}

// Tells whether a picture is of the end of a program whose heap was at its highest right before.
static bool is_emptied(const struct profile *profile, const struct picture *picture) {
    enum { LATE_PERCENT = 90 };
    uint64_t end_ns = profile_has_ended(profile) ? profile->recording->header.end_ns : 0;
    return end_ns && picture->at_ns >= end_ns &&
           recording_peak_ns(profile->recording) >= end_ns / 100 * LATE_PERCENT;
}

bool claim_of_not_heap(struct claim *claim, const struct profile *profile) {
    enum { LEAST_BYTES = 16 << 20 };
    static const char *const words[PICTURE_PARTS] = {
        [PICTURE_FREE] = "free in the allocator", [PICTURE_MAPPED] = "mapped by the program itself",
        [PICTURE_STACKS] = "stacks of threads",   [PICTURE_FILES] = "code, data and files",
        [PICTURE_SHARED] = "shared memory",       [PICTURE_OWN] = "cairn's own",
    };
    struct picture picture;
    int most = PICTURE_FREE;
    *claim = (struct claim){.key = CLAIM_NOT_HEAP};
    if (!picture_of(profile->recording, CAIRN_PICTURE_AT_PEAK, &picture)) return false;
    if (picture_is_far_from_peak(&picture) || !picture.is_live_part) return false;
    for (int part = 0; part < PICTURE_PARTS; part++)
        if (words[part] && picture.bytes[part] > picture.bytes[most]) most = part;
    // a program that ends has just freed what its memory was for
    if (most == PICTURE_FREE && is_emptied(profile, &picture)) return false;
    uint64_t live = picture.bytes[PICTURE_LIVE] + picture.bytes[PICTURE_SLACK];
    // what malloc keeps of a heap that was larger is told as no heap only if it is the most
    uint64_t heap = most == PICTURE_FREE ? live : picture_heap_bytes(&picture);
    if (picture.bytes[most] < LEAST_BYTES || heap >= picture.rss_bytes / 2) return false;
    claim_set(claim, "bytes", (int64_t)picture.bytes[most]);
    claim_set(claim, "rss_bytes", (int64_t)picture.rss_bytes);
    claim_set(claim, "is_most", picture.bytes[most] > picture.rss_bytes / 2);
    claim_set(claim, "live_bytes", (int64_t)picture.bytes[PICTURE_LIVE]);
    claim_set_text(claim, "what", words[most]);
    claim_set(claim, "at_ns", (int64_t)picture.at_ns);
    return true;
}

bool claim_of_heap(struct claim *claim, const struct profile *profile, size_t index) {
    struct picture picture;
    *claim = (struct claim){.key = CLAIM_HEAP};
    if (!picture_of(profile->recording, index, &picture)) return false;
    claim_set(claim, "at_ns", (int64_t)picture.at_ns);
    claim_set(claim, "heap_bytes", (int64_t)picture_heap_bytes(&picture));
    set_part(claim, "live_bytes", &picture, PICTURE_LIVE, picture.is_live_part);
    claim_set(claim, "is_live_known", picture.is_live_part);
    claim_set(claim, "is_doubtful", picture.is_live_part && !picture_knows_free(&picture));
    return true;
}

void memory_print_line(const struct terminal *terminal, const struct profile *profile,
                       const struct view_options *view) {
    static const char key[] = "resident ";
    char sentence[CLAIM_SENTENCE_BYTES];
    struct claim claim;
    size_t column = KEY_COLUMNS;
    if (!claim_of_resident(&claim, profile, view->is_plain_number)) return;
    claim_sentence(&claim, view->is_plain_number, sentence);
    terminal_indent(terminal, 2);
    terminal_print(terminal, STYLE_DIM, "%-*s", KEY_COLUMNS - 2, "resident");
    for (const char *text = sentence + sizeof key - 1; *text;) {
        const char *end = term_end(text);
        print_term(terminal, &column, text, end);
        text = *end ? end + 1 : end;
    }
    fputc('\n', terminal->out);
}

// Returns false for a part that is within another one, and not told apart.
bool memory_part_is_known(const struct picture *picture, enum picture_part part) {
    return !((part == PICTURE_LIVE && !picture->is_live_part) ||
             (part == PICTURE_FREE && !picture->is_free_part) ||
             (part == PICTURE_SLACK && !picture->is_slack_part) ||
             (part == PICTURE_MAPPED && !picture->is_mapped_part));
}

static void put_picture(struct json *json, const char *key, const struct recording *recording,
                        size_t index) {
    struct picture picture;
    if (!picture_of(recording, index, &picture)) {
        json_put_null(json, key);
        return;
    }
    json_open_object(json, key);
    json_put_uint(json, "at_ns", picture.at_ns);
    json_put_uint(json, "rss_bytes", picture.rss_bytes);
    json_put_uint(json, "pss_bytes", picture.pss_bytes);
    json_put_uint(json, "swap_bytes", picture.swap_bytes);
    for (int part = 0; part < PICTURE_PARTS; part++)
        if (!memory_part_is_known(&picture, part))
            json_put_null(json, picture_part_key(part));
        else
            json_put_uint(json, picture_part_key(part), picture.bytes[part]);
    json_put_uint(json, "heap_live_bytes", picture.live_bytes);
    json_put_uint(json, "heap_live_blocks", picture.live_blocks);
    json_put_uint(json, "arenas", picture.arena_count);
    json_put_uint(json, "arena_chunk_bytes", picture.chunk_bytes);
    json_put_uint(json, "arena_top_bytes", picture.top_bytes);
    json_put_bool(json, "free_is_partial", picture.is_cut);
    json_close(json);
}

void memory_json_put(struct json *json, const struct recording *recording) {
    struct cairn_resident value;
    put_picture(json, "at_peak", recording, CAIRN_PICTURE_AT_PEAK);
    put_picture(json, "last", recording, CAIRN_PICTURE_LAST);
    json_open_array(json, "named");
    for (size_t i = 0; i < recording->names.count; i++) {
        json_open_object(json, NULL);
        json_put_string(json, "name", recording->names.items[i].name);
        json_put_uint(json, "bytes", recording->names.items[i].bytes);
        json_close(json);
    }
    json_close(json);
    json_open_array(json, "points");
    for (size_t i = 0; i < CAIRN_RESIDENT_LIMIT && recording_resident(recording, i, &value); i++) {
        json_open_object(json, NULL);
        json_put_uint(json, "at_ns", value.at_ns);
        json_put_uint(json, "rss_bytes", value.rss_bytes);
        if (value.pss_bytes)
            json_put_uint(json, "pss_bytes", value.pss_bytes);
        else
            json_put_null(json, "pss_bytes");
        json_put_uint(json, "swap_bytes", value.swap_bytes);
        json_close(json);
    }
    json_close(json);
}
