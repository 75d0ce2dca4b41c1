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
#include "runtime/api/pool.h"
#include "runtime/inject/attach.h"
#include "runtime/inject/got_patch.h"
#include "runtime/process/state.h"
#include "runtime/stack/scope.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/linker.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/thread.h"

struct heap {
    char name[CAIRN_WRAP_NAME_BYTES];
    struct pool *pool;  // NULL: not all its functions are there yet
    uint32_t first, count;
};

// `actual` lies first: the hook calls it.
struct function {
    uintptr_t actual;
    struct heap *heap;
    uint32_t scope;  // of kind CAIRN_SCOPE_WRAPPED
    char role;
    uint8_t size, count, pointer, out;  // numbers of arguments, 0: none
    char name[CAIRN_WRAP_NAME_BYTES];
};

static struct heap heaps[CAIRN_WRAP_HEAPS];
extern HIDDEN struct function wrap_functions[CAIRN_WRAP_FUNCTIONS];
__attribute__((used)) struct function wrap_functions[CAIRN_WRAP_FUNCTIONS];
static uint32_t heap_count, function_count;

// ---- the hook -----------------------------------------------------------------------------------

// What it saves of vector registers, by XSAVE: those parts of the processor's state that the system
// has switched on, SSE, AVX and AVX-512. Room for all, a multiple of 64.
enum { SAVED_PARTS = 0xe6, SAVED_BYTES = 2752 };
extern HIDDEN uint32_t wrap_saved_parts;
__attribute__((used)) uint32_t wrap_saved_parts;

// As the hook lays them out. It calls the function with copies of eight words of stack arguments.
struct registers {
    uintptr_t arguments[CAIRN_WRAP_ARGUMENTS];
    uintptr_t vector_count, chain;
    uintptr_t old_bytes;  // what a block had that is given back, and 1; 0: none is; or IS_INNER
    struct function *function;
};
static const uintptr_t IS_INNER = UINTPTR_MAX;

_Static_assert(offsetof(struct function, actual) == 0, "the hook calls it");
_Static_assert(sizeof(struct registers) == 80, "the hook has room for it");
_Static_assert(SAVED_BYTES == 2752 && sizeof(struct function) == 96, "as the hook has it");

extern HIDDEN const uint8_t wrap_ways[];
enum { WAY_BYTES = 16 };

#define SAVE                                                                                       \
    "    xorl %eax, %eax\n"                                                                        \
    "    movq %rax, 512(%rsp)\n    movq %rax, 520(%rsp)\n    movq %rax, 528(%rsp)\n"               \
    "    movq %rax, 536(%rsp)\n    movq %rax, 544(%rsp)\n    movq %rax, 552(%rsp)\n"               \
    "    movq %rax, 560(%rsp)\n    movq %rax, 568(%rsp)\n"                                         \
    "    movl wrap_saved_parts(%rip), %eax\n    xorl %edx, %edx\n    xsave (%rsp)\n"
