// SPDX-License-Identifier: Apache-2.0
// How the hooks record: the mode of the process, and how it changes.
#ifndef RUNTIME_RECORD_MODES_H
#define RUNTIME_RECORD_MODES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sink/sink.h"
#include "runtime/sys/probes.h"

// How this process records; set before its first thread does. After that it changes only from OFF
// to another, to PAUSED and back as recording is switched off and on, as a log begins or ends
// (event_mode_renew), and to MIXED once memory gets short.
enum event_mode {
    EVENT_FULL = 0,     // frees do nothing but count
    EVENT_TOTALS,       // without call stacks: one cell a thread
    EVENT_VERIFIED,     // as FULL, and every cell is found a second time (verify.h)
    EVENT_PYTHON,       // as FULL, with the frames of Python code
    EVENT_BOUNDED,      // as FULL or PYTHON, but blocks of some sizes get no call stack
    EVENT_NOTED,        // as FULL, and more is noted of each block or free: its age, its stack
    EVENT_OFF,          // not yet: until the control line says otherwise
    EVENT_PAUSED,       // as OFF, after a time of another mode, whose blocks are known
    EVENT_AGED,         // as FULL, and each block knows when it was allocated
    EVENT_LOGGED,       // as FULL, and each event is written into the log (event_log.h)
    EVENT_LOGGED_LATE,  // the same of a log that began late
    EVENT_SAMPLED,      // see sampling.h
    EVENT_MIXED,        // as SAMPLED, after a time of another mode: its blocks are in the live map
};
extern HIDDEN uint16_t event_mode_wanted;  // while recording is switched on

// The mode is probes_event.mode. Hooks look at probes_event.word, which is the mode as long as no
// tracer listens to events, and above every mode otherwise: then each event goes the way of those
// that are not usual, and ends at its probe. True: blocks are sampled, and nobody listens.
ALWAYS_INLINE bool event_is_sampling(void) {
    return likely(probes_event.word == EVENT_SAMPLED) || probes_event.word == EVENT_MIXED;
}

// The tool's clock does not go: AGED is not possible.
void event_age_slowly(void);
// The mode by the settings, which have changed (event_log.c): from the next event on.
enum event_mode event_mode_by_settings(void);
void event_mode_renew(void);

// OFF and PAUSED: nothing is recorded until the tool clears CAIRN_CONTROL_OFF; event_turn_on looks.
// A child that was not made by fork() looks at its parent's word until it has a recording of its
// own.
bool event_turn_on(void);
// Recording was found switched off: PAUSED from here on, if it is not meanwhile.
void event_pause(void);
// Recording is switched off, or the tool wants a log to begin or to end.
void event_disturbed(void);
// In a child just made by fork(), which is to get a recording of its own as it first allocates.
void event_begin_child(void);
// Blocks are sampled while recording is switched on.
bool event_mode_samples(void);
ALWAYS_INLINE bool event_is_turned_on(void) {
    return sink.header && !cairn_is_off(&sink.header->control);
}
ALWAYS_INLINE bool event_is_off(void) {
    return (uint16_t)(probes_event.mode - EVENT_OFF) <= EVENT_PAUSED - EVENT_OFF;
}

// Every block is recorded.
ALWAYS_INLINE bool event_is_exact(void) {
    return probes_event.mode < EVENT_OFF ||
           (uint16_t)(probes_event.mode - EVENT_AGED) <= EVENT_LOGGED_LATE - EVENT_AGED;
}

#endif
