// SPDX-License-Identifier: Apache-2.0
// An answer is data: rows of typed, named columns, with what is to be said beside them. A view
// makes one and prints nothing; the forms (tool/answer/forms.h) write it and do not know which view
// it is.
//
// Rows are made one at a time, as a form asks for them: memory does not grow with their number, and
// texts and frames of a row live until the next one is asked for. Texts are as they were recorded;
// forms make them safe. An answer is used by one thread.
#ifndef TOOL_ANSWER_ANSWER_H
#define TOOL_ANSWER_ANSWER_H

#include "tool/answer/claims.h"
#include "tool/base/error.h"
#include "tool/model/measure.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

enum answer_unit {
    ANSWER_TEXT,
    ANSWER_BYTES,
    ANSWER_COUNT,
    ANSWER_NUMBER,  // of an identity: a thread's, a line's; no thousands are told apart
    ANSWER_TIME,    // ns
    ANSWER_SHARE,   // of answer.whole
    ANSWER_RATE,    // bytes a second
    ANSWER_REAL,    // without a unit
    ANSWER_RATIO,   // of a whole of the row's own (answer_set_ratio)
    ANSWER_BOOL,
};

// The place of a column on a screen.
enum answer_place {
    ANSWER_NOWHERE,    // for programs alone
    ANSWER_FIGURE,     // a figure among those at the left
    ANSWER_TAIL,       // text behind the figures
    ANSWER_TAIL_CUT,   // the same, cut at the end of the line
    ANSWER_TAIL_WRAP,  // the same, on further lines where it does not fit; nothing is behind it
    ANSWER_TAIL_LINE,  // a line of a source: there if it is empty too, and cut on terminals alone
    ANSWER_TAIL_NAME,  // a name, shortened so that some of the next column has room
    ANSWER_PHRASE,     // of blocks of lines: a phrase below the figures ...
    ANSWER_PHRASE_ON,  // ... and what goes on with it
};

enum answer_note { ANSWER_NO_NOTE, ANSWER_NARROW_NOTE, ANSWER_WIDE_NOTE };

struct answer_column {
    const char *key;   // of JSON and CSV; NULL: for people alone
    const char *head;  // above the column; "" or NULL: nothing is
    enum answer_unit unit;
    enum answer_place place;
    enum style style;
    size_t width;  // of a figure
    // Around a text in the tail; these stand there only if the text does.
    const char *before, *behind;
    const char *unknown;  // on a screen, in the place of a text that is not known; NULL: nothing
    const char *const *noun;    // behind a figure, one and several of it; NULL: none
    const char *interval_name;  // of the line below that says how sure it is; NULL: it does not
    enum answer_note note;      // behind the figure, how sure it is
    size_t shown_from;          // columns of the narrowest screen that has it
    bool has_share;             // of answer.whole, in front of it, ...
    size_t share_from;          // ... on screens from so many columns on
    bool has_dash;              // in the place of a zero
    bool is_blank;              // there is nothing in the place of a zero
    bool is_estimate;           // intervals of its values are told
    bool is_left_out;           // of this answer
    bool is_left;               // a text, cut to its width, that begins where its column does
};

// A column as one line of a table: a figure on the screen, a name behind the figures, or a value
// for programs alone; further fields may follow.
#define ANSWER_FIGURES(key_, head_, unit_, width_, ...)                                            \
    {                                                                                              \
        .key = (key_), .head = (head_), .unit = (unit_), .width = (width_),                        \
        .place = ANSWER_FIGURE, __VA_ARGS__                                                        \
    }
#define ANSWER_NAMES(key_, place_, ...)                                                            \
    { .key = (key_), .place = (place_), .style = STYLE_NAME, .before = "  ", __VA_ARGS__ }
#define ANSWER_TAILS(key_, before_, behind_, ...)                                                  \
    { .key = (key_), .place = ANSWER_TAIL, .before = (before_), .behind = (behind_), __VA_ARGS__ }
#define ANSWER_DATA(key_, unit_, ...)                                                              \
    { .key = (key_), .unit = (unit_), __VA_ARGS__ }

