// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java.h"

#include <string.h>

#include "format/format.h"
#include "runtime/java/blob.h"
#include "runtime/java/method.h"
#include "runtime/java/vm.h"
#include "runtime/python/read.h"

struct java java;

struct java_thread {
    struct blob_reader code;
    struct python_memory memory;         // for the thread's own stack and object
    struct frame *frames, *last_frames;  // outermost first
    uintptr_t *inside_out;               // innermost first, in the making
    uint32_t limit, count, last_count;
    uint64_t list, object;  // the list of threads in which this one's object was looked for
    uint64_t stack_end;
};

void java_look(void) {
    if (java.version) return;
    uint32_t major;
    enum vm_state state = vm_find(&major);
    if (state == VM_ABSENT) return;
    java.can_be_read = state == VM_READ;
    compiler_barrier();
    java.version = major ? major : CAIRN_JAVA_UNKNOWN;
}

struct java_thread *java_thread_make(uint32_t limit) {
    struct java_thread *thread = sys_reserve(sizeof *thread);
    if (!thread) return NULL;
    thread->limit = limit;
    thread->frames = sys_reserve(limit * sizeof *thread->frames);
    thread->last_frames = sys_reserve(limit * sizeof *thread->frames);
    thread->inside_out = sys_reserve(limit * sizeof *thread->inside_out);
    return thread->frames && thread->last_frames && thread->inside_out ? thread : NULL;
}

// ---- whose anchor -------------------------------------------------------------------------------

enum { THREADS_MOST = 1 << 16 };

static bool is_of_thread(uint64_t object, int tid) {
    uint64_t os;
    int32_t there;
    return python_read_carefully(object + vm.thread_os, &os, sizeof os) &&
           python_read_carefully(os + vm.os_tid, &there, sizeof there) && there == tid;
}

// The thread's object in a list; 0: it is not there. The list may go meanwhile.
static COLD uint64_t find_object(uint64_t list, int tid) {
    uint32_t count;
    uint64_t threads, object;
    if (!python_read_carefully(list + vm.list_length, &count, sizeof count) ||
        !python_read_carefully(list + vm.list_threads, &threads, sizeof threads))
        return 0;
    for (uint32_t i = count < THREADS_MOST ? count : THREADS_MOST; i-- > 0;) {
        if (!python_read_carefully(threads + i * sizeof object, &object, sizeof object)) return 0;
        if (is_of_thread(object, tid)) return object;
    }
    return 0;
}

// As long as the list is the same, the object is there: an ending thread leaves it first.
static bool find_thread(struct java_thread *thread, int tid) {
    uint64_t list;
    if (!python_read_word(&thread->memory, vm.thread_list, &list)) return false;
    if (unlikely(list != thread->list)) {
        thread->object = find_object(list, tid);
        thread->list = list;
        if (thread->object && !python_read_carefully(thread->object + vm.thread_stack_base,
                                                     &thread->stack_end, sizeof(uint64_t)))
            thread->object = 0;
    }
    return thread->object != 0;
}

// ---- frames -------------------------------------------------------------------------------------

// Where a Java frame is: its stack pointer, as its own code has it, the frame pointer, and where it
// goes on.
struct place {
    uint64_t stack, frame, pc;
};

static bool read_anchor(struct java_thread *thread, uint64_t anchor, struct place *place) {
    return python_read_word(&thread->memory, anchor + vm.anchor_sp, &place->stack) &&
           python_read_word(&thread->memory, anchor + vm.anchor_fp, &place->frame) &&
           python_read_word(&thread->memory, anchor + vm.anchor_pc, &place->pc);
}

static void push(struct java_thread *thread, uintptr_t pc) {
    if (thread->count < thread->limit) thread->inside_out[thread->count++] = pc;
}

// The native frames inside of `stack`; 0: all, with the mark of how the walk ended.
static void push_native(struct java_thread *thread, struct java_native native, uint64_t stack) {
    for (uint32_t i = native.count; i-- > 0;) {
        const struct frame *frame = &native.frames[i];
        bool is_mark = frame->pc < CAIRN_CUT_LIMIT;
        if (stack && (is_mark || frame->stack >= stack)) break;
        push(thread, frame->pc & ~FRAME_PYTHON);
    }
}

// Words of an interpreted frame, from its frame pointer.
enum { SLOT_CALLER = 0, SLOT_RETURN = 1, SLOT_CALLER_STACK = -1, SLOT_METHOD = -3, SLOT_BCP = -8 };
// And of the stub that calls Java: its JavaCallWrapper.
enum { SLOT_WRAPPER = -6 };

static bool read_slot(struct java_thread *thread, uint64_t frame, int slot, uint64_t *word) {
    return python_read_word(&thread->memory, frame + (uint64_t)(int64_t)slot * sizeof *word, word);
}

static bool step_interpreted(struct java_thread *thread, struct place *place) {
    uint64_t method, instruction, frame = place->frame;
    if (!read_slot(thread, frame, SLOT_METHOD, &method) ||
        !read_slot(thread, frame, SLOT_BCP, &instruction) ||
        !read_slot(thread, frame, SLOT_CALLER_STACK, &place->stack) ||
        !read_slot(thread, frame, SLOT_RETURN, &place->pc) ||
        !read_slot(thread, frame, SLOT_CALLER, &place->frame))
        return false;
    uint32_t bci = instruction ? method_bci(method, instruction) : METHOD_NO_BCI;
    push(thread, method_find(&thread->code.methods, method, bci, frame));
    return place->stack > frame;
}

