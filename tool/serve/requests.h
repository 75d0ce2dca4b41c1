// SPDX-License-Identifier: Apache-2.0
// What clients write: the parts of a request that libmicrohttpd does not read for us.
#ifndef TOOL_SERVE_REQUESTS_H
#define TOOL_SERVE_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define REQUEST_SECONDS_MAX 3600
#define REQUEST_PID_DIGITS 10

// "/pid/12/metrics": the process, and what follows it ("/metrics"). False: it is no such path.
bool request_cut_pid(const char **path, pid_t *pid);

// The value of "?seconds=5"; NULL, it is not given, is 0. False: it is no number from 0 to
// REQUEST_SECONDS_MAX.
bool request_seconds(const char *text, unsigned *seconds);

// The next address of a text like "0x1234+0x5678"; false at its end, or at what is none.
bool request_next_address(const char **text, const char *end, uint64_t *address);

#endif
