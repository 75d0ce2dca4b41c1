// SPDX-License-Identifier: Apache-2.0
// Processes do the parts of a sum. Planted: nobody asks how they ended.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int count_multiples(int of) {
    int *found = malloc(1000 * sizeof *found), count = 0;
#ifdef RIGHT
    if (!found) return -1;
#endif
    for (int i = 1; i <= 1000; i++)
        if (i % of == 0) found[count++] = i;
    free(found);
    return count;
}

static int work(int of, int output) {
    int count = count_multiples(of);
    return count < 0 || write(output, &count, sizeof count) != sizeof count;
}

int main(void) {
    int pipes[2], sum = 0, count, status, failures = 0;
    if (pipe(pipes)) return 1;
    for (int of = 2; of <= 4; of++) {
        pid_t child = fork();
        if (!child) _exit(work(of, pipes[1]));
        waitpid(child, &status, 0);
#ifdef RIGHT
        failures += status != 0;
#endif
    }
    close(pipes[1]);
    while (read(pipes[0], &count, sizeof count) == sizeof count) sum += count;
    if (failures) fprintf(stderr, "%d parts are missing\n", failures);
    if (!failures) printf("sum %d\n", sum);
    return failures != 0;
}
