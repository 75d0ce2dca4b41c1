// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread/stack_memory.h"

#include <stddef.h>

#include "runtime/process/settings.h"
#include "runtime/sys/colour.h"
#include "runtime/thread/thread.h"

// Frames of a stack for which a thread takes room at a time; all that the format allows at last,
// fewer where address space is short.
enum { DEPTH_FEW = 256, DEPTH_NARROW = 2048, DEPTH_SPACIOUS = CAIRN_DEPTH_MAX };

static uint32_t depth_limit = DEPTH_SPACIOUS;

// Threads that have all of their first memory from the beginning: those of most programs.
enum { SLOTS_ROOMY = 32 };

// The first memory: hashes, then the table's, up to where the trace begins.
enum { PARTS_BYTES = STACK_MEMORY_FRAMES * sizeof(struct stack_hash), LINE_BYTES = 64 };
enum { ARENA_AT = (PARTS_BYTES + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES };

uint32_t stack_memory_limit(void) {
    return depth_limit;
}

// Puts memory of a deeper limit in the place of what there is. Nothing of the last stack is known
// any more.
static void memory_exchange(struct thread *thread, struct stack_hash *parts, uint8_t *memory,
                            uint32_t limit) {
    thread->seen.frame = NULL;
    compiler_barrier();
    thread->stack.parts = parts;
    compiler_barrier();
    walk_trace_place(&thread->trace, memory, limit);
}

// Bytes that a thread with more room than `limit` frames has touched, as far as it was not counted
// before: as much of the new memory, and the rest of the old one.
static uint64_t touched_bytes(uint32_t limit) {
    const uint64_t begun_pages = 4;
    if (limit > STACK_MEMORY_FRAMES) return 2 * walk_trace_bytes(limit);
    return walk_trace_bytes(limit) + begun_pages * sys_page_bytes();
}

// Its memory of before stays mapped: it is an eighth of the new one at most.
static COLD bool memory_deepen(struct walk_trace *trace) {
    struct thread *thread = (struct thread *)((uint8_t *)trace - offsetof(struct thread, trace));
    struct stack_hash *parts = thread->stack.parts;
    if (trace->room < STACK_MEMORY_FRAMES) {
        memory_exchange(thread, parts, (uint8_t *)parts, STACK_MEMORY_FRAMES);
        return true;
    }
    uint32_t limit = trace->room < DEPTH_FEW      ? DEPTH_FEW
                     : trace->room < DEPTH_NARROW ? DEPTH_NARROW
                                                  : DEPTH_SPACIOUS;
    if (limit > depth_limit) limit = depth_limit;
    if (limit <= trace->room) return false;
    size_t parts_at = (walk_trace_bytes(limit) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    uint8_t *memory = sys_reserve(parts_at + limit * sizeof(struct stack_hash));
    if (!memory) return false;
    sys_count_own((int64_t)touched_bytes(trace->room));
    memory_exchange(thread, (struct stack_hash *)(memory + parts_at), memory, limit);
    return true;
}

bool stack_memory_begin(struct thread *thread, uint8_t *memory) {
    struct stack_thread *stack = &thread->stack;
    stack->arena.at = memory + ARENA_AT;
    stack->arena.end = memory + COLOUR_CHECKS;
    uint32_t limit = thread->slot < SLOTS_ROOMY ? STACK_MEMORY_FRAMES : STACK_FIRST_FRAMES;
    memory_exchange(thread, (struct stack_hash *)memory, memory, limit);
    thread->trace.deepen = memory_deepen;
    while (settings_has_code_frames() && thread->trace.room < depth_limit)
        if (!memory_deepen(&thread->trace)) return false;
    return stack_thread_init(stack, (uint16_t)thread->slot, stack->parts);
}

void stack_memory_narrow(struct thread *thread) {
    struct walk_trace *trace = &thread->trace;
    depth_limit = DEPTH_NARROW;
    if (trace->room <= DEPTH_NARROW || trace->count >= DEPTH_NARROW) return;
    struct stack_hash *parts = thread->stack.parts;
    walk_list_shrink(parts, DEPTH_NARROW * sizeof *parts, trace->room * sizeof *parts);
    walk_trace_shrink(trace, DEPTH_NARROW);
}

bool stack_memory_take_more(struct thread *thread) {
    return memory_deepen(&thread->trace);
}

void stack_memory_release(struct thread *thread) {
    struct walk_trace *trace = &thread->trace;
    if (trace->room <= STACK_MEMORY_FRAMES) return;
    walk_list_release(thread->stack.parts, trace->room * sizeof *thread->stack.parts);
    walk_trace_release(trace);
}
