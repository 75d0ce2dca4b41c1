// SPDX-License-Identifier: Apache-2.0
// What a reader should know without asking: a few sentences about what a recording has that costs
// more than it must, each with what a fix saves, the view that shows more, and the section of
// docs/howto/findings.md that says how to fix it.
//
// One table of rules, for the terminal, the page of `cairn open` and agents. Each rule has a limit
// below which it is not worth a line; a program without anything special has none. A rule says what
// the file knows: what blocks contain is known of files of `cairn core PID save` alone.
#ifndef TOOL_RENDER_FINDINGS_H
#define TOOL_RENDER_FINDINGS_H

#include "tool/answer/answer.h"
#include "tool/answer/claims.h"
#include "tool/render/finding.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// Needs no names; those of its stacks are to be looked up before findings are settled and printed
// (finding_node). False without memory.
bool findings_find(struct findings *findings, const struct profile *profile, struct error *error);

// The nodes whose names findings need; how many there are.
enum { FINDINGS_NODES_MAX = FINDINGS_MAX * (FINDING_STACKS_MAX + 2) + GROWTH_STACKS_MAX };
size_t findings_nodes(const struct findings *findings, uint32_t nodes[FINDINGS_NODES_MAX]);

// Adds up the stacks of one call site, and takes away what names contradict: that one function
// allocates and frees. False without memory.
bool findings_settle(struct findings *findings, const struct profile *profile,
                     const struct frame_names *names, struct error *error);

// The first few, below a heading. False without memory.
bool findings_print(const struct findings *findings, const struct terminal *terminal,
                    const struct profile *profile, const struct frame_names *names,
                    const struct view_options *view, struct error *error);

// A row for each, the largest gain first, with what a fix saves and where to read how. False with
// an error: of a sum, and without memory.
bool findings_answer(struct answer *answer, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     struct error *error);

// A finding as a sentence, and what a fix saves; false without memory.
enum { FINDING_TEXT_BYTES = CLAIM_SENTENCE_BYTES };
bool finding_text(const struct finding *finding, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  char text[FINDING_TEXT_BYTES]);
// Adds the view that shows more: ": --view frees".
void finding_add_view(enum finding_kind kind, char text[FINDING_TEXT_BYTES]);
// The same as a claim.
bool finding_claim(const struct finding *finding, const struct profile *profile,
                   const struct frame_names *names, bool has_all_frames, struct claim *claim);
// `profile` NULL: of strings.
void finding_gain_text(const struct finding *finding, const struct profile *profile, bool is_plain,
                       char text[FINDING_TEXT_BYTES]);

// A kind's name in JSON, the view that says more about it, and the place that says what to do.
const char *finding_name(enum finding_kind kind);
const char *finding_view(enum finding_kind kind);
const char *finding_page(enum finding_kind kind);

// Writes the command that prints that place.
enum { FINDING_HELP_BYTES = 128 };
const char *finding_help(enum finding_kind kind, char text[FINDING_HELP_BYTES]);

// The view that says more about the largest finding; NULL: there is no finding.
const char *findings_view(const struct findings *findings);

// For the files of findings: the order; the first frame of the program's own, else the first that
// is not internal frames (NULL: none); "function file.c:12" of a stack. False without memory.
void findings_sort(struct findings *findings);
bool findings_own_frame(const struct profile *profile, const struct frame_names *names,
                        uint32_t node, bool are_all_shown, const struct frame **frame);
bool finding_label(const struct profile *profile, const struct frame_names *names,
                   const struct stack *stack, bool has_all_frames, char label[FRAME_TEXT_BYTES]);

#endif
