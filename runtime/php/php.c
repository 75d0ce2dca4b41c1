// SPDX-License-Identifier: Apache-2.0
#include "runtime/php/php.h"

#include "format/format.h"
#include "format/languages.h"
#include "runtime/managed/memory.h"
#include "runtime/php/engine.h"
#include "runtime/php/function.h"

struct php php;

enum { GENERATORS_MOST = 256, CALLS_SEEN = 1024 };

// A call as it was at an event before. One of a function that has a name, and is no closure, is the
// same if its words and those of its instruction are: such a function stays where it is until the
// request ends. Between two requests there are allocations without a call, at which all are
// forgotten.
struct call_seen {
    uint64_t call;  // 0: none
    uint64_t opline, function;
    uint64_t line;      // of its instruction: number, code
    uint64_t requests;  // that were seen to end
    uintptr_t pc;
    bool is_built_in;
};

struct php_thread {
    struct php_function_reader functions;
    struct managed_maker maker;
    uint64_t generators[GENERATORS_MOST];  // that wait for one another, outermost first
    bool has_inner;                        // a call of this stack was met
    uint64_t requests;                     // that were seen to end
    struct call_seen calls[CALLS_SEEN];
};

void php_look(void) {
    if (php.version) return;
    uint16_t version;
    enum php_state state = engine_php_find(&version);
    if (state == PHP_ABSENT) return;
    php.can_be_read = state == PHP_READ;
    compiler_barrier();
    php.version = version ? version : CAIRN_PHP_UNKNOWN;
}

struct php_thread *php_thread_make(uint32_t limit) {
    struct php_thread *thread = sys_reserve(sizeof *thread);
    if (!thread) return NULL;
    return managed_maker_init(&thread->maker, limit) ? thread : NULL;
}

// ---- calls of PHP -------------------------------------------------------------------------------

// Says how reading goes on.
struct cursor {
    struct php_thread *thread;
    uint64_t call;   // the next one; 0: none
    uint32_t steps;  // calls that may still be read
};

static bool read_call(struct php_thread *thread, uint64_t call, uint64_t words[PHP_FRAME_WORDS]) {
    return memory_read(&thread->functions.memory, call, words, PHP_FRAME_WORDS * sizeof(uint64_t));
}

static struct call_seen *seen_of(struct php_thread *thread, uint64_t call) {
    const unsigned low_bits = 4, high_bits = 14;
    return &thread->calls[(call >> low_bits ^ call >> high_bits) % CALLS_SEEN];
}

static bool read_line(struct php_thread *thread, const uint64_t words[PHP_FRAME_WORDS],
                      uint64_t *line) {
    return memory_read_word(&thread->functions.memory, words[PHP_FRAME_OPLINE] + PHP_OP_LINE, line);
}

// A call that is as it was at an event before; NULL: it may be another. A built-in function has no
// instructions.
ALWAYS_INLINE const struct call_seen *find_seen(struct php_thread *thread, uint64_t call,
                                                const uint64_t words[PHP_FRAME_WORDS]) {
    const struct call_seen *seen = seen_of(thread, call);
    uint64_t line;
    if (unlikely(seen->call != call || seen->function != words[PHP_FRAME_FUNCTION] ||
                 seen->requests != thread->requests))
        return NULL;
    if (seen->is_built_in) return seen;
    if (unlikely(seen->opline != words[PHP_FRAME_OPLINE])) return NULL;
    return read_line(thread, words, &line) && likely(line == seen->line) ? seen : NULL;
}

static void keep_seen(struct php_thread *thread, uint64_t call,
                      const uint64_t words[PHP_FRAME_WORDS], uintptr_t pc, bool is_built_in) {
    struct call_seen *seen = seen_of(thread, call);
    uint64_t line = 0;
    if (php.misses_events || !thread->functions.is_lasting ||
        (!is_built_in && !read_line(thread, words, &line)))
        return;
    seen->call = 0;
    compiler_barrier();
    seen->opline = words[PHP_FRAME_OPLINE];
    seen->function = words[PHP_FRAME_FUNCTION];
    seen->line = line;
    seen->requests = thread->requests;
    seen->pc = pc;
    seen->is_built_in = is_built_in;
    compiler_barrier();
    seen->call = call;
}

// Built-in functions that are called without a frame. That one is at work is known where it has
// called something: otherwise the instruction may be one that is past.
static COLD void push_built_in(struct php_thread *thread, uint64_t address) {
    uint8_t type;
    const uint64_t words[PHP_FRAME_WORDS] = {[PHP_FRAME_FUNCTION] = address};
    uintptr_t pc = php_function_find(&thread->functions, words, &type);
    if (pc && type == PHP_FUNCTION_INTERNAL) managed_push(&thread->maker, pc);
}

