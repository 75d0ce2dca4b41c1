// SPDX-License-Identifier: Apache-2.0
// How far a recording can be believed, and how its process ended, as parts of a sentence.
#ifndef TOOL_RENDER_TRUST_H
#define TOOL_RENDER_TRUST_H

#include "tool/model/profile.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// "exact · nothing lost · 3 of 812 stacks incomplete · cairn itself 4.1 MiB, about 7 % of the
// processor time", indented, in as many lines as it takes.
void trust_print(const struct terminal *terminal, const struct profile *profile,
                 const struct frame_names *names);

// The least of it, as parts of a line: whether it is exact, and what is damaged.
void trust_add_short(struct parts *line, const struct profile *profile);

// What is known of several recordings together.
struct trust_sums {
    uint64_t lost[CAIRN_LOSS_MAX];
    uint64_t earlier_frees;          // expected, as recording_earlier_frees has them
    struct cairn_left_out left_out;  // programs that were started and not recorded
    struct cairn_unkept unkept;      // processes whose recordings are not kept
    uint64_t lost_elsewhere;         // of processes without a recording, for whatever reason
    uint64_t own_bytes;              // highest of a process
    uint64_t inexact_count;          // processes with a loss that changes a number, or damage
    uint64_t sampled_count;
    uint64_t overrun_blocks;  // written past, as guard bands showed
    uint64_t bad_files, bad_lines;
    uint64_t lost_files;   // recordings that could not be written
    uint64_t checkpoints;  // recordings that end with one
};

// All recordings are there, whole and exact but for what is meant to be an estimate.
bool trust_sums_are_whole(const struct trust_sums *sums);

void trust_sums_add(struct trust_sums *sums, const struct recording *recording);
void trust_sums_print(const struct terminal *terminal, const struct trust_sums *sums);

// How a process ended, as words: "ended with status 0".
struct ending {
    uint32_t state, stop_reason;
    bool has_exit;
    int32_t exit_status, exit_signal;
};
void ending_text(const struct ending *ending, bool is_alive, char *out, size_t size);
// The same in one or two: "status 0", "SIGKILL", "running".
void ending_word(const struct ending *ending, char *out, size_t size);

// "sqlite3 ended with status 0 after 0.52 s", without end of line. `is_alive`: the process of a
// recording without an end is known to run.
void ending_print(const struct terminal *terminal, const struct profile *profile, bool is_alive);

// Name of the program: last part of what it was started as; escaped.
void program_name(const struct profile *profile, char *out, size_t size);

// Name of a kind of loss in JSON ("no_thread");
// NULL: not known.
const char *loss_key(size_t kind);

// What follows the number of them: "frees of earlier blocks (expected)".
const char *earlier_frees_sentence(uint64_t count);

// What follows the number of them: "free of an unknown block" for 1, else "frees of ...".
const char *loss_sentence(size_t kind, uint64_t count);

#endif
