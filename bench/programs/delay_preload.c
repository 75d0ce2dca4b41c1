// SPDX-License-Identifier: Apache-2.0
// A preload that delays each malloc by DELAY_STEPS multiplications, each waiting for the one
// before: it touches no memory and shares nothing. What a program of several threads makes of that
// tells what its own waiting makes of any time that an allocation takes longer (bench/delays.py).
#include <dlfcn.h>
#include <stdlib.h>

static void *(*next)(size_t);
static unsigned long steps;

__attribute__((constructor)) static void begin(void) {
    const char *wanted = getenv("DELAY_STEPS");
    steps = wanted ? strtoul(wanted, NULL, 10) : 0;
}

__attribute__((visibility("default"))) void *malloc(size_t size) {
    unsigned long number = size;
    // dlsym allocates nothing where the name is found
    if (!next) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    void *block = next(size);
    for (unsigned long i = 0; i < steps; i++) {
        number *= 3 + number;
        __asm__ volatile("" : "+r"(number));
    }
    return block;
}
