// SPDX-License-Identifier: Apache-2.0
// Any bytes as the lines of a run's index: what is accepted is written back as the same row, names
// no file outside, and prints without control characters.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/render/run_screen.h"

enum { ROWS_MAX = 64 };

static void require(bool is_true) {
    if (!is_true) abort();
}

static void check_line(char *line, struct run_row *row) {
    char text[RUN_LINE_MAX], again[RUN_LINE_MAX];
    struct run_row back;
    size_t size = run_row_print(row, text);
    memcpy(line, text, size - 1);
    line[size - 1] = 0;
    require(run_row_parse(line, &back));
    require(run_row_print(&back, again) == size && !memcmp(text, again, size));
    require(!*row->file || run_row_is_file_name(row->file));
}

static void check_screen(struct run *run) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    require(out != NULL);
    struct terminal terminal = {.out = out, .columns = 80};
    struct run_screen screen = {.run = run, .sums = run_sum(run), .top = 3};
    run_screen_print_facts(&terminal, &screen);
    run_screen_print_table(&terminal, &screen);
    fclose(out);
    for (size_t i = 0; i < size; i++) require((unsigned char)text[i] >= ' ' || text[i] == '\n');
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static struct run_row rows[ROWS_MAX];
    static char line[2 * RUN_LINE_MAX];
    struct run run = {.rows = {.items = rows}};
    for (size_t at = 0, end; at < size && run.rows.count < ROWS_MAX; at = end + 1) {
        for (end = at; end < size && bytes[end] != '\n'; end++) {
        }
        if (end - at >= RUN_LINE_MAX) continue;
        memcpy(line, bytes + at, end - at);
        line[end - at] = 0;
        if (!run_row_parse(line, &rows[run.rows.count])) continue;
        check_line(line, &rows[run.rows.count++]);
    }
    if (run.rows.count) check_screen(&run);
    return 0;
}
