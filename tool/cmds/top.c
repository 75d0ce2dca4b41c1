// SPDX-License-Identifier: Apache-2.0
// cairn top: what a running process holds, by stack, again and again on a terminal or once.
#include <errno.h>
#include <string.h>
#include <time.h>

#include "tool/base/near.h"
#include "tool/base/text.h"
#include "tool/cmds/commands.h"
#include "tool/query/progress.h"
#include "tool/query/top_session.h"
#include "tool/render/top_json.h"
#include "tool/tui/browser.h"

enum { ROWS_USUAL = 20 };

struct wish {
    const char *which;  // PID or NAME; NULL: the list
    enum live_measure by;
    unsigned interval_ms;
    size_t rows;          // of --once; 0: all
    const char *context;  // a key of labels, "" for whole sets, or "key=value"; NULL: all stacks
    const char *heap;     // an allocator by name; "": the list of them; NULL: malloc's heap
    bool is_once, is_json;
};

static bool read_interval(const struct command_args *args, struct wish *wish, struct error *error) {
    const uint64_t ns_per_ms = 1000000, least_ms = 100, most_ms = 3600000;
    uint64_t interval_ns;
    wish->interval_ms = 500;
    if (!args_duration(args, OPTION_INTERVAL, &interval_ns, error)) return false;
    if (!interval_ns) return true;
    if (interval_ns < least_ms * ns_per_ms || interval_ns > most_ms * ns_per_ms)
        return error_set(error, "top: --interval is from 100ms to 1h");
    wish->interval_ms = (unsigned)(interval_ns / ns_per_ms);
    return true;
}

static bool wish_read(const struct command_args *args, struct wish *wish, struct error *error) {
    const char *by = args_text(args, OPTION_BY, "live");
    uint64_t rows;
    *wish = (struct wish){.which = args->word_count ? args->words[0] : NULL,
                          .is_json = args_has(args, OPTION_JSON),
                          .context = args_text(args, OPTION_CONTEXT, NULL),
                          .heap = args_text(args, OPTION_HEAP, NULL)};
    // without a screen for it the text is printed once
    wish->is_once = args_has(args, OPTION_ONCE) || wish->is_json || !browser_is_possible();
    if (!live_measure_parse(by, &wish->by)) {
        char question[NEAR_QUESTION_BYTES];
        near_ask_of(by, LIVE_MEASURE_NAMES, question);
        return error_set(error, "top: cannot rank by \"%s\"%s, but by " LIVE_MEASURE_NAMES, by,
                         question);
    }
    if (!args_number(args, OPTION_TOP, wish->is_json ? 0 : ROWS_USUAL, SIZE_MAX, &rows, error))
        return false;
    wish->rows = rows;
    if (wish->heap && !wish->which)
        return error_set(error, "top: --heap needs the PID or NAME of a process");
    if (wish->heap && wish->context)
        return error_set(error, "top: --heap and --context: one of them at a time");
    if (wish->context && !wish->which)
        return error_set(error, "top: --context needs the PID or NAME of a process");
    if (wish->context && strlen(wish->context) >= CAIRN_LABEL_TEXT)
        return error_set(error, "top: --context: no label has more than %u bytes",
                         CAIRN_LABEL_TEXT - 1);
    return read_interval(args, wish, error);
}

static bool print_list(const struct wish *wish, struct top *top, struct error *error) {
    struct terminal terminal = terminal_of(stdout);
    if (!top_session_list(top, error)) return false;
    if (wish->is_json) {
        top_json_print_processes(stdout, top->processes.items, top->processes.count);
        return true;
    }
    if (!top->processes.count) return live_tell_absence(NULL, error);
    bool has_sampled = top_has_sampled(top->processes.items, top->processes.count);
    top_print_process_columns(&terminal, has_sampled);
    for (size_t i = 0; i < top->processes.count; i++)
        top_print_process(&terminal, &top->processes.items[i], has_sampled);
    return true;
}

static void pause_for(unsigned milliseconds) {
    enum { MS_PER_S = 1000, NS_PER_MS = 1000000 };
    struct timespec left = {.tv_sec = milliseconds / MS_PER_S,
                            .tv_nsec = (long)(milliseconds % MS_PER_S) * NS_PER_MS};
    while (nanosleep(&left, &left) && errno == EINTR) continue;
}

static bool print_json(const struct top *top, size_t count, struct error *error) {
    uint32_t *stacks = calloc(count + 1, sizeof *stacks);
    if (!stacks) return error_set(error, "no memory for the list of stacks");
    for (size_t i = 0; i < count; i++) stacks[i] = top->rows.items[i].stack;
    bool is_ok = top_json_print(stdout, &top->view, stacks, count, error);
    free(stacks);
    return is_ok;
}

