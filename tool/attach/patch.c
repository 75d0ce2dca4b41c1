// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/patch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tool/proc/maps.h"
#include "tool/proc/process.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

// What an entry gets of the mapping: the way to the hook, then what was moved.
enum { BREAKPOINT = 0xcc };
enum { PART_BYTES = CAIRN_LEAD_CODE_BYTES };
// The lowest address that a process may map anything at, and how far from the executable the
// mapping stays, so that neither grows into the other.
#define LOWEST_ADDRESS (1u << 20)
#define DISTANCE_BYTES (1u << 16)
#define ABOVE_BYTES (16u << 20)  // more than the linker and the kernel's pages take
#define NEAR_BYTES (1u << 30)    // of a jump's 2 GiB, so that all of an executable is in reach
#define MAPPING_MAX_BYTES (1u << 20)

// The code of a function with what follows it, as it lies in the process; NULL without memory or if
// it cannot be read. The caller frees it.
static uint8_t *read_code(const struct remote *remote, const struct entry *entry,
                          struct code_function *function) {
    size_t available = (size_t)entry->size + CODE_PADDING_MAX;
    uint8_t *bytes = malloc(available);
    if (!bytes) return NULL;
    if (!remote_read(remote, entry->address, bytes, available)) available = (size_t)entry->size;
    if (!remote_read(remote, entry->address, bytes, available)) {
        free(bytes);
        return NULL;
    }
    *function = (struct code_function){bytes, (size_t)entry->size, available, entry->address};
    return bytes;
}

// One entry's part, which will lie at `place`.
static bool make_part(struct patch *patch, const struct entry *entry, uint64_t place, uint64_t hook,
                      const struct remote *remote, uint8_t part[PART_BYTES], struct error *error) {
    struct code_function function;
    struct code_moved moved = {.count = 0};
    struct patched *patched = array_push(&patch->items);
    uint8_t *bytes = patched ? read_code(remote, entry, &function) : NULL;
    if (!bytes) return error_set(error, "%s cannot be read", entry->name);
    *patched = (struct patched){.address = entry->address};
    memcpy(patched->before, bytes, sizeof patched->before);
    if (entry->way)
        code_way(part, entry->way);
    else
        code_thunk(part, hook);
    bool is_made = bytes[0] != BREAKPOINT
                       ? code_move(&function, place + CODE_THUNK_BYTES, &moved, error)
                       : error_set(error, "a debugger or tracer has a breakpoint there");
    if (is_made) memcpy(part + CODE_THUNK_BYTES, moved.bytes, moved.count);
    if (is_made && !code_jump(patched->jump, entry->address, place))
        is_made = error_set(error, "it is too far from free memory");
    free(bytes);
    return is_made || error_wrap(error, "%s", entry->name);
}

static uint64_t whole_pages(uint64_t bytes) {
    return (bytes + process_page_bytes() - 1) & ~(process_page_bytes() - 1);
}

uint64_t patch_place_below(uint64_t low, uint64_t bytes) {
    return (low & ~(process_page_bytes() - 1)) - DISTANCE_BYTES - whole_pages(bytes);
}

uint64_t patch_place_above(uint64_t high) {
    return whole_pages(high) + ABOVE_BYTES;
}

// The end of the free memory right below the executable, if that is large enough. Otherwise, as
// where a dynamic linker was given the executable and put it among the libraries, the free memory
// that is nearest: first below, then above. 0: there is none near enough for a jump.
static uint64_t find_place(const struct remote *remote, const struct entries *entries,
                           uint64_t bytes) {
    const uint64_t low = entries->low, room = whole_pages(bytes);
    struct maps maps;
    struct mapping mapping;
    uint64_t end_before = LOWEST_ADDRESS, end_below = LOWEST_ADDRESS, below = 0, above = 0;
    if (!maps_open(&maps, remote->pid, "maps", NULL)) return 0;
    while (maps_next(&maps, &mapping)) {
        uint64_t gap = mapping.start > end_before ? mapping.start - end_before : 0;
        bool is_below = mapping.start <= low;
        if (is_below && gap >= room && low - mapping.start < NEAR_BYTES)
            below = mapping.start - room;
        if (!is_below && !above && gap >= room && end_before - low < NEAR_BYTES &&
            end_before >= entries->high)
            above = end_before;
        if (mapping.end > end_before) end_before = mapping.end;
        if (mapping.end <= low && mapping.end > end_below) end_below = mapping.end;
    }
    maps_close(&maps);
    uint64_t place = patch_place_below(low, bytes);
    if (place < low && place >= end_below) return place;
    return below ? below : above;
}

static bool map_at(struct caller *caller, uint64_t place, uint64_t bytes, int protection,
                   struct error *error) {
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {
        place,      bytes, (uint64_t)protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
        UINT64_MAX, 0};
    int64_t result = 0;
    if (!caller_system_call(caller, SYS_mmap, arguments, &result, error)) return false;
    if ((uint64_t)result == place) return true;
    if (result > 0) {
        const uint64_t again[REGISTERS_ARGUMENTS] = {(uint64_t)result, bytes};
        int64_t unused = 0;
        caller_system_call(caller, SYS_munmap, again, &unused, NULL);
    }
    return error_set(error, "no memory can be mapped near its executable: %s",
                     result < 0 ? strerror((int)-result) : "the kernel puts it elsewhere");
}

