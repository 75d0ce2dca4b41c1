// SPDX-License-Identifier: Apache-2.0
#include "runtime/go/go.h"

#include <string.h>

#include "format/format.h"
#include "format/languages.h"
#include "runtime/go/table.h"

struct go go;
static struct go_table table;

enum { WORD = sizeof(uint64_t) };

// What a frame's code means for the way outwards.
enum kind {
    KIND_UNKNOWN,
    KIND_PLAIN,
    KIND_SWITCH,     // called C from the stack of a goroutine
    KIND_SAME,       // called C on the stack that it was on
    KIND_CALLBACK,   // was called by C
    KIND_CROSSING,   // calls KIND_CALLBACK, on the native side
    KIND_OUTERMOST,  // nothing of interest called it
};

// Code that this thread has seen, by a return address into it. Go's code stays where it is.
struct seen {
    uint64_t pc;
    int32_t frame_bytes;
    uint8_t kind;
    uint8_t gap, g_at, high_at, depth_at;  // of the switching kinds, see read_switch
};

enum { SEEN = 4096 };

struct go_thread {
    struct seen seen[SEEN];
    struct memory_reader memory;
    struct managed_maker maker;
};

// Of the search. Objects may be unloaded between two searches, so that no page is remembered.
static APART struct memory_reader first_memory;

enum { OBJECTS_MOST = 64 };
static uintptr_t looked_at[OBJECTS_MOST];
static uint32_t looked_at_count;

static bool was_looked_at(uintptr_t start) {
    uint32_t count = __atomic_load_n(&looked_at_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < OBJECTS_MOST; i++)
        if (looked_at[i] == start) return true;
    return false;
}

void go_use(const struct go_table *found) {
    table = *found;
    compiler_barrier();
    go.can_be_read = true;
}

static COLD void look_at(const struct object *object) {
    static uint32_t is_taken;
    struct go_table found;
    uint32_t minor, count = looked_at_count;
    if (__atomic_exchange_n(&is_taken, 1, __ATOMIC_ACQUIRE)) return;  // another thread looks
    if (!go.version && count < OBJECTS_MOST && !was_looked_at(object->start)) {
        first_memory.is_careful = true;
        enum go_table_state state = go_table_find(&first_memory, object, &found, &minor);
        looked_at[count] = object->start;
        __atomic_store_n(&looked_at_count, count + 1, __ATOMIC_RELEASE);
        if (state == GO_TABLE_READ) go_use(&found);
        compiler_barrier();
        if (state != GO_TABLE_ABSENT) go.version = minor ? minor : CAIRN_GO_UNKNOWN;
    }
    __atomic_store_n(&is_taken, 0, __ATOMIC_RELEASE);
}

void go_look(struct managed_native native) {
    uintptr_t end = 0, start = 0;
    for (uint32_t i = 0; i < native.count && !go.version; i++) {
        struct object object;
        uintptr_t pc = native.frames[i].pc;
        if (pc < CAIRN_CUT_LIMIT || (pc >= start && pc < end) || !object_find(pc, &object))
            continue;
        start = object.start;
        end = object.end;
        if (!was_looked_at(start)) look_at(&object);
    }
}

struct go_thread *go_thread_make(uint32_t limit) {
    struct go_thread *thread = sys_reserve(sizeof *thread);
    return thread && managed_maker_init(&thread->maker, limit) ? thread : NULL;
}

// ---- what a frame is ----------------------------------------------------------------------------

// The instructions of asmcgocall before it calls:
//     sub  $gap,%rsp            and $-16,%rsp
//     mov  %rdi,g_at(%rsp)      the goroutine; or $0, on the same stack
//     mov  high_at(%rdi),%rdi   sub %rdx,%rdi
//     mov  %rdi,depth_at(%rsp)  how deep it was; or the stack pointer itself, from %rdx
enum { CODE_BYTES = 64 };

struct code {
    const uint8_t *at, *end;
};

static bool skip(struct code *code, const char *bytes, size_t count) {
    if ((size_t)(code->end - code->at) < count || memcmp(code->at, bytes, count) != 0) return false;
    code->at += count;
    return true;
}

// A number of one byte behind `bytes`, or none, 0, behind the shorter form `plain`.
static bool read_operand(struct code *code, const char *bytes, const char *plain, uint8_t *value) {
    const size_t count = 4;
    *value = 0;
    if (plain && skip(code, plain, count)) return true;
    if (!skip(code, bytes, count) || code->at == code->end) return false;
    *value = *code->at++;
    return true;
}

