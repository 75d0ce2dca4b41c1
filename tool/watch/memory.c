// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

// Sparse: address space for the largest recording. Less where a limit forbids it.
static const uint64_t memory_most_bytes = 6ull << 30, memory_least_bytes = 64ull << 20;

// Under a limit on address space, which is the program's too, no more than the program lays out
// (runtime/sink).
static uint64_t memory_space(void) {
    const uint64_t share = 8, page_bytes = 4096;
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur / share >= memory_most_bytes)
        return memory_most_bytes;
    return (limit.rlim_cur / share + page_bytes) & ~(page_bytes - 1);
}

static int memory_file(void) {
    int file = memfd_create("cairn", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    return file >= 0 ? file : memfd_create("cairn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

bool memory_make(struct memory *memory, struct error *error) {
    *memory = (struct memory){.file = -1};
    int file = memory_file();
    if (file < 0) return error_set(error, "memfd_create: %s", strerror(errno));
    return memory_adopt(memory, file, error);
}

bool memory_adopt(struct memory *memory, int file, struct error *error) {
    *memory = (struct memory){.file = file, .bytes = memory_space()};
    while (ftruncate(memory->file, (off_t)memory->bytes) != 0 && memory->bytes > memory_least_bytes)
        memory->bytes /= 2;
    void *mapping = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                         memory->file, 0);
    if (mapping == MAP_FAILED) {
        error_set(error, "cannot map a recording: %s", strerror(errno));
        close(memory->file);
        memory->file = -1;
        return false;
    }
    fcntl(memory->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    memory->header = mapping;
    return true;
}

void memory_close(struct memory *memory) {
    if (memory->header) munmap(memory->header, memory->bytes);
    if (memory->file >= 0) close(memory->file);
    *memory = (struct memory){.file = -1};
}

void memory_end_set_status(struct memory_end *end, int status) {
    end->has_exit = true;
    if (WIFSIGNALED(status)) end->exit_signal = WTERMSIG(status);
    if (WIFEXITED(status)) end->exit_status = WEXITSTATUS(status);
}

void memory_finish(struct cairn_header *copy, const struct memory_end *end) {
    if (end->rss_peak_bytes > copy->rss_peak_bytes) {
        copy->rss_peak_bytes = end->rss_peak_bytes;
        copy->is_rss_sampled = !end->is_rss_exact;
    }
    if (!copy->cpu_ns) copy->cpu_ns = end->cpu_ns;
    if (!end->is_over) return;
    if (copy->state != CAIRN_STATE_ENDED) copy->state = CAIRN_STATE_DIED;
    if (!copy->end_ns && end->end_ns > copy->start_clock_ns)
        copy->end_ns = end->end_ns - copy->start_clock_ns;
    copy->has_exit = end->has_exit;
    copy->exit_status = end->exit_status;
    copy->exit_signal = end->exit_signal;
}