// The address of the function that was pushed; 0: it is none.
static uintptr_t push_call(struct php_thread *thread, const uint64_t words[PHP_FRAME_WORDS],
                           uint8_t *type) {
    uintptr_t pc = php_function_find(&thread->functions, words, type);
    if (!pc) return 0;
    if (unlikely(thread->functions.built_in && thread->has_inner))
        push_built_in(thread, thread->functions.built_in);
    managed_push(&thread->maker, pc);
    thread->has_inner = true;
    return pc;
}

// The generator whose place in the chain a call without a function holds; 0: it holds none.
static uint64_t generator_of(struct php_thread *thread, const uint64_t words[PHP_FRAME_WORDS]) {
    struct memory_reader *memory = &thread->functions.memory;
    uint64_t object = words[PHP_FRAME_THIS], class = 0, wanted = 0;
    bool is_object = (words[PHP_FRAME_INFO] & PHP_TYPE_MASK) == PHP_TYPE_OBJECT;
    if (!is_object || !engine_php.generator ||
        !memory_read_word(memory, engine_php.generator, &wanted) ||
        !memory_read_word(memory, object + PHP_OBJECT_CLASS, &class))
        return 0;
    return class == wanted ? object : 0;
}

static uint64_t parent_of(struct php_thread *thread, uint64_t generator) {
    uint64_t parent = 0;
    memory_read_word(&thread->functions.memory, generator + engine_php.layout.generator_parent,
                     &parent);
    return parent;
}

// Generators that wait for the one that is at work (yield from), innermost first.
static COLD void push_generators(struct php_thread *thread, uint64_t generator) {
    uint64_t words[PHP_FRAME_WORDS], call;
    uint32_t count = 0;
    uint8_t type;
    for (; generator && count < GENERATORS_MOST; generator = parent_of(thread, generator))
        thread->generators[count++] = generator;
    if (!generator && count) count--;  // the one at work
    while (count-- > 0) {
        uint64_t at = thread->generators[count] + engine_php.layout.generator_frame;
        if (memory_read_word(&thread->functions.memory, at, &call) &&
            read_call(thread, call, words))
            push_call(thread, words, &type);
    }
}

// The next call outwards; true if the call of PHP's loop began with it.
static bool push_next(struct cursor *cursor) {
    struct php_thread *thread = cursor->thread;
    uint64_t words[PHP_FRAME_WORDS], call = cursor->call;
    uint8_t type = 0;
    bool is_read = cursor->steps && read_call(thread, call, words);
    cursor->steps -= is_read;
    cursor->call = is_read ? words[PHP_FRAME_PREVIOUS] : 0;
    if (!is_read) return true;
    if (unlikely(!words[PHP_FRAME_FUNCTION])) {
        push_generators(thread, generator_of(thread, words));
        return false;
    }
    const bool is_top = words[PHP_FRAME_INFO] & PHP_CALL_TOP;
    const struct call_seen *seen = find_seen(thread, call, words);
    if (likely(seen)) {
        managed_push(&thread->maker, seen->pc);
        thread->has_inner = true;
        return is_top && !seen->is_built_in;
    }
    uintptr_t pc = push_call(thread, words, &type);
    bool is_built_in = type == PHP_FUNCTION_INTERNAL;
    if (pc) keep_seen(thread, call, words, pc, is_built_in);
    return pc && is_top && !is_built_in;
}

// ---- a stack ------------------------------------------------------------------------------------

static void push_rest(struct cursor *cursor) {
    while (cursor->call) push_next(cursor);
}

// A mark of how the native walk ended stays outermost. A cut that the user asked for is one of
// PHP's frames too.
static void push_frames(struct cursor *cursor, struct managed_native native) {
    struct managed_maker *maker = &cursor->thread->maker;
    for (uint32_t i = native.count; i-- > 0;) {
        uintptr_t pc = native.frames[i].pc;
        if (unlikely(!i && pc == CAIRN_CUT_MAX_DEPTH)) cursor->call = 0;
        if (unlikely(!i && pc < CAIRN_CUT_LIMIT)) push_rest(cursor);
        while (engine_php_is_loop(pc) && cursor->call && !push_next(cursor)) {
        }
        // A damaged stack may hold any word.
        managed_push(maker, pc & ~FRAME_PYTHON);
    }
    push_rest(cursor);
}

struct managed_stack php_weave(struct php_thread *thread, struct managed_native native, int32_t tid,
                               bool is_careful) {
    struct php_function_reader *functions = &thread->functions;
    struct cursor cursor = {.thread = thread, .steps = thread->maker.limit};
    memory_begin(&functions->memory);
    functions->memory.is_careful = is_careful;
    functions->is_nameless = false;
    thread->maker.count = 0;
    thread->has_inner = false;
    uint64_t first = engine_php.globals + engine_php.layout.globals_frame;
    if (likely(tid == memory_process_id()) &&
        !memory_read_word(&functions->memory, first, &cursor.call))
        cursor.call = 0;
    if (unlikely(!cursor.call)) thread->requests++;
    push_frames(&cursor, native);
    return managed_finish(&thread->maker, functions->is_nameless);
}
