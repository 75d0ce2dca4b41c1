// SPDX-License-Identifier: Apache-2.0
// The wrapped functions that map memory: passed on as they are, but with --mmap noted too; and
// what is taken away is no longer known as readable (managed/memory.h), neither before the call nor
// to who looked meanwhile. What libc maps itself, such as its arenas and the stacks of threads,
// does not come by here.
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "runtime/managed/memory.h"
#include "runtime/process/real.h"
#include "runtime/process/state.h"
#include "runtime/python/python.h"
#include "runtime/record/event.h"
#include "runtime/record/mapped.h"
#include "runtime/thread/gate.h"

#define EXPORT __attribute__((visibility("default"), used))

// Declared here with plain parameters: mremap is variadic, which these ABIs pass alike.
void *mmap_hook(void *address, size_t length, int protection, int flags, int file,
                long offset) __asm__("mmap");
void *mmap64_hook(void *address, size_t length, int protection, int flags, int file,
                  long offset) __asm__("mmap64");
void *mremap_hook(void *old, size_t old_length, size_t length, int flags,
                  void *address) __asm__("mremap");

// Memory that is mapped anew without a right to read it is taken away.
static bool is_taking(int protection, int flags) {
    return unlikely(protection == PROT_NONE && flags & MAP_FIXED);
}

// The process may live under a limit that nobody has told us of.
static COLD bool is_relieved(uintptr_t *frame) {
    return errno == ENOMEM && !gate_is_busy() && process_relieve((uintptr_t)frame);
}

static NOINLINE void *mmap_recorded(void *address, size_t length, int protection, int flags,
                                    int file, long offset) {
    void *result = real.mmap(address, length, protection, flags, file, offset);
    int saved_errno = errno;
    if (is_taking(protection, flags)) memory_note_change();
    const struct mapped_call call = {length, protection, flags, file};
    if (result != MAP_FAILED) mapped_note_map(result, &call, EVENT_HERE());
    errno = saved_errno;
    return result;
}

EXPORT void *mmap_hook(void *address, size_t length, int protection, int flags, int file,
                       long offset) {
    bool is_taken = is_taking(protection, flags);
    if (is_taken) memory_note_change();
    if (unlikely(mapped_is_on))
        return mmap_recorded(address, length, protection, flags, file, offset);
    void *result = real.mmap(address, length, protection, flags, file, offset);
    if (unlikely(result == MAP_FAILED) && is_relieved(EVENT_HERE()))
        result = real.mmap(address, length, protection, flags, file, offset);
    if (is_taken) memory_note_change();
    return result;
}

EXPORT void *mmap64_hook(void *address, size_t length, int protection, int flags, int file,
                         long offset) {
    bool is_taken = is_taking(protection, flags);
    if (is_taken) memory_note_change();
    if (unlikely(mapped_is_on))
        return mmap_recorded(address, length, protection, flags, file, offset);
    void *result = real.mmap64(address, length, protection, flags, file, offset);
    if (unlikely(result == MAP_FAILED) && is_relieved(EVENT_HERE()))
        result = real.mmap64(address, length, protection, flags, file, offset);
    if (is_taken) memory_note_change();
    return result;
}

static NOINLINE void *mremap_recorded(void *old, size_t old_length, size_t length, int flags,
                                      void *address) {
    uint32_t stamp = mapped_stamp();
    void *result = real.mremap(old, old_length, length, flags, address);
    int saved_errno = errno;
    memory_note_change();
    const struct mapped_move move = {old, old_length, result, length, flags, stamp};
    if (result != MAP_FAILED) mapped_note_move(&move, EVENT_HERE());
    errno = saved_errno;
    return result;
}

EXPORT void *mremap_hook(void *old, size_t old_length, size_t length, int flags, void *address) {
    memory_note_change();
    if (unlikely(mapped_is_on)) return mremap_recorded(old, old_length, length, flags, address);
    void *result = real.mremap(old, old_length, length, flags, address);
    memory_note_change();
    return result;
}

static NOINLINE int munmap_recorded(void *address, size_t length) {
    uint32_t stamp = mapped_stamp();
    int result = real.munmap(address, length);
    int saved_errno = errno;
    memory_note_change();
    if (result == 0) mapped_note_unmap(address, length, stamp, EVENT_HERE());
    errno = saved_errno;
    return result;
}

EXPORT int munmap(void *address, size_t length) {
    memory_note_change();
    if (unlikely(python.can_be_read) && unlikely(python_is_ending())) python_await_readers();
    if (unlikely(mapped_is_on)) return munmap_recorded(address, length);
    int result = real.munmap(address, length);
    memory_note_change();
    return result;
}

EXPORT int mprotect(void *address, size_t length, int protection) {
    bool is_taken = unlikely(!(protection & PROT_READ));
    if (is_taken) memory_note_change();
    int result = real.mprotect(address, length, protection);
    if (is_taken) memory_note_change();
    return result;
}
