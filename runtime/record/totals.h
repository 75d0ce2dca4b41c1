// SPDX-License-Identifier: Apache-2.0
// The process' total and its peak.
//
// While one thread exists the total is what that thread has added, and everything is exact. From
// the second thread on each thread holds back up to a batch (256 B to 64 KiB, 1/256 of the peak
// shared by all) before it publishes, so that no shared line is written per event; the peak is then
// known to two batches a thread. A thread asks for nothing but comparisons with its own bounds
// (struct thread: high_bytes, low_bytes, peak_bytes); these functions are what lies behind them.
#ifndef RUNTIME_RECORD_TOTALS_H
#define RUNTIME_RECORD_TOTALS_H

#include <stdint.h>

#include "runtime/thread/thread.h"

// One thread: a free is about to leave a total higher than any before.
void totals_peak_left(struct thread *thread);

// Adds what the thread has held back, plus a change that it is about to make, to the totals.
void totals_publish(struct thread *thread, int64_t coming_bytes, int64_t coming_blocks);

// Adds the thread's calls that the totals do not have yet; also every EVENT_TIMED_EVERY calls, so
// that TOTAL_ALLOCS and TOTAL_ALLOCATED_BYTES, which gdb can print, lag by no more than that.
void totals_publish_calls(struct thread *thread);

// A recording begins.
void totals_begin(void);

// A second thread appears: `first` was alone so far.
void totals_share(struct thread *first);

// Sets a thread's bounds when it begins to record.
void totals_enter(struct thread *thread);

#endif
