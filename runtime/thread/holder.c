// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread/holder.h"

#include <signal.h>
#include <sys/syscall.h>

#include "runtime/sys/sys.h"

// The stack that signal handlers of this thread may run on.
static stack_t signal_stack(void) {
    stack_t stack = {0};
    sys_call(SYS_sigaltstack, 0, (long)&stack, 0, 0, 0, 0);
    return stack;
}

// One stack without a gap: all pages between two addresses are there.
static bool is_all_readable(const struct walk_range *known, uintptr_t from, uintptr_t to) {
    const uintptr_t most_bytes = 64u << 20;
    if (to - from > most_bytes) return false;
    if (sys_is_confined()) return from >= known->low && to <= known->high;
    for (; from < to; from += sys_page_bytes())
        if (!sys_is_readable((const void *)from)) return false;
    return true;
}

// Searches outwards from a frame, past an address or not.
static struct walk_search search_from(const struct holder_look *look, const uintptr_t *frame,
                                      uintptr_t address) {
    struct walk_start start = walk_start_of(frame);
    struct walk_search search = {.address = address};
    bool is_present = (uintptr_t)frame == look->here;
    if (is_present) search.code_start = look->code_start, search.code_end = look->code_end;
    // It may be gone by now; where nothing can be asked, there is nothing better.
    struct walk_range known = {0};
    if (sys_is_confined()) known = look->known;
    walk_search(&search, &start, known);
    return search;
}

// Decides by the place alone: on a stack without a gap, a frame further in than the present one is
// gone. Handlers on a stack of their own are over once that is not in use.
static bool is_gone_by_place(const struct holder_look *look) {
    bool is_further_in = look->here >= look->frame;
    if (is_further_in && is_all_readable(&look->known, look->frame, look->here)) return true;
    if (sys_is_confined()) return false;
    stack_t other = signal_stack();
    return !(other.ss_flags & SS_ONSTACK) && look->frame - (uintptr_t)other.ss_sp < other.ss_size;
}

// No hook is among the callers.
static bool is_gone(const struct holder_look *look, const struct walk_search *from_here) {
    const uintptr_t *held = (const uintptr_t *)look->frame;
    const struct walk_range *known = &look->known;
    // In a frame further out, or in what has been called since.
    uintptr_t end = look->here + 2 * sizeof *held;
    if (from_here->is_inside || (look->frame >= look->live && look->frame < end)) return true;
    bool is_known = look->frame >= known->low && (uintptr_t)(held + 2) <= known->high;
    if (!is_known && !sys_is_readable(held + 1)) return !sys_is_confined();
    if (held[1] != look->return_address) return true;
    struct walk_search from_held = search_from(look, held, look->live);
    if (from_held.is_inside) return true;
    if (from_here->is_complete && from_held.is_complete && from_held.end == from_here->end)
        return true;
    if (from_here->is_complete && from_held.is_complete) return false;
    return is_gone_by_place(look);
}

enum holder_nesting holder_look(const struct holder_look *look) {
    struct walk_search from_here = search_from(look, (const uintptr_t *)look->here, look->frame);
    if (!from_here.has_met_code && is_gone(look, &from_here)) return HOLDER_GONE;
    return from_here.has_met_signal || !from_here.has_met_code ? HOLDER_HANDLER : HOLDER_CALL;
}
