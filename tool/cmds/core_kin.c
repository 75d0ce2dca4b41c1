// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_kin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static uint64_t hash_of(const char *label) {
    uint64_t hash = index_table_seed();
    for (; *label; label++) hash = hash_mix(hash, (unsigned char)*label);
    return hash;
}

// Finds the first stack with the label of stack `index`, whose hash `hashes` gets.
static bool find_first(const struct core_subject *subject, struct index_table *table,
                       uint64_t *hashes, uint32_t index, uint32_t *first) {
    char label[KIN_LABEL_BYTES];
    *first = index;
    if (!label_stack(subject, index, label)) return false;
    const uint64_t hash = hashes[index] = hash_of(label);
    struct index_probe probe = index_probe_start(table, hash);
    for (uint32_t other; index_probe_next(table, &probe, &other);)
        if (hashes[other] == hash) {
            *first = other;
            return true;
        }
    return index_table_insert(table, hash, index);
}

// Finds the first stack with the label of each. False without memory.
static bool find_labels(struct core_subject *subject) {
    const size_t count = subject->opened.profile.stack_count;
    struct index_table table = {0};
    struct error unused;
    uint64_t *hashes = calloc(count + 1, sizeof *hashes);
    uint32_t *first = subject->first_alike = calloc(count + 1, sizeof *first);
    uint32_t *counts = subject->alike_counts = calloc(count + 1, sizeof *counts);
    names_need_all(subject->opened.names);
    bool is_ok = hashes && first && counts && names_resolve(subject->opened.names, &unused);
    for (uint32_t i = 0; is_ok && i < count; i++) {
        is_ok = find_first(subject, &table, hashes, i, &first[i]);
        counts[first[i]]++;
    }
    index_table_free(&table);
    free(hashes);
    return is_ok;
}

// Makes each stack one by itself.
static void forget_labels(struct core_subject *subject) {
    free(subject->first_alike);
    free(subject->alike_counts);
    subject->first_alike = subject->alike_counts = NULL;
}

struct core_kin core_kin_alike(struct core_subject *subject, uint64_t address, uint64_t size) {
    struct core_kin kin = core_kin_of(subject, address, size);
    if (kin.kind != KIND_STACK) return kin;
    if (!subject->first_alike && !find_labels(subject))
        forget_labels(subject);
    else
        kin.value = subject->first_alike[kin.value];
    return kin;
}

bool core_kin_is_one(const struct core_subject *subject, const struct core_kin *kin) {
    return kin->kind != KIND_STACK || !subject->alike_counts ||
           subject->alike_counts[kin->value] == 1;
}
