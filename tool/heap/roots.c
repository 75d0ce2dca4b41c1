// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/roots.h"

#include <elf.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/glibc/arenas.h"

enum {
    WORD = 8,
    HEADER = 2 * WORD,
    PAGE_LEAST = CAIRN_PAGE_LEAST,  // larger pages are multiples of it
    RED_ZONE = 128,  // below the stack pointer, that functions may use (x86-64 ABI, 3.2.2)
    THREAD_AREA_BYTES = 4096,  // more than glibc's struct pthread has
};

// --- stacks

// glibc's thread area says where its thread's stack lies: an address and its size, side by side.
// They are known by what they must enclose.
static bool find_stack(const struct core_image *core, const struct core_thread *thread,
                       struct span *stack) {
    uint64_t pair[2];
    for (uint64_t at = thread->pointer; at < thread->pointer + THREAD_AREA_BYTES; at += WORD) {
        if (!core_read(core, at, pair, sizeof pair)) return false;
        bool is_aligned = pair[0] && pair[1] && !(pair[0] % PAGE_LEAST) && !(pair[1] % PAGE_LEAST);
        if (!is_aligned || pair[0] + pair[1] < pair[0]) continue;
        if (pair[0] > thread->stack || pair[0] + pair[1] <= thread->pointer) continue;
        *stack = (struct span){pair[0], pair[0] + pair[1]};
        return true;
    }
    return false;
}

// The whole stack of a thread; that of the main thread grows on its own and has nothing below it.
static bool stack_of(const struct core_image *core, const struct core_thread *thread,
                     struct span *stack) {
    const struct memory_segment *segment = core_segment_of(core, thread->stack);
    if (!segment) return false;
    if (core->first_stack >= thread->stack && core->first_stack < segment->end) {
        *stack = (struct span){segment->start, segment->end};
        return true;
    }
    return thread->pointer > thread->stack && find_stack(core, thread, stack);
}

static bool leave_out_dead(const struct core_image *core, struct spans *out) {
    bool is_ok = true;
    for (size_t i = 0; i < core->threads.count && is_ok; i++) {
        const struct core_thread *thread = &core->threads.items[i];
        struct span stack;
        if (thread->stack > RED_ZONE && stack_of(core, thread, &stack))
            is_ok = spans_add(out, stack.start, thread->stack - RED_ZONE);
    }
    return is_ok;
}

// --- stacks of threads that ended

// Threads' areas lie at the end of their stacks; below them is their local data.
enum { THREAD_LOCAL_MOST = 1 << 16, POINTER_TO_ITSELF = 2 * WORD };

static bool read_word(const struct core_image *core, uint64_t address, uint64_t *word) {
    return core_read(core, address, word, sizeof *word);
}

// Whether a thread's area has a link of a list at the address: its neighbours lead back to it.
static bool is_link(const struct core_image *core, uint64_t at) {
    uint64_t link[2], back, forth;
    return core_read(core, at, link, sizeof link) && link[0] && link[1] &&
           read_word(core, link[0] + WORD, &back) && read_word(core, link[1], &forth) &&
           back == at && forth == at;
}

// The list of stacks that are in use or kept for threads to come. The memory of an ended thread
// whose stack the program itself provided is in none, and may be anything by now.
static bool is_listed(const struct core_image *core, uint64_t area) {
    for (uint64_t at = area + HEADER + WORD; at < area + THREAD_AREA_BYTES; at += WORD)
        if (is_link(core, at)) return true;
    return false;
}

static bool is_of_thread(const struct core_image *core, uint64_t area) {
    for (size_t i = 0; i < core->threads.count; i++)
        if (core->threads.items[i].pointer == area || !core->threads.items[i].pointer) return true;
    return false;
}

