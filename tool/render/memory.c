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

// "when RSS was 11.6 MiB of 46.3 MiB", safe to print.
static void describe_moment(const struct picture *picture, const struct view_options *view,
                            char *out, size_t size) {
    snprintf(out, size, "when RSS was %s of %s",
             units_size_as((int64_t)picture->rss_bytes, view->is_plain_number).text,
             units_size_as((int64_t)picture->peak_bytes, view->is_plain_number).text);
}

static void print_part(const struct terminal *terminal, const struct picture *picture,
                       const struct view_options *view, uint64_t bytes, char *words) {
    enum { FIGURES_COLUMNS = 21 };
    if (!bytes) return;
    terminal_print(terminal, STYLE_STRONG, "%8s",
                   units_percent((int64_t)bytes, (int64_t)picture->rss_bytes).text);
    fprintf(terminal->out, " %10s  ", units_size_as((int64_t)bytes, view->is_plain_number).text);
    terminal_print_wrapped(terminal, FIGURES_COLUMNS, FIGURES_COLUMNS, words);
}

// Takes what the process named out of the part in which it is, and prints it by name. It is known
// of the last look alone, while the process goes on.
static void print_names(const struct terminal *terminal, const struct recording *recording,
                        struct picture *picture, const struct view_options *view) {
    struct picture last;
    uint64_t *in = &picture->bytes[picture->is_mapped_part ? PICTURE_MAPPED : PICTURE_REST];
    bool is_of_now = picture_of(recording, CAIRN_PICTURE_LAST, &last) &&
                     last.at_ns == picture->at_ns && last.rss_bytes == picture->rss_bytes;
    for (size_t i = 0; is_of_now && i < recording->names.count; i++) {
        char safe[PART_BYTES - sizeof "[anon:]"], text[PART_BYTES];
        uint64_t bytes =
            recording->names.items[i].bytes < *in ? recording->names.items[i].bytes : *in;
        text_escape(safe, sizeof safe, recording->names.items[i].name);
        snprintf(text, sizeof text, "[anon:%s]", safe);
        print_part(terminal, picture, view, bytes, text);
        *in -= bytes;
    }
}

// "at 0.31 s of 0.50 s"; `end_ns` 0: it is not over. `what`: "": it is not the highest.
static void print_picture(const struct terminal *terminal, const struct recording *recording,
                          struct picture *picture, const struct view_options *view,
                          const char *what, uint64_t end_ns) {
    char text[PART_BYTES];
    terminal_print(terminal, STYLE_STRONG, "resident memory%s%s", *what ? " " : "", what);
    fprintf(terminal->out, " at %s", units_duration(picture->at_ns).text);
    if (end_ns > picture->at_ns) fprintf(terminal->out, " of %s", units_duration(end_ns).text);
    if (!*what) {
        describe_moment(picture, view, text, sizeof text);
        fprintf(terminal->out, ", %s", text);
    }
    fputc('\n', terminal->out);
    for (int part = 0; part < PICTURE_PARTS; part++) {
        if (part == PICTURE_REST) print_names(terminal, recording, picture, view);
        memory_part_text(picture, part, view, text, sizeof text);
        print_part(terminal, picture, view, picture->bytes[part], text);
    }
    terminal_print(terminal, STYLE_STRONG, "%8s", "100 %");
    fprintf(terminal->out, " %10s  resident; PSS %s, swap %s\n",
            units_size_as((int64_t)picture->rss_bytes, view->is_plain_number).text,
            units_size_as((int64_t)picture->pss_bytes, view->is_plain_number).text,
            units_size_as((int64_t)picture->swap_bytes, view->is_plain_number).text);
}

// Whose free memory is not distinguished, and why.
static void print_allocator(const struct terminal *terminal, const struct profile *profile,
                            const struct picture *picture) {
    struct recording *recording = profile->recording;
    if (recording->header.allocator == CAIRN_ALLOCATOR_OTHER) {
        char name[PART_BYTES];
        const char *path = recording_string(recording, recording->header.allocator_module);
        text_escape(name, sizeof name, text_base_name(path));
        text_cut(name, terminal->columns / 2);
        terminal_print(terminal, STYLE_DIM,
                       "%s allocates: of its memory, free and cached is one part\n",
                       *name ? name : "not glibc's");
    } else if (!picture->arena_count) {
        terminal_print(terminal, STYLE_DIM, "glibc's arenas could not be read\n");
    }
}

const char *memory_reason_of_none(struct recording *recording) {
    return recording_imported(recording)
               ? "the imported file does not have it"
               : "cairn run looks at a program's memory from outside; this was too short, or "
                 "recorded without it";
}

static void print_missing(const struct terminal *terminal, const struct profile *profile) {
    terminal_print(terminal, STYLE_DIM, "what resident memory consisted of is not known:\n%s\n",
                   memory_reason_of_none(profile->recording));
}

