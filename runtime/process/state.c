// SPDX-License-Identifier: Apache-2.0
// Apart from start.c, which needs all rooms, while all rooms ask for this word.
#include "runtime/process/state.h"

#include "runtime/sys/sys.h"

static enum process_state word;  // (atomic)
static APART uintptr_t starter;  // (atomic) pointer of the thread that last began a start

enum process_state process_state(void) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

bool process_move(enum process_state from, enum process_state to) {
    return __atomic_compare_exchange_n(&word, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool process_begin(enum process_state from) {
    if (!process_move(from, PROCESS_STARTING)) return false;
    __atomic_store_n(&starter, (uintptr_t)__builtin_thread_pointer(), __ATOMIC_RELAXED);
    return true;
}

bool process_is_starter(void) {
    return __atomic_load_n(&starter, __ATOMIC_RELAXED) == (uintptr_t)__builtin_thread_pointer();
}

void process_become(enum process_state state) {
    __atomic_store_n(&word, state, __ATOMIC_RELEASE);
}

void process_forget(void) {
    process_become(PROCESS_NEW);
}
