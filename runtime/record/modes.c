// SPDX-License-Identifier: Apache-2.0
// How the mode of the hooks changes (enum event_mode in event.h). A thread that goes by the mode
// of a moment ago does what was right then: every mode knows the blocks of those before it.
#include "runtime/process/settings.h"
#include "runtime/record/event.h"

uint16_t event_mode_wanted;

// NOTED asks for the time by ages.c, which knows the kernel's clock too.
void event_age_slowly(void) {
    uint16_t aged = EVENT_AGED;
    __atomic_compare_exchange_n(&probes_event.mode, &aged, EVENT_NOTED, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    if (event_mode_wanted == EVENT_AGED) event_mode_wanted = EVENT_NOTED;
}

void event_log_never(void) {
    const uint16_t mode = settings.has_notes ? EVENT_NOTED : EVENT_FULL;
    uint16_t logged = EVENT_LOGGED;
    __atomic_compare_exchange_n(&probes_event.mode, &logged, mode, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    if (event_mode_wanted == EVENT_LOGGED) event_mode_wanted = mode;
}

bool event_turn_on(void) {
    if (!event_is_turned_on()) return false;
    probes_event.mode = event_mode_wanted;
    return true;
}

COLD void event_pause(void) {
    uint16_t from = event_mode_wanted;
    __atomic_compare_exchange_n(&probes_event.mode, &from, EVENT_PAUSED, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

void event_begin_child(void) {
    if (event_is_off()) probes_event.mode = event_mode_wanted;
}

bool event_mode_samples(void) {
    return (event_is_off() ? event_mode_wanted : probes_event.mode) >= EVENT_SAMPLED;
}
