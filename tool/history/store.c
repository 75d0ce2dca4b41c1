// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/base/text.h"
#include "tool/history/store.h"

// "carn": what kind of database it is, in SQLite's own header.
enum { APPLICATION = 0x6361726e, FORMAT = 1, WAIT_MS = 120000 };

static const char tables[] =
    "CREATE TABLE facts(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
    "CREATE TABLE commits(id INTEGER PRIMARY KEY, hash TEXT NOT NULL, is_changed INTEGER NOT NULL, "
    "  time INTEGER, subject TEXT, UNIQUE(hash, is_changed));"
    "CREATE TABLE runs(id INTEGER PRIMARY KEY, commit_id INTEGER NOT NULL REFERENCES commits, "
    "  recorded TEXT DEFAULT CURRENT_TIMESTAMP, command TEXT, tool TEXT, system TEXT);"
    "CREATE TABLE series(id INTEGER PRIMARY KEY, test TEXT NOT NULL, program TEXT NOT NULL, "
    "  region TEXT NOT NULL, UNIQUE(test, program, region));"
    "CREATE TABLE figures(run INTEGER REFERENCES runs, series INTEGER REFERENCES series, "
    "  processes INTEGER, flags INTEGER, peak INTEGER, peak_interval INTEGER, exit INTEGER, "
    "  exit_interval INTEGER, calls INTEGER, bytes INTEGER, temporary INTEGER, waste INTEGER, "
    "  stack_set INTEGER, PRIMARY KEY(series, run)) WITHOUT ROWID;"
    "CREATE TABLE functions(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE nodes(id INTEGER PRIMARY KEY, caller INTEGER NOT NULL, "
    "  function INTEGER NOT NULL REFERENCES functions, UNIQUE(caller, function));"
    "CREATE TABLE places(id INTEGER PRIMARY KEY, place TEXT NOT NULL UNIQUE);"
    "CREATE TABLE stack_sets(id INTEGER PRIMARY KEY, base INTEGER, depth INTEGER);"
    "CREATE TABLE stack_values(stack_set INTEGER, stack INTEGER, place INTEGER, frame INTEGER, "
    "  peak INTEGER, exit INTEGER, calls INTEGER, bytes INTEGER, temporary INTEGER, "
    "  PRIMARY KEY(stack_set, stack)) WITHOUT ROWID;"
    "CREATE VIEW history AS SELECT hash, is_changed, recorded, test, program, region, peak, exit, "
    "  calls, bytes, temporary, waste, figures.flags AS flags FROM figures "
    "  JOIN series ON series.id = figures.series JOIN runs ON runs.id = figures.run "
    "  JOIN commits ON commits.id = runs.commit_id ORDER BY runs.id;";

bool store_fail(struct store *store, struct error *error) {
    int code = sqlite3_errcode(store->database);
    if (code == SQLITE_BUSY)
        return error_set(error, "%s: another writer holds it for more than %d s", store->path,
                         WAIT_MS / 1000);
    return error_set(error, "%s: %s", store->path, sqlite3_errmsg(store->database));
}

bool store_execute(struct store *store, const char *text, struct error *error) {
    return sqlite3_exec(store->database, text, NULL, NULL, NULL) == SQLITE_OK ||
           store_fail(store, error);
}

// Statements are made once: some are run for each stack.
static sqlite3_stmt *find_statement(struct store *store, const char *text) {
    for (size_t i = 0; i < store->statement_count; i++)
        if (!strcmp(sqlite3_sql(store->statements[i]), text)) return store->statements[i];
    if (store->statement_count == STORE_STATEMENTS_MAX)
        sqlite3_finalize(store->statements[--store->statement_count]);
    sqlite3_stmt **slot = &store->statements[store->statement_count];
    if (sqlite3_prepare_v2(store->database, text, -1, slot, NULL) != SQLITE_OK) return NULL;
    store->statement_count++;
    return *slot;
}

bool store_query(struct store *store, const char *text, struct error *error) {
    if (store->statement) sqlite3_reset(store->statement);
    store->column = 1;
    store->statement = find_statement(store, text);
    if (!store->statement) return store_fail(store, error);
    sqlite3_reset(store->statement);
    sqlite3_clear_bindings(store->statement);
    return true;
}

void store_rest(struct store *store) {
    for (size_t i = 0; i < store->statement_count; i++) sqlite3_reset(store->statements[i]);
}

bool store_bind_int(struct store *store, int64_t value) {
    return sqlite3_bind_int64(store->statement, store->column++, value) == SQLITE_OK;
}

bool store_bind_text(struct store *store, const char *value) {
    int column = store->column++;
    if (!value) return sqlite3_bind_null(store->statement, column) == SQLITE_OK;
    return sqlite3_bind_text(store->statement, column, value, -1, SQLITE_TRANSIENT) == SQLITE_OK;
}

