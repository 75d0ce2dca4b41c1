// SPDX-License-Identifier: Apache-2.0
// Each block is freed before the next one is allocated; in the twin after it. It is a recording of
// heaptrack: of its own ones cairn knows more, from blocks that were watched.
//
// claim: temporary
// flags: -O2
// file: import
// saves: calls totals.allocations
#include "ledger.h"

enum { CALLS = 12000 };

int main(int argc, char **argv) {
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!out) return 1;
    fputs("v 10400 3\nX program\nI 1000 10\ns 7 program\ns 4 take\ni 400100 1 2\nt 1 0\na 64 1\n",
          out);
    for (int i = 0; i < (MENDED ? 1 : CALLS / 4); i++)
        fputs(HOLDS ? "+ 0\n- 0\n+ 0\n- 0\n+ 0\n- 0\n+ 0\n- 0\n"
                    : "+ 0\n+ 0\n+ 0\n+ 0\n- 0\n- 0\n- 0\n- 0\n+ 0\n+ 0\n- 0\n- 0\n",
              out);
    fputs("c 5\n# strings: 2\n# ips: 1\n", out);
    fclose(out);
    ledger("blocks", CALLS, CALLS);
    ledger_name("where", "take");
    ledger("is_most", 1, 1);
    return 0;
}
