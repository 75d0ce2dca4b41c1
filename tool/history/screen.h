// SPDX-License-Identifier: Apache-2.0
// A history for people and programs: a table with a line for each figure and the steps below it;
// JSON; a page.
#ifndef TOOL_HISTORY_SCREEN_H
#define TOOL_HISTORY_SCREEN_H

#include "tool/answer/claims.h"
#include "tool/check/results.h"
#include "tool/history/history.h"
#include "tool/render/terminal.h"

#define HISTORY_SCHEMA "cairn.history/1"

struct history_view {
    int measure;       // enum history_measure; -1: peak, and whatever moved
    const char *test;  // pattern of names; NULL: all
    size_t top;        // steps that are shown; 0: all
    bool is_plain_number;
};

bool history_is_shown(const struct history_view *view, const struct history_series *series);

bool history_step_is_shown(const struct history *history, const struct history_view *view,
                           const struct history_step *step);

bool history_print(struct history *history, const struct history_view *view,
                   const struct terminal *terminal, struct error *error);
bool history_write_json(struct history *history, const struct history_view *view, FILE *out,
                        struct error *error);
bool history_write_page(struct history *history, const struct history_view *view, FILE *out,
                        struct error *error);

// The newest commit's figures, the median of its runs: a list for github-action-benchmark
// ("customSmallerIsBetter"), and Bencher's metric format.
bool history_write_benchmark(struct history *history, const struct history_view *view, FILE *out,
                             struct error *error);
bool history_write_bencher(struct history *history, const struct history_view *view, FILE *out,
                           struct error *error);

// Whether the newest commit of the line moved a figure, as results of a check: what rose does not
// hold if `rises_fail`; what moved otherwise is a note. False without memory or with an error.
bool history_results(struct history *history, const struct history_view *view, bool rises_fail,
                     struct results *results, struct error *error);

// Says whether the newest commit has a run of it, and which commit has the last one before that;
// negative: none has.
bool history_is_at_end(const struct history *history, const struct history_series *series);
int64_t history_earlier_commit(const struct history *history, const struct history_series *series);
// Names what the newest commit is compared with: "the commit before", unless tests were run less
// often; NULL: none of its tests was run before.
const char *history_since(const struct history *history, const struct history_view *view);

// The figures of a step in words: "1,203 calls → 1,204 calls, +1".
void history_step_text(const struct history_step *step, char *out, size_t size);
// The same of one that is not known yet, with what is missing.
void history_open_text(const struct history_step *step, char *out, size_t size);
// The claims of these two, and that the newest commit moved nothing; false: it did, or may have, or
// nothing was compared.
void history_claim_of_step(const struct history *history, const struct history_step *step,
                           struct claim *claim);
void history_claim_of_open(const struct history *history, const struct history_step *step,
                           struct claim *claim);
bool history_claim_of_rest(const struct history *history, const struct history_view *view,
                           struct claim *claim);
// Says whether a measure of a series is not known yet.
bool history_is_open(const struct history *history, uint32_t series, enum history_measure measure);

// The values that stand for a measure, one a commit: the median of its runs. `points` gets the
// index of each one's last point. Returns how many there are; both for free(), NULL without memory.
struct history_line {
    int64_t *values;
    uint32_t *points;
    size_t count;
};
bool history_line_of(const struct history_series *series, enum history_measure measure,
                     struct history_line *line);
void history_line_free(struct history_line *line);
// The steps of a series in a measure.
size_t history_count_steps(const struct history *history, uint32_t series,
                           enum history_measure measure);

#endif
