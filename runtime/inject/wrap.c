// SPDX-License-Identifier: Apache-2.0
#include "runtime/inject/wrap.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "format/settings.h"
#include "format/wrap.h"
#include "runtime/api/arena.h"
#include "runtime/api/heap_points.h"
#include "runtime/api/heap_stacks.h"
#include "runtime/api/pool.h"
#include "runtime/inject/attach.h"
#include "runtime/inject/got_patch.h"
#include "runtime/process/state.h"
#include "runtime/record/event.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/scope.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/linker.h"
#include "runtime/sys/lock.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/thread.h"

struct heap {
    char name[CAIRN_WRAP_NAME_BYTES];
    bool is_led;      // all its functions are there
    bool is_refused;  // there is no room for it
    bool has_arenas;
    struct pool *pool;         // of a heap without arenas
    struct arenas *arenas;     // of one that has them
    uint32_t scope;            // of kind CAIRN_SCOPE_POOL
    const uintptr_t *present;  // the arena that functions mean which are not told; NULL: unknown
    uint32_t first, count;
};

// `actual` lies first: the hook calls it.
struct function {
    uintptr_t actual;
    struct heap *heap;
    uint32_t scope;  // of kind CAIRN_SCOPE_WRAPPED; 0: its absence is not said
    char role;
    uint8_t size, count, pointer, out, pool, parent, label;  // numbers of arguments, 0: none
    bool is_led;  // by a jump where it begins, which the tool wrote (entry_patch.h)
    bool may_lack;
    char name[CAIRN_WRAP_NAME_BYTES];
};

static APART struct heap heaps[CAIRN_WRAP_HEAPS];
extern HIDDEN struct function wrap_functions[CAIRN_WRAP_FUNCTIONS];
__attribute__((used)) APART struct function wrap_functions[CAIRN_WRAP_FUNCTIONS];
static uint32_t heap_count, function_count;

// The functions of heaps are numbered in the order of their rows.
static struct function *function_at(uint32_t number) {
    return &wrap_functions[attach_is_by_tool() ? attach_wrap_way(number) : number];
}

// ---- the hook -----------------------------------------------------------------------------------

// What it saves of vector registers, by XSAVE: those parts of the processor's state that the system
// has switched on, SSE, AVX and AVX-512. Room for all, a multiple of 64.
enum { SAVED_PARTS = 0xe6, SAVED_BYTES = 2752 };
extern HIDDEN uint32_t wrap_saved_parts;
__attribute__((used)) uint32_t wrap_saved_parts;

// As the hook lays them out: what the registers held when it was called, and when the function came
// back. It calls the function with copies of eight words of stack arguments.
struct registers {
    struct birth birth;  // of the block that is given back
    uint64_t stack;      // that had asked for it
    uintptr_t arena;     // of it; 0: not known
    uintptr_t arguments[CAIRN_WRAP_ARGUMENTS];
    uintptr_t vector_count, chain, scratch;
    uintptr_t old_bytes;  // what a block had that is given back, and 1; 0: none is; or IS_INNER
    struct function *function;
    uintptr_t actual;
    uintptr_t after[9];
};
static const uintptr_t IS_INNER = UINTPTR_MAX;

_Static_assert(offsetof(struct function, actual) == 0, "the hook calls it");
_Static_assert(sizeof(struct registers) == 192, "the hook has room for it");
_Static_assert(SAVED_BYTES == 2752 && sizeof(struct function) == 96, "as the hook has it");

// The hook's frame, by which its caller is found.
static uintptr_t *frame_of(const struct registers *registers) {
    return (uintptr_t *)(uintptr_t)(registers + 1);
}

extern HIDDEN const uint8_t wrap_ways[], __ehdr_start[];

