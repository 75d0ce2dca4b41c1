// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tool/export/export.h"

const struct export_format export_formats[] = {
    {.name = "pprof",
     .ending = ".pb.gz",
     .help = "go tool pprof, Pyroscope, Parca",
     .write = export_pprof,
     .is_binary = true},
    {.name = "collapsed",
     .ending = ".folded",
     .help = "flamegraph.pl and other flame graph tools",
     .write = export_collapsed},
    {.name = "speedscope",
     .ending = ".speedscope.json",
     .help = "speedscope, in a browser",
     .write = export_speedscope},
    {0},
};

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
