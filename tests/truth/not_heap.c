// SPDX-License-Identifier: Apache-2.0
// Memory that the program maps itself; its twin allocates as much.
//
// claim: not_heap
// true: bytes live_bytes what
// flags: -O2
// flags: -O0 -s -DTHREADS=8
// needs: look-at-peak looks
#include "ledger.h"
#include <sys/mman.h>

enum { MAPPED = 48 << 20, BLOCKS = 800, BYTES = 10000, IDLE_MS = 1200 };

static void *take(size_t bytes) {
    if (!HOLDS) return malloc(bytes);
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static char *blocks[BLOCKS];

static void *work(void *thread) {
    seen = memset(take(MAPPED / THREADS), 1, MAPPED / THREADS);
    return thread;
}

int main(void) {
    for (int i = 0; i < BLOCKS; i++) blocks[i] = memset(malloc(BYTES), 1, BYTES);
    in_threads(work);
    wait_ms(IDLE_MS);
    // a reading near the peak, which is not the peak itself beside busy processes
    ledger("bytes", MAPPED * 0.7, MAPPED + 3e6);
    ledger("live_bytes", (double)BLOCKS * BYTES, (double)BLOCKS * BYTES + 300000);
    ledger_name("what", "mapped by the program itself");
    return 0;
}
