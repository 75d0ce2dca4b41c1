// SPDX-License-Identifier: Apache-2.0
#include "runtime/process/real.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "runtime/bare/bare.h"
#include "runtime/sample/blocks.h"
#include "runtime/sys/linker.h"
#include "runtime/sys/object.h"
#include "runtime/thread/gate.h"

// Bootstrap blocks carry a size word like glibc's mmapped chunks, so that malloc_usable_size of
// such a block answers sensibly.
#if defined(CAIRN_BARE)  // the real functions are known from the first call on: the buffer has no
                         // room
enum { BOOTSTRAP_BYTES = 16, BOOTSTRAP_ALIGN = 16 };
#else
enum { BOOTSTRAP_BYTES = 64 << 10, BOOTSTRAP_ALIGN = 16 };
#endif
enum { CHUNK_HEAD_BYTES = 16, CHUNK_IS_MMAPPED = 2 };

static _Alignas(BOOTSTRAP_ALIGN) APART uint8_t bootstrap_buffer[BOOTSTRAP_BYTES];
static size_t bootstrap_used;  // (atomic)

static void *bootstrap_alloc(size_t alignment, size_t size) {
    size_t slack = alignment > BOOTSTRAP_ALIGN ? alignment : 0;
    if (size > BOOTSTRAP_BYTES / 2 || slack > BOOTSTRAP_BYTES / 4) return NULL;
    size_t bytes =
        (size + slack + CHUNK_HEAD_BYTES + BOOTSTRAP_ALIGN - 1) & ~(size_t)(BOOTSTRAP_ALIGN - 1);
    size_t at = __atomic_fetch_add(&bootstrap_used, bytes, __ATOMIC_RELAXED);
    if (at + bytes > BOOTSTRAP_BYTES) return NULL;
    uintptr_t block = (uintptr_t)bootstrap_buffer + at + CHUNK_HEAD_BYTES;
    if (slack) block = (block + alignment - 1) & ~(alignment - 1);
    uint64_t head = (uintptr_t)bootstrap_buffer + at + bytes - block + CHUNK_HEAD_BYTES;
    memcpy((void *)(block - sizeof head), &(uint64_t){head | CHUNK_IS_MMAPPED}, sizeof head);
    blocks_suspect((void *)block);
    return (void *)block;
}

bool bootstrap_owns(const void *block) {
    return (uintptr_t)block - (uintptr_t)bootstrap_buffer < BOOTSTRAP_BYTES;
}

size_t bootstrap_size(const void *block) {
    uint64_t head;
    memcpy(&head, (const uint8_t *)block - sizeof head, sizeof head);
    return (head & ~(uint64_t)CHUNK_IS_MMAPPED) - CHUNK_HEAD_BYTES;
}

#if defined(CAIRN_BARE)
void *(*real_finder)(const char *name) = bare_find;
#else
void *(*real_finder)(const char *name);
#endif
static bool is_resolved;   // (atomic)
static bool is_resolving;  // (atomic)

bool real_is_resolved(void) {
    return __atomic_load_n(&is_resolved, __ATOMIC_ACQUIRE);
}

void *real_find(const char *name) {
    return likely(!real_finder) ? linker_find_next(name) : real_finder(name);
}

// Each: resolve, then call the real one; while the dynamic linker itself is calling, the buffer.
#define BOOT(name, call, instead)                                                                  \
    real_resolve();                                                                                \
    return real_is_resolved() ? real.name call : (instead)

static void *boot_malloc(size_t size) {
    BOOT(malloc, (size), bootstrap_alloc(0, size));
}
static void boot_free(void *block) {
    real_resolve();
    if (real_is_resolved()) real.free(block);
}
static void *boot_calloc(size_t count, size_t size) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    BOOT(calloc, (count, size), bootstrap_alloc(0, bytes));  // the buffer is zero, used once
}
static void *boot_realloc(void *block, size_t size) {
    BOOT(realloc, (block, size), block ? NULL : bootstrap_alloc(0, size));
}
static void *boot_memalign(size_t alignment, size_t size) {
    BOOT(memalign, (alignment, size), bootstrap_alloc(alignment, size));
}
static void *boot_aligned_alloc(size_t alignment, size_t size) {
    BOOT(aligned_alloc, (alignment, size), bootstrap_alloc(alignment, size));
}
static int absent_posix_memalign(void **result, size_t alignment, size_t size);

