// SPDX-License-Identifier: Apache-2.0
// cairn sql: the tables of an exported database in memory, and the answers of statements about
// them.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/cmds/commands.h"
#include "tool/export/sqlite.h"
#include "tool/query/exported.h"
#include "tool/query/merged.h"

// On a terminal rows are held back to line up their columns; so many at a time.
enum { ROWS_LINED_UP = 200, COLUMNS_MAX = 64, CELL_BYTES = 1024 };

struct answer {
    sqlite3_stmt *statement;
    int columns;
    bool is_lined_up;
    ARRAY(char *) cells;  // of the rows held back
    size_t widths[COLUMNS_MAX];
};

static bool hold(struct answer *answer, const char *text) {
    char safe[CELL_BYTES];
    text_escape(safe, sizeof safe, text ? text : "");
    size_t column = answer->cells.count % (size_t)answer->columns, width = text_columns(safe);
    char **cell = array_push(&answer->cells);
    if (cell) *cell = strdup(safe);
    if (column < COLUMNS_MAX && width > answer->widths[column]) answer->widths[column] = width;
    return cell && *cell;
}

static void print_held(struct answer *answer) {
    size_t columns = (size_t)answer->columns;
    for (size_t i = 0; i < answer->cells.count; i++) {
        size_t column = i % columns;
        bool is_last = column + 1 == columns;
        const char *cell = answer->cells.items[i];
        size_t width = column < COLUMNS_MAX ? answer->widths[column] : 0, used = text_columns(cell);
        fputs(cell, stdout);
        if (is_last)
            putchar('\n');
        else
            printf("%*s", (int)(width > used ? width - used : 0) + 2, "");
        free(answer->cells.items[i]);
    }
    answer->cells.count = 0;
}

static void print_cell(const char *text, bool is_last) {
    char safe[CELL_BYTES * 4];
    text_escape(safe, sizeof safe, text ? text : "");
    printf("%s%c", safe, is_last ? '\n' : '\t');
}

static bool put_row(struct answer *answer, bool is_heading) {
    bool is_ok = true;
    for (int i = 0; i < answer->columns && is_ok; i++) {
        const char *text = is_heading ? sqlite3_column_name(answer->statement, i)
                                      : (const char *)sqlite3_column_text(answer->statement, i);
        if (answer->is_lined_up)
            is_ok = hold(answer, text);
        else
            print_cell(text, i + 1 == answer->columns);
    }
    if (answer->cells.count >= (size_t)ROWS_LINED_UP * (size_t)answer->columns) print_held(answer);
    return is_ok;
}

static bool run_statement(sqlite3 *database, sqlite3_stmt *statement, struct error *error) {
    struct answer answer = {.statement = statement,
                            .columns = sqlite3_column_count(statement),
                            .is_lined_up = isatty(STDOUT_FILENO)};
    bool is_ok = !answer.columns || put_row(&answer, true);
    int status = SQLITE_DONE;
    while (is_ok && (status = sqlite3_step(statement)) == SQLITE_ROW && !ferror(stdout))
        is_ok = put_row(&answer, false);
    print_held(&answer);
    array_free(&answer.cells);
    if (!is_ok) return error_set(error, "sql: no memory for the answer");
    if (status == SQLITE_DONE || status == SQLITE_ROW) return true;
    return error_set(error, "sql: %s", sqlite3_errmsg(database));
}

static bool run_statements(sqlite3 *database, const char *text, struct error *error) {
    bool is_ok = true;
    while (is_ok && *text) {
        sqlite3_stmt *statement = NULL;
        if (sqlite3_prepare_v2(database, text, -1, &statement, &text) != SQLITE_OK)
            return error_set(error, "sql: %s", sqlite3_errmsg(database));
        if (statement) is_ok = run_statement(database, statement, error);
        sqlite3_finalize(statement);
    }
    return is_ok;
}

static bool answer_about(struct opened *opened, const char *text, struct error *error) {
    struct exported exported;
    sqlite3 *database = NULL;
    if (!export_format_check(export_format_find("sqlite"), &opened->profile, error) ||
        !exported_prepare(opened, &exported, error))
        return false;
    bool is_open = sqlite3_open(":memory:", &database) == SQLITE_OK;
    if (!is_open) error_set(error, "sql: no memory for the database");
    bool is_ok = is_open && export_sqlite_fill(database, &exported.export, error);
    if (is_ok) {
        sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);  // it is about this recording only
        is_ok = run_statements(database, text, error);
    }
    sqlite3_close(database);
    exported_free(&exported);
    return is_ok;
}

int cmd_sql(const struct command_args *args) {
    struct opened opened;
    struct error error;
    if (!args->word_count) {
        error_set(&error, "sql: no statement given, such as 'select * from top'");
        return command_fail(STATUS_USAGE, &error);
    }
    const char *text = args->words[args->word_count - 1];
    const struct opening opening = {.words = args->words,
                                    .count = args->word_count - 1,
                                    .process = args_text(args, OPTION_PROCESS, NULL)};
    if (!opening_open(&opening, &opened, &error)) return command_fail(STATUS_FAILURE, &error);
    bool is_ok = answer_about(&opened, text, &error);
    opened_close(&opened);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