static bool print_text(const struct top *top, size_t count) {
    struct terminal terminal = terminal_of(stdout);
    bool is_ok = true;
    top_print_title(&terminal, &top->view);
    top_print_what(&terminal, &top->view, &top->sums);
    if (count) top_print_columns(&terminal, &top->view);
    for (size_t i = 0; i < count && is_ok; i++)
        is_ok = top_print_row(&terminal, &top->view, top->rows.items[i].stack);
    top_print_details(&terminal, &top->view);
    return is_ok;
}

// Two looks, since rates need them.
static bool print_once(const struct wish *wish, struct top_session *session, struct top *top,
                       struct error *error) {
    pause_for(wish->interval_ms);
    if (!top_session_host.look(session, top, error)) return false;
    if (!top_list(top)) return error_set(error, "no memory for the list of stacks");
    size_t count = top->rows.count;
    if (wish->rows && wish->rows < count) count = wish->rows;
    if (!top_session_host.find_names(session, top, 0, count, true, error)) return false;
    if (wish->is_json) return print_json(top, count, error);
    return print_text(top, count) || error_set(error, "no memory for the list of stacks");
}

// A label or a heap may come yet: that it is not there is said, and no error.
static bool note_absence(const struct wish *wish, struct top_session *session, struct top *top,
                         struct error *error) {
    char safe[sizeof top->key];
    struct recording *recording = &session->live.follow.recording;
    const char *name = wish->heap ? wish->heap : wish->context;
    bool has_it = false;
    if (wish->heap ? !live_part_has_heap(recording, *name ? name : NULL, &has_it)
                   : !live_part_has_label(recording, name, &has_it))
        return error_set(error, "no memory for the names of this recording");
    if (has_it) return true;
    text_escape(safe, sizeof safe, name);
    snprintf(top->message, sizeof top->message, "--%s %s: the program has no such %s so far",
             wish->heap ? "heap" : "context", safe, wish->heap ? "heap" : "label");
    if (wish->is_once) fprintf(stderr, "cairn: top: %s\n", top->message);
    return true;
}

static bool show_context(const struct wish *wish, struct top_session *session, struct top *top,
                         struct error *error) {
    if (!wish->context) return true;
    bool is_label = strchr(wish->context, '=') != NULL;
    const struct live_set set = live_set_of(*wish->context ? wish->context : NULL);
    if (!is_label) snprintf(top->key, sizeof top->key, "%s", wish->context);
    return top_session_host.show(session, top, is_label ? LIVE_OF_LABELS : LIVE_BY_LABELS, &set,
                                 error) &&
           (!*wish->context || note_absence(wish, session, top, error));
}

static bool show_heap(const struct wish *wish, struct top_session *session, struct top *top,
                      struct error *error) {
    if (!wish->heap) return true;
    const struct live_set set = live_set_of(*wish->heap ? wish->heap : NULL);
    return top_session_host.show(session, top, *wish->heap ? LIVE_OF_HEAP : LIVE_BY_HEAPS, &set,
                                 error) &&
           note_absence(wish, session, top, error);
}

static bool show(const struct wish *wish, struct top_session *session, struct top *top,
                 struct error *error) {
    struct live_process process;
    if (!wish->which && wish->is_once) return print_list(wish, top, error);
    if (wish->which) {
        if (!live_choose(wish->which, &process, error)) return false;
        if (!top_session_open(session, top, &process, error)) return false;
        if (!show_context(wish, session, top, error) || !show_heap(wish, session, top, error))
            return false;
        if (wish->is_once) return print_once(wish, session, top, error);
    } else {
        if (!top_session_list(top, error)) return false;
        if (!top->processes.count) return live_tell_absence(NULL, error);
    }
    struct top_host host = top_session_host;
    host.context = session;
    progress_hide();
    return top_run(top, &host, wish->interval_ms, error);
}

int cmd_top(const struct command_args *args) {
    static struct top_session session;  // large, and on pages of its own
    struct top top;
    struct wish wish;
    struct error error;
    if (!wish_read(args, &wish, &error)) return command_fail(STATUS_USAGE, &error);
    top_start(&top, wish.by);
    top.view.has_all_frames = args_has(args, OPTION_ALL_FRAMES);
    top.view.is_plain_number = args_has(args, OPTION_BYTES);
    bool is_ok = show(&wish, &session, &top, &error);
    top_session_close(&session);
    top_close(&top);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
