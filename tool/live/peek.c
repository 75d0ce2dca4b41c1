// SPDX-License-Identifier: Apache-2.0
#include "tool/live/peek.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGES_AT_ONCE = 4096, RUNS_AT_ONCE = 512, THREADS_MAX = 8 };
static const uint64_t batch_bytes = 16 << 20;
// Of an entry of pagemap: Documentation/admin-guide/mm/pagemap.rst of the kernel.
static const uint64_t present_bit = 1ull << 63, swapped_bit = 1ull << 62, of_file_bit = 1ull << 61;

bool peek_open(struct peek *peek, pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/pagemap", (int)pid);
    *peek = (struct peek){.pid = pid, .pages = open(path, O_RDONLY | O_CLOEXEC)};
    return peek->pages >= 0;
}

void peek_close(struct peek *peek) {
    if (peek->pages >= 0) close(peek->pages);
    peek->pages = -1;
}

static uint8_t flags_of(uint64_t entry) {
    uint8_t flags = entry & present_bit ? PEEK_RESIDENT : 0;
    bool is_own = entry & (present_bit | swapped_bit) && !(entry & of_file_bit);
    return is_own ? flags | PEEK_OWN : flags;
}

void peek_pages(const struct peek *peek, uint64_t start, size_t count, uint8_t *flags) {
    uint64_t entries[PAGES_AT_ONCE];
    for (size_t done = 0; done < count;) {
        size_t some = count - done < PAGES_AT_ONCE ? count - done : PAGES_AT_ONCE;
        off_t at = (off_t)((start / PEEK_PAGE_BYTES + done) * sizeof *entries);
        ssize_t got = pread(peek->pages, entries, some * sizeof *entries, at);
        size_t known = got > 0 ? (size_t)got / sizeof *entries : 0;
        for (size_t i = 0; i < some; i++) flags[done + i] = i < known ? flags_of(entries[i]) : 0;
        done += some;
    }
}

static size_t read_run(pid_t pid, const struct peek_run *run) {
    struct iovec mine = {run->to, run->size};
    struct iovec theirs = {(void *)(uintptr_t)run->address, run->size};  // NOLINT: of the process
    ssize_t got = process_vm_readv(pid, &mine, 1, &theirs, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

// One call for all of them; where it stops early, one call for each.
static uint64_t read_runs(pid_t pid, const struct peek_run *runs, size_t count) {
    struct iovec mine[RUNS_AT_ONCE], theirs[RUNS_AT_ONCE];
    uint64_t wanted = 0, got = 0;
    if (!count) return 0;
    for (size_t i = 0; i < count; i++) {
        mine[i] = (struct iovec){runs[i].to, runs[i].size};
        theirs[i] = (struct iovec){(void *)(uintptr_t)runs[i].address, runs[i].size};  // NOLINT
        wanted += runs[i].size;
    }
    ssize_t done = process_vm_readv(pid, mine, count, theirs, count, 0);
    if (done >= 0 && (uint64_t)done == wanted) return wanted;
    for (size_t i = 0; i < count; i++) got += read_run(pid, &runs[i]);
    return got;
}

// Runs that several threads copy, a batch at a time.
struct copying {
    const struct peek *peek;
    const struct peek_run *runs;
    size_t count;
    pthread_mutex_t lock;  // of what follows
    size_t next;
    uint64_t copied;
};

// How many runs are the next batch; notes what came of the last one.
static size_t next_batch(struct copying *copying, uint64_t copied, const struct peek_run **first) {
    uint64_t bytes = 0;
    size_t count = 0;
    pthread_mutex_lock(&copying->lock);
    copying->copied += copied;
    *first = copying->runs + copying->next;
    for (; copying->next < copying->count && count < RUNS_AT_ONCE && bytes < batch_bytes; count++)
        bytes += copying->runs[copying->next++].size;
    pthread_mutex_unlock(&copying->lock);
    return count;
}

static void *copy_batches(void *context) {
    struct copying *copying = context;
    const struct peek_run *first;
    uint64_t copied = 0;
    for (size_t count; (count = next_batch(copying, copied, &first));)
        copied = read_runs(copying->peek->pid, first, count);
    return NULL;
}

// More threads than this one where there is much to copy: the process stands meanwhile.
static size_t helper_count(const struct peek_run *runs, size_t count) {
    uint64_t bytes = 0;
    long most = sysconf(_SC_NPROCESSORS_ONLN);
    for (size_t i = 0; i < count; i++) bytes += runs[i].size;
    size_t wanted = bytes / (2 * batch_bytes);
    if (most > THREADS_MAX) most = THREADS_MAX;
    return most > 1 && wanted > (size_t)most - 1 ? (size_t)most - 1 : most > 1 ? wanted : 0;
}

uint64_t peek_copy(const struct peek *peek, const struct peek_run *runs, size_t count) {
    struct copying copying = {
        .peek = peek, .runs = runs, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t helpers[THREADS_MAX];
    size_t started = 0, wanted = helper_count(runs, count);
    while (started < wanted && !pthread_create(&helpers[started], NULL, copy_batches, &copying))
        started++;
    copy_batches(&copying);
    for (size_t i = 0; i < started; i++) pthread_join(helpers[i], NULL);
    return copying.copied;
}

bool peek_read(const struct peek *peek, uint64_t address, void *out, size_t size) {
    bool has_any = false;
    memset(out, 0, size);
    for (size_t done = 0; done < size;) {
        uint64_t at = address + done, page = at / PEEK_PAGE_BYTES * PEEK_PAGE_BYTES;
        size_t part = (size_t)(page + PEEK_PAGE_BYTES - at);
        uint8_t flags;
        if (part > size - done) part = size - done;
        peek_pages(peek, page, 1, &flags);
        const struct peek_run run = {at, (uint8_t *)out + done, part};
        if (flags && read_run(peek->pid, &run) == part) has_any = true;
        done += part;
    }
    return has_any;
}