bool store_next(struct store *store, bool *is_ok, struct error *error) {
    int status = sqlite3_step(store->statement);
    *is_ok = status == SQLITE_ROW || status == SQLITE_DONE || store_fail(store, error);
    return status == SQLITE_ROW;
}

char *store_text(struct store *store, int column) {
    enum { ESCAPED = 4 };
    const char *text = (const char *)sqlite3_column_text(store->statement, column);
    size_t room = (text ? strlen(text) : 0) * ESCAPED + 1;
    char *safe = malloc(room);
    if (safe) text_escape(safe, room, text ? text : "");
    return safe;
}

int64_t store_int(struct store *store, int column) {
    return sqlite3_column_int64(store->statement, column);
}

bool store_is_null(struct store *store, int column) {
    return sqlite3_column_type(store->statement, column) == SQLITE_NULL;
}

bool store_run(struct store *store, struct error *error) {
    int status = sqlite3_step(store->statement);
    sqlite3_reset(store->statement);
    store->column = 1;
    return status == SQLITE_DONE || store_fail(store, error);
}

bool store_ask(struct store *store, int64_t otherwise, int64_t *number, struct error *error) {
    bool is_ok;
    *number = store_next(store, &is_ok, error) ? store_int(store, 0) : otherwise;
    sqlite3_reset(store->statement);
    store->column = 1;
    return is_ok;
}

static bool pragma(struct store *store, const char *name, int64_t *number, struct error *error) {
    char text[64];
    snprintf(text, sizeof text, "PRAGMA %s", name);
    return store_query(store, text, error) && store_ask(store, 0, number, error);
}

static bool make_tables(struct store *store, struct error *error) {
    char text[128];
    snprintf(text, sizeof text, "PRAGMA application_id = %d; PRAGMA user_version = %d;",
             APPLICATION, FORMAT);
    return store_execute(store, tables, error) && store_execute(store, text, error);
}

bool store_check_kind(struct store *store, bool can_make, struct error *error) {
    int64_t application, version, tables_count;
    if (!pragma(store, "application_id", &application, error) ||
        !pragma(store, "user_version", &version, error) ||
        !store_query(store, "SELECT count(*) FROM sqlite_master", error) ||
        !store_ask(store, 0, &tables_count, error))
        return false;
    if (can_make && !application && !tables_count) return make_tables(store, error);
    if (application != APPLICATION)
        return error_set(error, "%s: a database, but no history of cairn", store->path);
    if (version != FORMAT)
        return error_set(error, "%s: a history of another cairn (format %lld, this one reads %d)",
                         store->path, (long long)version, FORMAT);
    return true;
}

static bool choose_path(const char *word, char path[PATH_MAX], struct error *error) {
    struct stat status;
    size_t length = strlen(word);
    bool is_directory =
        !stat(word, &status) ? S_ISDIR(status.st_mode) : length && word[length - 1] == '/';
    int used = snprintf(path, PATH_MAX, is_directory ? "%s/" HISTORY_FILE_NAME : "%s", word);
    return used < PATH_MAX || error_set(error, "the path is too long");
}

bool store_open(const char *word, bool can_write, struct store *store, struct error *error) {
    const int flags = can_write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    struct stat status;
    *store = (struct store){0};
    if (!choose_path(word, store->path, error)) return false;
    if (!can_write && stat(store->path, &status) != 0)
        return error_set(error,
                         "%s: there is no history (cairn check --series %s -- COMMAND "
                         "begins one)",
                         store->path, store->path);
    int code = sqlite3_open_v2(store->path, &store->database, flags, NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(store->database, WAIT_MS);
        sqlite3_db_config(store->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(store->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    }
    bool is_ok = code == SQLITE_OK && (can_write || store_check_kind(store, false, error));
    if (code != SQLITE_OK)
        error_set(error, "%s: %s", store->path,
                  store->database ? sqlite3_errmsg(store->database) : "no memory");
    if (!is_ok) store_close(store);
    return is_ok;
}

void store_close(struct store *store) {
    for (size_t i = 0; i < store->statement_count; i++) sqlite3_finalize(store->statements[i]);
    store->statement_count = 0;
    store->statement = NULL;
    sqlite3_close(store->database);
    store->database = NULL;
}

char *store_roots(struct store *store, struct error *error) {
    bool is_ok;
    if (!store_query(store, "SELECT value FROM facts WHERE key = 'project'", error)) return NULL;
    char *roots = store_next(store, &is_ok, error) ? store_text(store, 0) : strdup("");
    if (is_ok) return roots;
    free(roots);
    return NULL;
}

bool store_number(struct store *store, const char *insert, const char *select, const char *text,
                  int64_t *number, struct error *error) {
    return store_query(store, select, error) && store_bind_text(store, text) &&
           store_ask(store, 0, number, error) &&
           (*number ||
            (store_query(store, insert, error) && store_bind_text(store, text) &&
             store_run(store, error) && (*number = sqlite3_last_insert_rowid(store->database))));
}
