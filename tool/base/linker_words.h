// SPDX-License-Identifier: Apache-2.0
// Command lines that give a dynamic linker the program as a word ("ld.so --library-path lib ./p"),
// as bundles of programs with their own libraries do.
#ifndef TOOL_BASE_LINKER_WORDS_H
#define TOOL_BASE_LINKER_WORDS_H

#include <stdbool.h>

// Tells a dynamic linker by the name of its file, with or without a directory.
bool linker_is_called(const char *path);

// Counts the words that an option takes, with itself; 0: the word is no option, but the program.
unsigned linker_option_words(const char *word);

// Finds the program among words that each end in NUL, up to `end`; `end` if there is none.
const char *linker_words_program(const char *words, const char *end);

#endif
