// SPDX-License-Identifier: Apache-2.0
#include "runtime/ruby/ruby.h"

#include "format/format.h"
#include "format/languages.h"
#include "runtime/managed/codes.h"
#include "runtime/managed/memory.h"
#include "runtime/ruby/engine.h"
#include "runtime/ruby/method.h"

struct ruby ruby;

enum { REFUSALS_MOST = 64, ENVIRONMENTS_MOST = 64 };

struct ruby_thread {
    struct ruby_method_reader methods;
    struct managed_maker maker;
};

void ruby_look(void) {
    if (ruby.version) return;
    uint16_t version;
    enum ruby_state state = engine_ruby_find(&version);
    if (state == RUBY_ABSENT) return;
    ruby.can_be_read = state == RUBY_READ;
    compiler_barrier();
    ruby.version = version ? version : CAIRN_RUBY_UNKNOWN;
}

struct ruby_thread *ruby_thread_make(uint32_t limit) {
    struct ruby_thread *thread = sys_reserve(sizeof *thread);
    if (!thread) return NULL;
    return managed_maker_init(&thread->maker, limit) ? thread : NULL;
}

// ---- frames -------------------------------------------------------------------------------------

// Says how reading goes on.
struct cursor {
    struct ruby_thread *thread;
    uint64_t frame, end;  // the next one, and where they end
};

// Makes one number of all that the environments of a frame say of its method; `first`: the
// innermost one.
static uint64_t hash_environments(struct memory_reader *memory,
                                  const uint64_t first[RUBY_ENVIRONMENT_WORDS]) {
    uint64_t hash = first[0], flags = first[2], outer = first[1], words[RUBY_ENVIRONMENT_WORDS];
    for (int i = 0; !(flags & RUBY_ENVIRONMENT_IS_LOCAL) && i < ENVIRONMENTS_MOST; i++) {
        outer &= ~(uint64_t)RUBY_ENVIRONMENT_TAG;
        if (!memory_read(memory, outer - RUBY_ENVIRONMENT_BEFORE, words, sizeof words)) break;
        hash = codes_mix(hash, words[0]);
        outer = words[1];
        flags = words[2];
    }
    return hash;
}

static bool read_frame(struct memory_reader *memory, uint64_t address, struct ruby_frame *frame) {
    uint64_t words[RUBY_FRAME_WORDS], environment[RUBY_ENVIRONMENT_WORDS];
    if (!memory_read(memory, address, words, sizeof words) ||
        !memory_read(memory, words[RUBY_FRAME_ENVIRONMENT] - RUBY_ENVIRONMENT_BEFORE, environment,
                     sizeof environment))
        return false;
    frame->flags = environment[2];
    frame->code = words[RUBY_FRAME_CODE];
    frame->pc = frame->flags & RUBY_FRAME_IS_NATIVE || !frame->code ? 0 : words[RUBY_FRAME_PC];
    frame->environment = words[RUBY_FRAME_ENVIRONMENT];
    frame->methods = hash_environments(memory, environment);
    return true;
}

// The next frame outwards; true if the call of Ruby's loop began with it.
static bool push_next(struct cursor *cursor) {
    struct ruby_thread *thread = cursor->thread;
    struct ruby_frame frame;
    if (cursor->frame >= cursor->end ||
        !read_frame(&thread->methods.objects.memory, cursor->frame, &frame)) {
        cursor->frame = cursor->end;
        return true;
    }
    cursor->frame += engine_ruby.layout.frame_bytes;
    if (!frame.pc && (frame.flags & RUBY_FRAME_KIND) != RUBY_FRAME_KIND_FUNCTION) return false;
    managed_push(&thread->maker, ruby_method_find(&thread->methods, &frame));
    return frame.pc && frame.flags & RUBY_FRAME_IS_TOP;
}

// ---- what a thread runs -------------------------------------------------------------------------

// The outermost frame is one that runs nothing, and no part of a stack.
static bool ends_well(struct memory_reader *memory, uint64_t end) {
    struct ruby_frame frame;
    return read_frame(memory, end, &frame) &&
           (frame.flags & RUBY_FRAME_KIND) == RUBY_FRAME_KIND_DUMMY;
}

static COLD void refuse(void) {
    if (ruby.is_verified || __atomic_add_fetch(&ruby.refusals, 1, __ATOMIC_RELAXED) < REFUSALS_MOST)
        return;
    ruby.version = CAIRN_RUBY_UNKNOWN;
    compiler_barrier();
    ruby.can_be_read = false;
}

// Finds the frames of a context; none: `frame` is `end`.
static void find_frames(struct cursor *cursor, uint64_t context) {
    struct memory_reader *memory = &cursor->thread->methods.objects.memory;
    const uint64_t bytes_most = 1u << 30, size = engine_ruby.layout.frame_bytes;
    uint64_t words[RUBY_CONTEXT_WORDS];  // stack, words, innermost frame
    if (!context || !memory_read(memory, context, words, sizeof words) || !words[0]) return;
    uint64_t end = words[0] + words[1] * sizeof(uint64_t) - size, frame = words[2];
    bool is_inside = words[1] < bytes_most && frame >= words[0] && frame <= end;
    if (is_inside && (end - frame) % size == 0 && ends_well(memory, end)) {
        ruby.is_verified = true;
        cursor->frame = frame;
        cursor->end = end;
    } else {
        refuse();
    }
}

// ---- a stack ------------------------------------------------------------------------------------

static void push_rest(struct cursor *cursor) {
    while (cursor->frame < cursor->end && cursor->thread->maker.count < cursor->thread->maker.limit)
        push_next(cursor);
}

// A mark of how the native walk ended stays outermost. A cut that the user asked for is one of
// Ruby's frames too.
static void push_frames(struct cursor *cursor, struct managed_native native) {
    struct managed_maker *maker = &cursor->thread->maker;
    for (uint32_t i = native.count; i-- > 0;) {
        uintptr_t pc = native.frames[i].pc;
        if (unlikely(!i && pc == CAIRN_CUT_MAX_DEPTH)) cursor->frame = cursor->end;
        if (unlikely(!i && pc < CAIRN_CUT_LIMIT)) push_rest(cursor);
        while (engine_ruby_is_loop(pc) && cursor->frame < cursor->end && !push_next(cursor)) {
        }
        // A damaged stack may hold any word.
        managed_push(maker, pc & ~FRAME_PYTHON);
    }
    push_rest(cursor);
}

struct managed_stack ruby_weave_context(struct ruby_thread *thread, struct managed_native native,
                                        uint64_t context, bool is_careful) {
    struct cursor cursor = {.thread = thread};
    ruby_method_begin(&thread->methods, native, is_careful);
    thread->maker.count = 0;
    find_frames(&cursor, context);
    push_frames(&cursor, native);
    return managed_finish(&thread->maker, thread->methods.is_nameless);
}

struct managed_stack ruby_weave(struct ruby_thread *thread, struct managed_native native,
                                bool is_careful) {
    uintptr_t address = linker_local_address(&engine_ruby.context);
    uint64_t context = 0;
    if (address) __builtin_memcpy(&context, (const void *)address, sizeof context);
    return ruby_weave_context(thread, native, context, is_careful);
}
