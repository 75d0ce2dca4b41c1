// SPDX-License-Identifier: Apache-2.0
// Recordings side by side: a table with a row for what they have in common by name, a value for
// each recording. Side A are the first `first_count` recordings, B the others; with several on a
// side the spread of a side says what is noise.
//
// The table owns its texts, each once, so that recordings can be opened one after the other. The
// key of a stack is its functions without lines, innermost first: another build of the same program
// has the same keys. Stacks that differ by a few functions more or less (inlining) are joined by
// diff_join_similar. Lines of source are known by function and distance from its first one, so that
// they may have moved (diff_lines.c).
#ifndef TOOL_RENDER_DIFF_H
#define TOOL_RENDER_DIFF_H

#include "tool/model/measure.h"
#include "tool/render/frames.h"
#include "tool/render/groups.h"
#include "tool/render/terminal.h"

struct diff_row {
    uint32_t *names;  // numbers of texts: the key
    uint32_t *where;  // a place for each, in the last recording that has the row
    uint32_t count;
    uint32_t joined_to;  // the row that has its values now; its own number if they are here
};

// Safe texts, numbered.
struct diff_texts {
    ARRAY(char *) list;
    struct index_table table;
};

// How sure a value is: all zero if it was counted.
struct diff_estimate {
    double variance;
    double missed;  // what an interval has beyond that (estimate.h); of a sum, the largest
    int64_t samples;
};
struct diff_estimate diff_estimate_of(struct measured measured);

struct diff {
    size_t recording_count, first_count;
    ARRAY(struct diff_row) rows;
    ARRAY(int64_t) values;                  // by row, then by recording
    ARRAY(struct diff_estimate) estimates;  // of the same
    ARRAY(int64_t) calls;                   // of the same: allocations over all time, if is_of_peak
    bool is_of_peak;  // stacks at peaks: one that holds nothing then may have allocated as before
    struct index_table table;
    ARRAY(double) unseen;  // by recording: variance of a value of 0; beyond the last ones 0
    struct diff_texts texts;
    size_t joined_count;  // rows that diff_join_similar found
    int64_t
        doubtful_below;  // a smaller difference is noise if it is likely enough by chance; 0: none
};

enum change_kind {
    CHANGE_NONE,
    CHANGE_NEW,
    CHANGE_GONE,
    CHANGE_GROWN,
    CHANGE_SHRUNK,
    CHANGE_NOT_AT_PEAK,   // holds nothing at the peak after, though it allocated
    CHANGE_ONLY_AT_PEAK,  // held nothing at the peak before, though it allocated
    CHANGE_KINDS
};

struct change {
    int64_t before, after, delta;  // medians of the sides, and their difference
    int64_t samples;               // behind both sides
    int64_t interval;       // half the width of the difference's 95 % interval; 0: it was counted
    enum change_kind kind;  // NONE: equal, or within the spread of a side or the interval
    bool is_noise;          // differs, but within the spread or the interval
    double chance;  // how likely sides that do not overlap are if only noise is between them; 0:
                    // not known, or nothing varied
};

void diff_start(struct diff *diff, size_t recording_count, size_t first_count);
void diff_free(struct diff *diff);

// How likely it is that all values of one side are beyond all of the other, if nothing but noise
// is between them: every order of the recordings is as likely then. 0: fewer than DIFF_RUNS_LEAST
// recordings on a side tell nothing of noise.
#define DIFF_RUNS_LEAST 3u
double diff_chance(const struct diff *diff);

// Says that recording `recording` is a sample of one in `rate_bytes`: what it does not have may
// still have been there, up to three times so many bytes (the rule of three, at 95 %). Before
// anything is added of a later recording. False without memory.
bool diff_set_sampled(struct diff *diff, size_t recording, uint64_t rate_bytes);

// Adds to a row, made if there is none; key and places have a line each. False without memory.
bool diff_add(struct diff *diff, size_t recording, const char *key, const char *where,
              struct measured measured);
// All stacks of a profile, or all its groups. False without memory.
bool diff_add_stacks(struct diff *diff, size_t recording, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     struct error *error);
// The same, also of stacks that hold nothing; `rows` gets the number of each stack's row.
bool diff_add_every_stack(struct diff *diff, size_t recording, const struct profile *profile,
                          const struct frame_names *names, const struct view_options *view,
                          uint32_t *rows, struct error *error);
// Adds another measure of the same stacks, as a recording of its own; `rows` as the first one
// filled it.
void diff_add_measure(struct diff *diff, size_t recording, const struct profile *profile,
                      enum measure by, const uint32_t *rows);
bool diff_add_groups(struct diff *diff, size_t recording, const struct grouping *grouping,
                     const struct profile *profile, const struct frame_names *names,
                     const struct view_options *view, struct error *error);

// For stacks: joins rows of one side alone whose functions are those of the other side but for a
// few. False without memory.
bool diff_join_similar(struct diff *diff, struct error *error);

// The same with the numbers of texts; `index` becomes the row's number.
bool diff_add_row(struct diff *diff, size_t recording, const struct diff_row *row,
                  struct measured measured, uint32_t *index);
// Number of a text; false without memory.
bool diff_text(struct diff *diff, const char *text, uint32_t *number);

// Lines of the key or the places of a row.
const char *diff_name(const struct diff *diff, const struct diff_row *row, uint32_t line);
const char *diff_where(const struct diff *diff, const struct diff_row *row, uint32_t line);

// The key of a source line: function, name of the file, "+3". Its places are "/path:line" and
// "/path". One without a known line has its function alone.
enum { DIFF_LINE_FUNCTION, DIFF_LINE_PATH, DIFF_LINE_OFFSET, DIFF_LINE_NAMES };

// Source lines of a profile; afterwards lines that are on one side alone are joined with those of
// the same function on the other, in their order. False without memory.
bool diff_add_lines(struct diff *diff, size_t recording, const struct profile *profile,
                    const struct frame_names *names, const struct view_options *view,
                    struct error *error);
bool diff_join_lines(struct diff *diff, struct error *error);

// Moves the values of a row into another one.
void diff_join_rows(struct diff *diff, uint32_t from, uint32_t to);
// Where the values of a row are after joining.
uint32_t diff_joined_row(const struct diff *diff, uint32_t row);

// Threads by name, and the regions that the program named. False without memory.
bool diff_add_threads(struct diff *diff, size_t recording, const struct profile *profile,
                      enum measure by, struct error *error);
bool diff_add_regions(struct diff *diff, size_t recording, const struct profile *profile,
                      enum measure by, struct error *error);

const int64_t *diff_values(const struct diff *diff, size_t row);
// What values of the recordings say, and how sure they are, NULL: they were counted. Estimates are
// taken as independent; between snapshots of one process samples that live on cancel, and the
// interval is wider than need be.
struct change diff_change(const struct diff *diff, const int64_t *values,
                          const struct diff_estimate *estimates);
struct change diff_row_change(const struct diff *diff, size_t row);

// Rows that changed, the largest difference first, for free(); NULL without memory. `noise_count`
// becomes the number of those within the spread.
uint32_t *diff_rank(const struct diff *diff, size_t *count, size_t *noise_count);

// Keeps the stacks of a profile whose row is new or grown, and drops the others. False without
// memory.
bool diff_keep_growth(struct diff *diff, struct profile *profile, const struct frame_names *names,
                      const struct view_options *view, struct error *error);

const char *change_word(enum change_kind kind);

#endif
