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
    struct link *links, *last_links;  // innermost first
    struct managed_maker maker;
    uint32_t last_link_count;
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

struct python_thread *python_thread_make(uint32_t limit) {
    struct python_thread *thread = sys_reserve(sizeof *thread);
    if (!thread) return NULL;
    thread->links = sys_reserve(limit * sizeof *thread->links);
    thread->last_links = sys_reserve(limit * sizeof *thread->links);
    thread->reader.memory.copies = sys_reserve(sizeof *thread->reader.memory.copies);
    bool has_all = thread->links && thread->last_links && managed_maker_init(&thread->maker, limit);
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

// Both chains, innermost first.
static void interleave(struct python_thread *thread, const struct frame *native,
                       uint32_t native_count, uint32_t link_count) {
    const struct link *links = thread->links;
    struct managed_maker *maker = &thread->maker;
    uint32_t next = 0;
    maker->count = 0;
    for (uint32_t i = native_count; i-- > 0;) {
        bool has_end = i > 0 && native[i - 1].stack;  // not outermost, nor next to where it was cut
        uintptr_t end = has_end ? native[i - 1].stack : UINTPTR_MAX;
        for (; next < link_count && links[next].place < end; next++)
            if (links[next].pc) managed_push(maker, links[next].pc);
        // A damaged stack may hold any word.
        managed_push(maker, native[i].pc & ~FRAME_PYTHON);
    }
}

// The chain becomes the last one. Torn out of here by a handler that jumps, there is none.
static void exchange(struct python_thread *thread, uint32_t count) {
    struct link *links = thread->links;
    thread->last_link_count = 0;
    compiler_barrier();
    thread->links = thread->last_links;
    thread->last_links = links;
    compiler_barrier();
    thread->last_link_count = count;
}

struct managed_stack python_weave(struct python_thread *thread, struct managed_native native,
                                  bool is_careful) {
    struct memory_reader *memory = &thread->reader.memory;
    memory->is_careful = is_careful;
    memory_forget_copies(memory);
    memory->is_trusting = true;  // the interpreter's own chain
    thread->reader.is_nameless = false;
    uint32_t link_count = chain_read(memory, thread->links, thread->maker.limit);
    if (chain_loop) place_links(thread, native.frames, native.count, link_count);
    name_chain(thread, link_count);
    interleave(thread, native.frames, native.count, link_count);
    exchange(thread, link_count);
    return managed_finish(&thread->maker, thread->reader.is_nameless);
}
