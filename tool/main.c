// SPDX-License-Identifier: Apache-2.0
// Finds the command in the table, runs it, and makes sure that what it printed has arrived. A small
// limit on stacks is the recorded program's own: the tool takes memory for its stack then.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "tool/cmds/commands.h"

enum { STACK_BYTES = 8 << 20 };

static struct {
    int count;
    char **words;
    int status;
} call;

static int run(int count, char **words) {
    int status = commands_run(count, words);
    bool is_written = !fflush(stdout) && !ferror(stdout);
    if (is_written || status != STATUS_OK || errno == EPIPE) return status;
    struct error error;
    error_set(&error, "cannot write the output: %s", strerror(errno));
    return command_fail(STATUS_FAILURE, &error);
}

static bool is_stack_small(void) {
    struct rlimit limit;
    return !getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < STACK_BYTES;
}

static void run_call(void) {
    call.status = run(call.count, call.words);
}

// Threads that the tool makes have their stacks by the limit too, if nothing else is said. Not a
// thread for all of it: a process with threads may not enter namespaces.
static int run_on_own_stack(void) {
    ucontext_t here, there;
    pthread_attr_t attributes;
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED || getcontext(&there)) return run(call.count, call.words);
    if (!pthread_attr_init(&attributes) && !pthread_attr_setstacksize(&attributes, STACK_BYTES))
        pthread_setattr_default_np(&attributes);
    there.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_BYTES};
    there.uc_link = &here;
    makecontext(&there, run_call, 0);
    swapcontext(&here, &there);
    return call.status;
}

int main(int argc, char **argv) {
    call.count = argc;
    call.words = argv;
    return is_stack_small() ? run_on_own_stack() : run(argc, argv);
}
