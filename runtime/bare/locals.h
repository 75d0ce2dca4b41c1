// SPDX-License-Identifier: Apache-2.0
// Thread-locals of the library in a static program that runs already (locals.c).
#ifndef RUNTIME_BARE_LOCALS_H
#define RUNTIME_BARE_LOCALS_H

#include <stdbool.h>

// Before anything else. False: the library has more of them than was thought.
bool bare_locals_open(void);

// Takes memory for them. False without it.
bool bare_locals_prepare(void);

// From now on each thread has its own. `has_filter`: of system calls.
void bare_locals_start(bool has_filter);

// All have those of nobody.
void bare_locals_stop(void);

#endif
