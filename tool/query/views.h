// SPDX-License-Identifier: Apache-2.0
// The one table of views: what `cairn report --view` knows, with what each shows if nothing else is
// asked for. A new view is a row and a function that makes its answer.
#ifndef TOOL_QUERY_VIEWS_H
#define TOOL_QUERY_VIEWS_H

#include <stdio.h>

#include "tool/answer/forms.h"
#include "tool/query/arguments.h"
#include "tool/query/merged.h"
#include "tool/query/snapshot_options.h"
#include "tool/render/filter.h"
#include "tool/render/terminal.h"

struct request;
struct grouping;
struct leaks;
struct run;

enum { VIEW_NOTES = 3 };

struct view_subject {
    struct opened *opened;            // NULL: all of `run` is asked for
    const struct frame_names *names;  // filtered
    const struct request *request;
    const struct run *run;          // NULL: of a recording, or of several as one
    const char *notes[VIEW_NOTES];  // to be said beside rows, as the screen says it; NULL: nothing
};

// What the reference says of a view beside its row (docs/reference/views.md).
struct view_reference {
    const char *question;       // that it answers
    const char *options;        // of report that change it, beside filters and snapshots
    const char *recorded_with;  // what recording has to be asked for; NULL: every recording will do
    const char *not_of_heaps;   // why it has no allocator by name (--heap); NULL: it has
};

// Bits of what a view needs of its subject, and of how it takes one.
enum view_needs {
    VIEW_NEEDS_NAMES = 1 << 0,      // of every stack, not of the first `top` alone
    VIEW_NEEDS_FREES = 1 << 1,      // what was freed, which not every import says
    VIEW_NEEDS_LEAKS = 1 << 2,      // what was left, without what is suppressed
    VIEW_NEEDS_LOG = 1 << 3,        // the order of events, which an event log has
    VIEW_TAKES_LOG = 1 << 4,        // an event log tells it more than the recording
    VIEW_NEEDS_MAPPINGS = 1 << 5,   // what the program mapped, in the heap's place
    VIEW_NEEDS_MEMORY = 1 << 6,     // what is in blocks: a process or a core dump
    VIEW_TAKES_KEY = 1 << 7,        // --context with a key alone
    VIEW_TAKES_NO_FILTER = 1 << 8,  // of a heap as it is now
    VIEW_NEEDS_SOURCE = 1 << 9,     // a source file
    VIEW_IS_TREE = 1 << 10,         // calls in calls
    VIEW_LEADS_TO_TREE = 1 << 11,   // its stacks are better seen as a tree where many changed
    VIEW_IS_RESIDENT = 1 << 12,     // of what is resident, which any process answers
    VIEW_IS_OF_FREE = 1 << 13,      // of what is resident and not live
    VIEW_IS_OF_STACKS = 1 << 14     // rows are stacks: those that read the same are one (alike.h)
};

// The processes of a run of several, as a view has them.
enum view_run {
    RUN_SUM,        // added up
    RUN_ONE,        // the one with the highest peak
    RUN_TABLE,      // rows of a table; the view has nothing of one process
    RUN_TIMELINES,  // beside each other: their timelines
    RUN_OVERRUNS,   // likewise, what was written past in each
};

// The question to a process or a core dump that is not answered by a recording.
enum view_memory {
    MEMORY_NONE,
    MEMORY_HEAP,
    MEMORY_PAGES,
    MEMORY_OWNERS,
    MEMORY_TYPES,
    MEMORY_CONTAINERS,
    MEMORY_WASTE,
    MEMORY_REMEDIES,
    MEMORY_COUNT
};

// The rows of a view that are compared between recordings.
enum compared_kind {
    COMPARED_VIEWS,  // none: a view of each recording after the other
    COMPARED_STACKS,
    COMPARED_GROUPS,
    COMPARED_LINES,
    COMPARED_THREADS,
    COMPARED_REGIONS,
};

// False with an error. The answer lives as long as its subject.
typedef bool view_answer_fn(const struct view_subject *subject, struct answer *answer,
                            struct error *error);
typedef bool view_browse_fn(const struct view_subject *subject, struct error *error);
// The same of a profile and its names alone.
typedef bool view_rows_fn(struct answer *answer, const struct profile *profile,
                          const struct frame_names *names, const struct view_options *view,
                          struct error *error);

