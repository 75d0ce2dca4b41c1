// SPDX-License-Identifier: Apache-2.0
// The answer about a process that nobody recorded (core_overview.h): its figures, and its resident
// memory by parts.
#ifndef TOOL_CMDS_CORE_OVERVIEW_PARTS_H
#define TOOL_CMDS_CORE_OVERVIEW_PARTS_H

#include "tool/cmds/core_owner_rows.h"
#include "tool/cmds/core_remedies.h"
#include "tool/cmds/core_sets.h"
#include "tool/cmds/core_waste_rows.h"
#include "tool/watch/rss_parts.h"

enum { TOP = 3, PARTS_MAX = 10, NAME_BYTES = 256 };

// Share of resident memory, in percent, from which on blocks in use are told by type, waste and
// owner.
enum { SHOWN_SHARE = 5 };

// Parts of the answer beside its sentence, in this order.
enum section_id { SECTION_PARTS, SECTION_TYPES, SECTION_WASTE, SECTION_OWNERS, SECTION_REMEDIES };
enum { SECTIONS = SECTION_REMEDIES + 1 };

struct section {
    bool is_there;       // it was looked for
    uint64_t all_bytes;  // that its rows are shares of
    size_t count;
    struct section_row {
        uint64_t bytes;
        const char *class;  // of remedies
        char label[KIN_LABEL_BYTES];
    } rows[PARTS_MAX];
    char why[2 * sizeof((struct error *)0)->text];  // it is not known; "": it is
};

enum part_kind { PART_USED, PART_FREE, PART_OTHER, PART_REST };

struct part {
    enum part_kind kind;
    uint64_t bytes;
    const char *text;
};

struct overview {
    struct core_subject subject;
    bool is_open;  // the subject
    pid_t pid;
    char name[NAME_BYTES];
    struct rss_parts resident;
    bool has_resident;
    struct heap_state heap;
    bool has_heap;   // of glibc's malloc
    bool has_other;  // of another allocator, whose blocks are read
    char why_no_heap[sizeof((struct error *)0)->text];
    struct part parts[PARTS_MAX];
    size_t part_count;
    uint64_t all_bytes;  // of the parts
    struct waste_sums waste;
    bool has_waste;
    struct remedy_facts facts;
    struct section sections[SECTIONS];
};

// Fills in the parts, of which all resident memory consists.
void overview_find_parts(struct overview *overview);

// Returns the bytes of parts of that kind.
uint64_t overview_bytes_of(const struct overview *overview, enum part_kind kind);

// Returns how many blocks are in use in the heap; 0: it is not known.
uint64_t overview_used_blocks(const struct overview *overview);

// Returns whose heap it is.
const char *overview_allocator(const struct overview *overview);

#endif
