// SPDX-License-Identifier: Apache-2.0
// The ranges of the unit DIEs are read rather than .debug_aranges: clang writes no aranges, and
// reading one DIE of each unit is cheap. Units that say nothing about their ranges are found by
// .debug_aranges. Ranges are not kept: each looks for the requests inside it.
//
// Ranges of functions that the linker removed begin at 0 or other places without code and are
// skipped; where ranges overlap all the same, the shorter one is the more exact.
#include "tool/symbol/unit.h"

#include <dwarf.h>
#include <stdlib.h>

size_t request_lower_bound(const struct request *requests, size_t count, uint64_t address) {
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (requests[middle].address < address)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

static void assign_range(const struct image *image, struct request *requests, size_t count,
                         uint64_t start, uint64_t end, uint32_t unit, struct effort *effort) {
    const uint64_t steps_of_range = 8;
    if (!effort_spend(effort, steps_of_range)) return;
    size_t i = request_lower_bound(requests, count, start);
    if (i == count || requests[i].address >= end || !image_is_code(image, start)) return;
    for (; i < count && requests[i].address < end && effort_spend(effort, 1); i++) {
        if (requests[i].unit != UNIT_NONE && requests[i].range_bytes <= end - start) continue;
        requests[i].unit = unit;
        requests[i].range_bytes = end - start;
    }
}

static bool add_unit(struct unit_list *list, const Dwarf_Die *die) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        struct unit *units = reallocarray(list->units, capacity, sizeof *units);
        if (!units) return false;
        list->units = units;
        list->capacity = capacity;
    }
    list->units[list->count++].die = *die;
    return true;
}

static void assign_by_aranges(const struct unit_list *list, Dwarf *dwarf, struct request *requests,
                              size_t count) {
    Dwarf_Aranges *aranges = NULL;
    for (size_t i = 0; i < count; i++) {
        if (requests[i].unit != UNIT_NONE) continue;
        if (!aranges && dwarf_getaranges(dwarf, &aranges, NULL)) return;
        Dwarf_Arange *range = dwarf_getarange_addr(aranges, requests[i].address);
        Dwarf_Off offset;
        if (!range || dwarf_getarangeinfo(range, NULL, NULL, &offset)) continue;
        size_t low = 0, high = list->count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (dwarf_dieoffset(&list->units[middle].die) < offset)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < list->count && dwarf_dieoffset(&list->units[low].die) == offset)
            requests[i].unit = (uint32_t)low;
    }
}

bool unit_assign(struct unit_list *list, Dwarf *dwarf, const struct image *image,
                 struct request *requests, size_t count, struct effort *effort) {
    Dwarf_CU *cu = NULL;
    uint8_t type;
    Dwarf_Die die;
    while (!dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, NULL)) {
        if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
        if (!add_unit(list, &die)) return false;
        Dwarf_Addr base = 0, start, end;
        ptrdiff_t offset = 0;
        while (effort->left && (offset = dwarf_ranges(&die, offset, &base, &start, &end)) > 0)
            assign_range(image, requests, count, start, end, (uint32_t)(list->count - 1), effort);
    }
    assign_by_aranges(list, dwarf, requests, count);
    return true;
}

void unit_free(struct unit_list *list) {
    free(list->units);
    *list = (struct unit_list){0};
}
