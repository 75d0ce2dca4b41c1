// SPDX-License-Identifier: Apache-2.0
// A file of massif, which does not know what was allocated in between; its twin is one of
// heaptrack, which knows each call.
//
// claim: not_exact
// flags: -O1
// file: import
#include "ledger.h"

static const char massif[] =
    "desc: --detailed-freq=1\ncmd: program\ntime_unit: i\n"
    "#-----------\nsnapshot=0\n#-----------\ntime=1\nmem_heap_B=100\n"
    "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=peak\n"
    "n1: 100 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
    " n0: 100 0x401000: take (a.c:1)\n";
static const char heaptrack[] = "v 10400 3\nX program\nI 1000 10\ns 7 program\ns 4 take\n"
                                "i 400100 1 2\nt 1 0\na 64 1\n+ 0\nc 5\n# strings: 2\n# ips: 1\n";

int main(int argc, char **argv) {
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!out) return 1;
    fputs(HOLDS ? massif : heaptrack, out);
    fclose(out);
    ledger("is_import", 1, 1);
    ledger("lost", 0, 0);
    return 0;
}
