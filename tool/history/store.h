// SPDX-License-Identifier: Apache-2.0
// A history as a file: an SQLite database with a row for each figure of each run, by commit, test,
// program and region, and the stacks behind it. docs/howto/history.md has its tables.
//
//     commits ── runs ── figures ── series (test, program, region)
//                           └─ stack_sets ── stack_values ── nodes ── functions
//
// A set of stacks is kept as what differs from the set of the run before, so that runs that are
// equal share one. Everything of a run is one transaction: two writers wait for each other, and
// one that is killed leaves the file as it was. What is read may come from anywhere: texts are made
// safe, and nothing in a file is followed without a bound.
#ifndef TOOL_HISTORY_STORE_H
#define TOOL_HISTORY_STORE_H

#include <sqlite3.h>

#include "tool/history/git.h"
#include "tool/history/take.h"

#define HISTORY_FILE_NAME "cairn-history.db"

#define STORE_STATEMENTS_MAX 32

struct store {
    sqlite3 *database;
    char path[PATH_MAX];
    sqlite3_stmt *statements[STORE_STATEMENTS_MAX];
    size_t statement_count;
    sqlite3_stmt *statement;  // the one in use
    int column;               // next to be bound
};

// `word`: a file, or a directory, which has the usual name in it. It is made if `can_write`. False
// with an error that says what the file is instead.
bool store_open(const char *word, bool can_write, struct store *store, struct error *error);
void store_close(struct store *store);

struct store_run {
    struct git_commit commit;
    const char *roots;  // first commits of the project (git_roots); NULL: not known
    const char *tool_version;
    const char *command;  // "": a recording that was there
    const char *system;   // where it ran: "Debian GNU/Linux 12 (bookworm), x86_64"
};

// Appends a run. Refused if the file is of another project. `note` says what could not be checked,
// or "".
enum { STORE_NOTE_BYTES = 512 };
bool store_append(struct store *store, const struct git_project *project,
                  const struct store_run *run, const struct taken *taken,
                  char note[STORE_NOTE_BYTES], struct error *error);

// The first commits of the project as the file has them, for free(); "" if it does not know.
char *store_roots(struct store *store, struct error *error);

// Both sides of a step: the stacks of two sets as recordings 0 and 1 of a comparison, by a measure.
// `places` gets a text for each row, or NULL, and `frames` the line of its first own frame.
struct store_place {
    char *place;
    uint32_t frame;
};
struct store_places {
    ARRAY(struct store_place) list;
};
bool store_compare(struct store *store, int64_t before, int64_t after, enum history_measure measure,
                   struct diff *diff, struct store_places *places, struct error *error);
void store_places_free(struct store_places *places);

// For those who read tables: a statement, its rows, its texts (made safe; NULL without memory).
bool store_query(struct store *store, const char *text, struct error *error);
bool store_bind_int(struct store *store, int64_t value);
bool store_bind_text(struct store *store, const char *value);  // NULL: null
// True: there is a row. False at the end, with `is_ok` false and an error if it failed.
bool store_next(struct store *store, bool *is_ok, struct error *error);
char *store_text(struct store *store, int column);
int64_t store_int(struct store *store, int column);
bool store_is_null(struct store *store, int column);

// --- for the parts of the store

// Fills in what SQLite says; returns false.
bool store_fail(struct store *store, struct error *error);
bool store_execute(struct store *store, const char *text, struct error *error);
// Ends what statements still read, which holds locks.
void store_rest(struct store *store);
// A row's number by its text, made if there is none.
bool store_number(struct store *store, const char *insert, const char *select, const char *text,
                  int64_t *number, struct error *error);
// Runs what was bound, which has no rows.
bool store_run(struct store *store, struct error *error);
// A number that a statement has as its only answer; `otherwise` without a row.
bool store_ask(struct store *store, int64_t otherwise, int64_t *number, struct error *error);
// Whether the file is a history. An empty one becomes it if `can_make`, within a transaction.
bool store_check_kind(struct store *store, bool can_make, struct error *error);

// What a set says, the newest of each stack first; those that are gone have zeros.
#define SET_ROWS                                                                                   \
    "WITH RECURSIVE chain(id, level) AS (VALUES(?, 0) UNION ALL "                                  \
    "  SELECT base, level + 1 FROM chain JOIN stack_sets USING(id) "                               \
    "  WHERE base IS NOT NULL AND level < 64), "                                                   \
    "found AS (SELECT v.*, row_number() OVER (PARTITION BY v.stack ORDER BY level) AS nth "        \
    "  FROM chain JOIN stack_values v ON v.stack_set = chain.id) "

#endif
