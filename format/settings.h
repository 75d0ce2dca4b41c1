// SPDX-License-Identifier: Apache-2.0
// The environment variables by which the tool, or a user, tells the library what to record. A
// setting is a row here: both sides have its name, default and bounds from it, and a test compares
// docs/reference/environment.md.
#ifndef CAIRN_SETTINGS_H
#define CAIRN_SETTINGS_H

#include <stdint.h>

#include "format/format.h"
#include "format/guard.h"

// row(id, usual, least, most): the variable is CAIRN_<id>. A number outside of its bounds becomes
// the nearest bound. Numbers are bytes, plain or with K, M or G, unless the row says what they are;
// texts have no bounds.
// clang-format off
#define CAIRN_SETTING_ROWS(row) \
    row(OFF, 0, 0, 1)                                    /* 1: nothing is recorded until it is switched on */ \
    row(STACKS, 1, 0, 1)                                 /* 0: totals alone */ \
    row(PYTHON, 0, 0, 1)                                 /* 1: frames of Python code */ \
    row(JAVA, 0, 0, 1)                                   /* 1: frames of Java code */ \
    row(GO, 0, 0, 1)                                     /* 1: frames of Go code */ \
    row(JS, 0, 0, 1)                                     /* 1: frames of JavaScript */ \
    row(PHP, 0, 0, 1)                                    /* 1: frames of PHP code */ \
    row(RUBY, 0, 0, 1)                                   /* 1: frames of Ruby code */ \
    row(ASYNC, 0, 0, 1)                                  /* 1: who awaits coroutines */ \
    row(AGES, 0, 0, 1)                                   /* 1: how old blocks became */ \
    row(MMAP, 0, 0, 1)                                   /* 1: what the program maps itself */ \
    row(EVENTS, 0, 0, 2)                                 /* 1: every event is logged; 2: and waited for */ \
    row(FREE_STACKS, 0, 0, 1)                            /* 1: the stacks that free */ \
    row(GUARD, 0, CAIRN_GUARD_LEAST, CAIRN_GUARD_MOST)   /* of a band; 0: none */ \
    row(SAMPLE, 0, 0, 1)                                 /* 1: a random sample */ \
    row(RATE, 512 << 10, 1, 1ull << 40)                  /* one sample in so many bytes */ \
    row(MAX_SAMPLES, 1 << 14, 1, 1ull << 22)             /* how many; a table for all is made at the start */ \
    row(SEED, 0, 0, UINT64_MAX)                          /* any number */ \
    row(CPU_BUDGET, 0, 0, 1000000)                       /* percent, kept in millionths of the whole */ \
    row(MIN_SIZE, 0, 1, 1ull << 40)                      /* smaller blocks have no stack */ \
    row(MAX_SIZE, 0, 1, 1ull << 40)                      /* larger blocks have no stack */ \
    row(MAX_DEPTH, 0, 1, CAIRN_CUT_AT_MOST)              /* machine frames of a stack; 0: all */ \
    row(MAX_OVERHEAD, 0, 0, UINT64_MAX)                  /* memory for stacks; 0: any */ \
    row(SNAPSHOT_EVERY, 64 << 20, 0, UINT64_MAX)         /* allocated and freed; 0: never */ \
    row(VERIFY, 0, 0, 1)                                 /* 1: each remembered stack is compared */ \
    row(OUTPUT, 0, 0, 0)                                 /* text: where the file is put */ \
    row(SIGNAL, 0, 0, 0)                                 /* text: commands by signal */ \
    row(TOOL, 0, 0, 0)                                   /* text: where cairn is, for cairn_report */ \
    row(SOCKET, 0, 0, 0)                                 /* text, internal: where the tool listens */ \
    row(ENTRIES, 0, 0, 0)                                /* text, internal: an allocator's code */ \
    row(MEMORY_FILE, 0, 0, 0)                            /* number, internal: a descriptor */ \
    row(WRAP, 0, 0, 0)                                   /* text, internal: allocators by name (wrap.h) */ \
    row(FILTERS, 0, 0, 0)                                /* number, internal: seccomp filters around */ \
    row(VALGRIND, 0, 0, 0)                               /* internal: the program runs under it */ \
    row(FAULT, 0, 0, 0)                                  /* text, of tests: what fails */
// clang-format on

enum cairn_setting {
#define CAIRN_SETTING_ID(id, usual, least, most) CAIRN_SETTING_##id,
    CAIRN_SETTING_ROWS(CAIRN_SETTING_ID)
#undef CAIRN_SETTING_ID
        CAIRN_SETTINGS
};

struct cairn_setting_row {
    char name[24];
    uint64_t usual, least, most;
};

__attribute__((unused)) static const struct cairn_setting_row cairn_settings[CAIRN_SETTINGS] = {
#define CAIRN_SETTING_ROW(id, usual, least, most) {"CAIRN_" #id, usual, least, most},
    CAIRN_SETTING_ROWS(CAIRN_SETTING_ROW)
#undef CAIRN_SETTING_ROW
};

// The variable's name; does not compile for a setting that there is not.
#define CAIRN_VARIABLE(id) (CAIRN_SETTING_##id >= 0 ? "CAIRN_" #id : "")

#endif
