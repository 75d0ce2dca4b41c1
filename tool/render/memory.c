// SPDX-License-Identifier: Apache-2.0
#include "tool/render/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/figures.h"
#include "tool/model/mapped.h"
#include "tool/render/columns.h"
#include "tool/render/stacks.h"

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
    int used = snprintf(out, size, "live heap, %s%s %s%s", picture->is_sampled ? "about " : "",
                        units_count((int64_t)picture->live_blocks).text,
                        units_noun((int64_t)picture->live_blocks, "block", "blocks"),
                        picture->is_sampled ? ", estimated from samples" : "");
    if (picture->is_live_partly && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, "; %s were asked for, not all of it is resident",
                 units_size_as((int64_t)picture->live_bytes, view->is_plain_number).text);
}

// What is not distinguished.
static void describe_rest(const struct picture *picture, char *out, size_t size) {
    const char *free_words = picture->is_cut ? "free, not walked, " : "free, ";
    bool is_all = picture->is_free_part && !picture->is_cut;
    snprintf(out, size, "allocator: %s%sthread caches%s", is_all ? "" : free_words,
             picture->is_slack_part ? "" : "slack, ",
             picture->is_mapped_part ? "" : "; what the program maps itself");
}

static void describe(const struct picture *picture, enum picture_part part,
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
        describe_rest(picture, out, size);
    else if (part == PICTURE_STACKS)
        snprintf(out, size, "%" PRIu32 " %s", picture->stack_count,
                 units_noun((int64_t)picture->stack_count, "stack", "stacks"));
    else
        snprintf(out, size, "%s", words[part]);
}

// "at 0.31 s of 0.50 s"; `end_ns` 0: it is not over.
static void print_picture(const struct terminal *terminal, const struct picture *picture,
                          const struct view_options *view, const char *what, uint64_t end_ns) {
    enum { FIGURES_COLUMNS = 21 };
    char text[PART_BYTES];
    terminal_print(terminal, STYLE_STRONG, "resident memory %s", what);
    fprintf(terminal->out, " at %s", units_duration(picture->at_ns).text);
    if (end_ns > picture->at_ns) fprintf(terminal->out, " of %s", units_duration(end_ns).text);
    fputc('\n', terminal->out);
    for (int part = 0; part < PICTURE_PARTS; part++) {
        uint64_t bytes = picture->bytes[part];
        if (!bytes) continue;
        describe(picture, part, view, text, sizeof text);
        text_cut(text, terminal->columns - FIGURES_COLUMNS - 2);
        terminal_print(terminal, STYLE_STRONG, "%8s",
                       units_percent((int64_t)bytes, (int64_t)picture->rss_bytes).text);
        fprintf(terminal->out, " %10s  %s\n",
                units_size_as((int64_t)bytes, view->is_plain_number).text, text);
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
                       "%s allocates: its free memory and cairn's tables are one part\n",
                       *name ? name : "not glibc's");
    } else if (!picture->arena_count) {
        terminal_print(terminal, STYLE_DIM, "glibc's arenas could not be read\n");
    }
}

static void print_missing(const struct terminal *terminal, const struct profile *profile) {
    const char *reason = "cairn run looks at a program's memory from outside; this was too short, "
                         "or recorded without it";
    if (recording_imported(profile->recording)) reason = "the imported file does not have it";
    terminal_print(terminal, STYLE_DIM, "what resident memory consisted of is not known:\n%s\n",
                   reason);
}

void memory_print(const struct terminal *terminal, const struct profile *profile,
                  const struct view_options *view) {
    struct picture peak, last;
    if (!picture_of(profile->recording, CAIRN_PICTURE_AT_PEAK, &peak)) {
        print_missing(terminal, profile);
        return;
    }
    uint64_t end_ns = profile_has_ended(profile) ? profile->recording->header.end_ns : 0;
    bool is_peak_at_end = end_ns && peak.at_ns >= end_ns;
    print_picture(terminal, &peak, view,
                  is_peak_at_end ? "at the end, its highest as far as was looked,"
                                 : "at its highest, as far as was looked,",
                  end_ns);
    if (picture_of(profile->recording, CAIRN_PICTURE_LAST, &last) && last.at_ns != peak.at_ns) {
        const char *what = !end_ns                ? "at the last look,"
                           : last.at_ns >= end_ns ? "at the end,"
                                                  : "at the last look before the end,";
        fputc('\n', terminal->out);
        print_picture(terminal, &last, view, what, end_ns);
    }
    print_allocator(terminal, profile, &peak);
}

