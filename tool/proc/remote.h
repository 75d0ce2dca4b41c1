// SPDX-License-Identifier: Apache-2.0
// The memory of another process. It is read by process_vm_readv or, once opened, through
// /proc/PID/mem, which can also write pages that the process itself may not write. Both need the
// permission that ptrace needs.
//
// The first words of a process' pages, by which an allocator's large blocks and heaps are known.
// Only pages that have memory are read, so that the process gets none by it.
#ifndef TOOL_PROC_REMOTE_H
#define TOOL_PROC_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/proc/memory_reader.h"
#include "tool/proc/pagemap.h"

struct remote {
    pid_t pid;
    int memory;  // descriptor of /proc/PID/mem; -1: closed, for reading only
    struct pagemap pagemap;
};

// For reading without descriptors; it need not be closed.
struct remote remote_of(pid_t pid);

// Opens /proc/PID/mem for reading and writing.
bool remote_open(struct remote *remote, pid_t pid, struct error *error);
void remote_close(struct remote *remote);

// All or nothing; false if a page is not there.
bool remote_read(const struct remote *remote, uint64_t address, void *out, size_t size);
bool remote_write(const struct remote *remote, uint64_t address, const void *bytes, size_t size);

// Reads a text that ends in NUL, cut to `size` with it; false if its start cannot be read.
bool remote_read_text(const struct remote *remote, uint64_t address, char *text, size_t size);

// Reads only pages of private memory that have content, by `remote->pagemap`; others read as zeros.
// (Reading a page without memory would make the kernel map the zero page.) False if none has.
bool remote_read_present(const struct remote *remote, uint64_t address, void *out, size_t size);

// As a memory_reader; `remote` must outlive it.
struct memory_reader remote_reader(const struct remote *remote);

// A part of the process' memory.
struct remote_span {
    uint64_t address;
    size_t size;
};

// Reads spans, at most IOV_MAX, one behind the other. Returns how many bytes it read up to the
// first one that is not there.
size_t remote_gather(const struct remote *remote, const struct remote_span *spans, size_t count,
                     void *out);

// A part of the process' memory and where its copy goes.
struct remote_run {
    uint64_t address;
    uint8_t *to;
    size_t size;
};

// Pieces of at most some MiB, which several threads can share.
struct remote_runs {
    ARRAY(struct remote_run) items;
};

// Adds a run, in pieces. False without memory.
bool remote_add_run(struct remote_runs *runs, uint64_t address, uint8_t *to, uint64_t size);

// Copies runs, by several threads if they are large. Returns how many bytes it could copy; a run
// that cannot be read keeps what was there.
uint64_t remote_copy(const struct remote *remote, const struct remote_run *runs, size_t count);

enum { PAGE_HEADS_MAX = 512, PAGE_HEAD_WORDS = 4 };

struct page_head {
    uint64_t address;
    uint64_t words[PAGE_HEAD_WORDS];  // 0 if they could not be read
};

struct page_heads {
    struct page_head items[PAGE_HEADS_MAX];
    size_t count;
    uint64_t end;  // the pages from `at` to here were checked
};

// Reads the heads of the next pages from `at` on that have one of the flags `wanted` (pagemap.h),
// by `remote->pagemap`; of all pages if that is closed. It stops at `end` or when `heads` is full.
void page_heads_read(struct page_heads *heads, const struct remote *remote, uint8_t wanted,
                     uint64_t at, uint64_t end);

#endif
