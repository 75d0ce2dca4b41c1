// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/replay_options.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/units.h"

// One of two words.
static bool read_word(const struct command_args *args, enum option_id option, const char *usual,
                      const char *other, bool *is_other, struct error *error) {
    const char *text = args_text(args, option, usual);
    *is_other = !strcmp(text, other);
    return *is_other || !strcmp(text, usual) ||
           error_set(error, "%s: --%s %s: not one of %s, %s", args->command->name,
                     option_row_of(args->command, option)->name, text, usual, other);
}

static bool read_touch(const struct command_args *args, enum script_touch *touch,
                       struct error *error) {
    const char *text = args_text(args, OPTION_TOUCH, NULL);
    *touch = TOUCH_AS_KNOWN;
    if (!text) return true;
    *touch = TOUCH_ALL;
    if (!strcmp(text, "all")) return true;
    *touch = !strcmp(text, "none") ? TOUCH_NONE : TOUCH_RECORDED;
    return *touch == TOUCH_NONE || !strcmp(text, "recorded") ||
           error_set(error, "%s: --touch %s: not one of all, none, recorded", args->command->name,
                     text);
}

static bool read_variables(const struct command_args *args, struct replay_order *order,
                           struct error *error) {
    const char *text;
    size_t next = 0;
    while ((text = args_next(args, OPTION_ENV, &next))) {
        const char *equal = strchr(text, '=');
        if (!equal || equal == text)
            return error_set(error, "%s: --env needs NAME=VALUE, not \"%s\"", args->command->name,
                             text);
        // two places are for the command's own
        if (order->variable_count + 3 > RUNNER_VARIABLES)
            return error_set(error, "%s: more variables than can be given", args->command->name);
        order->setting.variables[order->variable_count++] = text;
    }
    return true;
}

bool replay_order_read(const struct command_args *args, struct replay_order *order,
                       struct error *error) {
    enum { FREED_PERCENT = 95 };
    *order = (struct replay_order){.setting.library = "",
                                   .options.freed_percent = FREED_PERCENT,
                                   .is_partial = args_has(args, OPTION_PARTIAL)};
    if (!args->word_count)
        return error_set(error, "%s: which log? LOG is NAME.PID.events, from cairn run --events",
                         args->command->name);
    order->log = args->words[0];
    if (!read_word(args, OPTION_THREADS, "as-recorded", "1", &order->options.is_one_thread, error))
        return false;
    return read_touch(args, &order->options.touch, error) && read_variables(args, order, error);
}

static bool check_whole(const struct replay_order *order, const struct event_log *log,
                        struct error *error) {
    const struct event_log_facts *facts = event_log_facts(log);
    char beginning[EVENT_LOG_TEXT], missing[EVENT_LOG_TEXT];
    if (order->is_partial || !event_log_is_partial(log)) return true;
    if (facts->is_cut)
        return error_set(error, "%s: the log was cut (--partial replays it up to there)",
                         order->log);
    event_log_beginning(facts, beginning, sizeof beginning);
    if (facts->file.left_frames)
        return error_set(error,
                         "%s: %s, and blocks that lived then are not known (--partial replays what "
                         "is there)",
                         order->log, beginning);
    if (event_log_is_late(facts))
        return error_set(
            error, "%s: %s: %" PRId64 " blocks were there, %s (--partial replays it from there on)",
            order->log, beginning, facts->file.live_blocks,
            facts->file.flags & CAIRN_EVENT_FILE_LIVE
                ? "which are known, but not how they came to lie as they do"
                : "which are not known");
    event_log_missing(facts, missing, sizeof missing);
    return error_set(error, "%s: missing in the log: %s (--partial replays the rest)", order->log,
                     missing);
}

bool replay_order_open(const struct replay_order *order, struct script *script,
                       struct error *error) {
    struct event_log *log = event_log_open(order->log, error);
    if (!log) return false;
    bool is_open = check_whole(order, log, error);
    if (is_open && !script_make(log, &order->options, script, error))
        is_open = error_wrap(error, "%s", order->log);
    event_log_close(log);
    return is_open;
}

enum { ASSUMED_BYTES = 192 };

// Where older blocks had been nobody can see who wrote to a page.
static void assumed_text(const struct script *script, char *out, size_t size) {
    uint64_t rest =
        script->page_block_bytes - script->known_touch_bytes - script->assumed_touch_bytes;
    struct unit_text share =
        units_percent((int64_t)script->assumed_touch_bytes, (int64_t)script->page_block_bytes);
    int used = 0;
    *out = 0;
    if (script->assumed_touch_bytes)
        used = snprintf(
            out, size,
            "; %s where older blocks had been, as far as these pages were resident (assumed)",
            share.text);
    if (rest) snprintf(out + used, size - (size_t)used, "; of the rest every page (assumed)");
}

static void add_touch(struct parts *parts, const struct replay_order *order,
                      const struct script *script) {
    char assumed[ASSUMED_BYTES];
    assumed_text(script, assumed, sizeof assumed);
    if (!script->is_touch_recorded)
        parts_add(parts, STYLE_DIM, "%s",
                  order->options.touch == TOUCH_NONE ? "assumed: no block is touched"
                                                     : "assumed: every page of a block is touched");
    else
        parts_add(
            parts, STYLE_DIM, "touched as recorded: %s of what lies in blocks of a page and more%s",
            units_percent((int64_t)script->known_touch_bytes, (int64_t)script->page_block_bytes)
                .text,
            assumed);
}

void replay_print_notes(const struct terminal *terminal, const struct replay_order *order,
                        const struct script *script) {
    struct parts parts = {.terminal = terminal};
    char beginning[EVENT_LOG_TEXT], missing[EVENT_LOG_TEXT];
    add_touch(&parts, order, script);
    parts_add(&parts, STYLE_DIM, "%s",
              units_counted(script->thread_count, "thread", "threads").text);
    if (script->mapping_count)
        parts_add(
            &parts, STYLE_DIM, "%s of the program left out",
            units_counted((int64_t)script->mapping_count, "mmap or munmap", "mmaps and munmaps")
                .text);
    const uint32_t log_page_bytes = cairn_page_bytes(script->log.file.page_bytes);
    struct unit_text theirs = units_size(log_page_bytes);
    if (script->page_bytes != log_page_bytes)
        parts_add(&parts, STYLE_WARNING, "pages of %s, where the program had %s",
                  units_size(script->page_bytes).text, theirs.text);
    if (event_log_is_late(&script->log)) {
        event_log_beginning(&script->log, beginning, sizeof beginning);
        parts_add(&parts, STYLE_WARNING, "%s", beginning);
    }
    if (script->log.is_cut) parts_add(&parts, STYLE_WARNING, "up to where the log was cut");
    event_log_missing(&script->log, missing, sizeof missing);
    if (*missing) parts_add(&parts, STYLE_WARNING, "missing: %s", missing);
    if (script->unknown_count)
        parts_add(&parts, STYLE_WARNING, "%s of unknown blocks left out",
                  units_counted((int64_t)script->unknown_count, "free", "frees").text);
    if (script->assumed_count)
        parts_add(&parts, STYLE_WARNING, "%s made up, where an address came back",
                  units_counted((int64_t)script->assumed_count, "free", "frees").text);
    parts_end(&parts);
}