// Names the reading at which most was resident; "": it was less than the peak.
static const char *words_of_highest(const struct picture *picture, uint64_t end_ns) {
    bool is_at_end = end_ns && picture->at_ns >= end_ns;
    if (!picture_is_of_peak(picture)) return is_at_end ? "at the end," : "";
    return is_at_end ? "at the end, its highest as far as was looked,"
                     : "at its highest, as far as was looked,";
}

void memory_print(const struct terminal *terminal, const struct profile *profile,
                  const struct view_options *view) {
    struct picture peak, last;
    if (!picture_of(profile->recording, CAIRN_PICTURE_AT_PEAK, &peak)) {
        print_missing(terminal, profile);
        return;
    }
    uint64_t end_ns = profile_has_ended(profile) ? profile->recording->header.end_ns : 0;
    print_picture(terminal, profile->recording, &peak, view, words_of_highest(&peak, end_ns),
                  end_ns);
    if (picture_of(profile->recording, CAIRN_PICTURE_LAST, &last) && last.at_ns != peak.at_ns) {
        const char *what = !end_ns                ? "at the last look,"
                           : last.at_ns >= end_ns ? "at the end,"
                                                  : "at the last look before the end,";
        fputc('\n', terminal->out);
        print_picture(terminal, profile->recording, &last, view, what, end_ns);
    }
    print_allocator(terminal, profile, &peak);
}

static void print_free(const struct terminal *terminal, const struct picture *picture,
                       const struct view_options *view) {
    bool is_plain = view->is_plain_number;
    const char *least = picture->is_cut ? "at least " : "";
    fprintf(terminal->out, "  %10s  %sfree in chunks of %" PRIu32 " %s\n",
            units_size_as((int64_t)picture->chunk_bytes, is_plain).text, least,
            picture->arena_count, units_noun((int64_t)picture->arena_count, "arena", "arenas"));
    fprintf(terminal->out, "  %10s  free at their ends\n",
            units_size_as((int64_t)picture->top_bytes, is_plain).text);
    fprintf(terminal->out, "  %10s  of the free memory is resident\n",
            units_size_as((int64_t)picture->free_resident_bytes, is_plain).text);
}

static void print_totals(const struct terminal *terminal, const struct profile *profile,
                         size_t index, const struct view_options *view, bool are_pages) {
    char sentence[CLAIM_SENTENCE_BYTES];
    bool is_plain = view->is_plain_number;
    struct picture picture;
    struct claim claim;
    if (!picture_of(profile->recording, index, &picture) || !claim_of_heap(&claim, profile, index))
        return;
    claim_sentence(&claim, is_plain, sentence);
    const char *rest = strchr(sentence, ':');
    terminal_print(terminal, STYLE_STRONG, "%.*s", (int)(rest - sentence), sentence);
    fprintf(terminal->out, "%s\n", rest);
    if (are_pages && picture_knows_free(&picture)) return;
    fprintf(terminal->out, "  %10s  in %s live %s\n",
            units_size_as((int64_t)picture.live_bytes, is_plain).text,
            units_count((int64_t)picture.live_blocks).text,
            units_noun((int64_t)picture.live_blocks, "block", "blocks"));
    if (picture.arena_count) print_free(terminal, &picture, view);
}

void memory_print_totals(const struct terminal *terminal, const struct profile *profile,
                         const struct view_options *view, bool are_pages) {
    struct picture peak, last;
    if (!picture_of(profile->recording, CAIRN_PICTURE_AT_PEAK, &peak)) {
        print_missing(terminal, profile);
        return;
    }
    print_totals(terminal, profile, CAIRN_PICTURE_AT_PEAK, view, are_pages);
    if (picture_of(profile->recording, CAIRN_PICTURE_LAST, &last) && last.at_ns != peak.at_ns)
        print_totals(terminal, profile, CAIRN_PICTURE_LAST, view, are_pages);
    terminal_print(terminal, STYLE_DIM,
                   "totals as cairn saw them from outside; the %s are those of a process or core:\n"
                   "cairn report --view %s PID\n",
                   are_pages ? "stacks that keep pages" : "sizes and arenas",
                   are_pages ? "pages" : "heap");
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
        [PICTURE_MAPPED] = "mapped", [PICTURE_STACKS] = "stacks", [PICTURE_FILES] = "files",
        [PICTURE_SHARED] = "shared", [PICTURE_OWN] = "cairn"};
    if (part == PICTURE_LIVE && picture->is_sampled) return "live (estimate)";
    return part == PICTURE_REST && !picture->is_live_part ? "live or free" : words[part];
}

// "42.1 MiB live + 3.0 MiB files".
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
