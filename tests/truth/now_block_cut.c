// SPDX-License-Identifier: Apache-2.0
// One block of malloc whose mapping was cut in three, since a part of it is not to be forked; the
// twin's is a mapping of its own.
//
// claim: now_block
// file: now
// flags: -O2
#include "now.h"

int main(void) {
    const size_t bytes = 48 * MIB, third = bytes / 3;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    uint64_t *words =
        HOLDS ? malloc(bytes) : mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    for (size_t i = 0; i < bytes / sizeof *words; i++) words[i] = next_random();
    char *inner = (char *)((uintptr_t)words / MIB * MIB + third);
    if (madvise(inner, third, MADV_DONTFORK)) return 1;
    seen = words;
    ledger("bytes", (double)bytes, (double)bytes * 1.01);
    wait_for_input();
    return 0;
}
