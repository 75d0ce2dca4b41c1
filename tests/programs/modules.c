// SPDX-License-Identifier: Apache-2.0
// Libraries that come and go: modules HOW DIRECTORY. In DIRECTORY are libred.so and libblue.so with
// the functions red_take and blue_take of the same size, so that they land at one address by turns.
//   turns       loads and unloads them 40 times; each leaves 10 blocks, 30 or 70 bytes large
//   threads     the same, each called by a thread of its own, which begins with a free and ends
//               before the library is unloaded
//   deepbind    RTLD_DEEPBIND
//   namespace   dlmopen into a namespace with a libc of its own
//   lazy now    RTLD_LAZY, RTLD_NOW
// Prints where they were when that is one place.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS 40
#define BLOCKS 10

static const char *const names[] = {"red", "blue"};
static const size_t sizes[] = {30, 70};

static void *open_library(const char *directory, int which, const char *how) {
    char path[4096];
    int mode = !strcmp(how, "now") ? RTLD_NOW : RTLD_LAZY;
    snprintf(path, sizeof path, "%s/lib%s.so", directory, names[which]);
    if (!strcmp(how, "deepbind")) mode |= RTLD_DEEPBIND;
    if (!strcmp(how, "namespace")) return dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    return dlopen(path, mode);
}

static void *take_blocks(void *library, int which) {
    char name[32];
    snprintf(name, sizeof name, "%s_take", names[which]);
    void *(*take)(size_t) = (void *(*)(size_t))dlsym(library, name);
    if (!take) return NULL;
    for (int i = 0; i < BLOCKS; i++)
        if (!take(sizes[which])) return NULL;
    return (void *)take;
}

struct task {
    void *library, *place, *block;
    int which;
};

static void *thread_body(void *argument) {
    struct task *task = argument;
    free(task->block);
    task->place = take_blocks(task->library, task->which);
    return NULL;
}

static void *take_in_thread(void *library, int which) {
    struct task task = {library, NULL, malloc(sizes[which]), which};
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_body, &task) != 0) return NULL;
    pthread_join(thread, NULL);
    return task.place;
}

int main(int argc, char **argv) {
    const char *how = argc > 2 ? argv[1] : "turns";
    void *places[2] = {NULL, NULL};
    int has_threads = !strcmp(how, "threads"), has_turns = has_threads || !strcmp(how, "turns");
    int is_one_place = 1, turns = has_turns ? TURNS : 2;
    for (int turn = 0; turn < turns; turn++) {
        void *library = open_library(argv[2], turn % 2, how);
        void *place = NULL;
        if (library) place = (has_threads ? take_in_thread : take_blocks)(library, turn % 2);
        if (!place) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        places[turn % 2] = place;
        if (turn && places[0] != places[1]) is_one_place = 0;
        dlclose(library);
    }
    printf("%s done, %s\n", how, is_one_place ? "one place" : "places");
    return 0;
}
