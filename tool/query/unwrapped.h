// SPDX-License-Identifier: Apache-2.0
// Functions of `cairn run --wrap` whose calls are not seen, in a recording or in all processes of a
// run: one is enough that has them.
#ifndef TOOL_QUERY_UNWRAPPED_H
#define TOOL_QUERY_UNWRAPPED_H

#include "format/wrap.h"
#include "tool/base/array.h"
#include "tool/model/reader.h"
#include "tool/render/terminal.h"

struct unwrapped_function {
    char heap[CAIRN_LABEL_TEXT], name[CAIRN_LABEL_TEXT];
    char renamed[CAIRN_LABEL_TEXT];  // the program's, that the compiler made of it; "": none
    bool is_there, is_led;
};

struct unwrapped {
    ARRAY(struct unwrapped_function) functions;
};

// Takes what a recording says of them. False without memory.
bool unwrapped_add(struct unwrapped *unwrapped, struct recording *recording);
// A line for each that no recording has seen, `indent` columns in.
void unwrapped_print(const struct terminal *terminal, const struct unwrapped *unwrapped,
                     size_t indent);
void unwrapped_free(struct unwrapped *unwrapped);

// The same of one recording. False without memory.
bool unwrapped_print_of(const struct terminal *terminal, struct recording *recording,
                        size_t indent);

#endif
