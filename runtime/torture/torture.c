// SPDX-License-Identifier: Apache-2.0
// libcairn-torture.so: one allocation of a program fails, as `cairn torture` wants it. This is the
// only part of cairn that changes a program, and so a library of its own, which nothing else of
// cairn loads: without it nothing is different (tests/promises/torture.py).
//
// Its functions stand in front of the next ones, libcairn.so's or the program's own. Each walks the
// stack by the unwinder of libgcc, linked in: nothing of it allocates. Frames are a module's path
// and an address in its ELF file, so that a stack has the same hash in each run. In a run that
// lists, the stack is added to the file that all processes share (format/torture.h); in one that
// fails, the right allocation returns NULL and ENOMEM, as real ones do. C++'s operator new, which
// calls malloc, then throws. From then on signals that end a program are caught where it has no
// handler, to note at which stack it dies; then it dies of the same signal. At exit the stack is
// compared with that of the failure, to note whether the program gave up on the spot.
//
// What a program allocates before this library is ready comes from `early`, which is never freed.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "format/torture.h"

#define EXPORT __attribute__((visibility("default")))
enum { EARLY_BYTES = 1 << 16, ALIGNMENT = 16, PROBES_MAX = 64 };

static struct {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*reallocarray)(void *, size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
} next;
static bool is_ready, is_getting_ready;
static struct torture_map *map;      // NULL: nothing is to fail
static bool is_listing, has_frames;  // whether the file has room for more than the head
static __thread bool is_inside;

static _Alignas(ALIGNMENT) char early[EARLY_BYTES];
static size_t early_used;

static bool is_early(const void *block) {
    return (const char *)block >= early && (const char *)block < early + EARLY_BYTES;
}

static void *early_allocate(size_t size) {
    size_t wanted = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (wanted < size || wanted > EARLY_BYTES) return NULL;
    size_t at = __atomic_fetch_add(&early_used, wanted, __ATOMIC_RELAXED);
    return at + wanted <= EARLY_BYTES ? early + at : NULL;
}

// ---- the file that says what to do --------------------------------------------------------------

// By direct calls of the kernel: libc's functions may be a sanitizer's, which is not ready yet.
static void read_own_path(char path[TORTURE_PATH_BYTES]) {
    long length = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, TORTURE_PATH_BYTES - 1);
    path[length < 0 ? 0 : length] = 0;
}

static bool is_tool(const char *tool) {
    char path[TORTURE_PATH_BYTES];
    size_t at = 0;
    read_own_path(path);
    while (path[at] && path[at] == tool[at]) at++;
    return path[at] == tool[at];
}

static void *map_file(int file, size_t size) {
    long address = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return address < 0 ? NULL : (void *)address;
}

static void open_map(const char *path) {
    int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    long size = file < 0 ? -1 : syscall(SYS_lseek, file, 0L, SEEK_END);
    struct torture_map *opened =
        size >= (long)sizeof(struct torture_head) ? map_file(file, (size_t)size) : NULL;
    if (file >= 0) syscall(SYS_close, file);
    if (!opened || opened->head.magic != TORTURE_MAGIC || is_tool(opened->head.tool)) return;
    is_listing = !opened->head.target;
    has_frames = size >= (long)sizeof *opened;
    if (is_listing && !has_frames) return;
    map = opened;
    const struct rlimit most = {map->head.file_bytes_max, map->head.file_bytes_max};
    if (most.rlim_cur) syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, &most, NULL);
}

#define FIND(name) next.name = (__typeof__(next.name))dlsym(RTLD_NEXT, #name)
static void get_ready(void) {
    if (is_ready || is_getting_ready) return;
    is_getting_ready = true;
    int old_errno = errno;
    FIND(malloc);
    FIND(free);
    FIND(calloc);
    FIND(realloc);
    FIND(reallocarray);
    FIND(memalign);
    FIND(aligned_alloc);
    FIND(posix_memalign);
    FIND(valloc);
    FIND(pvalloc);
    FIND(malloc_usable_size);
    errno = old_errno;
    is_ready = true;
}

