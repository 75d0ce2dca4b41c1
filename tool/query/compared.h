// SPDX-License-Identifier: Apache-2.0
// Recordings opened one after the other, filtered, and added to a comparison: memory holds one of
// them and the table, however many there are.
#ifndef TOOL_QUERY_COMPARED_H
#define TOOL_QUERY_COMPARED_H

#include "tool/query/views.h"
#include "tool/render/diff.h"

#define COMPARED_MAX 64  // recordings a side
#define LOST_BYTES 512

struct compared_list {
    char *text;  // names point into it
    const char *names[COMPARED_MAX];
    const char *snapshots[COMPARED_MAX];  // of FILE@SNAPSHOT; NULL: none was named
    size_t count;
};

// Totals by recording, as struct diff has values; calls and bytes allocated are counted always.
struct compared_totals {
    int64_t *peak, *exit, *allocated, *calls;
    int64_t *peak_ns, *run_ns;  // when the peak was, and how long it ran; 0: not known
    int64_t *at;                // at the snapshots that were named
    int64_t *wasted;            // of no use, in memory: of files that say who keeps what
    struct diff_estimate *peak_estimates, *exit_estimates, *at_estimates;
};

struct compared {
    struct diff diff;
    struct compared_totals totals;
    char program[2][64];             // of each side's last recording, safe text
    char lost_names[2][LOST_BYTES];  // of each side: why code has no names; "": it has
    bool is_inexact;                 // some recording lost something
    const char *left_word;  // when what was left is of: "at exit"; "at the end": it differs
    bool lacks_frees;       // of some neither peak nor what was left is known
    size_t sampled_count;   // recordings that are samples
    size_t owners_count;    // of who keeps what
    size_t waste_count;     // of those that say what of it is of no use
    const char *process;    // --process, NULL: the largest
    const struct request *request;
    enum compared_kind kind;
    const struct grouping *grouping;  // of COMPARED_GROUPS
    bool has_snapshots;
    struct request own_request;  // of the recording that is looked at
    struct filter *filter;
};

// "a.cairn,b.cairn@10s"; a name of a file that has a comma or an at-sign in it is one name. False
// with an error.
bool compared_list_read(struct compared_list *list, const char *word, struct error *error);
void compared_list_free(struct compared_list *list);

// `compared` has process, request, grouping and filter filled. False with an error.
bool compared_build(struct compared *compared, const struct compared_list *before,
                    const struct compared_list *after, struct error *error);
// Prints the view that was asked for of each recording, with its name above it.
bool compared_print_views(struct compared *compared, const struct compared_list *before,
                          const struct compared_list *after, struct error *error);
void compared_free(struct compared *compared);

#endif
