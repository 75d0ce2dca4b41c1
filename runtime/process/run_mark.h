// SPDX-License-Identifier: Apache-2.0
// A program that was started by a recorded one, with LD_PRELOAD and without our variables. The path
// of the library tells it from one that a person preloaded the library to (format/run_mark.h): it
// gets the variables from the tool. Once the tool is gone it is not recorded, since a file in its
// working directory is one that nobody asked for.
#ifndef RUNTIME_PROCESS_RUN_MARK_H
#define RUNTIME_PROCESS_RUN_MARK_H

#include <stdbool.h>

// Takes the missing variables from the tool. Returns false if the process must not be recorded.
bool run_mark_complete(void);

#endif