#define SAVE                                                                                       \
    "    xorl %eax, %eax\n"                                                                        \
    "    movq %rax, 512(%rsp)\n    movq %rax, 520(%rsp)\n    movq %rax, 528(%rsp)\n"               \
    "    movq %rax, 536(%rsp)\n    movq %rax, 544(%rsp)\n    movq %rax, 552(%rsp)\n"               \
    "    movq %rax, 560(%rsp)\n    movq %rax, 568(%rsp)\n"                                         \
    "    movl wrap_saved_parts(%rip), %eax\n    xorl %edx, %edx\n    xsave (%rsp)\n"
#define RESTORE "    movl wrap_saved_parts(%rip), %eax\n    xorl %edx, %edx\n    xrstor (%rsp)\n"

// A way says which function it is of by a word on the stack, so that no register is lost. The hook
// loses none either, of those that a caller may count on beyond what is usual: within one file
// compilers know which registers a function leaves alone (GCC's -fipa-ra).
__asm__(".text\n"
        ".balign 16\n"
        ".hidden wrap_ways\n"
        ".globl wrap_ways\n"
        ".type wrap_ways, @function\n"
        "wrap_ways:\n"
        "    .cfi_startproc\n"
        "    .set wrap_at, 0\n"
        ".rept 64\n"
        "    .balign 16\n"
        "    .cfi_def_cfa_offset 8\n"
        "    pushq $wrap_at\n"
        "    .cfi_def_cfa_offset 16\n"
        "    jmp wrap_hook\n"
        "    .set wrap_at, wrap_at + 1\n"
        ".endr\n"
        "    .cfi_endproc\n"
        ".size wrap_ways, .-wrap_ways\n"
        ".balign 16\n"
        ".type wrap_hook, @function\n"
        "wrap_hook:\n"
        "    .cfi_startproc\n"
        "    .cfi_def_cfa_offset 16\n"
        "    xchgq %rbp, (%rsp)\n"
        "    .cfi_offset %rbp, -16\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 24\n"
        "    leaq 8(%rsp), %rbp\n"
        "    .cfi_def_cfa %rbp, 16\n"
        "    subq $184, %rsp\n"
        "    movq %rdi, -168(%rbp)\n    movq %rsi, -160(%rbp)\n    movq %rdx, -152(%rbp)\n"
        "    movq %rcx, -144(%rbp)\n    movq %r8, -136(%rbp)\n    movq %r9, -128(%rbp)\n"
        "    movq %rax, -120(%rbp)\n    movq %r10, -112(%rbp)\n    movq %r11, -104(%rbp)\n"
        "    imulq $96, -8(%rbp), %r11\n"
        "    leaq wrap_functions(%rip), %rax\n"
        "    addq %rax, %r11\n"
        "    movq %r11, -88(%rbp)\n"
        "    movq (%r11), %rax\n"
        "    movq %rax, -80(%rbp)\n"
        "    subq $2752, %rsp\n"
        "    andq $-64, %rsp\n" SAVE "    leaq -192(%rbp), %rdi\n"
        "    call wrap_before\n" RESTORE "    subq $64, %rsp\n"
        "    movq 16(%rbp), %r11\n    movq %r11, (%rsp)\n"
        "    movq 24(%rbp), %r11\n    movq %r11, 8(%rsp)\n"
        "    movq 32(%rbp), %r11\n    movq %r11, 16(%rsp)\n"
        "    movq 40(%rbp), %r11\n    movq %r11, 24(%rsp)\n"
        "    movq 48(%rbp), %r11\n    movq %r11, 32(%rsp)\n"
        "    movq 56(%rbp), %r11\n    movq %r11, 40(%rsp)\n"
        "    movq 64(%rbp), %r11\n    movq %r11, 48(%rsp)\n"
        "    movq 72(%rbp), %r11\n    movq %r11, 56(%rsp)\n"
        "    movq -168(%rbp), %rdi\n    movq -160(%rbp), %rsi\n    movq -152(%rbp), %rdx\n"
        "    movq -144(%rbp), %rcx\n    movq -136(%rbp), %r8\n    movq -128(%rbp), %r9\n"
        "    movq -120(%rbp), %rax\n    movq -112(%rbp), %r10\n    movq -104(%rbp), %r11\n"
        "    call *-80(%rbp)\n"
        "    addq $64, %rsp\n"
        "    movq %rdi, -72(%rbp)\n    movq %rsi, -64(%rbp)\n    movq %rdx, -56(%rbp)\n"
        "    movq %rcx, -48(%rbp)\n    movq %r8, -40(%rbp)\n    movq %r9, -32(%rbp)\n"
        "    movq %rax, -24(%rbp)\n    movq %r10, -16(%rbp)\n    movq %r11, -8(%rbp)\n" SAVE
        "    leaq -192(%rbp), %rdi\n"
        "    movq -24(%rbp), %rsi\n"
        "    call wrap_after\n" RESTORE
        "    movq -72(%rbp), %rdi\n    movq -64(%rbp), %rsi\n    movq -56(%rbp), %rdx\n"
        "    movq -48(%rbp), %rcx\n    movq -40(%rbp), %r8\n    movq -32(%rbp), %r9\n"
        "    movq -24(%rbp), %rax\n    movq -16(%rbp), %r10\n    movq -8(%rbp), %r11\n"
        "    leave\n"
        "    .cfi_def_cfa %rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size wrap_hook, .-wrap_hook\n");

