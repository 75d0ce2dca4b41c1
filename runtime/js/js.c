// SPDX-License-Identifier: Apache-2.0
#include "runtime/js/js.h"

#include "format/format.h"
#include "runtime/js/engine.h"
#include "runtime/js/jit.h"
#include "runtime/managed/memory.h"

struct js js;

enum { WORD = sizeof(uint64_t) };

struct js_thread {
    struct jit_reader code;
    struct managed_maker maker;
};

void js_look(void) {
    if (js.version) return;
    uint16_t version;
    enum engine_state state = engine_find(&version);
    if (state == ENGINE_ABSENT) return;
    js.can_be_read = state == ENGINE_READ && jit_is_known(version);
    compiler_barrier();
    js.version = version;
}

struct js_thread *js_thread_make(uint32_t limit) {
    struct js_thread *thread = sys_reserve(sizeof *thread);
    if (!thread) return NULL;
    return managed_maker_init(&thread->maker, limit) ? thread : NULL;
}

// ---- a frame ------------------------------------------------------------------------------------

static bool read_slot(struct js_thread *thread, uint64_t frame, int32_t slot, uint64_t *word) {
    return memory_read_word(&thread->code.functions.memory, frame + (uint64_t)(int64_t)slot, word);
}

// The instruction that the interpreter is at: its address in the object, as a number.
static int32_t interpreted_offset(struct js_thread *thread, uint64_t frame) {
    uint64_t word;
    if (!read_slot(thread, frame, engine.frame_offset, &word) || !engine_is_number(word))
        return FUNCTION_NO_OFFSET;
    int64_t offset = (int64_t)engine_number(word) - engine.bytecodes_data + ENGINE_OBJECT_TAG;
    return offset >= 0 && offset <= INT32_MAX ? (int32_t)offset : FUNCTION_NO_OFFSET;
}

// Elsewhere than in the interpreter and baseline code the slot may hold anything, also what is gone
// by now: it is compared, and not followed.
static uint64_t own_bytecodes(struct js_thread *thread, uint64_t frame, uint64_t shared) {
    uint64_t there;
    if (!read_slot(thread, frame, engine.frame_bytecodes, &there) || !engine_is_object(there))
        return 0;
    return there == function_bytecodes(&thread->code.functions, shared) ? there : 0;
}

// A frame of a function; false: it is not understood.
static bool push_function(struct js_thread *thread, uintptr_t pc, uint64_t frame) {
    struct function_reader *functions = &thread->code.functions;
    uint64_t function, shared;
    if (!read_slot(thread, frame, engine.frame_function, &function) ||
        !engine_read(&functions->memory, function, engine.function_shared, &shared))
        return false;
    uint64_t bytecodes = own_bytecodes(thread, frame, shared);
    const struct jit_seen *code = jit_find(&thread->code, pc, shared, bytecodes);
    if (code->count) {
        for (uint32_t i = 0; i < code->count; i++) managed_push(&thread->maker, code->frames[i]);
        return !code->is_cut;
    }
    int32_t offset = bytecodes ? interpreted_offset(thread, frame) : FUNCTION_NO_OFFSET;
    uintptr_t found = function_find(functions, shared, bytecodes, offset);
    if (found) managed_push(&thread->maker, found);
    return found != 0;
}

// A frame of code without unwind information that keeps a frame pointer. Those that only lead from
// one kind of code to another have a small number where functions have their context, and are left
// out: they differ from call to call, and nobody wrote them.
static bool push_guessed(struct js_thread *thread, uintptr_t pc, uint64_t frame) {
    const uint64_t number_bit = 1, types_most = 128;
    uint64_t word;
    if (!read_slot(thread, frame, engine.frame_context, &word)) return false;
    bool is_typed = !(word & number_bit) && word < types_most;
    return is_typed || (engine_is_object(word) && push_function(thread, pc, frame));
}

// ---- a stack ------------------------------------------------------------------------------------

// All guesses went along frames of V8's: the stack is as sure as one with unwind information, and
// not marked.
static void push_frames(struct js_thread *thread, struct managed_native native) {
    bool is_sure = true;
    for (uint32_t i = native.count; i-- > 0;) {
        const struct frame *frame = &native.frames[i];
        if (frame->pc == CAIRN_CUT_GUESSED && is_sure) continue;
        bool is_guessed = i && frame->rule == FRAME_RULE_GUESSED;
        // the frame pointer, where the caller's stack pointer follows from it
        uint64_t pointer = is_guessed ? frame[-1].stack - 2 * WORD : 0;
        if (is_guessed && push_guessed(thread, frame->pc, pointer)) continue;
        if (is_guessed) is_sure = false;
        // A damaged stack may hold any word.
        managed_push(&thread->maker, frame->pc & ~FRAME_PYTHON);
    }
}

struct managed_stack js_weave(struct js_thread *thread, struct managed_native native,
                              bool is_careful) {
    struct function_reader *functions = &thread->code.functions;
    memory_begin(&functions->memory);
    functions->memory.is_careful = is_careful;
    functions->is_nameless = false;
    thread->maker.count = 0;
    push_frames(thread, native);
    return managed_finish(&thread->maker, functions->is_nameless);
}
