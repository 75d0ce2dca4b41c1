// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tool/import/import.h"
#include "tool/import/unpack.h"

const struct import_format import_formats[] = {
    {"heaptrack", "heaptrack's data, as heaptrack wrote it", import_is_heaptrack, import_heaptrack},
    {"massif", "valgrind --tool=massif", import_is_massif, import_massif},
    {"dhat", "valgrind --tool=dhat", import_is_dhat, import_dhat},
    {"pprof", "heap profiles of Go, gperftools, jemalloc, ...", import_is_pprof, import_pprof},
    {"perf", "perf script, of probes on malloc and free", import_is_perf, import_perf},
    {"bpftrace", "bpftrace's output of examples/malloc.bt", import_is_bpftrace, import_bpftrace},
    {0},
};

const struct import_format *import_format_find(const char *name) {
    for (const struct import_format *format = import_formats; format->name; format++)
        if (!strcmp(format->name, name)) return format;
    return NULL;
}

bool import_read(FILE *in, const struct import_format **format, struct imported *imported,
                 struct error *error) {
    char head[IMPORT_HEAD_BYTES];
    size_t size;
    FILE *unpacked = unpack_open(in, head, sizeof head, &size, error);
    if (!unpacked) return false;
    const struct import_format *row = *format ? *format : import_formats;
    while (!*format && row->name && !row->is_one(head, size)) row++;
    bool is_ok = row->name ? row->read(unpacked, imported, error)
                           : error_set(error, "is of no known format");
    *format = row->name ? row : NULL;
    fclose(unpacked);
    if (is_ok && imported->strings.has_failed) is_ok = import_no_memory(error);
    return is_ok;
}