#define RESTORE "    movl wrap_saved_parts(%rip), %eax\n    xorl %edx, %edx\n    xrstor (%rsp)\n"

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
        "    leaq wrap_functions + wrap_at(%rip), %r11\n"
        "    jmp wrap_hook\n"
        "    .set wrap_at, wrap_at + 96\n"
        ".endr\n"
        "    .cfi_endproc\n"
        ".size wrap_ways, .-wrap_ways\n"
        ".balign 16\n"
        ".type wrap_hook, @function\n"
        "wrap_hook:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    subq $80, %rsp\n"
        "    movq %rdi, -80(%rbp)\n    movq %rsi, -72(%rbp)\n    movq %rdx, -64(%rbp)\n"
        "    movq %rcx, -56(%rbp)\n    movq %r8, -48(%rbp)\n    movq %r9, -40(%rbp)\n"
        "    movq %rax, -32(%rbp)\n    movq %r10, -24(%rbp)\n    movq %r11, -8(%rbp)\n"
        "    subq $2752, %rsp\n"
        "    andq $-64, %rsp\n" SAVE "    leaq -80(%rbp), %rdi\n"
        "    call wrap_before\n" RESTORE "    subq $64, %rsp\n"
        "    movq 16(%rbp), %r11\n    movq %r11, (%rsp)\n"
        "    movq 24(%rbp), %r11\n    movq %r11, 8(%rsp)\n"
        "    movq 32(%rbp), %r11\n    movq %r11, 16(%rsp)\n"
        "    movq 40(%rbp), %r11\n    movq %r11, 24(%rsp)\n"
        "    movq 48(%rbp), %r11\n    movq %r11, 32(%rsp)\n"
        "    movq 56(%rbp), %r11\n    movq %r11, 40(%rsp)\n"
        "    movq 64(%rbp), %r11\n    movq %r11, 48(%rsp)\n"
        "    movq 72(%rbp), %r11\n    movq %r11, 56(%rsp)\n"
        "    movq -80(%rbp), %rdi\n    movq -72(%rbp), %rsi\n    movq -64(%rbp), %rdx\n"
        "    movq -56(%rbp), %rcx\n    movq -48(%rbp), %r8\n    movq -40(%rbp), %r9\n"
        "    movq -32(%rbp), %rax\n    movq -24(%rbp), %r10\n    movq -8(%rbp), %r11\n"
        "    call *(%r11)\n"
        "    addq $64, %rsp\n"
        "    movq %rax, -32(%rbp)\n    movq %rdx, -24(%rbp)\n" SAVE "    leaq -80(%rbp), %rdi\n"
        "    movq -32(%rbp), %rsi\n"
        "    call wrap_after\n" RESTORE "    movq -32(%rbp), %rax\n    movq -24(%rbp), %rdx\n"
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

static bool is_outermost(const struct registers *registers) {
    uintptr_t here = (uintptr_t)registers, *place = place_of(registers);
    if (place && *place && here < *place) return false;
    if (place) *place = here;
    return true;
}

static bool is_recorded(void) {
    return process_state() == PROCESS_RECORDING;
}

// What is given back is so before the function can give it to another thread.
__attribute__((used)) HIDDEN void wrap_before(struct registers *registers);
__attribute__((used)) HIDDEN void wrap_before(struct registers *registers) {
    const struct function *function = registers->function;
    bool frees = function->role == 'f' || function->role == 'r';
    size_t bytes = 0;
    registers->old_bytes = IS_INNER;
    if (!is_outermost(registers)) return;
    const void *block = (const void *)argument(registers, function->pointer);
    if (frees && is_recorded() && pool_take(function->heap->pool, block, &bytes))
        registers->old_bytes = bytes + 1;
    else
        registers->old_bytes = 0;
}

// A result that lies where an argument says; 0: nothing can be read there.
static uintptr_t read_out(uintptr_t address) {
    uintptr_t word = 0;
    struct iovec here = {&word, sizeof word}, there = {(void *)address, sizeof word};
    if (sys_is_confined() || sys_call(SYS_process_vm_readv, sys_pid(), (long)&here, 1, (long)&there,
                                      1, 0) != sizeof word)
        return 0;
    return word;
}

static size_t size_of(const struct registers *registers) {
    const struct function *function = registers->function;
    size_t size = argument(registers, function->size), bytes;
    if (!function->count) return size;
    return __builtin_mul_overflow(size, argument(registers, function->count), &bytes) ? 0 : bytes;
}

static void count_result(const struct registers *registers, uintptr_t result) {
    const struct function *function = registers->function;
    struct pool *pool = function->heap->pool;
    uintptr_t old = argument(registers, function->pointer);
    // A status of 0 says that the result is there.
    if (function->out) result = (uint32_t)result ? 0 : read_out(argument(registers, function->out));
    bool has_failed = !result && size_of(registers);
    if (result) pool_add(pool, (const void *)result, size_of(registers));
    if (function->role == 'r' && has_failed && registers->old_bytes)
        pool_put_back(pool, (const void *)old, registers->old_bytes - 1);
}

