// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tool/proc/process.h"

enum { RUNS_AT_ONCE = 512, THREADS_MAX = 8 };
static const uint64_t batch_bytes = 16 << 20, run_bytes_max = 4 << 20;

struct remote remote_of(pid_t pid) {
    return (struct remote){.pid = pid, .memory = -1, .pagemap = pagemap_none()};
}

bool remote_open(struct remote *remote, pid_t pid, struct error *error) {
    *remote = remote_of(pid);
    remote->memory = process_open(pid, "mem", O_RDWR);
    return remote->memory >= 0 || error_set(error, "/proc/%d/mem: %s", (int)pid, strerror(errno));
}

void remote_close(struct remote *remote) {
    if (remote->memory >= 0) close(remote->memory);
    remote->memory = -1;
    pagemap_close(&remote->pagemap);
}

// --- one part

static struct iovec span_at(uint64_t address, size_t size) {
    return (struct iovec){(void *)(uintptr_t)address, size};  // NOLINT: of the other process
}

// Returns how many bytes could be read, as read(2) does.
static ssize_t read_some(const struct remote *remote, uint64_t address, void *out, size_t size) {
    if (remote->memory >= 0) return pread(remote->memory, out, size, (off_t)address);
    struct iovec mine = {out, size}, theirs = span_at(address, size);
    return process_vm_readv(remote->pid, &mine, 1, &theirs, 1, 0);
}