static int boot_posix_memalign(void **result, size_t alignment, size_t size) {
    real_resolve();
    if (real_is_resolved()) return real.posix_memalign(result, alignment, size);
    return absent_posix_memalign(result, alignment, size);
}

// Where the platform lacks a function, what its callers would get.
static void *absent_reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (!__builtin_mul_overflow(count, size, &bytes)) return real.realloc(block, bytes);
    errno = ENOMEM;
    return NULL;
}
static void *absent_pages(size_t size) {
    return real.memalign(sys_page_bytes(), size);
}
// HOOK_LATE: looked for at their first call. Where the system has none, what its callers would get.
static void late_cfree(void *block) {
    real_resolve();
    *(void **)&real.cfree = real_find("cfree");
    if (!real.cfree) real.cfree = real.free;
    real.cfree(block);
}
static void plain_free_sized(void *block, size_t size) {
    (void)size;
    real.free(block);
}
static void late_free_sized(void *block, size_t size) {
    real_resolve();
    *(void **)&real.free_sized = real_find("free_sized");
    if (!real.free_sized) real.free_sized = plain_free_sized;
    real.free_sized(block, size);
}
static void plain_free_aligned_sized(void *block, size_t alignment, size_t size) {
    (void)alignment;
    (void)size;
    real.free(block);
}
static void late_free_aligned_sized(void *block, size_t alignment, size_t size) {
    real_resolve();
    *(void **)&real.free_aligned_sized = real_find("free_aligned_sized");
    if (!real.free_aligned_sized) real.free_aligned_sized = plain_free_aligned_sized;
    real.free_aligned_sized(block, alignment, size);
}
static int late__Fork(void) {
    real_resolve();
    *(void **)&real._Fork = real_find("_Fork");
    if (!real._Fork) real._Fork = real.fork;
    return real._Fork();
}
// The result of a system call as libc has it.
static int as_libc(long result) {
    if (!sys_is_error(result)) return (int)result;
    errno = (int)-result;
    return -1;
}
static int plain_mlockall(int flags) {
    return as_libc(sys_call(SYS_mlockall, flags, 0, 0, 0, 0, 0));
}
static int plain_munlockall(void) {
    return as_libc(sys_call(SYS_munlockall, 0, 0, 0, 0, 0, 0));
}
static int late_mlockall(int flags) {
    real_resolve();
    *(void **)&real.mlockall = real_find("mlockall");
    if (!real.mlockall) real.mlockall = plain_mlockall;
    return real.mlockall(flags);
}
static int late_munlockall(void) {
    real_resolve();
    *(void **)&real.munlockall = real_find("munlockall");
    if (!real.munlockall) real.munlockall = plain_munlockall;
    return real.munlockall();
}
static size_t absent_malloc_usable_size(void *block) {
    (void)block;
    return 0;
}
// Before glibc 2.34 libdl may come with a library that the program loads later.
static int late_dlclose(void *handle) {
    int (*found)(void *handle);
    *(void **)&found = real_find("dlclose");
    return found ? found(handle) : -1;
}
static void *late_dlopen(const char *path, int flags) {
    void *(*found)(const char *path, int flags);
    *(void **)&found = real_find("dlopen");
    return found ? found(path, flags) : NULL;
}
static void *late_dlmopen(long namespace, const char *path, int flags) {
    void *(*found)(long namespace, const char *path, int flags);
    *(void **)&found = real_find("dlmopen");
    return found ? found(namespace, path, flags) : NULL;
}

static void *boot_reallocarray(void *block, size_t count, size_t size) {
    real_resolve();
    return real.reallocarray(block, count, size);
}
static void *boot_valloc(size_t size) {
    real_resolve();
    return real.valloc(size);
}
static void *boot_pvalloc(size_t size) {
    real_resolve();
    return real.pvalloc(size);
}
static size_t boot_malloc_usable_size(void *block) {
    real_resolve();
    return real_is_resolved() ? real.malloc_usable_size(block) : 0;
}
static int boot_dlclose(void *handle) {
    real_resolve();
    return real.dlclose(handle);
}

