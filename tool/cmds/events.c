// SPDX-License-Identifier: Apache-2.0
// cairn events: the events of a log, as text, CSV, or in heaptrack's format.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/near.h"
#include "tool/base/output.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/events_export.h"
#include "tool/cmds/events_session.h"
#include "tool/render/terminal.h"

enum { EVENTS_TOP = 20, HEXADECIMAL = 16 };

struct events_format {
    const char *name;
    events_write_fn *write;  // NULL: for a terminal
    bool needs_stacks;
};

static const struct events_format formats[] = {
    {"text", NULL, false},
    {"csv", events_write_csv, false},
    {"parquet", events_write_parquet, false},
    {"heaptrack", events_write_heaptrack, true},
};

struct order {
    const struct events_format *format;
    const char *path;
    uint64_t top;
    struct events_request request;
};

static bool read_format(const struct command_args *args, struct order *order, struct error *error) {
    const char *name = args_text(args, OPTION_FORMAT, formats[0].name);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        order->format = &formats[i];
        if (!strcmp(formats[i].name, name)) return true;
    }
    static const char known[] = "text, csv, parquet, heaptrack";
    char question[NEAR_QUESTION_BYTES];
    near_ask_of(name, known, question);
    return error_set(error, "events: there is no format \"%s\"%s, but %s", name, question, known);
}

static bool read_address(const struct command_args *args, struct order *order,
                         struct error *error) {
    const char *text = args_text(args, OPTION_ADDRESS, NULL);
    char *end;
    if (!text) return true;
    order->request.address = strtoull(text, &end, HEXADECIMAL);
    return (*text && !*end && order->request.address) ||
           error_set(error, "events: --address needs an address as 0x55d0c8a3e2a0, not \"%s\"",
                     text);
}

static bool read_order(const struct command_args *args, struct order *order, struct error *error) {
    struct events_request *request = &order->request;
    *order = (struct order){
        .format = formats, .path = args_text(args, OPTION_OUTPUT, NULL), .top = EVENTS_TOP};
    request->filter.focus = args_text(args, OPTION_FOCUS, NULL);
    request->filter.ignore = args_text(args, OPTION_IGNORE, NULL);
    request->filter.module = args_text(args, OPTION_MODULE, NULL);
    request->thread = args_text(args, OPTION_THREAD, NULL);
    if (!args->word_count) return error_set(error, "events: which log? LOG is NAME.PID.events");
    if (!args_number(args, OPTION_TOP, 0, UINT64_MAX, &order->top, error) ||
        !args_size(args, OPTION_MIN_SIZE, &request->min_bytes, error) ||
        !args_size(args, OPTION_MAX_SIZE, &request->max_bytes, error) ||
        !args_duration(args, OPTION_FROM, &request->from_ns, error) ||
        !args_duration(args, OPTION_TO, &request->to_ns, error))
        return false;
    if (!args_has(args, OPTION_MAX_SIZE)) request->max_bytes = UINT64_MAX;
    if (!args_has(args, OPTION_TO)) request->to_ns = UINT64_MAX;
    return read_format(args, order, error) && read_address(args, order, error);
}

// --- as text

static const char *const names_of_kinds[CAIRN_EVENT_KINDS] = {
    [CAIRN_EVENT_ALLOC] = "alloc",  [CAIRN_EVENT_FREE] = "free",    [CAIRN_EVENT_TAKE] = "realloc",
    [CAIRN_EVENT_GONE] = "realloc", [CAIRN_EVENT_BACK] = "realloc", [CAIRN_EVENT_MAP] = "mmap",
    [CAIRN_EVENT_UNMAP] = "munmap",
};

static const char *name_of(const struct event *event) {
    if (event->flags & CAIRN_EVENT_THERE) return "there";
    if (event->flags & CAIRN_EVENT_UNSEEN) return "gone";
    if (event->flags & CAIRN_EVENT_MOVED) return "realloc";
    if (event->flags & CAIRN_EVENT_CLEARED) return "calloc";
    if (event->flags & CAIRN_EVENT_ALIGNED) return "aligned";
    return names_of_kinds[event_kind(event)];
}

// What one event has to tell beyond its own numbers.
static void print_rest(const struct terminal *terminal, struct events_session *session,
                       const struct events_seen *seen) {
    enum { MS_NS = 1000000 };
    const struct block_change *change = &seen->change;
    if (seen->event.flags & CAIRN_EVENT_MOVED && change->is_freed)
        terminal_print(terminal, STYLE_DIM, "from %" PRIx64 " (%s)  ", change->freed.address,
                       units_size((int64_t)change->freed.size).text);
    else if (change->is_freed)
        terminal_print(terminal, STYLE_DIM, "after %s  ",
                       units_duration((seen->event.ms - change->freed.ms) * MS_NS).text);
    events_print_stack(session, terminal, events_cell(seen));
    fputc('\n', terminal->out);
}

static void print_event(const struct terminal *terminal, struct events_session *session,
                        const struct events_seen *seen, uint64_t number) {
    const double ms_per_s = 1000;
    const struct event *event = &seen->event;
    uint64_t size = events_size(seen);
    char thread[NAME_MAX];
    if (!number)
        terminal_print(terminal, STYLE_DIM, "%10s  %-20s %-8s %-14s %12s  %s\n", "time", "thread",
                       "event", "address", "bytes", "stack that allocated");
    events_thread_name(session, event->thread, thread, sizeof thread);
    terminal_print(terminal, STYLE_PLAIN, "%8.3f s  %-20s %-8s %-14" PRIx64 " ",
                   (double)event->ms / ms_per_s, thread, name_of(event), event->address);
    if (seen->change.is_unknown)
        terminal_print(terminal, STYLE_PLAIN, "%12s  ", "?");
    else
        terminal_print(terminal, STYLE_PLAIN, "%12s  ", units_count((int64_t)size).text);
    print_rest(terminal, session, seen);
}

