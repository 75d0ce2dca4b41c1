// SPDX-License-Identifier: Apache-2.0
// libcairn_stub.a: for linkers that want every symbol defined (CAIRN_LINKED,
// include/cairn/cairn.h). Its cairn_api hands on to that of a preloaded libcairn.so, so that a
// program linked with it is recorded and served like any other; without one it says that there is
// none.
#define CAIRN_LINKED
#include <cairn/cairn.h>
#include <dlfcn.h>

// Weak: a program that is linked statically has none and needs none.
void *dlsym(void *handle, const char *name) __attribute__((weak));

typedef const struct cairn_api_table *(*api_function)(uint32_t version);

const struct cairn_api_table *cairn_api(uint32_t version) {
    static api_function next;  // (atomic)
    static int is_known;       // (atomic)
    if (!__atomic_load_n(&is_known, __ATOMIC_ACQUIRE)) {
        void *found = dlsym ? dlsym(RTLD_NEXT, "cairn_api") : NULL;
        __atomic_store_n(&next, (api_function)found, __ATOMIC_RELAXED);
        __atomic_store_n(&is_known, 1, __ATOMIC_RELEASE);
    }
    api_function api = __atomic_load_n(&next, __ATOMIC_RELAXED);
    return api ? api(version) : NULL;
}
