// SPDX-License-Identifier: Apache-2.0
// Shared memory is uncovered without its descriptor: mremap of no bytes of a shared mapping makes a
// second mapping of the same pages, as long as is asked for, and that is moved into its place. Two
// threads that do so at once put the same pages there.
#include "runtime/sys/veil.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "runtime/sys/sys.h"

struct veil {
    uintptr_t start;  // (atomic) of the whole stretch; 0: none
    uintptr_t open;   // (atomic) up to here it is uncovered
    uintptr_t end;    // (atomic)
    enum veil_kind kind;
    uint32_t is_lifting;  // (atomic) a thread uncovers it now, or was torn out of that
};

// Sections of a recording and those of a parent's, threads.
enum { VEIL_LIMIT = 40 };

// A stretch that is given back waits so often for those who uncover it.
enum { LEAVE_TRIES = 1000 };

// A thread that needs what another one uncovers gives way so often before it does that itself: a
// thousand threads that uncovered the same would all stop whoever maps memory.
enum { LIFT_TRIES = 100 };

// The next step is made while a quarter of what is open is still free, so that few have to wait.
enum { AHEAD_SHARE = 4 };

static APART struct veil veils[VEIL_LIMIT];
static APART uint32_t veil_count;     // (atomic) places from there on were never used
static APART uint32_t lifting_count;  // (atomic) threads that uncover now
static APART long file_and_1;         // the file that covers, and 1; 0: none