// glibc keeps stacks of threads that ended for those to come, with what they held. The area, which
// begins with the address of itself, twice (x86-64), stays a root: it has what the thread returned.
static bool leave_out_ended_in(const struct core_image *core, const struct memory_segment *segment,
                               struct spans *out) {
    const uint64_t end = segment->start + segment->bytes;
    uint64_t at = segment->bytes > THREAD_LOCAL_MOST ? end - THREAD_LOCAL_MOST : segment->start;
    uint8_t scratch[THREAD_LOCAL_MOST];
    const uint8_t *bytes;
    size_t size = core_piece(core, at, scratch, (size_t)(end - at), &bytes);
    for (size_t i = 0; i + POINTER_TO_ITSELF + WORD <= size; i += WORD) {
        const struct core_thread ended = {.pointer = at + i, .stack = at + i};
        struct span stack;
        uint64_t first, again;
        memcpy(&first, bytes + i, WORD);
        memcpy(&again, bytes + i + POINTER_TO_ITSELF, WORD);
        if (first != ended.pointer || again != first || is_of_thread(core, first)) continue;
        if (!find_stack(core, &ended, &stack) || !is_listed(core, first)) continue;
        if (!spans_add(out, stack.start, first)) return false;
    }
    return true;
}

static bool leave_out_ended(const struct core_image *core, struct spans *out) {
    bool is_ok = true;
    for (size_t i = 0; i < core->segments.count && is_ok; i++) {
        const struct memory_segment *segment = &core->segments.items[i];
        if (segment->is_writable && segment->bytes && !core_file_of(core, segment->start))
            is_ok = leave_out_ended_in(core, segment, out);
    }
    return is_ok;
}

// --- what else is no root

static bool is_searched(const struct memory_segment *segment) {
    return segment->bytes && (segment->is_writable || !segment->is_code);
}

// An arena's own words lead to headers of free chunks, which the blocks before them may use.
static bool leave_out_heap(const struct glibc_heap *heap, struct spans *out) {
    bool is_ok = true;
    for (size_t i = 0; i < heap->ranges.count && is_ok; i++) {
        const struct glibc_range *range = &heap->ranges.items[i];
        is_ok = spans_add(out, range->is_main ? range->first : range->start, range->end) &&
                spans_add(out, range->arena, range->arena + ARENA_BYTES);
    }
    for (size_t i = 0; i < heap->other.memory.items.count && is_ok; i++) {
        const struct span *span = &heap->other.memory.items.items[i];
        is_ok = spans_add(out, span->start, span->end);
    }
    for (size_t i = 0; i < heap->chunks.count && is_ok; i++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
        if (chunk->kind == CHUNK_MAPPED)
            is_ok = spans_add(out, chunk->address - HEADER, chunk->address + chunk->size);
    }
    return is_ok;
}

static bool is_cairn(const struct core_file *file) {
    return !strncmp(text_base_name(file->path), "libcairn", strlen("libcairn"));
}

// cairn's library; its zeroed data lies in memory without a name behind its file.
static bool leave_out_cairn(const struct core_image *core, struct spans *out) {
    bool is_ok = true;
    for (size_t i = 0; i < core->files.count && is_ok; i++) {
        const struct core_file *file = &core->files.items[i];
        if (!is_cairn(file)) continue;
        const struct memory_segment *behind = core_segment_of(core, file->end);
        bool is_zeroed = behind && behind->start == file->end && !core_file_of(core, file->end);
        is_ok = spans_add(out, file->start, is_zeroed ? behind->end : file->end);
    }
    return is_ok;
}

static bool is_elf(const struct source *source) {
    char magic[SELFMAG];
    return source_read(source, 0, magic, SELFMAG) == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG);
}

// The pages of a mapping that are as in its file.
static bool leave_out_equal(const struct core_image *core, const struct core_file *file,
                            const struct source *source, struct spans *out) {
    uint8_t scratch[CAIRN_PAGE_MOST], in_file[CAIRN_PAGE_MOST];
    const uint64_t page_bytes = core_page_bytes(core);
    const uint8_t *in_core;
    bool is_ok = true;
    for (uint64_t at = file->start; at < file->end && is_ok; at += page_bytes) {
        if (core_piece(core, at, scratch, page_bytes, &in_core) != page_bytes) break;
        uint64_t offset = file->offset + (at - file->start);
        size_t size = source_read(source, offset, in_file, page_bytes);
        if (size == page_bytes && !memcmp(in_core, in_file, page_bytes))
            is_ok = spans_add(out, at, at + page_bytes);
    }
    return is_ok;
}

