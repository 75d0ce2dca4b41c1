// SPDX-License-Identifier: Apache-2.0
// How this process is to be recorded, as the variables CAIRN_... say; `cairn run` writes them from
// its options, which have the same names.
#ifndef RUNTIME_PROCESS_SETTINGS_H
#define RUNTIME_PROCESS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

struct settings {
    bool is_off;           // CAIRN_OFF=1: not before the control line says so
    bool has_no_stacks;    // CAIRN_STACKS=0
    bool is_verified;      // CAIRN_VERIFY=1
    bool has_python;       // CAIRN_PYTHON=1, and there is a Python that can be read
    bool has_java;         // CAIRN_JAVA=1; a JVM may come later
    bool has_go;           // CAIRN_GO=1; the same
    bool has_js;           // CAIRN_JS=1; the same
    bool has_php;          // CAIRN_PHP=1; the same
    bool has_ruby;         // CAIRN_RUBY=1; the same
    bool has_async;        // CAIRN_ASYNC=1: with the coroutines that await those on the stack
    bool has_ages;         // CAIRN_AGES=1
    bool has_events;       // CAIRN_EVENTS=1 or 2, and there is a tool that takes them
    bool is_waiting;       // CAIRN_EVENTS=2: for the tool, if it is behind
    bool is_logged_late;   // has_events since the tool said so, not from the start
    bool has_free_stacks;  // CAIRN_FREE_STACKS=1, and stacks of every block are recorded
    bool has_mappings;     // CAIRN_MMAP=1
    bool is_sampled;       // CAIRN_SAMPLE=1
    bool has_seed;         // CAIRN_SEED
    uint64_t seed;
    uint64_t rate_bytes;             // CAIRN_RATE
    uint64_t max_samples;            // CAIRN_MAX_SAMPLES
    uint64_t cpu_budget_millionths;  // CAIRN_CPU_BUDGET, there in percent
    uint64_t overhead_bytes;         // CAIRN_MAX_OVERHEAD; UINT64_MAX: any
    uint64_t
        every_bytes;  // CAIRN_SNAPSHOT_EVERY: allocated and freed between two snapshots; 0: none
    uint64_t guard_bytes;           // CAIRN_GUARD: of a guard band; 0: none
    bool has_notes;                 // more is noted of each block: its age, its stack
    uint64_t min_bytes, max_bytes;  // CAIRN_MIN_SIZE, CAIRN_MAX_SIZE; 0: no bound
    uint32_t max_depth;             // CAIRN_MAX_DEPTH: machine frames of a stack; 0: all
};

extern HIDDEN struct settings settings;

void settings_read(void);

// Sizes outside of the bounds get no stack.
ALWAYS_INLINE bool settings_is_outside(uint64_t size_bytes) {
    return size_bytes < settings.min_bytes ||
           (settings.max_bytes && size_bytes > settings.max_bytes);
}

// The recording may hold samples, from its start or once it is too large.
bool settings_may_sample(void);

// Stacks may have frames of Python, Java, Go, JavaScript, PHP or Ruby code, or of awaiting
// coroutines.
static inline bool settings_has_code_frames(void) {
    return settings.has_python || settings.has_java || settings.has_go || settings.has_js ||
           settings.has_php || settings.has_ruby || settings.has_async;
}

// Frees do more than count.
static inline bool settings_has_slow_frees(void) {
    return settings.has_ages || settings.has_free_stacks || settings.has_events;
}

// An event log can be switched on: every block has its stack.
bool settings_may_log(void);

// There is a log from now on, or none.
static inline void settings_set_events(bool has_events) {
    settings.has_events = has_events;
    settings.has_notes = settings.has_ages || settings.guard_bytes || has_events;
}

#endif
