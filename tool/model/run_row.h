// SPDX-License-Identifier: Apache-2.0
// One process of a run, and the line that stands for it in the index of the run's directory
// (docs/reference/format.md has the columns). The index is text of unknown origin when it is read
// back.
#ifndef TOOL_MODEL_RUN_ROW_H
#define TOOL_MODEL_RUN_ROW_H

#include "tool/model/figures.h"

#define RUN_INDEX_NAME "index"
#define RUN_INDEX_MAGIC "# cairn.index/1"
#define RUN_LINE_MAX 4096   // bytes of a line, its end included
#define RUN_TEXT_MAX 256    // bytes of a text in it
#define RUN_PROBLEM_MAX 64  // bytes of the reason why a recording is lost

struct run_row {
    char file[RUN_TEXT_MAX];    // within the directory; "": no recording was kept
    char parent[RUN_TEXT_MAX];  // file of the process that this one is a fork of; "": none
    char name[RUN_TEXT_MAX];    // of the program, as it was called
    uint32_t pid, ppid;
    uint64_t start_unix_ns, start_clock_ns;
    uint64_t duration_ns;  // 0: it runs, or its end was not seen
    uint32_t state;        // enum cairn_state
    uint32_t stop_reason;  // enum cairn_stop
    bool has_exit;
    int32_t exit_status, exit_signal;
    struct figures figures;
    uint64_t rss_peak_bytes, cpu_ns;
    char problem[RUN_PROBLEM_MAX];  // why its recording could not be written; "": it was, or it is
                                    // small and was not to be
    bool is_there;                  // set by readers of a directory: it has the file
};

// What a recording says about its process; `file` and `parent` stay for the caller to fill.
void run_row_of(const struct recording *recording, struct run_row *row);

// "file.12.cairn": a name without directories that ends like a recording's.
bool run_row_is_file_name(const char *name);

// The first line of an index, and a row's line, each with its end; bytes written.
size_t run_row_heading(char line[RUN_LINE_MAX]);
size_t run_row_print(const struct run_row *row, char line[RUN_LINE_MAX]);

// Reads a line without its end (`line` is changed). False if it is not of that form.
bool run_row_parse(char *line, struct run_row *row);

#endif
