// SPDX-License-Identifier: Apache-2.0
// Loads and unloads libplugin.so (beside the executable) again and again; each round leaks one
// block of 57 bytes that the plug-in allocated, so that code which is gone holds memory at the end.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 50

int main(int argc, char **argv) {
    (void)argc;
    char path[4096];
    snprintf(path, sizeof path, "%s", argv[0]);
    char *slash = strrchr(path, '/');
    snprintf(slash ? slash + 1 : path, 64, "libplugin.so");
    // An error that somebody else left must not be ours.
    if (dlerror()) printf("an error was there before\n");
    void *last = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        void *plugin = dlopen(path, round % 2 ? RTLD_LAZY : RTLD_NOW);
        if (!plugin) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(plugin, "plugin_allocate");
        free(allocate(1000));
        last = allocate(57);
        dlclose(plugin);
    }
    // A library that does not exist must fail with the loader's own words.
    if (dlopen("libthere-is-none.so.7", RTLD_NOW)) return 1;
    printf("%s %d\n", dlerror(), last != NULL);
    return 0;
}