static uintptr_t argument(const struct registers *registers, uint8_t number) {
    return number ? registers->arguments[number - 1] : 0;
}

// A call from within another one of its heap lies deeper on the stack; what an exception has left
// behind does not. A thread without a slot gets one now, or is in none.
static uintptr_t *place_of(const struct registers *registers) {
    if (unlikely(!gate_is_registered())) {
        struct thread *thread = gate_enter((uintptr_t)__builtin_frame_address(0));
        if (thread) gate_leave(thread);
    }
    return gate_is_registered() ? &gate_self->wrapped[registers->function->heap - heaps] : NULL;
}

static bool is_outermost(const struct registers *registers, uintptr_t *place) {
    uintptr_t here = (uintptr_t)registers;
    if (place && *place && here < *place) return false;
    if (place) *place = here;
    return true;
}

static bool is_recorded(void) {
    return process_state() == PROCESS_RECORDING;
}

static bool open_heap_late(struct heap *heap);

static bool read_memory(uintptr_t address, void *bytes, size_t size) {
    struct iovec here = {bytes, size}, there = {(void *)address, size};
    return !sys_is_confined() && sys_call(SYS_process_vm_readv, sys_pid(), (long)&here, 1,
                                          (long)&there, 1, 0) == (long)size;
}

// The name that an argument points to, as a name of pools within its heap; 0: it cannot be read.
static uint32_t scope_of_label(const struct heap *heap, uintptr_t address) {
    enum { LABEL_BYTES = 48 };
    char label[LABEL_BYTES];
    size_t to_page_end = sys_page_bytes() - address % sys_page_bytes();
    size_t size = to_page_end < sizeof label - 1 ? to_page_end : sizeof label - 1;
    if (!address || !read_memory(address, label, size)) return 0;
    label[size] = 0;
    if (size < sizeof label - 1 && strnlen(label, size) == size &&
        read_memory(address + size, label + size, sizeof label - 1 - size))
        label[sizeof label - 1] = 0;
    return scope_of_name(CAIRN_SCOPE_POOL, heap->scope, label);
}

static uintptr_t arena_meant(const struct registers *registers) {
    const struct function *function = registers->function;
    if (function->pool) return argument(registers, function->pool);
    return function->heap->present ? *function->heap->present : 0;
}