bool patch_map_near(struct caller *caller, const struct entries *entries, uint64_t bytes,
                    int protection, uint64_t *place, struct error *error) {
    bytes = whole_pages(bytes);
    *place = find_place(caller->remote, entries, bytes);
    if (!*place) return error_set(error, "there is no free memory near its executable");
    return map_at(caller, *place, bytes, protection, error);
}

// What the mapping begins with; the parts follow the last item.
struct head {
    uint64_t magic, bytes, count;
};
#define HEAD_MAGIC UINT64_C(0x6e65747269657361)

static bool write_head(const struct patch *patch, const struct remote *remote) {
    const struct head head = {HEAD_MAGIC, patch->end - patch->start, patch->items.count};
    return remote_write(remote, patch->start, &head, sizeof head) &&
           remote_write(remote, patch->start + sizeof head, patch->items.items,
                        patch->items.count * sizeof *patch->items.items);
}

static uint64_t head_bytes(size_t count) {
    return sizeof(struct head) + count * sizeof(struct patched);
}

static bool make_parts(struct patch *patch, const struct entries *entries,
                       const uint64_t hooks[CAIRN_ENTRY_KINDS], const struct remote *remote,
                       struct error *error) {
    uint64_t place = patch->start + head_bytes(entries->items.count);
    for (size_t i = 0; i < entries->items.count; i++, place += PART_BYTES) {
        const struct entry *entry = &entries->items.items[i];
        uint8_t part[PART_BYTES] = {0};
        if (!make_part(patch, entry, place, hooks[entry->kind], remote, part, error)) return false;
        if (!remote_write(remote, place, part, sizeof part))
            return error_set(error, "its memory cannot be written: %s", strerror(errno));
    }
    return write_head(patch, remote) ||
           error_set(error, "its memory cannot be written: %s", strerror(errno));
}

uint64_t patch_moved_at(const struct patch *patch, const struct entries *entries, size_t index) {
    return patch->start + head_bytes(entries->items.count) + index * PART_BYTES + CODE_THUNK_BYTES;
}

bool patch_prepare(struct patch *patch, const struct entries *entries,
                   const uint64_t hooks[CAIRN_ENTRY_KINDS], struct caller *caller,
                   struct error *error) {
    uint64_t bytes = head_bytes(entries->items.count) + entries->items.count * PART_BYTES, place;
    patch->items.count = 0;
    patch->is_taken = false;
    if (!patch_map_near(caller, entries, bytes, PROT_READ | PROT_EXEC, &place, error)) return false;
    patch->start = place;
    patch->end = place + whole_pages(bytes);
    if (make_parts(patch, entries, hooks, caller->remote, error)) return true;
    patch_drop(patch, caller, NULL);
    return false;
}

void patch_recover(struct patch *patch, uint64_t start, const struct remote *remote) {
    struct head head;
    if (patch->start || !start || !remote_read(remote, start, &head, sizeof head) ||
        head.magic != HEAD_MAGIC || head.bytes > MAPPING_MAX_BYTES || head.count > head.bytes ||
        head_bytes(head.count) > head.bytes)
        return;
    patch->start = start;
    patch->end = start + head.bytes;
    patch->is_taken = true;
    for (uint64_t i = 0; i < head.count; i++) {
        struct patched *item = array_push(&patch->items);
        if (item) remote_read(remote, start + head_bytes(i), item, sizeof *item);
    }
}

bool patch_is_in_way(const struct patch *patch, uint64_t pc) {
    if (pc >= patch->start && pc < patch->end) return true;
    for (size_t i = 0; i < patch->items.count; i++) {
        uint64_t offset = pc - patch->items.items[i].address;
        if (offset > 0 && offset < CODE_JUMP_BYTES) return true;
    }
    return false;
}

bool patch_take(struct patch *patch, const struct remote *remote) {
    patch->is_taken = true;
    for (size_t i = 0; i < patch->items.count; i++) {
        const struct patched *item = &patch->items.items[i];
        if (remote_write(remote, item->address, item->jump, sizeof item->jump)) continue;
        patch_put_back(patch, remote);
        return false;
    }
    return true;
}

void patch_put_back(struct patch *patch, const struct remote *remote) {
    for (size_t i = 0; i < patch->items.count; i++) {
        const struct patched *item = &patch->items.items[i];
        uint8_t now[CODE_JUMP_BYTES];
        if (remote_read(remote, item->address, now, sizeof now) &&
            !memcmp(now, item->jump, sizeof now))
            remote_write(remote, item->address, item->before, sizeof item->before);
    }
    patch->is_taken = false;
}

bool patch_drop(struct patch *patch, struct caller *caller, struct error *error) {
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {patch->start, patch->end - patch->start};
    int64_t unused = 0;
    bool is_dropped =
        !patch->start || caller_system_call(caller, SYS_munmap, arguments, &unused, error);
    patch->start = patch->end = 0;
    patch->items.count = 0;
    return is_dropped;
}

void patch_free(struct patch *patch) {
    array_free(&patch->items);
}
