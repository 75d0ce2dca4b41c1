// SPDX-License-Identifier: Apache-2.0
// A program run again and again, each time with another allocation that fails
// (docs/howto/torture.md). Runs without a failure list the stacks that allocate, the plan is made
// of them, and each run becomes an outcome. This is the only part of cairn that changes what a
// program does, by a library of its own (runtime/torture).
#ifndef TOOL_TORTURE_TORTURE_H
#define TOOL_TORTURE_TORTURE_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/base/text.h"
#include "tool/model/strings.h"
#include "tool/symbol/options.h"

// ---- the plan: which allocations are to fail ----------------------------------------------------

struct torture_frame {
    const char *function, *file;  // NULL: unknown
    const char *module;
    uint64_t address;  // in its ELF file
    uint32_t line;
    bool is_internal;
};

struct torture_target {
    uint64_t hash, count;
    struct torture_frame *frames;  // innermost first
    size_t frame_count;
    size_t first;   // the frame that is shown first: the innermost that is not internal
    size_t site;    // the innermost that is not libc's either: where the program allocates
    uint64_t rank;  // how many targets of the same site come before it
    bool is_wanted;
    bool is_cut;  // its outermost frames are missing
};

struct torture_step {
    size_t target;
    uint64_t nth;
};

struct torture_plan {
    ARRAY(struct torture_target) targets;
    ARRAY(struct torture_step) steps;  // in the order in which they run
    struct symbol_table *symbols;
    ARRAY(char *) texts;
    uint64_t lost;  // allocations that had no room in the list
};

// Reads what a listing run left in the file. `wanted` NULL: every stack; else those with a frame
// whose function, file or module matches. Steps: for each site one stack first, then the others;
// then, of stacks that allocate several times, one of the later allocations by `seed`.
bool torture_plan_read(const char *path, const struct symbol_options *options,
                       const struct pattern *wanted, uint64_t seed, struct torture_plan *plan,
                       struct error *error);
void torture_plan_free(struct torture_plan *plan);

// ---- a run --------------------------------------------------------------------------------------

enum torture_kind {
    TORTURE_CLEAN,
    TORTURE_MISSED,     // the allocation did not come
    TORTURE_CRASH,      // a signal other than SIGABRT, or an abort for a damaged heap
    TORTURE_ABORT,      // SIGABRT
    TORTURE_HANG,       // longer than the limit
    TORTURE_SANITIZER,  // a report of a sanitizer
    TORTURE_SILENT,     // ends like a whole run, but its output is another one
    TORTURE_LEAK,       // blocks that nothing leads to at the end, of stacks that had none before
    TORTURE_FLOOD,      // wrote more than it may
    TORTURE_KINDS,
};

extern const char *const torture_kind_names[TORTURE_KINDS];
extern const char *const torture_kind_texts[TORTURE_KINDS];

struct torture_settings {
    char **command;
    const char *library, *tool, *directory;  // paths; directory: for files of runs
    const char *input;                       // file for stdin
    uint64_t limit_ns;                       // for a run
    uint64_t bytes_max;                      // of output, and of a file
    bool has_leaks;
};

enum { TORTURE_TAIL_BYTES = 4096 };

struct torture_outcome {
    enum torture_kind kind;
    int status, signal;
    uint64_t duration_ns;
    uint64_t output_hash, output_bytes;
    bool is_reached, is_over_time, is_flood;
    bool has_given_up;              // on the spot: nothing was lost on a way back
    char tail[TORTURE_TAIL_BYTES];  // of stderr
    char detail[512];               // a line that says what happened
    char died_at[512];              // functions, innermost first; "": it did not, or not known
    char within[64];                // the library that it is in, not the program; "": none
    char *leaks;                    // stacks that nothing leads to (leaks.h); NULL: not known
};

void torture_outcome_free(struct torture_outcome *outcome);

struct torture_run {
    size_t step;
    pid_t pid;
    int output, errors;  // pipes, -1: closed
    uint64_t start_ns;
    char directory[PATH_MAX - 64];
    struct torture_outcome outcome;
};

