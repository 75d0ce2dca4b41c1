// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java.h"

#include <string.h>

#include "format/format.h"
#include "format/languages.h"
#include "runtime/java/blob.h"
#include "runtime/java/method.h"
#include "runtime/java/vm.h"
#include "runtime/managed/memory.h"
#include "runtime/sys/linker.h"

struct java java;

// Where code is that is neither a method's nor a stub's in the code cache. It never moves.
struct bounds {
    uint64_t interpreter, interpreter_end, call_return;  // all 0: not read yet
};

struct java_thread {
    struct blob_reader code;
    struct managed_maker maker;
    uint64_t list;           // of threads, in which this one's object was looked for
    uint64_t place, object;  // the list's entry, and the object; 0: it is not there
    uint64_t stack_end;
    struct bounds bounds;
};

typedef void *(*own_data_of)(unsigned key);
static own_data_of own_data;
enum { KEYS = 128 };         // that every libc has
static uint32_t object_key;  // (atomic) and 1; 0: not known

void java_use_own_data(own_data_of function) {
    own_data = function;
    object_key = 0;
}

void java_look(void) {
    if (java.version) return;
    uint32_t major;
    enum vm_state state = vm_find(&major);
    if (state == VM_ABSENT) return;
    java_use_own_data((own_data_of)(uintptr_t)linker_search("pthread_getspecific"));
    java.can_be_read = state == VM_READ;
    compiler_barrier();
    java.version = major ? major : CAIRN_JAVA_UNKNOWN;
}

struct java_thread *java_thread_make(uint32_t limit) {
    struct java_thread *thread = sys_reserve(sizeof *thread);
    if (!thread) return NULL;
    return managed_maker_init(&thread->maker, limit) ? thread : NULL;
}

// ---- whose anchor -------------------------------------------------------------------------------

enum { THREADS_MOST = 1 << 16 };

static bool is_of_thread(uint64_t object, int tid) {
    uint64_t os;
    int32_t there;
    return memory_read_carefully(object + vm.thread_os, &os, sizeof os) &&
           memory_read_carefully(os + vm.os_tid, &there, sizeof there) && there == tid;
}

// Where a list has the thread's object, which is told too; 0: it has not. The list may go
// meanwhile. As a rule it is the one that the thread had before, near the same place: `known`, by
// which no others are asked.
static COLD uint64_t find_object(uint64_t list, int tid, uint64_t known, uint64_t *object) {
    enum { PIECE = 64 };
    uint32_t count;
    uint64_t threads, objects[PIECE];
    if (!memory_read_carefully(list + vm.list_length, &count, sizeof count) ||
        !memory_read_carefully(list + vm.list_threads, &threads, sizeof threads))
        return 0;
    for (uint32_t left = count < THREADS_MOST ? count : THREADS_MOST; left;) {
        uint32_t piece = left < PIECE ? left : PIECE;
        left -= piece;
        uint64_t at = threads + left * sizeof *objects;
        if (!memory_read_carefully(at, objects, piece * sizeof *objects)) return 0;
        for (uint32_t i = piece; i-- > 0;) {
            if ((known && objects[i] != known) || !is_of_thread(objects[i], tid)) continue;
            *object = objects[i];
            return at + i * sizeof *objects;
        }
    }
    return 0;
}

static COLD void look_for_thread(struct java_thread *thread, uint64_t list, int tid) {
    uint64_t known = thread->object;
    thread->list = list;
    thread->place = known ? find_object(list, tid, known, &thread->object) : 0;
    if (!thread->place) thread->place = find_object(list, tid, 0, &thread->object);
    bool is_found = thread->place && memory_read_carefully(thread->object + vm.thread_stack_base,
                                                           &thread->stack_end, sizeof(uint64_t));
    if (!is_found) thread->object = 0;
}

