// SPDX-License-Identifier: Apache-2.0
// The chain of the last event is kept, and the stack that was made of it: what is the same further
// out is neither looked up nor put together again.
#include "runtime/python/python.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "format/format.h"
#include "runtime/python/chain.h"
#include "runtime/python/code.h"
#include "runtime/sys/linker.h"

struct python python;

// A native frame of the last stack.
struct native_seen {
    uintptr_t pc, stack;
    uint32_t woven;       // frames up to it, and links that lie in it
    uint32_t link_count;  // links up to those
};

struct python_thread {
    struct chain chain;
    struct native_seen *natives;  // outermost first
    uint32_t native_count;
    struct frame *frames;  // both, outermost first
    uint32_t limit;
    uint32_t is_reading;         // (atomic) without the lock
    struct python_thread *next;  // of all threads
    struct code_reader reader;
};

static struct python_thread *all_threads;  // (atomic)
static uint32_t is_over;                   // (atomic) an interpreter has begun to end

// "3.10.13 (main, ..." as Py_Version has it: what Pythons before 3.11 say of themselves.
static uint32_t version_of_text(const char *text) {
    uint32_t parts[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        while (*text >= '0' && *text <= '9') parts[i] = parts[i] * 10 + (uint32_t)(*text++ - '0');
        if (*text++ != '.') break;
    }
    return parts[0] << 24 | parts[1] << 16 | (parts[2] & 0xff) << 8;
}

static uint32_t version_find(void) {
    const unsigned long *version = linker_search("Py_Version");
    if (version) return (uint32_t)*version;
    const char *(*say)(void) = NULL;
    void *function = linker_search("Py_GetVersion");
    memcpy(&say, &function, sizeof say);
    return say ? version_of_text(say()) : 0;
}

void python_find(void) {
    python.version = version_find();
    if (!python.version) return;
    code_types = (struct python_objects){.code = (uintptr_t)linker_search("PyCode_Type"),
                                         .frame = (uintptr_t)linker_search("PyFrame_Type"),
                                         .text = (uintptr_t)linker_search("PyUnicode_Type"),
                                         .bytes = (uintptr_t)linker_search("PyBytes_Type"),
                                         .runtime = (uintptr_t)linker_search("_PyRuntime")};
    python.can_be_read = layout_find(python.version, &code_types, &code_layout) && chain_find();
}