// Starts it: `target` 0 lists. False with an error.
bool torture_run_start(struct torture_run *run, const struct torture_settings *settings,
                       uint64_t target, uint64_t nth, unsigned number, struct error *error);
// Reads what there is; true when the run is over, its processes are gone and `outcome` is filled.
bool torture_run_poll(struct torture_run *run, const struct torture_settings *settings);
// Ends it and all its processes.
void torture_run_kill(struct torture_run *run);
// Path of the file with the list.
void torture_run_map(const struct torture_run *run, char path[PATH_MAX]);
// Removes its files.
void torture_run_remove(struct torture_run *run);

// Says of which kind the outcome is, next to that of a run without a failure.
void torture_judge(struct torture_outcome *outcome, const struct torture_outcome *usual,
                   bool has_same_output);

// Says where a leak is from, in the outcome's detail, and within which library it is.
void torture_leaks_tell(struct torture_run *run, const struct torture_settings *settings,
                        const struct torture_outcome *usual, const struct torture_target *target);

// Says where the program died, and within which library, after the run and before its removal.
void torture_death_tell(struct torture_run *run, struct torture_plan *plan,
                        const struct torture_target *target);

// Within which library something went wrong after an allocation failed: the function that both the
// failed allocation and what went wrong were reached from is in that library, and so is all of the
// way to both. "" if the program has a part in it. `frames`: where it went wrong, innermost first.
void torture_within(const struct torture_target *target, const struct torture_frame *frames,
                    size_t count, char *library, size_t size);

// Functions with their places, at most three that are not internal: "get (a.c:3) <- main (a.c:9)".
void torture_put_where(FILE *out, const struct torture_frame *frames, size_t count);

// ---- what is known so far -----------------------------------------------------------------------

struct torture_result {
    uint64_t hash, nth;
    struct torture_outcome outcome;
};

struct torture_results {
    ARRAY(struct torture_result) list;
    FILE *log;  // of --state; NULL: none
};

// Opens or makes the directory's log, and reads what is in it. False if it is of another command.
bool torture_state_open(struct torture_results *results, const char *directory,
                        char *const *command, struct error *error);
// Adds one, and writes it to the log; takes the outcome over.
bool torture_results_add(struct torture_results *results, uint64_t hash, uint64_t nth,
                         struct torture_outcome *outcome);
const struct torture_result *torture_results_find(const struct torture_results *results,
                                                  uint64_t hash, uint64_t nth);
void torture_results_free(struct torture_results *results);

struct torture_report {
    char *const *command;
    const char *input;  // file for stdin; NULL: none
    const struct torture_plan *plan;
    const struct torture_results *results;
    const struct torture_outcome *usual;
    uint64_t seed;
    bool has_same_output;
    bool has_no_leaks;                 // they could not be looked for
    unsigned allowed;                  // bits of kinds that are no findings
    const struct pattern *allowed_in;  // nor what is within such a library; NULL: none
};

// A finding that is told, of those that are alike the first; false: that step has none.
bool torture_is_told(const struct torture_report *report, size_t step);
const struct torture_result *torture_result_of(const struct torture_report *report, size_t step);
// The allocation that is to fail, and where the program allocates; NULL: not known.
const struct torture_target *torture_target_of(const struct torture_report *report, size_t step);
const struct torture_frame *torture_site_of(const struct torture_target *target);
void torture_print_finding(const struct torture_report *report, size_t step, FILE *out);

size_t torture_count(const struct torture_report *report, enum torture_kind kind);
size_t torture_findings(const struct torture_report *report);
// What would be findings were it not for `allowed_in`.
size_t torture_left_out(const struct torture_report *report);
void torture_print(const struct torture_report *report, FILE *out);
void torture_write_json(const struct torture_report *report, FILE *out);
void torture_write_junit(const struct torture_report *report, FILE *out);

#endif
