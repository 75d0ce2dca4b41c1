// SPDX-License-Identifier: Apache-2.0
// The list of processes to choose from, of which none is looked at yet.
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/interval.h"
#include "tool/render/top_screen.h"

enum { NOTE_COLUMNS = INTERVAL_NARROW_COLUMNS + 2 };

bool top_has_sampled(const struct top_process *processes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (processes[i].is_sampled) return true;
    return false;
}

static void print_process_size(const struct terminal *terminal, struct measured measured,
                               bool has_sampled, enum style style) {
    terminal_print(terminal, style, " %9s", units_size(measured_shown(measured)).text);
    if (has_sampled) interval_print(terminal, measured, true);
}

void top_print_process_columns(const struct terminal *terminal, bool has_sampled) {
    static const char note[] = "  " INTERVAL_NARROW_HEADING;
    int pad = has_sampled ? (int)(NOTE_COLUMNS - text_columns(note)) : 0;
    const char *shown = has_sampled ? note : "";
    terminal_print(terminal, STYLE_DIM, "%8s %9s%s%*s %9s%s%*s  PROGRAM\n", "PID", "LIVE", shown,
                   pad, "", "PEAK", shown, pad, "");
}

void top_print_process(const struct terminal *terminal, const struct top_process *process,
                       bool has_sampled) {
    enum { FIGURES = 30, REST_BYTES = 160 };
    char rest[REST_BYTES];
    fprintf(terminal->out, "%8d", process->pid);
    print_process_size(terminal, process->live, has_sampled, STYLE_STRONG);
    print_process_size(terminal, process->peak, has_sampled, STYLE_PLAIN);
    fputs("  ", terminal->out);
    terminal_print(terminal, STYLE_NAME, "%s", process->name);
    int length = snprintf(rest, sizeof rest, " at %s%s", units_duration(process->age_ns).text,
                          process->is_off ? ", off" : "");
    if (process->run)
        snprintf(rest + length, sizeof rest - (size_t)length, ", run of %d", process->run);
    size_t used = FIGURES + text_columns(process->name) + (has_sampled ? 2 * NOTE_COLUMNS : 0);
    if (used + strlen(rest) <= terminal->columns) terminal_print(terminal, STYLE_DIM, "%s", rest);
    fputc('\n', terminal->out);
}
