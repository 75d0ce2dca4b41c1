// SPDX-License-Identifier: Apache-2.0
// The spans of Go's heap (runtime/mheap.go): runs of pages that hold objects of one size class, one
// large object, or stacks of goroutines.
//
// A table has the places of their fields by version, each compared with that version's debug
// information; and what spans say has to agree with itself.
#ifndef TOOL_GO_SPANS_H
#define TOOL_GO_SPANS_H

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/proc/memory_reader.h"

struct go_class {
    uint64_t object_bytes;         // 0: large objects, each with a span of its own size
    uint64_t spans, bytes;         // bytes: of their pages
    uint64_t objects, object_sum;  // that are in use, or not swept yet; and what they take
};

struct go_spans {
    ARRAY(struct go_class) classes;  // those that have spans, ascending; the large ones last
    uint64_t bytes, object_sum;      // of all of them
    uint64_t stack_bytes;            // of spans for stacks and the runtime itself
    uint64_t odd_count;              // spans that contradict themselves: they were changing
};

// `heap`: the address of runtime.mheap_; `minor`: 19 of Go 1.19. False with a clause.
bool go_spans_read(const struct memory_reader *memory, uint64_t heap, unsigned minor,
                   struct go_spans *spans, struct error *error);

// Finds the list of all spans in the heap; 0: the version is not known.
uint64_t go_spans_list_place(unsigned minor);
// Tells that the words at an address look like such a list.
bool go_spans_is_list(const struct memory_reader *memory, uint64_t list, uint64_t count,
                      unsigned minor);

void go_spans_free(struct go_spans *spans);

#endif
