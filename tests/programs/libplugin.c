// SPDX-License-Identifier: Apache-2.0
// A plug-in that is loaded and unloaded: its constructor, its function and its destructor allocate.
#include <stdlib.h>

static void *at_load;

void *plugin_allocate(size_t bytes);

__attribute__((constructor)) static void plugin_start(void) {
    at_load = malloc(41);
}

__attribute__((destructor)) static void plugin_end(void) {
    free(at_load);
}

__attribute__((noinline)) void *plugin_allocate(size_t bytes) {
    void *block = malloc(bytes);
    __asm__ volatile("" ::: "memory");
    return block;
}
