// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/ranges.h"

#include <stddef.h>
#include <string.h>

#include "runtime/sys/sys.h"

enum { FIRST_LIMIT = 1024, MOST_LIMIT = 1 << 22, PREPARED = 2 };

static struct cairn_mapping_range *list_of(const struct ranges *ranges) {
    return (struct cairn_mapping_range *)(uintptr_t)ranges->table.list;
}

static void change_begin(struct ranges *ranges) {
    __atomic_fetch_add(&ranges->table.change, 1, __ATOMIC_ACQ_REL);
}

static void change_end(struct ranges *ranges) {
    __atomic_fetch_add(&ranges->table.change, 1, __ATOMIC_RELEASE);
}

bool ranges_prepare(struct ranges *ranges) {
    struct cairn_mapping_range *old = list_of(ranges), *list;
    if (ranges->table.count + PREPARED <= ranges->limit) return true;
    uint32_t limit = ranges->limit ? 2 * ranges->limit : FIRST_LIMIT;
    list = limit <= MOST_LIMIT ? sys_map(limit * sizeof *list) : NULL;
    if (!list) return false;
    if (old) memcpy(list, old, ranges->table.count * sizeof *list);
    change_begin(ranges);
    ranges->table.list = (uintptr_t)list;
    change_end(ranges);
    if (old) sys_unmap(old, ranges->limit * sizeof *old);
    ranges->limit = limit;
    return true;
}

// Index of the first range that begins below `end`: none before it reaches down to there.
static uint32_t first_below(const struct ranges *ranges, uint64_t end) {
    const struct cairn_mapping_range *list = list_of(ranges);
    uint32_t low = 0, high = ranges->table.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list[middle].start >= end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void open_gap(struct ranges *ranges, uint32_t at) {
    struct cairn_mapping_range *list = list_of(ranges);
    memmove(list + at + 1, list + at, (ranges->table.count - at) * sizeof *list);
    ranges->table.count++;
}

// [start, end) lies inside of the range at `at`: it becomes two.
static void split(struct ranges *ranges, uint32_t at, uint64_t start, uint64_t end) {
    struct cairn_mapping_range *list = list_of(ranges);
    open_gap(ranges, at);
    list[at].start = end;
    list[at + 1].end = start;
}

// Takes [start, end) off one of its ends. False: nothing is left.
static bool cut(struct cairn_mapping_range *range, uint64_t start, uint64_t end,
                ranges_lost *lost) {
    uint64_t bytes = range->end - range->start;
    if (range->end > end)
        range->start = end;
    else if (range->start < start)
        range->end = start;
    else {
        lost(range->mapper, bytes, RANGES_WHOLE);
        return false;
    }
    lost(range->mapper, bytes - (range->end - range->start), RANGES_CUT);
    return true;
}

void ranges_remove(struct ranges *ranges, uint64_t start, uint64_t end, uint32_t stamp,
                   ranges_lost *lost) {
    struct cairn_mapping_range *list = list_of(ranges);
    uint32_t at = first_below(ranges, end), kept = at;
    change_begin(ranges);
    for (; at < ranges->table.count && list[at].end > start; at++) {
        struct cairn_mapping_range range = list[at];
        bool is_younger = (int32_t)(range.stamp - stamp) > 0;
        if (!is_younger && range.start < start && range.end > end) {  // then there is no other
            split(ranges, at, start, end);
            lost(range.mapper, end - start, RANGES_SPLIT);
            return change_end(ranges);
        }
        if (is_younger || cut(&range, start, end, lost)) list[kept++] = range;
    }
    if (kept != at) memmove(list + kept, list + at, (ranges->table.count - at) * sizeof *list);
    ranges->table.count -= at - kept;
    change_end(ranges);
}

void ranges_add(struct ranges *ranges, const struct cairn_mapping_range *range) {
    uint32_t at = first_below(ranges, range->end);
    change_begin(ranges);
    open_gap(ranges, at);
    list_of(ranges)[at] = *range;
    change_end(ranges);
}

const struct cairn_mapping_range *ranges_find(const struct ranges *ranges, uint64_t address) {
    uint32_t at = first_below(ranges, address + 1);
    const struct cairn_mapping_range *list = list_of(ranges);
    return at < ranges->table.count && list[at].end > address ? &list[at] : NULL;
}