bool remote_read(const struct remote *remote, uint64_t address, void *out, size_t size) {
    uint8_t *at = out;
    if (address > INT64_MAX) return !size;
    while (size) {
        ssize_t got = read_some(remote, address, at, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        address += (uint64_t)got;
        size -= (size_t)got;
    }
    return true;
}

bool remote_write(const struct remote *remote, uint64_t address, const void *bytes, size_t size) {
    if (address > INT64_MAX) return !size;
    return pwrite(remote->memory, bytes, size, (off_t)address) == (ssize_t)size;
}

bool remote_read_text(const struct remote *remote, uint64_t address, char *text, size_t size) {
    const uint64_t page_bytes = remote->pagemap.page_bytes;
    size_t used = 0;
    while (used + 1 < size) {
        size_t part = (size_t)(page_bytes - (address + used) % page_bytes);
        if (part > size - 1 - used) part = size - 1 - used;
        if (!remote_read(remote, address + used, text + used, part)) break;
        if (memchr(text + used, 0, part)) return true;
        used += part;
    }
    text[used] = 0;
    return used > 0;
}

bool remote_read_present(const struct remote *remote, uint64_t address, void *out, size_t size) {
    const uint64_t page_bytes = remote->pagemap.page_bytes;
    bool has_any = false;
    memset(out, 0, size);
    for (size_t done = 0; done < size;) {
        uint64_t at = address + done;
        size_t part = (size_t)(page_bytes - at % page_bytes);
        uint8_t flags;
        if (part > size - done) part = size - done;
        pagemap_flags(&remote->pagemap, at, 1, &flags);
        bool has_content = flags & (PAGE_RESIDENT | PAGE_OWN);
        if (has_content && remote_read(remote, at, (uint8_t *)out + done, part)) has_any = true;
        done += part;
    }
    return has_any;
}

// --- as a memory_reader

static bool reader_read(const void *context, uint64_t address, void *bytes, size_t size) {
    return remote_read(context, address, bytes, size);
}

struct memory_reader remote_reader(const struct remote *remote) {
    return (struct memory_reader){.read = reader_read, .context = remote};
}

// --- many parts

size_t remote_gather(const struct remote *remote, const struct remote_span *spans, size_t count,
                     void *out) {
    struct iovec mine = {out, 0}, theirs[IOV_MAX];
    if (count > IOV_MAX) count = IOV_MAX;
    for (size_t i = 0; i < count; i++) {
        theirs[i] = span_at(spans[i].address, spans[i].size);
        mine.iov_len += spans[i].size;
    }
    ssize_t got = process_vm_readv(remote->pid, &mine, 1, theirs, count, 0);
    return got > 0 ? (size_t)got : 0;
}

bool remote_add_run(struct remote_runs *runs, uint64_t address, uint8_t *to, uint64_t size) {
    for (uint64_t done = 0; done < size;) {
        uint64_t part = size - done < run_bytes_max ? size - done : run_bytes_max;
        struct remote_run *run = array_push(&runs->items);
        if (!run) return false;
        *run = (struct remote_run){address + done, to + done, part};
        done += part;
    }
    return true;
}

// What can be read of one run.
static uint64_t copy_run(const struct remote *remote, const struct remote_run *run) {
    ssize_t got = read_some(remote, run->address, run->to, run->size);
    return got > 0 ? (uint64_t)got : 0;
}

// One call for at most RUNS_AT_ONCE of them; where it stops early, one call for each.
static uint64_t copy_some(const struct remote *remote, const struct remote_run *runs,
                          size_t count) {
    struct iovec mine[RUNS_AT_ONCE], theirs[RUNS_AT_ONCE];
    uint64_t wanted = 0, got = 0;
    if (!count) return 0;
    for (size_t i = 0; i < count; i++) {
        mine[i] = (struct iovec){runs[i].to, runs[i].size};
        theirs[i] = span_at(runs[i].address, runs[i].size);
        wanted += runs[i].size;
    }
    ssize_t done = process_vm_readv(remote->pid, mine, count, theirs, count, 0);
    if (done >= 0 && (uint64_t)done == wanted) return wanted;
    for (size_t i = 0; i < count; i++) got += copy_run(remote, &runs[i]);
    return got;
}

// Runs that several threads copy, a batch at a time.
struct copying {
    const struct remote *remote;
    const struct remote_run *runs;
    size_t count;
    pthread_mutex_t lock;  // of what follows
    size_t next;
    uint64_t copied;
};

// Adds what the caller's last batch copied and takes the next one; returns how many runs it has.
static size_t next_batch(struct copying *copying, uint64_t copied,
                         const struct remote_run **first) {
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
    const struct remote_run *first;
    uint64_t copied = 0;
    for (size_t count; (count = next_batch(copying, copied, &first));)
        copied = copy_some(copying->remote, first, count);
    return NULL;
}

// How many threads help this one: the process may be stopped meanwhile.
static size_t helper_count(const struct remote_run *runs, size_t count) {
    uint64_t bytes = 0;
    long most = sysconf(_SC_NPROCESSORS_ONLN);
    for (size_t i = 0; i < count; i++) bytes += runs[i].size;
    size_t wanted = bytes / (2 * batch_bytes);
    if (most > THREADS_MAX) most = THREADS_MAX;
    return most > 1 && wanted > (size_t)most - 1 ? (size_t)most - 1 : most > 1 ? wanted : 0;
}

uint64_t remote_copy(const struct remote *remote, const struct remote_run *runs, size_t count) {
    if (!count) return 0;
    struct copying copying = {
        .remote = remote, .runs = runs, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t helpers[THREADS_MAX];
    size_t started = 0, wanted = helper_count(runs, count);
    while (started < wanted && !pthread_create(&helpers[started], NULL, copy_batches, &copying))
        started++;
    copy_batches(&copying);
    for (size_t i = 0; i < started; i++) pthread_join(helpers[i], NULL);
    return copying.copied;
}

enum { FLAGS_AT_ONCE = 1024 };

static void read_flags(const struct remote *remote, uint8_t wanted, uint64_t at, size_t count,
                       uint8_t *flags) {
    if (remote->pagemap.file < 0)
        memset(flags, wanted, count);
    else
        pagemap_flags(&remote->pagemap, at, count, flags);
}

void page_heads_read(struct page_heads *heads, const struct remote *remote, uint8_t wanted,
                     uint64_t at, uint64_t end) {
    const uint64_t page_bytes = remote->pagemap.page_bytes;
    struct remote_run runs[PAGE_HEADS_MAX];
    uint8_t flags[FLAGS_AT_ONCE];
    heads->count = 0;
    for (heads->end = at; heads->end < end && heads->count < PAGE_HEADS_MAX;) {
        uint64_t left = (end - heads->end + page_bytes - 1) / page_bytes;
        size_t some = left < FLAGS_AT_ONCE ? (size_t)left : FLAGS_AT_ONCE;
        read_flags(remote, wanted, heads->end, some, flags);
        for (size_t i = 0; i < some && heads->count < PAGE_HEADS_MAX; i++) {
            uint64_t page = heads->end;
            heads->end += page_bytes;
            struct page_head *head = &heads->items[heads->count];
            if (!(flags[i] & wanted)) continue;
            *head = (struct page_head){.address = page};
            runs[heads->count++] =
                (struct remote_run){head->address, (uint8_t *)head->words, sizeof head->words};
        }
    }
    remote_copy(remote, runs, heads->count);
}
