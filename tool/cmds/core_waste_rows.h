// SPDX-License-Identifier: Apache-2.0
// What of the blocks of a process or of a core dump is of no use, added up: by stack, type or size,
// and in all. Of a process of which a part was drawn, sums are estimates with intervals; of others
// they are exact, and intervals have no width.
#ifndef TOOL_CMDS_CORE_WASTE_ROWS_H
#define TOOL_CMDS_CORE_WASTE_ROWS_H

#include "tool/cmds/core_kin.h"
#include "tool/heap/waste.h"
#include "tool/model/drawn.h"
#include "tool/model/index_table.h"

// The kinds of waste (enum waste_kind) come first.
enum waste_figure {
    FIGURE_WASTED = WASTE_KINDS,  // all of the kinds
    FIGURE_HELD,                  // bytes of the blocks, slack among them
    FIGURE_BLOCKS,
    FIGURE_SPARSE,
    FIGURE_STRINGS,  // bytes of duplicates that are strings
    FIGURE_UNREAD,
    WASTE_FIGURES,
};

// Windows, and large blocks; what was read as a whole is one window of one.
enum waste_stratum { STRATUM_WINDOWS, STRATUM_LARGE, WASTE_STRATA };

// What blocks of one kin add up to.
struct waste_row {
    struct core_kin kin;
    struct drawn_sums sums[WASTE_STRATA][WASTE_FIGURES];
    double unit[WASTE_FIGURES];  // of the window or block that is being added
    size_t unit_number;
    bool has_unit;
    struct drawn_estimate estimates[WASTE_FIGURES];
    struct drawn_estimate share;  // wasted, of what is held
};

// Duplicates that were found, and the different contents that have them.
struct waste_copies {
    uint64_t count, contents;
};

struct waste_sums {
    struct core_subject *subject;
    const struct heap_windows *windows;  // NULL: everything was read
    size_t left_out;                     // windows whose chunks make no sense
    struct drawn drawn[WASTE_STRATA];
    ARRAY(struct waste_row) rows;  // what could be saved most of comes first
    struct index_table index;      // of rows, by kin
    struct waste_row all;
    struct waste_copies copies, strings;  // duplicates, and those of them that are strings
    bool is_failed;
};

// `subject`: opened, for a wish that may draw; the sums are to be freed by waste_sums_free also if
// this is false.
bool waste_sums_make(struct core_subject *subject, struct waste_sums *sums, struct error *error);
void waste_sums_free(struct waste_sums *sums);

// Sums it up for a file, in subject->waste. Of a heap with very many blocks it does not: who keeps
// what is asked for there, and all contents would be read for it. False with an error.
bool waste_note(struct core_subject *subject, struct error *error);

// A figure of a row in whole numbers.
static inline int64_t waste_value(const struct waste_row *row, int figure) {
    const double half = 0.5;
    return (int64_t)(row->estimates[figure].value + half);
}

#endif