__attribute__((used)) HIDDEN void wrap_after(struct registers *registers, uintptr_t result);
__attribute__((used)) HIDDEN void wrap_after(struct registers *registers, uintptr_t result) {
    if (registers->old_bytes == IS_INNER) return;
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
    struct function *function = &wrap_functions[function_count];
    *function = (struct function){.heap = heap, .role = (*at)[1]};
    if (!memchr(CAIRN_WRAP_ROLES, function->role, strlen(CAIRN_WRAP_ROLES)) || (*at)[2] != ',')
        return false;
    *at += 3;
    if (!take_name(at, function->name) || !take_number(at, &function->size) ||
        !take_number(at, &function->count) || !take_number(at, &function->pointer) ||
        !take_number(at, &function->out))
        return false;
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

// A heap is led once all its functions are there: with one left out, blocks would never end.
static void find_heap(struct heap *heap) {
    struct function *functions = &wrap_functions[heap->first];
    bool has_all = true;
    for (uint32_t i = 0; i < heap->count; i++) {
        if (!functions[i].actual) functions[i].actual = (uintptr_t)linker_find(functions[i].name);
        has_all = has_all && functions[i].actual;
    }
    if (has_all) heap->pool = pool_make(heap->name);
}

static bool find_wrapped(void *context, const char *name, uintptr_t *real, uintptr_t *way) {
    (void)context;
    for (uint32_t i = 0; i < function_count; i++) {
        struct function *function = &wrap_functions[i];
        if (!function->heap->pool || strcmp(function->name, name) != 0) continue;
        *real = function->actual;
        *way = (uintptr_t)wrap_ways + i * WAY_BYTES;
        return true;
    }
    return false;
}

static bool find_one(void *context, const char *name, uintptr_t *real, uintptr_t *way) {
    const struct function *function = context;
    return !strcmp(function->name, name) && find_wrapped(NULL, name, real, way);
}

// Of each function it is noted how many slots lead through the hook.
static int look_at_module(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size, (void)context;
    for (uint32_t i = 0; i < function_count; i++) {
        struct function *function = &wrap_functions[i];
        if (!function->heap->pool || !function->scope) continue;
        uint32_t led = got_patch_module(info, find_one, function);
        scope_at(function->scope)->allocations += led;
    }
    return 0;
}

void wrap_look(void) {
    if (likely(!heap_count) || sys_is_confined() || !is_recorded()) return;
    int saved_errno = errno;
    for (uint32_t i = 0; i < heap_count; i++)
        if (!heaps[i].pool) find_heap(&heaps[i]);
    for (uint32_t i = 0; i < function_count; i++)
        if (wrap_functions[i].scope) scope_at(wrap_functions[i].scope)->allocations = 0;
    dl_iterate_phdr(look_at_module, NULL);
    for (uint32_t i = 0; i < function_count; i++)
        if (wrap_functions[i].scope)
            scope_at(wrap_functions[i].scope)->entries = wrap_functions[i].actual != 0;
    errno = saved_errno;
}

void wrap_open(void) {
    const char *at = environment_get(CAIRN_VARIABLE(WRAP));
    if (!at || !*at || attach_is_by_tool() || heap_count || !find_parts()) return;
    while (*at && take_heap(&at)) continue;
    if (*at) heap_count = 0;  // not the tool's
    for (uint32_t i = 0; heap_count && i < function_count; i++) {
        uint32_t heap = scope_of_name(CAIRN_SCOPE_POOL, 0, wrap_functions[i].heap->name);
        wrap_functions[i].scope = scope_of_name(CAIRN_SCOPE_WRAPPED, heap, wrap_functions[i].name);
    }
    wrap_look();
}

#endif
