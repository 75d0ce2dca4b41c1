// SPDX-License-Identifier: Apache-2.0
// The notes are as SystemTap documents them, and as all tracers read them: owner "stapsdt", type 3;
// three addresses (the nop, the base section, which tells how far the file was moved since, and
// the semaphore), then provider, name and arguments as text. An argument is SIZE@OPERAND, a
// negative size for a signed one. Here the arguments are where the calling convention has put
// them, behind the frame, so that nothing needs to be moved.
//
// Assembled by hand, since the compiler may copy a function or do without it, and, as the whole
// library is one unit to it, would take a semaphore that nobody writes for a constant.
#include "runtime/sys/probes.h"

#if defined(__x86_64__)
#define NOTE_ARGUMENTS_1 "8@%rsi"
#define NOTE_ARGUMENTS_2 "8@%rsi 8@%rdx"
#define NOTE_ARGUMENTS_3 "8@%rsi 8@%rdx 8@%rcx"
#define NOTE_ARGUMENTS_4 "8@%rsi 8@%rdx 8@%rcx 8@%r8"
#define NOTE_ARGUMENTS_3_STEP "8@%rsi 8@%rdx 8@%rcx -8@%r8"
#define NOTE_ARGUMENTS_5 "8@%rsi 8@%rdx 8@%rcx 8@%r8 8@%r9"
#define PROBE_BEGIN                                                                                \
    "    pushq %rbp\n"                                                                             \
    "    .cfi_adjust_cfa_offset 8\n"                                                               \
    "    .cfi_rel_offset rbp, 0\n"                                                                 \
    "    testq %rdi, %rdi\n"                                                                       \
    "    cmovneq %rdi, %rbp\n"
#define PROBE_END                                                                                  \
    "    popq %rbp\n"                                                                              \
    "    .cfi_adjust_cfa_offset -8\n"                                                              \
    "    .cfi_restore rbp\n"                                                                       \
    "    ret\n"
#elif defined(__aarch64__)
#define NOTE_ARGUMENTS_1 "8@x1"
#define NOTE_ARGUMENTS_2 "8@x1 8@x2"
#define NOTE_ARGUMENTS_3 "8@x1 8@x2 8@x3"
#define NOTE_ARGUMENTS_4 "8@x1 8@x2 8@x3 8@x4"
#define NOTE_ARGUMENTS_3_STEP "8@x1 8@x2 8@x3 -8@x4"
#define NOTE_ARGUMENTS_5 "8@x1 8@x2 8@x3 8@x4 8@x5"
#define PROBE_BEGIN                                                                                \
    "    stp x29, x30, [sp, #-16]!\n"                                                              \
    "    .cfi_adjust_cfa_offset 16\n"                                                              \
    "    .cfi_rel_offset x29, 0\n"                                                                 \
    "    .cfi_rel_offset x30, 8\n"                                                                 \
    "    cmp x0, #0\n"                                                                             \
    "    csel x29, x0, x29, ne\n"
#define PROBE_END                                                                                  \
    "    ldp x29, x30, [sp], #16\n"                                                                \
    "    .cfi_adjust_cfa_offset -16\n"                                                             \
    "    .cfi_restore x29\n"                                                                       \
    "    .cfi_restore x30\n"                                                                       \
    "    ret\n"
#endif

#define PROBE(function, provider, name, arguments, semaphore)                                      \
    __asm__(".text\n"                                                                              \
            ".globl " #function "\n"                                                               \
            ".hidden " #function "\n"                                                              \
            ".type " #function ", %function\n"                                                     \
            ".p2align 4\n" #function ":\n"                                                         \
            "    .cfi_startproc\n" PROBE_BEGIN "7:  nop\n" PROBE_END "    .cfi_endproc\n"          \
            ".size " #function ", .-" #function "\n"                                               \
            ".pushsection .note.stapsdt, \"\", %note\n"                                            \
            "    .balign 4\n"                                                                      \
            "    .4byte 2f - 1f, 4f - 3f, 3\n"                                                     \
            "1:  .asciz \"stapsdt\"\n"                                                             \
            "2:  .balign 4\n"                                                                      \
            "3:  .8byte 7b, _.stapsdt.base, " #semaphore "\n"                                      \
            "    .asciz \"" provider "\"\n"                                                        \
            "    .asciz \"" name "\"\n"                                                            \
            "    .asciz \"" arguments "\"\n"                                                       \
            "4:  .balign 4\n"                                                                      \
            ".popsection\n")

#define SEMAPHORE(name)                                                                            \
    ".globl " #name "\n"                                                                           \
    ".hidden " #name "\n"                                                                          \
    ".type " #name ", %object\n"                                                                   \
    ".size " #name ", 2\n" #name ": .2byte 0\n"

__asm__(".pushsection .stapsdt.base, \"aG\", %progbits, .stapsdt.base, comdat\n"
        ".weak _.stapsdt.base\n"
        ".hidden _.stapsdt.base\n"
        "_.stapsdt.base: .space 1\n"
        ".size _.stapsdt.base, 1\n"
        ".popsection\n"
        ".pushsection .probes, \"aw\", %progbits\n"
        ".balign 4\n"
        ".globl probes_event\n"
        ".hidden probes_event\n"
        ".type probes_event, %object\n"
        ".size probes_event, 4\n"
        "probes_event: .2byte 0\n" SEMAPHORE(probes_listeners) SEMAPHORE(probes_new_stack)
            SEMAPHORE(probes_snapshot) SEMAPHORE(probes_otel_alloc)
                SEMAPHORE(probes_otel_free) ".popsection\n");

PROBE(probe_alloc, "cairn", "alloc", NOTE_ARGUMENTS_3, probes_listeners);
PROBE(probe_free, "cairn", "free", NOTE_ARGUMENTS_3, probes_listeners);
PROBE(probe_realloc, "cairn", "realloc", NOTE_ARGUMENTS_5, probes_listeners);
PROBE(probe_new_stack, "cairn", "new_stack", NOTE_ARGUMENTS_3_STEP, probes_new_stack);
PROBE(probe_snapshot, "cairn", "snapshot", NOTE_ARGUMENTS_4, probes_snapshot);
PROBE(probe_otel_alloc, "otel_memory", "alloc", NOTE_ARGUMENTS_3, probes_otel_alloc);
PROBE(probe_otel_free, "otel_memory", "free", NOTE_ARGUMENTS_1, probes_otel_free);
