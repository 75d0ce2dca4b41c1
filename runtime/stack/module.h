// SPDX-License-Identifier: Apache-2.0
// The recording's table of modules, and how a return address becomes a frame code.
//
// Modules are noted when code of theirs is first met on a stack, not when they are loaded: libc
// loads and unloads some without a call that could be intercepted. An entry is never removed. When
// a different module appears where another was, addresses there become ambiguous; frames of any
// module but the first at that place then carry the module's number ("variant"), both in the hash
// and in the record. Programs without such reuse pay one comparison a frame for it.
#ifndef RUNTIME_STACK_MODULE_H
#define RUNTIME_STACK_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/sys/frame.h"
#include "runtime/sys/region.h"
#include "runtime/sys/sys.h"

enum { MODULE_LEFT_MAX = 32 };

struct modules {
    struct region entries, strings;
    struct cairn_header *header;
    uintptr_t left[MODULE_LEFT_MAX];  // (atomic) addresses in modules that are to be entered, or 0
    int32_t locked_by;      // (atomic) tid of the one thread that adds entries; 0: none does
    uint32_t generation;    // (atomic) moved when code was replaced by other code
    uintptr_t reused_low;   // (atomic) hull of all places that two modules have had
    uintptr_t reused_high;  // (atomic)
};

extern HIDDEN struct modules modules;

// The addresses of a loaded module.
struct module_place {
    uintptr_t start, end;
};

// What noting addresses brought to light, the graver the later.
enum module_news { MODULE_KNOWN, MODULE_ADDED, MODULE_REPLACED };

// Enters the module that covers the return address, and those that others could not; while another
// thread is entering modules, that is left to it. MODULE_REPLACED: code somewhere is not what it
// was, rules must be forgotten. Behind the gate only. `last` is the module noted just before, for a
// stack's many frames of few modules; at first empty.
enum module_news module_note(uintptr_t pc, struct module_place *last);

// Marks the modules that are no longer loaded; true if there were any.
bool module_check_unloaded(void);

ALWAYS_INLINE uint32_t module_generation(void) {
    return __atomic_load_n(&modules.generation, __ATOMIC_RELAXED);
}

uint32_t module_variant_slow(uintptr_t pc);

// False as long as every place has had one module at most, so that an address is its identity.
ALWAYS_INLINE bool module_has_reused(void) {
    return __atomic_load_n(&modules.reused_high, __ATOMIC_RELAXED) != 0;
}

// 0, or the number + 1 of the module that the address belongs to where that is not the first.
ALWAYS_INLINE uint32_t module_variant(uintptr_t pc) {
    uintptr_t low = __atomic_load_n(&modules.reused_low, __ATOMIC_RELAXED);
    uintptr_t high = __atomic_load_n(&modules.reused_high, __ATOMIC_RELAXED);
    if (likely(pc - low >= high - low)) return 0;
    return module_variant_slow(pc);
}

// The frame as it enters the hash: distinct for equal addresses in different modules.
ALWAYS_INLINE uint64_t module_identity(uintptr_t pc) {
    const unsigned variant_shift = 48;
    return pc ^ (uint64_t)module_variant(pc) << variant_shift;
}

enum { MODULE_CODE_WORDS = 3 };

// Addresses whose code is their distance from `start` + `base`: most of one window. What the frame
// encoded last, or the one before, lay in; at first, and where addresses are no identities, none.
struct module_near {
    uintptr_t start, bytes;
    uint32_t base;
};

// Writes the codes of so many frames (format.h, CAIRN_CODE_*), of 1 to MODULE_CODE_WORDS words
// each. Returns where they end. `near` is the thread's, from call to call.
uint32_t *module_encode(const struct frame *frames, uint32_t count, uint32_t *code,
                        struct module_near *near);

// Copies a string into the recording; its offset, or 0 (the empty string) when there is no room.
uint32_t module_string(const char *text);

#endif
