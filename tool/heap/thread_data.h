// SPDX-License-Identifier: Apache-2.0
// The thread-local data of a process: which thread's the data at an address is, and which variable
// lies there.
//
//     beside     the thread's pointer: data of modules that were there when the thread began, and
//                glibc's own (struct pthread)
//     elsewhere  what the dynamic linker gave to a thread when it first used the data of a library
//                that was loaded later, mostly in blocks; and the vectors that lead there
//                (thread_locals.h)
#ifndef TOOL_HEAP_THREAD_DATA_H
#define TOOL_HEAP_THREAD_DATA_H

#include "tool/base/spans.h"
#include "tool/heap/reach.h"
#include "tool/heap/thread_locals.h"

struct thread_data_module {
    struct thread_locals locals;
    struct located files;  // not its own
};

// Data of one module, or a vector: then `module` is THREAD_DATA_VECTOR.
struct thread_stretch {
    uint64_t start, end;
    const struct core_thread *thread;
    size_t module;
};
#define THREAD_DATA_VECTOR SIZE_MAX

struct thread_data {
    const struct core_image *core;
    ARRAY(struct thread_data_module) modules;  // that have such data
    uint64_t beside_bytes;                     // of all of them
    ARRAY(struct thread_stretch) elsewhere;    // ascending by their start
    struct spans in_blocks;                    // settled: of that what lies in blocks, no vectors
};

// `reach`: with its map. `types`: NULL: no module is known, and nothing elsewhere is. False without
// memory.
bool thread_data_find(const struct core_reach *reach, struct core_types *types,
                      struct thread_data *data);
void thread_data_free(struct thread_data *data);

// NULL: the address is in no thread's data.
const struct core_thread *thread_data_thread(const struct thread_data *data, uint64_t address);

// The name of the variable at an address of the thread's data, safe to print. False: there is none.
bool thread_data_name(const struct thread_data *data, const struct core_thread *thread,
                      uint64_t address, char *name, size_t size);

#endif
