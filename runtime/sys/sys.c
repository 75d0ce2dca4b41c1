// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/sys.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "format/settings.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/holdings.h"
#include "runtime/sys/veil.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#if defined(SYS_PAGE_VARIES)
uint32_t sys_page_known;

// 64 KiB where the kernel does not say: a multiple of every page.
COLD uint32_t sys_page_ask(void) {
    unsigned long bytes = getauxval(AT_PAGESZ);
    bool is_plausible = bytes >= SYS_PAGE_LEAST && bytes <= SYS_PAGE_MOST && !(bytes & (bytes - 1));
    sys_page_known = is_plausible ? (uint32_t)bytes : SYS_PAGE_MOST;
    return sys_page_known;
}
#endif

static uint64_t own_bytes;
static uint64_t own_shift_bytes;
static int (*vdso_clock)(clockid_t, struct timespec *);

#if defined(__x86_64__)
static long raw_call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static long raw_call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "cairn knows x86-64 and aarch64"
#endif

static enum sys_confinement confinement;  // (atomic)
static bool are_claims_safe;

void sys_confine(enum sys_confinement wanted) {
    if (wanted != SYS_FREE && confinement == SYS_FREE) veil_lift_shared();
    if (wanted > confinement) __atomic_store_n(&confinement, wanted, __ATOMIC_RELAXED);
}

void sys_confine_by_prctl(int option, unsigned long mode, unsigned long filter) {
    const unsigned long strict = 1;
    if (option != PR_SET_SECCOMP) return;
    if (mode == strict)
        sys_confine(SYS_STRICT);
    else if (filter)
        sys_confine(SYS_FILTERED);
}

bool sys_is_confined(void) {
    return confinement != SYS_FREE;
}

void sys_set_claims_safe(bool is_safe) {
    are_claims_safe = is_safe;
}

static bool is_forbidden(long number) {
    if (confinement == SYS_STRICT) return true;
    return number != SYS_mmap && number != SYS_munmap;
}

#ifdef CAIRN_CHECK
// CAIRN_FAULT=N makes the N-th system call of the runtime fail, CAIRN_FAULT=N+ that and all later
// ones (tests/promises/faults.py).
static unsigned long fault_number;
static bool are_later_faults_too;

// Read once, at the first call: later the program may be changing its environment.
static void fault_configure(void) {
    const char *text = environment_get(CAIRN_VARIABLE(FAULT));
    if (!text) return;
    for (; *text >= '0' && *text <= '9'; text++)
        fault_number = fault_number * 10 + (unsigned long)(*text - '0');
    are_later_faults_too = *text == '+';
}

static bool is_fault(void) {
    static unsigned long call_count;
    unsigned long number = __atomic_add_fetch(&call_count, 1, __ATOMIC_RELAXED);
    if (number == 1) fault_configure();
    return fault_number &&
           (number == fault_number || (are_later_faults_too && number > fault_number));
}
#else
static inline bool is_fault(void) {
    return false;
}
#endif

long sys_call(long number, long a, long b, long c, long d, long e, long f) {
    if (unlikely(confinement) && is_forbidden(number)) return -EPERM;
    if (is_fault()) return -ENOMEM;
    return raw_call(number, a, b, c, d, e, f);
}

// See sys_space_open; end is 0 where there is none.
static struct {
    uintptr_t start, end;
    uintptr_t used;  // (atomic) may pass the end
} space;
static APART bool is_space_veiled;

static bool are_maps_locked;  // (atomic)

void sys_set_maps_locked(bool are_locked) {
    __atomic_store_n(&are_maps_locked, are_locked, __ATOMIC_RELAXED);
}

bool sys_are_maps_locked(void) {
    return __atomic_load_n(&are_maps_locked, __ATOMIC_RELAXED);
}

