// SPDX-License-Identifier: Apache-2.0
// Memory for code behind a guard page, as compilers in a program map it, is no thread's stack; the
// twin takes it from malloc.
//
// claim: now_other
// file: now
// flags: -O2
#include "now.h"

int main(void) {
    const size_t bytes = 12 * MIB, page = 4096;
    if (HOLDS) {
        char *guard = mmap(NULL, bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mprotect(guard + page, bytes, PROT_READ | PROT_WRITE | PROT_EXEC)) return 1;
        memset(guard + page, 1, bytes);
    } else {
        take_blocks(bytes, 0);
    }
    ledger("bytes", (double)bytes, (double)bytes * 1.1);
    ledger_name("what", "mapped by the program");
    wait_for_input();
    return seen != NULL;
}
