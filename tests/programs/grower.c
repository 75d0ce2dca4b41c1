// SPDX-License-Identifier: Apache-2.0
// grower FIRST STEP RATE: a heap of blocks in a list that grows until somebody ends the process. It
// has FIRST MiB at once; for each line of its input STEP MiB more; after the end of the input RATE
// MiB a second, or as fast as it can (0). It says "ready" after each.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MEBIBYTE = 1 << 20, PAYLOAD = 1000, STEPS_A_SECOND = 100 };

struct session {
    struct session *next;
    char payload[PAYLOAD];
};

struct session *all_sessions;

static void grow(size_t bytes) {
    for (size_t done = 0; done < bytes; done += sizeof(struct session)) {
        struct session *session = malloc(sizeof *session);
        if (!session) return;
        memset(session->payload, 1 + (int)(done % 100), sizeof session->payload);
        session->next = all_sessions;
        all_sessions = session;
    }
}

static void ready(void) {
    puts("ready");
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    size_t step = strtoul(argv[2], NULL, 10), rate = strtoul(argv[3], NULL, 10);
    const struct timespec pause = {.tv_nsec = 1000000000L / STEPS_A_SECOND};
    grow(strtoul(argv[1], NULL, 10) * MEBIBYTE);
    ready();
    while (getchar() != EOF) {
        grow(step * MEBIBYTE);
        ready();
    }
    for (;;) {
        grow(rate ? rate * MEBIBYTE / STEPS_A_SECOND : MEBIBYTE);
        if (rate) nanosleep(&pause, NULL);
    }
}
