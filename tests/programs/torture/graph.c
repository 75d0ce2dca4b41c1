// SPDX-License-Identifier: Apache-2.0
// Walks through a graph with circles. Planted: without the list of places seen it never comes back.
#include <stdio.h>
#include <stdlib.h>

enum { PLACES = 6, WAYS = 2 };
static const int ways[PLACES][WAYS] = {{1, 2}, {2, 3}, {0, 4}, {4, 5}, {5, 0}, {1, 3}};

static int walk(int place, char *seen) {
    volatile char room[256] = {0};
    int count = 1 + room[place];
    if (seen) {
        if (seen[place]) return 0;
        seen[place] = 1;
    }
    for (int i = 0; i < WAYS; i++) count += walk(ways[place][i], seen);
    return count;
}

int main(void) {
    char *seen = calloc(PLACES, 1);
#ifdef RIGHT
    if (!seen) return 1;
#endif
    printf("%d places\n", walk(0, seen));
    free(seen);
    return 0;
}
