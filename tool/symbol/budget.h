// SPDX-License-Identifier: Apache-2.0
// How much debug information may be open at once, over all threads.
#ifndef TOOL_SYMBOL_BUDGET_H
#define TOOL_SYMBOL_BUDGET_H

#include <stdint.h>

// Waits until there is room. What is larger than everything is let in when it is alone.
void budget_take(uint64_t bytes);
void budget_give(uint64_t bytes);

#endif
