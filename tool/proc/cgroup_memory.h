// SPDX-License-Identifier: Apache-2.0
// The memory of a control group by kind, as the kernel accounts for it: parts that add up to what
// it uses. Version 2 has them in memory.stat; version 1 has fewer, and the kernel's own memory as
// one sum.
//
// The kernel charges pages ahead, in batches a processor, and adds statistics up late: what is used
// may be a little more than the parts, which is CGROUP_AHEAD as far as such batches can reach, or
// less, which is `over_bytes`.
#ifndef TOOL_PROC_CGROUP_MEMORY_H
#define TOOL_PROC_CGROUP_MEMORY_H

#include "tool/proc/cgroup.h"

enum cgroup_part {
    CGROUP_ANONYMOUS,      // of processes: heaps, stacks, their own data
    CGROUP_FILES,          // the page cache
    CGROUP_SHARED,         // tmpfs, memfd, System V: shared memory
    CGROUP_SLAB,           // objects of the kernel: dentries, inodes, sockets' heads
    CGROUP_KERNEL_STACKS,  // of threads
    CGROUP_PAGE_TABLES,
    CGROUP_PER_CPU,
    CGROUP_VMALLOC,
    CGROUP_COMPRESSED,  // zswap: what is swapped out into memory
    CGROUP_KERNEL,      // of the kernel, what else; in version 1 all of it
    CGROUP_SOCKETS,     // buffers
    CGROUP_HUGETLB,     // huge pages of hugetlbfs, where they are accounted for as memory
    CGROUP_AHEAD,  // charged ahead, or not counted yet; where all of the kernel's memory is told
    CGROUP_NOT_KNOWN,
    CGROUP_PARTS,
};

struct cgroup_parts {
    uint64_t used_bytes;   // memory.current, memory.usage_in_bytes
    uint64_t limit_bytes;  // the least of its own and those above; UINT64_MAX: there is none
    uint64_t kills;        // by the kernel, since it was made
    uint64_t bytes[CGROUP_PARTS];  // their sum is used_bytes + over_bytes
    bool is_told[CGROUP_PARTS];    // by this kernel; else it is within CGROUP_KERNEL or not known
    uint64_t over_bytes;
    // Beside them:
    uint64_t huge_bytes;            // of anonymous memory, in transparent huge pages
    uint64_t swap_bytes;            // swapped out
    bool has_swap;                  // that is known
    uint64_t beside_kernel_bytes;   // at version 1's root, where it is not a part of what is used
    uint64_t beside_sockets_bytes;  // of TCP in version 1, which accounts for it apart
    uint64_t beside_hugetlb_bytes;  // of hugetlbfs, accounted for apart
};

// Reads what the kernel says now. False if the cgroup is gone.
bool cgroup_parts_read(const struct cgroup *cgroup, struct cgroup_parts *parts);

// Returns the part's name in JSON and metrics, and as people read it.
const char *cgroup_part_key(enum cgroup_part part);
const char *cgroup_part_text(enum cgroup_part part, bool is_old);

#endif
