// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/vm.h"

#include <stddef.h>
#include <string.h>

#include "format/format.h"
#include "runtime/managed/memory.h"
#include "runtime/sys/linker.h"

struct vm_layout vm;

// A table of libjvm: where it is, how far its entries lie apart, where an entry has what.
enum { TABLE_COLUMNS = 6, ENTRIES_MOST = 1 << 14, NAME_BYTES = 64 };
struct table {
    const char *start, *stride, *columns[TABLE_COLUMNS];
};
enum { FIELD_TYPE, FIELD_NAME, FIELD_IS_STATIC, FIELD_OFFSET, FIELD_ADDRESS };
enum { TYPE_NAME, TYPE_SIZE };

static const struct table field_table = {
    "gHotSpotVMStructs",
    "gHotSpotVMStructEntryArrayStride",
    {"gHotSpotVMStructEntryTypeNameOffset", "gHotSpotVMStructEntryFieldNameOffset",
     "gHotSpotVMStructEntryIsStaticOffset", "gHotSpotVMStructEntryOffsetOffset",
     "gHotSpotVMStructEntryAddressOffset"}};
static const struct table type_table = {
    "gHotSpotVMTypes",
    "gHotSpotVMTypeEntryArrayStride",
    {"gHotSpotVMTypeEntryTypeNameOffset", "gHotSpotVMTypeEntrySizeOffset"}};

struct entries {
    uintptr_t at;
    uint64_t stride, columns[TABLE_COLUMNS];
};

static bool read_symbol(const char *name, uint64_t *value) {
    uintptr_t address = (uintptr_t)linker_search(name);
    return address && memory_read_carefully(address, value, sizeof *value);
}

// False where there is none, or it is not filled in yet.
static bool open_table(const struct table *table, struct entries *entries) {
    *entries = (struct entries){0};
    if (!read_symbol(table->start, &entries->at) || !read_symbol(table->stride, &entries->stride))
        return false;
    for (int i = 0; i < TABLE_COLUMNS && table->columns[i]; i++)
        if (!read_symbol(table->columns[i], &entries->columns[i])) return false;
    return entries->at && entries->stride;
}

static bool read_column(const struct entries *entries, int column, uint64_t *value) {
    return memory_read_carefully(entries->at + entries->columns[column], value, sizeof *value);
}

// A name of the table, cut; false at the end of the table.
static bool read_name(const struct entries *entries, int column, char name[NAME_BYTES]) {
    uint64_t text;
    if (!read_column(entries, column, &text) || !text) return false;
    for (size_t length = 0; length < NAME_BYTES - 1;) {
        // by pieces that do not cross into another page
        size_t piece = sizeof text - (text + length) % sizeof text;
        if (piece > NAME_BYTES - 1 - length) piece = NAME_BYTES - 1 - length;
        if (!memory_read_carefully(text + length, name + length, piece)) return false;
        if (memchr(name + length, 0, piece)) return true;
        length += piece;
    }
    name[NAME_BYTES - 1] = 0;
    return true;
}

struct wanted {
    const char *type, *field;
    uint16_t member;  // its offset in vm_layout
};

static const struct wanted wanted_fields[] = {
#define VM_WANTED(member, type, field) {type, field, offsetof(struct vm_layout, member)},
    VM_FIELDS(VM_WANTED)
#undef VM_WANTED
};
static const struct wanted wanted_sizes[] = {
#define VM_WANTED(member, type) {type, NULL, offsetof(struct vm_layout, member)},
    VM_SIZES(VM_WANTED)
#undef VM_WANTED
};
enum {
    FIELD_COUNT = sizeof wanted_fields / sizeof wanted_fields[0],
    SIZE_COUNT = sizeof wanted_sizes / sizeof wanted_sizes[0],
};

static void take(struct vm_layout *layout, const struct wanted *wanted, uint64_t value) {
    memcpy((char *)layout + wanted->member, &value, sizeof value);
}

// How many of the fields it has; each is there once.
static unsigned take_fields(struct entries *entries, struct vm_layout *layout) {
    unsigned taken = 0;
    char type[NAME_BYTES], field[NAME_BYTES];
    for (unsigned seen = 0; seen < ENTRIES_MOST; seen++, entries->at += entries->stride) {
        if (!read_name(entries, FIELD_TYPE, type)) break;
        uint64_t is_static, value;
        if (!read_name(entries, FIELD_NAME, field)) continue;
        for (unsigned i = 0; i < FIELD_COUNT; i++) {
            if (strcmp(type, wanted_fields[i].type) != 0) continue;
            if (strcmp(field, wanted_fields[i].field) != 0) continue;
            if (!read_column(entries, FIELD_IS_STATIC, &is_static)) return 0;
            int column = (uint32_t)is_static ? FIELD_ADDRESS : FIELD_OFFSET;
            if (!read_column(entries, column, &value)) return 0;
            take(layout, &wanted_fields[i], value);
            taken++;
        }
    }
    return taken;
}

static unsigned take_sizes(struct entries *entries, struct vm_layout *layout) {
    unsigned taken = 0;
    char type[NAME_BYTES];
    for (unsigned seen = 0; seen < ENTRIES_MOST; seen++, entries->at += entries->stride) {
        uint64_t value;
        if (!read_name(entries, TYPE_NAME, type)) break;
        for (unsigned i = 0; i < SIZE_COUNT; i++) {
            if (strcmp(type, wanted_sizes[i].type) != 0) continue;
            if (!read_column(entries, TYPE_SIZE, &value)) return 0;
            take(layout, &wanted_sizes[i], value);
            taken++;
        }
    }
    return taken;
}

enum vm_state vm_find(uint32_t *major) {
    struct entries fields, types;
    struct vm_layout layout = {0};
    *major = 0;
    if (!open_table(&field_table, &fields) || !open_table(&type_table, &types)) return VM_ABSENT;
    bool has_all = take_fields(&fields, &layout) == FIELD_COUNT;
    has_all &= take_sizes(&types, &layout) == SIZE_COUNT;
    if (layout.major && !memory_read_carefully(layout.major, major, sizeof *major)) *major = 0;
    if (!has_all || *major != CAIRN_JAVA_READ) return VM_UNKNOWN;
    vm = layout;
    return VM_READ;
}