static void print_totals(const struct terminal *terminal, const struct picture *picture,
                         const struct view_options *view, bool are_pages) {
    const uint64_t *bytes = picture->bytes;
    bool is_plain = view->is_plain_number;
    uint64_t heap =
        bytes[PICTURE_LIVE] + bytes[PICTURE_SLACK] + bytes[PICTURE_FREE] + bytes[PICTURE_REST];
    const char *least = picture->is_cut ? "at least " : "";
    terminal_print(terminal, STYLE_STRONG, "the heap at %s", units_duration(picture->at_ns).text);
    fprintf(terminal->out, ": %s resident, %s live on it (%s)\n",
            units_size_as((int64_t)heap, is_plain).text,
            units_size_as((int64_t)bytes[PICTURE_LIVE], is_plain).text,
            units_percent((int64_t)bytes[PICTURE_LIVE], (int64_t)heap).text);
    if (are_pages) return;
    fprintf(terminal->out, "  %10s  in %s live %s\n",
            units_size_as((int64_t)picture->live_bytes, is_plain).text,
            units_count((int64_t)picture->live_blocks).text,
            units_noun((int64_t)picture->live_blocks, "block", "blocks"));
    if (!picture->arena_count) return;
    fprintf(terminal->out, "  %10s  %sfree in chunks of %" PRIu32 " %s\n",
            units_size_as((int64_t)picture->chunk_bytes, is_plain).text, least,
            picture->arena_count, units_noun((int64_t)picture->arena_count, "arena", "arenas"));
    fprintf(terminal->out, "  %10s  free at their ends\n",
            units_size_as((int64_t)picture->top_bytes, is_plain).text);
    fprintf(terminal->out, "  %10s  of the free memory is resident\n",
            units_size_as((int64_t)picture->free_resident_bytes, is_plain).text);
}

void memory_print_totals(const struct terminal *terminal, const struct profile *profile,
                         const struct view_options *view, bool are_pages) {
    struct picture peak, last;
    if (!picture_of(profile->recording, CAIRN_PICTURE_AT_PEAK, &peak)) {
        print_missing(terminal, profile);
        return;
    }
    print_totals(terminal, &peak, view, are_pages);
    if (picture_of(profile->recording, CAIRN_PICTURE_LAST, &last) && last.at_ns != peak.at_ns)
        print_totals(terminal, &last, view, are_pages);
    terminal_print(terminal, STYLE_DIM,
                   "totals as cairn saw them from outside; the %s are those of a process or core:\n"
                   "cairn report --view %s PID\n",
                   are_pages ? "stacks that keep pages" : "sizes and arenas",
                   are_pages ? "pages" : "heap");
}

// Appends " + 1.2 MiB stacks"; starts a line where it does not fit.
static void add_term(const struct terminal *terminal, size_t *column, const char *sign,
                     const char *size, const char *word) {
    size_t columns = strlen(sign) + 1 + strlen(size) + (*word ? 1 + strlen(word) : 0);
    if (*column + 1 + columns > terminal->columns) {
        fputc('\n', terminal->out);
        terminal_indent(terminal, KEY_COLUMNS);
        *column = KEY_COLUMNS;
    } else if (*column > KEY_COLUMNS) {
        fputc(' ', terminal->out);
        ++*column;
    }
    terminal_print(terminal, STYLE_DIM, "%s%s", sign, *sign ? " " : "");
    fprintf(terminal->out, "%s%s%s", size, *word ? " " : "", word);
    *column += columns;
}

// The summary's terms: fewer than there are parts.
static void sum_terms(struct picture *picture) {
    picture->bytes[PICTURE_REST] += picture->bytes[PICTURE_FREE];
    picture->bytes[PICTURE_FREE] = 0;
    picture->bytes[PICTURE_FILES] += picture->bytes[PICTURE_OTHER];
    picture->bytes[PICTURE_OTHER] = 0;
}

