// SPDX-License-Identifier: Apache-2.0
// The native methods of Calls.java. Without jni.h, which only a JDK has: `environment` points to
// the table of functions (JNI specification, chapter 4), whose places are fixed.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

void Java_Calls_allocate(void *environment, void *type, int bytes) {
    (void)environment;
    (void)type;
    void *volatile block = malloc((size_t)bytes);  // or a compiler leaves it out
    free(block);
}

void Java_Calls_back(void *environment, void *type, int depth, long seed) {
    enum { GET_STATIC_METHOD_ID = 113, CALL_STATIC_VOID_METHOD = 141 };
    typedef void *find_function(void *, void *, const char *, const char *);
    typedef void call_function(void *, void *, void *, ...);
    void **table = *(void ***)environment;
    find_function *find = (find_function *)table[GET_STATIC_METHOD_ID];
    call_function *call = (call_function *)table[CALL_STATIC_VOID_METHOD];
    call(environment, type, find(environment, type, "step", "(IJ)V"), depth, seed);
}

// Keeps 1,000 blocks of 4711 bytes and ends the process.
void Java_Calls_die(void *environment, void *type, int how) {
    enum { BLOCKS = 1000, BYTES = 4711, STATUS = 5 };
    enum { BY_ABORT = 1, BY_KILL, BY_FAULT, BY_EXIT };
    static void *blocks[BLOCKS];
    (void)environment;
    (void)type;
    for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(BYTES);
    __asm__ volatile("" ::"r"(blocks) : "memory");
    if (how == BY_ABORT) abort();
    if (how == BY_KILL) kill(getpid(), SIGKILL);
    if (how == BY_FAULT) *(volatile int *)NULL = 1;
    if (how == BY_EXIT) _exit(STATUS);
}
