// SPDX-License-Identifier: Apache-2.0
// A library with thread-local data of its own, more than the dynamic linker keeps room for beside
// threads: each thread gets a block for it when it first comes here.
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4, TEXT_BYTES = 3000, PAD_BYTES = 1 << 15 };

struct kept {
    char *texts[SLOTS];
};

_Thread_local char kept_pad[PAD_BYTES];
_Thread_local struct kept *kept_here;
_Thread_local char *kept_text;

void keeper_fill(void);

// Of each thread: a table of four texts, and a text.
void keeper_fill(void) {
    kept_pad[0] = 1;
    kept_here = calloc(1, sizeof *kept_here);
    for (int i = 0; i < SLOTS; i++) {
        kept_here->texts[i] = malloc(TEXT_BYTES);
        memset(kept_here->texts[i], 'x', TEXT_BYTES);
    }
    kept_text = malloc(TEXT_BYTES);
    memset(kept_text, 'y', TEXT_BYTES);
}
