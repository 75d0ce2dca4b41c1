// SPDX-License-Identifier: Apache-2.0
#include "tool/render/overruns_screen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"
#include "tool/render/columns.h"
#include "tool/render/json_values.h"
#include "tool/render/stacks.h"

enum { INDENT = 2, KEY_COLUMNS = 13, TEXT_BYTES = 256, LABEL_COLUMNS = 48 };

static struct unit_text count_text(uint64_t count) {
    return units_count(count < INT64_MAX ? (int64_t)count : INT64_MAX);
}

void overruns_print_line(const struct terminal *terminal, const struct profile *profile) {
    const struct cairn_guard *guard = &profile->overruns.guard;
    if (!guard->band_bytes) return;
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%-*s", KEY_COLUMNS, "overruns");
    if (guard->overrun_blocks)
        terminal_print(terminal, STYLE_WARNING, "%s %s written past: --view overruns",
                       count_text(guard->overrun_blocks).text,
                       units_noun((int64_t)guard->overrun_blocks, "block was", "blocks were"));
    else
        fputs("no block", terminal->out);
    fprintf(terminal->out, " (guard bands of %" PRIu32 " bytes", guard->band_bytes);
    if (guard->unguarded_blocks)
        fprintf(terminal->out, ", %s %s none for want of memory",
                count_text(guard->unguarded_blocks).text,
                units_noun((int64_t)guard->unguarded_blocks, "block had", "blocks had"));
    if (!guard->checked_ns) fputs(", what was never freed was not looked at", terminal->out);
    fputs(")\n", terminal->out);
}

// Overruns of one kind: the same stacks, found_at and sides.
static bool is_alike(const struct overrun *a, const struct overrun *b) {
    return a->node == b->node && a->found_node == b->found_node &&
           a->entry.found_at == b->entry.found_at &&
           !a->entry.before.changed_bytes == !b->entry.before.changed_bytes &&
           !a->entry.behind.changed_bytes == !b->entry.behind.changed_bytes;
}

struct kind {
    const struct overrun *first;
    uint64_t count;
};

static int compare_kinds(const void *a, const void *b) {
    const struct kind *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->first < y->first ? -1 : 1;
}

// The most frequent first. NULL without memory.
static struct kind *kinds_of(const struct overruns *overruns, size_t *count) {
    struct kind *kinds = calloc(overruns->list.count + 1, sizeof *kinds);
    *count = 0;
    for (size_t i = 0; kinds && i < overruns->list.count; i++) {
        const struct overrun *overrun = &overruns->list.items[i];
        size_t at = 0;
        while (at < *count && !is_alike(kinds[at].first, overrun)) at++;
        if (at == *count) kinds[(*count)++].first = overrun;
        kinds[at].count++;
    }
    if (kinds) qsort(kinds, *count, sizeof *kinds, compare_kinds);
    return kinds;
}

// "1 byte behind", "4 bytes before, 1 byte behind".
static void sides_text(const struct cairn_overrun *found, char *out, size_t size) {
    const struct cairn_overrun_side *before = &found->before, *behind = &found->behind;
    size_t used = 0;
    *out = 0;
    if (before->changed_bytes)
        used = (size_t)snprintf(out, size, "%" PRIu32 " %s before%s", before->changed_bytes,
                                units_noun((int64_t)before->changed_bytes, "byte", "bytes"),
                                behind->changed_bytes ? ", " : "");
    if (behind->changed_bytes)
        snprintf(out + used, size - used, "%" PRIu32 " %s behind", behind->changed_bytes,
                 units_noun((int64_t)behind->changed_bytes, "byte", "bytes"));
}

static const char *found_at_text(uint32_t found_at) {
    switch (found_at) {
    case CAIRN_OVERRUN_AT_FREE:
        return "found when it was freed";
    case CAIRN_OVERRUN_AT_REALLOC:
        return "found when it was reallocated";
    case CAIRN_OVERRUN_AT_EXIT:
        return "found at the end";
    default:
        return "found when it was asked for";
    }
}

