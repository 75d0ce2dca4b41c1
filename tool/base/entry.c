// SPDX-License-Identifier: Apache-2.0
// Where the tool as one file begins, before libc's _start: is the file whole? One that was cut
// while it was copied would end by SIGBUS or SIGSEGV somewhere. The file's last bytes are its table
// of sections, so its header tells how long it is. Nothing here may need more of the file than its
// first pages: no data, no libc. dev/dist.mk links it in; dev/whole-segments.py lets the kernel
// start a file that was cut.
#ifdef CAIRN_ONE_FILE
#include <elf.h>
#include <fcntl.h>
#include <sys/syscall.h>

#define EARLY __attribute__((section(".text.unlikely.cairn"), used, noinline))

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
void entry_check(void);
void entry_begin(void);

#if defined(__x86_64__)
__asm__(".pushsection .text.unlikely.cairn,\"ax\",@progbits\n.globl entry_begin\nentry_begin:\n"
        "mov %rsp, %rbx\nmov %rdx, %r12\nand $-16, %rsp\ncall entry_check\n"
        "mov %r12, %rdx\nmov %rbx, %rsp\nxor %ebp, %ebp\njmp _start\n.popsection");

static inline __attribute__((always_inline)) long call(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}
static inline __attribute__((always_inline)) long open_self(const char *path) {
    return call(SYS_open, (long)path, O_RDONLY | O_CLOEXEC, 0);
}
#else
__asm__(".pushsection .text.unlikely.cairn,\"ax\",%progbits\n.globl entry_begin\nentry_begin:\n"
        "mov x19, x0\nbl entry_check\nmov x0, x19\nmov x29, #0\nmov x30, #0\nb _start\n"
        ".popsection");

static inline __attribute__((always_inline)) long call4(long number, long a, long b, long c,
                                                        long d) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
static inline __attribute__((always_inline)) long call(long number, long a, long b, long c) {
    return call4(number, a, b, c, 0);
}
static inline __attribute__((always_inline)) long open_self(const char *path) {
    return call4(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
}
#endif

// Texts in the code, not in a section of constants, which lies further on.
#define TEXT(name, text)                                                                           \
    __asm__(".pushsection .text.unlikely.cairn\n" #name ": .asciz \"" text "\"\n" #name            \
            "_end:\n.balign 16\n.popsection");                                                     \
    extern const char name[] __attribute__((visibility("hidden"))),                                \
        name##_end[] __attribute__((visibility("hidden")));
TEXT(entry_path, "/proc/self/exe")
TEXT(entry_cut, "cairn: this file is cut: copy it again, and compare its checksum\\n")

EARLY void entry_check(void) {
    const long end = 2;  // SEEK_END
    long file = open_self(entry_path);
    if (file < 0) return;
    long bytes = call(SYS_lseek, file, 0, end);
    call(SYS_close, file, 0, 0);
    long whole = (long)__ehdr_start.e_shoff + __ehdr_start.e_shnum * __ehdr_start.e_shentsize;
    if (bytes < 0 || bytes >= whole) return;
    call(SYS_write, 2, (long)entry_cut, entry_cut_end - entry_cut - 1);
    call(SYS_exit_group, 1, 0, 0);
}
#endif
