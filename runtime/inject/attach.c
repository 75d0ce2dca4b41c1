// SPDX-License-Identifier: Apache-2.0
// The state of the whole library is its writable data, its thread-locals, the mappings it made and
// its recording. A copy of the data is taken at the first start, when only the real functions are
// known.
// `stop` unmaps everything (the mappings lie in one reserved space, sys_space_open) and puts the
// copy back; the tool does the same with the thread-locals of all threads. So no room needs to know
// how to be closed, and the thousandth attach finds what the first one found.
//
// A thread that had read a slot before it was put back may still call a hook afterwards: that finds
// a library that is not started, and only calls the real function.
//
// Threads and signals: the tool runs start and stop in one thread while all others are stopped, on
// a stack of its own, with signals blocked.
#include "runtime/inject/attach.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "format/attachment.h"
#include "format/settings.h"
#include "runtime/bare/bare.h"
#include "runtime/bare/locals.h"
#include "runtime/inject/entries.h"
#include "runtime/inject/existing_blocks.h"
#include "runtime/inject/namespaces.h"
#include "runtime/process/end.h"
#include "runtime/process/real.h"
#include "runtime/process/state.h"
#include "runtime/sink/sink.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/veil.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/slots.h"

// Enough for the live map of a heap of 400 GiB.
#define ATTACH_SPACE_BYTES (64ull << 30)

extern struct cairn_attachment cairn_attachment;

// Initialized, so that it has bytes in the file, which the tool marks.
__attribute__((visibility("default"), used)) struct cairn_attachment cairn_attachment = {
    .magic = CAIRN_ATTACHMENT_MAGIC,
    .struct_bytes = sizeof(struct cairn_attachment),
    .format_version = CAIRN_VERSION,
    .entry_hooks =
        {
            [CAIRN_ENTRY_ALLOC] = (uintptr_t)entry_alloc,
            [CAIRN_ENTRY_ALIGNED] = (uintptr_t)entry_aligned,
            [CAIRN_ENTRY_CALLOC] = (uintptr_t)entry_calloc,
            [CAIRN_ENTRY_REALLOC] = (uintptr_t)entry_realloc,
            [CAIRN_ENTRY_REARRAY] = (uintptr_t)entry_rearray,
            [CAIRN_ENTRY_MEMALIGN] = (uintptr_t)entry_memalign,
            [CAIRN_ENTRY_RESIZE] = (uintptr_t)entry_resize,
            [CAIRN_ENTRY_FREE] = (uintptr_t)entry_free,
            [CAIRN_ENTRY_NEW] = (uintptr_t)entry_new,
            [CAIRN_ENTRY_ARENA_ALLOC] = (uintptr_t)entry_arena_alloc,
            [CAIRN_ENTRY_ARENA_ALIGNED] = (uintptr_t)entry_arena_aligned,
            [CAIRN_ENTRY_ARENA_CALLOC] = (uintptr_t)entry_arena_calloc,
            [CAIRN_ENTRY_ARENA_REALLOC] = (uintptr_t)entry_arena_realloc,
            [CAIRN_ENTRY_ARENA_FREE] = (uintptr_t)entry_arena_free,
            [CAIRN_ENTRY_INSIDE] = (uintptr_t)entry_inside,
        },
};

// Not in the above: all of a library's data in the file is mapped around what is touched there.
static APART char settings[CAIRN_ATTACHMENT_SETTINGS];

extern HIDDEN const uint8_t __ehdr_start[], etext[];

// The data before the first start; NULL until then.
static uint8_t *pristine;

struct span {
    uint8_t *start;
    size_t bytes;
};

bool attach_is_by_tool(void) {
    return cairn_attachment.is_by_tool;
}

bool attach_is_running(void) {
    return cairn_attachment.is_running;
}

bool attach_has_entries(void) {
    return __atomic_load_n(&cairn_attachment.entries_at, __ATOMIC_RELAXED) != 0;
}

uint64_t attach_entry_hook(enum cairn_entry_kind kind) {
    return cairn_attachment.entry_hooks[kind];
}