static void print_losses(const struct terminal *terminal, const struct event_log_facts *facts,
                         const struct events_sums *sums) {
    char beginning[EVENT_LOG_TEXT];
    struct parts parts = {.terminal = terminal};
    const struct cairn_event_end *end = &facts->end;
    if (facts->is_cut)
        parts_add(&parts, STYLE_WARNING,
                  "the log was cut: it ends where cairn did, or the room on the disk");
    if (event_log_is_late(facts)) {
        event_log_beginning(facts, beginning, sizeof beginning);
        parts_add(&parts, STYLE_WARNING, "%s", beginning);
    }
    if (sums->unknown)
        parts_add(&parts, STYLE_WARNING, "%s of blocks that it does not know",
                  units_counted((int64_t)sums->unknown, "free", "frees").text);
    if (end->lost_events)
        parts_add(&parts, STYLE_WARNING, "%s lost, as cairn was behind (--events-wait loses none)",
                  units_counted((int64_t)end->lost_events, "event was", "events were").text);
    if (end->lost_frames)
        parts_add(&parts, STYLE_WARNING, "%s could not be written",
                  units_counted((int64_t)end->lost_frames, "piece", "pieces").text);
    const uint64_t unexplained = event_log_unexplained(facts);
    if (unexplained)
        parts_add(&parts, STYLE_WARNING, "%s missing",
                  units_counted((int64_t)unexplained, "piece is", "pieces are").text);
    if (!parts.used)
        parts_add(&parts, STYLE_PLAIN, "complete: every event from the first to the last");
    parts_end(&parts);
}

// Of the log.
static uint64_t span_ms(const struct event_log_facts *facts) {
    return facts->end_ms > facts->file.begin_ms ? facts->end_ms - facts->file.begin_ms : 0;
}

static void print_summary(const struct terminal *terminal, const struct events_session *session) {
    const struct event_log_facts *facts = event_log_facts(session->log);
    const struct events_sums *sums = &session->sums;
    enum { MS_NS = 1000000 };
    const int64_t count = (int64_t)(facts->event_count - sums->looks);
    terminal_print(terminal, STYLE_STRONG, "%s", units_counted(count, "event", "events").text);
    terminal_print(terminal, STYLE_PLAIN, " in %s, %s (%.1f bytes an event)\n",
                   units_duration(span_ms(facts) * MS_NS).text,
                   units_size((int64_t)facts->file_bytes).text,
                   facts->event_count ? (double)facts->file_bytes / (double)facts->event_count : 0);
    terminal_print(terminal, STYLE_PLAIN, "%s of %s, ",
                   units_counted((int64_t)sums->allocations, "allocation", "allocations").text,
                   units_size((int64_t)sums->allocated_bytes).text);
    terminal_print(terminal, STYLE_PLAIN, "%s of %s, ",
                   units_counted((int64_t)sums->frees, "free", "frees").text,
                   units_size((int64_t)sums->freed_bytes).text);
    terminal_print(terminal, STYLE_PLAIN, "peak %s\n", units_size(sums->peak_bytes).text);
    if (facts->file.flags & CAIRN_EVENT_FILE_LATE)
        terminal_print(terminal, STYLE_PLAIN, "%s of %s were live when it began%s\n",
                       units_counted(facts->file.live_blocks, "block", "blocks").text,
                       units_size(facts->file.live_bytes).text,
                       facts->file.flags & CAIRN_EVENT_FILE_LIVE
                           ? ": as \"there\" among the allocations"
                           : "; which is not known, as the process could not be read");
    print_losses(terminal, facts, sums);
}

struct printing {
    const struct terminal *terminal;
    struct events_session *session;
    uint64_t top, count;
};

static bool print_one(void *context, const struct events_seen *seen) {
    struct printing *printing = context;
    if (!printing->top || printing->count < printing->top)
        print_event(printing->terminal, printing->session, seen, printing->count);
    printing->count++;
    return true;
}

static bool print_text(FILE *out, struct events_session *session, uint64_t top,
                       struct error *error) {
    struct terminal terminal = terminal_of(out);
    struct printing printing = {&terminal, session, top, 0};
    if (!events_each(session, print_one, &printing, error)) return false;
    if (top && printing.count > top)
        terminal_print(&terminal, STYLE_DIM, "%" PRIu64 " more (--top 0 shows all)\n",
                       printing.count - top);
    if (!printing.count && events_is_narrowed(session))
        terminal_print(&terminal, STYLE_DIM, "no event is like that\n");
    fputc('\n', out);
    print_summary(&terminal, session);
    return true;
}

static bool write_out(const struct order *order, struct events_session *session, bool can_replace,
                      struct error *error) {
    struct output output;
    if (!output_open(order->path, can_replace, &output, error)) return false;
    bool is_ok = order->format->write ? order->format->write(output.file, session, error)
                                      : print_text(output.file, session, order->top, error);
    if (is_ok) return output_commit(&output, error);
    output_cancel(&output);
    return false;
}

int cmd_events(const struct command_args *args) {
    struct order order;
    struct events_session *session;
    struct error error;
    if (!read_order(args, &order, &error)) return command_fail(STATUS_USAGE, &error);
    session = events_open(args->words[0], &order.request, order.format->needs_stacks, &error);
    if (!session) return command_fail(STATUS_FAILURE, &error);
    bool is_ok = write_out(&order, session, args_has(args, OPTION_FORCE), &error);
    events_close(session);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
