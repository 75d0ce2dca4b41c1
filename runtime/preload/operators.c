// SPDX-License-Identifier: Apache-2.0
// operator new and delete, for allocators that bring their own (jemalloc, tcmalloc, mimalloc) and
// do not go through malloc. Exported by libcairn-cxx.so alone, which `cairn run` chooses for
// programs linked with such an allocator: elsewhere they reach malloc by themselves, and a library
// that exports them without a C++ runtime behind it could not throw std::bad_alloc.
#include <stddef.h>
#include <string.h>

#include "runtime/process/real.h"
#include "runtime/record/event.h"
#include "runtime/record/guard.h"

#define EXPORT __attribute__((visibility("default"), used))

// The next definition, and whether it is the allocator's own.
struct operator{
    void *next;
    bool is_resolved;
    bool is_recorded;
};

static COLD void operator_resolve(struct operator* operator, const char * name) {
    operator->next = real_find(name);
    operator->is_recorded = operator->next && real_is_of_allocator(operator->next);
    __atomic_store_n(&operator->is_resolved, true, __ATOMIC_RELEASE);
}

#define RESOLVED(name, parameters, result)                                                         \
    static struct operator operator= {0};                                                          \
    result(*next) parameters;                                                                      \
    if (unlikely(!__atomic_load_n(&operator.is_resolved, __ATOMIC_ACQUIRE)))                       \
        operator_resolve(&operator, #name);                                                        \
    memcpy(&next, &operator.next, sizeof next)

#define NEW(name, parameters, arguments, alignment_bytes)                                          \
    EXPORT void *name parameters;                                                                  \
    EXPORT void *name parameters {                                                                 \
        RESOLVED(name, parameters, void *);                                                        \
        if (!operator.is_recorded) return next ? next arguments : real.malloc(size);               \
        void *block = guard_new(size, alignment_bytes);                                            \
        if (!block) {                                                                              \
            bool inside = event_inside_begin((uintptr_t)EVENT_HERE());                             \
            block = next arguments;                                                                \
            event_inside_end(inside);                                                              \
        }                                                                                          \
        if (alignment_bytes)                                                                       \
            event_record_aligned(block, size, alignment_bytes, EVENT_HERE());                      \
        else                                                                                       \
            block = event_record_alloc(block, size, EVENT_HERE());                                 \
        return block;                                                                              \
    }

#define DELETE(name, parameters, arguments)                                                        \
    EXPORT void name parameters;                                                                   \
    EXPORT void name parameters {                                                                  \
        RESOLVED(name, parameters, void);                                                          \
        if (!operator.is_recorded) return next ? next arguments : real.free(block);                \
        event_record_free(block, EVENT_HERE());                                                    \
        if (guard_owns(block)) return real.free(block);                                            \
        bool inside = event_inside_begin((uintptr_t)EVENT_HERE());                                 \
        next arguments;                                                                            \
        event_inside_end(inside);                                                                  \
    }

#include "runtime/preload/operators.def"
