// SPDX-License-Identifier: Apache-2.0
// The memory of a running process, through /proc/PID/mem: it needs the same permission as ptrace,
// and pages that the process itself may not write can be written.
#ifndef TOOL_ATTACH_REMOTE_H
#define TOOL_ATTACH_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/error.h"

struct remote {
    pid_t pid;
    int memory;  // descriptor of /proc/PID/mem; -1: closed
};

bool remote_open(struct remote *remote, pid_t pid, struct error *error);
void remote_close(struct remote *remote);

// All or nothing; false if a page is not there.
bool remote_read(const struct remote *remote, uint64_t address, void *out, size_t size);
bool remote_write(const struct remote *remote, uint64_t address, const void *bytes, size_t size);

// A text that ends in NUL, cut to `size` with it; false if its start cannot be read.
bool remote_read_text(const struct remote *remote, uint64_t address, char *text, size_t size);

#endif
