// SPDX-License-Identifier: Apache-2.0
// The variables that a program is started with, as vectors of NAME=VALUE, and what is changed in
// copies of them. No allocation, no lock: for children of vfork and signal handlers.
#ifndef RUNTIME_PRELOAD_VARIABLES_H
#define RUNTIME_PRELOAD_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "format/settings.h"

// Vectors and values of LD_PRELOAD that are longer are left as they are.
enum { VARIABLES_MAX = 4096, PRELOAD_BYTES = 4096 };
enum { PRELOAD_IS_BYTES = sizeof "LD_PRELOAD=" - 1 };
enum { DIGITS = 20, FILTERS_BYTES = sizeof cairn_settings->name + 1 + DIGITS };

// Returns the value of LD_PRELOAD among variables; NULL: there is none.
char *variables_preload(char *const variables[]);

// Returns their number, VARIABLES_MAX + 1 at most.
size_t variables_count(char *const variables[]);

// Writes the variable LD_PRELOAD without us. Returns false if we are not in it, or it is too long;
// "" if nothing else is.
bool variables_strip(const char *variable, char *out);

// Tells whether a value of LD_PRELOAD has a sanitizer's runtime, which ends a program where another
// library is loaded before it.
bool variables_want_first(const char *list);

// Writes the variable of so many filters. Returns the length of its name.
size_t variables_write_filters(char text[FILTERS_BYTES], long filters);

// Writes what LD_PRELOAD was set to, a whole variable, behind this library.
void variables_write_preload(char text[PRELOAD_BYTES], const char *replaced);

#endif
