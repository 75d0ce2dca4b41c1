// SPDX-License-Identifier: Apache-2.0
// What blocks have in common that stand in one line of a view: the call stack that allocated them
// where the process was recorded, else a type, else a size.
#ifndef TOOL_CMDS_CORE_KIN_H
#define TOOL_CMDS_CORE_KIN_H

#include "tool/cmds/core_sets.h"

// KIND_TEXT: what a block begins with, in files that keep that alone.
enum core_kind { KIND_ROOT, KIND_STACK, KIND_TYPE, KIND_SIZE, KIND_TEXT };
enum { KIN_LABEL_BYTES = 1024 };

struct core_kin {
    enum core_kind kind;
    uint64_t
        value;  // a root's place (owners only), a stack's number, a type's name or text, a size
};

static inline bool core_kin_is(const struct core_kin *one, const struct core_kin *other) {
    return one->kind == other->kind && one->value == other->value;
}

// Of a block; its types are those that the subject has by now.
struct core_kin core_kin_of(struct core_subject *subject, uint64_t address, uint64_t size);

// The same with one stack in the place of all that have the same label, as a line of a view has it.
// The first time all names are looked up.
struct core_kin core_kin_alike(struct core_subject *subject, uint64_t address, uint64_t size);
// Returns true if it stands for one stack, or for no stack.
bool core_kin_is_one(const struct core_subject *subject, const struct core_kin *kin);

// "stack", "type" ... as JSON has it.
const char *core_kin_word(enum core_kind kind);

// Names of stacks are asked for first, of all that are to be printed; then names_resolve is to be
// called.
void core_kin_want(const struct core_subject *subject, const struct core_kin *kin);

// Writes what it is called, but for a root. False without memory.
bool core_kin_label(const struct core_subject *subject, const struct core_kin *kin,
                    char label[KIN_LABEL_BYTES]);

#endif
