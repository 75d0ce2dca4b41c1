// SPDX-License-Identifier: Apache-2.0
// The overview of a process or core, between what looks at it (core_overview.c), what is said of it
// (core_overview_answer.c) and how it is printed (core_overview_forms.c).
#ifndef TOOL_CMDS_CORE_OVERVIEW_INTERNAL_H
#define TOOL_CMDS_CORE_OVERVIEW_INTERNAL_H

#include <limits.h>

#include "tool/cmds/core_kin.h"
#include "tool/cmds/core_overview_parts.h"
#include "tool/cmds/core_remedies.h"
#include "tool/cmds/core_sets.h"
#include "tool/cmds/core_waste_rows.h"
#include "tool/go/heap.h"
#include "tool/render/claims_summary.h"

enum { OVERVIEW_NAME_BYTES = 256, OVERVIEW_NEXT_BYTES = PATH_MAX + 64 };

// Parts of the answer beside its sentence, in this order.
enum section_id {
    SECTION_PARTS,
    SECTION_GO_SPANS,
    SECTION_GO_FUNCTIONS,
    SECTION_TYPES,
    SECTION_WASTE,
    SECTION_OWNERS,
    SECTION_REMEDIES
};
enum { SECTIONS = SECTION_REMEDIES + 1 };

struct section {
    bool is_there;       // it was looked for
    uint64_t all_bytes;  // that its rows are shares of
    size_t count;
    struct section_row {
        uint64_t bytes;
        const char *class;  // of remedies
        char label[KIN_LABEL_BYTES];
    } rows[RESIDENT_PARTS_MAX];
    char why[2 * sizeof((struct error *)0)->text];  // it is not known; "": it is
};

struct overview {
    struct core_subject subject;
    bool is_open;  // the subject
    bool is_core;  // else a process
    pid_t pid;     // of a core 0: not known
    char name[OVERVIEW_NAME_BYTES];
    char word[PATH_MAX];        // that the next command has
    struct rss_parts resident;  // of a core what is in it, as if all of it had been resident
    bool has_resident;
    struct heap_state heap;
    bool has_heap;          // of glibc's malloc
    bool has_other;         // of another allocator, whose blocks are read
    uint64_t block_bytes;   // of the largest block in use
    uint64_t leaked_bytes;  // in blocks that no root leads to; 0: not known
    char why_no_heap[sizeof((struct error *)0)->text];
    struct go_heap go;
    enum go_finding go_finding;  // of it; GO_FAILED: `why_no_go`
    char why_no_go[sizeof((struct error *)0)->text];
    struct resident_parts parts;
    struct waste_sums waste;
    bool has_waste;
    struct remedy_facts facts;
    struct section sections[SECTIONS];
};

// Fills in what Go's own heap has by size, and by function.
void go_sections_fill(const struct go_heap *heap, struct section *spans, struct section *functions);
// Fills in the sections of Go's own heap, as far as the program is one of Go.
void overview_fill_go(struct overview *overview);
// Adds a row to a section.
void section_add(struct section *section, uint64_t bytes, const char *label);

// Fills in its sections: to be called before what follows.
void overview_fill(struct overview *overview);
// Returns false, without a claim, if there is no memory.
bool overview_claim(const struct overview *overview, struct claim *claim);
// Writes why it is so big.
void overview_sentence(const struct overview *overview, char text[CLAIM_SENTENCE_BYTES]);
// Writes the next command; "": there is none.
void overview_next(const struct overview *overview, char text[OVERVIEW_NEXT_BYTES]);

void overview_print_screen(const struct overview *overview);
void overview_print_json(const struct overview *overview);
// Prints its rows in the form that is asked for. False with an error.
bool overview_print_form(const struct overview *overview, const struct request *request,
                         struct error *error);

#endif
