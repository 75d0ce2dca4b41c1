// SPDX-License-Identifier: Apache-2.0
// The ways, what they lead to beside the hooks of entries.h, and when modules are looked for.
//
// A look holds the lock under which the dynamic linker changes its lists: that of dl_iterate_phdr.
// Nothing is unmapped meanwhile; a module that another thread has only begun to load is left to the
// next look.
#include "runtime/inject/namespaces.h"

#if defined(__x86_64__)

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#include "format/attachment.h"
#include "runtime/inject/attach.h"
#include "runtime/inject/entries.h"
#include "runtime/inject/got_patch.h"
#include "runtime/process/state.h"
#include "runtime/sys/object.h"
#include "runtime/thread/gate.h"

// The real functions, [namespace][function], and the ways: each loads its own as the sixth
// argument, which none of these functions has.
extern HIDDEN uintptr_t namespace_real[CAIRN_NAMESPACES_MAX][CAIRN_NAMESPACE_COUNT];
__attribute__((used)) APART uintptr_t namespace_real[CAIRN_NAMESPACES_MAX][CAIRN_NAMESPACE_COUNT];
extern HIDDEN const uint8_t namespace_ways[];

enum { WAY_BYTES = 16, WAY_NAMESPACES = 15 };  // as below
_Static_assert(WAY_BYTES == CAIRN_NAMESPACE_WAY_BYTES, "the tool counts by it");
_Static_assert(WAY_NAMESPACES == CAIRN_NAMESPACES_MAX, "the tool counts by it");

#define WAY(name, hook)                                                                            \
    "    .balign 16\n"                                                                             \
    "    movq namespace_real + namespace_at(%rip), %r9\n"                                          \
    "    jmp entry_" #hook "\n"                                                                    \
    "    .set namespace_at, namespace_at + 8\n"
#define WAYS_OF_NAMESPACE CAIRN_NAMESPACE_HEAP(WAY) CAIRN_NAMESPACE_LINKER(WAY)

__asm__(".text\n"
        ".balign 16\n"
        ".hidden namespace_ways\n"
        ".globl namespace_ways\n"
        ".type namespace_ways, @function\n"
        "namespace_ways:\n"
        "    .cfi_startproc\n"
        "    .set namespace_at, 0\n"
        ".rept 15\n"  // namespaces
        WAYS_OF_NAMESPACE ".endr\n"
        "    .cfi_endproc\n"
        ".size namespace_ways, .-namespace_ways\n");

uintptr_t namespaces_ways(void) {
    return (uintptr_t)namespace_ways;
}

uintptr_t namespaces_real(void) {
    return (uintptr_t)namespace_real;
}

static bool is_expected;  // (atomic)

void namespaces_expect(void) {
    __atomic_store_n(&is_expected, true, __ATOMIC_RELAXED);
}

void namespaces_look_if_expected(void) {
    if (unlikely(__atomic_load_n(&is_expected, __ATOMIC_RELAXED))) namespaces_look();
}

// glibc's struct r_debug_extended (2.35) has one field more; before, nothing lists namespaces.
struct debug_extended {
    struct r_debug base;
    const struct debug_extended *next;
};

// The executable's dynamic section leads to the linker's list.
static const struct debug_extended *debug_find(void) {
    const Elf64_Phdr *segments = (const Elf64_Phdr *)getauxval(AT_PHDR);
    const Elf64_Dyn *dynamic = NULL;
    uintptr_t bias = 0;
    size_t count = segments ? getauxval(AT_PHNUM) : 0;
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_PHDR) bias = (uintptr_t)segments - segments[i].p_vaddr;
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_DYNAMIC)
            dynamic = (const Elf64_Dyn *)(bias + segments[i].p_vaddr);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == DT_DEBUG) return (const struct debug_extended *)dynamic->d_un.d_ptr;
    return NULL;
}

static int look_locked(struct dl_phdr_info *info, size_t size, void *data) {
    const int first_with_next = 2;
    const struct debug_extended *debug = debug_find();
    bool *is_complete = data;
    (void)info, (void)size;
    *is_complete = debug && debug->base.r_version >= first_with_next;
    if (*is_complete) debug = debug->next;
    for (unsigned i = 0; *is_complete && debug; i++, debug = debug->next) {
        if (!debug->base.r_map) continue;  // it was closed
        bool is_led = i < CAIRN_NAMESPACES_MAX && debug->base.r_state == RT_CONSISTENT &&
                      got_patch_namespace(debug->base.r_map, namespace_real[i],
                                          namespaces_ways() + (uintptr_t)i * CAIRN_NAMESPACE_COUNT *
                                                                  CAIRN_NAMESPACE_WAY_BYTES);
        if (!is_led) *is_complete = false;
    }
    return 1;
}

bool namespaces_look(void) {
    int saved_errno = errno;
    bool is_complete = false;
    if (attach_is_by_tool() || sys_is_confined()) return false;
    bool is_recorded = process_state() == PROCESS_RECORDING;
    __atomic_store_n(&is_expected, !is_recorded, __ATOMIC_RELAXED);
    if (!is_recorded) return false;
    dl_iterate_phdr(look_locked, &is_complete);
    errno = saved_errno;
    return is_complete;
}

static bool has_search_path(uintptr_t caller) {
    struct object object;
    const Elf64_Dyn *dynamic = NULL;
    if (!object_find(caller, &object)) return true;
    for (uint32_t i = 0; object.segments && i < object.segment_count; i++)
        if (object.segments[i].p_type == PT_DYNAMIC)
            dynamic = (const Elf64_Dyn *)(object.bias + object.segments[i].p_vaddr);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == DT_RUNPATH || dynamic->d_tag == DT_RPATH) return true;
    return !dynamic;
}

bool namespaces_may_call(const char *path, uintptr_t caller) {
    if (!path || memchr(path, '$', strlen(path))) return false;
    return memchr(path, '/', strlen(path)) || !has_search_path(caller);
}

// What a module of another namespace calls of the dynamic linker. Tail calls: the linker looks at
// its caller's address.
ENTRY entry_dlopen(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                   entry_function *actual) {
    namespaces_look_if_expected();
    namespaces_expect();
    return actual(a, b, c, d, e);
}

// It nearly always follows, before anything is called in the module that was loaded.
ENTRY entry_dlsym(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                  entry_function *actual) {
    namespaces_look_if_expected();
    return actual(a, b, c, d, e);
}

ENTRY entry_dlclose(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                    entry_function *actual) {
    uintptr_t result = actual(a, b, c, d, e);
    int saved_errno = errno;
    gate_code_unloaded((uintptr_t)__builtin_frame_address(0));
    errno = saved_errno;
    return result;
}

ENTRY entry_prctl(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                  entry_function *actual) {
    sys_confine_by_prctl((int)a, b, c);
    return actual(a, b, c, d, e);
}

#endif