// Earlier, libc's own environment is not there yet, though a sanitizer allocates.
__attribute__((constructor)) static void begin(int argc, char **argv, char **environment) {
    static const char variable[] = TORTURE_VARIABLE "=";
    (void)argc, (void)argv;
    get_ready();
    for (; environment && *environment; environment++)
        if (!strncmp(*environment, variable, sizeof variable - 1))
            open_map(*environment + sizeof variable - 1);
}

// ---- the stack ----------------------------------------------------------------------------------

struct stack {
    uint64_t frames[TORTURE_DEPTH];  // as in the file
    struct place {
        uint64_t module, offset;  // the key of its path, and the call in it
        uintptr_t stack_pointer;  // at that call: tells calls of one function apart
    } places[TORTURE_DEPTH];
    uint64_t hash;
    size_t count;
    bool has_begun;     // cairn's own frames are behind
    bool is_named;      // modules go into the file
    bool is_of_signal;  // what the signal interrupted is still to come
};

static uint64_t hash_of(const char *text) {
    uint64_t hash = 1;
    for (; *text; text++) hash = torture_mix(hash, (unsigned char)*text);
    return hash ? hash : 1;
}

// The number of a path in the file; its key is what goes into hashes.
static unsigned module_of(const char *path, uint64_t key, bool is_naming) {
    for (unsigned i = 0; is_naming && i < TORTURE_MODULES; i++) {
        struct torture_module *module = &map->modules[(key + i) % TORTURE_MODULES];
        uint64_t found = 0;
        if (__atomic_compare_exchange_n(&module->key, &found, key, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            for (size_t at = 0; path[at] && at < TORTURE_PATH_BYTES - 1; at++)
                module->path[at] = path[at];
        if (!found || found == key) return (unsigned)((key + i) % TORTURE_MODULES);
    }
    return 0;
}

static bool is_cairns(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && !strncmp(slash + 1, "libcairn", sizeof "libcairn" - 1);
}

// dladdr goes through the symbols of a module, which takes long.
static struct link_map *module_at(uintptr_t address) {
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object found;
    return _dl_find_object((void *)address, &found) ? NULL : found.dlfo_link_map;
#else
    struct link_map *module = NULL;
    Dl_info info;
    return dladdr1((void *)address, &info, (void **)&module, RTLD_DL_LINKMAP) ? module : NULL;
#endif
}

static const char *path_of(const struct link_map *module) {
    static char own[TORTURE_PATH_BYTES];  // of the program, which has no name in the list
    if (*module->l_name) return module->l_name;
    if (!*own) read_own_path(own);
    return own;
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *argument) {
    struct stack *stack = argument;
    int is_interrupted = 0;
    uintptr_t address = _Unwind_GetIPInfo(context, &is_interrupted);
    if (!is_interrupted) address--;  // inside the call
    if (stack->is_of_signal && !is_interrupted) return _URC_NO_REASON;
    stack->is_of_signal = false;
    if (address + 1 < 2) return _URC_NORMAL_STOP;  // the outermost frame has no caller
    const struct link_map *module = module_at(address);
    const char *path = "";
    uint64_t offset = 0, key = 1;
    if (module) {
        path = path_of(module);
        offset = address - module->l_addr;
        key = hash_of(path);
    }
    stack->has_begun |= !is_cairns(path);
    if (!stack->has_begun) return _URC_NO_REASON;
    if (stack->count == TORTURE_DEPTH) return _URC_NORMAL_STOP;
    stack->hash = torture_mix(torture_mix(stack->hash, key), offset);
    stack->places[stack->count] = (struct place){key, offset, _Unwind_GetCFA(context)};
    stack->frames[stack->count++] = (uint64_t)module_of(path, key, stack->is_named)
                                        << TORTURE_ADDRESS_BITS |
                                    (offset & (((uint64_t)1 << TORTURE_ADDRESS_BITS) - 1));
    return _URC_NO_REASON;
}

// ---- what a run does ----------------------------------------------------------------------------

static void note_frames(struct torture_stack *slot, const struct stack *stack) {
    uint64_t first = __atomic_fetch_add(&map->head.used_frames, stack->count, __ATOMIC_RELAXED);
    if (first + stack->count > TORTURE_FRAMES) {
        __atomic_fetch_add(&map->head.lost, 1, __ATOMIC_RELAXED);
        return;
    }
    memcpy(&map->frames[first], stack->frames, stack->count * sizeof *stack->frames);
    slot->frame_count = stack->count;
    __atomic_store_n(&slot->first_frame, first + 1, __ATOMIC_RELEASE);
}

static void note_stack(const struct stack *stack) {
    for (unsigned i = 0; i < PROBES_MAX; i++) {
        struct torture_stack *slot = &map->stacks[(stack->hash + i) % TORTURE_STACKS];
        uint64_t found = 0;
        bool is_new = __atomic_compare_exchange_n(&slot->hash, &found, stack->hash, false,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        if (!is_new && found != stack->hash) continue;
        if (is_new) note_frames(slot, stack);
        __atomic_fetch_add(&slot->count, 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_fetch_add(&map->head.lost, 1, __ATOMIC_RELAXED);
}

// ---- where the program dies ---------------------------------------------------------------------

static int dying_signal;

static void die(int signal) {
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(signal, &usual, NULL);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

// The stack cannot be followed, as it is damaged.
static void die_unnoted(int signal) {
    (void)signal;
    die(dying_signal);
}

static void set_handler(int signal, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaction(signal, &action, NULL);
}

// The first process that dies is noted, a second one only dies.
static void note_death(int signal) {
    uint64_t none = 0;
    struct stack stack = {.hash = 1, .is_named = true, .is_of_signal = true};
    dying_signal = signal;
    set_handler(SIGSEGV, die_unnoted);
    set_handler(SIGBUS, die_unnoted);
    if (__atomic_compare_exchange_n(&map->head.died_signal, &none, (uint64_t)signal, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        is_inside = true;
        _Unwind_Backtrace(add_frame, &stack);
        memcpy(map->frames, stack.frames, stack.count * sizeof *stack.frames);
        __atomic_store_n(&map->head.died_frames, stack.count, __ATOMIC_RELEASE);
    }
    die(signal);
}

// A stack that overflows has no room for a handler: the thread's own one is kept if it has one.
static void watch_death(void) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static _Alignas(ALIGNMENT) char room[1 << 16];
    stack_t there;
    if (!has_frames) return;
    if (!sigaltstack(NULL, &there) && there.ss_flags & SS_DISABLE)
        sigaltstack(&(stack_t){.ss_sp = room, .ss_size = sizeof room}, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction usual;
        if (!sigaction(signals[i], NULL, &usual) && usual.sa_handler == SIG_DFL)
            set_handler(signals[i], note_death);
    }
}

// ---- whether the program gives up ---------------------------------------------------------------

// Where the allocation failed; `thread` is 0 before it did.
static struct {
    long thread;
    size_t count;
    struct place places[TORTURE_DEPTH];
} failure;

static bool is_same_place(const struct place *one, const struct place *other) {
    return one->module == other->module && one->offset == other->offset &&
           one->stack_pointer == other->stack_pointer;
}

// The innermost call that both stacks are in is of a function that has not returned since the
// failure. If it asked for the memory itself, or had a library do so, no function of its module has
// returned either. (Behind main's return only libc's own start is left, which is where `exit` is.)
static bool is_given_up(const struct stack *end) {
    size_t same = 0, failed = failure.count, ended = end->count;
    if (failed == TORTURE_DEPTH || ended == TORTURE_DEPTH) return false;  // the outer frames differ
    while (same < failed && same < ended &&
           is_same_place(&failure.places[failed - same - 1], &end->places[ended - same - 1]))
        same++;
    if (same == failed || same == ended) return false;
    size_t inner = failed - same - 1;
    uint64_t module = failure.places[inner].module;
    const struct link_map *libc = module_at((uintptr_t)exit);
    if (!libc || module == hash_of(path_of(libc))) return false;
    if (module != end->places[ended - same - 1].module) return false;
    for (size_t i = 0; i < inner; i++)
        if (failure.places[i].module == module) return false;
    return true;
}

// In exit, of the thread that calls it.
__attribute__((destructor)) static void end(void) {
    if (!failure.thread || failure.thread != syscall(SYS_gettid)) return;
    struct stack stack = {.hash = 1};
    is_inside = true;
    _Unwind_Backtrace(add_frame, &stack);
    is_inside = false;
    if (is_given_up(&stack)) __atomic_store_n(&map->head.has_given_up, 1, __ATOMIC_RELEASE);
}

static bool is_chosen(const struct stack *stack, size_t size) {
    struct torture_head *head = &map->head;
    if (stack->hash != head->target) return false;
    if (__atomic_add_fetch(&head->seen, 1, __ATOMIC_ACQ_REL) != head->nth) return false;
    head->failed_bytes = size;
    memcpy(failure.places, stack->places, stack->count * sizeof *stack->places);
    failure.count = stack->count;
    failure.thread = syscall(SYS_gettid);
    __atomic_store_n(&head->failed_pid, (uint64_t)getpid(), __ATOMIC_RELEASE);
    watch_death();
    return true;
}

// Whether this allocation is to fail; then errno says so.
static bool fails(size_t size) {
    if (!map || is_inside) return false;
    is_inside = true;
    int old_errno = errno;
    struct stack stack = {.hash = 1, .is_named = is_listing};
    _Unwind_Backtrace(add_frame, &stack);
    if (!stack.hash) stack.hash = 1;
    bool is_failing = false;
    if (is_listing)
        note_stack(&stack);
    else
        is_failing = is_chosen(&stack, size);
    errno = is_failing ? ENOMEM : old_errno;
    is_inside = false;
    return is_failing;
}

// ---- the functions ------------------------------------------------------------------------------

EXPORT void *malloc(size_t size) {
    if (!is_ready) get_ready();
    if (!next.malloc) return early_allocate(size);
    return fails(size) ? NULL : next.malloc(size);
}

EXPORT void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (!is_ready) get_ready();
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    if (!next.calloc) return early_allocate(bytes);  // zeros, since it is never used again
    return fails(bytes) ? NULL : next.calloc(count, size);
}

EXPORT void free(void *block) {
    if (!block || is_early(block)) return;
    if (!is_ready) get_ready();
    if (next.free) next.free(block);
}

EXPORT void *realloc(void *block, size_t size) {
    if (!is_ready) get_ready();
    if (is_early(block) || !next.realloc) {
        size_t there = block ? (size_t)(early + EARLY_BYTES - (char *)block) : 0;
        void *moved = malloc(size);
        if (moved && block) memcpy(moved, block, there < size ? there : size);
        return moved;
    }
    return size && fails(size) ? NULL : next.realloc(block, size);
}

EXPORT void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    if (is_early(block) || !next.reallocarray) return realloc(block, bytes);
    return bytes && fails(bytes) ? NULL : next.reallocarray(block, count, size);
}

EXPORT void *memalign(size_t alignment, size_t size) {
    if (!is_ready) get_ready();
    return !next.memalign || fails(size) ? NULL : next.memalign(alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
    if (!is_ready) get_ready();
    return !next.aligned_alloc || fails(size) ? NULL : next.aligned_alloc(alignment, size);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t size) {
    if (!is_ready) get_ready();
    int old_errno = errno;
    bool is_failing = !next.posix_memalign || fails(size);
    errno = old_errno;  // it only returns the error
    return is_failing ? ENOMEM : next.posix_memalign(block, alignment, size);
}

EXPORT void *valloc(size_t size) {
    if (!is_ready) get_ready();
    return !next.valloc || fails(size) ? NULL : next.valloc(size);
}

EXPORT void *pvalloc(size_t size) {
    if (!is_ready) get_ready();
    return !next.pvalloc || fails(size) ? NULL : next.pvalloc(size);
}

EXPORT size_t malloc_usable_size(void *block) {
    if (!is_ready) get_ready();
    return is_early(block) || !next.malloc_usable_size ? 0 : next.malloc_usable_size(block);
}