static bool step_compiled(struct java_thread *thread, struct place *place) {
    const struct blob_seen *blob = blob_find(&thread->code, place->pc, place->stack);
    if (!blob) return false;
    bool is_deopt =
        blob->is_compiled && (place->pc == blob->deopt || place->pc == blob->deopt_handle);
    if (is_deopt) {
        uint64_t pc;
        if (!python_read_word(&thread->memory, place->stack + blob->orig_pc, &pc)) return false;
        place->pc = pc;
        blob = blob_find(&thread->code, pc, place->stack);
        if (!blob || pc == blob->deopt) return false;
    }
    for (uint32_t i = 0; i < blob->inlined_count; i++) push(thread, blob->inlined[i]);
    if (blob->is_cut || blob->frame_bytes < 2 * sizeof(uint64_t)) return false;
    place->stack += blob->frame_bytes;
    uint64_t words[2];  // frame pointer, return address
    if (!python_read(&thread->memory, place->stack - sizeof words, words, sizeof words))
        return false;
    place->frame = words[0];
    place->pc = words[1];
    return true;
}

struct bounds {
    uint64_t interpreter, interpreter_end, call_return;
};

static bool read_bounds(struct java_thread *thread, struct bounds *bounds) {
    uint64_t queue;
    uint32_t limit;
    if (!python_read_word(&thread->memory, vm.interpreter, &queue) ||
        !python_read_word(&thread->memory, vm.call_stub_return, &bounds->call_return) ||
        !python_read_word(&thread->memory, queue + vm.queue_buffer, &bounds->interpreter) ||
        !python_read_part(&thread->memory, queue + vm.queue_limit, UINT32_MAX, &limit))
        return false;
    bounds->interpreter_end = bounds->interpreter + limit;
    return true;
}

// The Java frames from an anchor to the stub by which native code called them; false: they do not
// lead there.
static bool push_java(struct java_thread *thread, const struct bounds *bounds,
                      struct place *place) {
    if (!place->pc &&
        !python_read_word(&thread->memory, place->stack - sizeof place->pc, &place->pc))
        return false;
    while (thread->count < thread->limit) {
        uint64_t stack = place->stack;
        if (place->pc == bounds->call_return) return true;
        bool is_interpreted =
            place->pc >= bounds->interpreter && place->pc < bounds->interpreter_end;
        bool is_stepped =
            is_interpreted ? step_interpreted(thread, place) : step_compiled(thread, place);
        if (!is_stepped || place->stack <= stack || place->stack >= thread->stack_end) return false;
    }
    return false;
}

// Native and Java code in turns, from the anchor outwards. False: the way ended in Java.
static bool push_turns(struct java_thread *thread, struct place place,
                       const struct java_walker *walker) {
    struct bounds bounds;
    if (!read_bounds(thread, &bounds)) return false;
    while (place.stack) {
        uint64_t wrapper, pc, inside = place.stack;
        if (!push_java(thread, &bounds, &place)) return false;
        uint64_t frame = place.frame;
        if (frame < inside || frame >= thread->stack_end ||
            !read_slot(thread, frame, SLOT_WRAPPER, &wrapper) ||
            !read_slot(thread, frame, SLOT_RETURN, &pc) ||
            !read_anchor(thread, wrapper + vm.wrapper_anchor, &place))
            return false;
        if (place.stack && place.stack <= frame) return false;
        struct java_native native =
            walker->walk(walker->context, pc, frame + 2 * sizeof(uintptr_t), (uintptr_t *)frame);
        push_native(thread, native, place.stack);
    }
    return true;
}

// The frames outermost first; how many outer ones are those of the stack before.
static uint32_t turn(struct java_thread *thread) {
    uint32_t keep = 0;
    for (uint32_t i = 0; i < thread->count; i++) {
        uintptr_t pc = thread->inside_out[thread->count - 1 - i];
        thread->frames[i].pc = pc;
        if (keep == i && i < thread->last_count && thread->last_frames[i].pc == pc) keep++;
    }
    return keep;
}

// The stack becomes the last one. Torn out of here by a handler that jumps, there is none.
static struct java_stack finish(struct java_thread *thread) {
    uint32_t keep = turn(thread);
    struct frame *frames = thread->frames;
    thread->last_count = 0;
    compiler_barrier();
    thread->frames = thread->last_frames;
    thread->last_frames = frames;
    compiler_barrier();
    thread->last_count = thread->count;
    return (struct java_stack){frames, thread->count, keep, thread->code.methods.is_nameless};
}

struct java_stack java_weave(struct java_thread *thread, struct java_native native, int tid,
                             const struct java_walker *walker) {
    struct place place = {0};
    thread->code.methods.is_nameless = false;
    thread->count = 0;
    bool has_anchor = java.can_be_read && find_thread(thread, tid) &&
                      read_anchor(thread, thread->object + vm.thread_anchor, &place) &&
                      place.stack < thread->stack_end;
    if (!has_anchor) place.stack = 0;
    push_native(thread, native, place.stack);
    if (!push_turns(thread, place, walker) && has_anchor && place.stack)
        push(thread, CAIRN_CUT_NO_CFI);
    if (thread->count == thread->limit && thread->count)
        thread->inside_out[thread->count - 1] = CAIRN_CUT_DEPTH;
    return finish(thread);
}
