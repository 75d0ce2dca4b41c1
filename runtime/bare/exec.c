// SPDX-License-Identifier: Apache-2.0
// Lets a static program start others through the hooks of runtime/preload/exec.c. Only the
// functions that all others of libc end in lead here. Within posix_spawn libc's child calls execve
// on a stack that may have room for that and for nothing else (musl: a kilobyte), in the memory of
// its parent: it goes on as if nothing led here, and so does a posix_spawn within another. The
// parent has said all there is to say.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/process/real.h"
#include "runtime/sys/sys.h"

#define EXPORT __attribute__((visibility("default"), used))

// More threads that spawn at once say nothing of what they start.
enum { SPAWNERS = 64 };
static uintptr_t spawners[SPAWNERS];  // (atomic) their thread pointers; 0: nobody's

static uintptr_t thread_pointer(void) {
    uintptr_t pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

static uintptr_t *find(uintptr_t pointer) {
    for (size_t i = 0; i < SPAWNERS; i++)
        if (__atomic_load_n(&spawners[i], __ATOMIC_RELAXED) == pointer) return &spawners[i];
    return NULL;
}

static uintptr_t *enter(void) {
    uintptr_t *place;
    uintptr_t nobody = 0;
    do {
        nobody = 0;
        place = find(nobody);
    } while (place && !__atomic_compare_exchange_n(place, &nobody, thread_pointer(), false,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return place;
}

static void leave(uintptr_t *place) {
    __atomic_store_n(place, 0, __ATOMIC_RELEASE);
}

int execve(const char *path, char *const words[], char *const variables[]);
int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
                char *const words[], char *const variables[]);
int posix_spawnp(int *pid, const char *name, const void *actions, const void *attributes,
                 char *const words[], char *const variables[]);

EXPORT int cairn_bare_execve(const char *path, char *const words[], char *const variables[]) {
    bool is_within = find(thread_pointer());
    return (is_within ? real.execve : execve)(path, words, variables);
}

EXPORT int cairn_bare_spawn(int *pid, const char *path, const void *actions, const void *attributes,
                            char *const words[], char *const variables[]) {
    if (unlikely(!real_is_resolved())) real_resolve();
    uintptr_t *place = find(thread_pointer()) ? NULL : enter();
    if (!place) return real.posix_spawn(pid, path, actions, attributes, words, variables);
    int result = posix_spawn(pid, path, actions, attributes, words, variables);
    leave(place);
    return result;
}

EXPORT int cairn_bare_spawnp(int *pid, const char *name, const void *actions,
                             const void *attributes, char *const words[], char *const variables[]) {
    if (unlikely(!real_is_resolved())) real_resolve();
    uintptr_t *place = find(thread_pointer()) ? NULL : enter();
    if (!place) return real.posix_spawnp(pid, name, actions, attributes, words, variables);
    int result = posix_spawnp(pid, name, actions, attributes, words, variables);
    leave(place);
    return result;
}
