// SPDX-License-Identifier: Apache-2.0
// A whole profile as one JSON object, schema "cairn.report/1"; docs/reference/json.md explains it.
#ifndef TOOL_RENDER_REPORT_JSON_H
#define TOOL_RENDER_REPORT_JSON_H

#include <stdio.h>

#include "tool/base/json.h"
#include "tool/model/run_row.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

struct findings;
struct run;
struct trust_sums;

#define REPORT_SCHEMA "cairn.report/1"

// `view` gives the order of the stacks (by), how many (top) and how many frames of each (depth);
// `findings`, settled, are for what can be claimed (NULL: nothing, of a part of a process). False
// without memory.
bool report_json_print(FILE *out, const struct profile *profile, const struct frame_names *names,
                       const struct findings *findings, const struct view_options *view,
                       struct error *error);

// The same as a part of another object or array: `file` names its recording there. The object is
// left open, for what the caller knows beside it.
bool report_json_put(struct json *json, const char *file, const struct profile *profile,
                     const struct frame_names *names, const struct findings *findings,
                     const struct view_options *view, struct error *error);
// A process of a run without a recording of its own: the same fields as far as its row in the index
// knows them, no stacks, no threads; "file" is null.
void report_json_put_row(struct json *json, const struct run_row *row);

// "trust" of a run: all its processes together, and those whose recordings are lost.
void report_json_put_run_trust(struct json *json, const struct run *run,
                               const struct trust_sums *sums);

// Parts of it as members of another object: process, totals, peak, at_exit, rss and trust; threads.
void report_json_put_facts(struct json *json, const struct profile *profile,
                           const struct frame_names *names);
void report_json_put_threads(struct json *json, const struct profile *profile);

// argv as one line that a shell reads back; any bytes.
#define REPORT_COMMAND_BYTES (2 * CAIRN_TEXT_COMMAND)
void report_command_line(const struct cairn_header *header, char *out, size_t size);

#endif
