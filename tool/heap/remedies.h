// SPDX-License-Identifier: Apache-2.0
// Foretells from its memory what would make a process smaller: a row each of bytes that go back if
// it is done now, of a bound that a setting cannot exceed at the next start, or of what only a log
// of events can tell.
#ifndef TOOL_HEAP_REMEDIES_H
#define TOOL_HEAP_REMEDIES_H

#include "tool/glibc/giveback.h"
#include "tool/heap/huge_pages.h"

enum remedy_class {
    REMEDY_NOW,        // bytes that go back if it is done now
    REMEDY_AT_MOST,    // a bound
    REMEDY_NEEDS_LOG,  // not known without a log of events
};

enum remedy_kind {
    REMEDY_TRIM,        // malloc_trim(0)
    REMEDY_PIN,         // a block before an arena's end, freed
    REMEDY_LAZY,        // memory under MADV_FREE, which the kernel takes when it needs some
    REMEDY_ONE_ARENA,   // MALLOC_ARENA_MAX=1
    REMEDY_TWO_ARENAS,  // MALLOC_ARENA_MAX=2
    REMEDY_THRESHOLD,   // M_MMAP_THRESHOLD and M_TRIM_THRESHOLD fixed as they were at first
    REMEDY_PURGE,       // another allocator than glibc's is asked to give back what is free
    REMEDY_DECAY,       // it is set to keep no free pages
    REMEDY_CACHES,      // its threads have no caches
    REMEDY_HUGE_PAGES,  // no transparent huge pages
    REMEDY_ALLOCATOR,   // another one
    REMEDIES,
};

// The resident part of another allocator's heap than glibc's.
struct other_facts {
    const char *name;        // of the allocator; NULL: there is no such heap
    uint64_t all_bytes;      // with its tables
    uint64_t free_bytes;     // beside blocks in use, and pages without any
    uint64_t asked_bytes;    // that go back if it is asked
    bool is_early;           // some of them not before a time that has not come
    uint64_t empty_bytes;    // pages on which no block lies ...
    uint64_t emptied_bytes;  // ... or only free ones, also such as are in threads' caches
};

// Figures of a process, as far as they are known.
struct remedy_facts {
    struct other_facts other;
    struct giveback giveback;
    bool has_giveback;         // it has a heap that could be read, glibc's or another
    bool is_core;              // what was resident is not known: all counts as if it was
    bool is_locked;            // by mlockall: the kernel refuses to take pages back
    uint64_t rss_bytes;        // 0: not known
    uint64_t anonymous_bytes;  // of it, that is no stack
    uint64_t lazy_bytes;       // under MADV_FREE
    struct huge_pages huge;    // transparent ones; of a core nothing is known
};

void remedy_facts_free(struct remedy_facts *facts);

// Sums of all arenas.
struct giveback_sum {
    uint64_t chunk_count, free_resident_bytes, system_bytes, trim_bytes, piece_bytes;
    bool is_cut;
};
struct giveback_sum giveback_sum(const struct giveback *giveback);

// The arena whose pin keeps most; NULL: there is none.
const struct arena_free *remedies_pinned(const struct giveback *giveback);

struct remedy {
    enum remedy_kind kind;
    enum remedy_class class;
    uint64_t bytes;        // of REMEDY_NEEDS_LOG: free and resident now
    uint64_t piece_bytes;  // of REMEDY_THRESHOLD: of the bound, in pieces that a large block may
                           // have left; it is told where these are worth it
    bool is_shown;         // to people: it is worth it
};

// Fills in what would help, by class, the most first; returns how many there are, at most REMEDIES.
// Leaves out those that save less than a hundredth of what is resident, unless `are_all`, and
// bounds by what is free in the heap where not all of that was counted.
size_t remedies_find(const struct remedy_facts *facts, bool are_all,
                     struct remedy remedies[REMEDIES]);

#endif
