// SPDX-License-Identifier: Apache-2.0
// Frames further in change from event to event, those further out mostly not. A chain is read from
// the innermost frame until one is met that was read before and is unchanged; from there on three
// words of each frame are compared with what they were, at addresses that are known, so that no
// frame waits for the one inside of it.
//
// A frame can be what it was although one further out is not: left, called again from another line,
// and now at the same address and instruction. So all would have to be compared, 20,000 at each
// event of a deep recursion. But the frames in between had to be left and entered again, one by
// one, and no processor does that to a frame in two nanoseconds: some thirty words are read or
// written, and a call of an empty function takes some tens. So those are compared that the time
// since the last event was enough for.
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
    int (*is_ending)(void);        // _Py_IsFinalizing; NULL: not known
} calls;

enum { FRAME_WORDS_MOST = 32 };

static size_t frame_bytes;  // of a frame, up to the end of the last field that is read

static void find_frame_bytes(const struct python_layout *layout) {
    const uint16_t fields[] = {layout->frame_code, layout->frame_previous,
                               layout->frame_instruction, layout->frame_kind};
    size_t last = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i] > last) last = fields[i];
    frame_bytes = (last / sizeof(uint64_t) + 1) * sizeof(uint64_t);
}

bool chain_find(void) {
    void *own = linker_search("PyGILState_GetThisThreadState");
    void *current = linker_search("_PyThreadState_UncheckedGet");
    void *ending = linker_search("_Py_IsFinalizing");
    if (!current) current = linker_search("PyThreadState_GetUnchecked");  // its name from 3.13 on
    if (!ending) ending = linker_search("Py_IsFinalizing");               // the same
    memcpy(&calls.own_state, &own, sizeof own);
    memcpy(&calls.current_state, &current, sizeof current);
    memcpy(&calls.is_ending, &ending, sizeof ending);
    if (code_layout.chain == PYTHON_CHAIN_OBJECTS &&
        !linker_find_function("_PyEval_EvalFrameDefault", &chain_loop, &chain_loop_end))
        return false;
    find_frame_bytes(&code_layout);
    return own && current && frame_bytes <= FRAME_WORDS_MOST * sizeof(uint64_t);
}

bool chain_init(struct chain *chain, uint32_t limit) {
    chain->limit = limit;
    chain->links = sys_reserve(limit * sizeof *chain->links);
    chain->fresh = sys_reserve(limit * sizeof *chain->fresh);
    chain->places = sys_reserve(CHAIN_PLACES * sizeof *chain->places);
    chain->words = sys_reserve(limit * sizeof *chain->words);
    return chain->links && chain->fresh && chain->places && chain->words;
}

bool chain_is_ending(void) {
    return !calls.is_ending || calls.is_ending();
}

// ---- whose state --------------------------------------------------------------------------------

// The state that has the lock is this thread's too, though of a sub-interpreter.
static COLD bool is_of_same_thread(uintptr_t state, uintptr_t own) {
    uint64_t thread, own_thread;
    return code_layout.state_thread && own &&
           memory_read_carefully(state + code_layout.state_thread, &thread, sizeof thread) &&
           memory_read_carefully(own + code_layout.state_thread, &own_thread, sizeof own_thread) &&
           thread == own_thread;
}

// Remembers a state of another thread, which stays one until this thread has the lock again: a
// state is made with it.
uintptr_t chain_state(struct chain *chain, bool *has_lock) {
    uintptr_t current = (uintptr_t)calls.current_state();
    *has_lock = true;
    if (current && !code_layout.state_thread) return current;
    uintptr_t own = (uintptr_t)calls.own_state();
    bool is_others = current && current == chain->other && own == chain->own;
    if (current && !is_others && (current == own || is_of_same_thread(current, own))) {
        chain->other = 0;
        return current;
    }
    if (current) chain->other = current, chain->own = own;
    *has_lock = false;
    return own;
}

// ---- frames -------------------------------------------------------------------------------------

enum { CFRAME_FRAME = 8 };  // 3.11: _PyCFrame.current_frame, then .previous; 3.12: at its start

#define NO_PAGE UINTPTR_MAX

// Says how reading goes on: at a frame; if that is 0, at the call of the loop outside of this one.
struct cursor {
    struct memory_reader *memory;
    uintptr_t frame, call, outer;
    uintptr_t page;  // number of one that is readable, or NO_PAGE
    uint64_t copy[FRAME_WORDS_MOST];
};

// A frame's code: a reference to it may have a mark in its low bits.
static uintptr_t unmarked(uintptr_t reference) {
    const uintptr_t mask = 3;
    return reference & ~mask;
}

