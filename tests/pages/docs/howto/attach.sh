# SPDX-License-Identifier: Apache-2.0
# A program that goes on by itself, until the page's directory goes.
cat >indexer.c <<'END'
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept[1500], *volatile gone;
int main(void) {
    for (int i = 0; i < 1500; i++) kept[i] = malloc(4000);
    for (int i = 0; !access("indexer.c", F_OK); i++) {
        free(kept[i % 1500]);
        kept[i % 1500] = malloc(4000);
        usleep(10000);
    }
    return 0;
}
END
gcc -g -O0 -o indexer indexer.c && { ./indexer & }
