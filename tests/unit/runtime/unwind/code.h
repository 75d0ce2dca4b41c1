// SPDX-License-Identifier: Apache-2.0
// Code that is never run, with unwind information of chosen forms: any of its nops is a frame of
// that form.
#ifndef TESTS_UNIT_RUNTIME_UNWIND_CODE_H
#define TESTS_UNIT_RUNTIME_UNWIND_CODE_H

#include <stdint.h>

enum { CODE_BYTES = 16 };

#define CODE(name, information)                                                                    \
    __asm__(".text\n" #name ": .cfi_startproc\n" information                                       \
            "\n .skip 16, 0x90\n .cfi_endproc\n.size " #name ", . - " #name);                      \
    extern const uint8_t name[]

#endif