static bool read_switch_at(struct code code, struct seen *seen) {
    if (!skip(&code, "\x48\x83\xec", 3) || code.at == code.end) return false;
    seen->gap = *code.at++;
    if (!skip(&code, "\x48\x83\xe4\xf0", 4)) return false;
    struct code same = code;
    if (read_operand(&code, "\x48\x89\x7c\x24", "\x48\x89\x3c\x24", &seen->g_at) &&
        skip(&code, "\x48\x8b\x7f", 3) && code.at < code.end) {
        seen->high_at = *code.at++;
        seen->kind = KIND_SWITCH;
        return skip(&code, "\x48\x29\xd7", 3) &&
               read_operand(&code, "\x48\x89\x7c\x24", "\x48\x89\x3c\x24", &seen->depth_at);
    }
    seen->kind = KIND_SAME;
    return read_operand(&same, "\x48\xc7\x44\x24", NULL, &seen->g_at) &&
           skip(&same, "\0\0\0\0", 4) &&
           read_operand(&same, "\x48\x89\x54\x24", "\x48\x89\x14\x24", &seen->depth_at);
}

// Reads them before the call that returns to `pc`, the last such. (The size of the frame that Go's
// table has there is without them.)
static bool read_switch(struct memory_reader *memory, uint64_t pc, struct seen *seen) {
    uint64_t words[CODE_BYTES / WORD + 1], from = (pc - CODE_BYTES) / WORD * WORD;
    if (!memory_read(memory, from, words, sizeof words)) return false;
    const uint8_t *bytes = (const uint8_t *)words, *end = bytes + (pc - from);
    for (const uint8_t *at = end; at-- > bytes;)
        if (read_switch_at((struct code){at, end}, seen)) return true;
    return false;
}

// In the array itself: a pointer would have to be relocated in every program.
enum { KIND_NAME_BYTES = 20 };
static const struct {
    char name[KIND_NAME_BYTES];
    enum kind kind;
} kinds[] = {
    {"runtime.asmcgocall", KIND_SWITCH}, {"runtime.cgocallback", KIND_CALLBACK},
    {"crosscall2", KIND_CROSSING},       {"runtime.goexit", KIND_OUTERMOST},
    {"runtime.mstart", KIND_OUTERMOST},  {"runtime.mcall", KIND_OUTERMOST},
    {"runtime.rt0_go", KIND_OUTERMOST},  {"runtime.systemstack", KIND_UNKNOWN},
    {"runtime.morestack", KIND_UNKNOWN},
};

static enum kind kind_of(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i].name);
        bool is_it = strncmp(name, kinds[i].name, length) == 0 &&
                     (!name[length] || strcmp(name + length, ".abi0") == 0);
        if (is_it) return kinds[i].kind;
    }
    return KIND_PLAIN;
}

// A code of which nothing is known is not tried again.
static COLD void look_up(struct go_thread *thread, struct seen *seen, uint64_t pc) {
    struct go_function function;
    seen->pc = 0;
    compiler_barrier();
    *seen = (struct seen){.kind = KIND_UNKNOWN};
    if (go_table_look_up(&thread->memory, &table, pc - 1, &function) && function.frame_bytes >= 0 &&
        function.frame_bytes % WORD == 0) {
        seen->frame_bytes = function.frame_bytes;
        seen->kind = (uint8_t)kind_of(function.name);
        if (seen->kind == KIND_SWITCH && !read_switch(&thread->memory, pc, seen))
            seen->kind = KIND_UNKNOWN;
    }
    compiler_barrier();
    seen->pc = pc;
}

static const struct seen *find(struct go_thread *thread, uint64_t pc) {
    const unsigned high_bits = 12;
    struct seen *seen = &thread->seen[(pc ^ pc >> high_bits) % SEEN];
    if (unlikely(seen->pc != pc)) look_up(thread, seen, pc);
    return seen;
}

static bool is_go(uint64_t pc) {
    return pc > table.text && pc < table.text_end;
}

// ---- the way outwards ---------------------------------------------------------------------------

// Where a frame goes on: `switched` is the native stack pointer that the last switch inside of it
// found, 0: none.
struct place {
    uint64_t pc, stack, switched;
};

