// SPDX-License-Identifier: Apache-2.0
// The chain of the last event is kept: as long as frames further out are the same, their codes need
// not be looked at again.
#include "runtime/python/python.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "format/format.h"
#include "runtime/python/code.h"
#include "runtime/python/layout.h"
#include "runtime/python/read.h"
#include "runtime/sys/linker.h"

struct python python;

// Of the interpreter; both take no lock and change nothing.
static struct {
    void *(*own_state)(void);     // PyGILState_GetThisThreadState
    void *(*holder_state)(void);  // _PyThreadState_UncheckedGet: of the thread that has the lock
} calls;

// One frame of Python code.
struct link {
    uintptr_t frame, code, instruction;
    uintptr_t cframe;  // the call of the interpreter's loop that runs it
    uintptr_t pc;      // pseudo address (FRAME_PYTHON)
};

struct python_thread {
    struct link *links, *last_links;     // innermost first
    struct frame *frames, *last_frames;  // outermost first
    uintptr_t *inside_out;               // innermost first, in the making
    uint32_t limit, last_link_count, last_frame_count;
    struct code_reader reader;
};

bool python_read_carefully(uintptr_t address, void *bytes, size_t size) {
    struct iovec here = {bytes, size}, there = {(void *)address, size};
    if (!size) return true;
    if (sys_is_confined()) return false;
    return sys_call(SYS_process_vm_readv, sys_pid(), (long)&here, 1, (long)&there, 1, 0) ==
           (long)size;
}

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
    const unsigned long *version = linker_find("Py_Version");
    if (version) return (uint32_t)*version;
    const char *(*say)(void) = NULL;
    void *function = linker_find("Py_GetVersion");
    memcpy(&say, &function, sizeof say);
    return say ? version_of_text(say()) : 0;
}

void python_find(void) {
    const uint32_t known = 0x030b, patch_bits = 16;
    python.version = version_find();
    if (python.version >> patch_bits != known) return;
    void *own = linker_find("PyGILState_GetThisThreadState");
    void *holder = linker_find("_PyThreadState_UncheckedGet");
    code_types = (struct code_types){.code = (uintptr_t)linker_find("PyCode_Type"),
                                     .text = (uintptr_t)linker_find("PyUnicode_Type"),
                                     .bytes = (uintptr_t)linker_find("PyBytes_Type")};
    memcpy(&calls.own_state, &own, sizeof own);
    memcpy(&calls.holder_state, &holder, sizeof holder);
    python.can_be_read = own && holder && code_types.code && code_types.text && code_types.bytes;
}

bool python_begin(void) {
    const struct cairn_code unknown = {.bytes = sizeof unknown};
    void *first = code_begin() ? region_take(&python.codes, sizeof unknown) : NULL;
    if (first) memcpy(first, &unknown, sizeof unknown);
    return first != NULL;
}

struct python_thread *python_thread_make(uint32_t limit) {
    struct python_thread *thread = sys_reserve(sizeof *thread);
    if (!thread) return NULL;
    thread->limit = limit;
    thread->links = sys_reserve(limit * sizeof *thread->links);
    thread->last_links = sys_reserve(limit * sizeof *thread->links);
    thread->frames = sys_reserve(limit * sizeof *thread->frames);
    thread->last_frames = sys_reserve(limit * sizeof *thread->frames);
    thread->inside_out = sys_reserve(limit * sizeof *thread->inside_out);
    bool has_all = thread->links && thread->last_links && thread->frames && thread->last_frames &&
                   thread->inside_out;
    return has_all ? thread : NULL;
}

// What links a Python frame to the others, from its code on.
struct frame_fields {
    uint64_t words[(PYTHON_FRAME_CODE_END - 1) / sizeof(uint64_t) + 1];
};

static bool frame_is_entry(const struct frame_fields *fields) {
    const unsigned shift = PYTHON_FRAME_CODE_IS_ENTRY % sizeof(uint64_t) * 8;
    return fields->words[PYTHON_FRAME_CODE_IS_ENTRY / sizeof(uint64_t)] >> shift & 0xff;
}

