// SPDX-License-Identifier: Apache-2.0
// What `cairn torture` and libcairn-torture.so share: a file that every process of a run maps.
//
// A run either lists the stacks that allocate (`target` 0), or makes one allocation fail: the `nth`
// of the stack `target`. A stack is the hash of its frames, each a module and a virtual address in
// its ELF file, so that it is the same in every run. The tool makes the file; the processes add to
// it without locks, and count what has no room as lost. In a run that fails an allocation `frames`
// has the stack where the program died of a signal then, if it did. A file may end with the head:
// nothing but the failure is told then.
#ifndef FORMAT_TORTURE_H
#define FORMAT_TORTURE_H

#include <stdint.h>

#define TORTURE_VARIABLE "CAIRN_TORTURE"  // path of the file
#define TORTURE_MAGIC 0x31657275747274u
enum {
    TORTURE_MODULES = 512,
    TORTURE_PATH_BYTES = 504,
    TORTURE_STACKS = 1 << 17,  // slots of a hash table
    TORTURE_FRAMES = 1 << 22,
    TORTURE_DEPTH = 96,  // innermost frames that make a stack
    TORTURE_ADDRESS_BITS = 48,
};

struct torture_module {
    uint64_t key;  // hash of the path; 0: free
    char path[TORTURE_PATH_BYTES];
};

struct torture_stack {
    uint64_t hash;         // 0: free
    uint64_t count;        // allocations
    uint64_t first_frame;  // plus 1, of `frames`; 0: not written, or lost
    uint64_t frame_count;
};

struct torture_head {
    uint64_t magic;
    uint64_t target, nth;  // target 0: list
    uint64_t seen;         // allocations of the target
    uint64_t failed_pid;   // process in which one failed
    uint64_t failed_bytes;
    uint64_t used_frames, lost;
    uint64_t file_bytes_max;        // what a process of the run may write to one file; 0: anything
    uint64_t died_signal;           // after the failure; 0: none
    uint64_t died_frames;           // how many of `frames`, innermost first; 0: not known
    uint64_t has_given_up;          // the program called exit before who asked for memory returned
    char tool[TORTURE_PATH_BYTES];  // cairn's own processes are left alone
};

struct torture_map {
    struct torture_head head;
    struct torture_module modules[TORTURE_MODULES];
    struct torture_stack stacks[TORTURE_STACKS];
    uint64_t frames[TORTURE_FRAMES];  // module << TORTURE_ADDRESS_BITS | address of the call
};

static inline uint64_t torture_mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

#endif
