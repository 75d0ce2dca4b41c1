// SPDX-License-Identifier: Apache-2.0
// A program with two faults, and without: `fixed WORD...`; of leak, temporary it has those that are
// named. Without them it does the same work: as many rows are parsed, and as many sessions opened.
#include <stdlib.h>
#include <string.h>

enum { ROWS = 40000, EACH = 100, ROW_BYTES = 64, SESSION_BYTES = 1000 };

static char buffer[ROW_BYTES];

__attribute__((noinline)) static void parse_row(int row, int is_temporary) {
    char *text = is_temporary ? malloc(ROW_BYTES) : buffer;
    memset(text, row, ROW_BYTES);
    if (is_temporary) free(text);
}

__attribute__((noinline)) static void open_session(int is_leaked) {
    char *volatile session = malloc(SESSION_BYTES);
    memset(session, 1, SESSION_BYTES);
    if (!is_leaked) free(session);
}

int main(int count, char **words) {
    int is_leaked = 0, is_temporary = 0;
    for (int i = 1; i < count; i++) {
        is_leaked |= !strcmp(words[i], "leak");
        is_temporary |= !strcmp(words[i], "temporary");
    }
    for (int row = 0; row < ROWS; row++) {
        parse_row(row, is_temporary);
        if (row % EACH == 0) open_session(is_leaked);
    }
    return 0;
}
