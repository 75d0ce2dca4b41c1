// SPDX-License-Identifier: Apache-2.0
// What a profile looks like in the formats of other tools. A format is a file of this room and a
// row of the table; the caller opens the stream, resolves names and prints what is wrong.
//
// A writer streams: besides the profile it keeps at most tables of the distinct frames. Text from a
// recording is escaped as the format asks for. Each format says how far the numbers can be believed
// where it has a place for it.
#ifndef TOOL_EXPORT_EXPORT_H
#define TOOL_EXPORT_EXPORT_H

#include <stdio.h>

#include "tool/base/error.h"
#include "tool/model/measure.h"
#include "tool/model/profile.h"
#include "tool/render/frames.h"

// The measures that --by names; the others are the same in blocks.
#define EXPORT_MEASURES (MEASURE_CALLS + 1)

// A part of a recording's time, for engines that store one after the other: what was allocated in
// it (the calls and bytes that the stacks of the profile have), and what is held at its end.
struct export_interval {
    uint64_t end_unix_ns, duration_ns;
    const struct stack *folded;  // the sum of stacks that were left out; NULL: none were
};

// What tells a profile from others in an engine: "service_name" and "redis". Both are valid UTF-8.
struct export_label {
    const char *name, *value;
};

// What tells recordings of many apart: "host", "service", "version", and any others.
struct export_labels {
    size_t count;
    const char *const *keys;    // letters, digits and "_"; each once
    const char *const *values;  // of one recording, safe or not; NULL: it does not have it
};

struct export {
    const struct profile *profile;
    const struct export_interval *interval;  // NULL: the whole recording
    const struct frame_names *names;
    enum measure by;
    bool is_by_chosen;                  // by the user; else `by` is the usual one
    bool has_all_frames;                // pictures show internal frames too
    bool has_lines;                     // ... and tell lines of a function apart
    size_t process_count;               // recordings added up in the profile
    const char *program;                // name, safe text
    const char *command;                // as a shell reads it; any bytes; NULL: not to be told
    const char *trust;                  // how far this can be believed: a line of safe text
    const char *tool_version;           // CAIRN_TOOL_VERSION
    const struct export_label *labels;  // of otlp
    size_t label_count;

    bool has_snapshots;  // formats of several moments: what stacks held at snapshots too

    // Of a series (below) alone.
    const struct export_labels *series_labels;
};

// A format that takes one recording after the other instead of their sum.
struct export_series {
    // What add and close have for `context`; NULL after an error was filled. The labels' values
    // mean nothing yet; their keys must live until close.
    void *(*open)(FILE *out, const struct export_labels *labels, const char *tool_version,
                  struct error *error);
    bool (*add)(void *context, const struct export *export, struct error *error);
    // Frees the context. Unless it is complete nothing is written any more.
    bool (*close)(void *context, bool is_complete, struct error *error);
};

struct export_format {
    const char *name;
    const char *ending;  // of a file's name: chosen by it if no format is named
    const char *help;    // what reads it
    // Exactly one of the three. False after an error was filled; a stream's own errors are the
    // caller's to notice.
    bool (*write)(FILE *out, const struct export *export, struct error *error);
    bool (*write_file)(const char *path, const struct export *export, struct error *error);
    const struct export_series *series;
    bool is_binary;    // not for a terminal
    bool needs_frees;  // it is of what was live: not of an import that does not say it
    bool has_heaps;    // it says of each stack which heap it is of
};

extern const struct export_format export_formats[];  // ends with name NULL

// NULL if there is none of that name, or for that path's ending.
const struct export_format *export_format_find(const char *name);
const struct export_format *export_format_of_path(const char *path);

// False with an error if the format is of what this profile does not know, or cannot have it.
bool export_format_check(const struct export_format *format, const struct profile *profile,
                         struct error *error);

// One recording, or the sum of several, in a format that is not a file by name.
bool export_stream(const struct export_format *format, FILE *out, const struct export *export,
                   struct error *error);

// Functions that pprof is to leave out of stacks, as a regular expression, for free(); "" if there
// are none, NULL without memory.
char *export_drop_frames(const struct export *export);

bool export_pprof(FILE *out, const struct export *export, struct error *error);
// The same without gzip.
bool export_pprof_plain(FILE *out, const struct export *export, struct error *error);
// OpenTelemetry's profiles as they are sent, without gzip.
bool export_otlp(FILE *out, const struct export *export, struct error *error);
bool export_collapsed(FILE *out, const struct export *export, struct error *error);
bool export_speedscope(FILE *out, const struct export *export, struct error *error);
bool export_json(FILE *out, const struct export *export, struct error *error);
bool export_flamegraph(FILE *out, const struct export *export, struct error *error);
bool export_sqlite(const char *path, const struct export *export, struct error *error);
bool export_dhat(FILE *out, const struct export *export, struct error *error);
bool export_massif(FILE *out, const struct export *export, struct error *error);
bool export_csv(FILE *out, const struct export *export, struct error *error);
bool export_ndjson(FILE *out, const struct export *export, struct error *error);
bool export_mptrace(FILE *out, const struct export *export, struct error *error);
bool export_callgrind(FILE *out, const struct export *export, struct error *error);
extern const struct export_series export_parquet;
bool export_perfetto(FILE *out, const struct export *export, struct error *error);
bool export_firefox(FILE *out, const struct export *export, struct error *error);
bool export_heaptrack(FILE *out, const struct export *export, struct error *error);

#endif
