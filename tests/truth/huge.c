// SPDX-License-Identifier: Apache-2.0
// A large heap; its twin has less than what huge pages are worth for.
//
// claim: huge
// flags: -O2
// needs: small-pages looks
// fix: GLIBC_TUNABLES=glibc.malloc.hugetlb=1
// saves: faults measured.faults
#include "ledger.h"

#include <sys/resource.h>

enum { BLOCKS = 4, BYTES = HOLDS ? 40 << 20 : 24 << 20 };

int main(void) {
    for (int i = 0; i < BLOCKS; i++) seen = memset(malloc(BYTES), 1, BYTES);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    measured("faults", (double)usage.ru_minflt);
    wait_ms(1200);
    ledger("bytes", 128 << 20, 161 << 20);
    return 0;
}
