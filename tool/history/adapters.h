// SPDX-License-Identifier: Apache-2.0
// Test runners and frameworks: which tests a command would run, under which names, and how each is
// started. A project is not changed for it: the runner lists its tests, or the framework in the
// test program does.
//
// Of two kinds. A runner that starts a process for each test runs once, and its processes are told
// apart by their arguments (is_spawning). A framework that runs its tests in one process is started
// once for each test.
#ifndef TOOL_HISTORY_ADAPTERS_H
#define TOOL_HISTORY_ADAPTERS_H

#include <stdbool.h>

#include "tool/base/array.h"
#include "tool/base/error.h"

struct adapted_test {
    char *name;
    char **words;     // that start it, ends with NULL
    char *directory;  // where; NULL: here
};

struct adapted {
    ARRAY(struct adapted_test) tests;
};
void adapted_free(struct adapted *adapted);

struct adapter {
    const char *name;
    bool is_spawning;
    bool is_python;
    // The command is of this runner, or the program has this framework in it.
    bool (*is_for)(char **words);
    // False with an error.
    bool (*list)(char **words, struct adapted *adapted, struct error *error);
};

// By name, or "auto": by the command. NULL with an error.
const struct adapter *adapter_find(const char *name, char **words, struct error *error);

// For the parts: adds a test; `words` are copied. False without memory.
bool adapted_add(struct adapted *adapted, const char *name, const char *directory,
                 const char *const words[]);
// Runs a command of a runner that lists; false with an error if it fails with a status above
// `status_most`. For free().
char *adapter_ask(const char *const words[], int status_most, struct error *error);
// `words` and more behind them, ends with NULL; for free(). NULL without memory.
const char **adapter_words(char **words, const char *const more[]);

// Frameworks (adapters_framework.c).
bool gtest_is_in(char **words);
bool gtest_list(char **words, struct adapted *adapted, struct error *error);
bool catch2_is_in(char **words);
bool catch2_list(char **words, struct adapted *adapted, struct error *error);
bool benchmark_is_in(char **words);
bool benchmark_list(char **words, struct adapted *adapted, struct error *error);

#endif
