// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/cpu_budget.h"

#include <stdbool.h>

#include "runtime/sys/sys.h"

enum { WINDOW_NS = 100000000, WHOLE = 1000000, EASE_SHARE = 4, RISE_SHARE = 32 };

static struct pace {
    struct pace_limits limits;
    uint64_t own_ns;                    // (atomic) of samples, since the start
    uint64_t usual_ns;                  // (atomic) of a sample
    uint64_t next_look_ns;              // (atomic)
    uint64_t seen_own_ns, seen_cpu_ns;  // at the last look, written by who moves next_look_ns
} pace;

void cpu_budget_start(const struct pace_limits *limits) {
    pace = (struct pace){.limits = *limits,
                         .seen_cpu_ns = sys_clock_cpu_ns(),
                         .next_look_ns = sys_clock_ns() + WINDOW_NS};
}

void cpu_budget_set_rate(uint64_t rate_bytes) {
    pace.limits.rate_bytes = rate_bytes;
}

uint64_t cpu_budget_rate(const struct pace_limits *limits, uint64_t own_ns, uint64_t cpu_ns,
                         uint64_t rate_bytes) {
    uint64_t most_ns = cpu_ns / WHOLE * limits->budget_millionths +
                       cpu_ns % WHOLE * limits->budget_millionths / WHOLE;
    if (own_ns > most_ns) return rate_bytes * 2;
    bool may_ease = own_ns * EASE_SHARE < most_ns && rate_bytes / 2 >= limits->rate_bytes;
    return may_ease ? rate_bytes / 2 : rate_bytes;
}

uint64_t cpu_budget_clock_ns(void) {
    return pace.limits.budget_millionths ? sys_clock_thread_ns() : sys_clock_ns();
}

uint64_t cpu_budget_usual_ns(uint64_t taken_ns) {
    uint64_t usual = __atomic_load_n(&pace.usual_ns, __ATOMIC_RELAXED);
    bool is_less = !usual || taken_ns < usual;
    usual = is_less ? taken_ns : usual + (taken_ns - usual) / RISE_SHARE;
    __atomic_store_n(&pace.usual_ns, usual, __ATOMIC_RELAXED);
    return usual;
}

uint64_t cpu_budget_after(uint64_t taken_ns, uint64_t rate_bytes) {
    if (!pace.limits.budget_millionths) return rate_bytes;
    uint64_t now_ns = sys_clock_ns();
    uint64_t own_ns =
        __atomic_add_fetch(&pace.own_ns, cpu_budget_usual_ns(taken_ns), __ATOMIC_RELAXED);
    uint64_t next = __atomic_load_n(&pace.next_look_ns, __ATOMIC_RELAXED);
    if (now_ns < next) return rate_bytes;
    if (!__atomic_compare_exchange_n(&pace.next_look_ns, &next, now_ns + WINDOW_NS, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return rate_bytes;
    if (sys_is_confined()) return rate_bytes;  // the question might be punished
    uint64_t cpu_ns = sys_clock_cpu_ns();
    uint64_t own_part = own_ns - pace.seen_own_ns, cpu_part = cpu_ns - pace.seen_cpu_ns;
    pace.seen_own_ns = own_ns;
    pace.seen_cpu_ns = cpu_ns;
    return cpu_budget_rate(&pace.limits, own_part, cpu_part, rate_bytes);
}
