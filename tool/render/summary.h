// SPDX-License-Identifier: Apache-2.0
// The first screen: how the process ended, its peak, what it allocated and left, how far that can
// be believed, and which places held the memory at the peak.
#ifndef TOOL_RENDER_SUMMARY_H
#define TOOL_RENDER_SUMMARY_H

#include "tool/render/findings.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

struct summary {
    const struct profile *profile;
    const struct frame_names *names;
    const struct view_options *view;
    const char *path;                 // of the recording, named in the last line
    const char *process;              // of a run, named before its sentences; NULL: none is
    const char *next;                 // the command to go on with, named there too; NULL: none
    const char *empty_reason;         // why nothing was recorded, if that is known; else NULL
    const struct findings *findings;  // after the list; NULL: none
    bool has_prefix;  // starts with "cairn: ", for the end of somebody else's output
    bool has_list;    // with the places at the peak
    bool is_alive;    // the process is known to run
};

// Everything but the last line. False without memory.
bool summary_print_facts(const struct terminal *terminal, const struct summary *summary,
                         struct error *error);
// The sentences why it is as big as it is, as far as that is known.
bool summary_print_first(const struct terminal *terminal, const struct summary *summary,
                         struct error *error);
// In one line, above a view: the recording, its peak, whether it is exact, of how many processes it
// is one (NULL: of none), and the snapshot that the view is of ("": none was asked for).
void summary_print_context(const struct terminal *terminal, const struct summary *summary,
                           const char *of_run, const char *at_text);
// The places at the peak alone.
bool summary_print_list(const struct terminal *terminal, const struct summary *summary,
                        struct error *error);
// The last line: the file and its size, commands to go on with.
void summary_print_file(const struct terminal *terminal, const struct summary *summary);

// The last line for any path.
void summary_print_path(const struct terminal *terminal, const char *path, uint64_t bytes,
                        const char *next);

#endif
