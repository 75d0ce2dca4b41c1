// SPDX-License-Identifier: Apache-2.0
// Finds the word that a mistyped one is meant to be, for "did you mean": the candidate that the
// fewest changes lead to (a letter more, less or other, two letters in the other order), or that
// begins with the word.
#ifndef TOOL_BASE_NEAR_H
#define TOOL_BASE_NEAR_H

#include <stddef.h>

struct near {
    const char *word;  // not terminated
    size_t length;
    const char *best;  // nearest candidate so far; NULL: none is near enough
    size_t changes;    // from the word to it
};

void near_start(struct near *near, const char *word, size_t length);

// Keeps the candidate if it is nearer than those before it. It has to stay valid.
void near_try(struct near *near, const char *candidate);

// Writes ` (did you mean "BEST"?)`, or nothing if no candidate was near; `size` > 0.
void near_ask(const struct near *near, char *out, size_t size);

// The same of a list of names, with commas or blanks between them.
enum { NEAR_QUESTION_BYTES = 96 };
void near_ask_of(const char *word, const char *names, char question[NEAR_QUESTION_BYTES]);

#endif
