// SPDX-License-Identifier: Apache-2.0
// A thread that goes by the mode of a moment ago does what was right then: every mode knows the
// blocks of those before it.
#include "runtime/record/modes.h"

#include "runtime/process/settings.h"
#include "runtime/record/event_log.h"
#include "runtime/stack/cells.h"
#include "runtime/thread/gate.h"

uint16_t event_mode_wanted;

// NOTED asks for the time by ages.c, which knows the kernel's clock too.
void event_age_slowly(void) {
    uint16_t aged = EVENT_AGED;
    __atomic_compare_exchange_n(&probes_event.mode, &aged, EVENT_NOTED, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    if (event_mode_wanted == EVENT_AGED) event_mode_wanted = EVENT_NOTED;
}

COLD enum event_mode event_mode_by_settings(void) {
    if (settings.is_sampled) return EVENT_SAMPLED;
    if (settings_has_code_frames()) return EVENT_PYTHON;
    bool has_slow_frees = settings_has_slow_frees();
    if (settings.has_no_stacks) return has_slow_frees ? EVENT_BOUNDED : EVENT_TOTALS;
    if (settings.min_bytes || settings.max_bytes) return EVENT_BOUNDED;
    if (settings.is_verified) return EVENT_VERIFIED;
    bool is_plain = !settings.has_free_stacks && !settings.guard_bytes;
    bool is_late = settings.is_logged_late;
    if (settings.has_events && is_plain && !is_late) return EVENT_LOGGED;
    if (settings.has_ages && is_plain && !is_late) return EVENT_AGED;
    if (is_late && is_plain && !settings.has_ages) return EVENT_LOGGED_LATE;
    return settings.has_notes || has_slow_frees ? EVENT_NOTED : EVENT_FULL;
}

// Frees that do more than count leave the fast path.
void event_mode_renew(void) {
    uint16_t from = event_mode_wanted;
    cells.fast_limit = settings_has_slow_frees() ? 0 : cells.id_limit;
    event_mode_wanted = (uint16_t)event_mode_by_settings();
    __atomic_compare_exchange_n(&probes_event.mode, &from, event_mode_wanted, false,
                                __ATOMIC_RELEASE, __ATOMIC_RELAXED);
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

COLD void event_disturbed(void) {
    if (!gate_is_recording()) {
        event_pause();
    } else if (event_log_look()) {
        event_mode_renew();
        event_log_switched();
    }
}

void event_begin_child(void) {
    if (event_is_off()) probes_event.mode = event_mode_wanted;
}

bool event_mode_samples(void) {
    return (event_is_off() ? event_mode_wanted : probes_event.mode) >= EVENT_SAMPLED;
}
