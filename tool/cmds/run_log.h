// SPDX-License-Identifier: Apache-2.0
// cairn run --log: appends a block to a text file at each snapshot that a recording keeps: what
// each stack held and did since the block before.
//
//     [   3]==== wordcount 4242 at 1.20 s, mark "warm"
//     churn=67109888/67108864
//     {8af9e2ef7dbb3e4a} live:8003584, alloc:4096/7823503360, free:0/7815499776
//       {0} builder_append text.c:62
//
// Numbers are bytes; before the slash is what came since the last block. The hash is the stack's in
// every run of the same program.
#ifndef TOOL_CMDS_RUN_LOG_H
#define TOOL_CMDS_RUN_LOG_H

#include "tool/base/error.h"
#include "tool/watch/watched.h"

struct run_log;

bool run_log_open(const char *path, struct run_log **log, struct error *error);
void run_log_close(struct run_log *log);

// Appends a block for what the process has now, if it has a new snapshot or is over (`is_last`). As
// the saver calls it: in one thread.
bool run_log_write(void *log, const struct watched *process, bool is_last, struct error *error);

#endif
