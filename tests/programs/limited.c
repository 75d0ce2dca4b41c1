// SPDX-License-Identifier: Apache-2.0
// `limited MEBIBYTES`: limits its own address space, allocates and frees 20,000 small blocks, then
// fills most of 16 MiB with larger ones, forks, and looks in both processes whether what is in them
// stays there while more is allocated. Prints how many calls gave memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 20000, SIZES = 500, LARGE = 60, LARGE_BYTES = 200000 };

static unsigned char *large[LARGE];

static int churn(void) {
    int given = 0;
    for (int i = 0; i < SMALL; i++) {
        void *volatile block = malloc((size_t)(i % SIZES + 1));
        given += block != NULL;
        free(block);
    }
    return given;
}

static int fill(void) {
    int given = 0;
    for (int i = 0; i < LARGE; i++) {
        large[i] = malloc(LARGE_BYTES);
        if (!large[i]) continue;
        memset(large[i], i, LARGE_BYTES);
        given++;
    }
    return given;
}

static int sound(void) {
    int count = 0;
    for (int i = 0; i < LARGE; i++) {
        int place = 0;
        while (large[i] && place < LARGE_BYTES && large[i][place] == i) place++;
        count += place == LARGE_BYTES;
    }
    return count;
}

int main(int count, char **arguments) {
    rlim_t bytes = count > 1 ? (rlim_t)atol(arguments[1]) << 20 : RLIM_INFINITY;
    if (setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) != 0) return 9;
    printf("%d small, %d large\n", churn(), fill());
    fflush(stdout);
    pid_t child = fork();
    int small = churn();
    printf("%d small, %d large sound\n", small, sound());
    fflush(stdout);
    if (child == 0) _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    printf("child: %d\n", status);
    return 3;
}