static uintptr_t load(const uintptr_t *word) {
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static long map_file(uintptr_t at, size_t bytes, int flags) {
    // not from the file's beginning: there readers look for the headers of a program
    return sys_call(SYS_mmap, (long)at, (long)bytes, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE | flags,
                    file_and_1 - 1, SYS_PAGE_MOST);
}

COLD void veil_close(void) {
    if (file_and_1) sys_call(SYS_close, file_and_1 - 1, 0, 0, 0, 0, 0);
    file_and_1 = 0;
}

// A file that cannot be mapped would leave a hole where it is to cover something.
COLD void veil_open(long file) {
    veil_close();
    if (file < 0) return;
    file_and_1 = file + 1;
    void *tried = sys_is_confined() ? NULL : veil_map(SYS_PAGE_MOST);
    if (tried)
        sys_call(SYS_munmap, (long)tried, SYS_PAGE_MOST, 0, 0, 0, 0);
    else
        veil_close();
}

COLD void *veil_map(size_t bytes) {
    long at = !file_and_1 ? -1 : map_file(0, bytes, 0);
    return sys_is_error(at) ? NULL : (void *)at;
}

// Makes a second mapping of the page before what is covered, and of what follows it in the file.
static bool lift_shared(uintptr_t from, uintptr_t to) {
    const long page = sys_page_bytes(), bytes = (long)(to - from);
    long copy = sys_call(SYS_mremap, (long)from - page, 0, page + bytes, MREMAP_MAYMOVE, 0, 0);
    if (sys_is_error(copy)) return false;
    sys_call(SYS_madvise, copy + page, bytes, MADV_DONTDUMP, 0, 0, 0);
    long moved = sys_call(SYS_mremap, copy + page, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                          (long)from, 0);
    bool is_moved = !sys_is_error(moved);
    sys_call(SYS_munmap, copy, is_moved ? page : page + bytes, 0, 0, 0, 0);
    return is_moved;
}

static bool lift_private(uintptr_t from, uintptr_t to) {
    if (!sys_map_over(from, to - from)) return false;
    sys_call(SYS_madvise, (long)from, (long)(to - from), MADV_DONTDUMP, 0, 0, 0);
    return true;
}

static uint32_t count(void) {
    return __atomic_load_n(&veil_count, __ATOMIC_SEQ_CST);
}

static COLD struct veil *veil_of(uintptr_t address) {
    for (uint32_t i = 0, end = count(); i < end; i++) {
        uintptr_t start = load(&veils[i].start);
        if (start && start <= address && address < load(&veils[i].end)) return &veils[i];
    }
    return NULL;
}

static bool lift_to(struct veil *veil, uintptr_t open, uintptr_t to) {
    if (to <= open) return true;
    bool is_lifted = veil->kind == VEIL_SHARED ? lift_shared(open, to) : lift_private(open, to);
    while (is_lifted && open < to &&
           !__atomic_compare_exchange_n(&veil->open, &open, to, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
    }
    return is_lifted;
}

// Twice what is needed; where there is no room for as much, just that.
static bool lift(struct veil *veil, uintptr_t needed) {
    __atomic_fetch_add(&lifting_count, 1, __ATOMIC_SEQ_CST);
    uintptr_t open = load(&veil->open), end = load(&veil->end);
    uintptr_t wished = sys_page_up(needed + (needed - load(&veil->start)));
    bool is_there = needed <= end && (lift_to(veil, open, wished < end ? wished : end) ||
                                      lift_to(veil, open, needed));
    __atomic_fetch_sub(&lifting_count, 1, __ATOMIC_SEQ_CST);
    return is_there;
}

static bool is_open(const struct veil *veil, uintptr_t needed) {
    return needed <= load(&veil->open);
}

static bool lift_begin(struct veil *veil) {
    return !__atomic_exchange_n(&veil->is_lifting, 1, __ATOMIC_ACQ_REL);
}

// Waits for whoever uncovers now, unless that is a thread that will not be done: this one, torn out
// of it by a handler. True if it is open by now; else the caller is to uncover.
static bool lift_await(struct veil *veil, uintptr_t needed) {
    for (int i = 0; i < LIFT_TRIES && !sys_is_confined(); i++) {
        if (is_open(veil, needed)) return true;
        if (lift_begin(veil)) return false;
        sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    return is_open(veil, needed);
}

static void lift_end(struct veil *veil) {
    __atomic_store_n(&veil->is_lifting, 0, __ATOMIC_RELEASE);
}

static bool is_soon_needed(const struct veil *veil, uintptr_t needed) {
    uintptr_t open = load(&veil->open);
    return veil->kind == VEIL_SHARED && !sys_is_confined() && open < load(&veil->end) &&
           open - needed < (open - load(&veil->start)) / AHEAD_SHARE;
}

static void lift_ahead(struct veil *veil, uintptr_t needed) {
    if (!is_soon_needed(veil, needed) || !lift_begin(veil)) return;
    lift(veil, needed);
    lift_end(veil);
}

COLD bool veil_lift(const void *end) {
    uintptr_t needed = sys_page_up((uintptr_t)end);
    struct veil *veil = veil_of(needed - 1);
    if (!veil) return true;
    if (is_open(veil, needed)) {
        lift_ahead(veil, needed);
        return true;
    }
    if (lift_await(veil, needed)) return true;
    bool is_lifted = is_open(veil, needed) || lift(veil, needed);
    lift_end(veil);
    return is_lifted;
}

COLD void veil_lift_shared(void) {
    for (uint32_t i = 0, end = count(); i < end; i++)
        if (load(&veils[i].start) && veils[i].kind == VEIL_SHARED)
            veil_lift((const void *)load(&veils[i].end));
}

COLD uint64_t veil_readable_bytes(const void *memory, uint64_t bytes) {
    const struct veil *veil = veil_of((uintptr_t)memory);
    if (!veil) return bytes;
    uintptr_t open = load(&veil->open), end = load(&veil->end);
    uint64_t most = (open < end ? open : end) - (uintptr_t)memory;
    return bytes < most ? bytes : most;
}

static void clear(struct veil *veil) {
    __atomic_store_n(&veil->start, 0, __ATOMIC_SEQ_CST);
}

static void cut(struct veil *veil, uintptr_t start) {
    __atomic_store_n(&veil->end, start, __ATOMIC_SEQ_CST);
}

COLD bool veil_leave(uintptr_t start, uintptr_t end) {
    bool is_any = false;
    for (uint32_t i = 0, used = count(); i < used; i++) {
        uintptr_t from = load(&veils[i].start), to = load(&veils[i].end);
        if (!from || start >= to || end <= from) continue;
        is_any = true;
        if (start <= from)
            clear(&veils[i]);
        else
            cut(&veils[i], start);
    }
    for (int i = 0; is_any && __atomic_load_n(&lifting_count, __ATOMIC_SEQ_CST); i++) {
        if (i == LEAVE_TRIES) return false;
        sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    return true;
}

static bool enter(uintptr_t start, uintptr_t open, uintptr_t end, enum veil_kind kind) {
    for (uint32_t i = 0; i < VEIL_LIMIT; i++) {
        if (load(&veils[i].start)) continue;
        veils[i] = (struct veil){.open = open, .end = end, .kind = kind};
        __atomic_store_n(&veils[i].start, start, __ATOMIC_SEQ_CST);
        if (i >= count()) __atomic_store_n(&veil_count, i + 1, __ATOMIC_SEQ_CST);
        return true;
    }
    return false;
}

COLD bool veil_draw(void *memory, size_t bytes, size_t open_bytes, enum veil_kind kind) {
    uintptr_t start = (uintptr_t)memory, end = start + bytes;
    uintptr_t open = sys_page_up(start + open_bytes);
    if (!file_and_1 || sys_is_confined() || open >= end) return false;
    if (!enter(start, open, end, kind)) return false;
    if (!sys_is_error(map_file(open, end - open, MAP_FIXED))) return true;
    veil_leave(start, end);
    return false;
}

COLD void veil_begin_child(void) {
    lifting_count = 0;
}
