// SPDX-License-Identifier: Apache-2.0
// What `cairn run` and `cairn attach` do when the recording is complete.
#ifndef TOOL_CMDS_FINISH_H
#define TOOL_CMDS_FINISH_H

#include "tool/cmds/report_summary.h"
#include "tool/watch/memory.h"
#include "tool/watch/run_directory.h"

// What can be done of that while the recording is saved: it is read from the process' memory.
struct finish_early {
    struct memory memory;
    struct opened opened;
    bool is_open;
    struct names_collected names;
    bool has_names;
};

// Takes the memory over. `is_quiet`: no summary will be asked for.
void finish_begin(struct finish_early *early, struct memory *memory, const struct memory_end *end,
                  enum symbolize_which symbols, bool is_quiet);
void finish_free(struct finish_early *early);

// Opens a recording or run that was just made, keeps names in it, and prints its summary, starting
// with "cairn: NAME ended ...", unless `out` is NULL. The names are looked up once for both.
// `early` NULL: nothing was begun.
bool finish_print(FILE *out, const char *path, const struct summary_options *options,
                  struct finish_early *early, struct error *error);

// Says on stderr where the recording is if something was at the path that was asked for: where no
// summary says it.
void finish_say_numbered(const struct run_directory *store);

#endif