struct python_thread *python_thread_make(uint32_t limit) {
    struct python_thread *thread = sys_reserve(sizeof *thread);
    if (!thread) return NULL;
    thread->limit = limit;
    thread->natives = sys_reserve(limit * sizeof *thread->natives);
    thread->frames = sys_reserve(limit * sizeof *thread->frames);
    thread->reader.memory.copies = sys_reserve(sizeof *thread->reader.memory.copies);
    if (!thread->natives || !thread->frames || !chain_init(&thread->chain, limit)) return NULL;
    thread->next = __atomic_load_n(&all_threads, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&all_threads, &thread->next, thread, false,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    return thread;
}

// ---- without the lock ---------------------------------------------------------------------------

bool python_is_ending(void) {
    return !__atomic_load_n(&is_over, __ATOMIC_RELAXED) && chain_is_ending();
}

// A reader says that it reads before it asks whether the interpreter ends: either it sees that, or
// it is seen here. One that a handler has torn out of reading is not waited for beyond the limit.
COLD void python_await_readers(void) {
    enum { TRIES = 100 };
    const struct timespec pause = {.tv_nsec = 1000000};
    int tries = TRIES;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    struct python_thread *thread = __atomic_load_n(&all_threads, __ATOMIC_ACQUIRE);
    for (; thread; thread = thread->next)
        while (__atomic_load_n(&thread->is_reading, __ATOMIC_ACQUIRE) && tries-- > 0)
            sys_call(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
}

static bool can_read_unlocked(struct python_thread *thread) {
    __atomic_exchange_n(&thread->is_reading, 1, __ATOMIC_SEQ_CST);
    return !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE) && !chain_is_ending();
}

// ---- both chains --------------------------------------------------------------------------------

static bool is_loop(const struct frame *native) {
    return native->pc >= chain_loop && native->pc < chain_loop_end;
}

// Where each call of the interpreter's loop runs one frame, they are paired from the outermost on;
// if the native stack was cut there, from the innermost. A call whose code lies elsewhere (a rare
// part, set apart by the compiler) is not known as one: then the innermost frames have no place.
// Returns how many outer links are where they were.
static uint32_t place_links(struct python_thread *thread, struct managed_native native,
                            uint32_t link_count) {
    struct link *links = thread->chain.links;
    bool is_cut = native.count && native.frames[0].pc < CAIRN_CUT_LIMIT &&
                  native.frames[0].pc != CAIRN_CUT_GUESSED;
    uint32_t loop_count = 0, next = 0, same = link_count;
    for (uint32_t i = 0; is_cut && i < native.count; i++)
        if (is_loop(&native.frames[i])) loop_count++;
    uint32_t outside = is_cut && loop_count < link_count ? link_count - loop_count : 0;
    uint32_t skipped = is_cut && loop_count > link_count ? loop_count - link_count : 0;
    for (uint32_t i = 0; next < link_count; next++) {
        uintptr_t place = next < outside ? UINTPTR_MAX - 1 : 0;
        while (next >= outside && i < native.count) {
            const struct frame *frame = &native.frames[i++];
            if (!is_loop(frame) || (skipped && skipped--)) continue;
            place = frame->stack;
            break;
        }
        if (links[next].place != place && same > next) same = next;
        links[next].place = place;
    }
    return same;
}

static bool is_same_native(const struct native_seen *seen, const struct frame *frame) {
    return seen->pc == frame->pc && seen->stack == frame->stack;
}

// A stack in the making: `woven` frames of `next_native` native ones and `next_link` links.
struct weaving {
    struct python_thread *thread;
    struct managed_native native;
    uint32_t link_count, next_native, next_link, woven, left_out;
};

// Beyond the limit frames are counted alone.
static void push(struct weaving *weaving, uintptr_t pc) {
    if (unlikely(weaving->left_out)) {
        weaving->left_out--;
        return;
    }
    if (likely(weaving->woven < weaving->thread->limit))
        weaving->thread->frames[weaving->woven].pc = pc;
    weaving->woven++;
}

static void push_link(struct weaving *weaving) {
    struct link *link = &weaving->thread->chain.links[weaving->next_link++];
    if (link->pc) push(weaving, link->pc);
    link->woven = weaving->woven;
}

// A link lies in the native frame that runs it, further in than those of frames outside of that.
// One without code is nowhere.
static bool lies_in(const struct link *link, uintptr_t stack) {
    return stack && (link->place >= stack || !link->code);
}

// Returns true if a native frame of the last stack, and the links up to it, are the same in this
// one.
static bool is_kept(const struct weaving *weaving, const struct native_seen *seen,
                    uint32_t same_links) {
    const struct link *next = &weaving->thread->chain.links[seen->link_count];
    return seen->link_count <= same_links &&
           (seen->link_count == weaving->link_count || !lies_in(next, seen->stack));
}

// Returns how many of the links that are the same lie in the next native frame, of which another
// instruction may be meant. Places descend: if the innermost of them lies there, all do.
static uint32_t keep_links(const struct weaving *weaving, uint32_t kept, uint32_t same_links) {
    const struct python_thread *thread = weaving->thread;
    const struct link *links = thread->chain.links;
    if (kept >= weaving->native.count || kept >= thread->native_count) return 0;
    uint32_t first = thread->natives[kept - 1].link_count, end = thread->natives[kept].link_count;
    if (end > same_links) end = same_links;
    uint32_t last = end;
    while (last > first && !links[last - 1].code) last--;
    return last > first && lies_in(&links[last - 1], weaving->native.frames[kept].stack)
               ? end - first
               : 0;
}

// Goes on behind the outer frames of the last stack that are the same in this one.
static void resume(struct weaving *weaving, uint32_t same_links) {
    struct python_thread *thread = weaving->thread;
    const struct native_seen *seen = thread->natives;
    uint32_t kept = 0;
    while (kept < weaving->native.count && kept < thread->native_count &&
           is_same_native(&seen[kept], &weaving->native.frames[kept]))
        kept++;
    while (kept && !is_kept(weaving, &seen[kept - 1], same_links)) kept--;
    if (!kept) return;
    uint32_t links = keep_links(weaving, kept, same_links);
    weaving->next_native = kept;
    weaving->next_link = seen[kept - 1].link_count + links;
    weaving->woven =
        links ? thread->chain.links[weaving->next_link - 1].woven : seen[kept - 1].woven;
}

// A link that lies further out than the stack was to go.
static void drop_link(struct weaving *weaving) {
    weaving->thread->chain.links[weaving->next_link++].woven = weaving->woven;
}

static void push_links_inside(struct weaving *weaving, const struct frame *native) {
    const struct link *links = weaving->thread->chain.links;
    while (weaving->next_link < weaving->link_count &&
           lies_in(&links[weaving->next_link], native->stack))
        (native->pc == CAIRN_CUT_MAX_DEPTH ? drop_link : push_link)(weaving);
}

// Each native frame behind the links that lie in it: it is at work for the innermost of them, and
// its instruction changes from event to event, which those further out do not. A mark of how the
// walk ended stays in front. Links without a place are innermost.
static void push_rest(struct weaving *weaving) {
    struct python_thread *thread = weaving->thread;
    while (weaving->next_native < weaving->native.count) {
        const struct frame *frame = &weaving->native.frames[weaving->next_native];
        const bool is_mark = !weaving->next_native && frame->pc < CAIRN_CUT_LIMIT;
        // A damaged stack may hold any word.
        if (unlikely(is_mark)) push(weaving, frame->pc & ~FRAME_PYTHON);
        push_links_inside(weaving, frame);
        if (likely(!is_mark)) push(weaving, frame->pc & ~FRAME_PYTHON);
        thread->natives[weaving->next_native++] =
            (struct native_seen){frame->pc, frame->stack, weaving->woven, weaving->next_link};
    }
    while (weaving->next_link < weaving->link_count) push_link(weaving);
}

// Torn out of here by a handler that jumps, there is no last stack. One that is as deep as the
// limit is marked as cut.
static struct managed_stack weave(struct python_thread *thread, struct managed_native native,
                                  uint32_t link_count, uint32_t same_links) {
    struct weaving weaving = {.thread = thread, .native = native, .link_count = link_count};
    resume(&weaving, same_links);
    uint32_t keep = weaving.woven;
    thread->native_count = 0;
    compiler_barrier();
    push_rest(&weaving);
    if (unlikely(weaving.woven >= thread->limit)) {
        uint32_t beyond = weaving.woven - thread->limit;
        keep = 0;
        weaving = (struct weaving){.thread = thread, .native = native, .link_count = link_count};
        weaving.left_out = beyond + 1;
        weaving.woven = 1;
        push_rest(&weaving);
        thread->frames[0].pc = CAIRN_CUT_DEPTH;
        return (struct managed_stack){thread->frames, thread->limit, keep, false};
    }
    compiler_barrier();
    thread->native_count = native.count;
    return (struct managed_stack){thread->frames, weaving.woven, keep, false};
}

// Gives each link that was not kept its address.
static void name_links(struct python_thread *thread, uint32_t count) {
    struct link *links = thread->chain.links;
    for (uint32_t i = thread->chain.kept; i < count; i++)
        links[i].pc =
            links[i].code ? code_find(&thread->reader, links[i].code, links[i].instruction) : 0;
}

struct managed_stack python_weave(struct python_thread *thread, struct managed_native native,
                                  bool is_careful) {
    struct memory_reader *memory = &thread->reader.memory;
    struct chain *chain = &thread->chain;
    bool has_lock;
    if (unlikely(python_is_ending())) python_await_readers();
    uintptr_t state = chain_state(chain, &has_lock);
    memory->is_careful = is_careful || (!has_lock && !can_read_unlocked(thread));
    memory_forget_copies(memory);
    memory->is_trusting = true;  // the interpreter's own chain
    thread->reader.is_nameless = false;
    uint32_t count = chain_read(chain, memory, state);
    name_links(thread, count);
    __atomic_store_n(&thread->is_reading, 0, __ATOMIC_RELEASE);
    chain->count = count;
    uint32_t same_links = chain->kept;
    if (chain_loop) {
        uint32_t same_places = place_links(thread, native, count);
        if (same_links > same_places) same_links = same_places;
    }
    struct managed_stack stack = weave(thread, native, count, same_links);
    stack.is_nameless = thread->reader.is_nameless;
    return stack;
}

void python_leave(struct python_thread *thread) {
    chain_leave(&thread->chain);
}