enum answer_state {
    ANSWER_ABSENT,   // the row has no such value
    ANSWER_UNKNOWN,  // it has one that is not known
    ANSWER_KNOWN,
};

struct answer_cell {
    enum answer_state state;
    struct measured measured;
    double real;       // of ANSWER_RATE and ANSWER_REAL
    const char *text;  // of ANSWER_TEXT
    enum style style;  // on a screen; STYLE_PLAIN: that of its column
};

enum {
    ANSWER_COLUMNS_MAX = 40,
    ANSWER_TEXT_BYTES = 256,
    ANSWER_NOTES_MAX = 12,
    ANSWER_FACTS_MAX = 52,
    ANSWER_NOTE_BYTES = 1024
};

enum answer_readers { ANSWER_EVERYONE, ANSWER_PEOPLE };  // programs have a claim or a value instead

// A line beside the rows.
struct answer_line {
    bool is_above;       // them, on a screen
    bool is_for_people;  // programs have it as a claim or a value
    bool is_part;        // on a screen, of a sentence that all such lines make
    enum style style;
    char text[ANSWER_NOTE_BYTES];
};

// A value of all of it, which is in no row.
struct answer_fact {
    const char *key;
    enum answer_unit unit;
    struct answer_cell cell;
};

enum answer_use {
    ANSWER_FOR_ALL,
    ANSWER_FOR_PROGRAMS,  // a screen has it among those that another row counts
    ANSWER_FOR_PEOPLE,    // it stands for rows that programs get
};

// Ties a row of a tree to the one above its level.
enum answer_branch {
    ANSWER_ONLY,   // nothing else does
    ANSWER_INNER,  // others follow
    ANSWER_LAST,
    ANSWER_STEM,  // the whole, for a screen
};

struct answer_row {
    size_t level;  // 0; a part of the last row above it has one more
    enum answer_use use;
    enum answer_branch branch;
    struct answer_cell cells[ANSWER_COLUMNS_MAX];
    bool is_strong, is_dim;           // the text behind its figures
    bool is_address;                  // its name, which is cut and not shortened
    const char *heading;              // of rows from here on, on a screen; NULL: none
    const char *heading_rest;         // behind it
    bool is_heading;                  // it is nothing else
    const char *instead;              // in the place of its figures on a screen; NULL: nothing
    const struct frame_list *frames;  // of its stack, innermost first; NULL: it has none
    const struct frame_list *freed_by;
    uint32_t cut;            // enum cairn_cut; 0: no frame is missing
    const char *incomplete;  // key of the reason for which frames are missing; NULL: none are
};

enum answer_say { ANSWER_SAY_FIGURES, ANSWER_SAY_ABOVE, ANSWER_SAY_BELOW };  // of the frames

