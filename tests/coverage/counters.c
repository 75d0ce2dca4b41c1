// SPDX-License-Identifier: Apache-2.0
// Counters of `make coverage`, in the tool and in each library of the runtime: in one file for all
// processes, mapped shared. So nothing has to be written at a process' end, which many never reach:
// they are killed, or call _exit. Where the file cannot be had (another namespace, another user)
// the process counts for itself, and that is lost. The counters are not atomic: figures may be low,
// but what ran once is not zero.
//
// Started with COVERAGE_OUT=FILE, a program writes the sums of all to that file as llvm-profdata
// reads them, and ends. A library does so when it is opened.

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// Of clang: counters are looked for so many bytes from where they were linked.
extern __attribute__((visibility("hidden"))) intptr_t __llvm_profile_counter_bias;
extern __attribute__((visibility("hidden"))) uint64_t __start___llvm_prf_cnts[],
    __stop___llvm_prf_cnts[];
uint64_t __llvm_profile_get_size_for_buffer(void);
int __llvm_profile_write_buffer(char *buffer);

// Keeps clang's own way to write counters out of the program.
__attribute__((visibility("hidden"))) int __llvm_profile_runtime;

// The system calls themselves: in a library of the runtime, mmap is one of its wrappers.
static void *map(uint64_t bytes, int flags, int fd) {
    long place = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0L);
    return place == -1 ? NULL : (void *)(intptr_t)place;
}

static void write_sums(const char *path, const uint64_t *sums, uint64_t bytes) {
    uint64_t all_bytes = __llvm_profile_get_size_for_buffer();
    char *buffer = map(all_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    bool is_written = false;
    if (buffer && fd >= 0) {
        memcpy(__start___llvm_prf_cnts, sums, bytes);
        is_written = __llvm_profile_write_buffer(buffer) == 0 &&
                     write(fd, buffer, all_bytes) == (ssize_t)all_bytes;
    }
    _exit(is_written ? 0 : 1);
}

// First of all constructors: what runs before is added.
__attribute__((constructor(101))) static void share_counters(void) {
    uint64_t bytes = (uint64_t)((char *)__stop___llvm_prf_cnts - (char *)__start___llvm_prf_cnts);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, CAIRN_COUNTERS, O_RDWR | O_CLOEXEC, 0);
    uint64_t *shared = fd < 0 ? NULL : map(bytes, MAP_SHARED, fd);
    if (fd >= 0) syscall(SYS_close, fd);
    if (!shared) return;
    const char *out = getenv("COVERAGE_OUT");
    if (out) write_sums(out, shared, bytes);
    for (uint64_t i = 0; i < bytes / sizeof *shared; i++) shared[i] += __start___llvm_prf_cnts[i];
    __llvm_profile_counter_bias = (char *)shared - (char *)__start___llvm_prf_cnts;
}
