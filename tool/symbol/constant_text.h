// SPDX-License-Identifier: Apache-2.0
// The text that a function of a program returns, read from its file without running it: for
// functions that do nothing else, such as __lsan_default_suppressions().
#ifndef TOOL_SYMBOL_CONSTANT_TEXT_H
#define TOOL_SYMBOL_CONSTANT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum constant_text {
    CONSTANT_TEXT_NONE,  // no such function, or the file is not the one that was recorded
    CONSTANT_TEXT_FOUND,
    CONSTANT_TEXT_UNKNOWN,  // the function does more than return a text
};

// `build_id` is the recorded one, NULL: any. A text that was found is for free().
enum constant_text constant_text_find(const char *path, const uint8_t *build_id,
                                      size_t build_id_bytes, const char *function, char **text);

#endif