void attach_set_entries(uintptr_t start) {
    __atomic_store_n(&cairn_attachment.entries_at, start, __ATOMIC_RELAXED);
}

void attach_set_wrapped(uintptr_t ways, uintptr_t functions, size_t bytes) {
    cairn_attachment.wrap_ways = ways;
    cairn_attachment.wrap_functions = functions;
    cairn_attachment.wrap_bytes = bytes;
}

uint32_t attach_wrap_way(uint32_t number) {
    return cairn_attachment.wrap_way[number] % CAIRN_WRAP_FUNCTIONS;
}

void attach_set_wrap_scope(uint32_t number, uintptr_t scope) {
    cairn_attachment.wrap_scopes[number] = scope;
}

// The tool has led a static program's functions here before it began.
uintptr_t attach_address(void) {
#if defined(CAIRN_BARE)
    return 0;
#endif
    return (uintptr_t)&cairn_attachment;
}

// The last one: LLVM's linker has a writable segment of its own for what becomes read-only.
static const Elf64_Phdr *segment_find(uint32_t type, uint32_t flags) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)__ehdr_start;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(__ehdr_start + header->e_phoff);
    const Elf64_Phdr *found = NULL;
    for (uint32_t i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == type && (segments[i].p_flags & flags) == flags)
            found = &segments[i];
    return found;
}

// Writable data: the writable segment without what the linker has made read-only.
static struct span data_span(void) {
    const Elf64_Phdr *data = segment_find(PT_LOAD, PF_W), *fixed = segment_find(PT_GNU_RELRO, 0);
    if (!data) return (struct span){0};
    uintptr_t base = (uintptr_t)__ehdr_start, start = base + data->p_vaddr;
    uintptr_t end = start + data->p_memsz;
    uintptr_t fixed_end = fixed ? base + fixed->p_vaddr + fixed->p_memsz : 0;
    fixed_end = sys_page_up(fixed_end);
    if (fixed_end > start) start = fixed_end;
    return (struct span){(uint8_t *)start, end > start ? end - start : 0};
}

#if defined(CAIRN_BARE)
static bool locals_prepare(void) {
    return bare_locals_prepare();
}
static void locals_start(void) {
    bare_locals_start(cairn_attachment.is_confined);
}
static void locals_stop(void) {
    bare_locals_stop();
}
static void pristine_keep(size_t bytes) {
    bare_keep_mapping(pristine, bytes);
}
#else
// The dynamic linker gave each thread its own, and the library stays in the process.
static bool locals_prepare(void) {
    return true;
}
static void locals_start(void) {}
static void locals_stop(void) {}
static void pristine_keep(size_t bytes) {
    (void)bytes;
}
#endif

static bool pristine_take(void) {
    if (pristine) return true;
    struct span data = data_span();
    void *copy = data.bytes ? sys_reserve(data.bytes) : NULL;
    if (!copy) return false;
    pristine = copy;
    pristine_keep(data.bytes);
    memcpy(copy, data.start, data.bytes);
    return true;
}

// No function of this room may be called between the copy and the return.
static void pristine_put_back(void) {
    struct span data = data_span();
    if (data.start) memcpy(data.start, pristine, data.bytes);
}

// Address space is covered by the tool's file, if it is there for this process too. Under a filter
// nothing more is called than must be.
static void open_cover(void) {
    const char *path = environment_get(CAIRN_VARIABLE(TOOL));
    const long flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    if (path && !cairn_attachment.is_confined)
        veil_open(sys_call(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0));
}

static int attach_start(void) {
    int saved_errno = errno;
    int result = CAIRN_ATTACHMENT_DONE;
    if (cairn_attachment.is_running) return CAIRN_ATTACHMENT_IS_RUNNING;
    environment_give(settings);
    real_resolve();
    if (!locals_prepare() || !pristine_take()) return CAIRN_ATTACHMENT_NO_SPACE;
    process_forget();
    open_cover();
    if (!sys_space_open(ATTACH_SPACE_BYTES)) {
        veil_close();
        return CAIRN_ATTACHMENT_NO_SPACE;
    }
    cairn_attachment.space_start = sys_space_start();
    cairn_attachment.space_end = cairn_attachment.space_start + ATTACH_SPACE_BYTES;
    cairn_attachment.is_running = 1;
    locals_start();
    if (!process_start()) result = CAIRN_ATTACHMENT_NOT_OPENED;
    if (cairn_attachment.is_confined) sys_confine(SYS_FILTERED);
    errno = saved_errno;
    return result;
}

