// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/operators.h"

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
static struct operator operators[OPERATORS];

static COLD void operator_resolve(struct operator* operator, const char * name) {
    operator->next = real_find(name);
    operator->is_recorded = operator->next && real_is_of_allocator(operator->next);
    __atomic_store_n(&operator->is_resolved, true, __ATOMIC_RELEASE);
}

#define RESOLVED(name, parameters, result)                                                         \
    struct operator* operator= & operators[OPERATOR_##name];                                       \
    result(*next) parameters;                                                                      \
    if (unlikely(!__atomic_load_n(&operator->is_resolved, __ATOMIC_ACQUIRE)))                      \
        operator_resolve(operator, #name);                                                         \
    memcpy(&next, &operator->next, sizeof next)

#define NEW(name, parameters, arguments, alignment_bytes)                                          \
    EXPORT void *name parameters;                                                                  \
    EXPORT void *name parameters {                                                                 \
        RESOLVED(name, parameters, void *);                                                        \
        if (!operator->is_recorded) return next ? next arguments : real.malloc(size);              \
        void *block = guard_new(size, alignment_bytes);                                            \
        if (!block) {                                                                              \
            bool inside = event_operator_begin((uintptr_t)EVENT_HERE());                           \
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
        if (!operator->is_recorded) return next ? next arguments : real.free(block);               \
        event_record_free(block, EVENT_HERE());                                                    \
        if (guard_owns(block)) return real.free(block);                                            \
        bool inside = event_inside_begin((uintptr_t)EVENT_HERE());                                 \
        next arguments;                                                                            \
        event_inside_end(inside);                                                                  \
    }

#include "runtime/preload/operators.def"
#undef NEW
#undef DELETE

#define NEW(name, parameters, arguments, alignment) #name "\0"
#define DELETE(name, parameters, arguments) #name "\0"
static const char names[] =
#include "runtime/preload/operators.def"
    ;
#undef NEW
#undef DELETE

const char *operators_names(void) {
    return names;
}

COLD void operators_hooks(uintptr_t hooks[OPERATORS]) {
#define NEW(name, parameters, arguments, alignment) hooks[OPERATOR_##name] = (uintptr_t)name;
#define DELETE(name, parameters, arguments) hooks[OPERATOR_##name] = (uintptr_t)name;
#include "runtime/preload/operators.def"
#undef NEW
#undef DELETE
}

COLD void operators_know(void *const next[OPERATORS]) {
    for (unsigned i = 0; i < OPERATORS; i++) {
        operators[i].next = next[i];
        operators[i].is_recorded = next[i] && real_is_of_allocator(next[i]);
        __atomic_store_n(&operators[i].is_resolved, true, __ATOMIC_RELEASE);
    }
}
