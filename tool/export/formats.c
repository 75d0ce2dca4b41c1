// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tool/export/export.h"

const struct export_format export_formats[] = {
    {.name = "pprof",
     .ending = ".pb.gz",
     .help = "go tool pprof, Pyroscope, Parca",
     .write = export_pprof,
     .is_binary = true,
     .has_heaps = true},
    {.name = "collapsed",
     .ending = ".folded",
     .help = "flamegraph.pl and other flame graph tools",
     .write = export_collapsed,
     .has_heaps = true},
    {.name = "speedscope",
     .ending = ".speedscope.json",
     .help = "speedscope, in a browser",
     .write = export_speedscope},
    {.name = "json", .ending = ".json", .help = "everything, for programs", .write = export_json},
    {.name = "flamegraph",
     .ending = ".svg",
     .help = "a picture (SVG), in a browser",
     .write = export_flamegraph},
    {.name = "sqlite",
     .ending = ".sqlite",
     .help = "SQL: tables and views (see also: cairn sql)",
     .write_file = export_sqlite,
     .is_binary = true,
     .needs_frees = true},
    {.name = "dhat",
     .ending = ".dhat",
     .help = "dh_view.html of valgrind",
     .write = export_dhat,
     .needs_frees = true},
    {.name = "massif",
     .ending = ".massif",
     .help = "ms_print, massif-visualizer",
     .write = export_massif,
     .needs_frees = true},
    {.name = "csv", .ending = ".csv", .help = "spreadsheets, data frames", .write = export_csv},
    {.name = "ndjson",
     .ending = ".ndjson",
     .help = "a JSON object a line and stack: jq, data bases",
     .write = export_ndjson,
     .has_heaps = true},
    {.name = "parquet",
     .ending = ".parquet",
     .help = "DuckDB, ClickHouse, Spark: a row a stack and moment, of many recordings",
     .series = &export_parquet,
     .is_binary = true,
     .needs_frees = true},
    {.name = "perfetto",
     .ending = ".perfetto-trace",
     .help = "ui.perfetto.dev: snapshots, resident memory and rates over time",
     .write = export_perfetto,
     .is_binary = true,
     .needs_frees = true},
    {.name = "firefox",
     .ending = ".firefox.json",
     .help = "profiler.firefox.com: native allocations over time",
     .write = export_firefox,
     .needs_frees = true},
    {.name = "mptrace",
     .ending = ".mptrace",
     .help = "scripts for MallocProfiler",
     .write = export_mptrace,
     .needs_frees = true},
    {.name = "callgrind",
     .ending = ".callgrind",
     .help = "callgrind_annotate, KCachegrind",
     .write = export_callgrind},
    {.name = "heaptrack",
     .ending = ".heaptrack.gz",
     .help = "heaptrack_print, heaptrack_gui",
     .write = export_heaptrack,
     .is_binary = true,
     .needs_frees = true},
    {0},
};

bool export_format_check(const struct export_format *format, const struct profile *profile,
                         struct error *error) {
    if (profile->heap_names && !format->has_heaps)
        return error_set(error,
                         "--heap '': %s does not say which heap a stack is of, but pprof, "
                         "collapsed and ndjson do; --heap NAME chooses one",
                         format->name);
    return !format->needs_frees || profile_has_frees(profile) ||
           error_set(error,
                     "%s is of what was live, and the imported file does not say what was "
                     "freed: pprof, json, ndjson, csv and collapsed have calls and bytes",
                     format->name);
}

bool export_stream(const struct export_format *format, FILE *out, const struct export *export,
                   struct error *error) {
    static const struct export_labels none = {0};
    const struct export_series *series = format->series;
    if (!series) return format->write(out, export, error);
    const struct export_labels *labels = export->series_labels ? export->series_labels : &none;
    void *context = series->open(out, labels, export->tool_version, error);
    if (!context) return false;
    bool is_added = series->add(context, export, error);
    return series->close(context, is_added, error) && is_added;
}

const struct export_format *export_format_find(const char *name) {
    for (const struct export_format *format = export_formats; format->name; format++)
        if (!strcmp(format->name, name)) return format;
    return NULL;
}

const struct export_format *export_format_of_path(const char *path) {
    const struct export_format *found = NULL;
    size_t length = strlen(path), longest = 0;
    for (const struct export_format *format = export_formats; format->name; format++) {
        size_t ending = strlen(format->ending);
        if (ending <= longest || ending >= length) continue;
        if (strcmp(path + length - ending, format->ending) != 0) continue;
        found = format;
        longest = ending;
    }
    return found;
}
