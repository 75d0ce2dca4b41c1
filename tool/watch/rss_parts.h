// SPDX-License-Identifier: Apache-2.0
// What a process' resident memory consists of: its mappings, as /proc/PID/smaps lists them, each
// assigned to one of a few kinds; and what of its heap nobody uses, or is not the allocator's.
//
// Kinds are known by name, flags and neighbours. A thread's stack is behind its guard page; where
// the kernel joined it with the mapping above, the pages of the stack are counted apart. cairn maps
// without reserving swap, which hardly any other library does; glibc does so for its arenas, which
// are known by their heaps' first words. Memory that the program maps itself is `heap` too.
//
// The heap is read from outside, since a call into glibc's malloc takes locks, and as long as there
// are free chunks. Only resident pages are read, so that nothing changes in the process.
#ifndef TOOL_WATCH_RSS_PARTS_H
#define TOOL_WATCH_RSS_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"
#include "tool/base/array.h"
#include "tool/model/reader.h"
#include "tool/proc/maps.h"
#include "tool/proc/pagemap.h"

struct mapped_range {
    uint64_t start, end;
};

// Private anonymous memory that is no stack. Plain neighbours are one: madvise makes several
// mappings of one, and a block of malloc's lies in all of them.
struct mapped_memory {
    uint64_t start, end, rss_bytes;
    bool is_plain;  // neither what brk moves, nor an arena, nor cairn's: malloc's large blocks, or
                    // the program's own
};

// Private memory that the program, or its allocator, gave a name by PR_SET_VMA_ANON_NAME; glibc's
// own names for its heap are none of these. All mappings of a name are one.
enum { MAPPED_NAME_BYTES = 80 };  // of the kernel's limit, with its end
struct mapped_name {
    char name[MAPPED_NAME_BYTES];  // any bytes
    uint64_t rss_bytes, pss_bytes, swap_bytes;
};

struct rss_parts {
    struct cairn_picture picture;        // the parts, and their sum
    uint64_t closed_bytes;               // of a dump: not writable, of no file and no code
    uint64_t zero_stack_bytes;           // of a dump: pages of stacks that are all zero
    uint64_t unreserved_bytes;           // resident, no arenas; after rss_parts_settle_own without
                                         // cairn's
    uint64_t undumped_bytes;             // the same, of mappings that cores leave out: cairn's
    struct mapped_range libc_data;       // where glibc's main arena is (arenas.h); start 0: none
    ARRAY(struct mapped_memory) memory;  // by address
    ARRAY(struct mapped_name) names;     // the most resident first
    // Shares (PSS) of anonymous memory: of picture.heap_bytes, of stacks, and of pages that differ
    // from the files they were.
    uint64_t heap_pss_bytes, stacks_pss_bytes, data_pss_bytes;
};
void rss_parts_free(struct rss_parts *parts);

// What else is known of the process that the mappings are of.
struct rss_parts_source {
    pid_t pid;  // 0: its memory cannot be read; what begins as arenas do is one
    struct pagemap pagemap;
    uint64_t stack_limit_bytes;  // usual size of a thread's stack, 0 if unknown
    void (*each)(void *context, const struct mapping *mapping);  // is told each; NULL: nobody is
    void *context;
};

// Reads an open /proc/PID/smaps. False if it is another text. rss_parts_free in any case.
bool rss_parts_read(struct maps *smaps, const struct rss_parts_source *source,
                    struct rss_parts *parts);

// The same of a process; false also if it is gone or may not be read.
bool rss_parts_of_process(pid_t pid, struct rss_parts *parts);

// The same; `each` is told of each mapping with its `context`.
bool rss_parts_with_each(pid_t pid, void (*each)(void *context, const struct mapping *mapping),
                         void *context, struct rss_parts *parts);

// Gives cairn what it mapped without reservation: `own_bytes` of what others may have mapped so too
// at most.
void rss_parts_settle_own(struct rss_parts *parts, uint64_t own_bytes);

// Returns the resident bytes of cairn's table of samples, which its own account lacks while the
// process runs; `live_samples` as in the header.
uint64_t rss_parts_samples_bytes(pid_t pid, uint64_t live_samples);

// Tells whether what was live when the mappings were listed may stand beside them: where a machine
// is busy, a program may have freed or filled much of its heap until its recording was read.
bool rss_parts_is_moment(int64_t live_before, int64_t live_bytes);

// Forgets the free memory of a picture if the process freed much while that was counted, and
// returns true: the same blocks would be live and free. `live_after`: live after the counting.
bool rss_parts_settle_free(struct cairn_picture *picture, int64_t live_after);

// Finds how much of the memory of a process with glibc's malloc is not malloc's: mapped by the
// program, or by another allocator. False: that is not known.
bool rss_parts_find_other(pid_t pid, const struct rss_parts *parts, uint64_t *bytes);

// Finds which anonymous memory the program mapped itself: sets mapped_bytes, resident, and what of
// the allocator's large blocks is not (untouched_bytes). With --mmap the process keeps a list
// (format.h, cairn_mapping_table). Without it glibc's large blocks are known by their first words;
// what is neither that nor an arena is the program's. False: that is not known, as where it takes
// more than `most_ns` of processor time.
bool rss_parts_find_mapped(pid_t pid, const struct rss_parts *parts, struct recording *recording,
                           uint64_t most_ns, struct cairn_picture *picture);

#endif