static int attach_stop(void) {
    int saved_errno = errno;
    if (!pristine) return CAIRN_ATTACHMENT_NOT_LOADED;
    process_end();
    struct cairn_header *header = sink.header;
    if (header) sink_unmap(header);
    slots_close();
    locals_stop();
    sys_space_close();
    pristine_put_back();
    errno = saved_errno;
    return CAIRN_ATTACHMENT_DONE;
}

#if defined(CAIRN_BARE)
// The library has them in its own memory, and knows the program's functions.
static bool tell_locals(struct cairn_attachment *attachment) {
    (void)attachment;
    return true;
}
#else
static uintptr_t thread_pointer(void) {
    uintptr_t pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

#if defined(CAIRN_MUSL)
// musl's dlopen gives every thread, present and future, a block of its own, and a table of such
// blocks, which begins with their number; the thread's second word leads to it. 0: it does not look
// like that.
static uint64_t locals_module(const void *locals) {
    const uintptr_t *table = ((uintptr_t *const *)thread_pointer())[1];
    for (uintptr_t i = 1; table && i <= table[0]; i++)
        if (table[i] == (uintptr_t)locals) return i;
    return 0;
}
#else
// They have a fixed place beside those of the program.
static uint64_t locals_module(const void *locals) {
    (void)locals;
    return 0;
}
#endif

// A function of the program by its name, as the tool found it; NULL: there is none.
static void *find(const char *name) {
    const uintptr_t base = 16;
    char key[64] = "@";
    memcpy(key + 1, name, strnlen(name, sizeof key - 2));
    const char *digits = environment_get(key);
    uintptr_t address = 0;
    for (; digits && *digits; digits++)
        address = address * base + (uintptr_t)(*digits <= '9' ? *digits - '0' : *digits - 'a' + 10);
    return (void *)address;
}

// gate_self is the only one that does not begin as zero, and so the first of all.
static bool tell_locals(struct cairn_attachment *attachment) {
    const Elf64_Phdr *locals = segment_find(PT_TLS, 0);
    struct thread *initial = gate_nobody();
    real_finder = find;
    if (!locals || locals->p_filesz != sizeof gate_self ||
        locals->p_memsz > sizeof attachment->tls_image)
        return false;
    attachment->tls_offset = (int64_t)((uintptr_t)&gate_self - thread_pointer());
    attachment->tls_module = locals_module(&gate_self);
    attachment->tls_bytes = locals->p_memsz;
    memcpy(attachment->tls_image, &initial, sizeof initial);
    return true;
}
#endif

void attach_loaded(void) {
    struct cairn_attachment *attachment = &cairn_attachment;
    if (!tell_locals(attachment)) return;
    attachment->code_start = (uintptr_t)__ehdr_start;
    attachment->code_end = (uintptr_t)etext;
    attachment->namespace_ways = namespaces_ways();
    attachment->namespace_real = namespaces_real();
    attachment->settings = (uintptr_t)settings;
    attachment->stop = (uintptr_t)attach_stop;
    attachment->count = (uintptr_t)existing_blocks_take;
    attachment->start = (uintptr_t)attach_start;
}

#if defined(CAIRN_BARE)
// The tool calls it once it has put the library into a program that runs.
extern int cairn_bare_begin(void);
__attribute__((visibility("default"), used)) int cairn_bare_begin(void) {
    if (!bare_locals_open()) return CAIRN_ATTACHMENT_NOT_LOADED;
    attach_loaded();
    return CAIRN_ATTACHMENT_DONE;
}
#endif
