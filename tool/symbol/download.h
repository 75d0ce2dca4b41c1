// SPDX-License-Identifier: Apache-2.0
// Debug files from debuginfod servers, when the user asked for it.
#ifndef TOOL_SYMBOL_DOWNLOAD_H
#define TOOL_SYMBOL_DOWNLOAD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Asks the client program of debuginfod for the debug file of a build-id; true: `path` is the file
// in the client's cache. The client shows its progress on a terminal; Ctrl-C ends the download and
// all further ones of this command. Safe to call from several threads: one downloads at a time.
bool download_debug_file(const uint8_t *build_id, size_t bytes, char path[PATH_MAX]);

// Why there was no download although one was asked for; NULL if all went well. A missing file on
// the servers is no reason.
const char *download_problem(void);

#endif
