// SPDX-License-Identifier: Apache-2.0
// Reads the file of an event log: all events of all threads, one after the other, in an order in
// which they may have happened: each thread's own, no block freed before it was allocated and no
// address given again before it was freed, and by time as far as that is known.
//
// Memory goes with the number of threads and with the addresses that blocks ever had, not with the
// number of events.
#ifndef TOOL_EVENTS_EVENT_LOG_H
#define TOOL_EVENTS_EVENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/base/error.h"
#include "tool/events/event.h"
#include "tool/events/frame_index.h"

struct event_log;

bool event_log_is_one(const char *path);
struct event_log *event_log_open(const char *path, struct error *error);
void event_log_close(struct event_log *log);
const struct event_log_facts *event_log_facts(const struct event_log *log);

// Something is missing: frees of blocks that are not known, and blocks that are never freed.
bool event_log_is_partial(const struct event_log *log);

// It does not begin with the process: it was switched on later, or only the last part was kept.
bool event_log_is_late(const struct event_log_facts *facts);
// Where it begins then, as a sentence.
enum { EVENT_LOG_TEXT = 160 };
void event_log_beginning(const struct event_log_facts *facts, char *out, size_t size);
// Chunks that are missing, and nobody said so as the log was taken.
uint64_t event_log_unexplained(const struct event_log_facts *facts);
// What is missing between its first and last event: "1,204 events and 2 pieces"; "" if nothing is.
void event_log_missing(const struct event_log_facts *facts, char *out, size_t size);

// The next event, 1; 0: there are no more; -1: the log is damaged, as `error` says.
int event_log_next(struct event_log *log, struct event *event, struct error *error);

// From the beginning again. False without memory.
bool event_log_rewind(struct event_log *log);

// Events so far that could not wait for those before them, since these are missing.
uint64_t event_log_forced(const struct event_log *log);

#endif
