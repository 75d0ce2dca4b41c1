// SPDX-License-Identifier: Apache-2.0
// The tree of tool/heap/owners.h as rows, in the order in which they are shown: one for the blocks
// of one kin (core_kin.h) that one owner has. Behind a row come those of what it owns.
#ifndef TOOL_CMDS_CORE_OWNER_ROWS_H
#define TOOL_CMDS_CORE_OWNER_ROWS_H

#include "tool/cmds/core_kin.h"
#include "tool/heap/births.h"
#include "tool/heap/owners.h"
#include "tool/query/views.h"
#include "tool/symbol/string_pool.h"

struct owner_row {
    unsigned depth;
    struct core_kin kin;
    uint64_t retained, own;  // bytes; own: of the blocks themselves
    uint64_t blocks;         // retained ones
    uint32_t count;          // of the blocks themselves
    size_t left_out;         // rows that would follow at this depth, with `retained` and `blocks`
};

// A block of a row.
struct owner_block {
    uint32_t row;
    const char *type;  // as core_type_name has it; NULL: not known
    const char *text;  // what it holds, if that is text; NULL: not asked for, or none
    uint64_t size;
    uint32_t age_bits;  // of its age in milliseconds (--ages); OWNER_NO_AGE: not known
};
#define OWNER_NO_AGE UINT32_MAX

struct owner_listing {
    struct core_subject *subject;
    struct core_owners owners;
    const struct view_options *options;
    bool has_blocks;    // they are wanted
    bool has_texts;     // and the beginnings of those that hold text
    uint32_t main_tid;  // as owner_root_label has it
    unsigned depth;     // of rows; below are none
    ARRAY(struct owner_row) rows;
    ARRAY(struct owner_block) blocks;
    struct string_pool *texts;
    struct core_births births;
};

enum owner_detail {
    OWNER_ROWS,
    OWNER_BLOCKS,  // also what each block of a row is
    OWNER_TEXTS,   // and what text it holds
};

// As much as the options say, or without them everything, with names. False with an error; then
// there is nothing to free.
bool owner_listing_make(struct core_subject *subject, const struct view_options *options,
                        enum owner_detail detail, struct owner_listing *listing,
                        struct error *error);
void owner_listing_free(struct owner_listing *listing);

// False without memory.
bool owner_listing_label(const struct owner_listing *listing, const struct core_kin *kin,
                         char label[KIN_LABEL_BYTES]);

#endif
