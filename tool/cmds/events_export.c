// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/events_export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/version.h"
#include "tool/export/heaptrack.h"
#include "tool/export/parquet_file.h"
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

// Of a stack what rows tell. False: it is not known. The first function of the program's own may be
// unknown; it is "" then.
static bool find_stack(struct events_session *session, uint32_t cell, uint64_t *id,
                       char label[FRAME_TEXT_BYTES], char location[FRAME_TEXT_BYTES]) {
    const struct profile *profile = &session->opened.profile;
    uint32_t node = events_node(session, cell);
    const struct frame *frame = NULL;
    *label = *location = 0;
    if (!node) return false;
    *id = profile->stacks[profile->stack_of_cell[cell] - 1].id;
    if (frame_list_fill(&session->frames, profile, &session->names, node, 0))
        frame = frame_list_first_own(&session->frames);
    if (!frame) return true;
    frame_label(frame, label, FRAME_TEXT_BYTES, FRAME_TEXT_BYTES);
    frame_location(frame, location, FRAME_TEXT_BYTES);
    return true;
}

// The stack of a cell as the rest of a row, written once and kept.
static char *stack_text(struct events_session *session, uint32_t cell) {
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES], *text = NULL;
    uint64_t id;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    if (find_stack(session, cell, &id, label, location)) fprintf(out, "%016" PRIx64, id);
    fputc(',', out);
    if (*label) put_text(out, label);
    fputc(',', out);
    if (*label) put_text(out, location);
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

// --- Parquet

// clang-format off
#define COLUMNS(row) \
    row(TIME, "time_ms", NUMBER) \
    row(THREAD, "thread", TEXT) \
    row(EVENT, "event", TEXT) \
    row(ADDRESS, "address", NUMBER) \
    row(BYTES, "bytes", NUMBER) \
    row(ALIGNMENT, "alignment", NUMBER) \
    row(REALLOC_OF, "realloc_of", NUMBER) \
    row(ALLOCATED, "allocated_ms", NUMBER) \
    row(STACK, "stack", NUMBER) \
    row(FUNCTION, "function", TEXT) \
    row(LOCATION, "location", TEXT)
// clang-format on

enum { COLUMNS(PARQUET_COLUMN_NUMBER) COLUMN_COUNT };
static const struct parquet_column columns[] = {COLUMNS(PARQUET_COLUMN_ABOUT)};

// A stack's texts, with their numbers in a row group.
struct parquet_stack {
    char *function, *location;  // NULL: there is none
    uint64_t id;
    size_t group;
    uint32_t function_number, location_number;
    bool is_looked_up, is_known, has_numbers;
};

struct parquet_table {
    struct parquet *parquet;
    struct events_session *session;
    struct parquet_stack *stacks;  // by cell
    size_t count;
    struct error *error;
    bool has_failed;
};

static void look_up(struct parquet_table *table, uint32_t cell, struct parquet_stack *stack) {
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
    stack->is_looked_up = true;
    stack->is_known = find_stack(table->session, cell, &stack->id, label, location);
    if (*label) stack->function = strdup(label);
    if (*location) stack->location = strdup(location);
}

static void put_table_stack(struct parquet_table *table, uint32_t cell) {
    const size_t group = parquet_group(table->parquet);
    if (cell >= table->count) return;
    struct parquet_stack *stack = &table->stacks[cell];
    if (!stack->is_looked_up) look_up(table, cell, stack);
    if (!stack->is_known) return;
    if (!stack->has_numbers || stack->group != group) {
        if (stack->function) stack->function_number = parquet_text(table->parquet, stack->function);
        if (stack->location) stack->location_number = parquet_text(table->parquet, stack->location);
        stack->has_numbers = true;
        stack->group = group;
    }
    parquet_put_number(table->parquet, COLUMN_STACK, (int64_t)stack->id);
    if (stack->function) parquet_put_text(table->parquet, COLUMN_FUNCTION, stack->function_number);
    if (stack->location) parquet_put_text(table->parquet, COLUMN_LOCATION, stack->location_number);
}

static bool put_table_row(void *context, const struct events_seen *seen) {
    struct parquet_table *table = context;
    struct parquet *parquet = table->parquet;
    const struct event *event = &seen->event;
    const struct block_change *change = &seen->change;
    char thread[NAME_MAX];
    events_thread_name(table->session, event->thread, thread, sizeof thread);
    parquet_put_number(parquet, COLUMN_TIME, (int64_t)event->ms);
    parquet_put_text(parquet, COLUMN_THREAD, parquet_text(parquet, thread));
    parquet_put_text(parquet, COLUMN_EVENT, parquet_text(parquet, csv_kind(event)));
    parquet_put_number(parquet, COLUMN_ADDRESS, (int64_t)event->address);
    if (!change->is_unknown) parquet_put_number(parquet, COLUMN_BYTES, (int64_t)events_size(seen));
    if (event->alignment) parquet_put_number(parquet, COLUMN_ALIGNMENT, (int64_t)event->alignment);
    if (event->flags & CAIRN_EVENT_MOVED)
        parquet_put_number(parquet, COLUMN_REALLOC_OF, (int64_t)event->taken);
    if (change->is_freed) parquet_put_number(parquet, COLUMN_ALLOCATED, (int64_t)change->freed.ms);
    put_table_stack(table, events_cell(seen));
    table->has_failed = !parquet_end_row(parquet, table->error);
    return !table->has_failed;
}

static void free_stacks(struct parquet_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        free(table->stacks[i].function);
        free(table->stacks[i].location);
    }
    free(table->stacks);
}

bool events_write_parquet(FILE *out, struct events_session *session, struct error *error) {
    struct parquet_table table = {.session = session, .error = error};
    table.count = session->has_stacks ? session->opened.profile.cell_count : 0;
    table.stacks = calloc(table.count + 1, sizeof *table.stacks);
    if (!table.stacks) return error_set(error, "out of memory");
    table.parquet = parquet_open(out, "cairn version " CAIRN_TOOL_VERSION, error);
    for (size_t i = 0; table.parquet && i < COLUMN_COUNT; i++)
        parquet_add_column(table.parquet, columns[i].name, columns[i].kind);
    bool is_ok =
        table.parquet && events_each(session, put_table_row, &table, error) && !table.has_failed;
    if (is_ok)
        is_ok = parquet_close(table.parquet, error);
    else if (table.parquet)
        parquet_abandon(table.parquet);
    free_stacks(&table);
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