struct answer {
    const char *view;
    char title[ANSWER_TEXT_BYTES];       // "3 regions"
    char title_rest[ANSWER_TEXT_BYTES];  // behind it
    bool is_path;                        // the title, which loses directories on a narrow screen
    char none[ANSWER_TEXT_BYTES];        // in the place of rows where there is none
    struct answer_line notes[ANSWER_NOTES_MAX];
    size_t note_count;
    // Sentences that say more than a count, and values, of all of it: beside the rows.
    const struct claim *claims;
    size_t claim_count;
    struct answer_fact facts[ANSWER_FACTS_MAX];
    size_t fact_count;
    const char *subject;  // the process or the core that it is of, safe to print; NULL: neither
    uint32_t pid;         // of a process; 0: it is of none, or of the profile's
    const char *program;  // of that process; NULL: not known
    char next[ANSWER_TEXT_BYTES];   // command that shows more; "": none
    const char *measure;            // that rows are ranked by; NULL: by none
    const struct profile *profile;  // that rows are of; NULL: of several, of a run
    const struct view_options *options;
    const struct answer_column *columns;
    size_t column_count;
    size_t indent, gap;  // of figures: blanks before the first one, and between two
    bool has_frames, has_freed_by, has_levels;
    bool has_heads_always;  // on a screen, above no rows too
    const char *tail_head;  // on a screen, behind the heads of figures; NULL: nothing
    int64_t whole;          // of which figures are a share
    size_t shown, count;    // rows of level 0, and how many there are in all
    // Fills the next row, which is all zeros; false at the end, or without memory (is_failed).
    bool (*next_row)(struct answer *answer, struct answer_row *row);
    // Makes of it what a screen of so many columns shows, where that is more or other than its
    // rows, before the first of them is asked for. False with an error. NULL: it is the same.
    bool (*to_screen)(struct answer *answer, size_t columns, struct error *error);
    // Draws it on a screen, in the place of its rows. False with an error. NULL: its rows are
    // shown.
    bool (*draw)(const struct terminal *terminal, const struct answer *answer, struct error *error);
    const struct frame_names *names;  // that it draws with
    struct answer *above, *below;     // further tables of a screen, by answer_add_table; NULL: none
    bool is_failed;
    bool is_screen;   // rows are for people: internal frames are hidden, unless they are asked for
    bool is_unknown;  // there are no rows, since what they are ranked by is not known; see title
    // On a screen a row is a block of lines (blocks.h), of `noun` (one and several); NULL: `say`
    // tells the row's figures, too. It prints more of the last row; NULL: nothing.
    bool are_blocks;
    bool are_branches;    // on a screen a row is a branch of a tree (branches.h)
    size_t hidden_count;  // of it: internal frames that are left out
    const char *const *noun;
    void (*say)(const struct terminal *terminal, struct answer *answer, enum answer_say where);
    bool is_sampled;             // of an answer without a profile
    void (*close)(void *state);  // NULL: nothing is to be freed
    void *state;                 // of next_row
};

void answer_set(struct answer_row *row, size_t column, int64_t value);
void answer_set_measured(struct answer_row *row, size_t column, struct measured measured);
void answer_set_real(struct answer_row *row, size_t column, double value);
void answer_set_ratio(struct answer_row *row, size_t column, int64_t part, int64_t whole);
void answer_set_text(struct answer_row *row, size_t column, const char *text);  // NULL: unknown
void answer_set_unknown(struct answer_row *row, size_t column);

// The columns of what rows are ranked by: its share of the whole, and the value.
extern const struct answer_column answer_share_column;
struct answer_column answer_value_column(enum measure by, size_t width);
// The column of other ids that rows of stacks stand for, where some do. `profile` may be NULL.
struct answer_column answer_other_ids_column(const struct profile *profile);

// Returns the length of a list of `count` rows that `top` cuts; 0: it does not.
static inline size_t answer_cut(size_t top, size_t count) {
    return top && top < count ? top : count;
}

// Returns true if columns that are estimates have intervals.
bool answer_is_sampled(const struct answer *answer);

// Adds a line below the rows.
void answer_note(struct answer *answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Adds one that a screen has above them.
void answer_note_above(struct answer *answer, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The same of what programs have as a claim or a value.
void answer_show_above(struct answer *answer, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Adds a line below the rows that programs have as a value.
void answer_show(struct answer *answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Adds one that is not dim.
void answer_note_plain(struct answer *answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Adds a part of the sentence below the rows.
void answer_part(struct answer *answer, enum answer_readers readers, enum style style,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

// Adds a value of all of it.
void answer_fact(struct answer *answer, const char *key, enum answer_unit unit, int64_t value);
void answer_fact_known(struct answer *answer, const char *key, enum answer_unit unit, int64_t value,
                       bool is_known);
void answer_fact_cell(struct answer *answer, const char *key, enum answer_unit unit,
                      const struct answer_cell *cell);
void answer_fact_text(struct answer *answer, const char *key, const char *text);  // NULL: unknown

// Adds a further table to a screen. NULL without memory.
struct answer *answer_add_table(struct answer **place);

// Returns the next row of those for people or for programs; false at the end.
bool answer_next(struct answer *answer, enum answer_use use, struct answer_row *row);

// Returns false, with an error, if rows are missing for want of memory.
bool answer_check(const struct answer *answer, struct error *error);
void answer_close(struct answer *answer);

#endif