// What happens to an arena happens even within another function of its heap: a parent that goes
// ends its children.
static bool is_of_arena(const struct registers *registers) {
    const struct function *function = registers->function;
    const struct heap *heap = function->heap;
    uintptr_t arena = arena_meant(registers);
    if (!heap->has_arenas || !memchr("xdlp", function->role, 4)) return false;
    if (!is_recorded()) return true;
    if (function->role == 'l')
        arena_name(heap->arenas, arena, scope_of_label(heap, argument(registers, function->label)));
    else if (function->role == 'p')
        arena_move(heap->arenas, arena, argument(registers, function->parent));
    else
        arena_clear(heap->arenas, arena, function->role == 'd');
    return true;
}

// A block that no arena has is new if there was none before, and otherwise in the arena that the
// function is told, if it is told one.
static void take_block(struct registers *registers) {
    const struct function *function = registers->function;
    const void *block = (const void *)argument(registers, function->pointer);
    struct heap_block taken = {.bytes = 0};
    bool is_there = function->heap->has_arenas ? arena_take(function->heap->arenas, block, &taken)
                                               : pool_take(function->heap->pool, block, &taken);
    uintptr_t told = block ? argument(registers, function->pool) : arena_meant(registers);
    registers->arena = is_there ? taken.arena : told;
    registers->stack = taken.stack;
    registers->birth = taken.birth;
    registers->old_bytes = is_there ? taken.bytes + 1 : 0;
}

// Where the tool attaches it leads a heap's callers once all its functions are there, which may be
// later; those in the executable from the start.
static bool is_heap_led(struct heap *heap) {
    if (likely(__atomic_load_n(&heap->is_led, __ATOMIC_ACQUIRE))) return true;
    return attach_is_by_tool() && is_recorded() && open_heap_late(heap);
}

// What is given back is so before the function can give it to another thread.
__attribute__((used)) HIDDEN void wrap_before(struct registers *registers);
__attribute__((used)) HIDDEN void wrap_before(struct registers *registers) {
    const struct function *function = registers->function;
    bool frees = function->role == 'f' || function->role == 'r';
    registers->old_bytes = IS_INNER;
    registers->arena = 0;
    // led by the tool before the rows were read, or of a heap that lacks a function
    if (!function->heap) return;
    int saved_errno = errno;
    uintptr_t *place = place_of(registers);  // a forked child begins its own recording first
    if (!is_heap_led(function->heap)) {
        errno = saved_errno;
        return;
    }
    bool is_outer = !is_of_arena(registers) && is_outermost(registers, place);
    if (is_outer) registers->old_bytes = 0;
    if (is_outer && frees && is_recorded()) take_block(registers);
    errno = saved_errno;
}

// A result that lies where an argument says; 0: nothing can be read there.
static uintptr_t read_out(uintptr_t address) {
    uintptr_t word = 0;
    return read_memory(address, &word, sizeof word) ? word : 0;
}

static size_t size_of(const struct registers *registers) {
    const struct function *function = registers->function;
    size_t size = argument(registers, function->size), bytes;
    if (!function->count) return size;
    return __builtin_mul_overflow(size, argument(registers, function->count), &bytes) ? 0 : bytes;
}

// The stack of the call; CAIRN_CELL_OTHER: it cannot be had.
static uint32_t cell_of(const struct registers *registers) {
    uintptr_t *frame = frame_of(registers);
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (!thread) return CAIRN_CELL_OTHER;
    uint32_t cell = gate_is_recording() && is_recorded() ? event_stack(thread, frame) : 0;
    gate_leave(thread);
    return cell ? cell : CAIRN_CELL_OTHER;
}

// A block that is reallocated stays in its arena.
static void enter_block(const struct registers *registers, uintptr_t block, size_t bytes) {
    const struct heap *heap = registers->function->heap;
    uint32_t cell = cell_of(registers);
    if (!heap->has_arenas)
        pool_add(heap->pool, (const void *)block, bytes, cell);
    else if (registers->function->role == 'r')
        arena_add(heap->arenas, registers->arena, (const void *)block, bytes, cell);
    else
        arena_add(heap->arenas, arena_meant(registers), (const void *)block, bytes, cell);
}