// "offset 24: 00 61": what lies there now, from the first changed byte to the last one.
static void print_side(const struct terminal *terminal, const struct cairn_overrun_side *side,
                       int64_t offset) {
    uint32_t length = side->farthest - side->nearest + 1;
    if (!side->changed_bytes) return;
    terminal_indent(terminal, STACKS_NOTE_INDENT);
    fprintf(terminal->out, "offset %" PRId64 ":", offset);
    for (uint32_t i = 0; i < length && i < CAIRN_OVERRUN_SAMPLE; i++)
        fprintf(terminal->out, " %02x", side->sample[i]);
    fputs(length > CAIRN_OVERRUN_SAMPLE ? " \xe2\x80\xa6\n" : "\n", terminal->out);
}

// Says why there is no list.
static const char *reason_of_none(const struct profile *profile) {
    const struct cairn_guard *guard = &profile->overruns.guard;
    const char *reason = "no block was written past, as far as the bands tell";
    if (!guard->band_bytes) reason = "the blocks had no guard bands (cairn run --guard)";
    if (guard->overrun_blocks) reason = "they are known of each process: --process PID|NAME";
    return reason;
}

// "make bad.c:5" of a stack's innermost frame that is shown.
static bool print_site(FILE *out, const struct profile *profile, const struct frame_names *names,
                       uint32_t node) {
    struct frame_list frames = {0};
    char label[FRAME_TEXT_BYTES] = STACK_NOT_RECORDED, location[FRAME_TEXT_BYTES] = "";
    size_t index = 0;
    bool is_ok = frame_list_fill(&frames, profile, names, node, 0);
    const struct frame *frame = is_ok ? frame_list_next(&frames, &index) : NULL;
    if (frame) frame_label(frame, label, sizeof label, LABEL_COLUMNS);
    if (frame) frame_location(frame, location, sizeof location);
    fprintf(out, "%s%s%s", label, *location ? " " : "", location);
    frame_list_free(&frames);
    return is_ok;
}

void overruns_print_short(FILE *out, const struct profile *profile, const struct frame_names *names,
                          size_t top) {
    size_t count;
    struct kind *kinds = kinds_of(&profile->overruns, &count);
    for (size_t i = 0; kinds && i < count && i < top; i++) {
        const struct overrun *overrun = kinds[i].first;
        char sides[TEXT_BYTES];
        sides_text(&overrun->entry, sides, sizeof sides);
        fprintf(out, "      %6s %-5s  %s %s from ", count_text(kinds[i].count).text,
                units_noun((int64_t)kinds[i].count, "time", "times"), sides,
                units_size((int64_t)overrun->entry.size).text);
        print_site(out, profile, names, overrun->node);
        if (overrun->found_node != TREE_ROOT) fputs(", freed by ", out);
        if (overrun->found_node != TREE_ROOT) print_site(out, profile, names, overrun->found_node);
        fputc('\n', out);
    }
    free(kinds);
}

static void put_side(struct json *json, const char *key, const struct cairn_overrun_side *side,
                     int64_t offset) {
    enum { DIGITS = 2 };
    char bytes[DIGITS * CAIRN_OVERRUN_SAMPLE + 1] = "";
    uint32_t length = side->farthest - side->nearest + 1;
    if (!side->changed_bytes) {
        json_put_null(json, key);
        return;
    }
    for (uint32_t i = 0; i < length && i < CAIRN_OVERRUN_SAMPLE; i++)
        snprintf(bytes + DIGITS * i, DIGITS + 1, "%02x", side->sample[i]);
    json_open_object(json, key);
    json_put_uint(json, "changed_bytes", side->changed_bytes);
    json_put_int(json, "offset", offset);
    json_put_uint(json, "span_bytes", length);
    json_put_string(json, "hex", bytes);
    json_close(json);
}

static const char *found_at_key(uint32_t found_at) {
    static const char *const keys[] = {[CAIRN_OVERRUN_AT_FREE] = "free",
                                       [CAIRN_OVERRUN_AT_REALLOC] = "realloc",
                                       [CAIRN_OVERRUN_AT_EXIT] = "exit",
                                       [CAIRN_OVERRUN_ASKED] = "asked"};
    return found_at < sizeof keys / sizeof *keys ? keys[found_at] : NULL;
}