// The words that a frame has from an offset on, up to the end of another one; NULL: it cannot be
// read. Frames lie side by side, mostly on the page of the one before.
ALWAYS_INLINE const uint8_t *words_of(struct cursor *cursor, uintptr_t frame) {
    const size_t bytes = frame_bytes;
    uintptr_t first = frame >> MEMORY_PAGE_SHIFT, last = (frame + bytes - 1) >> MEMORY_PAGE_SHIFT;
    if (likely(first == cursor->page && last == first && frame % sizeof frame == 0))
        return (const uint8_t *)frame;
    if (!memory_read(cursor->memory, frame, cursor->copy, bytes)) return NULL;
    cursor->page = cursor->memory->is_careful ? NO_PAGE : first;
    return (const uint8_t *)cursor->copy;
}

ALWAYS_INLINE uint64_t word_at(const uint8_t *words, size_t offset) {
    uint64_t word;
    memcpy(&word, words + offset, sizeof word);
    return word;
}

ALWAYS_INLINE uintptr_t code_of(const uint8_t *words) {
    return unmarked(word_at(words, code_layout.frame_code));
}

// An object has a number of 4 bytes; -1: not begun.
ALWAYS_INLINE uintptr_t instruction_of(const uint8_t *words, uintptr_t code) {
    uintptr_t word = word_at(words, code_layout.frame_instruction);
    if (code_layout.chain != PYTHON_CHAIN_OBJECTS) return word;
    return code + (uintptr_t)(intptr_t)(int32_t)word * code_layout.unit_bytes;
}

// A frame, as the next link.
ALWAYS_INLINE bool read_frame(struct cursor *cursor, struct link *link) {
    const struct python_layout *layout = &code_layout;
    const uint8_t *words = words_of(cursor, cursor->frame);
    if (!words) return false;
    uintptr_t code = code_of(words);
    *link = (struct link){.frame = cursor->frame,
                          .code = code,
                          .instruction = instruction_of(words, code),
                          .previous = word_at(words, layout->frame_previous),
                          .place = cursor->call};
    cursor->frame = link->previous;
    const uint8_t first_entry = 3;  // FRAME_OWNED_BY_CSTACK or .._INTERPRETER
    uint8_t kind = words[layout->frame_kind];
    if (layout->chain == PYTHON_CHAIN_CALLS) {
        if (kind) cursor->frame = 0;  // the frame that the call began with
    } else if (layout->chain != PYTHON_CHAIN_OBJECTS && kind >= first_entry) {
        link->code = 0;
    }
    return true;
}

// The next call of the loop, as a link.
static bool read_call(struct cursor *cursor, struct link *link) {
    uintptr_t words[2], call = cursor->outer;  // current_frame, previous
    if (!call || !memory_read(cursor->memory, call + CFRAME_FRAME, words, sizeof words))
        return false;
    *link =
        (struct link){.frame = call, .instruction = words[0], .previous = words[1], .place = call};
    cursor->frame = words[0];
    cursor->call = call;
    cursor->outer = words[1];
    return true;
}

ALWAYS_INLINE bool read_next(struct cursor *cursor, struct link *link) {
    if (likely(cursor->frame)) {
        if (likely(read_frame(cursor, link))) return true;
        cursor->frame = 0;
    }
    return code_layout.chain == PYTHON_CHAIN_CALLS && read_call(cursor, link);
}

// Places of other versions are found out later.
static inline bool is_same(const struct link *link, const struct link *other) {
    return link->frame == other->frame && link->code == other->code &&
           link->instruction == other->instruction && link->previous == other->previous &&
           (code_layout.chain != PYTHON_CHAIN_CALLS || link->place == other->place);
}

static uint32_t *place_of(const struct chain *chain, uintptr_t frame) {
    const unsigned low_bits = 3, high_bits = 18;
    return &chain->places[(frame >> low_bits ^ frame >> high_bits) % CHAIN_PLACES];
}

// ---- what is kept -------------------------------------------------------------------------------

// True if a link that was not read again is what it was. The one inside of it is, which leads here.
// An instruction says of which code it is, but for frames that are objects.
ALWAYS_INLINE bool is_unchanged(const struct chain *chain, struct cursor *cursor, uint32_t at) {
    const struct link_words *known = &chain->words[at];
    if (unlikely(known->is_call)) {
        uintptr_t words[2];
        return memory_read(cursor->memory, known->frame + CFRAME_FRAME, words, sizeof words) &&
               words[0] == known->instruction && words[1] == known->previous;
    }
    const uint8_t *words = words_of(cursor, known->frame);
    if (!words) return false;
    bool is_object = code_layout.chain == PYTHON_CHAIN_OBJECTS;
    uintptr_t code = is_object ? code_of(words) : 0;
    return word_at(words, code_layout.frame_previous) == known->previous &&
           instruction_of(words, code) == known->instruction &&
           (!is_object || code == chain->links[at].code);
}