// Under which key each thread has its object among its own data, once a thread was found with it.
static COLD void look_for_key(uint64_t object) {
    enum { TRIES_MOST = 64 };
    static uint32_t tries;
    if (!own_data || __atomic_load_n(&object_key, __ATOMIC_RELAXED) ||
        __atomic_fetch_add(&tries, 1, __ATOMIC_RELAXED) >= TRIES_MOST)
        return;
    for (unsigned key = 0; key < KEYS; key++)
        if ((uintptr_t)own_data(key) == object)
            __atomic_store_n(&object_key, key + 1, __ATOMIC_RELAXED);
}

// A thread itself takes its object out of its own data, before that goes: no other thread ends it.
bool java_has_own_object(const struct java_thread *thread) {
    uint32_t key = __atomic_load_n(&object_key, __ATOMIC_RELAXED);
    return key && thread->object && (uintptr_t)own_data(key - 1) == thread->object;
}

// As long as the list has the object, it is there: an ending thread leaves it first. A list at the
// same address may be a later one.
static bool find_thread(struct java_thread *thread, int tid) {
    uint64_t list, there;
    if (likely(java_has_own_object(thread))) return true;
    if (!memory_read_word(&thread->code.methods.memory, vm.thread_list, &list)) return false;
    if (list == thread->list && !thread->object) return false;
    bool is_known = list == thread->list &&
                    memory_read_carefully(thread->place, &there, sizeof there) &&
                    there == thread->object;
    if (unlikely(!is_known)) look_for_thread(thread, list, tid);
    if (thread->object) look_for_key(thread->object);
    return thread->object != 0;
}

// ---- frames -------------------------------------------------------------------------------------

// Where a Java frame is: its stack pointer, as its own code has it, the frame pointer, and where it
// goes on.
struct place {
    uint64_t stack, frame, pc;
};

static bool read_anchor(struct java_thread *thread, uint64_t anchor, struct place *place) {
    return memory_read_word(&thread->code.methods.memory, anchor + vm.anchor_sp, &place->stack) &&
           memory_read_word(&thread->code.methods.memory, anchor + vm.anchor_fp, &place->frame) &&
           memory_read_word(&thread->code.methods.memory, anchor + vm.anchor_pc, &place->pc);
}

// Words of an interpreted frame, from its frame pointer.
enum { SLOT_CALLER = 0, SLOT_RETURN = 1, SLOT_CALLER_STACK = -1, SLOT_METHOD = -3, SLOT_BCP = -8 };
// And of the stub that calls Java: its JavaCallWrapper.
enum { SLOT_WRAPPER = -6 };

static bool read_slot(struct java_thread *thread, uint64_t frame, int slot, uint64_t *word) {
    return memory_read_word(&thread->code.methods.memory,
                            frame + (uint64_t)(int64_t)slot * sizeof *word, word);
}

static bool step_interpreted(struct java_thread *thread, struct place *place) {
    uint64_t method, instruction, frame = place->frame;
    if (frame < place->stack || frame >= thread->stack_end) return false;
    if (!read_slot(thread, frame, SLOT_METHOD, &method) ||
        !read_slot(thread, frame, SLOT_BCP, &instruction) ||
        !read_slot(thread, frame, SLOT_CALLER_STACK, &place->stack) ||
        !read_slot(thread, frame, SLOT_RETURN, &place->pc) ||
        !read_slot(thread, frame, SLOT_CALLER, &place->frame))
        return false;
    managed_push(&thread->maker, method_find_at(&thread->code.methods, method, instruction));
    return place->stack > frame;
}

static bool step_compiled(struct java_thread *thread, struct place *place) {
    const struct blob_seen *blob = blob_find(&thread->code, place->pc);
    if (!blob) return false;
    bool is_deopt =
        blob->is_compiled && (place->pc == blob->deopt || place->pc == blob->deopt_handle);
    if (is_deopt) {
        uint64_t pc;
        if (!memory_read_word(&thread->code.methods.memory, place->stack + blob->orig_pc, &pc))
            return false;
        place->pc = pc;
        blob = blob_find(&thread->code, pc);
        if (!blob || pc == blob->deopt) return false;
    }
    for (uint32_t i = 0; i < blob->inlined_count; i++)
        managed_push(&thread->maker, blob->inlined[i]);
    if (blob->is_cut || blob->frame_bytes < 2 * sizeof(uint64_t)) return false;
    place->stack += blob->frame_bytes;
    if (place->stack >= thread->stack_end) return false;
    uint64_t words[2];  // frame pointer, return address
    if (!memory_read(&thread->code.methods.memory, place->stack - sizeof words, words,
                     sizeof words))
        return false;
    place->frame = words[0];
    place->pc = words[1];
    return true;
}

