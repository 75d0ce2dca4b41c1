// SPDX-License-Identifier: Apache-2.0
// cairn replay: the calls of an event log on an allocator.
#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/replay_options.h"
#include "tool/replay/allocators.h"

enum { SPARK_COLUMNS = 48, NAME_WIDTH = 14 };

struct screen {
    struct terminal terminal;
    const struct replay_result *result;
    bool is_plain;
};

static const char *size_text(const struct screen *screen, int64_t bytes, struct unit_text *text) {
    *text = units_size_as(bytes, screen->is_plain);
    return text->text;
}

// "24.1 MiB live, 27.9 MiB resident (16 % more)".
static void print_pair(const struct screen *screen, const char *name, int64_t live,
                       int64_t resident) {
    struct unit_text a, b;
    terminal_print(&screen->terminal, STYLE_PLAIN, "  %-*s %10s live  ", NAME_WIDTH, name,
                   size_text(screen, live, &a));
    terminal_print(&screen->terminal, STYLE_STRONG, "%10s resident",
                   size_text(screen, resident, &b));
    const int64_t far = 3;
    if (live > 0 && resident > far * live)
        terminal_print(&screen->terminal, STYLE_PLAIN, ", %.1f times as much",
                       (double)resident / (double)live);
    else if (live > 0 && resident > live)
        terminal_print(&screen->terminal, STYLE_PLAIN, ", %s more",
                       units_percent(resident - live, live).text);
    fputc('\n', screen->terminal.out);
}

static void print_line(const struct screen *screen, const char *name, bool is_resident) {
    const struct replay_result *result = screen->result;
    uint64_t times[CAIRN_REPLAY_SAMPLES];
    int64_t values[CAIRN_REPLAY_SAMPLES], columns[SPARK_COLUMNS];
    size_t count = result->told.sample_count;
    if (count < 2) return;
    for (size_t i = 0; i < count; i++) {
        const struct cairn_replay_sample *sample = &result->samples[i];
        int64_t value = is_resident ? sample->resident_bytes : sample->live_bytes;
        times[i] = sample->calls;
        values[i] = value > 0 ? value : 0;
    }
    const struct spark_line line = {times, values, count};
    spark_over_time(&line, columns, SPARK_COLUMNS);
    terminal_print(&screen->terminal, STYLE_PLAIN, "  %-*s ", NAME_WIDTH, name);
    spark_print(&screen->terminal, columns, SPARK_COLUMNS);
    fputc('\n', screen->terminal.out);
}

static void print_classes(const struct screen *screen) {
    const struct cairn_replay *told = &screen->result->told;
    uint64_t most = 16;
    terminal_print(&screen->terminal, STYLE_DIM, "  %-*s %14s %10s %14s %10s\n", NAME_WIDTH,
                   "sizes", "allocations", "ns each", "frees", "ns each");
    for (uint32_t i = 0; i < CAIRN_REPLAY_CLASSES; i++, most <<= CAIRN_REPLAY_CLASS_SHIFT) {
        uint64_t given = told->given[i].calls, freed = told->freed[i].calls;
        bool is_last = i == CAIRN_REPLAY_CLASSES - 1;
        char name[NAME_MAX];
        if (!given && !freed) continue;
        uint64_t bound = is_last ? most >> CAIRN_REPLAY_CLASS_SHIFT : most;
        snprintf(name, sizeof name, "%s %s", is_last ? "above" : "up to",
                 units_size((int64_t)bound).text);
        fprintf(screen->terminal.out, "  %-*s %14s %10.1f %14s %10.1f\n", NAME_WIDTH, name,
                units_count((int64_t)given).text, replay_ns_each(told, &told->given[i]),
                units_count((int64_t)freed).text, replay_ns_each(told, &told->freed[i]));
    }
}

static void print_all(const struct screen *screen, const struct replay_order *order,
                      const struct script *script, const char *allocator) {
    const struct terminal *terminal = &screen->terminal;
    const struct cairn_replay *told = &screen->result->told;
    double ns = replay_allocator_ns(told);
    char name[NAME_MAX];
    text_escape(name, sizeof name, allocator);
    terminal_print(terminal, STYLE_STRONG, "%s", name);
    terminal_print(terminal, STYLE_PLAIN, ": %s, %s in the allocator (%.1f ns a call), ",
                   units_counted((int64_t)told->call_count, "call", "calls").text,
                   units_duration((uint64_t)ns).text, ns / (double)told->call_count);
    terminal_print(terminal, STYLE_PLAIN, "%s\n",
                   units_counted((int64_t)(told->minor_faults + told->major_faults), "page fault",
                                 "page faults")
                       .text);
    print_pair(screen, "peak", (int64_t)script->peak_live_bytes, told->peak_bytes);
    print_pair(screen, "at the end", told->end_live_bytes, told->end_bytes);
    print_pair(screen, "95 % freed", told->freed_live_bytes, told->freed_bytes);
    print_line(screen, "live", false);
    print_line(screen, "resident", true);
    print_classes(screen);
    replay_print_notes(terminal, order, script);
}

static bool replay(const struct command_args *args, const struct replay_order *order,
                   struct error *error) {
    const char *allocator = args_text(args, OPTION_ALLOCATOR, allocator_names[0]);
    char library[PATH_MAX];
    struct script script;
    static struct replay_result result;
    if (!allocator_find(allocator, library, error)) return false;
    if (!replay_order_open(order, &script, error)) return false;
    struct runner_setting setting = order->setting;
    setting.library = library;
    bool is_ok = runner_run(&script, &setting, &result, error);
    if (is_ok) {
        const struct screen screen = {terminal_of(stdout), &result, args_has(args, OPTION_BYTES)};
        print_all(&screen, order, &script, allocator);
    } else {
        error_wrap(error, "%s", allocator);
    }
    script_close(&script);
    return is_ok;
}

int cmd_replay(const struct command_args *args) {
    struct replay_order order;
    struct error error;
    const char *speed = args_text(args, OPTION_SPEED, "max");
    if (!replay_order_read(args, &order, &error)) return command_fail(STATUS_USAGE, &error);
    order.options.is_timed = !strcmp(speed, "recorded");
    if (!order.options.is_timed && strcmp(speed, "max") != 0) {
        error_set(&error, "replay: --speed %s: not one of max, recorded", speed);
        return command_fail(STATUS_USAGE, &error);
    }
    return replay(args, &order, &error) ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