static long boot_syscall(long number, long a, long b, long c, long d, long e, long f) {
    real_resolve();
    return real.syscall(number, a, b, c, d, e, f);
}

static void *absent_mmap(void *address, size_t length, int protection, int flags, int file,
                         long offset) {
    long result = sys_call(SYS_mmap, (long)address, (long)length, protection, flags, file, offset);
    if ((unsigned long)result <= -4096UL) return (void *)result;
    errno = (int)-result;
    return (void *)-1;
}
static void *absent_mremap(void *old, size_t old_length, size_t length, int flags, void *address) {
    long result =
        sys_call(SYS_mremap, (long)old, (long)old_length, (long)length, flags, (long)address, 0);
    if ((unsigned long)result <= -4096UL) return (void *)result;
    errno = (int)-result;
    return (void *)-1;
}
static int absent_munmap(void *address, size_t length) {
    return as_libc(sys_call(SYS_munmap, (long)address, (long)length, 0, 0, 0, 0));
}
static int absent_mprotect(void *address, size_t length, int protection) {
    return as_libc(sys_call(SYS_mprotect, (long)address, (long)length, protection, 0, 0, 0));
}

static void *boot_mmap(void *address, size_t length, int protection, int flags, int file,
                       long offset) {
    BOOT(mmap, (address, length, protection, flags, file, offset),
         absent_mmap(address, length, protection, flags, file, offset));
}
static void *boot_mremap(void *old, size_t old_length, size_t length, int flags, void *address) {
    BOOT(mremap, (old, old_length, length, flags, address),
         absent_mremap(old, old_length, length, flags, address));
}
static int boot_munmap(void *address, size_t length) {
    BOOT(munmap, (address, length), absent_munmap(address, length));
}
static int boot_mprotect(void *address, size_t length, int protection) {
    BOOT(mprotect, (address, length, protection), absent_mprotect(address, length, protection));
}

struct real real = {
    .malloc = boot_malloc,
    .free = boot_free,
    .calloc = boot_calloc,
    .realloc = boot_realloc,
    .reallocarray = boot_reallocarray,
    .posix_memalign = boot_posix_memalign,
    .aligned_alloc = boot_aligned_alloc,
    .memalign = boot_memalign,
    .valloc = boot_valloc,
    .pvalloc = boot_pvalloc,
    .malloc_usable_size = boot_malloc_usable_size,
    .dlclose = boot_dlclose,
    .syscall = boot_syscall,
    .mmap = boot_mmap,
    .mmap64 = boot_mmap,
    .mremap = boot_mremap,
    .munmap = boot_munmap,
    .mprotect = boot_mprotect,
#define HOOK(result, name, parameters)
#define HOOK_LATE(result, name, parameters) .name = late_##name,
#include "runtime/hook/hooks.def"
#undef HOOK
#undef HOOK_LATE
};

// A process without any malloc cannot be; these only make every pointer callable.
static void *absent_malloc(size_t size) {
    return bootstrap_alloc(0, size);
}
static void absent_free(void *block) {
    (void)block;
}
static void *absent_calloc(size_t count, size_t size) {
    size_t bytes = 0;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : bootstrap_alloc(0, bytes);
}
static void *absent_realloc(void *block, size_t size) {
    return block ? NULL : bootstrap_alloc(0, size);
}
static int absent_posix_memalign(void **result, size_t alignment, size_t size) {
    void *block = bootstrap_alloc(alignment, size);
    if (block) *result = block;
    return block ? 0 : ENOMEM;
}
static long absent_syscall(long number, long a, long b, long c, long d, long e, long f) {
    (void)number, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    errno = ENOSYS;
    return -1;
}

static int absent_fork(void) {
    return (int)sys_call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
}

