// SPDX-License-Identifier: Apache-2.0
#include "tool/serve/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/query/exported.h"
#include "tool/query/log_views.h"
#include "tool/query/merged.h"
#include "tool/query/name_hints.h"
#include "tool/query/snapshot_options.h"
#include "tool/render/alike.h"
#include "tool/render/terminal.h"
#include "tool/render/trust.h"

enum { LINE_COLUMNS = 4000, LOST_BYTES = 512 };

static const char *empty_reason(const struct opened *opened) {
    if (opened->profile.stack_count) return NULL;
    if (opened_is_alive(opened)) return "the program has not allocated anything yet";
    return "the program allocated nothing, or its allocator cannot be seen (cairn info says more)";
}

// "ended with status 0 after 0.5 s", for free().
static char *ending_of(const struct opened *opened) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    const struct terminal terminal = {.out = out, .columns = LINE_COLUMNS};
    ending_print(&terminal, &opened->profile, opened_is_alive(opened));
    if (!fclose(out)) return text;
    free(text);
    return NULL;
}

// What its reader has to know is printed at once, and is not only on the page.
static void say_what_lacks(const char *path, const struct opened *opened, const char *trust) {
    const char *empty = empty_reason(opened);
    bool is_whole = recording_is_whole(&opened->recording);
    if (empty || !is_whole) fprintf(stderr, "cairn: %s: %s\n", path, is_whole ? empty : trust);
}

void page_matching_start(struct page_matching *matching, enum measure by) {
    *matching = (struct page_matching){.by = by};
    diff_start(&matching->diff, 2, 1);
}

void page_matching_free(struct page_matching *matching) {
    diff_free(&matching->diff);
    array_free(&matching->rows);
}

static bool match_side(struct page_matching *matching, enum web_role role,
                       const struct opened *opened, const struct frame_names *names,
                       struct error *error) {
    const struct view_options view = {.by = matching->by};
    size_t first = matching->rows.count;
    for (size_t i = 0; i < opened->profile.stack_count; i++) {
        uint32_t *row = array_push(&matching->rows);
        if (!row) return error_set(error, "no memory for the comparison");
    }
    return diff_add_every_stack(&matching->diff, role == WEB_AFTER, &opened->profile, names, &view,
                                matching->rows.items + first, error);
}

bool page_put_matching(struct web *web, struct page_matching *matching, struct error *error) {
    if (!diff_join_similar(&matching->diff, error)) return false;
    for (size_t i = 0; i < matching->rows.count; i++)
        matching->rows.items[i] = diff_joined_row(&matching->diff, matching->rows.items[i]);
    web_put_matching(web, matching->rows.items, matching->rows.count);
    return true;
}

static bool look_at_snapshot(struct opened *opened, const char *snapshot, struct error *error) {
    const struct snapshot_request request = {snapshot ? SNAPSHOT_WANTED_AT : SNAPSHOT_WANTED_NONE,
                                             snapshot};
    return snapshot_options_apply(&request, opened, error);
}

// The page is a page without it, too.
static bool look_at_heap(const struct heap_look *look, const struct profile *profile,
                         struct heap_state *heap) {
    struct error reason;
    if (heap_look_survey(look, profile, heap, &reason)) return true;
    fprintf(stderr, "cairn: without a picture of its heap: %s\n", reason.text);
    return false;
}

// Likewise.
static void look_at_log(const char *log, struct opened *opened, const struct frame_names *names) {
    struct error reason;
    if (!log || !*log) return;
    snprintf(opened->log, sizeof opened->log, "%s", log);
    if (!log_views_find_pools(opened, names, &reason))
        fprintf(stderr, "cairn: without candidates for pools: %s\n", reason.text);
}

// The page shows or hides internal frames: stacks are one that read the same with all of them.
static bool join_alike(struct opened *opened, const struct frame_names *names,
                       struct error *error) {
    const struct alike_reading reading = {.is_by_programs = true, .are_all_shown = true};
    return alike_join(&opened->profile, names, MEASURE_PEAK, reading, error);
}

static bool put_opened(struct web *web, const struct page_part *part, struct opened *opened,
                       const struct heap_state *heap, struct error *error) {
    struct exported exported = {0};
    const char *path = part->shown_path ? part->shown_path : part->path;
    bool is_told = part->role != WEB_PROCESS && !part->is_silent;
    bool is_ok = look_at_snapshot(opened, part->snapshot, error)
                     ? exported_prepare(opened, &exported, error)
                     : error_wrap(error, "%s", path);
    char lost[LOST_BYTES];
    if (is_ok && is_told && name_hints_lost(opened, lost, sizeof lost))
        fprintf(stderr, "cairn: %s: %s\n", text_base_name(path), lost);
    // pools are of stacks as they were recorded, which the log has
    if (is_ok) look_at_log(part->log, opened, &exported.names);
    is_ok = is_ok && join_alike(opened, &exported.names, error);
    char *ending = is_ok ? ending_of(opened) : NULL;
    if (is_ok && is_told) say_what_lacks(path, opened, exported.trust);
    if (is_ok && !ending) is_ok = error_set(error, "%s: no memory for its page", path);
    const struct web_profile profile = {
        &exported.export, part->role,           path,
        ending,           empty_reason(opened), *opened->at_text ? opened->at_text : NULL};
    is_ok = is_ok && web_put_profile(web, &profile, error) &&
            (!part->matching ||
             match_side(part->matching, part->role, opened, &exported.names, error)) &&
            (!heap || web_put_heap(web, heap, error));
    free(ending);
    exported_free(&exported);
    return is_ok;
}

bool page_put_recording(struct web *web, const struct page_part *part, struct error *error) {
    struct heap_state heap;
    struct opened opened;
    char *words[] = {(char *)part->path, NULL};
    const struct opening opening = {.words = words, .count = 1};
    if (!opening_open(&opening, &opened, error)) return false;
    bool has_heap = part->look && look_at_heap(part->look, &opened.profile, &heap);
    bool is_ok = put_opened(web, part, &opened, has_heap ? &heap : NULL, error);
    if (has_heap) heap_state_free(&heap);
    opened_close(&opened);
    return is_ok;
}
