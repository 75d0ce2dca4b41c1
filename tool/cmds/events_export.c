// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/events_export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/export/heaptrack.h"
#include "tool/query/exported.h"

// --- CSV

struct csv {
    FILE *out;
    struct events_session *session;
    char **texts;  // of stacks, by cell; NULL: there are none
};

// A text in quotes (RFC 4180). What a spreadsheet would take for a formula starts with an
// apostrophe.
static void put_text(FILE *out, const char *text) {
    fputs(strchr("=+-@", *text) && *text ? "\"'" : "\"", out);
    for (; *text; text++) {
        if (*text == '"') fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static const char *csv_kind(const struct event *event) {
    static const char *const kinds[CAIRN_EVENT_KINDS] = {
        [CAIRN_EVENT_ALLOC] = "alloc",       [CAIRN_EVENT_FREE] = "free",
        [CAIRN_EVENT_TAKE] = "take",         [CAIRN_EVENT_GONE] = "realloc-free",
        [CAIRN_EVENT_BACK] = "realloc-fail", [CAIRN_EVENT_MAP] = "mmap",
        [CAIRN_EVENT_UNMAP] = "munmap",
    };
    if (event->flags & CAIRN_EVENT_THERE) return "there";
    if (event->flags & CAIRN_EVENT_UNSEEN) return "unseen-free";
    if (event->flags & CAIRN_EVENT_MOVED) return "realloc";
    if (event->flags & CAIRN_EVENT_CLEARED) return "calloc";
    return kinds[event_kind(event)];
}

// The stack of a cell as the rest of a row, written once and kept.
static char *stack_text(struct events_session *session, uint32_t cell) {
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES], *text = NULL;
    const struct profile *profile = &session->opened.profile;
    uint32_t node = events_node(session, cell);
    const struct frame *frame = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    if (node && frame_list_fill(&session->frames, profile, &session->names, node, 0))
        frame = frame_list_first_own(&session->frames);
    if (node)
        fprintf(out, "%016" PRIx64 ",", profile->stacks[profile->stack_of_cell[cell] - 1].id);
    else
        fputc(',', out);
    if (frame) {
        frame_label(frame, label, sizeof label, sizeof label);
        frame_location(frame, location, sizeof location);
        put_text(out, label);
        fputc(',', out);
        put_text(out, location);
    } else {
        fputc(',', out);
    }
    return fclose(out) == 0 ? text : NULL;
}

static void put_stack(struct csv *csv, uint32_t cell) {
    bool is_known = csv->texts && cell < csv->session->opened.profile.cell_count;
    if (is_known && !csv->texts[cell]) csv->texts[cell] = stack_text(csv->session, cell);
    fputs(is_known && csv->texts[cell] ? csv->texts[cell] : ",,", csv->out);
    fputc('\n', csv->out);
}

static bool put_row(void *context, const struct events_seen *seen) {
    struct csv *csv = context;
    const struct event *event = &seen->event;
    const struct block_change *change = &seen->change;
    char thread[NAME_MAX];
    events_thread_name(csv->session, event->thread, thread, sizeof thread);
    fprintf(csv->out, "%" PRIu64 ",", event->ms);
    put_text(csv->out, thread);
    fprintf(csv->out, ",%s,0x%" PRIx64 ",", csv_kind(event), event->address);
    if (!change->is_unknown) fprintf(csv->out, "%" PRIu64, events_size(seen));
    fputc(',', csv->out);
    if (event->alignment) fprintf(csv->out, "%" PRIu64, event->alignment);
    fputc(',', csv->out);
    if (event->flags & CAIRN_EVENT_MOVED) fprintf(csv->out, "0x%" PRIx64, event->taken);
    fputc(',', csv->out);
    if (change->is_freed) fprintf(csv->out, "%" PRIu64, change->freed.ms);
    fputc(',', csv->out);
    put_stack(csv, events_cell(seen));
    return !ferror(csv->out);
}

bool events_write_csv(FILE *out, struct events_session *session, struct error *error) {
    const size_t count = session->has_stacks ? session->opened.profile.cell_count : 0;
    struct csv csv = {out, session, calloc(count + 1, sizeof *csv.texts)};
    if (!csv.texts) return error_set(error, "out of memory");
    fputs("time_ms,thread,event,address,bytes,alignment,realloc_of,allocated_ms,stack,function,"
          "location\n",
          out);
    bool is_ok = events_each(session, put_row, &csv, error);
    for (size_t i = 0; i < count; i++) free(csv.texts[i]);
    free(csv.texts);
    return is_ok;
}

// --- heaptrack

struct heaptrack_context {
    struct events_session *session;
    struct heaptrack_log *log;
};

static bool put_event(void *context, const struct events_seen *seen) {
    const struct heaptrack_context *to = context;
    const struct block_change *change = &seen->change;
    heaptrack_time(to->log, seen->event.ms);
    if (change->is_freed)
        heaptrack_free(to->log, events_node(to->session, change->freed.cell), change->freed.size);
    if (change->is_allocated)
        heaptrack_alloc(to->log, events_node(to->session, change->allocated.cell),
                        change->allocated.size);
    return true;
}

bool events_write_heaptrack(FILE *out, struct events_session *session, struct error *error) {
    struct exported exported = {0};
    struct heaptrack_context context = {.session = session};
    if (!exported_prepare_with(&session->opened, &session->names, &exported, error)) return false;
    context.log = heaptrack_open(out, &exported.export, error);
    bool is_ok = context.log && events_each(session, put_event, &context, error);
    if (context.log) is_ok = heaptrack_close(context.log, is_ok ? error : NULL) && is_ok;
    exported_free(&exported);
    return is_ok;
}
