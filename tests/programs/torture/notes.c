// SPDX-License-Identifier: Apache-2.0
// Notes in a database of SQLite. Planted: an error of a step is taken for the end of the rows.
#include <sqlite3.h>
#include <stdio.h>

static const char script[] = "create table notes(text); insert into notes values "
                             "('bread'), ('milk'), ('a long note about the garden and the rain')";

static int print_notes(sqlite3 *database) {
    sqlite3_stmt *rows = NULL;
    int status = sqlite3_prepare_v2(database, "select text || '!' from notes order by length(text)",
                                    -1, &rows, NULL);
    if (status != SQLITE_OK) return 1;
    while ((status = sqlite3_step(rows)) == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(rows, 0);
        if (!text) break;
        printf("%s\n", text);
    }
    sqlite3_finalize(rows);
#ifdef RIGHT
    return status != SQLITE_DONE;
#else
    return 0;
#endif
}

int main(void) {
    sqlite3 *database = NULL;
    int is_ok = sqlite3_open(":memory:", &database) == SQLITE_OK &&
                sqlite3_exec(database, script, NULL, NULL, NULL) == SQLITE_OK;
    int status = is_ok ? print_notes(database) : 1;
    sqlite3_close(database);
    return status;
}