enum { DEEP = 512, LEAST_NS_A_FRAME = 2, FRAMES_MORE = 64 };

// Returns how many frames can have been entered since the chain was read.
static uint32_t entered_most(const struct chain *chain) {
    if (!chain->read_ns) return UINT32_MAX;
    uint64_t passed_ns = sys_clock_fine_ns() - chain->read_ns;
    uint64_t most = passed_ns / LEAST_NS_A_FRAME + FRAMES_MORE;
    return passed_ns < UINT32_MAX - FRAMES_MORE ? (uint32_t)most : UINT32_MAX;
}

// Returns the number of the innermost link outside of number `at` that is not what it was, or
// NONE_CHANGED.
#define NONE_CHANGED UINT32_MAX
static uint32_t find_changed(const struct chain *chain, struct cursor *cursor, uint32_t at) {
    uint32_t most = at > DEEP ? entered_most(chain) : at;
    uint32_t end = at > most ? at - most : 0;
    for (uint32_t i = at; i-- > end;)
        if (!is_unchanged(chain, cursor, i)) return i;
    return NONE_CHANGED;
}

// Reads links that are not known into chain->fresh; how many. `can_meet`: until the rest of the
// chain is what it was.
static uint32_t read_fresh(struct chain *chain, struct cursor *cursor, bool can_meet) {
    uint32_t count = 0, known = can_meet ? chain->count : 0;
    chain->kept = 0;
    for (; count < chain->limit; count++) {
        struct link *link = &chain->fresh[count];
        if (!read_next(cursor, link)) break;
        uint32_t at = *place_of(chain, link->frame);
        if (at >= known || !is_same(&chain->links[at], link)) continue;
        known = find_changed(chain, cursor, at);
        if (known == NONE_CHANGED) {
            chain->kept = at + 1;
            return count;
        }
    }
    while (chain->kept < count && chain->kept < chain->count &&
           is_same(&chain->links[chain->kept], &chain->fresh[count - 1 - chain->kept]))
        chain->kept++;
    return count - chain->kept;
}

static bool is_call(const struct link *link) {
    return code_layout.chain == PYTHON_CHAIN_CALLS && link->frame == link->place;
}

// The fresh links follow those that are kept. From 3.12 on frames lie in the call of the loop that
// the next link without code outside of them stands for.
static void append(struct chain *chain, uint32_t count) {
    bool has_entries = code_layout.chain >= PYTHON_CHAIN_ENTRIES;
    uintptr_t place = UINTPTR_MAX - 1;
    if (chain->kept) place = chain->links[chain->kept - 1].place;
    chain->count = chain->kept;
    compiler_barrier();
    for (uint32_t i = count; i-- > 0;) {
        uint32_t at = chain->kept + (count - 1 - i);
        struct link *link = &chain->links[at];
        *link = chain->fresh[i];
        if (has_entries && !link->code) place = link->frame;
        if (has_entries) link->place = place;
        *place_of(chain, link->frame) = at;
        chain->words[at] =
            (struct link_words){link->frame, link->instruction, link->previous, is_call(link)};
    }
}

uint32_t chain_read(struct chain *chain, struct memory_reader *memory, uintptr_t state) {
    uint64_t first = 0;
    chain->kept = 0;
    bool is_read = state && memory_read_word(memory, state + code_layout.state_frame, &first);
    if (is_read && code_layout.chain == PYTHON_CHAIN_ENTRIES_BY_CALL)
        is_read = memory_read_word(memory, first, &first);
    bool is_call = code_layout.chain == PYTHON_CHAIN_CALLS;
    if (!is_read) first = 0;
    struct cursor cursor = {.memory = memory,
                            .frame = is_call ? 0 : first,
                            .outer = is_call ? first : 0,
                            .page = NO_PAGE};
    struct cursor again = cursor;
    uint32_t count = read_fresh(chain, &cursor, !memory->is_careful);
    if (chain->kept + count > chain->limit) count = read_fresh(chain, &again, false);
    append(chain, count);
    return chain->kept + count;
}

void chain_leave(struct chain *chain) {
    chain->read_ns = unlikely(chain->count > DEEP) ? sys_clock_fine_ns() : 0;
}