static void put_back(const struct registers *registers) {
    const struct heap *heap = registers->function->heap;
    const void *block = (const void *)argument(registers, registers->function->pointer);
    const struct heap_block taken = {registers->old_bytes - 1, (uint32_t)registers->stack,
                                     registers->arena, registers->birth};
    if (heap->has_arenas)
        arena_put_back(heap->arenas, block, &taken);
    else
        pool_put_back(heap->pool, block, &taken);
}

static void open_arena(const struct registers *registers, uintptr_t arena) {
    const struct function *function = registers->function;
    uintptr_t label = argument(registers, function->label);
    arena_open(function->heap->arenas, arena, argument(registers, function->parent),
               label ? scope_of_label(function->heap, label) : 0);
}

static void count_result(const struct registers *registers, uintptr_t result) {
    const struct function *function = registers->function;
    // A status of 0 says that the result is there.
    if (function->out) result = (uint32_t)result ? 0 : read_out(argument(registers, function->out));
    bool has_failed = !result && size_of(registers);
    if (result && function->role == 'm')
        open_arena(registers, result);
    else if (result)
        enter_block(registers, result, size_of(registers));
    if (function->role == 'r' && has_failed && registers->old_bytes) put_back(registers);
}

__attribute__((used)) HIDDEN void wrap_after(struct registers *registers, uintptr_t result);
__attribute__((used)) HIDDEN void wrap_after(struct registers *registers, uintptr_t result) {
    // no heap: the rows are gone
    if (registers->old_bytes == IS_INNER || !registers->function->heap) return;
    uintptr_t *place = place_of(registers);
    if (place) *place = 0;
    if (registers->function->role != 'f' && is_recorded()) {
        int saved_errno = errno;
        count_result(registers, result);
        errno = saved_errno;
    }
}

// ---- rows ---------------------------------------------------------------------------------------

static bool take_name(const char **at, char *name) {
    size_t length = strcspn(*at, ",|\n");
    if (!length || length >= CAIRN_WRAP_NAME_BYTES) return false;
    memcpy(name, *at, length);
    name[length] = 0;
    *at += length;
    return true;
}

static bool take_number(const char **at, uint8_t *number) {
    if ((*at)[0] != ',' || (*at)[1] < '0' || (*at)[1] > '0' + CAIRN_WRAP_ARGUMENTS) return false;
    *number = (uint8_t)((*at)[1] - '0');
    *at += 2;
    return true;
}

static bool take_function(const char **at, struct heap *heap) {
    if (function_count == CAIRN_WRAP_FUNCTIONS || (*at)[0] != '|' || !(*at)[1]) return false;
    struct function *function = function_at(function_count);
    uintptr_t actual = function->actual;
    *function = (struct function){.actual = actual, .role = (*at)[1], .is_led = actual != 0};
    function->may_lack = (*at)[2] == CAIRN_WRAP_MAY_LACK;
    *at += 2 + function->may_lack;
    if (!memchr(CAIRN_WRAP_ROLES, function->role, strlen(CAIRN_WRAP_ROLES)) || **at != ',')
        return false;
    ++*at;
    if (!take_name(at, function->name) || !take_number(at, &function->size) ||
        !take_number(at, &function->count) || !take_number(at, &function->pointer) ||
        !take_number(at, &function->out) || !take_number(at, &function->pool) ||
        !take_number(at, &function->parent) || !take_number(at, &function->label))
        return false;
    function->heap = heap;
    heap->has_arenas |= function->pool || memchr("mxdlpv", function->role, 6);
    function_count++;
    heap->count++;
    return true;
}