// Goes out of a frame whose stack pointer is known.
static bool leave(struct go_thread *thread, const struct seen *seen, uint64_t stack,
                  struct place *place) {
    uint64_t at = stack + (uint64_t)seen->frame_bytes;
    if (!memory_read_word(&thread->memory, at, &place->pc)) return false;
    place->stack = at + WORD;
    return true;
}

// The goroutine's stack pointer in asmcgocall.
static bool read_caller_stack(struct go_thread *thread, const struct seen *seen, uint64_t stack,
                              uint64_t *caller) {
    uint64_t g, high, depth;
    if (!memory_read_word(&thread->memory, stack + seen->depth_at, &depth)) return false;
    *caller = depth;
    if (seen->kind == KIND_SAME) return true;
    if (!memory_read_word(&thread->memory, stack + seen->g_at, &g) ||
        !memory_read_word(&thread->memory, g + seen->high_at, &high))
        return false;
    *caller = high - depth;
    return true;
}

// The native stack goes on where the switch before began: at its caller's stack pointer, which it
// has rounded down.
static bool leave_callback(struct go_thread *thread, const struct seen *seen, struct place *place) {
    if (!place->switched) return false;
    uint64_t switched = place->switched;
    place->switched = 0;
    for (uint64_t gap = 0; gap <= WORD; gap += WORD)
        if (leave(thread, seen, switched + gap, place) && is_go(place->pc) &&
            find(thread, place->pc)->kind == KIND_CROSSING)
            return true;
    return false;
}

static bool step(struct go_thread *thread, struct place *place) {
    // by value: what is looked up next may take its place
    const struct seen seen = *find(thread, place->pc);
    uint64_t stack = place->stack;
    managed_push(&thread->maker, place->pc);
    switch ((enum kind)seen.kind) {
    case KIND_SWITCH:
    case KIND_SAME:
        if (seen.kind == KIND_SWITCH) place->switched = stack + seen.gap;
        return read_caller_stack(thread, &seen, stack, &stack) &&
               leave(thread, &seen, stack, place);
    case KIND_CALLBACK:
        return leave_callback(thread, &seen, place);
    case KIND_PLAIN:
    case KIND_CROSSING:
        return leave(thread, &seen, stack, place);
    case KIND_UNKNOWN:
    case KIND_OUTERMOST:
        break;
    }
    return false;
}

// The frames of Go code from a place up to native code; false: they end on the way.
static bool push_go(struct go_thread *thread, struct place *place, bool *is_complete) {
    while (is_go(place->pc)) {
        if (thread->maker.count == thread->maker.limit) return false;
        uint64_t pc = place->pc;
        if (step(thread, place)) continue;
        *is_complete = find(thread, pc)->kind == KIND_OUTERMOST;
        return false;
    }
    return true;
}

// Native frames up to the first of Go code, where the place is then; false: there is none.
static bool push_native(struct go_thread *thread, struct managed_native native,
                        struct place *place) {
    uint32_t i = native.count;
    while (i > 0 && !(is_go(native.frames[i - 1].pc) && native.frames[i - 1].stack)) i--;
    uint32_t outside = i;
    for (uint32_t inner = native.count; inner-- > outside;)
        managed_push(&thread->maker, native.frames[inner].pc & ~FRAME_PYTHON);
    if (!i) return false;
    place->pc = native.frames[i - 1].pc;
    place->stack = native.frames[i - 1].stack;
    return true;
}

struct managed_stack go_weave(struct go_thread *thread, struct managed_native native,
                              bool is_careful, const struct managed_walker *walker) {
    struct place place = {0};
    bool is_complete = true;
    thread->memory.is_careful = is_careful;
    thread->maker.count = 0;
    memory_begin(&thread->memory);
    while (push_native(thread, native, &place)) {
        if (!push_go(thread, &place, &is_complete)) {
            if (!is_complete) managed_push(&thread->maker, CAIRN_CUT_NO_CFI);
            break;
        }
        // crosscall2 keeps its caller's frame pointer in the first word of its frame.
        uintptr_t *frame_slot = (uintptr_t *)(place.stack - 2 * WORD);
        uint64_t word;
        if (!memory_read_word(&thread->memory, (uintptr_t)frame_slot, &word)) break;
        native = walker->walk(walker->context, place.pc, place.stack, frame_slot);
    }
    return managed_finish(&thread->maker, false);
}