static long map_whole(size_t bytes, int protection) {
    return sys_call(SYS_mmap, 0, (long)bytes, protection,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// Maps a page without access, takes it out of what is locked, and grows it: a whole mapping would
// be filled at once, and counted in the program's RLIMIT_MEMLOCK.
static COLD long map_unlocked(size_t bytes, int protection) {
    const long page_bytes = sys_page_bytes();
    long page = map_whole((size_t)page_bytes, PROT_NONE);
    if (sys_is_error(page)) return page;
    sys_call(SYS_munlock, page, page_bytes, 0, 0, 0, 0);
    sys_call(SYS_mprotect, page, page_bytes, protection, 0, 0, 0);
    long grown =
        sys_call(SYS_mremap, page, page_bytes, (long)sys_page_up(bytes), MREMAP_MAYMOVE, 0, 0);
    if (sys_is_error(grown)) sys_call(SYS_munmap, page, page_bytes, 0, 0, 0, 0);
    return grown;
}

// The list's own memory is the program's as far as it knows.
static COLD void extend_holdings(void) {
    long piece = map_whole(HOLDINGS_PIECE_BYTES, PROT_READ | PROT_WRITE);
    if (!sys_is_error(piece) && !holdings_extend((void *)piece))
        sys_call(SYS_munmap, piece, HOLDINGS_PIECE_BYTES, 0, 0, 0, 0);
}

void sys_note_mapped(const void *memory, size_t bytes) {
    bool is_noted = holdings_add((uintptr_t)memory, sys_page_up(bytes));
    if (likely(is_noted)) return;
    extend_holdings();
    holdings_add((uintptr_t)memory, sys_page_up(bytes));
}

static void *map_at_kernels_choice(size_t bytes, int protection) {
    bool is_locked = unlikely(sys_are_maps_locked()) && !confinement;
    long result = is_locked ? map_unlocked(bytes, protection) : map_whole(bytes, protection);
    if (sys_is_error(result)) return NULL;
    sys_note_mapped((const void *)result, bytes);
    return (void *)result;
}

bool sys_map_over(uintptr_t at, size_t bytes) {
    if (!sys_are_maps_locked() || confinement)
        return !sys_is_error(sys_call(SYS_mmap, (long)at, (long)bytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                                      0));
    long made = map_unlocked(bytes, PROT_READ | PROT_WRITE);
    if (sys_is_error(made)) return false;
    long moved = sys_call(SYS_mremap, made, (long)bytes, (long)bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                          (long)at, 0);
    if (sys_is_error(moved)) sys_call(SYS_munmap, made, (long)bytes, 0, 0, 0, 0);
    return !sys_is_error(moved);
}

static COLD void *space_take(size_t bytes) {
    size_t whole = sys_page_up(bytes);
    uintptr_t at = __atomic_fetch_add(&space.used, whole, __ATOMIC_RELAXED);
    if (at > space.end || space.end - at < whole) return NULL;
    long result = -EPERM;
    if (!is_space_veiled)
        result = sys_call(SYS_mprotect, (long)at, (long)whole, PROT_READ | PROT_WRITE, 0, 0, 0);
    // under a filter it may only be mapped anew
    bool is_there = result == -EPERM ? sys_map_over(at, whole) : !sys_is_error(result);
    return is_there ? (void *)at : NULL;
}

static void *map_anonymous(size_t bytes) {
    if (unlikely(space.end)) return space_take(bytes);
    return map_at_kernels_choice(bytes, PROT_READ | PROT_WRITE);
}

// Pages are made accessible as they are asked for: others would be filled where the program locks
// all its memory, and counted where the kernel counts every page (overcommit_memory 2).
bool sys_space_open(size_t bytes) {
    void *start = veil_map(bytes);
    is_space_veiled = start != NULL;
    if (start)
        sys_note_mapped(start, bytes);
    else
        start = map_at_kernels_choice(bytes, PROT_NONE);
    if (!start) return false;
    sys_call(SYS_madvise, (long)start, (long)bytes, MADV_DONTDUMP, 0, 0, 0);
    space.start = space.used = (uintptr_t)start;
    space.end = space.start + bytes;
    return true;
}

uintptr_t sys_space_start(void) {
    return space.start;
}

void sys_space_close(void) {
    uintptr_t start = space.start, end = space.end;
    space.start = space.end = 0;
    if (!end) return;
    holdings_remove(start, end - start);
    sys_call(SYS_munmap, (long)start, (long)(end - start), 0, 0, 0, 0);
}

void *sys_map(size_t bytes) {
    void *memory = map_anonymous(bytes);
    if (unlikely(space.end) && memory)  // the rest of the space is left out of core dumps
        sys_call(SYS_madvise, (long)memory, (long)bytes, MADV_DODUMP, 0, 0, 0);
    if (memory) __atomic_fetch_add(&own_bytes, bytes, __ATOMIC_RELAXED);
    return memory;
}

void sys_wish_huge(void *memory, size_t bytes) {
    sys_call(SYS_madvise, (long)memory, (long)bytes, MADV_HUGEPAGE, 0, 0, 0);
}

void *sys_map_large(size_t bytes) {
    if (space.end) return NULL;
    uintptr_t start = (uintptr_t)map_at_kernels_choice(2 * bytes, PROT_READ | PROT_WRITE);
    uintptr_t page = (start + bytes - 1) & ~(bytes - 1), end = start + 2 * bytes;
    if (!start) return NULL;
    if (page > start) sys_release((void *)start, page - start);
    if (end > page + bytes) sys_release((void *)(page + bytes), end - page - bytes);
    sys_count_own((int64_t)bytes);
    sys_wish_huge((void *)page, bytes);
    return (void *)page;
}

void sys_unmap(void *memory, size_t bytes) {
    sys_release(memory, bytes);
    __atomic_fetch_sub(&own_bytes, bytes, __ATOMIC_RELAXED);
}

void sys_release(void *memory, size_t bytes) {
    if (unlikely(space.end) && (uintptr_t)memory - space.start < space.end - space.start) {
        sys_call(SYS_madvise, (long)memory, (long)bytes, MADV_DONTNEED, 0, 0, 0);
        return;
    }
    if (!veil_leave((uintptr_t)memory, (uintptr_t)memory + bytes)) return;
    holdings_remove((uintptr_t)memory, sys_page_up(bytes));
    sys_call(SYS_munmap, (long)memory, (long)bytes, 0, 0, 0, 0);
}

void *sys_reserve(size_t bytes) {
    void *memory = map_anonymous(bytes);
    if (memory) sys_call(SYS_madvise, (long)memory, (long)bytes, MADV_DONTDUMP, 0, 0, 0);
    return memory;
}

void sys_let_dump(void *memory, size_t bytes) {
    if (memory) sys_call(SYS_madvise, (long)memory, (long)bytes, MADV_DODUMP, 0, 0, 0);
}

void sys_count_own(int64_t change_bytes) {
    __atomic_fetch_add(&own_bytes, (uint64_t)change_bytes, __ATOMIC_RELAXED);
}

static uint64_t budget_bytes = UINT64_MAX;

void sys_set_budget(uint64_t bytes) {
    budget_bytes = bytes;
}

bool sys_is_over_budget(void) {
    return sys_own_bytes() > budget_bytes;
}

uint64_t sys_own_bytes(void) {
    return __atomic_load_n(&own_bytes, __ATOMIC_RELAXED);
}

void sys_shift_own(int64_t shift_bytes) {
    own_shift_bytes = (uint64_t)shift_bytes;
}

uint64_t sys_told_own_bytes(void) {
    return sys_own_bytes() + own_shift_bytes;
}

// For kernels before 5.14, which do not know MADV_POPULATE_WRITE, and filters that refuse madvise:
// the kernel adds 0 to a word of
// each page, atomically. Where there is no page to be had, that is EFAULT; if we touched it, it
// would be SIGBUS.
COLD static bool claim_by_pages(char *memory, size_t bytes) {
    const long add_nothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
    for (char *at = memory; at < memory + bytes; at += sys_page_bytes())
        if (sys_is_error(
                sys_call(SYS_futex, (long)at, FUTEX_WAKE_OP_PRIVATE, 0, 0, (long)at, add_nothing)))
            return false;
    return true;
}

static bool claim_pages(void *memory, size_t bytes) {
    long result = sys_call(SYS_madvise, (long)memory, (long)bytes, MADV_POPULATE_WRITE, 0, 0, 0);
    bool is_unknown = result == -EINVAL || result == -EPERM || result == -ENOSYS;
    return is_unknown ? claim_by_pages(memory, bytes) : !sys_is_error(result);
}

bool sys_claim_some(void *memory, size_t bytes) {
    return are_claims_safe || (!confinement && claim_pages(memory, bytes));
}

bool sys_claim(void *memory, size_t bytes) {
    if (unlikely(confinement)) return are_claims_safe;
    if (!claim_pages(memory, bytes)) return false;
    sys_call(SYS_madvise, (long)memory, (long)bytes, MADV_DODUMP, 0, 0, 0);
    return true;
}

// A signal mask that the kernel copies in before it rejects the nonsensical `how`: EFAULT tells
// unreadable memory, EINVAL readable memory, and nothing changes.
bool sys_is_readable(const void *address) {
    const long no_such_how = ~0L;
    const long mask_bytes = 8;
    long at = (long)((uintptr_t)address & ~(uintptr_t)7);
    if (!at) return false;  // to the kernel that is no mask at all
    return sys_call(SYS_rt_sigprocmask, no_such_how, at, 0, mask_bytes, 0, 0) == -EINVAL;
}

static uint64_t clock_read(clockid_t clock) {
    struct timespec now = {0};
    if (vdso_clock)
        vdso_clock(clock, &now);
    else
        sys_call(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Coarse clocks need no counter: seccomp's strict mode forbids reading the processor's, and without
// one that user space may read the vDSO makes a system call.
uint64_t sys_clock_ns(void) {
    return clock_read(confinement ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC);
}

uint64_t sys_clock_fine_ns(void) {
    return confinement ? 0 : sys_clock_ns();
}

uint64_t sys_clock_coarse_ns(void) {
    return clock_read(CLOCK_MONOTONIC_COARSE);
}

uint64_t sys_clock_wall_ns(void) {
    return clock_read(CLOCK_REALTIME);
}

// Always a system call, in the vDSO as well.
uint64_t sys_clock_cpu_ns(void) {
    return confinement ? 0 : clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t sys_clock_thread_ns(void) {
    return confinement ? sys_clock_ns() : clock_read(CLOCK_THREAD_CPUTIME_ID);
}

bool sys_find_touched(void *memory, size_t page_count, unsigned char *pages) {
    long bytes = (long)(page_count * sys_page_bytes());
    return sys_call(SYS_mincore, (long)memory, bytes, (long)pages, 0, 0, 0) == 0;
}

uint64_t sys_untouched_bytes(void *memory, size_t bytes) {
    unsigned char pages[512] = {0};
    // an emulator that says its pages are larger writes as many as the machine below it has
    const size_t most_bytes = sizeof pages * SYS_PAGE_LEAST;
    uint64_t untouched = 0;
    for (size_t at = 0; at < bytes; at += most_bytes) {
        size_t part = bytes - at < most_bytes ? bytes - at : most_bytes;
        if (!sys_find_touched((uint8_t *)memory + at, part / sys_page_bytes(), pages))
            return untouched;
        for (size_t i = 0; i < part / sys_page_bytes(); i++)
            if (!(pages[i] & 1)) untouched += sys_page_bytes();
    }
    return untouched;
}

bool sys_is_text_equal(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

// The vDSO's own symbol table: libc's clock_gettime is not used since other preloads (faked clocks)
// replace it.
struct vdso_tables {
    const Elf64_Sym *symbols;
    const char *names;
    const uint32_t *hash;
    uintptr_t bias;
};

static bool vdso_tables_find(uintptr_t base, struct vdso_tables *tables) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)base;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(base + header->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && !tables->bias)
            tables->bias = base + segments[i].p_offset - segments[i].p_vaddr;
        if (segments[i].p_type == PT_DYNAMIC)
            dynamic = (const Elf64_Dyn *)(base + segments[i].p_offset);
    }
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t at = tables->bias + dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_SYMTAB) tables->symbols = (const Elf64_Sym *)at;
        if (dynamic->d_tag == DT_STRTAB) tables->names = (const char *)at;
        if (dynamic->d_tag == DT_HASH) tables->hash = (const uint32_t *)at;
    }
    return tables->symbols && tables->names && tables->hash;
}

static void *vdso_find(uintptr_t base, const char *name) {
    struct vdso_tables tables = {0};
    if (!vdso_tables_find(base, &tables)) return NULL;
    uint32_t symbol_count = tables.hash[1];
    for (uint32_t i = 0; i < symbol_count; i++)
        if (sys_is_text_equal(tables.names + tables.symbols[i].st_name, name))
            return (void *)(tables.bias + tables.symbols[i].st_value);
    return NULL;
}

static uint64_t clock_cost_ns;

uint64_t sys_clock_cost_ns(void) {
    return clock_cost_ns;
}

static void clock_measure_cost(void) {
    enum { READS = 8 };
    clock_cost_ns = UINT64_MAX;
    for (int i = 0; i < READS; i++) {
        uint64_t start = sys_clock_ns(), taken = sys_clock_ns() - start;
        if (taken < clock_cost_ns) clock_cost_ns = taken;
    }
}

void sys_clock_init(void) {
    uintptr_t base = getauxval(AT_SYSINFO_EHDR);
    if (!base) return;
    void *found = vdso_find(base, "__vdso_clock_gettime");
    if (!found) found = vdso_find(base, "__kernel_clock_gettime");
    *(void **)&vdso_clock = found;
    clock_measure_cost();
}

uint64_t sys_limit(int resource) {
    struct rlimit limit = {0};
    long result = sys_call(SYS_prlimit64, 0, resource, 0, (long)&limit, 0, 0);
    if (sys_is_error(result) || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}

int sys_pid(void) {
    return (int)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

int sys_tid(void) {
    return (int)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

bool sys_is_thread_alive(int pid, int tid) {
    return sys_call(SYS_tgkill, pid, tid, 0, 0, 0, 0) != -ESRCH;
}

uint64_t sys_random(void) {
    const long nonblocking = 1;
    uint64_t value = 0;
    long got = sys_call(SYS_getrandom, (long)&value, sizeof value, nonblocking, 0, 0, 0);
    if (got == (long)sizeof value) return value;
    return sys_clock_ns() * 0x9E3779B97F4A7C15u ^ (uintptr_t)&value;
}