static bool take_heap(const char **at) {
    if (heap_count == CAIRN_WRAP_HEAPS) return false;
    struct heap *heap = &heaps[heap_count];
    *heap = (struct heap){.first = function_count};
    if (!take_name(at, heap->name)) return false;
    while (**at == '|')
        if (!take_function(at, heap)) return false;
    heap_count++;
    if (**at == '\n') ++*at;
    return true;
}

// Whether XSAVE is there, and which parts the system has switched on.
static bool find_parts(void) {
    unsigned a, b, c = 0, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    wrap_saved_parts = low & SAVED_PARTS;
    return true;
}

// ---- leading ------------------------------------------------------------------------------------

struct place {
    uintptr_t address;
    bool is_there;
};

// Whether it is data of the executable, which stays where it is.
static int look_at_program(struct dl_phdr_info *info, size_t size, void *context) {
    struct place *place = context;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t offset = place->address - info->dlpi_addr - segment->p_vaddr;
        place->is_there |= segment->p_type == PT_LOAD && segment->p_flags & PF_W &&
                           segment->p_memsz >= sizeof(uintptr_t) &&
                           offset <= segment->p_memsz - sizeof(uintptr_t);
    }
    return 1;  // it comes first
}

static void find_function(struct heap *heap, struct function *function) {
    if (!function->actual) function->actual = (uintptr_t)linker_find(function->name);
    struct place place = {.address = function->actual};
    if (function->role != 'v' || !place.address) return;
    dl_iterate_phdr(look_at_program, &place);
    heap->present = place.is_there ? (const uintptr_t *)place.address : NULL;
    function->is_led = place.is_there;
    if (!place.is_there) function->actual = 0;
}

// The tool may write where they are at any time.
static bool has_all(const struct heap *heap) {
    for (uint32_t i = 0; i < heap->count; i++) {
        const struct function *function = function_at(heap->first + i);
        if (!__atomic_load_n(&function->actual, __ATOMIC_RELAXED) && !function->may_lack)
            return false;
    }
    return true;
}

// A heap is led once all its functions are there: with one left out, blocks would never end.
static void open_heap(struct heap *heap) {
    if (!has_all(heap)) return;
    for (uint32_t i = 0; attach_is_by_tool() && i < heap->count; i++) {
        const struct function *function = function_at(heap->first + i);
        if (function->role == 'v')  // the tool has looked where it is
            heap->present = (const uintptr_t *)function->actual;
    }
    heap->scope = scope_of_name(CAIRN_SCOPE_POOL, 0, heap->name);
    if (heap->scope && heap->has_arenas)
        heap->arenas = arenas_make(heap->scope);
    else if (heap->scope)
        heap->pool = pool_make_heap(heap->name);
    bool is_made = heap->arenas || heap->pool;
    __atomic_store_n(&heap->is_refused, !is_made, __ATOMIC_RELAXED);
    __atomic_store_n(&heap->is_led, is_made, __ATOMIC_RELEASE);
}

// In a fork nobody counts what the tool leads for it.
static void note_led_in_fork(const struct heap *heap) {
    for (uint32_t i = 0; i < heap->count; i++) {
        const struct function *function = function_at(heap->first + i);
        if (!function->scope || !function->actual) continue;
        scope_at(function->scope)->entries = scope_at(function->scope)->allocations = 1;
    }
}

static struct lock late_lock;

// A heap that lacks a function may be called all the time: that needs no lock
// (e2e/wrap_attach, check_lacking).
static NOINLINE bool open_heap_late(struct heap *heap) {
    if (__atomic_load_n(&heap->is_refused, __ATOMIC_RELAXED) || !has_all(heap)) return false;
    if (!lock_take(&late_lock, (uintptr_t)&gate_self)) {
        gate_count_loss(CAIRN_LOST_NESTED);
        return false;
    }
    if (!heap->is_led) {
        open_heap(heap);
        if (heap->is_led && sink.header->forked_from) note_led_in_fork(heap);
    }
    lock_give_back(&late_lock);
    return heap->is_led;
}

