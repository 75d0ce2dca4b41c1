// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/ages.h"

#include "runtime/stack/intern.h"

struct ages ages;

static const uint64_t ms_ns = 1000000;

// Milliseconds of CLOCK_MONOTONIC, low 32 bits, as the tool's clock counts them.
static uint32_t now_by_kernel(void) {
    return (uint32_t)(sys_clock_coarse_ns() / ms_ns);
}

static uint32_t now(void) {
    return ages.has_clock ? ages_now_by_tool() : now_by_kernel();
}

void ages_open(const struct cairn_header *header, bool has_tool) {
    ages.start_ms = (uint32_t)(header->start_clock_ns / ms_ns);
    ages.clock_ms = &header->control.clock_ms;
    ages.has_clock = has_tool;
}

// Blocks that were noted by the tool's clock keep their meaning: both count the same milliseconds.
bool ages_check_clock(void) {
    const int32_t most_behind_ms = 2000;
    if ((int32_t)(now_by_kernel() - now()) > most_behind_ms) ages.has_clock = false;
    return ages.has_clock;
}

void ages_begin(struct thread *thread, const void *block) {
    struct birth *birth = live_birth((uintptr_t)block);
    thread->call_count++;
    if (birth) *birth = (struct birth){thread->call_count, now()};
}

void ages_end(struct thread *thread, const void *block, uint32_t id) {
    const struct birth *birth = live_birth((uintptr_t)block);
    if (!birth || id == CAIRN_CELL_OTHER) return;
    bool is_own = cell_owner(id) == thread->slot;
    if (!is_own) id = stack_foreign(&thread->stack, id);
    if (id == CAIRN_CELL_OTHER) return;
    uint32_t calls = is_own ? thread->call_count - birth->call : USE_NO_CALLS;
    block_stats_count_age(id, calls, now() - birth->ms);
}
