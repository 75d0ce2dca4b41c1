// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/seccomp.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "format/settings.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/sys.h"

// The lines of /proc/PID/status. Filters are counted from Linux 5.9 on.
struct seccomp {
    long mode;          // 0: none; UNKNOWN
    long filter_count;  // UNKNOWN
};
enum { UNKNOWN = -1 };

static long harmless_count;  // (atomic) filters set by this process, or one that it is a fork of

// A list of groups in the middle of the file may be long: it is read in parts, whose lines are
// whole.
enum { PART_BYTES = 2048, PARTS_MAX = 512 };

static long number_after(const char *text, const char *name) {
    const char *at = strstr(text, name);
    long value = 0;
    if (!at) return UNKNOWN;
    for (at += strlen(name); *at >= '0' && *at <= '9'; at++) value = value * 10 + (*at - '0');
    return value;
}

static void note_lines(struct seccomp *found, const char *text) {
    long mode = number_after(text, "\nSeccomp:\t");
    long count = number_after(text, "\nSeccomp_filters:\t");
    if (mode != UNKNOWN) found->mode = mode;
    if (count != UNKNOWN) found->filter_count = count;
}

// Keeps the last line that began, for the next part; none is longer but that of the groups.
static size_t keep_rest(char *text, size_t length) {
    const char *last = memrchr(text, '\n', length);
    size_t kept = last ? length - (size_t)(last - text) : 0;
    if (kept > PART_BYTES) kept = 0;
    if (kept) memmove(text, last, kept);
    return kept;
}

// False if it cannot be read.
static COLD bool read_status(const char *path, struct seccomp *found) {
    char text[2 * PART_BYTES + 1];
    size_t kept = 0;
    *found = (struct seccomp){UNKNOWN, UNKNOWN};
    long file = sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (sys_is_error(file)) return false;
    for (int i = 0; i < PARTS_MAX && found->filter_count == UNKNOWN; i++) {
        long got = sys_call(SYS_read, file, (long)(text + kept), PART_BYTES, 0, 0, 0);
        if (got <= 0) break;
        text[kept + (size_t)got] = 0;
        note_lines(found, text);
        kept = keep_rest(text, kept + (size_t)got);
    }
    sys_call(SYS_close, file, 0, 0, 0, 0, 0);
    return true;
}

static struct seccomp own_state(void) {
    struct seccomp found;
    if (read_status("/proc/self/status", &found)) return found;
    long mode = sys_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0);
    return (struct seccomp){sys_is_error(mode) ? 0 : mode, UNKNOWN};
}

// Number of filters that the surroundings have: the tool's, which says so; without a tool process
// 1's.
static long count_around(void) {
    const char *digits = environment_get(CAIRN_VARIABLE(FILTERS));
    const char *socket = environment_get(CAIRN_VARIABLE(SOCKET));
    struct seccomp first;
    long count = 0;
    if (!digits && !(socket && socket[0]))
        return read_status("/proc/1/status", &first) && first.mode > 0 ? first.filter_count : 0;
    for (; digits && *digits >= '0' && *digits <= '9'; digits++)
        count = count * 10 + (*digits - '0');
    return count;
}

COLD bool seccomp_is_foreign(long *more) {
    struct seccomp own = own_state();
    *more = 0;
    if (likely(own.mode <= 0)) return false;
    long around = count_around();
    if (own.filter_count == UNKNOWN) return around == 0;
    if (around == UNKNOWN || own.filter_count <= around) return false;
    *more = own.filter_count;
    return own.filter_count > around + __atomic_load_n(&harmless_count, __ATOMIC_RELAXED);
}

// --- what a filter does

// A filter jumps forwards only. So one pass over it finds what can be reached, and for each place
// what can be in the accumulator there, as far as it matters.
enum { HAS_NUMBER = 1, HAS_MACHINE = 2, HAS_OTHER = 4 };
enum { MAY_HOLD = 1, MAY_FAIL = 2, MAY_BOTH = 3 };

#if defined(__x86_64__)
static const uint32_t native_machine = AUDIT_ARCH_X86_64;
#else
static const uint32_t native_machine = AUDIT_ARCH_AARCH64;
#endif

// Native calls have smaller numbers; larger ones are those of x32.
static const uint32_t number_limit = 0x40000000;

