/* SPDX-License-Identifier: Apache-2.0
 *
 * expect.h: heap usage of a block of code in unit tests. C11 and C++11.
 *
 *     CAIRN_EXPECT_AT_MOST(3, 4096) {        // allocations, bytes
 *         parse(text);
 *     }
 *     CAIRN_EXPECT_NO_ALLOCATION { lookup(table, key); }
 *     CAIRN_EXPECT_NO_GROWTH { round_trip(); }   // all that was allocated is freed
 *
 * counts what the calling thread does in the block. Where the block takes more, the test ends by
 * abort() after a line that says what it took, or goes on if CAIRN_EXPECT_FAILED(text) is defined
 * before the header is included. Without cairn the block runs and nothing is checked; a test that
 * must not pass by that asks cairn_is_loaded() first. Where allocations are sampled, what a block
 * leaves behind is an estimate that hardly sees small ones. Leaving the block by break, goto or
 * return leaves the check out.
 */
#ifndef CAIRN_EXPECT_H
#define CAIRN_EXPECT_H

#include <stdio.h>
#include <stdlib.h>

#include <cairn/cairn.h>

#ifndef CAIRN_EXPECT_FAILED
#define CAIRN_EXPECT_FAILED(text) (fputs((text), stderr), abort())
#endif

#define CAIRN_ANY UINT64_MAX

struct cairn_expectation {
    const char *place;
    uint64_t allocations, allocated_bytes, growth_bytes; /* at most */
    int is_open;
};

static inline struct cairn_expectation cairn_expect_begin_(const char *place, uint64_t allocations,
                                                           uint64_t allocated_bytes,
                                                           uint64_t growth_bytes) {
    struct cairn_expectation made;
    made.place = place;
    made.allocations = allocations;
    made.allocated_bytes = allocated_bytes;
    made.growth_bytes = growth_bytes;
    made.is_open = 1;
    cairn_region_begin(NULL);
    return made;
}

static inline void cairn_expect_end_(struct cairn_expectation *expectation) {
    enum { TEXT_BYTES = 4608 }; /* a path, and what was found */
    char text[TEXT_BYTES];
    struct cairn_stats done;
    expectation->is_open = 0;
    if (!cairn_region_end(&done)) return;
    uint64_t growth = done.live_bytes > 0 ? (uint64_t)done.live_bytes : 0;
    if (done.allocations <= expectation->allocations &&
        done.allocated_bytes <= expectation->allocated_bytes && growth <= expectation->growth_bytes)
        return;
    int used = snprintf(text, sizeof text,
                        "%s: heap usage: %llu allocations of %llu bytes, %lld bytes left; at most",
                        expectation->place, (unsigned long long)done.allocations,
                        (unsigned long long)done.allocated_bytes, (long long)done.live_bytes);
    const char *between = " ";
    const uint64_t limits[] = {expectation->allocations, expectation->allocated_bytes,
                               expectation->growth_bytes};
    const char *const words[] = {"allocations", "bytes", "bytes left"};
    for (int i = 0; i < 3 && used > 0 && used < TEXT_BYTES; i++) {
        if (limits[i] == CAIRN_ANY) continue;
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%llu %s", between,
                         (unsigned long long)limits[i], words[i]);
        between = ", ";
    }
    if (used > 0 && used < TEXT_BYTES) snprintf(text + used, sizeof text - (size_t)used, "\n");
    CAIRN_EXPECT_FAILED(text);
}

#define CAIRN_TEXT_OF_(number) #number
#define CAIRN_PLACE_OF_(file, line) file ":" CAIRN_TEXT_OF_(line)

/* A name for each line, since blocks may nest. */
#define CAIRN_JOIN_(name, line) name##line
#define CAIRN_NAME_OF_(line) CAIRN_JOIN_(cairn_expected_, line)
#define CAIRN_EXPECT_AS_(name, allocations, bytes, growth)                                         \
    for (struct cairn_expectation name = cairn_expect_begin_(CAIRN_PLACE_OF_(__FILE__, __LINE__),  \
                                                             (allocations), (bytes), (growth));    \
         name.is_open; cairn_expect_end_(&name))
#define CAIRN_EXPECT_(allocations, bytes, growth)                                                  \
    CAIRN_EXPECT_AS_(CAIRN_NAME_OF_(__LINE__), allocations, bytes, growth)

/* At most so many allocations, of so many bytes together, whether freed or not. */
#define CAIRN_EXPECT_AT_MOST(allocations, bytes) CAIRN_EXPECT_(allocations, bytes, CAIRN_ANY)
#define CAIRN_EXPECT_NO_ALLOCATION CAIRN_EXPECT_(0, CAIRN_ANY, CAIRN_ANY)
/* No more is live at the end than at the begin. */
#define CAIRN_EXPECT_NO_GROWTH CAIRN_EXPECT_(CAIRN_ANY, CAIRN_ANY, 0)

#endif
