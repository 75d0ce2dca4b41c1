// SPDX-License-Identifier: Apache-2.0
// mlockall and munlockall. The kernel fills all memory that mlockall locks, and refuses it where
// the address space is larger than RLIMIT_MEMLOCK: what cairn has reserved would be filled, or be
// one reason too many. So memory that is there is locked here, mapping by mapping, but for cairn's;
// the kernel's own checks are made with the size that the program has without cairn.
//   MCL_CURRENT   by mlock for each mapping in /proc/self/maps. The kernel bears all errors of
//                 single mappings too
//   MCL_FUTURE    is the kernel's, which fills nothing for it; later mappings of cairn are taken
//                 out again (sys_set_maps_locked)
// Leaves all of it to the kernel if that cannot be asked, without /proc or under seccomp, but as
// pages are touched.
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "runtime/process/real.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/holdings.h"
#include "runtime/sys/sys.h"

#define EXPORT __attribute__((visibility("default"), used))

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif
#ifndef SYS_mlock2
#if defined(__x86_64__)
#define SYS_mlock2 325
#else
#define SYS_mlock2 284
#endif
#endif

// This library as it is mapped, from its first byte to its last.
extern HIDDEN const char __ehdr_start[], _end[];

static void hold_library(void) {
    static bool is_held;  // (atomic)
    if (!__atomic_exchange_n(&is_held, true, __ATOMIC_RELAXED))
        sys_note_mapped(__ehdr_start, (size_t)(_end - __ehdr_start));
}

static void lock_part(uintptr_t start, uintptr_t end, int flags) {
    const long on_fault = 1;
    if (start >= end) return;
    if (flags & MCL_ONFAULT)
        sys_call(SYS_mlock2, (long)start, (long)(end - start), on_fault, 0, 0, 0);
    else
        sys_call(SYS_mlock, (long)start, (long)(end - start), 0, 0, 0, 0);
}

static void lock_mapping(uintptr_t start, uintptr_t end, int flags) {
    uintptr_t held_start = 0, held_end = 0;
    while (start < end && holdings_next(start, &held_start, &held_end) && held_start < end) {
        lock_part(start, held_start, flags);
        start = held_end;
    }
    lock_part(start, end, flags);
}

// Lines of /proc/self/maps as they come, in pieces: "start-end ...".
struct maps_line {
    uintptr_t bounds[2];
    unsigned word;  // 0, 1: this bound; 2: the rest of the line
};

static unsigned digit_of(char character) {
    const unsigned letters_from = 10;
    return character <= '9' ? (unsigned)(character - '0')
                            : (unsigned)(character - 'a') + letters_from;
}

// True once both bounds are known.
static bool take_character(struct maps_line *line, char character) {
    enum { BOUNDS = 2, DIGIT_BITS = 4 };
    if (character == '\n') {
        *line = (struct maps_line){0};
    } else if (line->word < BOUNDS && (character == '-' || character == ' ')) {
        return ++line->word == BOUNDS;
    } else if (line->word < BOUNDS) {
        line->bounds[line->word] = line->bounds[line->word] << DIGIT_BITS | digit_of(character);
    }
    return false;
}

// The kernel goes on behind the last mapping that it told, also if what is locked is divided
// meanwhile. A mapping that other threads make meanwhile is locked or not, as it would be.
static void lock_each(long maps, int flags) {
    char text[2048];
    struct maps_line line = {0};
    long length;
    while ((length = sys_call(SYS_read, maps, (long)text, sizeof text, 0, 0, 0)) > 0)
        for (long i = 0; i < length; i++)
            if (take_character(&line, text[i])) lock_mapping(line.bounds[0], line.bounds[1], flags);
}

// Pages that the program has mapped; 0: not known.
static uint64_t program_pages(void) {
    char text[32] = "";
    uint64_t pages = 0, held = holdings_bytes() / sys_page_bytes();
    environment_read("/proc/self/statm", text, sizeof text - 1);
    for (const char *at = text; *at >= '0' && *at <= '9'; at++)
        pages = pages * 10 + (uint64_t)(*at - '0');
    return pages > held ? pages - held : 0;
}

// The kernel looks at the right to lock as much before it sees that there is no such memory: what
// wraps around the end of the address space.
static bool has_right_to_more(void) {
    const long half_bytes = 1L << 47;
    return sys_call(SYS_mlock, -half_bytes, half_bytes, 0, 0, 0, 0) == -EINVAL;
}

static bool is_within_limit(uint64_t pages) {
    return pages <= sys_limit(RLIMIT_MEMLOCK) / sys_page_bytes() || has_right_to_more();
}

// From now on, as the kernel does it: also that nothing is locked from now on any more.
static void lock_future(int flags) {
    if (flags & MCL_FUTURE) {
        sys_set_maps_locked(true);
        real.mlockall(flags & ~MCL_CURRENT);
    } else if (sys_are_maps_locked()) {
        real.munlockall();
        sys_set_maps_locked(false);
    }
}

// False if the kernel is to do it all, or to refuse it.
static bool lock_current(int flags, int *result) {
    hold_library();
    uint64_t pages = program_pages();
    if (!pages || sys_call(SYS_mlock, 0, 0, 0, 0, 0, 0) != 0) return false;
    if (!is_within_limit(pages)) {
        errno = ENOMEM;
        *result = -1;
        return true;
    }
    long maps =
        sys_call(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (sys_is_error(maps)) return false;
    lock_future(flags);
    lock_each(maps, flags);
    sys_call(SYS_close, maps, 0, 0, 0, 0, 0);
    *result = 0;
    return true;
}

// Locks pages as they are touched if the program's mappings cannot be told from cairn's: the kernel
// would fill all that cairn has reserved.
static int lock_as_touched(int flags) {
    int saved_errno = errno;
    bool is_sparing = flags & MCL_CURRENT && holdings_bytes();
    int result = real.mlockall(is_sparing ? flags | MCL_ONFAULT : flags);
    if (!is_sparing || result == 0 || errno != EINVAL) return result;
    errno = saved_errno;
    return real.mlockall(flags);  // kernels before 4.4
}

EXPORT int mlockall(int flags) {
    const int known = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT;
    bool is_sound = !(flags & ~known), was_locked = sys_are_maps_locked();
    int result;
    if (unlikely(!real_is_resolved())) real_resolve();
    if (is_sound && flags & MCL_CURRENT && lock_current(flags, &result)) return result;
    if (is_sound && flags & MCL_FUTURE) sys_set_maps_locked(true);
    result = is_sound ? lock_as_touched(flags) : real.mlockall(flags);
    sys_set_maps_locked(result == 0 ? flags & MCL_FUTURE : was_locked);
    return result;
}

EXPORT int munlockall(void) {
    if (unlikely(!real_is_resolved())) real_resolve();
    int result = real.munlockall();
    sys_set_maps_locked(false);
    return result;
}

// The same by their numbers, from syscall (process.c).
HIDDEN __attribute__((used)) long mlockall_by_number(long number, long flags) {
    (void)number;
    return mlockall((int)flags);
}

HIDDEN __attribute__((used)) long munlockall_by_number(void) {
    return munlockall();
}
