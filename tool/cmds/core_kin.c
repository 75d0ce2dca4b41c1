// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_kin.h"

#include <stdio.h>

#include "tool/base/units.h"
#include "tool/cmds/core_heap.h"
#include "tool/render/frames.h"

static size_t stack_at(const struct core_subject *subject, uint64_t address) {
    const struct profile *profile = &subject->opened.profile;
    struct core_block block;
    if (!subject->is_recorded || !core_block_of(&subject->blocks, address, &block)) return SIZE_MAX;
    size_t stack = profile_stack_of(profile, block.cell);
    return stack < profile->stack_count ? stack : SIZE_MAX;
}

struct core_kin core_kin_of(struct core_subject *subject, uint64_t address, uint64_t size) {
    size_t stack = stack_at(subject, address);
    if (stack != SIZE_MAX) return (struct core_kin){KIND_STACK, stack};
    const char *type = core_type_name(subject, address, size);
    if (type) return (struct core_kin){KIND_TYPE, (uintptr_t)type};
    return (struct core_kin){KIND_SIZE, size};
}

const char *core_kin_word(enum core_kind kind) {
    static const char *const words[] = {"root", "stack", "type", "size", "text"};
    return words[kind];
}

void core_kin_want(const struct core_subject *subject, const struct core_kin *kin) {
    if (kin->kind == KIND_STACK)
        names_want_stack(subject->opened.names, subject->opened.profile.stacks[kin->value].node, 0);
}

// "Table::open  table.cc:34": the first function of the program's own.
static bool label_stack(const struct core_subject *subject, size_t stack, char *label) {
    const struct frame_names names = names_frames(subject->opened.names);
    struct frame_list frames = {0};
    char function[KIN_LABEL_BYTES / 2], location[KIN_LABEL_BYTES / 2];
    uint32_t node = subject->opened.profile.stacks[stack].node;
    if (!frame_list_fill(&frames, &subject->opened.profile, &names, node, 0)) return false;
    const struct frame *frame = frame_list_first_own(&frames);
    snprintf(label, KIN_LABEL_BYTES, STACK_NOT_RECORDED);
    if (frame) {
        frame_label(frame, function, sizeof function, sizeof function);
        frame_location(frame, location, sizeof location);
        snprintf(label, KIN_LABEL_BYTES, "%s%s%s", function, location[0] ? "  " : "", location);
    }
    frame_list_free(&frames);
    return true;
}

bool core_kin_label(const struct core_subject *subject, const struct core_kin *kin,
                    char label[KIN_LABEL_BYTES]) {
    if (kin->kind == KIND_STACK) return label_stack(subject, kin->value, label);
    if (kin->kind == KIND_TYPE || kin->kind == KIND_TEXT)
        snprintf(label, KIN_LABEL_BYTES, "%s", (const char *)(uintptr_t)kin->value);
    else
        snprintf(label, KIN_LABEL_BYTES, "blocks of %s of no known type",
                 units_size((int64_t)kin->value).text);
    return true;
}
