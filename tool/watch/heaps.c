// SPDX-License-Identifier: Apache-2.0
// A heap begins with four words, in glibc since 2.17: address of its arena, the heap before it (0:
// none, then the arena follows in the same page), its size, and how much of it is accessible.
#include "tool/watch/heaps.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "tool/watch/pages.h"

enum { PAGE_BYTES = 4096, ALIGN_BYTES = 16 };
static const uint64_t heap_bytes = 64 << 20;

struct beginning {
    uint64_t arena, previous, size, accessible_bytes;
};

static bool read_beginning(pid_t pid, uint64_t address, struct beginning *beginning) {
    struct iovec mine = {beginning, sizeof *beginning};
    struct iovec theirs = {(void *)(uintptr_t)address,
                           sizeof *beginning};  // NOLINT: of the process
    return process_vm_readv(pid, &mine, 1, &theirs, 1, 0) == (ssize_t)sizeof *beginning;
}

// Arenas lie near the beginning of the first of their heaps, which is another one if there is one
// before.
static bool is_heap(const struct beginning *beginning, uint64_t start, uint64_t end) {
    uint64_t in_heap = beginning->arena % heap_bytes, first = beginning->arena - in_heap;
    bool has_arena =
        in_heap >= sizeof *beginning && in_heap < PAGE_BYTES && in_heap % ALIGN_BYTES == 0;
    bool is_linked = beginning->previous % heap_bytes == 0 &&
                     (first == start) == !beginning->previous && beginning->previous != start;
    uint64_t accessible = beginning->accessible_bytes;
    return has_arena && is_linked && beginning->size <= accessible && accessible <= heap_bytes &&
           accessible && accessible % PAGE_BYTES == 0 && accessible <= end - start;
}

uint64_t heaps_present_bytes(pid_t pid, int pages, uint64_t start, uint64_t end) {
    uint64_t present = 0, at = (start + heap_bytes - 1) / heap_bytes * heap_bytes;
    for (; at >= start && at < end; at += heap_bytes) {
        struct beginning beginning;
        bool is_present;
        pages_are_present(pages, at, 1, &is_present);
        if (is_present && read_beginning(pid, at, &beginning) && is_heap(&beginning, at, end))
            present += pages_present_bytes(pages, at, at + beginning.accessible_bytes);
    }
    return present;
}