// By syscall, which the program called: it may have nothing else that starts programs (a static
// one), or an old libc.
static int absent_execve(const char *path, char *const words[], char *const variables[]) {
    return (int)real.syscall(SYS_execve, (long)path, (long)words, (long)variables, 0, 0, 0);
}
static int absent_execveat(int directory, const char *path, char *const words[],
                           char *const variables[], int flags) {
    return (int)real.syscall(SYS_execveat, directory, (long)path, (long)words, (long)variables,
                             flags, 0);
}

static const struct real absent = {
    .malloc = absent_malloc,
    .free = absent_free,
    .calloc = absent_calloc,
    .realloc = absent_realloc,
    .posix_memalign = absent_posix_memalign,
    .aligned_alloc = bootstrap_alloc,
    .memalign = bootstrap_alloc,
    .syscall = absent_syscall,
    .fork = absent_fork,
    .execve = absent_execve,
    .execveat = absent_execveat,
    .reallocarray = absent_reallocarray,
    .valloc = absent_pages,
    .pvalloc = absent_pages,
    .malloc_usable_size = absent_malloc_usable_size,
    .dlclose = late_dlclose,
    .dlopen = late_dlopen,
    .dlmopen = late_dlmopen,
    .mmap = absent_mmap,
    .mmap64 = absent_mmap,
    .mremap = absent_mremap,
    .munmap = absent_munmap,
    .mprotect = absent_mprotect,
#define HOOK(result, name, parameters)
#define HOOK_LATE(result, name, parameters) .name = late_##name,
#include "runtime/hook/hooks.def"
#undef HOOK
#undef HOOK_LATE
};

// Their names, and where their places are in struct real: no addresses, which the dynamic linker
// would have to relocate.
#define HOOK(result, name, parameters) #name "\0"
#define HOOK_LATE(result, name, parameters)
static const char names[] =
#include "runtime/hook/hooks.def"
    ;
#undef HOOK
#define HOOK(result, name, parameters) offsetof(struct real, name),
static const uint16_t places[] = {
#include "runtime/hook/hooks.def"
};
#undef HOOK
#undef HOOK_LATE

const char *real_names(void) {
    return names;
}

static void find_each(void **found) {
    for (const char *name = names; *name; name += strlen(name) + 1) *found++ = real_find(name);
}

COLD void real_resolve(void) {
    enum { COUNT = sizeof places / sizeof *places };
    struct real found = absent;
    void *next[COUNT] = {NULL};
    gate_make_ready();
    if (real_is_resolved()) return;
    if (__atomic_exchange_n(&is_resolving, true, __ATOMIC_ACQUIRE)) return;
    int saved_errno = errno;
    if (!real_finder) linker_find_all_next(names, next);
    if (unlikely(!next[0])) find_each(next);
    for (size_t i = 0; i < COUNT; i++)
        if (next[i]) memcpy((char *)&found + places[i], &next[i], sizeof next[i]);
    if (!found.memalign) found.memalign = found.aligned_alloc;
    real = found;
    errno = saved_errno;
    __atomic_store_n(&is_resolved, true, __ATOMIC_RELEASE);
}

static bool allocator_object(struct object *object) {
    return object_find((uintptr_t)real.malloc, object);
}

const char *real_allocator_path(void) {
    struct object object;
    return allocator_object(&object) ? object.path : "";
}

bool real_is_glibc(void) {
    struct object object;
    const void *version = real_find("gnu_get_libc_version");
#if defined(CAIRN_BARE)
    return version != NULL;  // the tool says so
#endif
    if (!version || !allocator_object(&object)) return false;
    return (uintptr_t)version >= object.start && (uintptr_t)version < object.end;
}

bool real_allocator_range(uintptr_t *start, uintptr_t *end) {
    struct object object;
    if (real_is_glibc() || !allocator_object(&object)) return false;
    *start = object.start;
    *end = object.end;
    return true;
}

bool real_is_of_allocator(const void *function) {
    uintptr_t start, end;
    if (!real_allocator_range(&start, &end)) return false;
    gate_note_allocator(start, end);
    return (uintptr_t)function >= start && (uintptr_t)function < end;
}
