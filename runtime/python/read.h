// SPDX-License-Identifier: Apache-2.0
// Reading the interpreter's memory: directly, or where it may vanish by a system call that fails
// then.
#ifndef RUNTIME_PYTHON_READ_H
#define RUNTIME_PYTHON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

// True if the bytes could be read, all of them.
bool python_read_carefully(uintptr_t address, void *bytes, size_t size);

ALWAYS_INLINE bool python_read(bool is_careful, uintptr_t address, void *bytes, size_t size) {
#if defined(__aarch64__)
    const unsigned user_bits = 48;
#else
    const unsigned user_bits = 47;
#endif
    if (unlikely(address < SYS_PAGE_LEAST || address >> user_bits || address % sizeof address))
        return false;
    if (unlikely(is_careful)) return python_read_carefully(address, bytes, size);
    __builtin_memcpy(bytes, (const void *)address, size);
    return true;
}

#endif