static unsigned jump_of(const struct sock_filter *jump, unsigned has) {
    uint32_t k = jump->k;
    bool holds = false;
    if (BPF_SRC(jump->code) == BPF_X || has == HAS_OTHER) return MAY_BOTH;
    if (has == HAS_NUMBER && BPF_OP(jump->code) == BPF_JSET)
        return k & (number_limit - 1) ? MAY_BOTH : MAY_FAIL;
    if (has == HAS_NUMBER) return k >= number_limit ? MAY_FAIL : MAY_BOTH;
    if (BPF_OP(jump->code) == BPF_JEQ) holds = native_machine == k;
    if (BPF_OP(jump->code) == BPF_JGT) holds = native_machine > k;
    if (BPF_OP(jump->code) == BPF_JGE) holds = native_machine >= k;
    if (BPF_OP(jump->code) == BPF_JSET) holds = (native_machine & k) != 0;
    return holds ? MAY_HOLD : MAY_FAIL;
}

// A call that "fails" with 0 would pass for one that was made.
static bool is_mild(const struct sock_filter *end) {
    uint32_t action = end->k & SECCOMP_RET_ACTION_FULL;
    if (BPF_RVAL(end->code) != BPF_K) return false;
    if (action == SECCOMP_RET_ERRNO) return (end->k & SECCOMP_RET_DATA) != 0;
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

static unsigned loaded_by(const struct sock_filter *load) {
    if (load->code != (BPF_LD | BPF_W | BPF_ABS)) return HAS_OTHER;
    if (load->k == offsetof(struct seccomp_data, nr)) return HAS_NUMBER;
    return load->k == offsetof(struct seccomp_data, arch) ? HAS_MACHINE : HAS_OTHER;
}

struct pass {
    const struct sock_filter *at;
    uint32_t length;
    uint8_t has[BPF_MAXINSNS];  // by place; 0: it is not reached
};

// False if there is no such place.
static bool reach(struct pass *pass, uint64_t place, unsigned has) {
    if (place >= pass->length) return false;
    pass->has[place] |= (uint8_t)has;
    return true;
}

static bool pass_jump(struct pass *pass, uint64_t place) {
    const struct sock_filter *jump = &pass->at[place];
    if (BPF_OP(jump->code) == BPF_JA) return reach(pass, place + 1 + jump->k, pass->has[place]);
    for (unsigned has = HAS_NUMBER; has <= HAS_OTHER; has *= 2) {
        unsigned may = pass->has[place] & has ? jump_of(jump, has) : 0;
        if (may & MAY_HOLD && !reach(pass, place + 1 + jump->jt, has)) return false;
        if (may & MAY_FAIL && !reach(pass, place + 1 + jump->jf, has)) return false;
    }
    return true;
}

// False where it may lead to something else than a call that is made or fails.
static bool pass_one(struct pass *pass, uint64_t place) {
    const struct sock_filter *now = &pass->at[place];
    if (!pass->has[place]) return true;
    switch (BPF_CLASS(now->code)) {
    case BPF_RET:
        return is_mild(now);
    case BPF_JMP:
        return pass_jump(pass, place);
    case BPF_LD:
        return reach(pass, place + 1, loaded_by(now));
    case BPF_ALU:
    case BPF_MISC:
        return reach(pass, place + 1, HAS_OTHER);
    default:  // the accumulator stays as it is
        return reach(pass, place + 1, pass->has[place]);
    }
}

static bool is_harmless(const struct sock_fprog *program) {
    struct pass pass = {.at = program->filter, .length = program->len};
    if (!pass.length || pass.length > BPF_MAXINSNS) return false;
    pass.has[0] = HAS_OTHER;
    for (uint32_t i = 0; i < pass.length; i++)
        if (!pass_one(&pass, i)) return false;
    return true;
}

static bool can_be_read(const void *start, size_t bytes) {
    uintptr_t at = (uintptr_t)start & ~(uintptr_t)(SYS_PAGE_LEAST - 1);
    for (; bytes && at < (uintptr_t)start + bytes; at += SYS_PAGE_LEAST)
        if (!sys_is_readable((const void *)at)) return false;
    return sys_is_readable(start);
}

COLD bool seccomp_note(const void *words) {
    const struct sock_fprog *program = words;
    if (sys_is_confined() || !can_be_read(program, sizeof *program)) return false;
    if (!can_be_read(program->filter, program->len * sizeof *program->filter)) return false;
    if (!is_harmless(program)) return false;
    __atomic_fetch_add(&harmless_count, 1, __ATOMIC_RELAXED);
    return true;
}