struct view {
    const char *name;
    const char *help;     // one line
    const char *measure;  // ranked by this unless --by says otherwise
    size_t top, depth;    // usual ones; 0: all
    double threshold;     // usual one
    unsigned needs;       // enum view_needs
    enum view_run run;
    enum view_memory memory;
    enum compared_kind compared;
    const struct grouping *grouping;  // of its rows; NULL: they are no groups of frames
    // Makes rows for every form of what a recording says: one of both.
    view_rows_fn *rows;
    view_answer_fn *answer;
    view_browse_fn *browse;  // walks through it on a terminal; NULL: it is printed there, too
    struct view_reference reference;
};

extern const struct view views[];  // ends with name NULL; the first one has no name of its own

// Views by the question that leads to them, as help lists them; each view is in one of the groups.
struct view_group {
    const char *title;
    const char *names;  // with spaces between them
};
extern const struct view_group view_groups[];  // ends with title NULL

// NULL: there is none of that name, or the name is NULL.
const struct view *view_find(const char *name);
// Prints the view that is asked for, in the form that is asked for. False with an error.
bool view_print(FILE *out, const struct view_subject *subject, struct error *error);

// Makes one of the stacks that read the same in the form that is asked for; `names` has every name.
// False with an error.
bool view_join_alike(const struct request *request, struct profile *profile,
                     const struct frame_names *names, struct error *error);

// Returns true if it has one of these bits. `view` may be NULL.
bool view_has(const struct view *view, unsigned needs);

// What a user asks for: view, measure, filters.
struct request {
    const struct view *view;  // NULL: the list of places, then stacks
    struct view_options options;
    struct filter_request filter;
    struct snapshot_request snapshot;
    const struct answer_form *form;  // of the view; NULL: the screen, or is_json
    FILE *out;                       // where rows of a process or core go; NULL: stdout
    const char *heap;      // an allocator by name in place of malloc's heap; NULL: malloc's
    bool is_of_all_heaps;  // all of them, beside malloc's; then `heap` is ""
    uint64_t short_ns;     // ages: what is short-lived; 0: nothing was said
    const char *source;
    const char *context_key;  // contexts: of labels, this key's
    struct leaks *leaks;  // cmds/leaks.h; set: it is of leaks, whatever the view; NULL: it is not
    bool is_by_chosen;    // the measure was asked for
    bool is_unreachable;  // leaks: what nothing led to at the end, alone
    bool is_json;         // the whole as one document
    bool is_grouped;      // threads of one name are one
    bool is_of_run;       // of a process among others: what it lacks is no error
    bool is_printed;      // a tree is printed, even on a terminal
};

// Returns true if all that a recording says is asked for as one JSON document.
static inline bool request_is_whole(const struct request *request) {
    return request->is_json && !request->form;
}

// Reads view, form, measure and filters. False with an error: wrong use.
bool request_read(const struct command_args *args, struct request *request, struct error *error);
// False, with the measures there are and the one that may be meant.
bool request_refuse_measure(const char *command, const char *name, struct error *error);

// Takes away what is known without names (threads, lifespan) from one recording's profile, before
// it is looked at or added to others.
struct narrowing {
    const struct request *request;
    struct filter *filter;
};
// False with an error if an import that knows only what was live is asked for calls or allocated
// bytes.
bool request_knows_calls(const struct profile *profile, enum measure by, struct error *error);

// Fits the request to what was opened: of an import without frees the usual measure is what was
// allocated. False with an error if it asks for what such a recording does not have.
bool request_settle(struct request *request, const struct profile *profile, struct error *error);
bool request_narrow(const void *narrowing, struct profile *profile, struct error *error);

// Applies the other filters to what was opened and narrowed, and finds the names that the view
// needs.
// `names` is valid as long as filter and recording. Errors are those of filter.h.
bool request_apply(const struct request *request, struct filter *filter, struct opened *opened,
                   const struct frame_names **names, struct frame_names *own_names,
                   struct error *error);

// Writes the names of the views that a process or core dump has without a recording: "a, b and c".
enum { VIEW_NAMES_BYTES = 128 };
void view_names_of_memory(char names[VIEW_NAMES_BYTES]);

// False, with what to do, if the view is of what is in blocks, which a recording does not have.
bool view_check_recording(const struct view *view, struct error *error);

#endif