static COLD void read_bounds(struct bounds *bounds) {
    uint64_t queue, start, call_return;
    uint32_t size;
    if (!memory_read_carefully(vm.interpreter, &queue, sizeof queue) ||
        !memory_read_carefully(vm.call_stub_return, &call_return, sizeof call_return) ||
        !memory_read_carefully(queue + vm.queue_buffer, &start, sizeof start) ||
        !memory_read_carefully(queue + vm.queue_limit, &size, sizeof size))
        return;
    *bounds = (struct bounds){start, start + size, call_return};
}

// The Java frames from an anchor to the stub by which native code called them; false: they do not
// lead there.
static bool push_java(struct java_thread *thread, const struct bounds *bounds,
                      struct place *place) {
    if (!place->pc && !memory_read_word(&thread->code.methods.memory,
                                        place->stack - sizeof place->pc, &place->pc))
        return false;
    while (thread->maker.count < thread->maker.limit) {
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

// Native frames inside of Java's. The interpreter calls the JVM from below the stack pointer that
// its anchor has: then the outermost of them is its own, which is that of the method it is at.
static void push_native(struct java_thread *thread, struct managed_native native, uint64_t stack) {
    const struct bounds *bounds = &thread->bounds;
    struct managed_maker *maker = &thread->maker;
    uint32_t before = maker->count;
    managed_push_native(maker, native, stack);
    if (!stack || maker->count == before || maker->count == maker->limit) return;
    uint64_t pc = maker->inside_out[maker->count - 1];
    if (pc >= bounds->interpreter && pc < bounds->interpreter_end) maker->count--;
}

// Native and Java code in turns, from the anchor outwards. False: the way ended in Java.
static bool push_turns(struct java_thread *thread, struct place place,
                       const struct managed_walker *walker) {
    struct bounds *bounds = &thread->bounds;
    if (!place.stack) return true;
    if (!bounds->call_return) return false;
    while (place.stack) {
        uint64_t wrapper, pc, inside = place.stack;
        if (!push_java(thread, bounds, &place)) return false;
        uint64_t frame = place.frame;
        if (frame < inside || frame >= thread->stack_end ||
            !read_slot(thread, frame, SLOT_WRAPPER, &wrapper) ||
            !read_slot(thread, frame, SLOT_RETURN, &pc) || wrapper < frame ||
            wrapper >= thread->stack_end ||
            !read_anchor(thread, wrapper + vm.wrapper_anchor, &place))
            return false;
        if (place.stack && place.stack <= frame) return false;
        struct managed_native native =
            walker->walk(walker->context, pc, frame + 2 * sizeof(uintptr_t), (uintptr_t *)frame);
        push_native(thread, native, place.stack);
    }
    return true;
}

struct managed_stack java_weave(struct java_thread *thread, struct managed_native native, int tid,
                                const struct managed_walker *walker) {
    struct place place = {0};
    memory_begin(&thread->code.methods.memory);
    thread->code.methods.is_nameless = false;
    thread->maker.count = 0;
    bool has_anchor = java.can_be_read && find_thread(thread, tid) &&
                      read_anchor(thread, thread->object + vm.thread_anchor, &place) &&
                      place.stack < thread->stack_end;
    if (!has_anchor) place.stack = 0;
    if (has_anchor && unlikely(!thread->bounds.call_return)) read_bounds(&thread->bounds);
    push_native(thread, native, place.stack);
    if (!push_turns(thread, place, walker) && has_anchor && place.stack)
        managed_push(&thread->maker, CAIRN_CUT_NO_CFI);
    return managed_finish(&thread->maker, thread->code.methods.is_nameless);
}
