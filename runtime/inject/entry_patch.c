// SPDX-License-Identifier: Apache-2.0
// The program's code is written through /proc/self/mem, as the tool does from outside: that copies
// the pages, and changes nobody's right to write them.
#include "runtime/inject/entry_patch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "format/attachment.h"
#include "format/settings.h"
#include "runtime/inject/attach.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/sys.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { PARTS_MAX = 1024 };

struct lead {
    struct cairn_lead plan;
    const char *digits;  // of the parts
    uintptr_t bias;      // where the executable lies
    long memory;         // descriptor of the process' memory
};

static int digit_value(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// Moves on to what follows.
static bool read_digits(const char **digits, void *bytes, size_t count) {
    uint8_t *at = bytes;
    for (size_t i = 0; i < count; i++, *digits += 2) {
        int high = digit_value((*digits)[0]), low = high < 0 ? -1 : digit_value((*digits)[1]);
        if (low < 0) return false;
        at[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool read_plan(struct lead *lead) {
    lead->digits = environment_get(CAIRN_VARIABLE(ENTRIES));
    if (!lead->digits || !read_digits(&lead->digits, &lead->plan, sizeof lead->plan)) return false;
    lead->bias = getauxval(AT_ENTRY) - lead->plan.start;
    return lead->plan.magic == CAIRN_LEAD_MAGIC && lead->bias % sys_page_bytes() == 0 &&
           lead->plan.count && lead->plan.count <= PARTS_MAX;
}

// The directory has a link for itself, one for its parent, and one for each thread.
static bool is_alone(void) {
    struct stat status;
    long result =
        sys_call(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task", (long)&status, 0, 0, 0);
    return result == 0 && status.st_nlink == 3;
}

typedef bool part_visitor(const struct lead *lead, uint64_t number, const struct cairn_lead_part *);

static bool each_part(const struct lead *lead, part_visitor *visit) {
    const char *digits = lead->digits;
    struct cairn_lead_part part;
    for (uint64_t i = 0; i < lead->plan.count; i++)
        if (!read_digits(&digits, &part, sizeof part) || !visit(lead, i, &part)) return false;
    return true;
}

static uint64_t part_place(const struct lead *lead, uint64_t number) {
    return lead->plan.place + number * CAIRN_LEAD_CODE_BYTES;
}

#if defined(__aarch64__)
static bool leads_to(const struct cairn_lead_part *part, uint64_t place) {
    const uint32_t branch = 0x14000000, branch_mask = 0xfc000000;
    uint32_t code;
    memcpy(&code, part->jump, sizeof code);
    int32_t distance = (int32_t)((code & ~branch_mask) << 6) >> 4;  // 26 bits of words
    return (code & branch_mask) == branch && part->address + (uint64_t)(int64_t)distance == place;
}
#else
static bool leads_to(const struct cairn_lead_part *part, uint64_t place) {
    const uint8_t near_jump = 0xe9;
    int32_t distance;
    memcpy(&distance, part->jump + 1, sizeof distance);
    return part->jump[0] == near_jump &&
           part->address + sizeof part->jump + (uint64_t)(int64_t)distance == place;
}
#endif

static bool is_expected(const struct lead *lead, uint64_t number,
                        const struct cairn_lead_part *part) {
    uint8_t now[CAIRN_LEAD_JUMP_BYTES];
    long got = sys_call(SYS_pread64, lead->memory, (long)now, sizeof now,
                        (long)(part->address + lead->bias), 0, 0);
    return got == sizeof now && part->kind < CAIRN_ENTRY_KINDS &&
           leads_to(part, part_place(lead, number)) && !memcmp(now, part->before, sizeof now);
}

static bool put_code(const struct lead *lead, uint64_t number, const struct cairn_lead_part *part) {
    uint64_t hook = attach_entry_hook(part->kind);
    uint8_t *at = (uint8_t *)(uintptr_t)(part_place(lead, number) + lead->bias);
    memcpy(at, part->code, sizeof part->code);
    memcpy(at + CAIRN_LEAD_HOOK_AT, &hook, sizeof hook);
    return true;
}

static bool write_code(const struct lead *lead, uint64_t address, const uint8_t *bytes) {
    return sys_call(SYS_pwrite64, lead->memory, (long)bytes, CAIRN_LEAD_JUMP_BYTES,
                    (long)(address + lead->bias), 0, 0) == CAIRN_LEAD_JUMP_BYTES;
}

static bool put_jump(const struct lead *lead, uint64_t number, const struct cairn_lead_part *part) {
    (void)number;
    return write_code(lead, part->address, part->jump);
}

static bool put_back(const struct lead *lead, uint64_t number, const struct cairn_lead_part *part) {
    (void)number;
    return write_code(lead, part->address, part->before);
}

static size_t mapping_bytes(const struct lead *lead) {
    return sys_page_up(lead->plan.count * CAIRN_LEAD_CODE_BYTES);
}

// Where the plan wants it, or nowhere: older kernels take the address for a wish.
static bool make_mapping(const struct lead *lead) {
    size_t bytes = mapping_bytes(lead);
    long wanted = (long)(lead->plan.place + lead->bias);
    long at = sys_call(SYS_mmap, wanted, (long)bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == wanted && each_part(lead, put_code) &&
        sys_call(SYS_mprotect, at, (long)bytes, PROT_READ | PROT_EXEC, 0, 0, 0) == 0)
        return true;
    if (at > 0) sys_call(SYS_munmap, at, (long)bytes, 0, 0, 0, 0);
    return false;
}

static void put_jumps(const struct lead *lead) {
    attach_set_entries((uintptr_t)lead->plan.place + lead->bias);
    if (each_part(lead, put_jump)) return;
    if (!each_part(lead, put_back)) return;  // what a jump leads to has to stay
    attach_set_entries(0);
    sys_call(SYS_munmap, (long)(lead->plan.place + lead->bias), (long)mapping_bytes(lead), 0, 0, 0,
             0);
}

void entry_patch_entries(void) {
    struct lead lead;
    if (attach_has_entries() || !read_plan(&lead) || !is_alone()) return;
    lead.memory =
        sys_call(SYS_openat, AT_FDCWD, (long)"/proc/self/mem", O_RDWR | O_CLOEXEC, 0, 0, 0);
    if (lead.memory < 0) return;
    if (each_part(&lead, is_expected) && make_mapping(&lead)) put_jumps(&lead);
    sys_call(SYS_close, lead.memory, 0, 0, 0, 0, 0);
}
