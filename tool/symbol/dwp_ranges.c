// SPDX-License-Identifier: Apache-2.0
// libdw counts ranges of a split unit from the skeleton's address, which it does not know for a
// unit of a package: so the lists are read here.
#include <dwarf.h>

#include "tool/symbol/dwp.h"

enum { ADDRESS_BYTES = 8, OFFSET_BYTES = 4, LIST_HEAD_BYTES = 12 };

static uint64_t address_of(const struct dwp_unit *unit, uint64_t index) {
    struct bytes table = unit->addresses;
    if (index > bytes_left(&table) / ADDRESS_BYTES) return 0;
    bytes_skip(&table, index * ADDRESS_BYTES);
    return bytes_number(&table, ADDRESS_BYTES);
}

static struct bytes section_of(const struct dwp_unit *unit, const char *name) {
    struct image image = IMAGE_CLOSED;
    image.elf = unit->elf;
    if (elf_getshdrstrndx(image.elf, &image.string_section) < 0) return (struct bytes){0};
    return image_bytes(&image, name, "");
}

// Where the DIE's list begins.
static struct bytes list_of(const struct dwp_unit *unit, Dwarf_Die *die) {
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    struct bytes list = {0};
    if (!dwarf_attr_integrate(die, DW_AT_ranges, &attribute)) return list;
    bool is_old = unit->version < 5;
    list = is_old ? unit->ranges : section_of(unit, ".debug_rnglists.dwo");
    if (dwarf_formudata(&attribute, &value)) return (struct bytes){0};
    if (attribute.form == DW_FORM_rnglistx) {
        struct bytes offsets = list;
        bytes_skip(&offsets, LIST_HEAD_BYTES);
        if (value > bytes_left(&offsets) / OFFSET_BYTES) return (struct bytes){0};
        bytes_skip(&offsets, value * OFFSET_BYTES);
        value = LIST_HEAD_BYTES + bytes_number(&offsets, OFFSET_BYTES);
    }
    bytes_skip(&list, value);
    return list;
}

// DWARF 4: pairs; all ones and a base; two zeros end the list.
static bool next_old(struct dwp_ranges *ranges, uint64_t *start, uint64_t *end) {
    while (bytes_left(&ranges->list)) {
        *start = bytes_number(&ranges->list, ADDRESS_BYTES);
        *end = bytes_number(&ranges->list, ADDRESS_BYTES);
        if (ranges->list.is_bad || (!*start && !*end)) return false;
        if (*start != UINT64_MAX) {
            *start += ranges->base;
            *end += ranges->base;
            return true;
        }
        ranges->base = *end;
    }
    return false;
}

// One entry of DWARF 5; `is_range` says whether it is one. False: the end.
static bool read_entry(const struct dwp_unit *unit, struct dwp_ranges *ranges, uint64_t *start,
                       uint64_t *end, bool *is_range) {
    struct bytes *list = &ranges->list;
    *is_range = true;
    switch (bytes_u8(list)) {
    case DW_RLE_base_addressx:
        ranges->base = address_of(unit, bytes_uleb(list));
        *is_range = false;
        return true;
    case DW_RLE_base_address:
        ranges->base = bytes_number(list, ADDRESS_BYTES);
        *is_range = false;
        return true;
    case DW_RLE_startx_endx:
        *start = address_of(unit, bytes_uleb(list));
        *end = address_of(unit, bytes_uleb(list));
        return true;
    case DW_RLE_startx_length:
        *start = address_of(unit, bytes_uleb(list));
        *end = *start + bytes_uleb(list);
        return true;
    case DW_RLE_offset_pair:
        *start = ranges->base + bytes_uleb(list);
        *end = ranges->base + bytes_uleb(list);
        return true;
    case DW_RLE_start_end:
        *start = bytes_number(list, ADDRESS_BYTES);
        *end = bytes_number(list, ADDRESS_BYTES);
        return true;
    case DW_RLE_start_length:
        *start = bytes_number(list, ADDRESS_BYTES);
        *end = *start + bytes_uleb(list);
        return true;
    default:
        return false;
    }
}

bool dwp_ranges_next(const struct dwp_unit *unit, Dwarf_Die *die, struct dwp_ranges *ranges,
                     uint64_t *start, uint64_t *end) {
    if (!ranges->is_open)
        *ranges =
            (struct dwp_ranges){.list = list_of(unit, die), .base = unit->low, .is_open = true};
    if (unit->version < 5) return next_old(ranges, start, end);
    bool is_range = false;
    while (!is_range && bytes_left(&ranges->list))
        if (!read_entry(unit, ranges, start, end, &is_range) || ranges->list.is_bad) return false;
    return is_range;
}