// The frames that one call of the interpreter's loop runs.
static uint32_t read_frames(struct python_thread *thread, uintptr_t cframe, uintptr_t frame,
                            uint32_t count) {
    bool is_careful = thread->reader.is_careful, is_entry = false;
    while (frame && !is_entry && count < thread->limit) {
        struct frame_fields fields;
        if (!python_read(is_careful, frame + PYTHON_FRAME_CODE, &fields, sizeof fields)) break;
        thread->links[count++] = (struct link){
            .frame = frame,
            .code = fields.words[0],
            .instruction = fields.words[PYTHON_FRAME_CODE_INSTRUCTION / sizeof(uint64_t)],
            .cframe = cframe};
        is_entry = frame_is_entry(&fields);
        frame = fields.words[PYTHON_FRAME_CODE_PREVIOUS / sizeof(uint64_t)];
    }
    return count;
}

// Reads the thread's chain, innermost first; how many frames it has.
static uint32_t read_chain(struct python_thread *thread) {
    uintptr_t state = (uintptr_t)calls.own_state(), cframe = 0;
    uint32_t count = 0;
    if (!state) return 0;
    bool has_lock = (uintptr_t)calls.holder_state() == state;
    bool is_careful = thread->reader.is_careful |= !has_lock;
    if (!python_read(is_careful, state + PYTHON_STATE_CFRAME, &cframe, sizeof cframe)) return 0;
    for (uint32_t calls_seen = 0; cframe && calls_seen < thread->limit; calls_seen++) {
        uintptr_t words[2];  // current_frame, previous
        if (!python_read(is_careful, cframe + PYTHON_CFRAME_FRAME, words, sizeof words)) break;
        count = read_frames(thread, cframe, words[0], count);
        cframe = words[1];
    }
    return count;
}

// Gives each link its address; those that are the same as in the last chain, counted from the
// outermost, have theirs already.
static void name_chain(struct python_thread *thread, uint32_t count) {
    const struct link *last = thread->last_links + thread->last_link_count;
    struct link *end = thread->links + count;
    uint32_t most = count < thread->last_link_count ? count : thread->last_link_count, same = 1;
    for (; same <= most; same++) {
        const struct link *old = last - same;
        struct link *link = end - same;
        if (old->frame != link->frame || old->code != link->code ||
            old->instruction != link->instruction)
            break;
        link->pc = old->pc;
    }
    for (; same <= count; same++) {
        struct link *link = end - same;
        link->pc = code_find(&thread->reader, link->code, link->instruction);
    }
}

// Both chains, innermost first; how many frames, at most the limit.
static uint32_t interleave(struct python_thread *thread, const struct frame *native,
                           uint32_t native_count, uint32_t link_count) {
    const struct link *links = thread->links;
    uint32_t count = 0, next = 0;
    for (uint32_t i = native_count; i-- > 0;) {
        bool has_end = i > 0 && native[i - 1].stack;  // not outermost, nor next to where it was cut
        uintptr_t end = has_end ? native[i - 1].stack : UINTPTR_MAX;
        for (; next < link_count && links[next].cframe < end && count < thread->limit; next++)
            thread->inside_out[count++] = links[next].pc;
        // A damaged stack may hold any word.
        if (count < thread->limit) thread->inside_out[count++] = native[i].pc & ~FRAME_PYTHON;
    }
    if (count == thread->limit && count) thread->inside_out[count - 1] = CAIRN_CUT_DEPTH;
    return count;
}

// The frames outermost first; how many outer ones are those of the stack before.
static uint32_t turn(struct python_thread *thread, uint32_t count) {
    uint32_t keep = 0;
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t pc = thread->inside_out[count - 1 - i];
        thread->frames[i].pc = pc;
        if (keep == i && i < thread->last_frame_count && thread->last_frames[i].pc == pc) keep++;
    }
    return keep;
}

// The stack becomes the last one. Torn out of here by a handler that jumps, there is none.
static void exchange(struct python_thread *thread) {
    struct link *links = thread->links;
    struct frame *frames = thread->frames;
    thread->links = thread->last_links;
    thread->last_links = links;
    thread->frames = thread->last_frames;
    thread->last_frames = frames;
}

struct python_stack python_weave(struct python_thread *thread, struct frame *native,
                                 uint32_t native_count, bool is_careful) {
    thread->reader.is_careful = is_careful;
    thread->reader.is_nameless = false;
    uint32_t link_count = read_chain(thread);
    name_chain(thread, link_count);
    uint32_t count = interleave(thread, native, native_count, link_count);
    uint32_t keep = turn(thread, count);
    thread->last_link_count = thread->last_frame_count = 0;
    compiler_barrier();
    exchange(thread);
    compiler_barrier();
    thread->last_link_count = link_count;
    thread->last_frame_count = count;
    return (struct python_stack){thread->last_frames, count, keep, thread->reader.is_nameless};
}
