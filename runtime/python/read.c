// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/read.h"

#include <sys/syscall.h>
#include <sys/uio.h>

bool python_read_carefully(uintptr_t address, void *bytes, size_t size) {
    struct iovec here = {bytes, size}, there = {(void *)address, size};
    if (!size) return true;
    if (sys_is_confined()) return false;
    return sys_call(SYS_process_vm_readv, sys_pid(), (long)&here, 1, (long)&there, 1, 0) ==
           (long)size;
}

static bool is_page_readable(uintptr_t page) {
    uint64_t word;
    return sys_is_confined() ||  // where nothing may be asked
           python_read_carefully(page << PYTHON_PAGE_SHIFT, &word, sizeof word);
}

NOINLINE bool python_page_look(struct python_memory *memory, uintptr_t page) {
    uintptr_t *ways = memory->pages[page % PYTHON_PAGE_SETS];
    unsigned way = 1;
    while (way < PYTHON_PAGE_WAYS && ways[way] != page) way++;
    if (way == PYTHON_PAGE_WAYS && !is_page_readable(page)) return false;
    if (way == PYTHON_PAGE_WAYS) way--;
    for (; way > 0; way--) ways[way] = ways[way - 1];
    ways[0] = page;
    return true;
}
