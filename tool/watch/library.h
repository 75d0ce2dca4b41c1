// SPDX-License-Identifier: Apache-2.0
// The runtime library as a file that the dynamic linker can open.
//
// A tool that carries its libraries (tool/base/one_file.h) puts them into
// $XDG_CACHE_HOME/cairn/lib/BUILD-ID, libcairn.so's, or ~/.cache, or, where that does not do, into
// a directory of this user's in /var/tmp, /tmp or /dev/shm. It stays there: programs may start
// others after cairn's end. Otherwise it lies beside cairn, or where `make install` put it
// (tests/e2e/install.py).
#ifndef TOOL_WATCH_LIBRARY_H
#define TOOL_WATCH_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

#include "format/run_mark.h"
#include "tool/base/error.h"

// Finds libcairn.so (`has_operators`: the form that also wraps C++'s operator new). The path has no
// space and no colon, which LD_PRELOAD does not allow.
bool library_find(char path[PATH_MAX], bool has_operators, struct error *error);

// Marks the path of the library as preloaded by a run (format/run_mark.h): beside a tool, whose
// socket the number names, or alone. A path that becomes too long stays as it is.
void library_mark(char path[PATH_MAX], enum cairn_mark mark, uint64_t number);

// The same of libcairn-torture.so, which `cairn torture` alone loads.
bool library_find_torture(char path[PATH_MAX], struct error *error);

// The same of libcairn-bare.so, for static programs.
bool library_find_bare(char path[PATH_MAX], struct error *error);

// Finds the driver of `cairn replay`, a program.
bool library_find_driver(char path[PATH_MAX], struct error *error);

// Writes every library into `directory`, which is made if it is not there; for images of
// containers.
bool library_write(const char *directory, struct error *error);

#endif
