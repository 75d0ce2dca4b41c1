// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/chain.h"

#include <string.h>

#include "runtime/python/code.h"
#include "runtime/sys/linker.h"

uintptr_t chain_loop, chain_loop_end;

// Of the interpreter; they take no lock and change nothing.
static struct {
    void *(*own_state)(void);      // PyGILState_GetThisThreadState
    void *(*current_state)(void);  // PyThreadState_GetUnchecked: until 3.11 of the thread that has
                                   // the lock, since then of this thread while it has it
} calls;

bool chain_find(void) {
    void *own = linker_search("PyGILState_GetThisThreadState");
    void *current = linker_search("_PyThreadState_UncheckedGet");
    if (!current) current = linker_search("PyThreadState_GetUnchecked");  // its name from 3.13 on
    memcpy(&calls.own_state, &own, sizeof own);
    memcpy(&calls.current_state, &current, sizeof current);
    if (code_layout.chain == PYTHON_CHAIN_OBJECTS &&
        !linker_find_function("_PyEval_EvalFrameDefault", &chain_loop, &chain_loop_end))
        return false;
    return own && current;
}

// ---- whose state --------------------------------------------------------------------------------

// The state that has the lock is this thread's too, though of a sub-interpreter.
static bool is_of_same_thread(uintptr_t state, uintptr_t own) {
    uint64_t thread, own_thread;
    return code_layout.state_thread && own &&
           memory_read_carefully(state + code_layout.state_thread, &thread, sizeof thread) &&
           memory_read_carefully(own + code_layout.state_thread, &own_thread, sizeof own_thread) &&
           thread == own_thread;
}

// The thread's state; 0: it has none.
static uintptr_t state_find(struct memory_reader *memory) {
    uintptr_t current = (uintptr_t)calls.current_state();
    if (current && !code_layout.state_thread) return current;
    uintptr_t own = (uintptr_t)calls.own_state();
    if (current && (current == own || is_of_same_thread(current, own))) return current;
    memory->is_careful = true;
    return own;
}

// ---- frames -------------------------------------------------------------------------------------

enum { CFRAME_FRAME = 8 };  // 3.11: _PyCFrame.current_frame, then .previous; 3.12: at its start

struct chain {
    struct memory_reader *memory;
    struct link *links;
    uint32_t count, limit;
};

// A frame's code: a reference to it may have a mark in its low bits.
static uintptr_t unmarked(uintptr_t reference) {
    const uintptr_t mask = 3;
    return reference & ~mask;
}

// Reads the frame as the next link; its `.previous`.
static bool read_link(struct chain *chain, uintptr_t frame, uintptr_t *previous) {
    const struct python_layout *layout = &code_layout;
    struct link *link = &chain->links[chain->count];
    uint64_t code, instruction, outer;
    bool is_read = memory_read_word(chain->memory, frame + layout->frame_code, &code) &&
                   memory_read_word(chain->memory, frame + layout->frame_previous, &outer) &&
                   memory_read_word(chain->memory, frame + layout->frame_instruction, &instruction);
    if (!is_read) return false;
    *previous = outer;
    *link = (struct link){.frame = frame, .code = unmarked(code), .instruction = instruction};
    return true;
}

static void read_objects(struct chain *chain, uintptr_t frame) {
    while (frame && chain->count < chain->limit) {
        struct link *link = &chain->links[chain->count];
        if (!read_link(chain, frame, &frame)) break;
        // A number of 4 bytes; -1: not begun.
        link->instruction =
            link->code + (uintptr_t)(intptr_t)(int32_t)link->instruction * code_layout.unit_bytes;
        chain->count++;
    }
}

// The frames that one call of the interpreter's loop runs.
static void read_call(struct chain *chain, uintptr_t place, uintptr_t frame) {
    uint32_t is_entry = 0;
    while (frame && !is_entry && chain->count < chain->limit) {
        uintptr_t at = frame;
        if (!read_link(chain, at, &frame)) break;
        chain->links[chain->count++].place = place;
        const uint32_t byte = 0xff;
        if (!memory_read_part(chain->memory, at + code_layout.frame_kind, byte, &is_entry)) break;
    }
}

static void read_calls(struct chain *chain, uintptr_t cframe) {
    for (uint32_t seen = 0; cframe && seen < chain->limit; seen++) {
        uintptr_t words[2];  // current_frame, previous
        if (!memory_read(chain->memory, cframe + CFRAME_FRAME, words, sizeof words)) break;
        read_call(chain, cframe, words[0]);
        cframe = words[1];
    }
}

// An entry comes after the frames that its call of the loop runs.
static void read_entries(struct chain *chain, uintptr_t frame) {
    const uint32_t byte = 0xff, first_entry = 3;  // FRAME_OWNED_BY_CSTACK or .._INTERPRETER
    uint32_t unplaced = 0, kind;
    for (uint32_t seen = 0; frame && seen < 2 * chain->limit; seen++) {
        uintptr_t at = frame;
        if (chain->count == chain->limit) break;
        if (!memory_read_part(chain->memory, at + code_layout.frame_kind, byte, &kind)) break;
        if (!read_link(chain, at, &frame)) break;
        if (kind < first_entry) {
            chain->count++;
            continue;
        }
        while (unplaced < chain->count) chain->links[unplaced++].place = at;
    }
    while (unplaced < chain->count) chain->links[unplaced++].place = UINTPTR_MAX - 1;
}

uint32_t chain_read(struct memory_reader *memory, struct link *links, uint32_t limit) {
    struct chain chain = {memory, links, 0, limit};
    uintptr_t state = state_find(memory);
    uint64_t first;
    if (!state || !memory_read_word(memory, state + code_layout.state_frame, &first)) return 0;
    switch (code_layout.chain) {
    case PYTHON_CHAIN_OBJECTS:
        read_objects(&chain, first);
        break;
    case PYTHON_CHAIN_CALLS:
        read_calls(&chain, first);
        break;
    case PYTHON_CHAIN_ENTRIES_BY_CALL:
        if (!memory_read_word(memory, first, &first)) return 0;
        read_entries(&chain, first);
        break;
    case PYTHON_CHAIN_ENTRIES:
        read_entries(&chain, first);
        break;
    }
    return chain.count;
}
