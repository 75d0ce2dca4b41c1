// SPDX-License-Identifier: Apache-2.0
// fork_storm N: N forks while four threads allocate all the time. A child allocates, too; one that
// hangs is ended by its alarm and counted. Prints how many children failed.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>

#include "tests/programs/ledger.h"

#define THREADS 4
#define CHILD_PATIENCE_SECONDS 120
#define CHILDREN_AT_ONCE 16

static atomic_bool is_stopping;

static void *allocate_always(void *unused) {
    (void)unused;
    ledger_begin();
    for (size_t size = 1; !is_stopping; size = size % 3000 + 7) {
        void *block = ledger_take(size);
        ledger_give(block, size);
    }
    return NULL;
}

static void child(void) {
    void *blocks[10];
    alarm(CHILD_PATIENCE_SECONDS);
    for (int i = 0; i < 10; i++) blocks[i] = malloc((size_t)i * 100);
    for (int i = 0; i < 10; i++) free(blocks[i]);
    _exit(0);
}

static int reap(int options) {
    int status, failures = 0;
    while (waitpid(-1, &status, options) > 0) failures += status != 0;
    return failures;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1000, failures = 0;
    pthread_t threads[THREADS];
    ledger_open();
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, allocate_always, NULL);
    for (int i = 0; i < count; i++) {
        pid_t born = fork();
        if (born == 0) child();
        ledger_give(ledger_take(50), 50);
        if (born < 0) failures++;
        failures += reap(i % CHILDREN_AT_ONCE ? WNOHANG : 0);
    }
    failures += reap(0);
    is_stopping = true;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d children, %d failures\n", count, failures);
    return failures ? 1 : 0;
}
