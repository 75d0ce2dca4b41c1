// SPDX-License-Identifier: Apache-2.0
// Children that go on with what they inherited, each with an account of its own (ledger.h).
//   fork clone clone3   a child and a grandchild, made by that call, free and allocate
//   function            the same by clone() of libc, on a new stack
//   vm                  a child in the parent's memory (CLONE_VM | CLONE_VFORK) allocates for it
//   vfork spawn system  children that execute `true` while the parent goes on
//   daemon              forks twice, its first process ends at once
//   prefork N           N workers are served and ended by SIGTERM
//   copies N            N children of a parent with 100,000 blocks, each with 2,000 of its own
//   handler             a signal handler forks again and again
//   bare                replaces itself by `true` without any environment
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/programs/interruptions.h"
#include "tests/programs/ledger.h"

#define KEPT_BLOCKS 1500
#define KEPT_BYTES 100
#define STACK_BYTES 65536

extern char **environ;
static void *kept[KEPT_BLOCKS];

static pid_t born_by_fork(void) {
    return fork();
}

static pid_t born_by_clone(void) {
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

// The child begins on a stack of its own, and goes on with its copy of the old one.
static jmp_buf born;

static int function_of_child(void *unused) {
    (void)unused;
    longjmp(born, 1);
}

static pid_t born_by_function(void) {
    static char stack[STACK_BYTES];
    if (setjmp(born)) return 0;
    return clone(function_of_child, stack + sizeof stack, SIGCHLD, NULL);
}

static pid_t born_by_clone3(void) {
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

static int wait_all(void) {
    int status, failures = 0;
    while (wait(&status) > 0 || errno == EINTR) failures += status != 0;
    return failures;
}

// Every `step`th kept block, from `first` on, is freed; `fresh` blocks are taken, half stay.
static void work(size_t first, size_t step, size_t fresh) {
    for (size_t i = first; i < KEPT_BLOCKS; i += step) {
        if (kept[i]) ledger_give(kept[i], KEPT_BYTES);
        kept[i] = NULL;
    }
    for (size_t i = 0; i < fresh; i++) {
        void *block = ledger_take(i + 1);
        if (i % 2) ledger_give(block, i + 1);
    }
}

static int run_born(pid_t (*bear)(void)) {
    pid_t child = bear();
    if (child < 0) return 1;
    if (child == 0) {
        ledger_inherit();
        work(0, 3, 700);
        pid_t grandchild = bear();
        if (grandchild == 0) {
            ledger_inherit();
            work(1, 3, 1300);
            _exit(0);
        }
        work(1, 4, 500);
        _exit(grandchild < 0 || wait_all());
    }
    work(2, 5, 900);
    int failures = wait_all();
    work(3, 5, 10);
    return failures;
}

static int vm_child(void *unused) {
    (void)unused;
    work(0, 2, 1000);
    return 0;
}

static int run_vm(void) {
    static _Alignas(16) char stack[STACK_BYTES];
    for (int i = 0; i < 10; i++)
        if (clone(vm_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL) < 0)
            return 1;
    int failures = wait_all();
    work(1, 2, 100);
    return failures;
}

static pid_t execute_vfork(void) {
    pid_t child = vfork();
    if (child) return child;
    execlp("true", "true", (char *)NULL);
    _exit(9);
}

static pid_t execute_spawn(void) {
    char *words[] = {"true", NULL};
    pid_t child = -1;
    posix_spawnp(&child, "true", NULL, NULL, words, environ);
    return child;
}

static pid_t execute_system(void) {
    return system("true") ? -1 : 0;
}

static int run_executed(pid_t (*execute)(void)) {
    for (int i = 0; i < 20; i++) {
        if (execute() < 0) return 1;
        work((size_t)i, 20, 50);
    }
    return wait_all();
}

static int run_daemon(void) {
    if (fork()) return 0;
    setsid();
    if (fork()) _exit(0);
    ledger_inherit();
    for (int i = 0; i < 20; i++) {
        work((size_t)i, 20, 200);
        usleep(25000);
    }
    return 0;
}

static void serve(int requests, int answers) {
    char request;
    ledger_inherit();
    while (read(requests, &request, 1) == 1) {
        work((size_t)request, 128, 100);
        if (write(answers, &request, 1) != 1) _exit(1);
    }
    for (;;) pause();
}

#define REQUESTS 50

static int run_prefork(int count) {
    int requests[2], answers[2], failures = 0;
    pid_t workers[64];
    char answer;
    if (count > 64 || pipe(answers)) return 1;
    for (int i = 0; i < count; i++) {
        if (pipe(requests)) return 1;
        workers[i] = fork();
        if (workers[i] == 0) {
            close(requests[1]);
            serve(requests[0], answers[1]);
        }
        for (char request = 0; request < REQUESTS; request++)
            if (write(requests[1], &request, 1) != 1) return 1;
        close(requests[0]);
        close(requests[1]);
    }
    work(5, 7, 100);
    for (int i = 0; i < count * REQUESTS; i++)
        if (read(answers[0], &answer, 1) != 1) return 1;
    for (int i = 0; i < count; i++) kill(workers[i], SIGTERM);
    for (int i = 0, status; i < count; i++)
        failures += waitpid(workers[i], &status, 0) < 0 || WTERMSIG(status) != SIGTERM;
    return failures;
}

#define MANY_BLOCKS 100000
#define MANY_BYTES 200
#define MANY_FREED 1000
#define MANY_FRESH 2000

static void *many[MANY_BLOCKS];

// The children live together, so that each block is in all of them at one time.
static int run_copies(int count) {
    int ready[2], go[2];
    char byte = 0;
    if (pipe(ready) || pipe(go)) return 1;
    for (size_t i = 0; i < MANY_BLOCKS; i++) many[i] = ledger_take(MANY_BYTES);
    for (int i = 0; i < count; i++) {
        if (fork()) continue;
        ledger_inherit();
        close(go[1]);
        for (size_t at = 0; at < MANY_FREED; at++) ledger_give(many[at], MANY_BYTES);
        for (size_t at = 0; at < MANY_FRESH; at++) many[0] = ledger_take(MANY_BYTES);
        if (write(ready[1], &byte, 1) != 1) _exit(1);
        _exit(read(go[0], &byte, 1) != 0);  // until the parent closes it
    }
    for (int i = 0; i < count; i++)
        if (read(ready[0], &byte, 1) != 1) return 1;
    close(go[1]);
    return wait_all();
}

#define HANDLER_FORKS 200
#define HANDLER_AFTER_US 1000
#define INTERRUPTIONS_MAX (100 * HANDLER_FORKS)
#define HANDLER_BUSY_CHILD 20

static volatile sig_atomic_t is_child, fork_count;

// Comes while the program is anywhere in malloc or free, but not while it writes its account: the
// child returns there, too, and would go on writing what the parent had counted.
static void fork_now(int signal_number) {
    (void)signal_number;
    const bool is_to_fork = !ledger_is_changing && fork_count < HANDLER_FORKS;
    const pid_t child = is_to_fork ? fork() : -1;
    fork_count += is_to_fork;
    if (child) {
        interrupt_again();
        return;
    }
    is_child = 1;
    ledger_inherit();
}

static int run_handler(void) {
    signal(SIGALRM, fork_now);
    interruptions_begin(HANDLER_AFTER_US, INTERRUPTIONS_MAX);
    while (!is_child && fork_count < HANDLER_FORKS && interruptions_left) work(0, KEPT_BLOCKS, 20);
    if (is_child) {
        work(2, 3, fork_count % HANDLER_BUSY_CHILD ? 60 : 3000);
        _exit(0);
    }
    interruptions_end();
    work(1, 2, 1000);
    return wait_all();
}

static int run_bare(void) {
    char *words[] = {"true", NULL}, *variables[] = {NULL};
    execve("/bin/true", words, variables);
    return 1;
}

static int run(const char *what, int count) {
    if (!strcmp(what, "fork")) return run_born(born_by_fork);
    if (!strcmp(what, "clone")) return run_born(born_by_clone);
    if (!strcmp(what, "function")) return run_born(born_by_function);
    if (!strcmp(what, "clone3")) return run_born(born_by_clone3);
    if (!strcmp(what, "vm")) return run_vm();
    if (!strcmp(what, "vfork")) return run_executed(execute_vfork);
    if (!strcmp(what, "spawn")) return run_executed(execute_spawn);
    if (!strcmp(what, "system")) return run_executed(execute_system);
    if (!strcmp(what, "daemon")) return run_daemon();
    if (!strcmp(what, "prefork")) return run_prefork(count);
    if (!strcmp(what, "copies")) return run_copies(count);
    if (!strcmp(what, "handler")) return run_handler();
    if (!strcmp(what, "bare")) return run_bare();
    return 2;
}

int main(int argc, char **argv) {
    ledger_open();
    for (size_t i = 0; i < KEPT_BLOCKS; i++) kept[i] = ledger_take(KEPT_BYTES);
    return run(argc > 1 ? argv[1] : "fork", argc > 2 ? atoi(argv[2]) : 10);
}
