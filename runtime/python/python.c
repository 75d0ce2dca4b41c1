// SPDX-License-Identifier: Apache-2.0
// The chain of the last event is kept: as long as frames further out are the same, their codes need
// not be looked at again.
#include "runtime/python/python.h"

#include <string.h>

#include "format/format.h"
#include "runtime/python/chain.h"
#include "runtime/python/code.h"
#include "runtime/sys/linker.h"

struct python python;

struct python_thread {
    struct link *links, *last_links;     // innermost first
    struct frame *frames, *last_frames;  // outermost first
    uintptr_t *inside_out;               // innermost first, in the making
    uint32_t limit, last_link_count, last_frame_count;
    struct code_reader reader;
};

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

static bool is_loop(const struct frame *native) {
    return native->pc >= chain_loop && native->pc < chain_loop_end;
}

// Where each call of the interpreter's loop runs one frame, they are paired from the outermost on;
// if the native stack was cut there, from the innermost. A call whose code lies elsewhere (a rare
// part, set apart by the compiler) is not known as one: then the innermost frames have no place.
static void place_links(struct python_thread *thread, const struct frame *native,
                        uint32_t native_count, uint32_t link_count) {
    bool is_cut =
        native_count && native[0].pc < CAIRN_CUT_LIMIT && native[0].pc != CAIRN_CUT_GUESSED;
    uint32_t next = 0;
    for (uint32_t i = 0; i < native_count && next < link_count; i++) {
        const struct frame *frame = &native[is_cut ? native_count - 1 - i : i];
        if (!is_loop(frame)) continue;
        thread->links[is_cut ? next : link_count - 1 - next].place = frame->stack;
        next++;
    }
    for (; is_cut && next < link_count; next++) thread->links[next].place = UINTPTR_MAX - 1;
}

// Both chains, innermost first; how many frames, at most the limit.
static uint32_t interleave(struct python_thread *thread, const struct frame *native,
                           uint32_t native_count, uint32_t link_count) {
    const struct link *links = thread->links;
    uint32_t count = 0, next = 0;
    for (uint32_t i = native_count; i-- > 0;) {
        bool has_end = i > 0 && native[i - 1].stack;  // not outermost, nor next to where it was cut
        uintptr_t end = has_end ? native[i - 1].stack : UINTPTR_MAX;
        for (; next < link_count && links[next].place < end && count < thread->limit; next++)
            if (links[next].pc) thread->inside_out[count++] = links[next].pc;
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
    thread->reader.memory.is_careful = is_careful;
    thread->reader.is_nameless = false;
    uint32_t link_count = chain_read(&thread->reader.memory, thread->links, thread->limit);
    if (chain_loop) place_links(thread, native, native_count, link_count);
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
