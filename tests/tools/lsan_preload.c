// SPDX-License-Identifier: Apache-2.0
// In front of LeakSanitizer's library, which is preloaded into programs that were built without it:
// it searches mappings of the program's own, as cairn does, where interpreters have their objects;
// and `signal` works, for which a preloaded LeakSanitizer of GCC 12 calls no function at all.
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

__attribute__((weak)) void __lsan_register_root_region(const void *start, size_t size);

static void *real(const char *name) {
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    return libc ? dlsym(libc, name) : NULL;
}

// Of mappings that LeakSanitizer makes it must not be told: it holds its lock.
static bool is_its_own(const void *caller) {
    Dl_info one, other;
    return dladdr((const void *)(uintptr_t)__lsan_register_root_region, &one) &&
           dladdr(caller, &other) && one.dli_fbase == other.dli_fbase;
}

// Regions that are unmapped later are not searched any more.
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
    if (!real_mmap) real_mmap = real("mmap");
    void *memory = real_mmap(at, size, protection, flags, file, offset);
    if (memory != MAP_FAILED && flags & MAP_ANONYMOUS && __lsan_register_root_region &&
        !is_its_own(__builtin_return_address(0)))
        __lsan_register_root_region(memory, size);
    return memory;
}

void *mmap64(void *at, size_t size, int protection, int flags, int file, off64_t offset) {
    return mmap(at, size, protection, flags, file, offset);
}

sighandler_t signal(int number, sighandler_t handler) {
    sighandler_t (*real_signal)(int, sighandler_t) = real("signal");
    return real_signal(number, handler);
}
