// SPDX-License-Identifier: Apache-2.0
// A history as commands see it: the commits of one line in their order, the series with a point for
// each run, and the steps in them.
#ifndef TOOL_HISTORY_HISTORY_H
#define TOOL_HISTORY_HISTORY_H

#include "tool/base/units.h"
#include "tool/history/steps.h"
#include "tool/history/store.h"

struct history_commit {
    char *hash, *subject;  // safe texts
    int64_t time_s;
    bool is_changed;  // with changes that were not committed
    long place;       // in the line of git; -1: there is none
    size_t run_count;
};

struct history_point {
    uint32_t commit;  // index
    int64_t run;      // number in the order of recording
    uint32_t system;  // where: index, 0 if it is not known
    unsigned flags;   // HISTORY_IS_...
    struct history_figure figures[HISTORY_MEASURES];
    int64_t stack_set;  // 0: none
};

struct history_series {
    char *test, *program, *region;  // safe texts
    ARRAY(struct history_point) points;
};

// A series' step in a measure: between two commits that were recorded.
struct history_step {
    uint32_t series;
    enum history_measure measure;
    uint32_t before, after;  // points of the series: the last of the old level, the first new one
    int64_t old_level, new_level;
    bool is_noisy;
    double deviation;
    size_t missing, runs_before;  // of one that is not known yet: struct steps_open
};

enum { HISTORY_NOTE_BYTES = 512 };
struct history {
    struct store store;
    ARRAY(struct history_commit) commits;  // of the line, the oldest first
    ARRAY(struct history_series) series;   // by name
    ARRAY(struct history_step) steps;      // by commit, the newest first
    ARRAY(struct history_step) open;       // of newest commits: too few runs to say that it is one
    ARRAY(char *) systems;                 // "Debian GNU/Linux 12 (bookworm), x86_64"; 0: ""
    size_t run_count;                      // of the line
    size_t left_out;                       // commits that are not in the line
    bool has_git;                          // the order is git's
    char note[HISTORY_NOTE_BYTES];         // what was left out, or how commits are ordered; ""
};

// Reads the line that ends at commit `end` (NULL: HEAD; "": all, without asking git). False with an
// error.
bool history_open(const char *word, const char *end, struct history *history, struct error *error);
void history_close(struct history *history);

// "parser", "parser: sh", "parser, region parse/lines".
enum { HISTORY_NAME_BYTES = 1536 };
void history_series_name(const struct history_series *series, char name[HISTORY_NAME_BYTES]);

// The commits of a step.
const struct history_commit *history_before(const struct history *history,
                                            const struct history_step *step);
const struct history_commit *history_after(const struct history *history,
                                           const struct history_step *step);
// What it is about, in a line.
const char *history_subject(const struct history_commit *commit);
// How many commits of the line lie after the one before, up to the one after; 0: not known.
size_t history_commits_between(const struct history *history, const struct history_step *step);

// Whether the two sides were recorded on different systems, and which.
bool history_system_changed(const struct history *history, const struct history_step *step,
                            const char **before, const char **after);

// "12.3 MiB", "1,204 calls"; with a sign if it is a change.
struct unit_text history_amount(enum history_measure measure, int64_t value);
struct unit_text history_change(enum history_measure measure, int64_t change);

// A stack that moved.
struct history_moved {
    int64_t before, after;
    char *frames;  // the functions, the program's own first one in front: "a \u2190 b \u2190 main"
    char *place;   // "src/parser.c:120"; NULL: not known
};
struct history_moves {
    ARRAY(struct history_moved) list;  // the largest first
    size_t more;                       // further ones in its direction
};
// Which stacks moved the most with a step, in its direction; at most `most`. Behind them the one
// that moved the most the other way, if it is a quarter of the step or more.
bool history_moves_find(struct history *history, const struct history_step *step, size_t most,
                        struct history_moves *moves, struct error *error);
void history_moves_free(struct history_moves *moves);

#endif
