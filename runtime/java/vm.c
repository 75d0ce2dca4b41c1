// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/vm.h"

#include <stddef.h>
#include <string.h>

#include "format/format.h"
#include "format/languages.h"
#include "runtime/managed/memory.h"
#include "runtime/sys/linker.h"

APART struct vm_layout vm;

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
        size_t piece = SYS_PAGE_LEAST - (text + length) % SYS_PAGE_LEAST;
        if (piece > NAME_BYTES - 1 - length) piece = NAME_BYTES - 1 - length;
        if (!memory_read_carefully(text + length, name + length, piece)) return false;
        if (memchr(name + length, 0, piece)) return true;
        length += piece;
    }
    name[NAME_BYTES - 1] = 0;
    return true;
}

// Where a member of the layout comes from, in some versions of JDK.
struct wanted {
    const char *type, *field;
    uint16_t member;  // its offset in vm_layout
    uint16_t first, last;
};

static const struct wanted wanted_fields[] = {
#define VM_WANTED(member, type, field)                                                             \
    {type, field, offsetof(struct vm_layout, member), 0, UINT16_MAX},
#define VM_WANTED_BY_SOME(first, last, member, type, field)                                        \
    {type, field, offsetof(struct vm_layout, member), first, last},
    VM_FIELDS(VM_WANTED) VM_FIELDS_OF_SOME(VM_WANTED_BY_SOME)
#undef VM_WANTED
#undef VM_WANTED_BY_SOME
};
static const struct wanted wanted_sizes[] = {
#define VM_WANTED(member, type) {type, NULL, offsetof(struct vm_layout, member), 0, UINT16_MAX},
    VM_SIZES(VM_WANTED)
#undef VM_WANTED
};
enum {
    FIELD_COUNT = sizeof wanted_fields / sizeof wanted_fields[0],
    SIZE_COUNT = sizeof wanted_sizes / sizeof wanted_sizes[0],
};

static bool is_wanted(const struct wanted *wanted, const struct vm_layout *layout) {
    return layout->version >= wanted->first && layout->version <= wanted->last;
}

static void take(struct vm_layout *layout, const struct wanted *wanted, uint64_t value) {
    memcpy((char *)layout + wanted->member, &value, sizeof value);
}

// Takes what an entry says to the fields that want it; how many.
static unsigned take_field(const struct entries *entries, const char *type, const char *field,
                           struct vm_layout *layout) {
    unsigned taken = 0;
    for (unsigned i = 0; i < FIELD_COUNT; i++) {
        const struct wanted *wanted = &wanted_fields[i];
        uint64_t is_static, value;
        if (strcmp(type, wanted->type) != 0 || strcmp(field, wanted->field) != 0) continue;
        if (!is_wanted(wanted, layout)) continue;
        if (!read_column(entries, FIELD_IS_STATIC, &is_static)) return 0;
        int column = (uint32_t)is_static ? FIELD_ADDRESS : FIELD_OFFSET;
        if (!read_column(entries, column, &value)) return 0;
        take(layout, wanted, value);
        taken++;
    }
    return taken;
}

// How many of the fields it has; each is there once.
static unsigned take_fields(struct entries entries, struct vm_layout *layout) {
    unsigned taken = 0;
    char type[NAME_BYTES], field[NAME_BYTES];
    for (unsigned seen = 0; seen < ENTRIES_MOST; seen++, entries.at += entries.stride) {
        if (!read_name(&entries, FIELD_TYPE, type)) break;
        if (read_name(&entries, FIELD_NAME, field))
            taken += take_field(&entries, type, field, layout);
    }
    return taken;
}

static unsigned take_sizes(struct entries entries, struct vm_layout *layout) {
    unsigned taken = 0;
    char type[NAME_BYTES];
    for (unsigned seen = 0; seen < ENTRIES_MOST; seen++, entries.at += entries.stride) {
        uint64_t value;
        if (!read_name(&entries, TYPE_NAME, type)) break;
        for (unsigned i = 0; i < SIZE_COUNT; i++) {
            if (strcmp(type, wanted_sizes[i].type) != 0) continue;
            if (!read_column(&entries, TYPE_SIZE, &value)) return 0;
            take(layout, &wanted_sizes[i], value);
            taken++;
        }
    }
    return taken;
}

static unsigned count_wanted(const struct vm_layout *layout) {
    unsigned count = 0;
    for (unsigned i = 0; i < FIELD_COUNT; i++) count += is_wanted(&wanted_fields[i], layout);
    return count;
}

// What all versions have is taken first: among it is the version.
enum vm_state vm_find(uint32_t *major) {
    struct entries fields, types;
    struct vm_layout layout = {0};
    *major = 0;
    if (!open_table(&field_table, &fields) || !open_table(&type_table, &types)) return VM_ABSENT;
    take_fields(fields, &layout);
    if (layout.major && !memory_read_carefully(layout.major, major, sizeof *major)) *major = 0;
    if (!cairn_java_is_read(*major)) return VM_UNKNOWN;
    layout.version = *major;
    if (take_fields(fields, &layout) != count_wanted(&layout)) return VM_UNKNOWN;
    if (take_sizes(types, &layout) != SIZE_COUNT) return VM_UNKNOWN;
    vm = layout;
    return VM_READ;
}