static bool put_overrun(struct json *json, const struct profile *profile,
                        const struct frame_names *names, const struct overrun *overrun) {
    json_open_object(json, NULL);
    json_put_string(json, "found_at", found_at_key(overrun->entry.found_at));
    json_put_uint(json, "found_ns", overrun->entry.found_ns);
    json_put_uint(json, "found_tid", overrun->entry.found_tid);
    json_put_uint(json, "address", overrun->entry.address);
    json_put_uint(json, "size", overrun->entry.size);
    put_side(json, "before", &overrun->entry.before, overrun_before(overrun));
    put_side(json, "behind", &overrun->entry.behind, overrun_behind(overrun));
    bool is_ok = json_values_put_frames(json, "allocated_by", profile, names, overrun->node) &&
                 json_values_put_frames(json, "freed_by", profile, names, overrun->found_node);
    json_close(json);
    return is_ok;
}

bool overruns_put_json(struct json *json, const struct profile *profile,
                       const struct frame_names *names) {
    const struct cairn_guard *guard = &profile->overruns.guard;
    bool is_ok = true;
    if (!guard->band_bytes) return true;
    json_open_object(json, "guard");
    json_put_uint(json, "band_bytes", guard->band_bytes);
    json_put_uint(json, "overrun_blocks", guard->overrun_blocks);
    json_put_uint(json, "unguarded_blocks", guard->unguarded_blocks);
    json_put_uint(json, "checked_blocks", guard->checked_blocks);
    json_open_array(json, "overruns");
    for (size_t i = 0; is_ok && i < profile->overruns.list.count; i++)
        is_ok = put_overrun(json, profile, names, &profile->overruns.list.items[i]);
    json_close(json);
    json_close(json);
    return is_ok;
}

enum overrun_column {
    OVERRUN_TIMES,
    OVERRUN_SIDES,
    OVERRUN_SIZE,
    OVERRUN_FOUND,
    OVERRUN_FOUND_AT,
    OVERRUN_FOUND_NS,
    OVERRUN_TID,
    OVERRUN_ADDRESS,
    OVERRUN_BEFORE,
    OVERRUN_BEHIND,
    OVERRUN_COLUMNS
};

static const struct answer_column overrun_columns[OVERRUN_COLUMNS] = {
    [OVERRUN_TIMES] = ANSWER_FIGURES("times", "times", ANSWER_COUNT, INDENT),
    [OVERRUN_SIDES] = ANSWER_TAILS(NULL, " ", NULL, .head = "written"),
    [OVERRUN_SIZE] = ANSWER_FIGURES("size", "block of", ANSWER_BYTES, INDENT),
    [OVERRUN_FOUND] = ANSWER_TAILS(NULL, " ", NULL, .head = "found"),
    [OVERRUN_FOUND_AT] = ANSWER_DATA("found_at", ANSWER_TEXT),
    [OVERRUN_FOUND_NS] = ANSWER_DATA("found_ns", ANSWER_TIME),
    [OVERRUN_TID] = ANSWER_DATA("found_tid", ANSWER_NUMBER),
    [OVERRUN_ADDRESS] = ANSWER_DATA("address", ANSWER_NUMBER),
    [OVERRUN_BEFORE] = ANSWER_DATA("changed_bytes_before", ANSWER_BYTES),
    [OVERRUN_BEHIND] = ANSWER_DATA("changed_bytes_behind", ANSWER_BYTES)};

struct overrun_list {
    struct kind *kinds;
    const struct frame_names *names;
    struct frame_list frames, found;
    size_t at;
    char sides[TEXT_BYTES];
};

