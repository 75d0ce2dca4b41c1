// SPDX-License-Identifier: Apache-2.0
// What `cairn whatif` found out, for the table and for the page with the chart.
#ifndef TOOL_CMDS_WHATIF_H
#define TOOL_CMDS_WHATIF_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#include "tool/cmds/replay_options.h"

#define WHATIF_ROWS_MOST 32
#define WHATIF_LINE_BYTES (PATH_MAX + 200)

// An allocator as it comes, or with a variable, "NAME=VALUE".
struct whatif_trial {
    const char *allocator, *variable;  // NULL: none
};

// Of several runs.
struct whatif_spread {
    double least, middle, most;
};

struct whatif_row {
    const struct whatif_trial *trial;
    char library[PATH_MAX];
    struct whatif_spread peak, freed, ns;  // bytes, bytes, ns a call
    struct error problem;                  // "": it ran
};

struct whatif_table {
    struct whatif_row rows[WHATIF_ROWS_MOST];  // the lowest peak first, those that failed last
    size_t count;
    uint64_t rounds;
    const struct replay_order *order;
    const struct script *script;
    bool is_plain;
};

// What switches a program over, as a shell reads it; WHATIF_LINE_BYTES.
void whatif_line(const struct whatif_row *row, char *out);
// The variable, or "".
const char *whatif_setting(const struct whatif_row *row);
// How far runs lie apart, in percent of the middle one.
double whatif_range(const struct whatif_spread *spread);

// "9.0 MiB less at the peak than glibc as it comes: ", and the line that does it; both
// WHATIF_LINE_BYTES. False: nothing ran.
bool whatif_conclude(const struct whatif_table *table, char *conclusion, char *line);

bool whatif_put_page(FILE *out, const struct whatif_table *table, struct error *error);

#endif
