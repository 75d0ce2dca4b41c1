// SPDX-License-Identifier: Apache-2.0
// The sets of blocks that can be asked for in a core, in the words of chap, and what can be asked
// about them: chap's verbs and the forms of its lines.
//
// What is asked is the subject: a core dump, or a process as it stood for a moment, as `cairn core`
// looks at it: its memory, the recording in it or beside it, and what is worked out on demand:
// glibc's heap, the types of blocks, which of them can be reached.
#ifndef TOOL_CMDS_CORE_SETS_H
#define TOOL_CMDS_CORE_SETS_H

#include "tool/heap/blocks.h"
#include "tool/heap/reach.h"
#include "tool/heap/typed.h"
#include "tool/heap/types.h"
#include "tool/query/heap_views.h"
#include "tool/render/terminal.h"

// Of a process' memory, unasked: it stands while that is copied, which takes some tens of
// milliseconds.
#define CORE_COPIED_BYTES_MAX (UINT64_C(128) << 20)

struct core_subject {
    struct heap_look look;
    const struct core_image *core;  // of the look
    bool is_recorded;
    struct cairn_header header;  // of the recording
    struct core_blocks blocks;   // in use and recorded
    struct opened opened;
    // By stack, the first one with its label, and how many have that (core_kin.h); NULL: nobody
    // asked.
    uint32_t *first_alike, *alike_counts;
    struct glibc_heap heap;  // glibc's; moves into `reach` when that is there
    struct core_reach reach;
    struct core_types *types;
    struct typed *typed;
    struct cairn_waste waste;  // of all of it, if `has_waste` (core_waste_rows.h)
    bool has_waste;
    bool has_heap, has_reach;
    bool has_foreign;  // some recorded blocks are another allocator's than glibc's
};

// `word`, `wish`: as heap_look_take has them. `beside`: the file of a core's recording, NULL: it is
// in the core if there is one. A line on stderr says for how long a process was stopped. The
// subject must stay where it is.
bool core_subject_open(const char *word, const struct heap_wish *wish, const char *beside,
                       struct core_subject *subject, struct error *error);
// The same in two steps of a process that records: its memory, and, when its recording is a file,
// what is in it. The second one closes the subject if it fails.
bool core_subject_take(pid_t pid, const struct cairn_header *header, uint64_t bytes_max,
                       struct core_subject *subject, struct error *error);
bool core_subject_enter(struct core_subject *subject, const char *recording, struct error *error);
void core_subject_close(struct core_subject *subject);

// The recording has a sample of the blocks: its live map does not say which ones are in use,
// glibc's heap does.
static inline bool core_is_sampled(const struct core_subject *subject) {
    return subject->is_recorded && subject->opened.profile.sampling.is_on;
}

// What was drawn of its heap; NULL: all of it is there.
static inline const struct heap_windows *core_windows_of(const struct core_subject *subject) {
    bool is_drawn = !subject->look.is_core && subject->look.live.windows.are_drawn;
    return is_drawn ? &subject->look.live.windows : NULL;
}

// False if there is no heap of glibc's in it, or, of a sampled process, if its blocks are not
// there.
bool core_need_heap(struct core_subject *subject, struct error *error);
// Which block an address lies in; of a recorded process any allocator will do.
bool core_need_map(struct core_subject *subject, struct error *error);
// And which blocks are reachable.
bool core_need_reach(struct core_subject *subject, struct error *error);
bool core_need_types(struct core_subject *subject, struct error *error);
// And those of debug information, with the map and the others.
bool core_need_typed(struct core_subject *subject, struct error *error);

// Works all of that out anew when it is needed again: who keeps what (owner_listing_make) leaves no
// list of chunks.
void core_forget_map(struct core_subject *subject);

// The name of a block's type: what debug information leads to, or else what its first word says.
// Equal names are the same pointer. NULL: none is known.
const char *core_type_name(struct core_subject *subject, uint64_t address, uint64_t size);

// The heap, once core_need_heap or core_need_reach said that it is there.
const struct glibc_heap *core_heap_of(const struct core_subject *subject);

// Lines on stderr about what limits the answer: modules whose names are missing, an allocator whose
// own memory counts as the program's.
void core_print_doubts(const struct core_subject *subject);

// Returns why types are not known; NULL: there is no reason. Once core_need_typed was called.
const char *core_sources_missing(const struct core_subject *subject);

// Writes how many threads may be within a call of an allocator that is not glibc's, and what that
// means for its blocks. False: none.
enum { BUSY_BYTES = 256 };
bool core_busy_text(const struct core_subject *subject, char *out, size_t size);

// The library of another allocator that the process had mapped; NULL: none is known by its name.
const char *core_other_allocator(const struct core_subject *subject);

enum core_verb {
    VERB_OVERVIEW,
    VERB_COUNT,
    VERB_LIST,
    VERB_ENUMERATE,
    VERB_SUMMARIZE,
    VERB_DESCRIBE,
    VERB_EXPLAIN,
};

enum core_set {
    SET_NONE,
    SET_USED,
    SET_FREE,
    SET_ALLOCATIONS,   // both, as the allocator sees them, and those that are moving
    SET_ANCHORED,      // in use and reachable
    SET_LEAKED,        // in use and not
    SET_UNREFERENCED,  // leaked, and no other leaked one refers to it
    SET_INCOMING,      // those in use that refer to the one at an address
    SET_OUTGOING,      // those that it refers to
    SET_ALLOCATION,    // it alone
};

struct core_question {
    enum core_verb verb;
    enum core_set set;
    uint64_t address;               // of the sets that have one, and where there is no set
    const char *type;               // only blocks of this type ("-": without one); NULL: all
    const char *module, *function;  // of a summary by module; NULL: all
};

// Reads the words behind the core's name.
bool core_read_question(char *const *words, struct core_question *question, struct error *error);

// What of a process the answer takes.
enum heap_depth core_question_depth(const struct core_question *question);

// A block of a set.
struct core_member {
    uint64_t address, size;
    bool is_free, is_moving;  // that: in use or free, which is not known
    uint32_t cell;            // that the recording has it in; 0: it was not recorded
};

static inline const char *core_member_state(const struct core_member *member) {
    return member->is_moving ? "Moving" : member->is_free ? "Free" : "Used";
}

// Calls `see` for each member in the order of addresses until it returns false; true if the set
// could be found.
bool core_each_member(struct core_subject *subject, const struct core_question *question,
                      bool (*see)(void *context, const struct core_member *member), void *context,
                      struct error *error);

// The block that the address lies in; false after an error was filled: in none.
bool core_find_member(struct core_subject *subject, uint64_t address, struct core_member *member,
                      struct error *error);

// Sums as chap prints them: "N allocations use 0xHEX (N) bytes."
struct core_sum {
    uint64_t count, bytes;
};
void core_print_sum(const struct core_sum *sum);

// "... with signature HEX(NAME)", if the block has one.
void core_print_signature(struct core_subject *subject, const struct core_member *member);

// cmds/core_sets.c: count, list and enumerate. cmds/core_summary.c: summarize.
bool core_answer_set(struct core_subject *subject, const struct core_question *question,
                     struct error *error);
bool core_print_summary(struct core_subject *subject, const struct core_question *question,
                        struct error *error);

// cmds/core_reachability.c: describe and explain, of a set or of what lies at an address.
bool core_answer_details(struct core_subject *subject, const struct core_question *question,
                         struct error *error);

#endif