static bool next_overrun(struct answer *answer, struct answer_row *row) {
    struct overrun_list *list = answer->state;
    if (list->at == answer->shown) return false;
    const struct kind *kind = &list->kinds[list->at++];
    const struct overrun *overrun = kind->first;
    const struct cairn_overrun *entry = &overrun->entry;
    bool has_found = overrun->found_node != TREE_ROOT;
    list->frames.are_all_shown = list->found.are_all_shown =
        !answer->is_screen || answer->options->has_all_frames;
    sides_text(entry, list->sides, sizeof list->sides);
    answer_set(row, OVERRUN_TIMES, (int64_t)kind->count);
    answer_set_text(row, OVERRUN_SIDES, list->sides);
    answer_set(row, OVERRUN_SIZE, (int64_t)entry->size);
    answer_set_text(row, OVERRUN_FOUND, found_at_text(entry->found_at));
    answer_set_text(row, OVERRUN_FOUND_AT, found_at_key(entry->found_at));
    answer_set(row, OVERRUN_FOUND_NS, (int64_t)entry->found_ns);
    answer_set(row, OVERRUN_TID, entry->found_tid);
    answer_set(row, OVERRUN_ADDRESS, (int64_t)entry->address);
    answer_set(row, OVERRUN_BEFORE, entry->before.changed_bytes);
    answer_set(row, OVERRUN_BEHIND, entry->behind.changed_bytes);
    answer->is_failed =
        !frame_list_fill(&list->frames, answer->profile, list->names, overrun->node, 0) ||
        (has_found &&
         !frame_list_fill(&list->found, answer->profile, list->names, overrun->found_node, 0));
    row->frames = &list->frames;
    row->freed_by = has_found ? &list->found : NULL;
    return !answer->is_failed;
}

static void say_stack(const struct terminal *terminal, const char *title) {
    terminal_indent(terminal, STACKS_NOTE_INDENT - 2);
    terminal_print(terminal, STYLE_DIM, "%s\n", title);
}

static void say_overrun(const struct terminal *terminal, struct answer *answer,
                        enum answer_say where) {
    const struct overrun_list *list = answer->state;
    const struct kind *kind = &list->kinds[list->at - 1];
    const struct cairn_overrun *found = &kind->first->entry;
    if (where == ANSWER_SAY_FIGURES) {
        terminal_print(terminal, STYLE_WARNING, "%s", list->sides);
        fprintf(terminal->out, " a block of %s at 0x%" PRIx64 ", %s",
                units_size_as((int64_t)found->size, answer->options->is_plain_number).text,
                found->address, found_at_text(found->found_at));
        if (kind->count > 1)
            fprintf(terminal->out, "; %s more like it", count_text(kind->count - 1).text);
        fputc('\n', terminal->out);
        print_side(terminal, &found->before, overrun_before(kind->first));
        print_side(terminal, &found->behind, overrun_behind(kind->first));
        say_stack(terminal, "allocated by");
    }
    if (where != ANSWER_SAY_BELOW || kind->first->found_node == TREE_ROOT) return;
    bool is_freed = found->found_at == CAIRN_OVERRUN_AT_FREE;
    say_stack(terminal, is_freed ? "freed by" : "reallocated by");
    stacks_print_frames(terminal, &list->found, 0, answer->options->depth);
}

static void close_overruns(void *state) {
    struct overrun_list *list = state;
    frame_list_free(&list->frames);
    frame_list_free(&list->found);
    free(list->kinds);
    free(list);
}

bool overruns_answer(struct answer *answer, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     struct error *error) {
    struct overrun_list *list = calloc(1, sizeof *list);
    size_t count = 0;
    if (list) list->kinds = kinds_of(&profile->overruns, &count);
    if (!list || !list->kinds) {
        free(list);
        return error_set(error, "no memory for the list of overruns");
    }
    list->names = names;
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .columns = overrun_columns,
                              .column_count = OVERRUN_COLUMNS,
                              .gap = 1,
                              .has_frames = true,
                              .has_freed_by = true,
                              .shown = answer_cut(view->top, count),
                              .count = count,
                              .are_blocks = true,
                              .say = say_overrun,
                              .next_row = next_overrun,
                              .close = close_overruns,
                              .state = list};
    const uint64_t blocks = profile->overruns.guard.overrun_blocks;
    char known[TEXT_BYTES / 2] = "", kinds[TEXT_BYTES] = "";
    if (blocks > profile->overruns.list.count)
        snprintf(known, sizeof known, " among the first %s",
                 count_text(profile->overruns.list.count).text);
    if (count)
        snprintf(kinds, sizeof kinds, ", %s %s%s", count_text(count).text,
                 units_noun((int64_t)count, "kind", "kinds"), known);
    snprintf(answer->title, sizeof answer->title, "%s overrun %s%s", count_text(blocks).text,
             units_noun((int64_t)blocks, "block", "blocks"), kinds);
    snprintf(answer->none, sizeof answer->none, "%s", reason_of_none(profile));
    return true;
}
