// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/lock.h"

#include <sys/syscall.h>
#include <time.h>

#include "runtime/sys/sys.h"

enum { YIELDS = 1000, SLEEPS = 2000, SLEEP_NS = 500000 };

static void wait_a_little(int tries) {
    const struct timespec pause = {0, SLEEP_NS};
    if (sys_is_confined()) return;
    if (tries < YIELDS)
        sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    else
        sys_call(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
}

bool lock_take(struct lock *lock, uintptr_t me) {
    bool is_stuck = __atomic_load_n(&lock->is_stuck, __ATOMIC_RELAXED);
    int limit = is_stuck || sys_is_confined() ? YIELDS : YIELDS + SLEEPS;
    for (int tries = 0; tries < limit; tries++) {
        uintptr_t holder = 0;
        if (__atomic_compare_exchange_n(&lock->holder, &holder, me, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return true;
        if (holder == me) return false;
        wait_a_little(tries);
    }
    __atomic_store_n(&lock->is_stuck, true, __ATOMIC_RELAXED);
    return false;
}

void lock_give_back(struct lock *lock) {
    __atomic_store_n(&lock->is_stuck, false, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->holder, 0, __ATOMIC_RELEASE);
}
