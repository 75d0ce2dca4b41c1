// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/sys.h"

#if defined(__SANITIZE_ADDRESS__)
struct unaligned_word {
    uintptr_t value;
} __attribute__((packed));

__attribute__((no_sanitize("address", "undefined"), noinline)) uintptr_t
sys_read_word(uintptr_t address) {
    return ((const volatile struct unaligned_word *)address)->value;
}
#else
typedef int word_has_no_code_here;
#endif
