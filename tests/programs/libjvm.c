// SPDX-License-Identifier: Apache-2.0
// What of a JVM says its version: the tables that libjvm has for debuggers, with one field, of a
// JDK 22, whose frames are not read (tests/e2e/java_frames.py).
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct field {
    const char *type, *name, *form;
    int32_t is_static;
    uint64_t offset;
    void *address;
};
struct type {
    const char *name, *base;
    int32_t flags[3];
    uint64_t size;
};

static int32_t major = 22;
static const struct field fields[] = {
    {"Abstract_VM_Version", "_vm_major_version", "int", 1, 0, &major},
    {0},
};
static const struct type types[] = {{0}};

// clang-format off
const struct field *gHotSpotVMStructs = fields;
uint64_t gHotSpotVMStructEntryArrayStride = sizeof *fields;
uint64_t gHotSpotVMStructEntryTypeNameOffset = offsetof(struct field, type);
uint64_t gHotSpotVMStructEntryFieldNameOffset = offsetof(struct field, name);
uint64_t gHotSpotVMStructEntryIsStaticOffset = offsetof(struct field, is_static);
uint64_t gHotSpotVMStructEntryOffsetOffset = offsetof(struct field, offset);
uint64_t gHotSpotVMStructEntryAddressOffset = offsetof(struct field, address);
const struct type *gHotSpotVMTypes = types;
uint64_t gHotSpotVMTypeEntryArrayStride = sizeof *types;
uint64_t gHotSpotVMTypeEntryTypeNameOffset = offsetof(struct type, name);
uint64_t gHotSpotVMTypeEntrySizeOffset = offsetof(struct type, size);
// clang-format on

void allocate(void) {
    for (int i = 0; i < 3; i++) {
        void *volatile block = malloc(4711);
        free(block);
    }
}
