// SPDX-License-Identifier: Apache-2.0
// What series, commits and amounts are called on screens, pages and in results.
#include <stdio.h>
#include <string.h>

#include "tool/history/history.h"

void history_series_name(const struct history_series *series, char name[HISTORY_NAME_BYTES]) {
    bool is_own = !strcmp(series->test, series->program);
    snprintf(name, HISTORY_NAME_BYTES, "%s%s%s%s%s", series->test, is_own ? "" : ": ",
             is_own ? "" : series->program, *series->region ? ", region " : "", series->region);
}

const char *history_subject(const struct history_commit *commit) {
    return commit->is_changed ? "changes that are not committed" : commit->subject;
}

struct unit_text history_amount(enum history_measure measure, int64_t value) {
    const struct history_measure_row *row = &history_measures[measure];
    return row->is_bytes ? units_size(value) : units_counted(value, row->noun[0], row->noun[1]);
}

struct unit_text history_change(enum history_measure measure, int64_t change) {
    struct unit_text text,
        amount = history_measures[measure].is_bytes ? units_size(change) : units_count(change);
    snprintf(text.text, sizeof text.text, "%s%.60s", change > 0 ? "+" : "", amount.text);
    return text;
}
