// SPDX-License-Identifier: Apache-2.0
// What the runtime asks of the kernel: raw system calls, memory, clocks. Below every other room.
//
// System calls are made directly, not through libc: errno stays as the program left it, a program
// that replaces mmap or open does not see ours, and no libc wrapper can allocate. All functions
// here are safe in signal handlers and from any thread.
#ifndef RUNTIME_SYS_SYS_H
#define RUNTIME_SYS_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#define COLD __attribute__((cold, noinline))
#define NOINLINE __attribute__((noinline))
#define HIDDEN __attribute__((visibility("hidden")))
// Large variables that begin as zeros and that few programs touch: they lie together, so that those
// which all programs touch do so too, on few pages.
#define APART __attribute__((section(".bss.apart")))
#define ALWAYS_INLINE static inline __attribute__((always_inline))

// Stops the compiler, not the processor: orders stores that only a signal handler of the same
// thread, or a reader after the process' death, may see half done.
#define compiler_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

// The same where another thread, or a reader beside the process, may see them half done meanwhile.
// x86-64 keeps the order of stores anyway.
#if defined(__x86_64__)
#define publish_barrier() compiler_barrier()
#else
#define publish_barrier() __atomic_thread_fence(__ATOMIC_RELEASE)
#endif

// Bytes of the kernel's pages: 4 KiB on x86-64, 4, 16 or 64 KiB on aarch64. Unit tests vary them:
// they set `sys_page_known`, which is 0 until it is asked for.
#define SYS_PAGE_LEAST 4096u  // nothing lies below this address, and so much of a file is mapped
#if defined(__aarch64__) || defined(CAIRN_PAGES_VARY)
#define SYS_PAGE_VARIES 1
#define SYS_PAGE_MOST 65536u
extern HIDDEN uint32_t sys_page_known;
uint32_t sys_page_ask(void);
ALWAYS_INLINE uint32_t sys_page_bytes(void) {
    return likely(sys_page_known) ? sys_page_known : sys_page_ask();
}
#else
#define SYS_PAGE_MOST SYS_PAGE_LEAST
ALWAYS_INLINE uint32_t sys_page_bytes(void) {
    return SYS_PAGE_LEAST;
}
#endif

// strcmp(3) == 0, without libc: its strcmp may be a sanitizer's, which is not ready at the start.
bool sys_is_text_equal(const char *a, const char *b);

// Up to whole pages.
ALWAYS_INLINE uint64_t sys_page_up(uint64_t bytes) {
    return (bytes + sys_page_bytes() - 1) & ~(uint64_t)(sys_page_bytes() - 1);
}

// The system call `number`; the result, or -errno.
long sys_call(long number, long a, long b, long c, long d, long e, long f);

// What sys_call returns is -errno.
ALWAYS_INLINE bool sys_is_error(long result) {
    const unsigned long errors = 4096;
    return (unsigned long)result > -errors;
}

// From now on all memory of sys_map and sys_reserve comes from one reserved piece of address space,
// in order, and sys_space_close unmaps it all at once. For a process that was attached to, where
// cairn is to leave nothing behind. False without so much address space. Not thread-safe.
bool sys_space_open(size_t bytes);
void sys_space_close(void);
uintptr_t sys_space_start(void);

// What a program under seccomp leaves us: a forbidden call could kill it.
enum sys_confinement {
    SYS_FREE = 0,
    SYS_FILTERED = 1,  // only mapping memory, which its own allocator needs as well
    SYS_STRICT = 2,    // nothing
};
void sys_confine(enum sys_confinement confinement);
bool sys_is_confined(void);
// Before the program calls prctl(option, mode, filter). Without a filter it only asks whether there
// is seccomp, as browsers do. A call that fails confines all the same: another thread may succeed.
void sys_confine_by_prctl(int option, unsigned long mode, unsigned long filter);

// Memory that is claimed without asking the kernel first, for want of a permitted call or of time,
// is safe if it is not a file's.
void sys_set_claims_safe(bool is_safe);

// The program has the kernel lock all that is mapped from now on (MCL_FUTURE), or no longer. Memory
// of ours is taken out of that. A forked child's is not locked, whatever is said here.
void sys_set_maps_locked(bool are_locked);
bool sys_are_maps_locked(void);

