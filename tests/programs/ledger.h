// SPDX-License-Identifier: Apache-2.0
// A program's own account of its blocks, kept where it outlives the program: in the file that
// LEDGER names, mapped shared. tests/tools/ledger.py reads it and compares a recording with it.
//
// Every thread of every process writes a line of its own. A line is changed after the call it
// counts, so that a recording is never behind it and at most one event ahead. All counted blocks
// are made by ledger_take, which is therefore on their stacks.
#ifndef TESTS_PROGRAMS_LEDGER_H
#define TESTS_PROGRAMS_LEDGER_H

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEDGER_LINES 32768u

struct ledger_line {
    uint64_t pid, tid;
    uint64_t allocations, allocated_bytes, frees, freed_bytes;
    uint64_t inherited_blocks, inherited_bytes;
};

static struct ledger_line *ledger_lines;  // line 0: `pid` is the number of lines in use
static __thread struct ledger_line *ledger;
static __thread struct ledger_line ledger_own;
// A signal handler that leaves the account to another process must not come now.
static __thread volatile sig_atomic_t ledger_is_changing;

// A new line for this thread.
static inline void ledger_begin(void) {
    uint64_t number = __atomic_add_fetch(&ledger_lines->pid, 1, __ATOMIC_RELAXED);
    if (number >= LEDGER_LINES) abort();
    ledger = &ledger_lines[number];
    ledger_own = (struct ledger_line){.pid = (uint64_t)syscall(SYS_getpid),
                                      .tid = (uint64_t)syscall(SYS_gettid)};
    *ledger = ledger_own;
}

static inline void ledger_open(void) {
    const char *path = getenv("LEDGER");
    const size_t bytes = LEDGER_LINES * sizeof *ledger_lines;
    int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file >= 0 && ftruncate(file, (off_t)bytes)) abort();
    int flags = MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0);
    ledger_lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    if (ledger_lines == MAP_FAILED) abort();
    if (file >= 0) close(file);
    ledger_begin();
}

// In a forked child whose parent had no other thread: it owns a copy of what lived then.
static inline void ledger_inherit(void) {
    const struct ledger_line old = ledger_own;
    ledger_begin();
    ledger_own.inherited_blocks = old.inherited_blocks + old.allocations - old.frees;
    ledger_own.inherited_bytes = old.inherited_bytes + old.allocated_bytes - old.freed_bytes;
    *ledger = ledger_own;
}

static inline void ledger_change_begin(void) {
    ledger_is_changing = 1;
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void ledger_change_end(void) {
    atomic_signal_fence(memory_order_seq_cst);
    ledger_is_changing = 0;
}

__attribute__((noinline, unused)) static void *ledger_take(size_t bytes) {
    void *block = malloc(bytes);
    ledger_change_begin();
    ledger->allocations = ++ledger_own.allocations;
    ledger->allocated_bytes = ledger_own.allocated_bytes += bytes;
    ledger_change_end();
    return block;
}

// `bytes` is what the block was taken with.
static inline void ledger_give(void *block, size_t bytes) {
    free(block);
    ledger_change_begin();
    ledger->frees = ++ledger_own.frees;
    ledger->freed_bytes = ledger_own.freed_bytes += bytes;
    ledger_change_end();
}

#endif
