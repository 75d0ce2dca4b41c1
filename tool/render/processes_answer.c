// SPDX-License-Identifier: Apache-2.0
// The processes of a run as rows, those without a recording too.
#include <stdlib.h>

#include "tool/base/units.h"
#include "tool/render/run_screen.h"

enum { FIGURE_COLUMNS = 11, ENDING_BYTES = 64 };

enum process_column {
    PROCESS_PEAK,
    PROCESS_ALLOCATED,
    PROCESS_CALLS,
    PROCESS_EXIT,
    PROCESS_ENDED,
    PROCESS_NAME,
    PROCESS_PID,
    PROCESS_PPID,
    PROCESS_EXIT_BLOCKS,
    PROCESS_FREES,
    PROCESS_RSS,
    PROCESS_CPU,
    PROCESS_DURATION,
    PROCESS_FILE,
    PROCESS_PROBLEM,
    PROCESS_COLUMNS
};

static const struct answer_column process_columns[PROCESS_COLUMNS] = {
    [PROCESS_PEAK] = ANSWER_FIGURES("peak_bytes", "peak heap", ANSWER_BYTES, FIGURE_COLUMNS,
                                    .is_estimate = true),
    [PROCESS_ALLOCATED] =
        ANSWER_FIGURES("allocated_bytes", "allocated", ANSWER_BYTES, FIGURE_COLUMNS),
    [PROCESS_CALLS] = ANSWER_FIGURES("allocations", "calls", ANSWER_COUNT, FIGURE_COLUMNS),
    [PROCESS_EXIT] = ANSWER_FIGURES("at_exit_bytes", "at exit", ANSWER_BYTES, FIGURE_COLUMNS,
                                    .is_estimate = true),
    [PROCESS_ENDED] = ANSWER_TAILS("ended", "  ", NULL, .head = "ended"),
    [PROCESS_NAME] = ANSWER_NAMES("program", ANSWER_TAIL, .head = "process"),
    [PROCESS_PID] = ANSWER_TAILS("pid", " ", NULL, .unit = ANSWER_NUMBER, .head = "pid"),
    [PROCESS_PPID] = ANSWER_DATA("ppid", ANSWER_NUMBER),
    [PROCESS_EXIT_BLOCKS] = ANSWER_DATA("at_exit_blocks", ANSWER_COUNT),
    [PROCESS_FREES] = ANSWER_DATA("frees", ANSWER_COUNT),
    [PROCESS_RSS] = ANSWER_DATA("rss_peak_bytes", ANSWER_BYTES),
    [PROCESS_CPU] = ANSWER_DATA("cpu_ns", ANSWER_TIME),
    [PROCESS_DURATION] = ANSWER_DATA("duration_ns", ANSWER_TIME),
    [PROCESS_FILE] = ANSWER_DATA("file", ANSWER_TEXT),
    [PROCESS_PROBLEM] = ANSWER_DATA("problem", ANSWER_TEXT)};

struct process_list {
    const struct run *run;
    size_t at;
    char ended[ENDING_BYTES];
};

// Sets what is 0 where it is not known.
static void set_known(struct answer_row *row, enum process_column column, uint64_t value) {
    if (value)
        answer_set(row, column, (int64_t)value);
    else
        answer_set_unknown(row, column);
}

static bool next_process(struct answer *answer, struct answer_row *out) {
    struct process_list *list = answer->state;
    if (list->at == answer->shown) return false;
    const struct run_row *row = &list->run->rows.items[list->at++];
    const struct figures *figures = &row->figures;
    const struct ending ending = {row->state, row->stop_reason, row->has_exit, row->exit_status,
                                  row->exit_signal};
    ending_word(&ending, list->ended, sizeof list->ended);
    answer_set_measured(out, PROCESS_PEAK, measure_figures(MEASURE_PEAK, figures));
    answer_set(out, PROCESS_ALLOCATED, (int64_t)figures->allocated_bytes);
    answer_set(out, PROCESS_CALLS, (int64_t)figures->allocations);
    answer_set_measured(out, PROCESS_EXIT, measure_figures(MEASURE_EXIT, figures));
    answer_set_text(out, PROCESS_ENDED, list->ended);
    answer_set_text(out, PROCESS_NAME, row->name);
    answer_set(out, PROCESS_PID, row->pid);
    answer_set(out, PROCESS_PPID, row->ppid);
    answer_set(out, PROCESS_EXIT_BLOCKS, figures->exit_blocks);
    answer_set(out, PROCESS_FREES, (int64_t)figures->frees);
    set_known(out, PROCESS_RSS, row->rss_peak_bytes);
    set_known(out, PROCESS_CPU, row->cpu_ns);
    set_known(out, PROCESS_DURATION, row->duration_ns);
    if (*row->file) answer_set_text(out, PROCESS_FILE, row->file);
    if (*row->problem) answer_set_text(out, PROCESS_PROBLEM, row->problem);
    return true;
}

bool processes_answer(struct answer *answer, const struct run *run, const struct view_options *view,
                      struct error *error) {
    struct process_list *list = calloc(1, sizeof *list);
    if (!list) return error_set(error, "no memory for the processes of a run");
    list->run = run;
    *answer = (struct answer){.options = view,
                              .columns = process_columns,
                              .column_count = PROCESS_COLUMNS,
                              .gap = 1,
                              .shown = answer_cut(view->top, run->rows.count),
                              .count = run->rows.count,
                              .next_row = next_process,
                              .close = free,
                              .state = list};
    for (size_t i = 0; i < run->rows.count; i++)
        answer->is_sampled |= run->rows.items[i].figures.is_sampled;
    snprintf(answer->title, sizeof answer->title, "%s",
             units_counted((int64_t)answer->count, "process", "processes").text);
    return true;
}
