// SPDX-License-Identifier: Apache-2.0
// Prints the frames of addresses, for comparing tool/symbol with other symbolizers.
//   symbolize FILE < ADDRESSES   hexadecimal ELF addresses, one a line; for each prints
//                                "FUNCTION<tab>FILE:LINE" a frame, then an empty line;
//                                time and source go to stderr
//   symbolize --names < NAMES    the readable form of each mangled name
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tool/symbol/name.h"
#include "tool/symbol/symbol.h"

static int fail(const char *what) {
    fprintf(stderr, "symbolize: %s\n", what);
    return 1;
}

static int print_names(void) {
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *name = name_readable(line);
        if (!name) return fail("no memory");
        puts(name);
        free(name);
    }
    free(line);
    return 0;
}

static struct symbol_query *read_queries(size_t *count) {
    struct symbol_query *queries = NULL;
    char *line = NULL;
    size_t size = 0, capacity = 0;
    for (*count = 0; getline(&line, &size, stdin) > 0; (*count)++) {
        if (*count == capacity) {
            capacity = capacity ? capacity * 2 : 1024;
            queries = reallocarray(queries, capacity, sizeof *queries);
            if (!queries) abort();
        }
        queries[*count] = (struct symbol_query){.address = strtoull(line, NULL, 16)};
    }
    free(line);
    return queries;
}

static void print_query(const struct symbol_query *query) {
    if (!query->frame_count) puts("??\t??:0");
    for (size_t i = 0; i < query->frame_count; i++) {
        const struct symbol_frame *frame = &query->frames[i];
        printf("%s\t%s:%u\n", frame->function ? frame->function : "??",
               frame->file ? frame->file : "??", frame->line);
    }
    putchar('\n');
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argument_count, char **arguments) {
    if (argument_count != 2) return fail("use: symbolize FILE | --names");
    if (!strcmp(arguments[1], "--names")) return print_names();
    size_t count;
    struct symbol_query *queries = read_queries(&count);
    struct symbol_table *table;
    struct symbol_module module = {.path = arguments[1]};
    struct symbol_report report;
    struct error error;
    double start = seconds_now();
    if (!symbol_table_open(&table, NULL, NULL, &error) ||
        !symbol_resolve(table, &module, queries, count, &report, &error))
        return fail(error.text);
    double seconds = seconds_now() - start;
    for (size_t i = 0; i < count; i++) print_query(&queries[i]);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    fprintf(stderr, "%.3f s  %ld MiB  %zu of %zu resolved  source %d %s  %s\n", seconds,
            usage.ru_maxrss / 1024, report.resolved_count, count, report.source,
            report.path ? report.path : "-", report.note ? report.note : "");
    symbol_table_close(table);
    free(queries);
    return 0;
}