void memory_print_line(const struct terminal *terminal, const struct profile *profile,
                       const struct view_options *view) {
    static const char *const words[PICTURE_PARTS] = {
        [PICTURE_LIVE] = "live",     [PICTURE_SLACK] = "slack",   [PICTURE_REST] = "allocator",
        [PICTURE_MAPPED] = "mapped", [PICTURE_STACKS] = "stacks", [PICTURE_FILES] = "files",
        [PICTURE_SHARED] = "shared", [PICTURE_OWN] = "cairn"};
    struct picture picture;
    const char *sign = "";
    if (!picture_of(profile->recording, CAIRN_PICTURE_AT_PEAK, &picture)) return;
    sum_terms(&picture);
    terminal_indent(terminal, 2);
    terminal_print(terminal, STYLE_DIM, "%-*s", KEY_COLUMNS - 2, "resident");
    size_t column = KEY_COLUMNS;
    add_term(terminal, &column, "",
             units_size_as((int64_t)picture.rss_bytes, view->is_plain_number).text, "=");
    for (int part = 0; part < PICTURE_PARTS; part++) {
        if (!picture.bytes[part]) continue;
        bool is_estimate = part == PICTURE_LIVE && picture.is_sampled;
        add_term(terminal, &column, sign,
                 units_size_as((int64_t)picture.bytes[part], view->is_plain_number).text,
                 is_estimate ? "live (estimate)" : words[part]);
        sign = "+";
    }
    add_term(terminal, &column, "at", units_duration(picture.at_ns).text, "");
    fputc('\n', terminal->out);
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
        if ((part == PICTURE_FREE && !picture.is_free_part) ||
            (part == PICTURE_SLACK && !picture.is_slack_part) ||
            (part == PICTURE_MAPPED && !picture.is_mapped_part))
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

enum { MAPPED_COLUMNS = 13, INDENT = 2, RESERVED_TOP = 3, KINDS_BYTES = 64 };

static struct unit_text size_of(const struct view_options *view, int64_t bytes) {
    return units_size_as(bytes, view->is_plain_number);
}

static void print_key(const struct terminal *terminal, const char *key) {
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%-*s", MAPPED_COLUMNS, key);
}

static void print_ranges(const struct terminal *terminal, const struct view_options *view,
                         int64_t bytes, int64_t ranges) {
    fprintf(terminal->out, "%s in %s %s", size_of(view, bytes).text, units_count(ranges).text,
            units_noun(ranges, "mapping", "mappings"));
}

void mapped_print_line(const struct terminal *terminal, const struct profile *profile,
                       const struct view_options *view) {
    const struct mapped_figures *all = &profile->mapped.all;
    if (!profile->mapped.is_recorded) return;
    print_key(terminal, "mapped");
    print_ranges(terminal, view, all->peak_bytes, all->peak_ranges);
    fprintf(terminal->out, " at most, %s %s", size_of(view, all->exit_bytes).text,
            profile_has_ended(profile) ? "at exit" : "now");
    terminal_print(terminal, STYLE_DIM, ": --view mappings\n");
}

static void print_lost(const struct terminal *terminal, uint64_t lost) {
    if (!lost) return;
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_WARNING, "%s %s of mappings could not be noted\n",
                   units_count((int64_t)lost).text, units_noun((int64_t)lost, "change", "changes"));
}

void mapped_print_facts(const struct terminal *terminal, const struct profile *profile,
                        const struct view_options *view) {
    print_key(terminal, "peak mapped");
    terminal_print(terminal, STYLE_STRONG, "%s", size_of(view, profile->peak.bytes).text);
    fprintf(terminal->out, " in %s %s", units_count(profile->peak.blocks).text,
            units_noun(profile->peak.blocks, "mapping", "mappings"));
    if (profile->peak.at_ns)
        fprintf(terminal->out, " at %s", units_duration(profile->peak.at_ns).text);
    fputc('\n', terminal->out);
    print_key(terminal, "mapped");
    fprintf(terminal->out, "%s in %s %s\n",
            size_of(view, (int64_t)profile->totals.allocated_bytes).text,
            units_count((int64_t)profile->totals.allocations).text,
            units_noun((int64_t)profile->totals.allocations, "call", "calls"));
    print_key(terminal, profile_has_ended(profile) ? "at exit" : "mapped now");
    print_ranges(terminal, view, profile->exit_bytes, profile->exit_blocks);
    fputc('\n', terminal->out);
    print_lost(terminal, profile->mapped.lost);
}

static void print_kinds(const struct terminal *terminal, const struct profile *profile,
                        const struct view_options *view) {
    static const char *const words[CAIRN_MAPPING_KINDS] = {
        [CAIRN_MAPPING_ANONYMOUS] = "private memory",
        [CAIRN_MAPPING_FILE] = "files and devices",
        [CAIRN_MAPPING_SHARED] = "shared memory",
        [CAIRN_MAPPING_RESERVED] = "reserved: mapped without access, not in the sums",
        [CAIRN_MAPPING_ALLOCATOR] = "by the allocator itself, for blocks of the heap",
    };
    const struct column items[] = {
        {"at the peak", 12, STYLE_PLAIN, false},
        {profile_has_ended(profile) ? "at the end" : "now", 12, STYLE_PLAIN, false},
        {"calls", 10, STYLE_PLAIN, false}};
    const struct columns columns = {items, 3, 0, 1};
    columns_print_heads(terminal, &columns);
    fputc('\n', terminal->out);
    for (uint32_t kind = 0; kind < CAIRN_MAPPING_KINDS; kind++) {
        const struct mapped_figures *figures = &profile->mapped.kinds[kind];
        if (!figures->calls && !figures->exit_ranges) continue;
        const struct unit_text texts[] = {size_of(view, figures->peak_bytes),
                                          size_of(view, figures->exit_bytes),
                                          units_count((int64_t)figures->calls)};
        columns_print(terminal, &columns, texts);
        fprintf(terminal->out, "  %s\n", words[kind]);
    }
    fputc('\n', terminal->out);
}