// Pages of modules that nobody has written to: what looks like the address of a block is a number
// of the program's. A core has these pages, the copy of a process does not. Where the file is not
// the one that was mapped, or is not here, they stay roots.
static bool leave_out_unwritten(const struct core_image *core, struct spans *out) {
    bool is_ok = true;
    for (size_t i = 0; i < core->files.count && is_ok; i++) {
        const struct core_file *file = &core->files.items[i];
        const struct memory_segment *segment = core_segment_of(core, file->start);
        struct source source;
        if (!segment || !is_searched(segment) || !source_open(file->path, &source, NULL)) continue;
        is_ok = !is_elf(&source) || leave_out_equal(core, file, &source, out);
        source_close(&source);
    }
    return is_ok;
}

static bool leave_out(const struct core_image *core, const struct glibc_heap *heap,
                      const struct spans *others, struct spans *out) {
    bool is_ok = leave_out_heap(heap, out) && leave_out_dead(core, out) &&
                 leave_out_ended(core, out) && leave_out_cairn(core, out) &&
                 leave_out_unwritten(core, out);
    for (size_t i = 0; i < others->items.count && is_ok; i++)
        is_ok = spans_add(out, others->items.items[i].start, others->items.items[i].end);
    spans_settle(out);
    return is_ok;
}

bool core_find_roots(const struct core_image *core, const struct glibc_heap *heap,
                     const struct spans *others, struct spans *roots) {
    struct spans out = {0};
    bool is_ok = leave_out(core, heap, others, &out);
    for (size_t i = 0; i < core->segments.count && is_ok; i++) {
        const struct memory_segment *segment = &core->segments.items[i];
        struct span gap;
        uint64_t at = segment->start;
        if (!is_searched(segment)) continue;
        while (is_ok && spans_gap(&out, &at, segment->start + segment->bytes, &gap))
            is_ok = spans_add(roots, gap.start, gap.end);
    }
    spans_free(&out);
    return is_ok;
}

static const struct core_thread *thread_of(const struct core_image *core, uint64_t address) {
    for (size_t i = 0; i < core->threads.count; i++) {
        const struct core_thread *thread = &core->threads.items[i];
        struct span stack;
        if (stack_of(core, thread, &stack) && address >= stack.start && address < stack.end)
            return thread;
    }
    return NULL;
}

static struct core_root data_root(const struct core_image *core, uint64_t address) {
    const struct core_file *file = core_module_of(core, address);
    return (struct core_root){.kind = file ? ROOT_DATA : ROOT_OTHER, .file = file};
}

struct core_root core_root_of(const struct core_image *core, uint64_t address) {
    const struct core_thread *thread = thread_of(core, address);
    if (thread) return (struct core_root){.kind = ROOT_STACK, .thread = thread};
    return data_root(core, address);
}

static bool has_stack(const struct core_image *core, const struct memory_segment *segment) {
    for (size_t i = 0; i < core->threads.count; i++) {
        struct span stack;
        if (stack_of(core, &core->threads.items[i], &stack) && stack.start < segment->end &&
            stack.end > segment->start)
            return true;
    }
    return false;
}

struct core_root core_root_near(const struct core_image *core, uint64_t address,
                                const struct memory_segment **plain) {
    const struct memory_segment *segment = *plain;
    bool is_plain = segment && address >= segment->start && address < segment->end;
    if (is_plain) return data_root(core, address);
    segment = core_segment_of(core, address);
    if (segment && !has_stack(core, segment)) *plain = segment;
    return core_root_of(core, address);
}

bool core_file_is_allocator(const struct core_file *file) {
    static const char *const names[] = {
        "libjemalloc",  "libtcmalloc", "libmimalloc", "libhoard", "libsnmalloc",
        "libtbbmalloc", "librpmalloc", "ld-musl",     "libscudo", "libclang_rt.scudo"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(text_base_name(file->path), names[i], strlen(names[i]))) return true;
    return false;
}