// Of a heap that another thread was about to open, nothing counts: it is opened anew.
void wrap_inherit(void) {
    if (late_lock.holder != (uintptr_t)&gate_self) late_lock = (struct lock){0};
}

static bool find_wrapped(void *context, const char *name, uintptr_t *actual, uintptr_t *way) {
    (void)context;
    for (uint32_t i = 0; i < function_count; i++) {
        const struct function *function = function_at(i);
        if (!function->heap->is_led || !function->actual || function->is_led ||
            function->role == 'v' || strcmp(function->name, name) != 0)
            continue;
        *actual = function->actual;
        *way = (uintptr_t)wrap_ways + (uintptr_t)(function - wrap_functions) * CAIRN_WRAP_WAY_BYTES;
        return true;
    }
    return false;
}

static bool find_one(void *context, const char *name, uintptr_t *actual, uintptr_t *way) {
    const struct function *function = context;
    return !strcmp(function->name, name) && find_wrapped(NULL, name, actual, way);
}

// Of each function it is noted how many slots lead through the hook.
static COLD int look_at_module(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size, (void)context;
    // a hook that calls what it is the hook of would not end
    if (info->dlpi_addr == (uintptr_t)__ehdr_start) return 0;
    for (uint32_t i = 0; i < function_count; i++) {
        struct function *function = function_at(i);
        if (!function->heap->is_led || function->is_led || function->role == 'v') continue;
        uint32_t led = got_patch_module(info, find_one, function);
        if (function->scope) scope_at(function->scope)->allocations += led;
    }
    return 0;
}

void wrap_look(void) {
    if (likely(!heap_count) || attach_is_by_tool() || sys_is_confined() || !is_recorded()) return;
    int saved_errno = errno;
    for (uint32_t i = 0; i < heap_count; i++) {
        if (heaps[i].is_led) continue;
        for (uint32_t k = 0; k < heaps[i].count; k++)
            find_function(&heaps[i], function_at(heaps[i].first + k));
        open_heap(&heaps[i]);
    }
    for (uint32_t i = 0; i < function_count; i++)
        if (wrap_functions[i].scope)
            scope_at(wrap_functions[i].scope)->allocations = wrap_functions[i].is_led;
    dl_iterate_phdr(look_at_module, NULL);
    for (uint32_t i = 0; i < function_count; i++)
        if (wrap_functions[i].scope)
            scope_at(wrap_functions[i].scope)->entries = wrap_functions[i].actual != 0;
    errno = saved_errno;
}

static bool is_wanted;

bool wrap_is_wanted(void) {
    return is_wanted;
}

void wrap_offer(void) {
    const char *at = environment_get(CAIRN_VARIABLE(WRAP));
    is_wanted = at && *at;
    if ((attach_is_by_tool() || is_wanted) && find_parts())
        attach_set_wrapped((uintptr_t)wrap_ways, (uintptr_t)wrap_functions, sizeof *wrap_functions);
}

void wrap_open(void) {
    const char *at = environment_get(CAIRN_VARIABLE(WRAP));
    if (!at || !*at || heap_count || !find_parts()) return;
    heap_stacks_region();
    heap_points_region();
    while (*at && take_heap(&at)) continue;
    if (*at) heap_count = 0;  // not the tool's
    for (uint32_t i = 0; heap_count && i < function_count; i++) {
        struct function *function = function_at(i);
        uint32_t heap = scope_of_name(CAIRN_SCOPE_POOL, 0, function->heap->name);
        if (!function->may_lack)
            function->scope = scope_of_name(CAIRN_SCOPE_WRAPPED, heap, function->name);
        if (attach_is_by_tool() && function->scope)
            attach_set_wrap_scope(i, (uintptr_t)scope_at(function->scope));
    }
    for (uint32_t i = 0; attach_is_by_tool() && i < heap_count; i++) open_heap(&heaps[i]);
    wrap_look();
}

#endif