// Private anonymous memory, zeroed, not charged before it is touched. NULL when refused.
void *sys_map(size_t bytes);
void sys_unmap(void *memory, size_t bytes);

// Memory of sys_map that will be touched all over may come in large pages, where the system has
// them for who asks.
void sys_wish_huge(void *memory, size_t bytes);
// The same, of as many bytes as one such page has, and at a multiple of them; NULL: not to be had.
void *sys_map_large(size_t bytes);

// Address space of which only a little will be touched: not in core dumps, not in sys_own_bytes.
void *sys_reserve(size_t bytes);

// Puts such memory, that core dumps show, in the place of what is mapped there; false: refused.
bool sys_map_over(uintptr_t at, size_t bytes);

// Lets core dumps show reserved memory all the same.
void sys_let_dump(void *memory, size_t bytes);

// Takes note of memory that was mapped for us by other means (holdings.h).
void sys_note_mapped(const void *memory, size_t bytes);

// Gives back address space; that of sys_map stays counted in sys_own_bytes.
void sys_release(void *memory, size_t bytes);

// Makes pages of a shared mapping exist now, so that a full disk or tmpfs is an error here and not
// a SIGBUS later, and lets core dumps show them. True when they may be used.
bool sys_claim(void *memory, size_t bytes);
// The same of a few pages that cannot wait, without a word about core dumps. If they are safe,
// they come when they are touched, and nothing is asked: a call would wait for every thread that
// maps memory.
bool sys_claim_some(void *memory, size_t bytes);

// True if the aligned word that holds `address` can be read; it is not touched.
bool sys_is_readable(const void *address);

// The word at an address that is known to be readable, whatever it belongs to. The address
// sanitizer is not asked: it has no answer for memory of its own.
#if defined(__SANITIZE_ADDRESS__)
uintptr_t sys_read_word(uintptr_t address);
#else
ALWAYS_INLINE uintptr_t sys_read_word(uintptr_t address) {
    uintptr_t word;
    __builtin_memcpy(&word, (const void *)address, sizeof word);
    return word;
}
#endif

// Nanoseconds of CLOCK_MONOTONIC; the coarse one is a load or two, a tick (1-10 ms) behind.
uint64_t sys_clock_ns(void);
uint64_t sys_clock_fine_ns(void);  // 0 where only a coarse one may be asked
uint64_t sys_clock_coarse_ns(void);
uint64_t sys_clock_wall_ns(void);
uint64_t sys_clock_cpu_ns(void);  // processor time of the whole process
// Processor time of the thread, always by a system call; where that might be punished, the time.
uint64_t sys_clock_thread_ns(void);

// A counter of constant rate for comparing durations, cheaper than any clock.
ALWAYS_INLINE uint64_t sys_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return sys_clock_ns();
#endif
}

// What reading sys_clock_ns adds to an interval that two reads measure.
uint64_t sys_clock_cost_ns(void);

// Finds the kernel's clock function; before this, clocks are system calls.
void sys_clock_init(void);

// Soft limit of RLIMIT_AS or RLIMIT_FSIZE; UINT64_MAX if unlimited or unknown.
uint64_t sys_limit(int resource);

int sys_pid(void);
int sys_tid(void);

// True while thread `tid` of process `pid` exists.
bool sys_is_thread_alive(int pid, int tid);

// For each page from `memory` on, bit 0 of pages[i]: it is there. False if the kernel does not say.
bool sys_find_touched(void *memory, size_t page_count, unsigned char *pages);

// Bytes of [memory, memory + bytes) that have no page yet.
uint64_t sys_untouched_bytes(void *memory, size_t bytes);

// 64 random bits for hash seeds; a poorer source where getrandom is forbidden.
uint64_t sys_random(void);

// Memory that cairn has taken in this process, private and in the recording, in bytes; and the
// limit that --max-overhead sets (UINT64_MAX: none). Address space that is only reserved is not
// counted.
uint64_t sys_own_bytes(void);
void sys_count_own(int64_t change_bytes);
void sys_set_budget(uint64_t bytes);

// The same as it is told: with `shift_bytes` more, which are in no budget.
void sys_shift_own(int64_t shift_bytes);
uint64_t sys_told_own_bytes(void);
bool sys_is_over_budget(void);

#endif
