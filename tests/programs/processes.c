// SPDX-License-Identifier: Apache-2.0
// Ways to make a process. `processes fork N`: N children of a parent whose second thread allocates
// all the time; each allocates 1,000 blocks of 100 bytes and ends with exit. `processes vfork`,
// `spawn`: children that execute true. `processes exec N`: replaces itself N times. `processes
// clone`: a child by the raw system call.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static atomic_bool is_stopping;
static void *volatile sink;

static void *allocate_always(void *argument) {
    (void)argument;
    while (!is_stopping) free(malloc(500));
    return NULL;
}

static void child_work(void) {
    for (int i = 0; i < 1000; i++) sink = malloc(100);
}

static int wait_all(void) {
    int status, failures = 0;
    while (wait(&status) > 0) failures += status != 0;
    return failures;
}

static int run_fork(int count) {
    pthread_t thread;
    pthread_create(&thread, NULL, allocate_always, NULL);
    for (int i = 0; i < count; i++) {
        if (fork() == 0) {
            alarm(120);
            child_work();
            exit(0);
        }
    }
    int failures = wait_all();
    is_stopping = true;
    pthread_join(thread, NULL);
    return failures;
}

static void vfork_once(void) {
    pid_t child = vfork();
    if (child == 0) {
        execlp("true", "true", (char *)NULL);
        _exit(9);
    }
    sink = malloc(60);
}

static int run_vfork(void) {
    for (int i = 0; i < 20; i++) vfork_once();
    return wait_all();
}

static int run_spawn(void) {
    char *arguments[] = {"true", NULL};
    for (int i = 0; i < 20; i++) {
        pid_t child;
        if (posix_spawnp(&child, "true", NULL, NULL, arguments, environ)) return 1;
        sink = malloc(60);
    }
    return wait_all();
}

static int run_clone(void) {
    long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        child_work();
        _exit(0);
    }
    return wait_all();
}

static int run_exec(char **argv, int left) {
    child_work();
    if (left == 0) return 0;
    char number[16];
    snprintf(number, sizeof number, "%d", left - 1);
    execl("/proc/self/exe", argv[0], "exec", number, (char *)NULL);
    return 1;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "fork";
    int count = argc > 2 ? atoi(argv[2]) : 6, failures = 2;
    if (!strcmp(what, "fork")) failures = run_fork(count);
    if (!strcmp(what, "vfork")) failures = run_vfork();
    if (!strcmp(what, "spawn")) failures = run_spawn();
    if (!strcmp(what, "clone")) failures = run_clone();
    if (!strcmp(what, "exec")) failures = run_exec(argv, count);
    printf("%s: %d failures\n", what, failures);
    return failures ? 1 : 0;
}
