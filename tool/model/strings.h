// SPDX-License-Identifier: Apache-2.0
// Texts numbered from 0, each once. Number 0 is the empty text.
#ifndef TOOL_MODEL_STRINGS_H
#define TOOL_MODEL_STRINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "tool/base/array.h"
#include "tool/model/index_table.h"

struct strings {
    ARRAY(char *) list;
    struct index_table table;
    bool has_failed;  // there was no memory: numbers mean nothing
};

void strings_start(struct strings *strings);
void strings_free(struct strings *strings);

// Number of a text in its safe form (tool/base/text.h), which is valid UTF-8; NULL is the empty
// text.
uint32_t strings_number(struct strings *strings, const char *text);

#endif