static void print_kinds_of(const struct terminal *terminal, const struct profile *profile,
                           const struct stack *stack, const struct view_options *view,
                           void *context) {
    char kinds[KINDS_BYTES];
    (void)profile, (void)view, (void)context;
    mapped_kinds_text(stack_more(stack)->mapping_kinds, kinds, sizeof kinds);
    if (!*kinds || stack_more(stack)->mapping_kinds == 1u << CAIRN_MAPPING_ANONYMOUS) return;
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    terminal_print(terminal, STYLE_DIM, "%s\n", kinds);
}

// The stack that reserves most but for those that reserve as much as `below` and were shown; NULL:
// none.
static const struct stack *next_reserved(const struct profile *profile, const struct stack *last) {
    const struct stack *found = NULL;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        bool is_after =
            !last || stack_more(stack)->reserved_bytes < stack_more(last)->reserved_bytes ||
            (stack_more(stack)->reserved_bytes == stack_more(last)->reserved_bytes && stack > last);
        if (stack_more(stack)->reserved_bytes <= 0 || !is_after) continue;
        if (!found || stack_more(stack)->reserved_bytes > stack_more(found)->reserved_bytes)
            found = stack;
    }
    return found;
}

static bool print_reserved(const struct terminal *terminal, const struct profile *profile,
                           const struct frame_names *names, const struct view_options *view) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    const struct stack *stack = next_reserved(profile, NULL);
    bool is_ok = true;
    if (stack) terminal_print(terminal, STYLE_STRONG, "\nreserved, without access\n");
    for (int i = 0; is_ok && stack && i < RESERVED_TOP; i++) {
        is_ok = frame_list_fill(&frames, profile, names, stack->node, 0);
        if (!is_ok) break;
        fputs("\n    ", terminal->out);
        print_ranges(terminal, view, stack_more(stack)->reserved_bytes,
                     stack_more(stack)->reserved_ranges);
        fputc('\n', terminal->out);
        stacks_print_frames(terminal, &frames, stack->cut, view->depth);
        stack = next_reserved(profile, stack);
    }
    frame_list_free(&frames);
    return is_ok;
}

bool mapped_print(const struct terminal *terminal, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  struct error *error) {
    if (profile->is_of_mappings && profile->mapped.is_recorded)
        print_kinds(terminal, profile, view);
    const struct stacks_notes notes = {.before = print_kinds_of};
    return (stacks_print_noted(terminal, profile, names, view, &notes, error) &&
            print_reserved(terminal, profile, names, view)) ||
           error_set(error, "no memory for the list of stacks");
}

static void put_figures(struct json *json, const struct mapped_figures *figures) {
    json_put_uint(json, "calls", figures->calls);
    json_put_uint(json, "mapped_bytes", figures->mapped_bytes);
    json_put_uint(json, "unmapped_bytes", figures->unmapped_bytes);
    json_put_int(json, "peak_bytes", figures->peak_bytes);
    json_put_int(json, "peak_mappings", figures->peak_ranges);
    json_put_int(json, "at_exit_bytes", figures->exit_bytes);
    json_put_int(json, "at_exit_mappings", figures->exit_ranges);
}

void mapped_json_put(struct json *json, const struct profile *profile) {
    const struct mapped *mapped = &profile->mapped;
    put_figures(json, &mapped->all);
    json_put_uint(json, "peak_at_ns", mapped->peak_ns);
    json_put_uint(json, "lost", mapped->lost);
    json_open_object(json, "kinds");
    for (uint32_t kind = 0; kind < CAIRN_MAPPING_KINDS; kind++) {
        json_open_object(json, mapped_kind_name(kind));
        put_figures(json, &mapped->kinds[kind]);
        json_close(json);
    }
    json_close(json);
}

void mapped_json_put_stack(struct json *json, const struct stack *stack) {
    char kinds[KINDS_BYTES];
    mapped_kinds_text(stack_more(stack)->mapping_kinds, kinds, sizeof kinds);
    json_put_string(json, "kinds", kinds);
    json_put_uint(json, "calls", stack->allocations);
    json_put_uint(json, "mapped_bytes", stack->allocated_bytes);
    json_put_uint(json, "unmapped_bytes", stack->freed_bytes);
    json_put_int(json, "peak_bytes", stack->peak_bytes);
    json_put_int(json, "peak_mappings", stack->peak_blocks);
    json_put_int(json, "at_exit_bytes", stack->exit_bytes);
    json_put_int(json, "at_exit_mappings", stack->exit_blocks);
    json_put_int(json, "reserved_bytes", stack_more(stack)->reserved_bytes);
    json_put_int(json, "reserved_mappings", stack_more(stack)->reserved_ranges);
}
