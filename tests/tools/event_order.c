// SPDX-License-Identifier: Apache-2.0
// `event_order LOG`: whether the order that a log is read in can have been: no block is freed
// before it was allocated, and no address is given again before it was freed. Prints what there is
// of events, and what contradicts that; ends with 1 if anything does.
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "tool/events/event_log.h"
#include "tool/events/live_blocks.h"

struct order {
    uint64_t events, unknown, replaced;
};

static int follow_all(struct event_log *log, struct order *order, struct error *error) {
    struct live_blocks blocks = {.granule_shift = event_log_facts(log)->file.granule_shift};
    struct block_change change;
    struct event event;
    int got;
    while ((got = event_log_next(log, &event, error)) > 0) {
        if (!live_blocks_follow(&blocks, &event, &change)) return -1;
        order->events++;
        order->unknown += change.is_unknown;
        order->replaced += change.is_replaced;
    }
    live_blocks_free(&blocks);
    return got;
}

int main(int argc, char **argv) {
    struct order order = {0};
    struct error error;
    struct rusage usage;
    struct event_log *log = argc == 2 ? event_log_open(argv[1], &error) : NULL;
    if (!log) {
        fprintf(stderr, "event_order: %s\n", argc == 2 ? error.text : "which log?");
        return 2;
    }
    int got = follow_all(log, &order, &error);
    uint64_t forced = event_log_forced(log);
    getrusage(RUSAGE_SELF, &usage);
    printf("%" PRIu64 " events, %" PRIu64 " frees of unknown blocks, %" PRIu64
           " where a block lives, %" PRIu64 " forced, %ld KiB\n",
           order.events, order.unknown, order.replaced, forced, usage.ru_maxrss);
    event_log_close(log);
    return got || order.unknown || order.replaced || forced;
}
