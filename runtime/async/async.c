// SPDX-License-Identifier: Apache-2.0
// Links are looked up by a table without locks: a link is complete before its number is there, and
// who comes second takes the number of the first.
#include "runtime/async/async.h"

#include <stdbool.h>
#include <stddef.h>

#include "format/format.h"

enum {
    LINKS_MOST = 1 << 16,
    SLOTS = 2 * LINKS_MOST,
    PROBES = 64,
    OPEN_MOST = 64,  // coroutines that resume each other within one stack
};

struct link {
    struct async_place place;
    uint32_t outer;  // number of the chain that it makes longer
};

static struct {
    struct link *list;  // (atomic) by number - 1
    uint32_t *slots;    // (atomic) numbers, 0: free
    uint32_t count;     // (atomic)
} links;

struct async_thread {
    struct managed_maker maker;
    struct {
        uintptr_t frame;
        uint32_t chain;
    } open[OPEN_MOST];  // the last one is the innermost
    uint32_t depth;     // those beyond OPEN_MOST have no chain
};

// ---- chains -------------------------------------------------------------------------------------

// Two threads that come first at once reserve it twice; one of them stays.
static void *reserve_once(void **place, size_t bytes) {
    void *there = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (likely(there)) return there;
    void *made = sys_reserve(bytes);
    if (!made) return NULL;
    if (__atomic_compare_exchange_n(place, &there, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    sys_unmap(made, bytes);
    return there;
}

static bool are_ready(void) {
    return reserve_once((void **)&links.list, LINKS_MOST * sizeof *links.list) &&
           reserve_once((void **)&links.slots, SLOTS * sizeof *links.slots);
}

static uint32_t make_link(uint32_t outer, const struct async_place *place) {
    uint32_t number = __atomic_add_fetch(&links.count, 1, __ATOMIC_RELAXED);
    if (number > LINKS_MOST) {
        __atomic_sub_fetch(&links.count, 1, __ATOMIC_RELAXED);
        return 0;
    }
    links.list[number - 1] = (struct link){*place, outer};
    return number;
}

static const struct link *link_of(uint32_t number) {
    return &links.list[number - 1];
}

// The program may say any number: one that no link has yet is none.
static bool is_chain(uint32_t number) {
    return number && number <= LINKS_MOST && links.list && link_of(number)->place.pc;
}

// With `place` it is made if need be.
static uint32_t find(uint32_t outer, uintptr_t pc, const struct async_place *place) {
    const uint64_t factor = 0x9e3779b97f4a7c15u;
    enum { HALF = 32 };
    if (!are_ready() || outer > LINKS_MOST) return 0;
    uint64_t hash = (pc ^ (uint64_t)outer << HALF) * factor;
    uint32_t made = 0;
    hash ^= hash >> HALF;
    for (uint32_t i = 0; i < PROBES; i++) {
        uint32_t *slot = &links.slots[(hash + i) % SLOTS];
        uint32_t number = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (!number && !place) return 0;
        if (!number && !made && !(made = make_link(outer, place))) return 0;
        if (!number && __atomic_compare_exchange_n(slot, &number, made, false, __ATOMIC_ACQ_REL,
                                                   __ATOMIC_ACQUIRE))
            return made;
        if (link_of(number)->place.pc == pc && link_of(number)->outer == outer) return number;
    }
    return 0;
}

uint32_t async_seek(uint32_t outer, uintptr_t pc) {
    return find(outer, pc, NULL);
}

uint32_t async_awaited(uint32_t outer, const struct async_place *place) {
    return find(outer, place->pc, place);
}

// ---- threads ------------------------------------------------------------------------------------

struct async_thread *async_thread_make(uint32_t limit) {
    struct async_thread *thread = sys_reserve(sizeof *thread);
    if (!thread) return NULL;
    return managed_maker_init(&thread->maker, limit) ? thread : NULL;
}

// What is further in on this stack is left over from a coroutine that was thrown out of.
void async_resumed(struct async_thread *thread, uint32_t chain, uintptr_t frame) {
    uint32_t depth = thread->depth;
    while (depth && depth <= OPEN_MOST && thread->open[depth - 1].frame <= frame) depth--;
    if (depth < OPEN_MOST) {
        thread->open[depth].frame = frame;
        thread->open[depth].chain = chain;
    }
    compiler_barrier();
    thread->depth = depth + 1;
}

void async_suspended(struct async_thread *thread) {
    if (thread->depth) thread->depth--;
}

// ---- stacks -------------------------------------------------------------------------------------

// The chain of the coroutine whose native frame lies between two stack pointers; 0: there is none.
static uint32_t chain_within(const struct async_thread *thread, uintptr_t low, uintptr_t high) {
    uint32_t depth = thread->depth < OPEN_MOST ? thread->depth : OPEN_MOST;
    for (uint32_t i = depth; i-- > 0;)
        if (thread->open[i].frame >= low && thread->open[i].frame < high)
            return thread->open[i].chain;
    return 0;
}

// Whether a return address lies in the function of a place.
static bool is_of(uintptr_t pc, const struct async_place *place) {
    return pc > place->start && pc <= place->end;
}

// Whether one of the outer `count` frames is of the function in which the place is.
static bool is_on_stack(struct managed_native native, uint32_t count,
                        const struct async_place *place) {
    for (uint32_t i = 0; i < count; i++)
        if (is_of(native.frames[i].pc, place)) return true;
    return false;
}

// Pushes the chain up to a function that is among the outer `count` frames; what is left from there
// on.
static uint32_t push_chain(struct managed_maker *maker, struct managed_native native,
                           uint32_t count, uint32_t chain) {
    for (uint32_t i = 0; is_chain(chain) && i < maker->limit; i++) {
        const struct link *link = link_of(chain);
        if (is_on_stack(native, count, &link->place)) return chain;
        managed_push(maker, link->place.pc & ~FRAME_PYTHON);
        chain = link->outer;
    }
    return 0;
}

struct managed_stack async_weave(struct async_thread *thread, struct managed_native native) {
    struct managed_maker *maker = &thread->maker;
    uint32_t left = 0;  // of a chain whose next function is still to come on the native stack
    maker->count = 0;
    for (uint32_t i = native.count; i-- > 0;) {
        const struct frame *frame = &native.frames[i];
        // A damaged stack may hold any word.
        managed_push(maker, frame->pc & ~FRAME_PYTHON);
        if (frame->pc < CAIRN_CUT_LIMIT) continue;
        bool has_outer = i && native.frames[i - 1].pc >= CAIRN_CUT_LIMIT;
        uintptr_t end = has_outer ? native.frames[i - 1].stack : UINTPTR_MAX;
        uint32_t chain = chain_within(thread, frame->stack, end);
        bool is_next = left && is_of(frame->pc, &link_of(left)->place);
        if (!chain && is_next) chain = link_of(left)->outer;
        if (chain || is_next) left = push_chain(maker, native, i, chain);
    }
    return managed_finish(maker, false);
}
