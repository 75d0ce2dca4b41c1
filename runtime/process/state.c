// SPDX-License-Identifier: Apache-2.0
// Apart from start.c, which needs all rooms, while all rooms ask for this word.
#include "runtime/process/state.h"

static enum process_state word;  // (atomic)

enum process_state process_state(void) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

bool process_move(enum process_state from, enum process_state to) {
    return __atomic_compare_exchange_n(&word, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void process_become(enum process_state state) {
    __atomic_store_n(&word, state, __ATOMIC_RELEASE);
}

void process_forget(void) {
    process_become(PROCESS_NEW);
}
